import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Bound, Places, Stay, type Want } from '../../../sidecar/enforce/places.ts'
import { Pace } from '../../../sidecar/upstream/pace.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const LIMITS = { waitingMax: 2, waitingMs: 1_000 }
const want = (bound: Bound, name: string, max: number): Want => ({ bound, name, max })

describe('places', () => {
  let places: Places
  beforeEach(() => {
    places = new Places()
  })
  const enter = (...wants: Want[]): { stay: Stay; wait: Promise<void> | null } => {
    const stay = new Stay(places)
    return { stay, wait: stay.enter(wants, LIMITS) }
  }
  const ALL = want('all', '', 2)

  test('are given at once while there are any, and the next one waits for the first that leaves', async () => {
    const [first, second, third] = [enter(ALL), enter(ALL), enter(ALL)]
    expect([first.wait, second.wait, third.wait === null]).toEqual([null, null, false])
    second.stay.leave()
    await third.wait
    expect(enter(ALL).wait).not.toBeNull()
  })

  test('are not given twice for one that leaves twice', () => {
    const [first] = [enter(ALL), enter(ALL)]
    first.stay.leave()
    first.stay.leave()
    enter(ALL)
    expect(enter(ALL).wait).not.toBeNull()
  })

  test('that do not come in time are refused with the name of what is full', async () => {
    enter(want('route', 'GET /a', 1))
    const { wait } = enter(want('subject', 'ann', 1), want('route', 'GET /a', 1))
    const refused = expect(wait).rejects.toThrow('Too many requests of this route are open')
    await vi.advanceTimersByTimeAsync(LIMITS.waitingMs)
    await refused
    // Nothing of the other bound was kept.
    expect(enter(want('subject', 'ann', 1)).wait).toBeNull()
  })

  test('are refused at once when as many wait as may, behind that name alone', () => {
    enter(want('client', 'a', 1))
    for (let at = 0; at < LIMITS.waitingMax; at += 1) enter(want('client', 'a', 1)).wait?.catch(() => undefined)
    expect(() => enter(want('client', 'a', 1))).toThrow('Too many requests of this client are open')
    expect(enter(want('client', 'b', 1)).wait).toBeNull()
  })

  test('go to the next who can use them, when the first in turn lacks another', async () => {
    const all = enter(want('all', '', 1))
    enter(want('subject', 'ann', 1))
    const ann = enter(want('all', '', 1), want('subject', 'ann', 1))
    ann.wait?.catch(() => undefined)
    const bob = enter(want('all', '', 1), want('subject', 'bob', 1))
    all.stay.leave()
    await bob.wait
    expect(ann.wait).not.toBeNull()
  })

  test('are not kept for one that leaves while it waits, nor given to it afterwards', async () => {
    const [first, second] = [enter(want('client', 'a', 1)), enter(want('client', 'a', 1))]
    const gone = expect(second.wait).rejects.toThrow('are open')
    second.stay.leave()
    await gone
    first.stay.leave()
    expect(enter(want('client', 'a', 1)).wait).toBeNull()
    expect(() => second.stay.enter([want('all', '', 1)], LIMITS)).toThrow('are open')
  })

  test('of names that nobody uses any more take no memory', () => {
    for (let at = 0; at < 1_000; at += 1) enter(want('client', `c${at}`, 1), want('all', '', 2)).stay.leave()
    expect(places.nameCount()).toBe(0)
  })
})

describe('the pace of an end', () => {
  const LEAST = { idleMs: 1_000, graceMs: 3_000, bytesPerSecondMin: 10 }
  let slowCount: number
  beforeEach(() => {
    slowCount = 0
  })
  const start = (limits = LEAST): Pace => new Pace(limits, () => (slowCount += 1))
  /** One piece every half second. */
  const drip = (pace: Pace, { bytes, count }: { bytes: number; count: number }): void => {
    for (let at = 0; at < count; at += 1) {
      vi.advanceTimersByTime(500)
      pace.moved(bytes)
    }
  }

  test('is too slow when nothing moves for long, once', () => {
    start().wait()
    vi.advanceTimersByTime(998)
    expect(slowCount).toBe(0)
    vi.advanceTimersByTime(60_000)
    expect(slowCount).toBe(1)
  })

  test('is too slow when a byte at a time keeps it from being silent', () => {
    const pace = start()
    pace.wait()
    drip(pace, { bytes: 1, count: 100 })
    expect(slowCount).toBe(1)
  })

  test('is fast enough at the least rate, and after a grace that was used up', () => {
    const pace = start()
    pace.wait()
    drip(pace, { bytes: 5, count: 1_000 })
    expect(slowCount).toBe(0)
  })

  test('does not count the time that we take', () => {
    const pace = start()
    for (let at = 0; at < 100; at += 1) {
      pace.wait()
      vi.advanceTimersByTime(10)
      pace.rest()
      vi.advanceTimersByTime(10_000)
    }
    expect(slowCount).toBe(0)
  })

  test('adds up over all waits', () => {
    const pace = start()
    for (let at = 0; at < 10; at += 1) {
      pace.wait()
      vi.advanceTimersByTime(900)
      pace.rest()
    }
    pace.wait()
    vi.advanceTimersByTime(2)
    expect(slowCount).toBe(1)
  })

  test('without a least rate is only too slow when it is silent', () => {
    const pace = start({ ...LEAST, bytesPerSecondMin: 0 })
    pace.wait()
    drip(pace, { bytes: 1, count: 1_000 })
    expect(slowCount).toBe(0)
    vi.advanceTimersByTime(1_000)
    expect(slowCount).toBe(1)
  })
})
