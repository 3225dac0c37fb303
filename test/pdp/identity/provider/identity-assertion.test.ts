/** ID-JAG: clients get tokens for people whom another provider vouches for. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { hashGeneratedSecret } from '../../../../pdp/identity/people/passwords/password-hash.ts'
import { API, CONTEXT, decode, openWorld, postToken, SECRET, type World } from '../harness.ts'
import { CLIENT, type Forged, forgeProvider } from '../people/upstream-providers/forged-provider.ts'

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
let world: World
let forged: Forged
const register = (more: object = {}) =>
  world.identity.identityProviders.put(
    'forged',
    {
      ...{ issuer: forged.issuer, client_id: CLIENT, name: 'Forged', identity_assertions: true },
      ...{ trusted_acr: ['strong'], secret: 's'.repeat(20), ...more },
    },
    CONTEXT,
  )
beforeAll(async () => {
  ;[world, forged] = await Promise.all([openWorld(), forgeProvider()])
  const scope = 'openid email offline_access orders:read'
  const secretHash = hashGeneratedSecret(SECRET)
  const put = (id: string, more: object, client: object = {}) =>
    world.putClient({ id, ...client, metadata: { scope, grant_types: [JWT_BEARER], ...more }, secretHash })
  await put('agent', {})
  await put('other-agent', {})
  await put('careful', { require_second_factor: true })
  await put('tenant-agent', {}, { organization: 'acme' })
  const link = `insert into foreign_identity (issuer, subject, user_id) values ($1, $2, $3)`
  for (const user of ['ann', 'bob', 'eve', 'cy']) await world.sql.query(link, [forged.issuer, `their ${user}`, user])
})
afterAll(async () => {
  await world.close()
  await forged.close()
})
beforeEach(async () => {
  forged.signedWith = 'first'
  await register()
})

type Words = Readonly<Record<string, unknown>>
const assertionOf = (claims: Words = {}, header: Words = {}): Promise<string> =>
  forged.signLogout(
    {
      ...{ aud: world.issuer, sub: 'their eve', client_id: 'agent', resource: API, scope: 'orders:read' },
      ...{ events: undefined, ...claims },
    },
    { typ: 'oauth-id-jag+jwt', ...header },
  )
const redeem = (assertion: string, form: Record<string, string> = {}, id = 'agent') =>
  postToken(world, { grant_type: JWT_BEARER, assertion, ...form }, { id })
const now = (): number => Math.floor(Date.now() / 1_000)

describe('an identity assertion', () => {
  test('gets a token with the claims of a person, without a refresh token, and once', async () => {
    const assertion = await assertionOf()
    const { status, body } = await redeem(assertion)
    expect([status, body.scope, 'refresh_token' in body]).toEqual([200, 'orders:read', false])
    expect(decode(String(body.access_token)).payload).toMatchObject({
      ...{ sub: 'eve', aud: API, client_id: 'agent', org: 'acme', org_role: 'developer', scope: 'orders:read' },
    })
    expect(await world.identity.introspect(String(body.access_token))).toMatchObject({ active: true, acr: 'pwd' })
    expect(await redeem(assertion)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    expect(await world.identity.introspect(String(body.access_token))).toMatchObject({ active: true })
  })

  test('gets one token, of many at once', async () => {
    const assertion = await assertionOf()
    const answers = await Promise.all(Array.from({ length: 10 }, () => redeem(assertion)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  })

  test('is not used up by a request that is refused', async () => {
    const assertion = await assertionOf()
    expect((await redeem(assertion, { scope: 'email' })).body.error).toBe('invalid_scope')
    expect((await redeem(assertion, { organization: 'beta' })).body.error).toBe('invalid_grant')
    expect((await redeem(assertion)).status).toBe(200)
  })

  test('without scope and resource gets what the registration names, for the issuer', async () => {
    const { body } = await redeem(await assertionOf({ scope: undefined, resource: undefined }))
    expect([body.scope, decode(String(body.access_token)).payload.aud]).toEqual([
      'openid email orders:read',
      world.issuer,
    ])
  })

  test('gets no more than the client may ask for', async () => {
    const { body } = await redeem(
      await assertionOf({ scope: 'orders:read orders:write offline_access decisions:read' }),
    )
    expect(body.scope).toBe('orders:read')
  })

  test('of a strong sign-in counts as two factors where its provider is trusted with it', async () => {
    const strong = { client_id: 'careful', acr: 'strong' }
    expect((await redeem(await assertionOf({ client_id: 'careful' }), {}, 'careful')).body.error).toBe('invalid_grant')
    expect((await redeem(await assertionOf(strong), {}, 'careful')).status).toBe(200)
    await register({ trusted_acr: ['stronger'] })
    expect((await redeem(await assertionOf(strong), {}, 'careful')).body.error).toBe('invalid_grant')
  })

  test.each([
    ['is asked for where the person is in several', {}, {}, 'invalid_request'],
    ['is the one that the request names', { organization: 'beta' }, {}, 'beta'],
    ['is the one that the provider is for', {}, { organizations: ['acme'] }, 'acme'],
    ['is none that the provider is not for', { organization: 'beta' }, { organizations: ['acme'] }, 'invalid_grant'],
    ['is none where the provider is for others', {}, { organizations: ['acme-eu'] }, 'invalid_grant'],
  ])('its organization %s', async (_, form: Record<string, string>, provider, expected) => {
    await register(provider)
    const { body } = await redeem(await assertionOf({ sub: 'their ann' }), form)
    expect(body.error ?? decode(String(body.access_token)).payload.org).toBe(expected)
  })

  test('of a person who is in no organization gets a token only where the provider is for all', async () => {
    const of = async () => (await redeem(await assertionOf({ sub: 'their cy' }))).status
    expect(await of()).toBe(200)
    await register({ organizations: ['acme'] })
    expect(await of()).toBe(400)
  })

  test('gets nothing for the client of a tenant where the person is no member', async () => {
    const assertion = await assertionOf({ sub: 'their bob', client_id: 'tenant-agent' })
    expect((await redeem(assertion, {}, 'tenant-agent')).body.error).toBe('invalid_grant')
  })

  test('of a sign-in before the person was signed out gets nothing', async () => {
    const early = { auth_time: now() - 600 }
    expect((await redeem(await assertionOf(early))).status).toBe(200)
    await world.sql.query("update user_account set signed_out_at = now() - interval '1 min' where user_id = 'eve'")
    expect((await redeem(await assertionOf(early))).body.error).toBe('invalid_grant')
    expect((await redeem(await assertionOf())).status).toBe(200)
  })

  test('ends with the connection: the token is refused on the next call', async () => {
    const { body } = await redeem(await assertionOf())
    await world.identity.sessions.revokeUser('eve', CONTEXT)
    expect(await world.identity.introspect(String(body.access_token))).toEqual({ active: false })
  })
})

describe('an assertion is refused', () => {
  const refusals: Readonly<Record<string, readonly [Words, Words?]>> = {
    'as a logout token': [{}, { typ: 'logout+jwt' }],
    'as an ID token': [{}, { typ: 'JWT' }],
    'without a type': [{}, { typ: undefined }],
    'as an access token': [{}, { typ: 'at+jwt' }],
    'for another issuer': [{ aud: 'https://other.example' }],
    'for two issuers': [{ aud: ['https://other.example', 'x'] }],
    'for the token endpoint': [{ aud: 'token endpoint' }],
    'for nobody': [{ aud: undefined }],
    'of another issuer': [{ iss: 'https://other.example' }],
    'for another client': [{ client_id: 'other-agent' }],
    'for no client': [{ client_id: undefined }],
    'of a person whom nobody connected': [{ sub: 'them' }],
    'of nobody': [{ sub: undefined }],
    'of a person of ours by our id': [{ sub: 'eve' }],
    'with no exp': [{ exp: undefined }],
    'that has expired': [{ exp: now() - 10 }],
    'that lives too long': [{ exp: now() + 3_600 }],
    'with no iat': [{ iat: undefined }],
    'of the future': [{ iat: now() + 600 }],
    'with no jti': [{ jti: undefined }],
    'with a number as jti': [{ jti: 7 }],
    'with a resource that is no text': [{ resource: [7] }],
    'with scopes in a list': [{ scope: ['orders:read'] }],
    'of a sign-in in the future': [{ auth_time: now() + 3_600 }],
  }
  test.each(Object.entries(refusals))('%s', async (_, [claims, header = {}]) => {
    expect(await redeem(await assertionOf(claims, header))).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    })
  })

  test.each(['other', 'second'] as const)('signed with the key %s', async (key) => {
    forged.signedWith = key
    expect((await redeem(await assertionOf())).body.error).toBe('invalid_grant')
  })

  test.each([
    ['another resource', { resource: 'https://other.example/' }, 'invalid_target'],
    ['a scope beyond the assertion', { scope: 'orders:read email' }, 'invalid_scope'],
    ['an organization that is none', { organization: 'nowhere' }, 'invalid_grant'],
    ['no JWT', { assertion: 'x' }, 'invalid_grant'],
    ['an empty assertion', { assertion: '' }, 'invalid_request'],
  ])('beside %s', async (_, form: Record<string, string>, error) => {
    expect((await redeem(await assertionOf(), form)).body.error).toBe(error)
  })

  test('where the provider is not trusted with assertions, or is gone', async () => {
    await register({ identity_assertions: false })
    expect((await redeem(await assertionOf())).body.error).toBe('invalid_grant')
    await world.identity.identityProviders.remove('forged', CONTEXT)
    expect((await redeem(await assertionOf())).body.error).toBe('invalid_grant')
  })

  test('from a client that is not registered for it, or gives no secret', async () => {
    expect((await redeem(await assertionOf({ client_id: 'web' }), {}, 'web')).body.error).toBe('unauthorized_client')
    const form = { grant_type: JWT_BEARER, client_id: 'agent', assertion: await assertionOf() }
    expect((await postToken(world, form)).body.error).toBe('invalid_client')
  })
})
