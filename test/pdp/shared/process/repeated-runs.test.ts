import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startRepeated } from '../../../../pdp/shared/process/repeated-runs.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Each run lasts until it is ended. */
function slowRuns() {
  const ends: ((err?: Error) => void)[] = []
  const run = (): Promise<void> =>
    new Promise((resolve, reject) => ends.push((err) => (err === undefined ? resolve() : reject(err))))
  return { run, ends }
}
const EVERY = { intervalMs: 1_000, failed: (err: unknown) => expect(err).toBe('none') }

test('a run that is slow keeps no others waiting: the next one begins at an interval after its end', async () => {
  const { run, ends } = slowRuns()
  const stop = startRepeated(run, EVERY)
  await vi.advanceTimersByTimeAsync(5_500)
  expect(ends).toHaveLength(1)
  ends[0]?.()
  await vi.advanceTimersByTimeAsync(400)
  expect(ends).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(100)
  expect(ends).toHaveLength(2)
  ends[1]?.()
  await stop()
})

test('the first run of a process that has no other work begins at once', async () => {
  const { run, ends } = slowRuns()
  const stop = startRepeated(run, { ...EVERY, isAlone: true })
  expect(ends).toHaveLength(1)
  ends[0]?.()
  await stop()
})

test('a run that rejects is told, and the next one begins', async () => {
  const { run, ends } = slowRuns()
  const told: unknown[] = []
  const stop = startRepeated(run, { ...EVERY, failed: (err) => told.push(err) })
  await vi.advanceTimersByTimeAsync(1_000)
  const err = new Error('no')
  ends[0]?.(err)
  await vi.advanceTimersByTimeAsync(1_000)
  expect([told, ends.length]).toEqual([[err], 2])
  ends[1]?.()
  await stop()
})

test('stopping waits for the run that is under way, tells it, and begins no other', async () => {
  const seen: boolean[] = []
  let end = (): void => undefined
  const stop = startRepeated(async (isStopped) => {
    await new Promise<void>((resolve) => {
      end = resolve
    })
    seen.push(isStopped())
  }, EVERY)
  await vi.advanceTimersByTimeAsync(1_000)
  let stopped = false
  const stopping = stop().then(() => {
    stopped = true
  })
  await vi.advanceTimersByTimeAsync(3_000)
  expect(stopped).toBe(false)
  end()
  await stopping
  await vi.advanceTimersByTimeAsync(3_000)
  expect(seen).toEqual([true])
})
