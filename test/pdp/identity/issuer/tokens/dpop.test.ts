import { createHash } from 'node:crypto'
import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createFlows } from '../../flows.ts'
import { decode, openWorld, postToken, type World } from '../../harness.ts'

let world: World
let key: CryptoKey
let jwk: JWK
beforeAll(async () => {
  world = await openWorld()
  const pair = await generateKeyPair('ES256')
  key = pair.privateKey
  jwk = await exportJWK(pair.publicKey)
})
afterAll(() => world.close())

let proofs = 0
const proof = (
  claims: { readonly [claim: string]: unknown } = {},
  header: { readonly [member: string]: unknown } = {},
) =>
  new SignJWT({
    htm: 'POST',
    htu: `${world.issuer}/oauth/token`,
    jti: `proof-${++proofs}`,
    iat: Math.floor(Date.now() / 1_000),
    ...claims,
  })
    .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk, ...header })
    .sign(key)
const mint = (dpop: string | null, id = 'robot') =>
  postToken(world, { grant_type: 'client_credentials' }, { id, ...(dpop === null ? {} : { headers: { dpop } }) })

describe('a token request with a DPoP proof', () => {
  test('gives a token that is bound to the key', async () => {
    const { body } = await mint(await proof())
    expect(body.token_type).toBe('DPoP')
    const jkt = await calculateJwkThumbprint(jwk)
    expect(decode(String(body.access_token)).payload.cnf).toEqual({ jkt })
    expect(await world.identity.introspect(String(body.access_token))).toMatchObject({ jkt })
  })

  test('is refused when the proof was used before, also by two at the same time', async () => {
    const once = await proof()
    expect((await mint(once)).status).toBe(200)
    expect(await mint(once)).toMatchObject({ status: 400, body: { error: 'invalid_dpop_proof' } })
    const raced = await proof()
    const answers = await Promise.all(Array.from({ length: 20 }, () => mint(raced)))
    expect(answers.filter((a) => a.status === 200)).toHaveLength(1)
  })

  test('is refused when a proof from the future comes back after oidc-provider has forgotten it', async () => {
    const ahead = await proof({ iat: Math.floor(Date.now() / 1_000) + 250 })
    expect((await mint(ahead)).status).toBe(200)
    const { now } = Date
    const later = vi.spyOn(Date, 'now').mockImplementation(() => now() + 320_000)
    await world.sql.query(
      "update oidc_record set expires_at = expires_at - interval '320 s' where kind = 'ReplayDetection'",
    )
    const answer = await mint(ahead)
    later.mockRestore()
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_dpop_proof' } })
  })

  test.each([
    ['another method', { htm: 'GET' }, {}],
    ['another address', { htu: 'https://evil.example/oauth/token' }, {}],
    ['no jti', { jti: undefined }, {}],
    ['another type', {}, { typ: 'JWT' }],
  ])('is refused with %s in the proof', async (_, claims, header) => {
    expect(await mint(await proof(claims, header))).toMatchObject({
      status: 400,
      body: { error: 'invalid_dpop_proof' },
    })
  })

  test.each([
    ['an exponent of 3,064 bits', { kty: 'RSA', n: 'w'.repeat(342), e: Buffer.alloc(383, 0xff).toString('base64url') }],
    ['a modulus of 8,192 bits', { kty: 'RSA', n: 'w'.repeat(1_366), e: 'AQAB' }],
    ['a curve of another algorithm', { kty: 'EC', crv: 'P-521', x: 'AA', y: 'AA' }],
  ])('is refused before its signature is looked at when its key has %s', async (_, costly) => {
    const header = { alg: costly.kty === 'RSA' ? 'RS256' : 'ES256', typ: 'dpop+jwt', jwk: costly }
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    expect(await mint(`${part(header)}.${part({ htm: 'POST' })}.AAAA`)).toMatchObject({
      status: 400,
      body: {
        error: 'invalid_dpop_proof',
        error_description: 'header jwk does not have the type and size that header alg needs',
      },
    })
  })

  test('that is old is sent a nonce, with which it succeeds', async () => {
    const old = { iat: Math.floor(Date.now() / 1_000) - 900 }
    const answer = await mint(await proof(old))
    expect(answer).toMatchObject({ status: 400, body: { error: 'use_dpop_nonce' } })
    const nonce = answer.headers.get('dpop-nonce')
    expect((await mint(await proof({ ...old, nonce }))).status).toBe(200)
    expect((await mint(await proof({ nonce: 'guessed' }))).body.error).toBe('use_dpop_nonce')
  })
})

describe('the form of a proof', () => {
  const forge = (header: object, payload: object, signature = 'AAAA') =>
    [JSON.stringify(header), JSON.stringify(payload)].map((p) => Buffer.from(p).toString('base64url')).join('.') +
    `.${signature}`
  const body = () => ({
    htm: 'POST',
    htu: `${world.issuer}/oauth/token`,
    jti: crypto.randomUUID(),
    iat: Math.floor(Date.now() / 1_000),
  })

  test.each([
    ['no signature', async () => forge({ typ: 'dpop+jwt', alg: 'none', jwk }, body(), '')],
    ['a symmetric algorithm', async () => forge({ typ: 'dpop+jwt', alg: 'HS256', jwk }, body())],
    ['a symmetric key', async () => forge({ typ: 'dpop+jwt', alg: 'ES256', jwk: { kty: 'oct', k: 'AAAA' } }, body())],
    ['a private key', async () => proof({}, { jwk: { ...jwk, d: 'AAAA' } })],
    ['another signature', async () => `${(await proof()).slice(0, -8)}AAAAAAAA`],
    ['no key', () => proof({}, { jwk: undefined })],
    ['a time that is no number', () => proof({ iat: '1' })],
    ['a nonce that is no text', () => proof({ nonce: 1 })],
    ['two proofs', async () => `${await proof()}, ${await proof()}`],
    ['something else', async () => 'x'],
  ])('is refused with %s', async (_, make) => {
    expect(await mint(await make())).toMatchObject({ status: 400, body: { error: 'invalid_dpop_proof' } })
  })

  test.each([
    ['a query and a fragment', (url: string) => `${url}?a=b#c`],
    ['a scheme in capitals', (url: string) => url.replace('http', 'HTTP')],
  ])('may have %s in its address', async (_, change) => {
    expect((await mint(await proof({ htu: change(`${world.issuer}/oauth/token`) }))).status).toBe(200)
  })

  test('may have an id of any length, which is stored as a digest', async () => {
    const jti = 'x'.repeat(3_000)
    expect((await mint(await proof({ jti }))).status).toBe(200)
    expect((await mint(await proof({ jti }))).status).toBe(400)
    expect(await world.sql.query('select 1 from oidc_record where length(id) > 128')).toEqual([])
  })
})

test('a proof is good for one call of UserInfo, even when 20 try at the same time, and for that token, method and address', async () => {
  const flows = createFlows(world)
  const { tokens } = await flows.code({ person: 'eve' })
  const pair = await generateKeyPair('ES256')
  const own = await exportJWK(pair.publicKey)
  const { access_token: token } = tokens
  const { body } = await postToken(
    world,
    {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    },
    {
      id: 'gateway',
      headers: {
        dpop: await new SignJWT({ htm: 'POST', htu: `${world.issuer}/oauth/token`, jti: crypto.randomUUID() })
          .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk: own })
          .setIssuedAt()
          .sign(pair.privateKey),
      },
    },
  )
  const bound = String(body.access_token)
  const ath = createHash('sha256').update(bound).digest('base64url')
  const make = (claims: object = {}) =>
    new SignJWT({ htm: 'GET', htu: `${world.issuer}/oauth/userinfo`, jti: crypto.randomUUID(), ath, ...claims })
      .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk: own })
      .setIssuedAt()
      .sign(pair.privateKey)
  const ask = async (dpop: string) =>
    (await fetch(`${world.issuer}/oauth/userinfo`, { headers: { authorization: `DPoP ${bound}`, dpop } })).status
  const once = await make()
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask(once)))
  expect(answers.filter((status) => status === 200)).toHaveLength(1)
  for (const claims of [{ ath: undefined }, { ath: 'x' }, { htm: 'POST' }, { htu: `${world.issuer}/oauth/token` }]) {
    expect(await ask(await make(claims))).toBe(401)
  }
  expect(await ask(await proof({ htm: 'GET', htu: `${world.issuer}/oauth/userinfo`, ath }))).toBe(401)
})

test('a client that must use DPoP gets nothing without it', async () => {
  expect(await mint(null, 'dpop-robot')).toMatchObject({ status: 400, body: { error: 'invalid_dpop_proof' } })
  expect((await mint(await proof(), 'dpop-robot')).body.token_type).toBe('DPoP')
})
