/** Two writers at once, many times: whatever happened could have happened one after the other. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Change } from '../../../../../pdp/shared/domain/change.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { effort } from '../../../../support/effort.ts'
import { CONTEXT, type Served, seedAcme, serve } from '../harness.ts'

const ROUNDS = effort({ short: 5, long: 50 })
const AT_ONCE = 5

let served: Served
let admin: string
/** Bound to acme. */
let tenant: string
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  await write(ENVIRONMENT, [
    organization('beta', null),
    { kind: 'role', key: 'nothing', role: { key: 'nothing', name: 'Nothing', permissions: [] } },
    { kind: 'role', key: 'auditor', role: { key: 'auditor', name: 'Auditor', permissions: ['logs:read'] } },
  ])
  admin = await served.manager()
  tenant = await served.manager({ client: 'acme-admin', organization: 'acme' })
})
afterAll(() => served.close())

const write = (log: string, changes: readonly Change[]) => served.store.write(log, changes, { context: CONTEXT })
const organization = (id: string, parent: string | null): Change => ({
  kind: 'organization',
  id,
  organization: { id, name: id, parent },
})

type Request = readonly [method: string, path: string, body?: object, headers?: { readonly [name: string]: string }]
async function send(token: string, [method, path, body, headers = {}]: Request): Promise<number> {
  const options = { token, headers: { ...headers }, ...(body === undefined ? {} : { body }) }
  return (await served.send(method, path, options)).status
}
const isDone = (status: number): boolean => status < 300
/** When the last change of this actor was logged: under the lock that its transaction holds. */
async function loggedAt(log: string, actor: string, like: object): Promise<number> {
  const [row] = await served.sql.query<{ at: number }>(
    `select extract(epoch from max(written_at))::float8 as at from change_log
     where organization_id = $1 and actor = $2 and change @> $3::jsonb`,
    [log, `service:${actor}`, JSON.stringify(like)],
  )
  return row?.at ?? Number.NaN
}

/** What an organization holds. */
async function rowsOf(id: string): Promise<number> {
  const of = (table: string): string => `select from ${table} where organization_id = $1`
  const all = ['relationship', 'membership', 'role_grant', 'entitlement'].map(of).join(' union all ')
  return (await served.sql.query(all, [id])).length
}

/** `breach`: what is wrong after both; undefined when all is well. Names are of the round. */
type Race = {
  readonly what: string
  seed(x: string): Promise<unknown>
  readonly mine: (x: string) => Request
  readonly theirs: (x: string) => Request
  breach(x: string, done: { readonly mine: boolean; readonly theirs: boolean }): Promise<string | undefined>
}

async function play(race: Race, name: string): Promise<void> {
  const outcomes = new Set<string>()
  for (let from = 0; from < ROUNDS; from += AT_ONCE) {
    const rounds = Array.from({ length: AT_ONCE }, async (_, i) => {
      const x = `acme~${name}-${from + i}`
      await race.seed(x)
      const requests = [() => send(tenant, race.mine(x)), () => send(admin, race.theirs(x))]
      // Each is sent first in half of the rounds.
      const statuses = await Promise.all(
        i % 2 === 0 ? requests.map((run) => run()) : requests.toReversed().map((run) => run()),
      )
      const [mine = 0, theirs = 0] = i % 2 === 0 ? statuses : statuses.toReversed()
      for (const status of [mine, theirs]) expect([200, 201, 204, 400, 403, 404, 409, 412]).toContain(status)
      outcomes.add(`${isDone(mine)} ${isDone(theirs)}`)
      expect([x, mine, theirs, await race.breach(x, { mine: isDone(mine), theirs: isDone(theirs) })]).toEqual([
        x,
        mine,
        theirs,
        undefined,
      ])
    })
    await Promise.all(rounds)
  }
  expect([...outcomes]).not.toEqual(['false false'])
}

const member = { role: 'member', status: 'active' }
const within: readonly (readonly [string, (x: string) => Request])[] = [
  ['a member is made', (x) => ['PUT', `/v1/organizations/${x}/members/alice`, member]],
  ['a membership is ended', (x) => ['DELETE', `/v1/organizations/${x}/members/bob`]],
  ['an entitlement is put', (x) => ['PUT', `/v1/organizations/${x}/entitlements/b`, { value: true }]],
  ['an entitlement is deleted', (x) => ['DELETE', `/v1/organizations/${x}/entitlements/a`]],
  ['entitlements are announced', (x) => ['POST', `/v1/organizations/${x}/entitlements:changed`]],
  ['relationships are written', (x) => ['POST', `/v1/organizations/${x}/relationships`, { write: ['a:1#b@user:bob'] }]],
  [
    'a role is granted',
    (x) => ['POST', `/v1/organizations/${x}/role-grants`, { role: 'nothing', subject: 'user:bob' }],
  ],
  ['a grant is taken back', (x) => ['DELETE', `/v1/organizations/${x}/role-grants/g`]],
]

async function seedOrganization(x: string, parent = 'acme'): Promise<void> {
  await write(ENVIRONMENT, [organization(x, parent)])
  await write(x, [
    { kind: 'membership', user: 'bob', membership: { role: 'member', status: 'active' } },
    { kind: 'entitlement', key: 'a', entitlement: { value: { enabled: true }, enforcement: 'DecisionApi' } },
    { kind: 'role_grant', op: 'write', grant: { id: 'g', app: null, role: 'nothing', subject: 'user:alice' } },
  ])
}
const takeAway = (x: string): Request => ['PUT', `/v1/organizations/${x}`, { name: x, parent: 'beta' }]
const seedClient = (x: string) =>
  served.directory.putClient(
    { id: x, app: null, organization: 'acme', metadata: {}, secretHash: 'theirs', secretSetBy: 'acme-admin' },
    CONTEXT,
  )
const client = (rest: object) => ({ grant_types: ['client_credentials'], ...rest })

/** `moved`: the organization itself, or the one above it. */
const raceWithMove = (what: string, mine: Race['mine'], moved: (x: string) => string): Race => ({
  what,
  async seed(x) {
    if (moved(x) !== x) await write(ENVIRONMENT, [organization(moved(x), 'acme')])
    await seedOrganization(x, moved(x) === x ? 'acme' : moved(x))
  },
  mine,
  theirs: (x) => takeAway(moved(x)),
  async breach(x, done) {
    if (!done.theirs) return 'it was not moved'
    if (!done.mine) return undefined
    const away = await loggedAt(ENVIRONMENT, 'admin', { kind: 'organization', id: moved(x) })
    return (await loggedAt(x, 'acme-admin', {})) < away ? undefined : 'it was written after the move'
  },
})

const RACES: readonly Race[] = [
  ...within.flatMap(([what, mine]) => [
    raceWithMove(`${what} in an organization that is moved away`, mine, (x) => x),
    raceWithMove(`${what} in an organization below one that is moved away`, mine, (x) => `${x}-above`),
  ]),
  ...within.map(
    ([what, mine]): Race => ({
      what: `${what} in an organization that is deleted`,
      seed: seedOrganization,
      mine,
      theirs: (x) => ['DELETE', `/v1/organizations/${x}`],
      breach: async (x, { theirs: deleted }) =>
        deleted && (await rowsOf(x)) > 0 ? 'something of it is left, which its successor would have' : undefined,
    }),
  ),
  {
    what: 'an organization is pulled back that is moved away',
    seed: seedOrganization,
    mine: (x) => ['PUT', `/v1/organizations/${x}`, { name: 'mine', parent: 'acme' }],
    theirs: takeAway,
    async breach(x) {
      const parent = await served.sql.query('select parent_id from organization where organization_id = $1', [x])
      return JSON.stringify(parent) === '[{"parent_id":"beta"}]' ? undefined : `it is below ${JSON.stringify(parent)}`
    },
  },
  {
    what: 'an organization is deleted that is moved away',
    seed: seedOrganization,
    mine: (x) => ['DELETE', `/v1/organizations/${x}`],
    theirs: takeAway,
    breach: async (_, { mine, theirs }) => (mine === theirs ? 'both, or neither' : undefined),
  },
  {
    what: 'a client is registered in an organization that is moved away',
    seed: seedOrganization,
    mine: (x) => ['PUT', `/v1/clients/${x}~c`, client({ organization: x })],
    theirs: takeAway,
    async breach(x) {
      const made = await served.directory.client(`${x}~c`)
      return made?.secretHash == null ? undefined : 'the tenant has its secret'
    },
  },
  {
    what: 'a client is changed that another tenant gets',
    seed: seedClient,
    mine: (x) => ['PUT', `/v1/clients/${x}`, client({ organization: 'acme', client_name: 'mine' })],
    theirs: (x) => ['PUT', `/v1/clients/${x}`, client({ organization: 'beta' })],
    async breach(x) {
      const after = await served.directory.client(x)
      if (after?.organization !== 'beta') return `it is of ${after?.organization}`
      return after.secretSetBy === 'admin' ? undefined : 'the tenant has its secret'
    },
  },
  {
    what: 'a client is deleted that another tenant gets',
    seed: seedClient,
    mine: (x) => ['DELETE', `/v1/clients/${x}`],
    theirs: (x) => ['PUT', `/v1/clients/${x}`, client({ organization: 'beta' })],
    breach: async (_, { mine, theirs }) => (mine === theirs ? 'both, or neither' : undefined),
  },
  {
    what: 'a group is joined that gets a role',
    seed: seedOrganization,
    mine: (x) => ['POST', `/v1/organizations/${x}/relationships`, { write: ['group:g#member@user:bob'] }],
    theirs: (x) => ['POST', `/v1/organizations/${x}/role-grants`, { role: 'auditor', subject: 'group:g' }],
    async breach(x, { mine }) {
      if (!mine) return undefined
      const joined = await loggedAt(x, 'acme-admin', { kind: 'tuple' })
      return joined < (await loggedAt(x, 'admin', { kind: 'role_grant' })) ? undefined : 'it had the role already'
    },
  },
  {
    what: 'a role is granted that comes to mean more',
    seed: async (x) => {
      await seedOrganization(x)
      await write(ENVIRONMENT, [{ kind: 'role', key: keyOf(x), role: { key: keyOf(x), name: 'R', permissions: [] } }])
    },
    mine: (x) => ['POST', `/v1/organizations/${x}/role-grants`, { role: keyOf(x), subject: 'user:bob' }],
    theirs: (x) => ['PUT', `/v1/roles/${keyOf(x)}`, { name: 'R', permissions: ['logs:read'] }],
    async breach(x, { mine }) {
      if (!mine) return undefined
      const granted = await loggedAt(x, 'acme-admin', { kind: 'role_grant' })
      const widened = await loggedAt(ENVIRONMENT, 'admin', { kind: 'role', key: keyOf(x) })
      return granted < widened ? undefined : 'the tenant gave what it does not hold'
    },
  },
  {
    what: 'a role is granted that is deleted',
    seed: async (x) => {
      await seedOrganization(x)
      await write(ENVIRONMENT, [{ kind: 'role', key: keyOf(x), role: { key: keyOf(x), name: 'R', permissions: [] } }])
    },
    mine: (x) => ['POST', `/v1/organizations/${x}/role-grants`, { role: keyOf(x), subject: 'user:bob' }],
    theirs: (x) => ['DELETE', `/v1/roles/${keyOf(x)}`],
    breach: async (_, { mine, theirs }) => (mine === theirs ? 'both, or neither' : undefined),
  },
  {
    what: 'a person is made a member who is deleted',
    seed: async (x) => {
      await seedOrganization(x)
      await served.directory.putUser({ id: x, email: null, emailVerified: false, name: null }, CONTEXT)
    },
    mine: (x) => ['PUT', `/v1/organizations/${x}/members/${x}`, member],
    theirs: (x) => ['DELETE', `/v1/users/${x}`],
    breach: async (x) =>
      (await served.sql.query('select from membership where user_id = $1', [x])).length === 0
        ? undefined
        : 'one is left',
  },
]
const keyOf = (x: string): string => `r${x.replace('acme~', '')}`

describe('of two writers at once', () => {
  test.each(RACES.map((race, i) => [race.what, race, `race${i}`] as const))('when %s', (_, race, name) =>
    play(race, name),
  )
})

const issuer = (x: string) => ({
  jwks: { keys: [{ kty: 'OKP' }] },
  algorithms: ['ES256'],
  audience: 'https://api.example',
  subject_prefix: `${x}:`,
  organizations: ['acme'],
})
const PUTS: readonly (readonly [string, (x: string) => string, (x: string, n: number) => object])[] = [
  ['organization', (x) => `/v1/organizations/${x}`, (_, n) => ({ name: `N${n}` })],
  [
    'member',
    (x) => `/v1/organizations/acme/members/${x}`,
    (_, n) => ({ ...member, role: ['owner', 'admin'][n] ?? 'viewer' }),
  ],
  ['user', (x) => `/v1/users/${x}`, (_, n) => ({ name: `N${n}` })],
  ['client', (x) => `/v1/clients/${x}`, (_, n) => client({ client_name: `N${n}` })],
  ['role', (x) => `/v1/roles/${x}`, (_, n) => ({ name: `N${n}`, permissions: [] })],
  ['entitlement', (x) => `/v1/organizations/acme/entitlements/${x}`, (_, n) => ({ value: { n } })],
  ['manifest', (x) => `/v1/apps/${x}/manifest`, (_, n) => ({ permissions: { a: `N${n}` } })],
  ['issuer', (x) => `/v1/trusted-issuers/${x}`, (x, n) => ({ ...issuer(x), claims: { subject: `c${n}` } })],
]

describe('of two who put the same at once', () => {
  test.each(PUTS)('%s: one creates it, and one changes what both have read', async (kind, path, body) => {
    if (kind === 'member') {
      for (let i = 0; i < ROUNDS; i++)
        await served.directory.putUser({ id: `member${i}.`, email: null, emailVerified: false, name: null }, CONTEXT)
    }
    for (let from = 0; from < ROUNDS; from += AT_ONCE) {
      const rounds = Array.from({ length: AT_ONCE }, async (_, i) => {
        const x = `${kind}${from + i}.`
        const both = (headers: { [name: string]: string }, offset: number) =>
          Promise.all([0, 1].map((n) => send(admin, ['PUT', path(x), body(x, n + offset), headers])))
        expect((await both({ 'if-none-match': '*' }, 0)).toSorted()).toEqual([201, 412])
        const again = await served.send('PUT', path(x), { token: admin, body: body(x, 9) })
        const tag = String(again.headers.get('etag'))
        expect((await both({ 'if-match': tag }, 0)).toSorted()).toEqual([200, 412])
      })
      await Promise.all(rounds)
    }
  })
})
