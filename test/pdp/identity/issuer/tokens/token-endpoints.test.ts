import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createFlows, USER_GRANTS } from '../../flows.ts'
import { API, CONTEXT, decode, openWorld, parseObject, postToken, SECRET, type World } from '../../harness.ts'

let world: World
let flows: ReturnType<typeof createFlows>
let access: string
let refresh: string
let idToken: string
beforeAll(async () => {
  world = await openWorld()
  flows = createFlows(world)
  await world.putClient({
    id: 'rs',
    metadata: { redirect_uris: [] as string[], grant_types: [] },
    secretHash: await hash(),
  })
  await world.putClient({
    id: 'beta-rs',
    organization: 'beta',
    metadata: { redirect_uris: [] as string[], grant_types: [] },
    secretHash: await hash(),
  })
  await renew()
})
afterAll(() => world.close())

const hash = async () => (await world.directory.client('flows'))?.secretHash ?? null
async function renew(): Promise<void> {
  const { tokens } = await flows.code({ person: 'eve', organization: 'acme' })
  access = tokens.access_token
  refresh = tokens.refresh_token ?? ''
  idToken = tokens.id_token ?? ''
}
type Options = { id?: string | null; secret?: string; path?: string; contentType?: string; form?: string }
async function ask(token: string | null, options: Options = {}) {
  const { id = 'flows', secret = SECRET, path = '/oauth/introspect' } = options
  const authorization = `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`
  const response = await fetch(world.issuer + path, {
    method: 'POST',
    headers: {
      'content-type': options.contentType ?? 'application/x-www-form-urlencoded',
      ...(id === null ? {} : { authorization }),
    },
    body: options.form ?? new URLSearchParams(token === null ? {} : { token }).toString(),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? {} : parseObject(text) }
}
const revoke = (token: string, options: Options = {}) => ask(token, { path: '/oauth/revoke', ...options })
const isActive = async (token: string) => (await world.identity.introspect(token)).active

describe('introspection (RFC 7662)', () => {
  test('tells an access token of a person with everything that a resource server needs', async () => {
    const { status, headers, body } = await ask(access)
    const { payload } = decode(access)
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toContain('no-store')
    expect(body).toEqual({
      active: true,
      iss: world.issuer,
      sub: 'eve',
      aud: world.issuer,
      client_id: 'flows',
      scope: payload.scope,
      token_type: 'Bearer',
      jti: payload.jti,
      iat: payload.iat,
      exp: payload.exp,
      org: 'acme',
      acr: 'pwd',
      auth_time: expect.any(Number),
    })
  })

  test.each(USER_GRANTS)('shows acr and auth_time for tokens of %s, and the key of a bound one', async (grant) => {
    const { tokens } = await flows.obtain(grant, { person: 'eve', organization: 'acme', dpop: true })
    const { body } = await ask(tokens.access_token)
    expect(body).toMatchObject({ token_type: 'DPoP', acr: 'pwd', auth_time: expect.any(Number) })
    expect(body.cnf).toEqual(decode(tokens.access_token).payload.cnf)
  })

  test('tells a refresh token to its own client only', async () => {
    expect((await ask(refresh)).body).toMatchObject({ active: true, client_id: 'flows', sub: 'eve' })
    expect((await ask(refresh, { id: 'rs' })).body).toEqual({ active: false })
  })

  test('finds a token whatever the hint says', async () => {
    const form = (token: string, hint: string) => new URLSearchParams({ token, token_type_hint: hint }).toString()
    expect((await ask(null, { form: form(access, 'refresh_token') })).body.active).toBe(true)
    expect((await ask(null, { form: form(refresh, 'access_token') })).body.active).toBe(true)
    expect((await ask(null, { form: form(access, 'nonsense') })).body.active).toBe(true)
  })

  test('says nothing but inactive of anything else', async () => {
    const { payload } = decode(access)
    const [head = '', body = '', signature = ''] = access.split('.')
    const flipped = `${head}.${body}.${signature.slice(0, -4)}${signature.endsWith('AAAA') ? 'BBBB' : 'AAAA'}`
    for (const token of ['x', 'a.b.c', String(payload.jti), idToken, flipped, `${access}x`, access.toUpperCase()]) {
      expect((await ask(token)).body).toEqual({ active: false })
    }
  })

  test('tells a tenant nothing about the tokens of another', async () => {
    expect((await ask(access, { id: 'rs' })).body.active).toBe(true)
    expect((await ask(access, { id: 'tenant-flows' })).body.active).toBe(true)
    expect((await ask(access, { id: 'beta-rs' })).body).toEqual({ active: false })
  })

  test('needs a client that authenticates', async () => {
    expect(await ask(access, { id: null })).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
    expect(await ask(access, { secret: 'wrong' })).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
    const form = new URLSearchParams({ token: access, client_id: 'public-flows' }).toString()
    expect(await ask(null, { id: null, form })).toMatchObject({ status: 200, body: { active: false } })
  })

  test('refuses a form that is not one', async () => {
    expect(await ask(null)).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
    expect(await ask(null, { form: `token=${access}&token=${access}` })).toMatchObject({ status: 400 })
    expect(await ask(null, { form: '{}', contentType: 'application/json' })).toMatchObject({ status: 400 })
    expect(await ask('x'.repeat(40_000))).toMatchObject({ status: 413 })
    expect((await fetch(`${world.issuer}/oauth/introspect?token=x`)).status).toBe(405)
  })

  test('shows at once that a membership does not matter but a deleted client does', async () => {
    const token = (await postToken(world, { grant_type: 'client_credentials' }, { id: 'free-robot' })).body
    expect((await ask(String(token.access_token))).body).toMatchObject({ active: true, sub: 'free-robot' })
    await world.directory.deleteClient('free-robot', CONTEXT)
    expect((await ask(String(token.access_token))).body).toEqual({ active: false })
  })
})

describe('revocation (RFC 7009)', () => {
  test('of an access token ends its grant: the refresh token and what was exchanged from it too', async () => {
    await renew()
    const child = await flows.exchangeOf(access, { person: 'eve', client: 'gateway' }, { scope: 'openid' })
    const grandchild = await flows.exchangeOf(child.tokens.access_token, { person: 'eve', client: 'gateway' })
    expect(await isActive(grandchild.tokens.access_token)).toBe(true)
    expect((await revoke(access)).status).toBe(200)
    for (const token of [access, child.tokens.access_token, grandchild.tokens.access_token]) {
      expect(await isActive(token)).toBe(false)
    }
    expect((await ask(refresh)).body).toEqual({ active: false })
  })

  test('of a refresh token ends its access tokens', async () => {
    await renew()
    expect((await revoke(refresh)).status).toBe(200)
    expect(await isActive(access)).toBe(false)
  })

  test('of a service token ends it alone, and is in the token log', async () => {
    const mint = async () => {
      const { body } = await postToken(world, { grant_type: 'client_credentials' }, { id: 'robot' })
      return String(body.access_token)
    }
    const [one, other] = [await mint(), await mint()]
    expect((await revoke(one, { id: 'robot' })).status).toBe(200)
    expect([await isActive(one), await isActive(other)]).toEqual([false, true])
    const [entry] = await world.sql.query<{ change: object }>(
      "select change from change_log where organization_id = '#tokens' order by revision desc limit 1",
    )
    expect(entry?.change).toEqual({ kind: 'token', by: 'jti', id: decode(one).payload.jti })
  })

  test('of a token that is nobody’s succeeds', async () => {
    for (const token of ['unknown', 'a.b.c', idToken]) expect((await revoke(token)).status).toBe(200)
  })

  test('is refused for the token of another client, and without the right secret', async () => {
    await renew()
    expect(await revoke(access, { id: 'gateway' })).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
    expect(await revoke(access, { secret: 'wrong' })).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
    expect(await revoke(access, { id: null })).toMatchObject({ status: 401 })
    expect(await revoke(String(decode(access).payload.jti))).toMatchObject({ status: 200 })
    expect(await isActive(access)).toBe(true)
  })
})

describe('UserInfo', () => {
  const send = (init: RequestInit = {}, query = '') => fetch(`${world.issuer}/oauth/userinfo${query}`, init)
  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
  beforeAll(renew)

  test('answers GET, POST by header and POST by form alike, and tells nobody to keep it', async () => {
    const answers = [
      await send(bearer(access)),
      await send({ headers: { authorization: `bearer  ${access}` } }),
      await send({ method: 'POST', ...bearer(access) }),
      await send({ method: 'POST', body: new URLSearchParams({ access_token: access }) }),
    ]
    const texts = await Promise.all(answers.map((a) => a.text()))
    expect(new Set(texts).size).toBe(1)
    expect(parseObject(texts[0] ?? '')).toMatchObject({ sub: 'eve', email: 'eve@x.example', org_role: 'developer' })
    for (const { headers } of answers) expect(headers.get('cache-control')).toBe('no-store')
  })

  test.each([
    ['no credentials', {}, '', 401, 'token_missing', /^Bearer resource_metadata="[^"]+", DPoP resource_metadata=/],
    ['another scheme', { headers: { authorization: 'Basic eDp5' } }, '', 401, 'token_missing', /^Bearer resource/],
    ['a list of tokens', { headers: { authorization: 'Bearer a, b' } }, '', 400, 'request_invalid', /invalid_request/],
    ['a token in the query', {}, '?access_token=x', 400, 'request_invalid', /error="invalid_request"/],
    ['a broken token', bearer('a.b.c'), '', 401, 'token_invalid', /^Bearer error="invalid_token"/],
    ['a DPoP scheme', { headers: { authorization: 'DPoP a.b.c' } }, '', 401, 'token_invalid', /^DPoP error=.*algs="ES/],
  ])('refuses %s', async (_, init, query, status, code, wanted) => {
    const response = await send(init, query)
    expect(response.status).toBe(status)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(parseObject(await response.text())).toMatchObject({ type: `urn:portcullis:problem:${code}`, status })
    const challenge = response.headers.get('www-authenticate') ?? ''
    expect(challenge).toMatch(wanted)
    expect(challenge).not.toMatch(/\\/)
  })

  test('refuses a token sent in two ways, or twice', async () => {
    const body = new URLSearchParams({ access_token: access })
    expect((await send({ method: 'POST', ...bearer(access), body })).status).toBe(400)
    const twice = new URLSearchParams([...body, ...body])
    expect((await send({ method: 'POST', body: twice })).status).toBe(400)
    expect(
      (await send({ method: 'POST', body: new URLSearchParams({ access_token: 'x'.repeat(40_000) }) })).status,
    ).toBe(400)
    expect((await send({ method: 'PUT', ...bearer(access) })).status).toBe(405)
  })

  test('is for tokens of a person with openid, whatever their audience', async () => {
    const scope = await send(bearer((await flows.code({ person: 'eve', scope: 'email' })).tokens.access_token))
    expect(scope.status).toBe(403)
    expect(scope.headers.get('www-authenticate')).toMatch(/^Bearer error="insufficient_scope".*scope="openid"/)
    const robot = await postToken(world, { grant_type: 'client_credentials' }, { id: 'robot' })
    expect((await send(bearer(String(robot.body.access_token)))).status).toBe(403)
    const foreign = await flows.code({ person: 'eve', resource: API, scope: 'openid orders:read' })
    expect((await send(bearer(foreign.tokens.access_token))).status).toBe(200)
    const without = await flows.code({ person: 'eve', resource: API, scope: 'orders:read' })
    expect((await send(bearer(without.tokens.access_token))).status).toBe(403)
    expect((await send(bearer(idToken))).status).toBe(401)
  })

  test('refuses a bound token without its scheme or its proof', async () => {
    const { tokens } = await flows.code({ person: 'eve', dpop: true })
    const asBearer = await send(bearer(tokens.access_token))
    expect([asBearer.status, asBearer.headers.get('www-authenticate')]).toEqual([
      401,
      expect.stringMatching(/^DPoP error="invalid_token"/),
    ])
    const unproven = await send({ headers: { authorization: `DPoP ${tokens.access_token}` } })
    expect([unproven.status, unproven.headers.get('www-authenticate')]).toEqual([
      401,
      expect.stringMatching(/^DPoP error="invalid_dpop_proof".*algs=/),
    ])
    expect((await send({ headers: { authorization: `DPoP ${access}` } })).status).toBe(401)
  })

  test('is 401 invalid_token, not a failure, for a person who was deleted', async () => {
    const passwordHash = (await world.directory.userByEmail('eve@x.example'))?.passwordHash ?? null
    const user = { id: 'gone', email: 'gone@x.example', emailVerified: true, name: null, passwordHash }
    await world.directory.putUser(user, CONTEXT)
    const { tokens } = await flows.code({ person: 'gone' })
    expect((await send(bearer(tokens.access_token))).status).toBe(200)
    await world.directory.deleteUser('gone', CONTEXT)
    const response = await send(bearer(tokens.access_token))
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"')
  })

  test('lets pages of other origins ask', async () => {
    const preflight = await send({ method: 'OPTIONS', headers: { origin: 'https://app.example' } })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-headers')).toContain('DPoP')
    expect((await send(bearer(access))).headers.get('access-control-allow-origin')).toBe('*')
  })
})

describe('protected resource metadata (RFC 9728)', () => {
  test('describes the issuer as a resource', async () => {
    const response = await fetch(`${world.issuer}/.well-known/oauth-protected-resource`)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(parseObject(await response.text())).toMatchObject({
      resource: world.issuer,
      authorization_servers: [world.issuer],
      jwks_uri: `${world.issuer}/oauth/jwks`,
      bearer_methods_supported: ['header', 'body'],
      dpop_signing_alg_values_supported: expect.arrayContaining(['ES256']),
    })
  })
})
