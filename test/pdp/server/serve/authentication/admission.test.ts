/** Who is answered when more is asked than can be answered in time. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  type AdmissionOptions,
  createAdmission,
  createPlaces,
} from '../../../../../pdp/server/serve/authentication/admission.ts'

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'performance'],
  })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Questions by name `organization/client/number`, which end when told to. */
function open(options: Partial<AdmissionOptions> = {}) {
  const admission = createAdmission({ clock: () => performance.now(), openMax: 1, ...options })
  const started: string[] = []
  const ended = new Map<string, string>()
  const ends = new Map<string, () => void>()
  const end = async (...names: readonly string[]): Promise<void> => {
    for (const name of names) {
      ends.get(name)?.()
      await vi.advanceTimersByTimeAsync(0)
    }
  }
  return {
    started,
    ended,
    admission,
    ask(...names: readonly string[]) {
      for (const name of names) {
        const [organization = '', client = ''] = name.split('/')
        const work = (): Promise<void> => {
          started.push(name)
          return new Promise((resolve) => ends.set(name, resolve))
        }
        admission.run({ organization, client }, work).then(
          () => ended.set(name, 'answered'),
          (err: { code: string }) => ended.set(name, err.code),
        )
      }
    },
    end,
    /** Each that starts ends at once. */
    async drain() {
      for (let at = 0; at < started.length; at++) await end(started[at] ?? '')
    },
  }
}
const many = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}/${i}`)
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)

describe('questions', () => {
  test('start at once while there is room, and in their turn otherwise', async () => {
    const { ask, end, started, ended, admission } = open({ openMax: 4 })
    ask('a/x/0', 'b/x/0', 'c/x/0', 'd/x/0', 'e/x/0')
    expect(started).toEqual(['a/x/0', 'b/x/0', 'c/x/0', 'd/x/0'])
    expect(admission.waitingCount).toBe(1)
    await end('b/x/0')
    expect(started.at(-1)).toBe('e/x/0')
    expect([...ended]).toEqual([['b/x/0', 'answered']])
    expect(admission.waitingCount).toBe(0)
  })

  test('of each organization take turns, however many one of them asks', async () => {
    const { ask, drain, started } = open()
    ask('a/x/first', ...many('a/x', 50), 'b/x/0', 'c/x/0', 'b/x/1')
    await drain()
    expect(started.slice(0, 7)).toEqual(['a/x/first', 'a/x/0', 'b/x/0', 'c/x/0', 'a/x/1', 'b/x/1', 'a/x/2'])
    expect(started).toHaveLength(54)
  })

  test('of each client of one organization take turns', async () => {
    const { ask, drain, started } = open()
    ask('a/x/first', ...many('a/x', 20), ...many('a/y', 2), 'a/z/0')
    await drain()
    expect(started.slice(1, 7)).toEqual(['a/x/0', 'a/y/0', 'a/z/0', 'a/x/1', 'a/y/1', 'a/x/2'])
  })

  test('of one organization take no more than three quarters of the room', async () => {
    const { ask, started } = open({ openMax: 8 })
    ask(...many('a/x', 20))
    expect(started).toHaveLength(6)
    ask('b/x/0', 'c/x/0', 'd/x/0')
    expect(started.slice(6)).toEqual(['b/x/0', 'c/x/0'])
  })

  test('that wait too long are overloaded, the first in first; later ones go on waiting', async () => {
    const { ask, end, ended } = open({ openMax: 2, deadlineMs: 60_000 })
    ask('a/x/open', 'b/x/open', 'a/x/early')
    await pass(1)
    await end('b/x/open')
    ask('b/x/again')
    await pass(300)
    ask('a/x/late')
    await pass(215)
    expect([...ended]).toEqual([
      ['b/x/open', 'answered'],
      ['a/x/early', 'overloaded'],
    ])
  })

  test('wait less where somebody waited all the time, so that answers stay prompt', async () => {
    const { ask, end, started, ended } = open({ openMax: 1, deadlineMs: 60_000 })
    ask('a/x/open')
    for (let i = 0; i < 12; i++) {
      ask(`b/x/${i}`, `b/y/${i}`)
      await pass(60)
      await end(started.at(-1) ?? '')
    }
    ask('c/x/0', 'd/x/0', 'e/x/0')
    await pass(60)
    expect(ended.get('e/x/0')).toBeUndefined()
    await pass(75)
    expect(ended.get('e/x/0')).toBe('overloaded')
  })

  test('that wait while nothing at all is answered are unavailable, not too many', async () => {
    const { ask, ended } = open({ openMax: 1, deadlineMs: 60_000 })
    ask('a/x/stuck', 'b/x/0')
    await pass(600)
    expect([...ended]).toEqual([['b/x/0', 'store_unavailable']])
  })

  test('that are displaced at once are too many, also when nothing was answered for long before', async () => {
    const { ask, end, ended } = open({ openMax: 1, waitingMax: 2, deadlineMs: 60_000 })
    ask('a/x/open', 'a/x/0', 'a/x/1', 'a/x/2')
    await pass(0)
    expect([...ended]).toEqual([['a/x/0', 'overloaded']])
    await end('a/x/open', 'a/x/1', 'a/x/2')
    await pass(5_000)
    ask('b/x/open', 'b/x/0', 'b/x/1', 'b/x/2')
    await pass(0)
    expect(ended.get('b/x/0')).toBe('overloaded')
  })

  test('are unavailable at the deadline, their wait included, and leave their room to others', async () => {
    const { ask, end, started, ended } = open({ deadlineMs: 1_000 })
    ask('a/x/0', 'b/x/0')
    await pass(400)
    await end('a/x/0')
    expect(started).toEqual(['a/x/0', 'b/x/0'])
    ask('c/x/0')
    await pass(590)
    expect(ended.get('b/x/0')).toBeUndefined()
    await pass(20)
    expect(ended.get('b/x/0')).toBe('store_unavailable')
  })

  test('leave their room when they fail', async () => {
    const admission = createAdmission({ clock: () => performance.now(), openMax: 1 })
    const asker = { organization: null, client: 'x' }
    for (let i = 0; i < 5; i++) {
      await expect(admission.run(asker, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    }
    expect(await admission.run(asker, async () => 'yes')).toBe('yes')
  })

  test('beyond the bound displace the first in of their own client, else of their own tenant, else of all', async () => {
    const { ask, ended, admission } = open({ waitingMax: 3 })
    ask('a/x/open', 'a/x/0', 'a/x/1', 'b/x/0')
    ask('b/x/1')
    await pass(0)
    expect([...ended.keys()]).toEqual(['b/x/0'])
    ask('c/x/0')
    await pass(0)
    expect([...ended.keys()]).toEqual(['b/x/0', 'a/x/0'])
    ask('b~lab/z/0')
    await pass(0)
    expect([...ended.keys()]).toEqual(['b/x/0', 'a/x/0', 'b/x/1'])
    expect(admission.waitingCount).toBe(3)
  })
})

describe('places of a client', () => {
  test('are given up to the bound, to each client its own, and given again once they are free', () => {
    const places = createPlaces(2)
    const [a, b] = ['a', 'b'].map((client) => ({ client, organization: null }))
    if (a === undefined || b === undefined) throw new TypeError('no clients')
    const free = places.take(a)
    places.take(a)
    expect(() => places.take(a)).toThrow(expect.objectContaining({ code: 'overloaded' }))
    expect(places.take(b)).toBeTypeOf('function')
    free()
    expect(places.take(a)).toBeTypeOf('function')
    expect(() => places.take(a)).toThrow(expect.objectContaining({ code: 'overloaded' }))
  })

  test('are twice as many for all clients of one tenant, and of what it makes below', () => {
    const places = createPlaces(2)
    const take = (client: string, organization: string | null) => places.take({ client, organization })
    const [free] = [take('a', 'acme'), take('b', 'acme'), take('c', 'acme~eu'), take('d', 'acme~eu~lab')]
    expect(() => take('e', 'acme~us')).toThrow(/the clients of this organization already have 4 open requests/)
    expect([take('f', 'beta'), take('g', null)].map((one) => typeof one)).toEqual(['function', 'function'])
    free?.()
    expect(take('e', 'acme~us')).toBeTypeOf('function')
    expect(() => take('a', 'acme')).toThrow(expect.objectContaining({ code: 'overloaded' }))
  })
})
