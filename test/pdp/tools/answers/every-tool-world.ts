/** A world of two apps whose decision log has every kind of answer, and who asks in it. */

import { hashGeneratedSecret } from '../../../../pdp/identity/people/passwords/password-hash.ts'
import type { Change } from '../../../../pdp/shared/domain/change.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { parseTuple } from '../../../../pdp/shared/domain/names.ts'
import { ACCESS_TOKEN, createFlows, EXCHANGE } from '../../identity/flows.ts'
import { API, CONTEXT, postToken, SECRET } from '../../identity/harness.ts'
import type { RunningWorld } from '../../server/runtime/running-world.ts'

const MODEL = `model
  schema 1.1
type user
type service
type group
  relations
    define member: [user, service, group#member]
type organization
  relations
    define auditor: [user]
type doc
  relations
    define banned: [user]
    define owner: [user, service]
    define viewer: ([user, user:*, service, group#member, user with at_office] or owner) but not banned
condition at_office(ip: string) {
  ip == "203.0.113.7"
}
`
const TUPLES = [
  'doc:1#viewer@user:ann',
  'doc:2#viewer@group:finance#member',
  'group:finance#member@group:staff#member',
  'group:staff#member@user:eve',
  'doc:4#owner@user:ann',
  'doc:4#banned@user:ann',
  'doc:5#viewer@user:*',
  'doc:6#owner@user:eve',
  'doc:6#owner@service:bot',
  'doc:7#viewer@user:eve',
  'doc:8#viewer@user:bob',
  'doc:9#viewer@user:cy',
  'doc:10#viewer@service:robot',
  'thing:1#user@user:eve',
  'organization:acme#auditor@user:eve',
  'service:bot#acts_for@user:eve',
  'service:left#acts_for@user:eve',
  'doc:6#owner@service:left',
]
/** Each as a request asks it. */
export const CHECKS = [
  ...Array.from({ length: 12 }, (_, i) => ['viewer', `doc:${i + 1}`] as const),
  ['owner', 'doc:4'],
  ['vewer', 'doc:1'],
  ['user', 'thing:1'],
  ['viewer', 'thing:2'],
  ['member', 'group:finance'],
  ['developer', 'organization:acme'],
  ['active_member', 'organization:acme'],
  ['auditor', 'organization:acme'],
  ['invoices:approve', 'organization:acme'],
  ['invoices:approve', 'app:invoices'],
  ['bills:pay', 'organization:acme'],
  ['bills:pay', 'app:bills'],
  ['shared:run', 'organization:acme'],
  ['logs:read', 'organization:acme'],
  ['logs:raed', 'organization:acme'],
  ['viewer', 'organization:beta'],
] as const

export async function fillWorld({ store, directory }: RunningWorld): Promise<void> {
  const write = (log: string, changes: readonly Change[]) => store.write(log, changes, { context: CONTEXT })
  const manifest = (app: string, own: string, audience: string, model: string | null): Change => ({
    kind: 'manifest',
    manifest: {
      app,
      audiences: [audience],
      permissions: { [own]: 'Own', 'shared:run': 'Run' },
      roles: { doer: { name: 'Doer', permissions: [own, 'shared:run'] } },
      model,
      ...(model !== null && { actors: 'both' as const }),
    },
  })
  await write(ENVIRONMENT, [manifest('invoices', 'invoices:approve', API, MODEL)])
  await write(ENVIRONMENT, [manifest('bills', 'bills:pay', 'https://bills.example', null)])
  const grant = (id: string, role: string, subject: string, app: string | null): Change => ({
    kind: 'role_grant',
    op: 'write',
    grant: { id, app, role, subject },
  })
  const tuple = (text: string, more: object = {}): Change => ({
    kind: 'tuple',
    op: 'write',
    tuple: { ...parseTuple(text), expiresAtMs: null, ...more },
  })
  await write('acme', [
    grant('d1', 'doer', 'user:ann', 'invoices'),
    grant('d2', 'doer', 'user:eve', 'bills'),
    grant('d3', 'doer', 'group:finance', 'invoices'),
    grant('d4', 'doer', 'service:robot', 'invoices'),
    ...TUPLES.map((text) => tuple(text)),
    tuple('doc:3#viewer@user:ann', { expiresAtMs: Date.now() - 1_000 }),
    tuple('doc:11#viewer@user:eve', { condition: { name: 'at_office', context: {} } }),
    tuple('doc:12#viewer@user:eve', { condition: { name: 'at_office', context: { ip: '203.0.113.7' } } }),
  ])
  await write(ENVIRONMENT, [grant('root', 'administrator', 'user:dan', 'portcullis')])
  await write('beta', [{ kind: 'membership', user: 'dan', membership: { role: 'viewer', status: 'active' } }])
  const secretHash = hashGeneratedSecret(SECRET)
  const bot = { grant_types: [EXCHANGE], scope: 'orders:read', exchange_clients: ['flows'], exchange_resources: [API] }
  for (const id of ['bot', 'left'])
    await directory.putClient({ id, app: null, organization: null, metadata: bot, secretHash }, CONTEXT)
}

export async function readerToken(world: RunningWorld, id = 'free-robot'): Promise<string> {
  const form = { grant_type: 'client_credentials', scope: 'decisions:read', organization: 'acme' }
  return String((await postToken(world, form, { id })).body.access_token)
}

export type Bearer = {
  /** Of the request in whose name it asks. */
  readonly id: string
  readonly token: string
  /** Null: the bearer itself. */
  readonly subject: { readonly type: string; readonly id: string; readonly relation: string } | null
  readonly isForApi: boolean
}

/** Whoever may ask, and about whom. One agent has lost its delegation since it got its token. */
export async function bearersOf(world: RunningWorld): Promise<readonly Bearer[]> {
  const flows = createFlows(world)
  const person = async (id: string, more: object) =>
    (await flows.code({ person: id, organization: 'acme', ...more })).tokens.access_token
  const eve = await person('eve', { client: 'flows', resource: API })
  const exchanged = async (id: string): Promise<string> => {
    const form = { grant_type: EXCHANGE, subject_token_type: ACCESS_TOKEN, subject_token: eve, resource: API }
    return String((await postToken(world, form, { id })).body.access_token)
  }
  const reader = await readerToken(world)
  const robot = await readerToken(world, 'robot')
  const bearers: readonly (readonly [id: string, token: string, subject?: string])[] = [
    ['ann-of-the-app', await person('ann', { client: 'flows', resource: API })],
    ['ann-of-no-app', await person('ann', { client: 'public-flows' })],
    ['eve-of-the-app', eve],
    ['eve-of-no-app', await person('eve', { client: 'public-flows' })],
    ['agent', await exchanged('bot')],
    ['former-agent', await exchanged('left')],
    ['robot', robot],
    ['asked-by-the-app', robot, 'user:ann'],
    ['suspended', reader, 'user:bob'],
    ['no-member', reader, 'user:cy'],
    ['group', reader, 'group:finance#member'],
    ['everybody', reader, 'user:*'],
    ['unknown', reader, 'user:nobody'],
  ]
  const delegation = { ...parseTuple('service:left#acts_for@user:eve'), expiresAtMs: null }
  await world.store.write('acme', [{ kind: 'tuple', op: 'delete', tuple: delegation }], { context: CONTEXT })
  return bearers.map(([id, token, subject]) => {
    const [, type = '', name = '', relation = ''] = /^(.+?):([^#]+)#?(.*)$/.exec(subject ?? '') ?? []
    const named = subject === undefined ? null : { type, id: name, relation }
    return { id, token, subject: named, isForApi: /-the-app$|agent$/.test(id) && named === null }
  })
}
