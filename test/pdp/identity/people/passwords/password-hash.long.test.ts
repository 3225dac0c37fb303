import { describe, expect, test } from 'vitest'
import {
  generateSecret,
  hashGeneratedSecret,
  hashSecret,
  isSlowHash,
  SECRET_CHARACTERS_MAX,
  verifySecret,
} from '../../../../../pdp/identity/people/passwords/password-hash.ts'
import { deriveKey, open, seal } from '../../../../../pdp/shared/base/encryption.ts'
import { realScrypt } from '../../../../support/passwords/quick-scrypt.ts'

realScrypt()

describe('a hashed password', () => {
  test('is a PHC string of scrypt with its own salt, and verifies', async () => {
    const [first, second] = await Promise.all([hashSecret('pässword'), hashSecret('pässword')])
    expect(first).toMatch(/^\$scrypt\$ln=15,r=8,p=3\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    expect(first).not.toBe(second)
    expect(await verifySecret('pässword', first)).toBe(true)
    expect(isSlowHash(first)).toBe(true)
  })

  test('verifies however the keyboard composed its letters', async () => {
    expect(await verifySecret('pa\u0308ssword', await hashSecret('p\u00e4ssword'))).toBe(true)
  })

  test('agrees with the printed vector of RFC 7914 section 12', async () => {
    // scrypt("pleaseletmein", "SodiumChloride", N=16384, r=8, p=1), its first 32 bytes.
    const hash = Buffer.from('7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2', 'hex')
    const [salt, text] = [Buffer.from('SodiumChloride'), hash].map((b) => b.toString('base64').replace(/=+$/, ''))
    expect(await verifySecret('pleaseletmein', `$scrypt$ln=14,r=8,p=1$${salt}$${text}`)).toBe(true)
  })

  test.each(['Password', 'password ', 'passwor', ''])('does not verify %j for password', async (wrong) => {
    expect(await verifySecret(wrong, await hashSecret('password'))).toBe(false)
  })
})

describe('a hashed generated secret', () => {
  test('has 256 random bits, its own salt, and verifies', async () => {
    const secret = generateSecret()
    expect(secret).toMatch(/^[\w-]{43}$/)
    expect(generateSecret()).not.toBe(secret)
    const hash = hashGeneratedSecret(secret)
    expect(hashGeneratedSecret(secret)).not.toBe(hash)
    expect(await verifySecret(secret, hash)).toBe(true)
    expect(await verifySecret(`${secret}a`, hash)).toBe(false)
    expect(isSlowHash(hash)).toBe(false)
  })
})

describe('a stored hash', () => {
  test.each([
    '',
    'secret',
    '$sha256$',
    '$scrypt$ln=15,r=8,p=3$AAAAAAAAAAAAAAAAAAAAAA$',
    `$scrypt$ln=99,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$${'A'.repeat(43)}`,
    `$scrypt$ln=0,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$${'A'.repeat(43)}`,
    `$scrypt$ln=15,r=0,p=1$AAAAAAAAAAAAAAAAAAAAAA$${'A'.repeat(43)}`,
    `$scrypt$ln=15,r=8,p=17$AAAAAAAAAAAAAAAAAAAAAA$${'A'.repeat(43)}`,
    `$argon2id$v=19$m=65536,t=3,p=4$AAAAAAAAAAAAAAAAAAAAAA$${'A'.repeat(43)}`,
  ])('of the form %j matches nothing', async (stored) => {
    expect(await verifySecret('secret', stored)).toBe(false)
  })

  test('is not made of nothing, nor of too much', async () => {
    await expect(hashSecret('')).rejects.toThrow(TypeError)
    await expect(hashSecret('x'.repeat(SECRET_CHARACTERS_MAX + 1))).rejects.toThrow(TypeError)
    expect(() => hashGeneratedSecret('')).toThrow(TypeError)
    const longest = 'x'.repeat(SECRET_CHARACTERS_MAX)
    const hash = hashGeneratedSecret(longest)
    expect([await verifySecret(longest, hash), await verifySecret(`${longest}x`, hash)]).toEqual([true, false])
  })
})

describe('a sealed value', () => {
  const key = deriveKey(Buffer.alloc(32, 1), 'test')

  test('opens with its key and name only', () => {
    const sealed = seal([key], 'name', 'value')
    expect(open([key], 'name', sealed)).toBe('value')
    expect(() => open([key], 'other', sealed)).toThrow()
    expect(() => open([deriveKey(Buffer.alloc(32, 1), 'other')], 'name', sealed)).toThrow()
    expect(() => open([deriveKey(Buffer.alloc(32, 2), 'test')], 'name', sealed)).toThrow()
  })

  test('differs every time and shows a change of any byte', () => {
    const sealed = seal([key], 'name', 'value')
    expect(seal([key], 'name', 'value')).not.toBe(sealed)
    const bytes = Buffer.from(sealed.slice(3), 'base64url')
    for (let i = 0; i < bytes.length; i += 1) {
      const changed = Buffer.from(bytes)
      changed[i] = (changed[i] ?? 0) ^ 1
      expect(() => open([key], 'name', `v1.${changed.toString('base64url')}`)).toThrow()
    }
  })

  test.each(['', 'v1.', 'v2.AAAA', 'v1.AAAA', 'plain'])('does not open from %j', (text) => {
    expect(() => open([key], 'name', text)).toThrow()
  })
})
