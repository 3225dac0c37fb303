import * as oauth from 'openid-client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashSecret } from '../../../pdp/identity/secrets.ts'
import { createFlows, EVERYTHING, type FlowRequest, USER_GRANTS, type UserGrant } from './flows.ts'
import { CONTEXT, decode, openWorld, PASSWORD, postToken, type World } from './harness.ts'

let world: World
let flows: ReturnType<typeof createFlows>
const lines: string[] = []
beforeAll(async () => {
  world = await openWorld()
  flows = createFlows(world)
  await seedPerson()
})
afterAll(async () => {
  console.log(`claims by grant (a = access token, i = ID token, u = UserInfo)\n${lines.join('\n')}`)
  await world.close()
})

const STATES = ['active', 'invited', 'suspended', 'no membership', 'unbound'] as const
type State = (typeof STATES)[number]
const ALWAYS = {
  a: ['iss', 'sub', 'aud', 'client_id', 'scope', 'jti', 'iat', 'exp'],
  i: ['iss', 'sub', 'aud', 'iat', 'exp', 'auth_time', 'amr', 'acr', 'at_hash'],
  u: ['sub', 'email', 'email_verified', 'name', 'organizations'],
}
const CLAIMS = [
  ...new Set(Object.values(ALWAYS).flat()),
  ...['nonce', 'org', 'org_name', 'org_role', 'roles', 'permissions', 'groups', 'ent', 'ent_ver', 'cnf'],
]

/** The seed's table 2.1, for a person who holds roles: what stands where, claim by claim. */
function expected(grant: UserGrant, state: State, dpop: boolean): Record<'a' | 'i' | 'u', ReadonlySet<string>> {
  const bound = state === 'unbound' ? [] : ['org', 'org_name']
  const tier = state === 'active' ? ['org_role'] : []
  // Nothing counts while a membership is not active; without one the person is a guest, whose grants count.
  const holds = state === 'active' || state === 'no membership'
  const held = holds ? ['roles', 'permissions'] : []
  const entitlements = state === 'unbound' ? [] : ['ent', 'ent_ver']
  const nonce = grant === 'code' || grant === 'refresh' ? ['nonce'] : []
  return {
    a: new Set([...ALWAYS.a, ...bound, ...tier, ...held, ...entitlements, ...(dpop ? ['cnf'] : [])]),
    i: new Set(grant === 'exchange' ? [] : [...ALWAYS.i, ...nonce, ...bound, ...tier, ...(holds ? ['groups'] : [])]),
    u: new Set([...ALWAYS.u, ...bound, ...tier, ...held]),
  }
}

async function seedPerson(): Promise<void> {
  const user = { id: 'mat', email: 'mat@x.example', emailVerified: true, name: 'Mat' }
  await world.directory.putUser({ ...user, passwordHash: await hashSecret(PASSWORD) }, CONTEXT)
  const free = { id: 'fay', email: 'fay@x.example', emailVerified: true, name: 'Fay' }
  await world.directory.putUser({ ...free, passwordHash: await hashSecret(PASSWORD) }, CONTEXT)
  await world.store.write(
    'acme',
    [{ kind: 'role_grant', op: 'write', grant: { id: 'm1', app: 'invoices', role: 'approver', subject: 'user:mat' } }],
    { context: CONTEXT },
  )
}

const setMembership = async (state: State) => {
  const status = state === 'unbound' ? 'active' : state
  const membership = status === 'no membership' ? null : ({ role: 'admin', status } as const)
  await world.store.write('acme', [{ kind: 'membership', user: 'mat', membership }], { context: CONTEXT })
}

function row(name: string, found: Record<string, object>, wanted: Record<string, ReadonlySet<string>>): string {
  const cells = CLAIMS.map((claim) => {
    const places = Object.entries(found).flatMap(([place, claims]) => (claim in claims ? [place] : []))
    const should = Object.entries(wanted).flatMap(([place, claims]) => (claims.has(claim) ? [place] : []))
    return `${claim}=${places.join('') || '-'}${places.join('') === should.join('') ? '' : `!${should.join('') || '-'}`}`
  })
  return `${name.padEnd(32)} ${cells.join(' ')}`
}

describe('claims of every grant, cell by cell', () => {
  beforeAll(() => setMembership('active'))
  const cases = USER_GRANTS.flatMap((grant) => [
    ...STATES.map((state) => ({ grant, state, dpop: false })),
    { grant, state: 'active' as const, dpop: true },
  ])

  it.each(cases)('$grant, $state, DPoP $dpop', async ({ grant, state, dpop }) => {
    await setMembership('active')
    const request: FlowRequest =
      state === 'unbound'
        ? { person: 'fay', dpop }
        : { person: 'mat', organization: 'acme', dpop, beforeMint: () => setMembership(state) }
    const { config, tokens, options } = await flows.obtain(grant, request)
    const access = decode(tokens.access_token).payload
    const id = tokens.id_token === undefined ? {} : decode(tokens.id_token).payload
    const userinfo = await oauth.fetchUserInfo(config, tokens.access_token, String(access.sub), options)
    const wanted = expected(grant, state, dpop)
    const places = { a: access, i: id, u: userinfo }
    lines.push(row(`${grant}, ${state}${dpop ? ', DPoP' : ''}`, places, wanted))
    expect(new Set(Object.keys(access))).toEqual(wanted.a)
    expect(new Set(Object.keys(id))).toEqual(wanted.i)
    expect(new Set(Object.keys(userinfo))).toEqual(wanted.u)

    expect(access).toMatchObject({ iss: world.issuer, aud: world.issuer, client_id: 'flows' })
    expect(access.scope).toBe(EVERYTHING.replace(' offline_access', ''))
    expect(Number(access.exp) - Number(access.iat)).toBeLessThanOrEqual(900)
    if (state !== 'unbound') expect(access).toMatchObject({ sub: 'mat', org: 'acme', org_name: 'Acme & Co' })
    if (state === 'active') expect(access).toMatchObject({ org_role: 'admin', roles: ['approver'] })
    if (tokens.id_token !== undefined) {
      expect(id.aud).toBe('flows')
      expect(Number(id.exp) - Number(id.iat)).toBe(Number(access.exp) - Number(access.iat))
    }
    const { DPoP } = options
    if (DPoP !== undefined) {
      expect(access.cnf).toEqual({ jkt: await DPoP.calculateThumbprint() })
      expect(tokens.token_type).toBe('dpop')
    }
  })

  it.each([
    ['robot', ['org', 'org_name', 'roles', 'permissions', 'ent', 'ent_ver']],
    ['free-robot', []],
  ])('client_credentials of %s have %j besides, and never org_role', async (client, besides) => {
    const { body } = await postToken(world, { grant_type: 'client_credentials', scope: 'orders:read' }, { id: client })
    const { payload } = decode(String(body.access_token))
    const wanted = { a: new Set([...ALWAYS.a, ...besides]) }
    lines.push(row(`client_credentials, ${client}`, { a: payload }, wanted))
    expect(new Set(Object.keys(payload))).toEqual(wanted.a)
    expect(payload.sub).toBe(client)
    expect(body).not.toHaveProperty('id_token')
    expect(body).not.toHaveProperty('refresh_token')
  })

  it('say who the person is to UserInfo, live', async () => {
    await setMembership('active')
    const { tokens } = await flows.obtain('code', { person: 'mat', organization: 'acme' })
    expect(await fetchUserinfo(tokens.access_token)).toEqual({
      sub: 'mat',
      org: 'acme',
      org_name: 'Acme & Co',
      org_role: 'admin',
      roles: ['approver'],
      permissions: ['invoices:approve', 'invoices:read'],
      organizations: [{ id: 'acme', name: 'Acme & Co', role: 'admin' }],
      email: 'mat@x.example',
      email_verified: true,
      name: 'Mat',
    })
    await setMembership('suspended')
    expect(await fetchUserinfo(tokens.access_token)).toEqual({
      sub: 'mat',
      org: 'acme',
      org_name: 'Acme & Co',
      organizations: [],
      email: 'mat@x.example',
      email_verified: true,
      name: 'Mat',
    })
    await setMembership('active')
  })
})

async function fetchUserinfo(token: string): Promise<object> {
  const response = await fetch(`${world.issuer}/oauth/userinfo`, { headers: { authorization: `Bearer ${token}` } })
  expect(response.status).toBe(200)
  return JSON.parse(await response.text())
}
