import { exportJWK, SignJWT } from 'jose'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { AlgorithmName } from '../../../../pdp/shared/token/algorithms.ts'
import { TokenError, type TokenErrorCode } from '../../../../pdp/shared/token/errors.ts'
import { createKeySource, type KeySource, localKeys } from '../../../../pdp/shared/token/keys.ts'
import { createTokenVerifier } from '../../../../pdp/shared/token/verify.ts'
import { type Claims, createIssuer, ecKeys, type Issuer, rsaKeys } from '../../../support/peers/issuer.ts'

const ISSUER = 'https://as.test'
const AUDIENCE = 'https://app.test'
let now = Date.parse('2026-01-01T00:00:00Z')
const clock = (): number => now
const seconds = (): number => Math.floor(now / 1_000)

let issuer: Issuer
let other: Issuer
beforeAll(async () => {
  issuer = await createIssuer({ issuer: ISSUER, audience: AUDIENCE, clock })
  other = await createIssuer({ issuer: 'https://as2.test', audience: AUDIENCE, clock })
})
const verifier = (options: { audience?: string | null; keys?: KeySource } = {}) =>
  createTokenVerifier({
    issuers: [
      {
        issuer: ISSUER,
        keys: options.keys ?? localKeys(() => issuer.jwks.keys, clock),
        algorithms: ['RS256', 'ES256'],
      },
      { issuer: other.issuer, keys: localKeys(() => other.jwks.keys, clock), algorithms: ['RS256'] },
    ],
    audience: options.audience === undefined ? AUDIENCE : options.audience,
    clock,
  })

async function refused(code: TokenErrorCode, token: string, using = verifier()): Promise<void> {
  // The second answer shows that nothing of the first was remembered.
  const outcomes = [using.verify(token), using.verify(token)].map((verifying) => {
    expect(verifying).toBeInstanceOf(Promise)
    return Promise.resolve(verifying).then(
      () => null,
      (err: unknown) => err,
    )
  })
  for (const error of await Promise.all(outcomes)) {
    expect(error).toBeInstanceOf(TokenError)
    expect(error).toMatchObject({ code })
  }
}

test('gives the claims of a good token, frozen', async () => {
  const claims = await verifier().verify(await issuer.token({ cnf: { jkt: 'a'.repeat(43) }, extra: { deep: [1] } }))
  expect(claims).toMatchObject({
    issuer: ISSUER,
    subject: 'alice',
    clientId: 'c1',
    organization: 'acme',
    audiences: [AUDIENCE],
    jkt: 'a'.repeat(43),
    expiresAtMs: now + 300_000,
  })
  expect([...claims.scopes]).toEqual(['invoices:read'])
  expect(Object.isFrozen(claims) && Object.isFrozen(claims.all)).toBe(true)
  expect(claims.all.toString).toBeUndefined()
})

test('accepts what another implementation signed', async () => {
  const claims = {
    iss: ISSUER,
    aud: [AUDIENCE, 'x'],
    sub: 'c1',
    client_id: 'c1',
    jti: 'x',
    iat: seconds(),
    exp: seconds() + 60,
  }
  const token = await new SignJWT(claims)
    .setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', kid: 'k1' })
    .sign(issuer.keys.privateKey)
  await expect(verifier().verify(token)).resolves.toMatchObject({ subject: 'c1', organization: null })
})

test('a second spelling of a signature is malformed, since it would have another digest than the token', async () => {
  const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const token = await issuer.token()
  // The last character of 2,048 bits has four that say nothing.
  const other = `${token.slice(0, -1)}${ALPHABET[ALPHABET.indexOf(token.at(-1) ?? '') + 1]}`
  const bytesOf = (text: string) => Buffer.from(text.split('.')[2] ?? '', 'base64url')
  expect(bytesOf(other)).toEqual(bytesOf(token))
  await refused('token_invalid', other)
})

describe('a token is invalid', () => {
  const cases: { readonly [why: string]: readonly [Claims, Claims?] } = {
    'with another typ': [{}, { typ: 'JWT' }],
    'without typ': [{}, { typ: undefined }],
    'that is a logout token': [{}, { typ: 'logout+jwt' }],
    'with an unknown crit': [{}, { crit: ['x'], x: 1 }],
    'with an empty crit': [{}, { crit: [] }],
    'with b64': [{}, { b64: true }],
    'with another kid': [{}, { kid: 'k2' }],
    'with a kid from the prototype': [{}, { kid: '__proto__' }],
    'with a kid that is a number': [{}, { kid: 1 }],
    'without iss': [{ iss: undefined }],
    'of an unknown issuer': [{ iss: 'http://169.254.169.254' }],
    'of an issuer with one more slash': [{ iss: `${ISSUER}/` }],
    'of another issuer by this one’s key': [{ iss: 'https://as2.test' }],
    'without aud': [{ aud: undefined }],
    'for another audience': [{ aud: 'https://other.test' }],
    'for an audience that starts like ours': [{ aud: `${AUDIENCE}.evil` }],
    'for no audience': [{ aud: [] }],
    'with aud as an object': [{ aud: { 0: AUDIENCE } }],
    'with a number among its audiences': [{ aud: [AUDIENCE, 1] }],
    'without sub': [{ sub: undefined }],
    'with an empty sub': [{ sub: '' }],
    'with the wildcard as sub': [{ sub: '*' }],
    'with a userset as sub': [{ sub: 'root#member' }],
    'with a line break in sub': [{ sub: 'a\r\nX-Auth-Scope: admin' }],
    'with sub over 256 characters': [{ sub: 'a'.repeat(257) }],
    'without client_id': [{ client_id: undefined }],
    'without jti': [{ jti: undefined }],
    'without iat': [{ iat: undefined }],
    'without exp': [{ exp: undefined }],
    'with exp as text': [{ exp: '9999999999' }],
    'with a negative exp': [{ exp: -1 }],
    'with exp beyond time': [{ exp: 1e30 }],
    'with org as a list': [{ org: ['acme'] }],
    'with org null': [{ org: null }],
    'with scope as a list': [{ scope: ['a'] }],
    'with a line break in scope': [{ scope: 'a\nb' }],
    'with cnf null': [{ cnf: null }],
    'with cnf as a list': [{ cnf: [] }],
    'with an empty cnf': [{ cnf: {} }],
    'with a confirmation that we do not know': [{ cnf: { 'x5t#S256': 'a'.repeat(43) } }],
    'with one confirmation that we know and one that we do not': [{ cnf: { jkt: 'a'.repeat(43), x5u: 'b' } }],
    'with a jkt of another length': [{ cnf: { jkt: 'abc' } }],
  }
  test.each(Object.entries(cases))('%s', async (_why, [claims, header]) => {
    await refused('token_invalid', await issuer.token(claims, header))
  })

  test.each([
    ['iat too far ahead', () => ({ iat: seconds() + 61 })],
    ['nbf too far ahead', () => ({ nbf: seconds() + 61 })],
    ['nbf that is no time', () => ({ nbf: 'soon' })],
  ])('with %s', async (_why, claims) => {
    await refused('token_invalid', await issuer.token(claims()))
  })

  test('with alg none, a symmetric alg or one that is not listed', async () => {
    const [, payload = ''] = (await issuer.token()).split('.')
    for (const alg of ['none', 'nOnE', 'HS256', 'XX999', 'RS512', 'rs256']) {
      const header = Buffer.from(JSON.stringify({ alg, typ: 'at+jwt', kid: 'k1' })).toString('base64url')
      await refused('token_invalid', `${header}.${payload}.AAAA`)
      await refused('token_invalid', `${header}.${payload}.`)
    }
  })

  test('whose key another algorithm was meant for', async () => {
    const keys = ecKeys()
    const token = await new SignJWT({ iss: ISSUER })
      .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'k1' })
      .sign(keys.privateKey)
    await refused('token_invalid', token)
  })

  test('by an algorithm that the issuer does not use, although its key set has a key for it', async () => {
    const keys = ecKeys()
    const jwk = { ...(await exportJWK(keys.publicKey)), kid: 'ec', use: 'sig' }
    const claims = {
      iss: ISSUER,
      aud: AUDIENCE,
      sub: 'c1',
      client_id: 'c1',
      jti: 'x',
      iat: seconds(),
      exp: seconds() + 60,
    }
    const token = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'ec' })
      .sign(keys.privateKey)
    const of = (algorithms: readonly AlgorithmName[]) =>
      createTokenVerifier({
        issuers: [{ issuer: ISSUER, keys: localKeys(() => [...issuer.jwks.keys, jwk], clock), algorithms }],
        audience: AUDIENCE,
        clock,
      })
    await expect(of(['RS256', 'ES256']).verify(token)).resolves.toMatchObject({ subject: 'c1' })
    await refused('token_invalid', token, of(['RS256']))
  })

  test('by any other key, whatever its header offers', async () => {
    const attacker = rsaKeys()
    const header = {
      alg: 'RS256',
      typ: 'at+jwt',
      kid: 'k1',
      jku: 'http://evil.test',
      x5u: 'http://evil.test',
      x5c: ['x'],
    }
    const claims = {
      iss: ISSUER,
      aud: AUDIENCE,
      sub: 'alice',
      client_id: 'c1',
      jti: 'x',
      iat: seconds(),
      exp: seconds() + 60,
    }
    await refused('token_invalid', await new SignJWT(claims).setProtectedHeader(header).sign(attacker.privateKey))
  })

  test('when its text is not the one canonical text of its bytes', async () => {
    const token = await issuer.token()
    const [header = '', payload = '', signature = ''] = token.split('.')
    const mutants = [
      '',
      '.',
      'a.b',
      `${token}.`,
      `${token}.x`,
      `${token}=`,
      `${header}.${payload}=.${signature}`,
      `${header}.${payload}+.${signature}`,
      ` ${token}`,
      `${header}.${payload}.${signature.slice(0, -1)}${signature.endsWith('A') ? 'B' : 'A'}`,
      `${header}.${payload}.`,
      `${header}..${signature}`,
      `${Buffer.from('[]').toString('base64url')}.${payload}.${signature}`,
      `${header}.${Buffer.from('null').toString('base64url')}.${signature}`,
      `${header}.${Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url')}.${signature}`,
      'x'.repeat(20_000),
    ]
    for (const mutant of mutants) await refused('token_invalid', mutant)
  })
})

describe('time', () => {
  beforeEach(() => {
    now = Date.parse('2026-01-01T00:00:00Z')
  })
  test.each([
    [300_000 + 4_999, true],
    [300_000 + 5_000, false],
  ])('a token is good %i ms after its issue: %s', async (ageMs, good) => {
    const lasting = { refreshAfterMs: 3_600_000, ageMaxMs: 3_600_000, cooldownMs: 0 }
    const using = verifier({ keys: createKeySource({ load: () => issuer.jwks.keys, clock, ...lasting }) })
    const token = await issuer.token()
    await using.verify(token)
    now += ageMs
    if (good) expect(using.verify(token)).toMatchObject({ subject: 'alice' })
    else await refused('token_expired', token, using)
  })

  test('a fractional exp counts', async () => {
    await expect(verifier().verify(await issuer.token({ exp: seconds() + 0.5 }))).resolves.toBeDefined()
  })

  test('iat may lie ahead as far as the leeway', async () => {
    await expect(verifier().verify(await issuer.token({ iat: seconds() + 60 }))).resolves.toBeDefined()
  })
})

test('typ may be written in any case and with application/', async () => {
  for (const typ of ['AT+JWT', 'application/at+jwt', 'Application/AT+jwt'])
    await expect(verifier().verify(await issuer.token({}, { typ }))).resolves.toBeDefined()
})

test('any audience is accepted only when that is asked for', async () => {
  const token = await issuer.token({ aud: 'https://other.test' })
  await expect(verifier({ audience: null }).verify(token)).resolves.toBeDefined()
})

test('without kid the only suitable key is used, and of two none', async () => {
  const token = await issuer.token({}, { kid: undefined })
  await expect(verifier().verify(token)).resolves.toBeDefined()
  const two = localKeys(() => [...issuer.jwks.keys, ...other.jwks.keys], clock)
  await refused('token_invalid', token, verifier({ keys: two }))
})

describe('the cache of verified tokens', () => {
  test('forgets a token when its key leaves the set', async () => {
    let keys: readonly unknown[] = issuer.jwks.keys
    const source = createKeySource({
      load: () => keys,
      clock,
      refreshAfterMs: 60_000,
      ageMaxMs: 600_000,
      cooldownMs: 0,
    })
    const using = verifier({ keys: source })
    const token = await issuer.token()
    await using.verify(token)
    await source.refresh()
    expect(using.verify(token)).toMatchObject({ subject: 'alice' })
    keys = []
    await source.refresh()
    await refused('token_invalid', token, using)
  })

  test('holds no more than its bound', async () => {
    const keys = localKeys(() => issuer.jwks.keys, clock)
    const using = createTokenVerifier({
      issuers: [{ issuer: ISSUER, keys, algorithms: ['RS256'] }],
      audience: AUDIENCE,
      clock,
      cacheEntriesMax: 4,
    })
    const tokens = await Promise.all(Array.from({ length: 12 }, () => issuer.token()))
    for (const token of tokens) await using.verify(token)
    const answers = tokens.map((token) => using.verify(token))
    expect(answers.filter((answer) => !(answer instanceof Promise)).length).toBeLessThanOrEqual(4)
    await Promise.all(answers)
  })
})
