/** Who waits for whom before a connection is taken. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createJournalTurns } from '../../../../../pdp/engine/store/postgres/connection/journal-turns.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

const OVERLOADED = { code: 'overloaded' }
const open = () => {
  const turns = createJournalTurns({ waitMsMax: 4_000, waitingMax: 2 })
  const held: (() => void)[] = []
  const hold = (...names: string[]) => turns.take(names, () => new Promise<void>((resolve) => held.push(resolve)))
  return { turns, hold, held }
}

test('somebody who needs two names has neither while one is taken, and each goes on to the next in line', async () => {
  const { turns, hold, held } = open()
  const done: string[] = []
  const first = hold('b')
  const both = turns.take(['a', 'b'], async () => void done.push('both'))
  const other = turns.take(['a'], async () => void done.push('a alone'))
  await vi.advanceTimersByTimeAsync(10)
  expect(done).toEqual([])
  held[0]?.()
  await Promise.all([first, both, other])
  expect(done).toEqual(['both', 'a alone'])
})

test('the wait for several names is no longer than that for one, and what was taken is given back', async () => {
  const { turns, hold, held } = open()
  const [a, b] = [hold('a'), hold('b')]
  const waiting = turns.take(['a', 'b'], async () => 'both').catch((err: unknown) => err)
  await vi.advanceTimersByTimeAsync(3_000)
  held[0]?.()
  await a
  await vi.advanceTimersByTimeAsync(999)
  const next = turns.take(['a'], async () => 'a')
  await vi.advanceTimersByTimeAsync(1)
  expect(await waiting).toMatchObject(OVERLOADED)
  expect(await next).toBe('a')
  held[1]?.()
  await b
})

test('the work is told when the wait began, so that both have one deadline', async () => {
  const { turns, hold, held } = open()
  const startMs = performance.now()
  const holding = hold('a')
  const since = turns.take(['a'], async (sinceMs) => sinceMs)
  await vi.advanceTimersByTimeAsync(1_500)
  held[0]?.()
  await holding
  expect(await since).toBe(startMs)
})

test('no more wait than may, and one who fails leaves its place', async () => {
  const { turns, hold, held } = open()
  const holding = hold('a')
  const failing = turns.take(['a'], () => Promise.reject(new Error('no'))).catch((err: Error) => err.message)
  const last = turns.take(['a'], async () => 'last')
  await expect(turns.take(['a'], async () => 'never')).rejects.toMatchObject(OVERLOADED)
  held[0]?.()
  await holding
  expect([await failing, await last]).toEqual(['no', 'last'])
})
