import { describe, expect, test } from 'vitest'
import { createNonces } from '../../../../pdp/shared/token/nonces.ts'

const secret = Buffer.alloc(32, 's')

describe('a nonce', () => {
  test('is good for two minutes on every replica with the secret, ages after one, and is bad after that', () => {
    let nowMs = 1_800_000_000_000
    const clock = (): number => nowMs
    const [one, other] = [createNonces({ secret, clock }), createNonces({ secret, clock })]
    const nonce = one.current()
    expect([one.classify(nonce), other.classify(nonce)]).toEqual(['fresh', 'fresh'])
    nowMs += 60_000
    expect(other.classify(nonce)).toBe('aging')
    nowMs += 60_000
    expect(other.classify(nonce)).toBe('aging')
    nowMs += 30_000
    expect(other.classify(nonce)).toBe('bad')
    expect(one.current()).not.toBe(nonce)
  })

  test.each([undefined, null, 7, '', 'x', 'abc.def', `zzzzzzzzzzz.${'a'.repeat(22)}`])('%j is bad', (nonce) => {
    expect(createNonces({ secret, clock: Date.now }).classify(nonce)).toBe('bad')
  })

  test('is bad with another time, another seal or another secret', () => {
    const nonces = createNonces({ secret, clock: () => 1_800_000_000_000 })
    const nonce = nonces.current()
    const [step = '', seal = ''] = nonce.split('.')
    const later = (Number.parseInt(step, 36) + 1).toString(36)
    expect(nonces.classify(`${later}.${seal}`)).toBe('bad')
    expect(nonces.classify(`${step}.${seal.slice(1)}A`)).toBe('bad')
    expect(createNonces({ secret: Buffer.alloc(32, 'x'), clock: () => 1_800_000_000_000 }).classify(nonce)).toBe('bad')
  })

  test('needs a secret of 32 bytes', () => {
    expect(() => createNonces({ secret: Buffer.alloc(31), clock: Date.now })).toThrow(TypeError)
  })
})
