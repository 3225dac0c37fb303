import { createRemoteJWKSet, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { clientToken } from '../../../support/sign-in.ts'
import { API, CONTEXT, decode, openWorld, postToken, SECRET, type World } from '../harness.ts'

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world.close())

const mint = (id: string, form: { readonly [name: string]: string } = {}) =>
  postToken(world, { grant_type: 'client_credentials', ...form }, { id })
const claimsOf = async (id: string, form: { readonly [name: string]: string } = {}) => {
  const { status, body } = await mint(id, form)
  expect(status, JSON.stringify(body)).toBe(200)
  return decode(String(body.access_token)).payload
}

describe('client_credentials', () => {
  test('gives openid-client an RS256 at+jwt that verifies against the published keys', async () => {
    const tokens = await clientToken({
      issuer: world.issuer,
      clientId: 'robot',
      clientSecret: SECRET,
      scope: 'decisions:read',
    })
    expect(tokens.token_type).toBe('bearer')
    expect(tokens.expires_in).toBe(900)
    const keys = createRemoteJWKSet(new URL(`${world.issuer}/oauth/jwks`))
    const { payload, protectedHeader } = await jwtVerify(tokens.access_token, keys, {
      typ: 'at+jwt',
      algorithms: ['RS256'],
      issuer: world.issuer,
      audience: world.issuer,
    })
    expect(protectedHeader.typ).toBe('at+jwt')
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(900)
  })

  test('carries exactly the claims of the claims table for a service', async () => {
    const payload = await claimsOf('robot', { scope: 'decisions:read' })
    expect(payload).toEqual({
      iss: world.issuer,
      sub: 'robot',
      aud: world.issuer,
      client_id: 'robot',
      scope: 'decisions:read',
      jti: expect.stringMatching(/^[\w-]{43}$/),
      iat: expect.any(Number),
      exp: expect.any(Number),
      org: 'acme',
      org_name: 'Acme & Co',
      roles: ['auditor'],
      permissions: ['logs:read'],
      ent: { 'feature.sso': { enabled: true } },
      ent_ver: 1,
    })
  })

  test('has no scope claim when none was asked for', async () => {
    const { body } = await mint('robot')
    expect(body).not.toHaveProperty('scope')
    expect(decode(String(body.access_token)).payload).not.toHaveProperty('scope')
  })

  test('is never cached and has no refresh token', async () => {
    const { headers, body } = await mint('robot')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(body).not.toHaveProperty('refresh_token')
  })

  test('says nothing about an organization for a client of the environment', async () => {
    const payload = await claimsOf('free-robot')
    for (const claim of ['org', 'org_name', 'org_role', 'roles', 'permissions', 'ent', 'ent_ver']) {
      expect(payload).not.toHaveProperty(claim)
    }
  })

  test.each([
    ['robot', 'acme', 'acme'],
    ['robot', 'acme-eu', 'acme-eu'],
    ['free-robot', 'beta', 'beta'],
  ])('lets %s act in %s', async (client, organization, org) => {
    expect(await claimsOf(client, { organization })).toMatchObject({ org })
  })

  test('rolls roles down to an organization below the one that holds the grant', async () => {
    expect(await claimsOf('robot', { organization: 'acme-eu' })).toMatchObject({ roles: ['auditor'] })
  })

  test.each([
    ['robot', 'beta'],
    ['robot', 'nowhere'],
    ['robot', '#environment'],
    ['robot', '*'],
    ['robot', '\0'],
    ['free-robot', 'nowhere'],
    ['free-robot', ''],
    ['free-robot', '#tokens'],
  ])('refuses %s the organization %j', async (client, organization) => {
    const { status, body } = await mint(client, { organization })
    // An empty parameter counts as absent (RFC 6749 section 3.2).
    if (organization === '') expect(decode(String(body.access_token)).payload).not.toHaveProperty('org')
    else expect([status, body.error]).toEqual([400, 'invalid_request'])
  })

  test('takes an audience that an app manifest declares, and the roles of that app', async () => {
    const payload = await claimsOf('robot', { resource: API, scope: 'orders:read' })
    expect(payload).toMatchObject({ aud: API, scope: 'orders:read' })
  })

  test('knows a resource from the moment that a manifest declares it until none does', async () => {
    const resource = 'https://new.example/'
    const declare = (audiences: readonly string[]) =>
      world.store.write(
        ENVIRONMENT,
        [{ kind: 'manifest', manifest: { app: 'new', audiences, permissions: {}, roles: {}, model: null } }],
        { context: CONTEXT },
      )
    expect((await mint('robot', { resource })).body.error).toBe('invalid_target')
    await declare([resource])
    const { body } = await mint('robot', { resource })
    expect(await world.identity.introspect(String(body.access_token))).toMatchObject({ app: 'new' })
    await declare([])
    expect((await mint('robot', { resource })).body.error).toBe('invalid_target')
    expect(await world.identity.introspect(String(body.access_token))).toMatchObject({ app: 'invoices' })
  })

  test('keeps service scopes out of tokens for other resources', async () => {
    const payload = await claimsOf('robot', { resource: API, scope: 'decisions:read orders:read' })
    expect(payload.scope).toBe('orders:read')
  })

  test.each([
    ['https://unknown.example/'],
    ['not a uri'],
    ['/relative'],
    [`${API}#fragment`],
    [API.slice(0, -1)],
    [API.toUpperCase()],
    ['__proto__'],
  ])('refuses the unknown resource %j', async (resource) => {
    expect(await mint('robot', { resource })).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
  })

  test('refuses two resources for one token', async () => {
    const form = new URLSearchParams([
      ['grant_type', 'client_credentials'],
      ['resource', API],
      ['resource', world.issuer],
    ])
    expect(await postToken(world, form, { id: 'robot' })).toMatchObject({
      status: 400,
      body: { error: 'invalid_target' },
    })
  })

  test.each([
    ['robot', 'clients:write'],
    ['robot', 'decisions:read clients:write'],
    ['robot', 'openid'],
    ['robot', 'orders:write'],
    ['no-scope', 'decisions:read'],
    ['robot', 'caf\u00e9'],
  ])('refuses %s the scope %j', async (client, scope) => {
    expect(await mint(client, { scope })).toMatchObject({ status: 400, body: { error: 'invalid_scope' } })
  })

  test('is not for a client that is registered for another grant', async () => {
    expect(await mint('web')).toMatchObject({ status: 400, body: { error: 'unauthorized_client' } })
  })

  test('is not for a client without a secret', async () => {
    const answer = await postToken(world, { grant_type: 'client_credentials', client_id: 'public-robot' })
    expect(answer).toMatchObject({ status: 400, body: { error: 'unauthorized_client' } })
  })

  test('may not use a grant that it is not registered for', async () => {
    const { status, body } = await postToken(world, { grant_type: JWT_BEARER, assertion: 'a.b.c' }, { id: 'robot' })
    expect([status, body.error]).toEqual([400, 'unauthorized_client'])
  })

  test.each(['password', 'implicit', 'urn:ietf:params:oauth:grant-type:saml2-bearer', ''])(
    'does not know the grant type %j',
    async (grant_type) => {
      const { status, body } = await postToken(world, { grant_type }, { id: 'robot' })
      expect([status, body.error]).toEqual([400, grant_type === '' ? 'invalid_request' : 'unsupported_grant_type'])
    },
  )
})

describe('client authentication', () => {
  test.each([
    ['a wrong secret', 'robot', 'wrong'],
    ['an unknown client', 'nobody', SECRET],
    ['an id that is not one', '#tokens', SECRET],
  ])('refuses %s', async (_, id, secret) => {
    const answer = await postToken(world, { grant_type: 'client_credentials' }, { id, secret })
    expect(answer).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
    expect(answer.headers.get('www-authenticate')).toMatch(/^Basic /)
    expect(answer.body.error_description).toBe('client authentication failed')
  })

  test('does not take the stored hash for the secret', async () => {
    const stored = (await world.directory.client('robot'))?.secretHash ?? ''
    const answer = await postToken(
      world,
      { grant_type: 'client_credentials' },
      { id: 'robot', secret: encodeURIComponent(stored) },
    )
    expect(answer).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
  })

  test('takes the secret from the body as well, but not from both places', async () => {
    const form = { grant_type: 'client_credentials', client_id: 'robot', client_secret: SECRET }
    expect(await postToken(world, form)).toMatchObject({ status: 200 })
    expect(await postToken(world, form, { id: 'robot' })).toMatchObject({
      status: 400,
      body: { error: 'invalid_request' },
    })
  })

  test('demands some authentication', async () => {
    const answer = await postToken(world, { grant_type: 'client_credentials' })
    expect(answer.body).toMatchObject({ error: 'invalid_client' })
  })

  test('refuses a body that is not a form', async () => {
    const response = await fetch(`${world.issuer}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"grant_type":"client_credentials"}',
    })
    expect([response.status, await response.json()]).toMatchObject([400, { error: 'invalid_request' }])
  })

  test('refuses a repeated parameter', async () => {
    const form = new URLSearchParams([
      ['grant_type', 'client_credentials'],
      ['organization', 'acme'],
      ['organization', 'beta'],
    ])
    expect(await postToken(world, form, { id: 'free-robot' })).toMatchObject({
      status: 400,
      body: { error: 'invalid_request' },
    })
  })

  test('answers JSON even to a caller that prefers HTML, without a word about the inside', async () => {
    const answer = await postToken(
      world,
      { grant_type: 'client_credentials' },
      { id: 'robot', secret: 'x', headers: { accept: 'text/html' } },
    )
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
    expect(JSON.stringify(answer.body)).not.toMatch(/at |\.ts|\.js|node_modules/)
  })

  test('sees a changed registration on the very next request', async () => {
    const metadata = { grant_types: ['client_credentials'], scope: 'decisions:read' }
    await world.putClient({
      id: 'changing',
      metadata,
      secretHash: (await world.directory.client('robot'))?.secretHash ?? null,
    })
    expect((await mint('changing', { scope: 'decisions:read' })).status).toBe(200)
    await world.putClient({ id: 'changing', metadata: { ...metadata, scope: 'decisions:ask' } })
    expect((await mint('changing', { scope: 'decisions:read' })).body.error).toBe('invalid_scope')
    await world.directory.deleteClient('changing', { actor: 'test', requestId: '' })
    expect(await mint('changing')).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
  })
})
