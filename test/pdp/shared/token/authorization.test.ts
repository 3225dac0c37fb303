import { describe, expect, test } from 'vitest'
import { parseAuthorization } from '../../../../pdp/shared/token/authorization.ts'
import { challenge } from '../../../../pdp/shared/token/challenge.ts'

describe('the Authorization field', () => {
  test.each([
    [['Bearer abc'], { scheme: 'bearer', token: 'abc' }],
    [['bEARER   a-._~+/b=='], { scheme: 'bearer', token: 'a-._~+/b==' }],
    [['DPoP abc'], { scheme: 'dpop', token: 'abc' }],
  ])('%j is understood', (fields, credentials) => {
    expect(parseAuthorization(fields)).toEqual(credentials)
  })

  test.each([
    [[], 'token_missing'],
    [['Basic YTpi'], 'token_missing'],
    [[''], 'token_missing'],
    [['Bearerabc'], 'token_missing'],
    [['Bearer'], 'authorization_invalid'],
    [['Bearer '], 'authorization_invalid'],
    [['Bearer a', 'Bearer a'], 'authorization_invalid'],
    [['Basic YTpi', 'Bearer a'], 'authorization_invalid'],
    [['Bearer a b'], 'token_invalid'],
    [['Bearer a, Bearer b'], 'token_invalid'],
    [['Bearer a=b'], 'token_invalid'],
    [['Bearer "a"'], 'token_invalid'],
    [['Bearer a\tb'], 'token_invalid'],
  ])('%j is %s', (fields, code) => {
    expect(() => parseAuthorization(fields)).toThrow(expect.objectContaining({ code }))
  })
})

describe('a challenge', () => {
  test('is its scheme with what is known', () => {
    expect(challenge('Bearer', {})).toBe('Bearer')
    expect(challenge('DPoP', { error: 'invalid_token', algs: 'ES256' })).toBe(
      'DPoP error="invalid_token", algs="ES256"',
    )
  })

  test('cannot be broken out of', () => {
    const value = challenge('Bearer', { scope: 'a" , error="x\\"\r\nSet-Cookie: a=b\u2028é' })
    expect(value).toBe('Bearer scope="a? , error=?x????Set-Cookie: a=b??"')
  })
})
