/** Open exchanges of a browser's session end with it. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { PermissionWatch } from '../../../sidecar/enforce/permission-watch.ts'

const UNCONFIRMED_MAX_MS = 5_000
let watch: PermissionWatch
let isSignedOut: () => Promise<boolean>
let cuts: string[]
let end: () => void

beforeEach(() => {
  vi.useFakeTimers()
  watch = new PermissionWatch({ clock: Date.now, unconfirmedMaxMs: UNCONFIRMED_MAX_MS, expiryLeewayMs: 0 })
  isSignedOut = async () => false
  cuts = []
  const exchange = {
    basis: null,
    stale: false,
    reevaluate: () => Promise.resolve({ kind: 'permitted' as const, basis: null }),
    isEndless: () => true,
    isSignedOut: () => isSignedOut(),
  }
  end = watch.begin(exchange, (code) => void cuts.push(code))
})
afterEach(() => {
  watch.close()
  vi.useRealTimers()
})

const unknown = (): Promise<boolean> => Promise.reject(new Error('away'))

test('within a second after the session was ended', async () => {
  await vi.advanceTimersByTimeAsync(60_000)
  expect(cuts).toEqual([])
  isSignedOut = async () => true
  await vi.advanceTimersByTimeAsync(1_100)
  expect(cuts).toEqual(['token_invalid'])
})

test('after a while when nobody can say whether the session was ended', async () => {
  isSignedOut = unknown
  await vi.advanceTimersByTimeAsync(UNCONFIRMED_MAX_MS - 500)
  isSignedOut = async () => false
  await vi.advanceTimersByTimeAsync(2_000)
  isSignedOut = unknown
  await vi.advanceTimersByTimeAsync(UNCONFIRMED_MAX_MS - 500)
  expect(cuts).toEqual([])
  await vi.advanceTimersByTimeAsync(2_500)
  expect(cuts).toEqual(['session_unavailable'])
})

test('not a second time when they have ended before the answer', async () => {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  isSignedOut = () => promise
  await vi.advanceTimersByTimeAsync(1_000)
  end()
  resolve(true)
  await vi.advanceTimersByTimeAsync(2_000)
  expect(cuts).toEqual([])
})
