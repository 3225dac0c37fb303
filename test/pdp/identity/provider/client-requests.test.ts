import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import * as oauth from 'openid-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createFlow } from '../flow.ts'
import { decode, openWorld, parseObject, postToken, REDIRECT, SECRET, type World } from '../harness.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world.close())

const token = (form: Record<string, string>, id: string) => postToken(world, form, { id })
async function post(path: string, form: Record<string, string>, id: string | null = 'flows') {
  const authorization = `Basic ${Buffer.from(`${id}:${SECRET}`).toString('base64')}`
  const response = await fetch(world.issuer + path, {
    method: 'POST',
    headers: id === null ? {} : { authorization },
    body: new URLSearchParams(form),
  })
  return { status: response.status, body: parseObject(await response.text()) }
}

describe('pushed authorization requests (RFC 9126)', () => {
  const request = {
    client_id: 'flows',
    response_type: 'code',
    redirect_uri: REDIRECT,
    scope: 'openid',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
  }

  test('are for one use by the client that pushed them', async () => {
    const { status, body } = await post('/oauth/par', request)
    expect([status, body.expires_in]).toEqual([201, 60])
    const url = (client: string) =>
      `${world.issuer}/oauth/authorize?${new URLSearchParams({ client_id: client, request_uri: String(body.request_uri) })}`
    const send = (client: string) => fetch(url(client), { redirect: 'manual', headers: { accept: 'text/html' } })
    expect((await send('tenant-flows')).status).toBe(400)
    expect((await send('flows')).headers.get('location')).toContain('/oauth/interaction/')
    const rows = await world.sql.query(
      "select 1 from oidc_record where kind = 'PushedAuthorizationRequest' and id = $1",
      [String(body.request_uri).split(':').at(-1)],
    )
    expect(rows).toEqual([])
  })

  test('are refused like the requests that they stand for', async () => {
    expect((await post('/oauth/par', { ...request, client_id: '' }, null)).status).toBe(401)
    expect((await post('/oauth/par', { ...request, scope: 'decisions:read' })).body.error).toBe('invalid_scope')
    expect((await post('/oauth/par', { ...request, code_challenge: '' })).status).toBe(400)
    expect((await post('/oauth/par', { ...request, redirect_uri: 'https://evil.example/' })).status).toBe(400)
  })
})

describe('a code that was asked for with dpop_jkt (RFC 9449 section 10)', () => {
  test('is redeemed with that key only', async () => {
    const flow = createFlow(world)
    const jkt = '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I'
    const code = (await flow.authorize({ dpop_jkt: jkt })).searchParams.get('code') ?? ''
    expect((await flow.redeem(code)).body.error).toBe('invalid_grant')
  })
})

describe('a client that authenticates by its key (private_key_jwt)', () => {
  const TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
  let keys: Awaited<ReturnType<typeof generateKeyPair>>
  const inSeconds = (seconds: number): number => Math.floor(Date.now() / 1_000) + seconds
  const sign = (claims: object = {}, header: object = {}) => {
    const common = { iss: 'keyed', sub: 'keyed', aud: world.issuer, jti: crypto.randomUUID(), exp: inSeconds(60) }
    return new SignJWT({ ...common, ...claims })
      .setProtectedHeader({ alg: 'ES256', kid: 'k1', ...header })
      .sign(keys.privateKey)
  }
  const mint = (assertion: string) =>
    postToken(world, { grant_type: 'client_credentials', client_assertion_type: TYPE, client_assertion: assertion })
  beforeAll(async () => {
    keys = await generateKeyPair('ES256', { extractable: true })
    const { kty = '', crv = '', x = '', y = '' } = await exportJWK(keys.publicKey)
    const metadata = {
      grant_types: ['client_credentials'],
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: { keys: [{ kty, crv, x, y, kid: 'k1', alg: 'ES256', use: 'sig' }] },
    }
    await world.putClient({ id: 'keyed', metadata })
  })

  test('gets tokens, as openid-client asks for them', async () => {
    const config = await oauth.discovery(
      new URL(world.issuer),
      'keyed',
      undefined,
      oauth.PrivateKeyJwt({ key: keys.privateKey, kid: 'k1' }),
      { execute: [oauth.allowInsecureRequests] },
    )
    const { access_token } = await oauth.clientCredentialsGrant(config)
    expect(decode(access_token).payload.sub).toBe('keyed')
  })

  test('uses each assertion once, even 20 times at once', async () => {
    const assertion = await sign()
    const answers = await Promise.all(Array.from({ length: 20 }, () => mint(assertion)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect((await mint(assertion)).status).toBe(401)
  })

  test.each([
    ['another audience', { aud: 'https://other.example' }],
    ['another issuer', { iss: 'flows' }],
    ['no jti', { jti: undefined }],
    ['another client', { iss: 'flows', sub: 'flows' }],
    ['no end', { exp: undefined }],
    ['an end that is a text', { exp: String(inSeconds(60)) }],
    ['a life of an hour', { exp: inSeconds(3_600) }],
    ['a life of ten years', { iat: inSeconds(0), exp: inSeconds(315_360_000) }],
    ['an issue in an hour', { iat: inSeconds(3_600), exp: inSeconds(300) }],
    ['an issue that is a text', { iat: 'now' }],
  ])('is refused with %s', async (_, claims) => {
    expect(await mint(await sign(claims))).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
  })

  // Only the issuer, and nobody beside it: who else is named could use it here.
  test.each([
    ['another server beside the issuer', (issuer: string) => [issuer, 'https://other.example']],
    ['the issuer twice', (issuer: string) => [issuer, issuer]],
    ['nobody', () => []],
    ['the token endpoint', (issuer: string) => `${issuer}/oauth/token`],
    ['the issuer and the token endpoint', (issuer: string) => [issuer, `${issuer}/oauth/token`]],
    ['the issuer with a slash', (issuer: string) => `${issuer}/`],
    ['the issuer within a list of lists', (issuer: string) => [[issuer]]],
  ])('is refused for %s', async (_, audience) => {
    for (const path of ['/oauth/token', '/oauth/par', '/oauth/introspect', '/oauth/revoke', '/oauth/bc-authorize']) {
      const form = { client_assertion_type: TYPE, client_assertion: await sign({ aud: audience(world.issuer) }) }
      const more = { grant_type: 'client_credentials', token: 'x', scope: 'openid', login_hint: 'eve@x.example' }
      expect([path, (await post(path, { ...form, ...more }, null)).body.error]).toEqual([path, 'invalid_client'])
    }
  })

  test('is taken from a clock that is a little ahead, and for some minutes', async () => {
    expect((await mint(await sign({ aud: [world.issuer] }))).status).toBe(200)
    const jti = crypto.randomUUID()
    expect((await mint(await sign({ jti, iat: inSeconds(9), exp: inSeconds(590) }))).status).toBe(200)
    const rows = await world.sql.query<{ seconds: number }>(
      "select extract(epoch from max(expires_at) - now())::int as seconds from oidc_record where kind = 'ReplayDetection'",
    )
    expect(rows[0]?.seconds).toBeGreaterThan(590)
    expect(rows[0]?.seconds).toBeLessThan(700)
  })

  test('is refused with a secret, without a signature, or by another key', async () => {
    expect((await token({ grant_type: 'client_credentials' }, 'keyed')).status).toBe(401)
    const none = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${(await sign()).split('.')[1]}.`
    expect((await mint(none)).status).toBe(401)
    const own = keys
    keys = await generateKeyPair('ES256')
    const foreign = await sign()
    keys = own
    expect((await mint(foreign)).status).toBe(401)
  })
})
