import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { TrustedIssuerDocument } from '../../../../../pdp/identity/issuer/tokens/external-issuers.ts'
import { CONTEXT, openWorld, postToken, type World } from '../../harness.ts'

const ISSUER = 'https://idp.example'
const AUDIENCE = 'https://invoices.example/'
let world: World
let key: CryptoKey
let jwks: { keys: object[] }
let document: TrustedIssuerDocument
let answer: (url: string) => Promise<Response>
beforeAll(async () => {
  const pair = await generateKeyPair('ES256')
  key = pair.privateKey
  jwks = { keys: [{ ...(await exportJWK(pair.publicKey)), kid: 'k', alg: 'ES256' }] }
  world = await openWorld({ fetch: (url) => answer(url) })
  document = {
    jwks,
    algorithms: ['ES256'],
    audience: AUDIENCE,
    claims: { organization: 'tenant' },
    subject_prefix: 'idp:',
    organizations: ['acme'],
  }
})
afterAll(() => world.close())
beforeEach(async () => {
  answer = async () => new Response(JSON.stringify(jwks))
  await world.identity.issuers.put(ISSUER, document, CONTEXT)
})

const token = (claims: object = {}, header: object = {}) =>
  new SignJWT({
    iss: ISSUER,
    sub: 'eve',
    aud: AUDIENCE,
    client_id: 'their-client',
    jti: crypto.randomUUID(),
    tenant: 'acme',
    scope: 'openid decisions:read directory:write',
    ...claims,
  })
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'k', ...header })
    .setIssuedAt()
    .setExpirationTime('5 min')
    .sign(key)
const introspect = async (jwt: Promise<string>) => world.identity.introspect(await jwt)

describe('a token of a trusted issuer', () => {
  test('is its subject, prefixed, in an allowed organization, without any of our service scopes', async () => {
    expect(await introspect(token({ acr: 'mfa', auth_time: 5 }))).toMatchObject({
      active: true,
      subject: { type: 'user', id: '~idp:eve' },
      organization: 'acme',
      clientId: '~idp:their-client',
      app: 'invoices',
      scopes: new Set(['openid']),
      grantId: null,
      acr: 'mfa',
      authTime: 5,
    })
  })

  test.each([
    [1_717_171_717.5, 1_717_171_717],
    [1_717_171_717_000, null],
    [-1, null],
    ['5', null],
  ])('of an auth_time of %j has one of %j, which an answer over gRPC can hold', async (given, authTime) => {
    expect(await introspect(token({ auth_time: given }))).toMatchObject({ active: true, authTime })
  })

  test('speaks for no organization that it was not allowed', async () => {
    expect(await introspect(token({ tenant: 'beta' }))).toMatchObject({ active: true, organization: null })
    expect(await introspect(token({ tenant: undefined }))).toMatchObject({ organization: null })
    await world.identity.issuers.put(ISSUER, { ...document, claims: {} }, CONTEXT)
    expect(await introspect(token({ tenant: 'beta' }))).toMatchObject({ organization: 'acme' })
    await world.identity.issuers.put(ISSUER, { ...document, claims: {}, organizations: ['acme', 'beta'] }, CONTEXT)
    expect(await introspect(token())).toMatchObject({ organization: null })
  })

  test.each([
    ['another audience', { aud: 'https://other.example/' }, {}],
    ['another type', {}, { typ: 'JWT' }],
    ['an unknown issuer', { iss: 'https://evil.example' }, {}],
    ['a subject that is no text', { sub: 5 }, {}],
    ['a subject that is longer than an id', { sub: 'a'.repeat(600) }, {}],
    ['an empty subject', { sub: '' }, {}],
    ['our own issuer', { iss: '' }, {}],
  ])('is inactive with %s', async (_, claims, header) => {
    const own = 'iss' in claims && claims.iss === '' ? { iss: world.issuer } : {}
    expect(await introspect(token({ ...claims, ...own }, header))).toEqual({ active: false })
  })

  test('holds groups of its own namespace as long as it lives, in the organizations of its issuer', async () => {
    const claims = { organization: 'tenant', groups: 'groups', roles: 'realm.roles' }
    await world.identity.issuers.put(ISSUER, { ...document, claims }, CONTEXT)
    expect(await introspect(token({ groups: ['eng'], realm: { roles: ['admin'] } }))).toMatchObject({
      active: true,
      memberships: { groups: ['~idp:group:eng', '~idp:role:admin'], organizations: ['acme'] },
    })
    expect(await introspect(token({ groups: 5 }))).toEqual({ active: false })
  })

  test('has no other audience than the one that its issuer is trusted with, or stands for', async () => {
    const aud = [AUDIENCE, 'https://other.example/']
    expect(await introspect(token({ aud }))).toMatchObject({ audiences: [AUDIENCE] })
    const mapped = { ...document, audience: 'account', resource: AUDIENCE }
    await world.identity.issuers.put(ISSUER, mapped, CONTEXT)
    expect(await introspect(token({ aud: ['account', 'https://other.example/'] }))).toMatchObject({
      audiences: [AUDIENCE],
      app: 'invoices',
    })
    expect(await introspect(token())).toEqual({ active: false })
  })

  test('is inactive by another algorithm than the registered ones, and once the issuer is removed', async () => {
    const known = token()
    expect((await introspect(known)).active).toBe(true)
    await world.identity.issuers.put(ISSUER, { ...document, algorithms: ['RS256'] }, CONTEXT)
    expect((await introspect(known)).active).toBe(false)
    await world.identity.issuers.remove(ISSUER, CONTEXT)
    expect((await introspect(known)).active).toBe(false)
  })

  test('is verified by keys that the issuer publishes', async () => {
    const { jwks: _, ...rest } = document
    await world.identity.issuers.put(ISSUER, { ...rest, jwks_uri: 'https://idp.example/jwks' }, CONTEXT)
    expect((await introspect(token())).active).toBe(true)
  })

  test('is not asked about where only our own tokens count', async () => {
    const asked: string[] = []
    const introspection = {
      endpoint: 'https://idp.example/introspect',
      client_id: 'us',
      client_secret: 'a-secret-for-the-idp',
    }
    const { jwks: _, algorithms: _algorithms, ...rest } = document
    await world.identity.issuers.put(ISSUER, { ...rest, introspection }, CONTEXT)
    answer = async (url) => {
      asked.push(url)
      return new Response(JSON.stringify({ active: false }))
    }
    const bearer = { headers: { authorization: 'Bearer opaque' } }
    expect((await fetch(`${world.issuer}/oauth/userinfo`, bearer)).status).toBe(401)
    expect(await world.identity.introspect('opaque')).toEqual({ active: false })
    expect(asked).toEqual([])
    expect(await world.identity.recognize('opaque')).toEqual({ active: false })
    expect(asked).toEqual(['https://idp.example/introspect'])
    const rows = await world.sql.query<{ text: string }>('select document::text as text from trusted_issuer')
    expect(rows.map(({ text }) => text).join()).not.toContain('a-secret-for-the-idp')
    expect(JSON.stringify(await world.identity.issuers.list())).not.toMatch(/secret/)
    const second = { ...rest, introspection, subject_prefix: 'second:' }
    await expect(world.identity.issuers.put('https://second.example', second, CONTEXT)).rejects.toMatchObject({
      code: 'conflict',
    })
    await world.identity.issuers.remove(ISSUER, CONTEXT)
  })

  test('buys no token of ours and no UserInfo', async () => {
    const form = {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      subject_token: await token(),
    }
    expect((await postToken(world, form, { id: 'gateway' })).body.error).toBe('invalid_request')
    const own = await token({ aud: [AUDIENCE, world.issuer] })
    const userinfo = await fetch(`${world.issuer}/oauth/userinfo`, { headers: { authorization: `Bearer ${own}` } })
    expect(userinfo.status).toBe(401)
  })
})
