import { generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type AlgorithmName, verifySignature } from '../../../../pdp/shared/token/algorithms.ts'

const CURVES = [
  ['ES256', 'P-256', 'sha256', 64],
  ['ES384', 'P-384', 'sha384', 96],
  ['ES512', 'P-521', 'sha512', 132],
] as const satisfies readonly (readonly [AlgorithmName, string, string, number])[]

describe.each(CURVES)('verifySignature with %s', (name, namedCurve, digest, bytes) => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve })
  const input = Buffer.from('header.payload')
  const make = (key: KeyObject = privateKey): Buffer => sign(digest, input, { key, dsaEncoding: 'ieee-p1363' })
  const verifies = (signature: Buffer): Promise<boolean> => verifySignature(name, publicKey, { input, signature })

  test('takes what was signed, whatever zeros and high bits its two numbers begin with', {
    timeout: 60_000,
  }, async () => {
    const beginnings = new Set<string>()
    const kind = (byte = 0): string => (byte === 0 ? 'zero' : byte >= 0x80 ? 'high' : 'low')
    // The first byte of a P-521 number is 0 or 1.
    const wanted = name === 'ES512' ? 2 : 6
    for (let tries = 0; tries < 4_000 && beginnings.size < wanted; tries += 1) {
      const signature = make()
      const known = beginnings.size
      beginnings.add(`r ${kind(signature[0])}`).add(`s ${kind(signature[bytes / 2])}`)
      if (beginnings.size > known) expect(await verifies(signature)).toBe(true)
    }
    expect(beginnings.size).toBeGreaterThanOrEqual(wanted)
  })

  test.each([
    ['only zeros', () => Buffer.alloc(bytes)],
    ['only ones', () => Buffer.alloc(bytes, 0xff)],
    ['r of zero', () => Buffer.concat([Buffer.alloc(bytes / 2), make().subarray(bytes / 2)])],
    ['s of zero', () => Buffer.concat([make().subarray(0, bytes / 2), Buffer.alloc(bytes / 2)])],
    [
      'its numbers the other way round',
      () => Buffer.concat([make().subarray(bytes / 2), make().subarray(0, bytes / 2)]),
    ],
    ['a byte less', () => make().subarray(1)],
    ['a byte more', () => Buffer.concat([Buffer.alloc(1), make()])],
    ['nothing', () => Buffer.alloc(0)],
    ['the other encoding', () => sign(digest, input, privateKey)],
    ['another key', () => make(generateKeyPairSync('ec', { namedCurve }).privateKey)],
  ])('refuses a signature of %s', async (_what, signature) => {
    expect(await verifies(signature())).toBe(false)
  })

  test('refuses a key of another kind', async () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey
    for (const other of ['ES256', 'ES384', 'ES512', 'EdDSA', 'RS256'] as const) {
      const key = other === name ? rsa : publicKey
      expect(await verifySignature(other, key, { input, signature: make() })).toBe(false)
    }
  })

  test('agrees with Node about signatures with one bit changed', async () => {
    for (let bit = 0; bit < bytes * 8; bit += 37) {
      const signature = make()
      signature[bit >> 3] = (signature[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      const expected = verify(digest, input, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature)
      expect(await verifies(signature)).toBe(expected)
    }
  })
})
