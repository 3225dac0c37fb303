/** Who waits for whom before a connection is taken. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createJournalTurns, type Turn } from '../../../../../pdp/engine/store/postgres/connection/journal-turns.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

const OVERLOADED = { code: 'overloaded' }
const open = () => {
  const turns = createJournalTurns({ waitMsMax: 4_000, waitingMax: 3 })
  const held: (() => void)[] = []
  const hold = (...names: Turn[]) => turns.take(names, () => new Promise<void>((resolve) => held.push(resolve)))
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
  const beside = turns.take([{ beside: 'a' }], async () => 'beside')
  await expect(turns.take(['a'], async () => 'never')).rejects.toMatchObject(OVERLOADED)
  held[0]?.()
  await holding
  expect([await failing, await last, await beside]).toEqual(['no', 'last', 'beside'])
})

test('those who run beside each other all do, and one who must be alone waits for them and is not overtaken', async () => {
  const { turns, hold, held } = open()
  const done: string[] = []
  const running = [hold({ beside: 'a' }), hold({ beside: 'a' })]
  const alone = turns.take(['a'], async () => void done.push('alone'))
  const late = [1, 2].map((n) => turns.take([{ beside: 'a' }], async () => void done.push(`late ${n}`)))
  await vi.advanceTimersByTimeAsync(10)
  expect(held).toHaveLength(2)
  held[0]?.()
  await vi.advanceTimersByTimeAsync(10)
  expect(done).toEqual([])
  held[1]?.()
  await Promise.all([...running, alone, ...late])
  expect(done).toEqual(['alone', 'late 1', 'late 2'])
})

test('when one who must be alone gives up, those behind go on beside those who run', async () => {
  const { turns, hold, held } = open()
  const running = hold({ beside: 'a' })
  const alone = turns.take(['a'], async () => 'alone').catch((err: unknown) => err)
  await vi.advanceTimersByTimeAsync(1_000)
  const late = turns.take([{ beside: 'a' }], async () => 'late')
  await vi.advanceTimersByTimeAsync(3_000)
  expect(await alone).toMatchObject(OVERLOADED)
  expect(await late).toBe('late')
  held[0]?.()
  await running
  expect(await turns.take(['a'], async () => 'next')).toBe('next')
})
