import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hashGeneratedSecret } from '../../../../pdp/identity/people/passwords/password-hash.ts'
import { signIn } from '../../../support/sign-in.ts'
import { createFlow, VERIFIER } from '../flow.ts'
import { CONTEXT, decode, NATIVE_REDIRECT, openWorld, REDIRECT, SECRET, type World } from '../harness.ts'

let world: World
let flow: ReturnType<typeof createFlow>
beforeAll(async () => {
  world = await openWorld()
  flow = createFlow(world)
  const secretHash = hashGeneratedSecret(SECRET)
  const metadata = { redirect_uris: [REDIRECT], grant_types: ['authorization_code', 'refresh_token'] }
  await world.putClient({ id: 'scopeless', metadata, secretHash })
  const scope = 'openid offline_access decisions:read'
  await world.putClient({ id: 'services-too', metadata: { ...metadata, scope }, secretHash })
})
afterAll(() => world.close())

describe('the organization', () => {
  test('is bound silently when there is exactly one active membership', async () => {
    const { tokens, steps } = await signIn(flow.as('eve'))
    expect(steps).toEqual(['login'])
    expect(decode(tokens.access_token).payload).toMatchObject({ org: 'acme', org_role: 'developer' })
  })

  test('counts only active memberships', async () => {
    expect(await flow.accessClaims(flow.as('bob'))).toMatchObject({ org: 'beta', org_role: 'developer' })
    expect(await flow.accessClaims(flow.as('dan'))).not.toHaveProperty('org')
  })

  test('is asked for when there are several', async () => {
    const { tokens, steps } = await signIn(flow.as('ann', { chosenOrganization: 'beta' }))
    expect(steps).toEqual(['login', 'consent'])
    expect(decode(tokens.access_token).payload).toMatchObject({ org: 'beta', org_role: 'viewer' })
  })

  test.each([
    ['one that the person was not offered', 'ann', { chosenOrganization: 'acme-eu' }],
    ['none', 'ann', {}],
    ['one without a membership', 'eve', { organization: 'beta' }],
    ['one with a suspended membership', 'bob', { organization: 'acme' }],
    ['one with an invitation only', 'dan', { organization: 'acme' }],
    ['one below that of the membership', 'eve', { organization: 'acme-eu' }],
    ['one that does not exist', 'ann', { organization: 'nowhere' }],
  ])('cannot be %s', async (_, person, more) => {
    await expect(signIn(flow.as(person, more))).rejects.toMatchObject({ error: 'access_denied' })
  })

  test('cannot be malformed', async () => {
    expect(await flow.errorOf({ organization: '#tokens' })).toBe('invalid_request')
  })

  test('changes with the request in one browser session, and both tokens live', async () => {
    const first = await signIn(flow.as('ann', { organization: 'acme' }))
    const second = await signIn(flow.as('ann', { organization: 'beta', browser: first.browser }))
    expect(second.steps).toEqual([])
    expect(decode(second.tokens.access_token).payload).toMatchObject({ org: 'beta' })
    for (const { tokens } of [first, second]) {
      expect(await world.identity.introspect(tokens.access_token)).toMatchObject({ active: true })
    }
  })

  test('of the last sign-in is kept when the next request names none', async () => {
    const { browser } = await signIn(flow.as('ann', { chosenOrganization: 'beta' }))
    const { tokens, steps } = await signIn(flow.as('ann', { browser }))
    expect(steps).toEqual([])
    expect(decode(tokens.access_token).payload).toMatchObject({ org: 'beta' })
  })

  test('of the last sign-in is dropped once the membership there has ended', async () => {
    await world.directory.putUser(
      {
        id: 'tmp',
        email: 'tmp@x.example',
        emailVerified: true,
        name: null,
        passwordHash: (await world.directory.userByEmail('ann@x.example'))?.passwordHash ?? null,
      },
      CONTEXT,
    )
    const set = (log: string, status: 'active' | 'suspended') =>
      world.store.write(log, [{ kind: 'membership', user: 'tmp', membership: { role: 'member', status } }], {
        context: CONTEXT,
      })
    await set('acme', 'active')
    await set('beta', 'active')
    const { browser } = await signIn(flow.as('tmp', { chosenOrganization: 'beta' }))
    await set('beta', 'suspended')
    const { tokens } = await signIn(flow.as('tmp', { browser }))
    expect(decode(tokens.access_token).payload).toMatchObject({ org: 'acme' })
  })
})

describe('consent', () => {
  test("is asked by a tenant's client, which only its own tenant's people can use", async () => {
    const { tokens, steps } = await signIn(flow.as('ann', { clientId: 'tenant-web' }))
    expect(steps).toEqual(['login', 'consent'])
    expect(decode(tokens.access_token).payload).toMatchObject({ org: 'acme' })
    await expect(signIn(flow.as('bob', { clientId: 'tenant-web' }))).rejects.toMatchObject({ error: 'access_denied' })
    await expect(signIn(flow.as('cy', { clientId: 'tenant-web' }))).rejects.toMatchObject({ error: 'access_denied' })
    const asked = signIn(flow.as('ann', { clientId: 'tenant-web', organization: 'beta' }))
    await expect(asked).rejects.toMatchObject({ error: 'access_denied' })
  })

  test('is asked by a native client every time', async () => {
    const { clientSecret: _, ...request } = flow.as('eve', { clientId: 'native', redirectUri: NATIVE_REDIRECT })
    const { browser, steps } = await signIn(request)
    expect(steps).toEqual(['login', 'consent'])
    expect((await signIn({ ...request, browser })).steps).toEqual(['consent'])
  })

  test('is asked when the client wants it, and can be refused', async () => {
    const { browser } = await signIn(flow.as('eve'))
    expect((await signIn(flow.as('eve', { browser, parameters: { prompt: 'consent' } }))).steps).toEqual(['consent'])
    const end = await browser.follow(flow.authorizeUrl({ prompt: 'consent' }), () => ({ action: 'cancel' }))
    expect(end.searchParams.get('error')).toBe('access_denied')
  })

  test('is not asked again for more scopes of a client of the environment', async () => {
    const { browser } = await signIn(flow.as('eve'))
    const { tokens, steps } = await signIn(flow.as('eve', { browser, scope: 'openid email groups' }))
    expect(steps).toEqual([])
    expect(decode(tokens.access_token).payload.scope).toBe('openid email groups')
  })
})

describe('the authorization request', () => {
  test('answers with the issuer (RFC 9207) and the state', async () => {
    const end = await flow.authorize({})
    expect([end.searchParams.get('iss'), end.searchParams.get('state')]).toEqual([world.issuer, 'st'])
  })

  test.each([
    ['no code_challenge', { code_challenge: undefined, code_challenge_method: undefined }, 'invalid_request'],
    ['plain PKCE', { code_challenge: VERIFIER, code_challenge_method: 'plain' }, 'invalid_request'],
    ['PKCE without a method', { code_challenge_method: undefined }, 'invalid_request'],
    ['a challenge that is too short', { code_challenge: 'a'.repeat(42) }, 'invalid_request'],
    ['an unknown resource', { resource: 'https://unknown.example/' }, 'invalid_target'],
    ['a scope that the client does not have', { scope: 'openid orders:write' }, 'invalid_scope'],
    ['a service scope', { scope: 'openid decisions:read' }, 'invalid_scope'],
    ['no scope by a client that is registered for none', { client_id: 'scopeless', scope: undefined }, 'invalid_scope'],
    ['offline_access alone', { scope: 'offline_access' }, 'invalid_scope'],
    ['the implicit flow', { response_type: 'token' }, 'unsupported_response_type'],
    ['the hybrid flow', { response_type: 'code id_token', nonce: 'n' }, 'unsupported_response_type'],
    ['a request object', { request: 'e30.e30.' }, 'request_not_supported'],
    ['an unknown request_uri', { request_uri: 'urn:ietf:params:oauth:request_uri:x' }, 'invalid_request_uri'],
    ['an unknown prompt', { prompt: 'dance' }, 'invalid_request'],
    ['a NUL character', { nonce: 'a\0b' }, 'invalid_request'],
  ])('is refused with %s', async (_, parameters, error) => {
    expect(await flow.errorOf(parameters)).toBe(error)
  })

  test.each([
    ['web', 'openid profile email groups organizations orders:read'],
    ['services-too', 'openid'],
  ])('without a scope asks for what %s is registered for (RFC 6749 section 3.3)', async (id, scope) => {
    const code = (await flow.authorize({ client_id: id, scope: undefined })).searchParams.get('code')
    const { body } = await flow.redeem(code ?? '', {}, id)
    expect([body.scope, body.refresh_token]).toEqual([scope, undefined])
  })

  test('under prompt=none never shows a page', async () => {
    expect(await flow.errorOf({ prompt: 'none' })).toBe('login_required')
    const { browser } = await signIn(flow.as('ann', { organization: 'acme' }))
    const silent = await browser.follow(flow.authorizeUrl({ prompt: 'none' }), () => ({}))
    expect(silent.searchParams.get('code')).not.toBeNull()
    const refused = await browser.follow(flow.authorizeUrl({ prompt: 'none', organization: 'nowhere' }), () => ({}))
    expect(refused.searchParams.get('error')).toBe('consent_required')
  })

  test('with prompt=login asks for the password again, and says when that was', async () => {
    const { browser } = await signIn(flow.as('eve'))
    const before = Math.floor(Date.now() / 1_000)
    const { tokens, steps } = await signIn(flow.as('eve', { browser, parameters: { prompt: 'login' } }))
    expect(steps).toEqual(['login'])
    expect(Number(tokens.claims()?.auth_time)).toBeGreaterThanOrEqual(before)
  })

  test.each([
    ['an unregistered redirect_uri', { redirect_uri: 'https://evil.example/cb' }],
    ['a redirect_uri with something added', { redirect_uri: `${REDIRECT}/more` }],
    ['a redirect_uri with a query', { redirect_uri: `${REDIRECT}?x=1` }],
    ['no redirect_uri', { redirect_uri: undefined }],
    ['an unknown client', { client_id: 'nobody' }],
    ['a client id that is none', { client_id: 'a\0b' }],
    ['no client', { client_id: undefined }],
  ])('is refused on our own page with %s, and nobody is sent anywhere', async (_, parameters) => {
    const response = await fetch(flow.authorizeUrl(parameters), { redirect: 'manual' })
    expect([response.status, response.headers.get('location')]).toEqual([400, null])
    expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'/)
  })
})
