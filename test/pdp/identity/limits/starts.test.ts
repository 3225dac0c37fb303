/** Who waits, and who is refused, when strangers flood. */
import { describe, expect, test } from 'vitest'
import { BusyError, createSemaphores } from '../../../../pdp/identity/limits/attempts.ts'
import { createKnownAddresses } from '../../../../pdp/identity/limits/known-addresses.ts'
import { createStarts } from '../../../../pdp/identity/limits/starts.ts'

describe('a line that strangers fill from many addresses', () => {
  const fill = (kind: 'decoys' | 'clients' | 'people') => {
    const known = new Set(['home', 'office'])
    const semaphore = createSemaphores({ runningMax: 1, waitingMax: 6, known })[kind]
    const order: string[] = []
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    const work = (address: string) =>
      semaphore(async () => void order.push(address), address).catch((err: unknown) => {
        if (!(err instanceof BusyError)) throw err
        order.push(`${address} refused`)
      })
    const all = [semaphore(() => held, 'bot0')]
    for (let i = 1; i <= 6; i += 1) all.push(work(`bot${i}`))
    return { work, order, all, release }
  }

  test.each(['decoys', 'clients', 'people'] as const)('has room and turns for known addresses: %s', async (kind) => {
    const { work, order, all, release } = fill(kind)
    all.push(work('home'), work('office'), work('home'))
    await work('bot7')
    release()
    await Promise.all(all)
    const refused = order.filter((name) => name.endsWith('refused'))
    expect(refused).toHaveLength(4)
    for (const name of refused) expect(name).toMatch(/^bot/)
    expect(order.filter((name) => !name.endsWith('refused')).slice(0, 5)).toEqual([
      'bot1',
      'home',
      'office',
      'bot2',
      'home',
    ])
  })

  test('refuses a newcomer among them, and leaves each address its turn', async () => {
    const { work, order, all, release } = fill('people')
    await work('bot7')
    expect(order).toEqual(['bot7 refused'])
    release()
    await Promise.all(all)
    expect(order.slice(1)).toEqual(['bot1', 'bot2', 'bot3', 'bot4', 'bot5', 'bot6'])
  })
})

describe('what somebody starts before signing in', () => {
  const make = () => {
    const time = { ms: 0 }
    const known = createKnownAddresses({ clock: () => time.ms })
    const starts = createStarts({ clock: () => time.ms, known })
    const count = (address: string, person: string | null = null, triesMax = 10_000) => {
      let taken = 0
      while (taken < triesMax && starts.take({ address, person })) taken += 1
      return taken
    }
    return { time, known, starts, count }
  }

  test('is bounded for each address, each person, and for all unknown addresses together', () => {
    const { time, known, count } = make()
    known.add('home')
    expect(count('flood')).toBe(600)
    expect(count('other')).toBe(600)
    expect(count('flood', 'ann')).toBe(600)
    let strangers = 1_200
    for (let i = 0; i < 100; i += 1) strangers += count(`bot${i}`, null, 100)
    expect(strangers).toBe(6_000)
    expect(count('newcomer')).toBe(0)
    expect(count('home')).toBe(600)
    expect(count('newcomer', 'bob')).toBe(600)
    time.ms = 60_000
    expect(count('newcomer')).toBe(600)
  })

  test('is given back, to the address and to all', () => {
    const { starts, count } = make()
    const who = { address: 'a', person: null }
    for (let i = 0; i < 7_000; i += 1) {
      expect(starts.take(who)).toBe(true)
      starts.giveBack(who)
    }
    expect(count('a')).toBe(600)
  })

  test('of a client that has authenticated counts for its server, which may start more', () => {
    const { time, starts, count } = make()
    const who = { address: 'a', person: null }
    for (let i = 0; i < 6_000; i += 1) {
      expect(starts.take(who)).toBe(true)
      starts.isServer(who)
    }
    expect([starts.take(who), count('other')]).toEqual([false, 600])
    time.ms = 60_000
    expect(count('a')).toBe(600)
  })

  test('an address is known for a day, and of too many the first is forgotten', () => {
    const { time, known } = make()
    known.add('a')
    time.ms = 86_399_999
    expect(known.has('a')).toBe(true)
    known.add('a')
    time.ms += 10
    expect(known.has('a')).toBe(true)
    for (let i = 0; i < 10_000; i += 1) known.add(`other${i}`)
    expect([known.has('a'), known.has('other0')]).toEqual([false, true])
    time.ms += 86_400_000
    expect(known.has('other0')).toBe(false)
  })
})
