import { describe, expect, test } from 'vitest'
import { base32, oneTimePassword, otpauthUri, stepOf } from '../../../../../pdp/identity/people/factors/totp.ts'

const SECRET = Buffer.from('12345678901234567890')

describe('one-time passwords', () => {
  // RFC 4226 appendix D
  test.each([
    [0, '755224'],
    [1, '287082'],
    [2, '359152'],
    [3, '969429'],
    [4, '338314'],
    [5, '254676'],
    [6, '287922'],
    [7, '162583'],
    [8, '399871'],
    [9, '520489'],
  ])('are those of RFC 4226 for counter %i', (counter, password) => {
    expect(oneTimePassword(SECRET, counter)).toBe(password)
  })

  // RFC 6238 appendix B, the rows for SHA-1
  test.each([
    [59, '94287082'],
    [1_111_111_109, '07081804'],
    [1_111_111_111, '14050471'],
    [1_234_567_890, '89005924'],
    [2_000_000_000, '69279037'],
    [20_000_000_000, '65353130'],
  ])('are those of RFC 6238 at second %i', (seconds, password) => {
    expect(oneTimePassword(SECRET, Math.floor(seconds / 30), 8)).toBe(password)
    expect(stepOf(password.slice(2), { secret: SECRET, nowMs: seconds * 1_000 })).toBe(Math.floor(seconds / 30))
  })
})

describe('the step of a code', () => {
  const nowMs = 1_111_111_109_000
  const step = Math.floor(nowMs / 30_000)
  const at = (code: string) => stepOf(code, { secret: SECRET, nowMs })

  test('may be one before or after the present, not two', () => {
    for (const off of [-1, 0, 1]) expect(at(oneTimePassword(SECRET, step + off))).toBe(step + off)
    for (const off of [-2, 2]) expect(at(oneTimePassword(SECRET, step + off))).toBeNull()
  })

  test('is found however the person grouped the digits', () => {
    expect(at(' 081 804 ')).toBe(step)
  })

  test.each(['', '081805', '81804', '0081804', '07081804', '-81804', '0x1804', '08180４', '081 80', 'NaN'])(
    'is none for %j',
    (code) => {
      expect(at(code)).toBeNull()
    },
  )
})

describe('what an authenticator app reads', () => {
  test('is base32 without padding, as RFC 4648 section 10 prints it', () => {
    const encoded = ['', 'f', 'fo', 'foo', 'foob', 'fooba', 'foobar'].map((text) => base32(Buffer.from(text)))
    expect(encoded).toEqual(['', 'MY', 'MZXQ', 'MZXW6', 'MZXW6YQ', 'MZXW6YTB', 'MZXW6YTBOI'])
  })

  test('names the issuer and the account, escaped', () => {
    const uri = otpauthUri({ issuer: 'https://id.example:8443/a', account: 'ann b:c?&@x.example', secret: SECRET })
    expect(uri).toBe(
      'otpauth://totp/id.example%3A8443:ann%20b%3Ac%3F%26%40x.example?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=id.example%3A8443',
    )
  })
})
