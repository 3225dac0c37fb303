import * as oauth from 'openid-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createFlows, type Obtained } from '../flows.ts'
import { API, CONTEXT, decode, GRANTS, openWorld, postToken, REDIRECT, type World } from '../harness.ts'

let world: World
let flows: ReturnType<typeof createFlows>
const hook = { answer: async (): Promise<Response> => new Response('{"claims": {}}') }
beforeAll(async () => {
  world = await openWorld({ fetch: () => hook.answer() })
  flows = createFlows(world)
})
afterAll(() => world.close())

const eve = { person: 'eve', organization: 'acme' }
const refreshTokenOf = ({ tokens }: Obtained): string => tokens.refresh_token ?? ''
const post = (token: string, form: Record<string, string> = {}, id = 'flows') =>
  postToken(world, { grant_type: 'refresh_token', refresh_token: token, ...form }, { id })
const isActive = async (token: unknown) => (await world.identity.introspect(String(token))).active
const setTier = (role: 'developer' | 'viewer', status: 'active' | 'suspended' = 'active') =>
  world.store.write('acme', [{ kind: 'membership', user: 'eve', membership: { role, status } }], { context: CONTEXT })

describe('a refresh', () => {
  test('reads tier, roles, permissions and Claims-mode entitlements anew', async () => {
    const first = await flows.code(eve)
    expect(decode(first.tokens.access_token).payload).toMatchObject({ org_role: 'developer', ent_ver: 1 })
    await setTier('viewer')
    await world.store.write(
      'acme',
      [
        { kind: 'role_grant', op: 'write', grant: { id: 'r1', app: null, role: 'auditor', subject: 'user:eve' } },
        { kind: 'entitlement', key: 'feature.x', entitlement: { value: { enabled: true }, enforcement: 'Claims' } },
      ],
      { context: CONTEXT },
    )
    const second = await flows.refreshed(first)
    expect(decode(second.tokens.access_token).payload).toMatchObject({
      org_role: 'viewer',
      roles: ['auditor'],
      permissions: ['logs:read'],
      ent: { 'feature.sso': { enabled: true }, 'feature.x': { enabled: true } },
      ent_ver: 2,
    })
    expect(decode(second.tokens.id_token ?? '').payload).toMatchObject({ org_role: 'viewer', groups: ['auditor'] })
    await setTier('developer')
  })

  test('gives a new refresh token each time, and the one before no longer works', async () => {
    const first = await flows.code(eve)
    const second = await flows.refreshed(first)
    expect(refreshTokenOf(second)).not.toBe(refreshTokenOf(first))
    expect(await post(refreshTokenOf(first))).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  })

  test('with a token that was used before ends the whole family', async () => {
    const first = await flows.code(eve)
    const second = await flows.refreshed(first)
    expect(await isActive(second.tokens.access_token)).toBe(true)
    await post(refreshTokenOf(first))
    for (const { tokens } of [first, second]) expect(await isActive(tokens.access_token)).toBe(false)
    expect(await post(refreshTokenOf(second))).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    const logged = await world.sql.query<{ change: object }>(
      "select change from change_log where organization_id = '#tokens' order by revision desc limit 1",
    )
    expect(logged[0]?.change).toMatchObject({ kind: 'token', by: 'grant' })
  })

  test('succeeds once when 20 use the token at the same time', async () => {
    const first = await flows.code(eve)
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(refreshTokenOf(first))))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ body }) => body.error === 'invalid_grant')).toHaveLength(19)
    // Nobody knows who of them was the thief, so the winner's family has ended as well.
    const [won] = answers.filter(({ status }) => status === 200)
    expect(await isActive(won?.body.access_token)).toBe(false)
    expect(await post(String(won?.body.refresh_token))).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  })

  test('can ask for less, but not for more', async () => {
    const first = await flows.code({ ...eve, scope: 'openid email offline_access' })
    const less = await post(refreshTokenOf(first), { scope: 'email' })
    expect(decode(String(less.body.access_token)).payload.scope).toBe('email')
    expect(less.body).not.toHaveProperty('id_token')
    expect(await post(String(less.body.refresh_token), { scope: 'email profile' })).toMatchObject({
      status: 400,
      body: { error: 'invalid_scope' },
    })
  })
})

describe('a refresh by who is no longer a member', () => {
  test.each(['suspended', 'invited', null] as const)('is refused and uses nothing up, as %s', async (status) => {
    const first = await flows.code(eve)
    const membership = status === null ? null : ({ role: 'developer', status } as const)
    await world.store.write('acme', [{ kind: 'membership', user: 'eve', membership }], { context: CONTEXT })
    try {
      expect(await post(refreshTokenOf(first))).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
      // Nobody is bound anew to an organization that they are not a member of.
      await expect(flows.code(eve)).rejects.toMatchObject({ error: 'access_denied' })
    } finally {
      await setTier('developer')
    }
    expect((await post(refreshTokenOf(first))).status).toBe(200)
  })

  test('is refused when the organization is gone, or no longer one that the client acts in', async () => {
    const [first, again] = [await flows.code(eve), await flows.code(eve)]
    const client = await world.directory.client('flows')
    if (client === null) throw new Error('no client')
    await world.putClient({ ...client, organization: 'beta' })
    expect(await post(refreshTokenOf(first))).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    await world.putClient(client)
    await world.sql.query("update grant_binding set organization_id = 'gone'")
    expect(await post(refreshTokenOf(again))).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    await world.sql.query("update grant_binding set organization_id = 'acme'")
    expect((await post(refreshTokenOf(again))).status).toBe(200)
  })
})

describe('a refresh that fails does not cost the client its token', () => {
  test.each([
    ['another resource', { resource: API }, 'invalid_target'],
    ['an unknown resource', { resource: 'https://unknown.example/' }, 'invalid_target'],
    ['a malformed resource', { resource: 'not a uri' }, 'invalid_target'],
    ['too much scope', { scope: 'openid groups' }, 'invalid_scope'],
  ])('by %s', async (_, form, error) => {
    const first = await flows.code({ ...eve, scope: 'openid offline_access' })
    expect(await post(refreshTokenOf(first), form)).toMatchObject({ status: 400, body: { error } })
    expect(await post(refreshTokenOf(first))).toMatchObject({ status: 200 })
  })

  test('by a database that fails while the token is recorded', async () => {
    const first = await flows.code(eve)
    await world.sql.query("alter table oidc_record add constraint full_disk check (kind <> 'AccessToken') not valid")
    expect((await post(refreshTokenOf(first))).status).toBe(500)
    await world.sql.query('alter table oidc_record drop constraint full_disk')
    expect(await post(refreshTokenOf(first))).toMatchObject({ status: 200 })
  })

  test('by a token hook that fails: the token comes without its claims', async () => {
    await world.identity.hook.configure({ url: 'https://hook.example/', secret: 'a-secret-of-the-hook' }, CONTEXT)
    const first = await flows.code(eve)
    hook.answer = async () => {
      throw new Error('no network')
    }
    expect((await post(refreshTokenOf(first))).status).toBe(200)
    await world.identity.hook.configure(null, CONTEXT)
  })
})

describe('a refresh token', () => {
  test('is given only for offline_access that the client is registered for', async () => {
    const { tokens } = await flows.code({ ...eve, scope: 'openid' })
    expect(tokens).not.toHaveProperty('refresh_token')
    await world.putClient({
      id: 'no-offline',
      metadata: { redirect_uris: [REDIRECT], scope: 'openid', grant_types: GRANTS },
      secretHash: (await world.directory.client('flows'))?.secretHash ?? null,
    })
    await expect(flows.code({ ...eve, client: 'no-offline', scope: 'openid offline_access' })).rejects.toMatchObject({
      error: 'invalid_scope',
    })
  })

  test('is stored as a digest only', async () => {
    const first = await flows.code(eve)
    const rows = await world.sql.query('select 1 from oidc_record r where strpos(r::text, $1) > 0', [
      refreshTokenOf(first),
    ])
    expect(rows).toEqual([])
  })

  test('is for its own client alone', async () => {
    const first = await flows.code(eve)
    expect(await post(refreshTokenOf(first), {}, 'tenant-flows')).toMatchObject({ body: { error: 'invalid_grant' } })
    expect((await post(refreshTokenOf(first))).status).toBe(200)
  })

  test('outlives the sign-in, and its grant outlives every refresh token that is used in time', async () => {
    await flows.code(eve)
    const [row] = await world.sql.query<{ token: number; grant: number }>(
      `select extract(epoch from max(expires_at) filter (where kind = 'RefreshToken') - now())::int as token,
         extract(epoch from max(expires_at) filter (where kind = 'Grant') - now())::int as grant from oidc_record`,
    )
    expect(row?.token).toBeGreaterThan(29 * 86_400)
    expect(row?.grant).toBeGreaterThan(364 * 86_400)
  })

  test('is worth nothing once the client belongs to another tenant', async () => {
    const first = await flows.code({ ...eve, client: 'tenant-flows' })
    const client = await world.directory.client('tenant-flows')
    if (client === null) throw new Error('no client')
    await world.putClient({ ...client, organization: 'beta' })
    expect(await post(refreshTokenOf(first), {}, 'tenant-flows')).toMatchObject({ body: { error: 'invalid_grant' } })
    await world.putClient({ ...client, organization: 'acme' })
    expect((await post(refreshTokenOf(first), {}, 'tenant-flows')).status).toBe(200)
  })

  test('is worth nothing once the person is gone', async () => {
    const passwordHash = (await world.directory.userByEmail('eve@x.example'))?.passwordHash ?? null
    const user = { id: 'left', email: 'left@x.example', emailVerified: true, name: null, passwordHash }
    await world.directory.putUser(user, CONTEXT)
    const first = await flows.code({ person: 'left' })
    await world.directory.deleteUser('left', CONTEXT)
    expect(await post(refreshTokenOf(first))).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  })
})

describe('a refresh of a grant that began with DPoP', () => {
  test('needs a proof, so that a confidential client cannot fall back to bearer tokens', async () => {
    const first = await flows.code({ ...eve, dpop: true })
    expect(await post(refreshTokenOf(first))).toMatchObject({ status: 400, body: { error: 'invalid_dpop_proof' } })
    const second = await flows.refreshed(first)
    expect(decode(second.tokens.access_token).payload.cnf).toEqual(decode(first.tokens.access_token).payload.cnf)
  })

  test('may come with another key of a confidential client, but not of a public one', async () => {
    for (const client of ['flows', 'public-flows']) {
      const first = await flows.code({ ...eve, client, dpop: true })
      const keys = await oauth.randomDPoPKeyPair('ES256')
      const other = { ...first, options: { DPoP: oauth.getDPoPHandle(first.config, keys) } }
      if (client === 'flows') expect((await flows.refreshed(other)).tokens.token_type).toBe('dpop')
      else await expect(flows.refreshed(other)).rejects.toMatchObject({ error: 'invalid_grant' })
    }
  })
})
