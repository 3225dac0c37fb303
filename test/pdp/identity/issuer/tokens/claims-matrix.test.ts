/** The claims table (ARCHITECTURE.md section 6), claim by claim and place by place, for every grant, membership, binding and set of scopes. */
import { createHash } from 'node:crypto'
import * as oauth from 'openid-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cheapHash } from '../../../../support/passwords/cheap-hash.ts'
import { createFlows, EVERYTHING, type FlowRequest, USER_GRANTS, type UserGrant } from '../../flows.ts'
import { CONTEXT, decode, openWorld, PASSWORD, postToken, type World } from '../../harness.ts'
import { newClientKey, proveKey } from '../../rfc/forge.ts'

let world: World
let flows: ReturnType<typeof createFlows>
const lines: string[] = []
beforeAll(async () => {
  world = await openWorld()
  flows = createFlows(world)
  await seedPerson()
})
afterAll(async () => {
  const legend = 'claims by grant (a = access token, i = ID token, u = UserInfo; !x = should be at x)'
  console.log(`${legend}\n${lines.join('\n')}`)
  await world.close()
})

const STATES = ['active', 'invited', 'suspended', 'no membership', 'unbound'] as const
type State = (typeof STATES)[number]
const PLACES = ['a', 'i', 'u'] as const
type Place = (typeof PLACES)[number]
/** What decides over a cell. */
type Case = {
  readonly grant: UserGrant | 'service'
  readonly state: State
  readonly dpop: boolean
  readonly scope: string
}
type When = (of: Case) => boolean

const yes: When = () => true
const no: When = () => false
const bound: When = ({ state }) => state !== 'unbound'
// Section 2.2: an active membership, and a person.
const tier: When = ({ state, grant }) => state === 'active' && grant !== 'service'
// While a membership is not active, nothing held there counts; without one the person is a guest, whose grants count.
const held: When = ({ state, grant }) => state === 'active' || (grant !== 'service' && state === 'no membership')
const scoped =
  (name: string): When =>
  ({ scope }) =>
    scope.split(' ').includes(name)
const both =
  (one: When, other: When): When =>
  (of) =>
    one(of) && other(of)
const dpop: When = (of) => of.dpop
const sentNonce: When = ({ grant }) => grant === 'code' || grant === 'refresh'

const TABLE: { readonly [claim: string]: readonly [accessToken: When, idToken: When, userInfo: When] } = {
  iss: [yes, yes, no],
  sub: [yes, yes, yes],
  aud: [yes, yes, no],
  client_id: [yes, no, no],
  scope: [yes, no, no],
  jti: [yes, no, no],
  iat: [yes, yes, no],
  exp: [yes, yes, no],
  org: [bound, bound, bound],
  org_name: [bound, bound, bound],
  org_role: [tier, tier, tier],
  roles: [held, no, held],
  permissions: [held, no, held],
  groups: [no, both(held, scoped('groups')), no],
  organizations: [no, no, scoped('organizations')],
  ent: [bound, no, no],
  ent_ver: [bound, no, no],
  cnf: [dpop, no, no],
  nonce: [no, sentNonce, no],
  auth_time: [no, yes, no],
  amr: [no, yes, no],
  acr: [no, yes, no],
  at_hash: [no, yes, no],
  email: [no, no, scoped('email')],
  email_verified: [no, no, scoped('email')],
  name: [no, no, scoped('profile')],
}
/** Section 4.1 and OpenID Connect Core: both places exist for `openid` only; an exchange issues one token. */
const EXISTS: Readonly<Record<Place, When>> = {
  a: yes,
  i: both(scoped('openid'), ({ grant }) => grant !== 'exchange' && grant !== 'service'),
  u: both(scoped('openid'), ({ grant }) => grant !== 'service'),
}

async function seedPerson(): Promise<void> {
  for (const id of ['mat', 'fay']) {
    const user = { id, email: `${id}@x.example`, emailVerified: true, name: id.toUpperCase() }
    await world.directory.putUser({ ...user, passwordHash: cheapHash(PASSWORD) }, CONTEXT)
  }
  const grant = { id: 'm1', app: 'invoices', role: 'approver', subject: 'user:mat' }
  await world.store.write('acme', [{ kind: 'role_grant', op: 'write', grant }], { context: CONTEXT })
}

const setMembership = async (state: State) => {
  const status = state === 'unbound' ? 'active' : state
  const membership = status === 'no membership' ? null : ({ role: 'admin', status } as const)
  await world.store.write('acme', [{ kind: 'membership', user: 'mat', membership }], { context: CONTEXT })
}

type Found = Readonly<Record<Place, { readonly [claim: string]: unknown }>>

/** What stands in each cell when it is filled. */
function cellValue(claim: string, cell: { place: Place; of: Case; sub: string; accessToken: string }): unknown {
  const { place, of, sub, accessToken } = cell
  const values: { readonly [claim: string]: unknown } = {
    iss: world.issuer,
    sub,
    aud: place === 'i' ? 'flows' : world.issuer,
    client_id: of.grant === 'service' ? sub : 'flows',
    scope: of.scope.replace(' offline_access', ''),
    jti: expect.stringMatching(/^[\w-]{43}$/),
    org: 'acme',
    org_name: 'Acme & Co',
    org_role: 'admin',
    roles: of.grant === 'service' ? ['auditor'] : ['approver'],
    permissions: of.grant === 'service' ? ['logs:read'] : ['invoices:approve', 'invoices:read'],
    groups: ['approver'],
    organizations: of.state === 'active' ? [{ id: 'acme', name: 'Acme & Co', role: 'admin' }] : [],
    ent: { 'feature.sso': { enabled: true } },
    ent_ver: 1,
    cnf: { jkt: expect.stringMatching(/^[\w-]{43}$/) },
    nonce: expect.any(String),
    amr: ['pwd'],
    acr: 'pwd',
    at_hash: createHash('sha256').update(accessToken).digest().subarray(0, 16).toString('base64url'),
    email: `${sub}@x.example`,
    email_verified: true,
    name: sub.toUpperCase(),
  }
  return values[claim] ?? expect.any(Number)
}

function evaluate(name: string, of: Case, found: Found, identity: { sub: string; accessToken: string }): void {
  const wanted: Record<Place, { [claim: string]: unknown }> = { a: {}, i: {}, u: {} }
  const cells = Object.entries(TABLE).map(([claim, row]) => {
    PLACES.forEach((place, column) => {
      if (!EXISTS[place](of) || row[column]?.(of) !== true) return
      wanted[place][claim] = cellValue(claim, { place, of, ...identity })
    })
    const [is, should] = [found, wanted].map((all) => PLACES.filter((place) => claim in all[place]).join('') || '-')
    return `${claim}=${is}${is === should ? '' : `!${should}`}`
  })
  lines.push(`${name.padEnd(34)} ${cells.join(' ')}`)
  // Exactly these claims with exactly these values: one too many fails as well.
  expect(found).toEqual(wanted)
}

async function claimsOf(of: Case & { readonly grant: UserGrant }): Promise<void> {
  await setMembership('active')
  const { grant, state, dpop: isBound, scope } = of
  const sub = state === 'unbound' ? 'fay' : 'mat'
  const request: FlowRequest =
    state === 'unbound'
      ? { person: 'fay', dpop: isBound, scope }
      : { person: 'mat', organization: 'acme', dpop: isBound, scope, beforeMint: () => setMembership(state) }
  const { config, tokens, options } = await flows.obtain(grant, request)
  const { access_token: accessToken, id_token: idToken } = tokens
  const found = {
    a: decode(accessToken).payload,
    i: idToken === undefined ? {} : decode(idToken).payload,
    u: EXISTS.u(of) ? await oauth.fetchUserInfo(config, accessToken, sub, options) : {},
  }
  evaluate(`${grant}, ${state}${isBound ? ', DPoP' : ''}${scope === EVERYTHING ? '' : `, ${scope}`}`, of, found, {
    sub,
    accessToken,
  })
  expect(Number(found.a.exp) - Number(found.a.iat)).toBeLessThanOrEqual(900)
  if (idToken !== undefined) {
    expect(Number(found.i.exp) - Number(found.i.iat)).toBe(Number(found.a.exp) - Number(found.a.iat))
  }
  if (isBound) expect(found.a.cnf).toEqual({ jkt: await options.DPoP?.calculateThumbprint() })
  expect(tokens.token_type).toBe(isBound ? 'dpop' : 'bearer')
  if (EXISTS.u(of)) return
  const authorization = `Bearer ${accessToken}`
  const userinfo = await fetch(`${world.issuer}/oauth/userinfo`, { headers: { authorization } })
  expect(userinfo.status).toBe(403)
}

describe('claims of every grant, cell by cell', () => {
  const isMember: When = ({ state }) => state === 'active' || state === 'unbound'
  const all = USER_GRANTS.flatMap(
    (grant) =>
      STATES.flatMap((state) => [false, true].map((isBound) => ({ grant, state, dpop: isBound, scope: EVERYTHING }))),
    // A refresh of who is no active member is refused (refresh.test.ts).
  ).filter((of) => of.grant !== 'refresh' || isMember(of))
  test.each(all)('$grant, $state, DPoP $dpop', (of) => claimsOf(of))

  const scopes = ['openid', 'openid email', 'openid profile groups', 'openid organizations', 'orders:read']
  // Refresh tokens need offline_access, and CIBA needs openid.
  const narrow = (['code', 'device', 'exchange'] as const).flatMap((grant) => scopes.map((scope) => ({ grant, scope })))
  test.each(narrow)('$grant with $scope alone', (of) => claimsOf({ ...of, state: 'active', dpop: false }))

  test.each([
    ['robot', 'active', false],
    ['robot', 'active', true],
    ['free-robot', 'unbound', false],
    ['free-robot', 'unbound', true],
  ] as const)('client_credentials of %s, %s, DPoP %s: never a person’s', async (client, state, isBound) => {
    const scope = 'orders:read'
    const headers = isBound ? { dpop: await proveKey(world, await newClientKey()) } : {}
    const { body } = await postToken(world, { grant_type: 'client_credentials', scope }, { id: client, headers })
    const accessToken = String(body.access_token)
    const found = { a: decode(accessToken).payload, i: {}, u: {} }
    const name = `client_credentials, ${client}${isBound ? ', DPoP' : ''}`
    evaluate(name, { grant: 'service', state, dpop: isBound, scope }, found, { sub: client, accessToken })
    expect(body).not.toHaveProperty('id_token')
    expect(body).not.toHaveProperty('refresh_token')
  })

  test('say who the person is to UserInfo of now, whatever the token says', async () => {
    const { tokens } = await flows.code({ person: 'mat', organization: 'acme' })
    const ask = async (): Promise<object> => {
      const authorization = `Bearer ${tokens.access_token}`
      const response = await fetch(`${world.issuer}/oauth/userinfo`, { headers: { authorization } })
      return JSON.parse(await response.text())
    }
    for (const state of ['suspended', 'invited', 'no membership', 'active'] as const) {
      await setMembership(state)
      const of: Case = { grant: 'code', state, dpop: false, scope: EVERYTHING }
      const filled = Object.entries(TABLE).filter(([, row]) => row[2](of))
      const wanted = filled.map(([claim]) => [claim, cellValue(claim, { place: 'u', of, sub: 'mat', accessToken: '' })])
      expect([state, await ask()]).toEqual([state, Object.fromEntries(wanted)])
    }
  })
})
