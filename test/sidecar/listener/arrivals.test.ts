import { setImmediate as turn } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import { Arrivals } from '../../../sidecar/listener/arrivals.ts'

describe('requests that arrive', () => {
  let arrivals: Arrivals
  let begun: string[]
  beforeEach(() => {
    arrivals = new Arrivals()
    begun = []
  })
  const arrive = (address: string, count = 1, closing = { destroyed: false }): void => {
    // What a test leaves waiting does not begin in the next one.
    const into = begun
    for (let at = 0; at < count; at += 1) arrivals.add(address, closing, () => into.push(address))
  }

  test('begin at once, 32 of a client in one turn of the event loop, and the others in later ones', async () => {
    arrive('192.0.2.1', 32)
    expect(begun.length).toBe(32)
    arrive('192.0.2.1', 17)
    expect(begun.length).toBe(32)
    await turn()
    expect(begun.length).toBe(48)
    await turn()
    expect(begun.length).toBe(49)
  })

  test('begin at once beside those of a client that wait', async () => {
    arrive('192.0.2.1', 100)
    arrive('192.0.2.2')
    expect(begun.at(-1)).toBe('192.0.2.2')
    await turn()
    arrive('192.0.2.2')
    expect(begun.at(-1)).toBe('192.0.2.2')
  })

  test('of one client begin in their order, also when more come while some wait', async () => {
    const order: number[] = []
    for (let at = 0; at < 60; at += 1) arrivals.add('192.0.2.1', { destroyed: false }, () => order.push(at))
    await turn()
    arrivals.add('192.0.2.1', { destroyed: false }, () => order.push(60))
    await turn()
    await turn()
    expect(order).toEqual(Array.from({ length: 61 }, (_, at) => at))
  })

  test('of several clients that wait begin in turn', async () => {
    arrive('192.0.2.1', 60)
    arrive('192.0.2.2', 36)
    begun.length = 0
    await turn()
    expect(begun.filter((address) => address === '192.0.2.2').length).toBe(4)
    expect(begun.slice(0, 4)).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.1', '192.0.2.2'])
  })

  test('from one network of IPv6 count as those of one client', () => {
    for (let at = 0; at < 40; at += 1) arrive(`2001:db8::${at + 1}`)
    expect(begun.length).toBe(32)
  })

  test('never begin once their client has left', async () => {
    const closing = { destroyed: false }
    arrive('192.0.2.1', 32)
    arrive('192.0.2.1', 1, closing)
    closing.destroyed = true
    await turn()
    await turn()
    expect(begun.length).toBe(32)
  })
})
