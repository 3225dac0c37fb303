import fc from 'fast-check'
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
  let clientCount = 0
  const enterAs = (client: string, wants: Want[], limits = LIMITS): { stay: Stay; wait: Promise<void> | null } => {
    const stay = new Stay(places, client)
    return { stay, wait: stay.enter(wants, limits) }
  }
  /** Each from a client of its own. */
  const enter = (...wants: Want[]) => {
    clientCount += 1
    return enterAs(`c${clientCount}`, wants)
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

  const ROUTE = want('route', 'GET /a', 512)
  /** How many a client gets that takes all it can. */
  const takeAll = (client: string, wants = [ROUTE]): number => {
    for (let taken = 0; ; taken += 1) {
      const { stay, wait } = enterAs(client, wants, { waitingMax: 1, waitingMs: 1_000 })
      if (wait === null) continue
      wait.catch(() => undefined)
      stay.leave()
      return taken
    }
  }

  test.each([
    [1, 1],
    [2, 1],
    [4, 2],
    [512, 256],
    [1_024, 512],
  ])('of %i that all share are at most %i for one client', (max, most) => {
    expect(takeAll('greedy', [want('all', '', max)])).toBe(most)
  })

  test('are left for others by twenty clients that take all they can, one after the other', () => {
    const shares = Array.from({ length: 20 }, (_, at) => takeAll(`greedy-${at}`))
    expect(shares.every((share, at) => at === 0 || share <= (shares[at - 1] ?? 0))).toBe(true)
    for (let at = 0; at < 10; at += 1) expect(enterAs(`calm-${at}`, [ROUTE]).wait).toBeNull()
  })

  test('that become free go to clients that have none first, then to clients in turn', async () => {
    const slot = want('all', '', 4)
    const [greedy] = [enterAs('greedy', [slot]), enterAs('greedy', [slot]), enter(slot), enter(slot)]
    const order: string[] = []
    const limits = { waitingMax: 100, waitingMs: 1_000 }
    const queue = (client: string): Stay[] => {
      const { stay, wait } = enterAs(client, [slot], limits)
      void wait?.then(
        () => order.push(client),
        () => undefined,
      )
      return wait === null ? [] : [stay]
    }
    const stays = ['greedy', 'greedy', 'a', 'a', 'a', 'b'].flatMap(queue)
    greedy.stay.leave()
    await Promise.resolve()
    for (const at of [2, 5, 3, 4]) {
      stays[at]?.leave()
      await Promise.resolve()
    }
    expect(order.slice(0, 4)).toEqual(['a', 'b', 'a', 'a'])
  })

  test('to wait in are left for others by a client that fills them', () => {
    const slot = want('route', 'GET /b', 1)
    const limits = { waitingMax: 8, waitingMs: 1_000 }
    enter(slot)
    const wait = (client: string): void => void enterAs(client, [slot], limits).wait?.catch(() => undefined)
    for (let at = 0; at < 4; at += 1) wait('greedy')
    expect(() => wait('greedy')).toThrow('Too many requests of this route are open')
    for (const client of ['a', 'b']) wait(client)
  })

  test('go to somebody whose client has none, however many wait that have their part', async () => {
    const slot = want('all', '', 40)
    const held = Array.from({ length: 40 }, (_, at) => enterAs(`greedy-${at}`, [slot]))
    const limits = { waitingMax: 1_000, waitingMs: 1_000 }
    for (let at = 0; at < 40; at += 1) enterAs(`greedy-${at}`, [slot], limits).wait?.catch(() => undefined)
    const calm = enterAs('calm', [slot], limits)
    expect(calm.wait).not.toBeNull()
    // The first of the greedy has none any more, and waited before: one place each.
    for (const { stay } of held.slice(0, 2)) stay.leave()
    await calm.wait
  })

  test('are never more than there are, and none is lost, whoever comes and leaves', async () => {
    const step = fc.record({ client: fc.nat(6), route: fc.nat(1), leaves: fc.boolean(), which: fc.nat() })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 120 }), async (steps) => {
        const own = new Places()
        const inside = new Set<Stay>()
        const stays: Stay[] = []
        for (const { client, route, leaves, which } of steps) {
          const [gone] = leaves && stays.length > 0 ? stays.splice(which % stays.length, 1) : []
          if (gone !== undefined) {
            inside.delete(gone)
            gone.leave()
          } else {
            const stay = new Stay(own, `c${client}`)
            const wants = [want('subject', `s${client % 3}`, 3), want('route', `${route}`, 5), want('all', '', 7)]
            try {
              const wait = stay.enter(wants, { waitingMax: 6, waitingMs: 1_000 })
              stays.push(stay)
              if (wait === null) inside.add(stay)
              else
                wait.then(
                  () => inside.add(stay),
                  () => undefined,
                )
            } catch (err) {
              expect(err).toMatchObject({ code: 'busy' })
            }
          }
          await Promise.resolve()
          expect(inside.size).toBeLessThanOrEqual(7)
        }
        for (const stay of stays) stay.leave()
        expect(own.nameCount()).toBe(0)
      }),
      { numRuns: 50 },
    )
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
