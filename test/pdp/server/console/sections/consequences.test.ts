/** Who gains and who loses by a change of relationships: nothing is called whole that was not looked at. */
import { beforeEach, expect, test } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../../pdp/engine/store/memory/memory.ts'
import { consequencesOf } from '../../../../../pdp/server/console/sections/consequences.ts'
import { lostAccess } from '../../../../../pdp/server/console/sections/lost-access.ts'
import type { ConsoleVisit } from '../../../../../pdp/server/console/visit.ts'
import type { Change } from '../../../../../pdp/shared/domain/change.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { context, drop, given, grant, member, organization, put, tuple } from '../../../../support/tuples.ts'

const NOT_WHOLE = 'Not everything was looked at'

let nowMs = Date.parse('2026-11-28T10:00:00Z')
let store: Store
let pdp: ReturnType<typeof createPdp>
beforeEach(async () => {
  store = memoryStore({ clock: () => nowMs })
  pdp = createPdp({ store })
  await given(store, ENVIRONMENT, organization('acme'))
})
/** Somebody with these scopes in acme. */
const visitWith = (...scopes: readonly string[]): ConsoleVisit => {
  const may = (scope: string): boolean => scopes.includes(scope)
  const page = { url: null, query: () => '', tables: new Map() }
  const part = { ...page, deps: { management: { pdp, store } }, organization: 'acme', may, mayEverywhere: () => false }
  return part as unknown as ConsoleVisit
}
type Proposed = Parameters<typeof consequencesOf>[1]['changes'][number]
const preview = async (...changes: readonly Proposed[]): Promise<string> =>
  (await consequencesOf(visitWith('decisions:read'), { log: 'acme', changes })).toString()
const shown = (op: 'write' | 'delete', ...tuples: readonly string[]): Promise<string> =>
  preview(...tuples.map((one): Proposed => ({ kind: 'tuple', op, tuple: tuple(one) })))
const text = (page: string): string => page.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')

test('a relationship of a type without a model is a gain as well', async () => {
  expect(text(await shown('write', 'thing:1#reader@user:bob'))).toMatch(/\+ gains user:bob reader thing:1/)
})

test('who loses through a set of a type without a model is named', async () => {
  await given(store, 'acme', put('thing:1#reader@team:a#member'), put('team:a#member@user:bob'))
  const page = text(await shown('delete', 'team:a#member@user:bob'))
  expect(page).toMatch(/− loses user:bob member team:a/)
  expect(page).toMatch(/− loses user:bob reader thing:1/)
  expect(page).not.toContain(NOT_WHOLE)
})

const ROLES: Change = {
  kind: 'manifest',
  manifest: {
    app: 'docs',
    audiences: [],
    permissions: { 'docs:sign': 'Sign' },
    roles: { signer: { name: 'Signer', permissions: ['docs:sign'] } },
    model: 'model\n  schema 1.1\ntype user\ntype doc\n  relations\n    define viewer: [user]\n',
  },
}

test('who joins a group gains the permissions of its roles, and who leaves loses them, through groups within groups', async () => {
  await given(store, ENVIRONMENT, ROLES)
  await given(store, 'acme', grant('g1', 'signer', 'group:staff', 'docs'), put('group:staff#member@group:legal#member'))
  const joins = text(await shown('write', 'group:legal#member@user:bob'))
  expect(joins).toMatch(/\+ gains user:bob docs:sign organization:acme/)
  expect(joins).not.toContain(NOT_WHOLE)
  await given(store, 'acme', put('group:legal#member@user:bob'))
  expect(text(await shown('delete', 'group:legal#member@user:bob'))).toMatch(/− loses user:bob docs:sign/)
  await given(store, 'acme', grant('g2', 'signer', 'user:bob', 'docs'))
  expect(text(await shown('delete', 'group:legal#member@user:bob'))).not.toMatch(/docs:sign/)
})

test('a role that is given to a group, or taken from it, is told for each of its members', async () => {
  await given(store, ENVIRONMENT, ROLES)
  await given(store, 'acme', put('group:staff#member@user:bob'), put('group:staff#member@user:eve'))
  const given1 = grant('g1', 'signer', 'group:staff', 'docs') as Proposed
  expect(text(await preview(given1))).toMatch(/2 gained, 0 lost .*user:bob docs:sign .*user:eve docs:sign/)
  await given(store, 'acme', given1)
  expect(text(await preview({ ...given1, op: 'delete' } as Proposed))).toMatch(/0 gained, 2 lost/)
})

test('a suspension takes the tier, roles and relationships, and its end gives them back', async () => {
  await given(store, ENVIRONMENT, ROLES)
  await given(
    store,
    'acme',
    member('bob', 'admin'),
    grant('g1', 'signer', 'user:bob', 'docs'),
    put('doc:1#viewer@user:bob'),
    put('thing:1#reader@user:bob'),
  )
  const suspended = member('bob', 'admin', 'suspended') as Proposed
  const page = text(await preview(suspended))
  for (const lost of ['admin organization:acme', 'docs:sign organization:acme', 'viewer doc:1', 'reader thing:1'])
    expect(page).toContain(`− loses user:bob ${lost}`)
  await given(store, 'acme', suspended)
  expect(text(await preview(member('bob', 'admin') as Proposed))).toMatch(/4 gained, 0 lost/)
})

test('a role that counts everywhere is told for the organization in view alone', async () => {
  await given(store, ENVIRONMENT, ROLES)
  const changes = [grant('g1', 'signer', 'user:bob', 'docs') as Proposed]
  const page = (await consequencesOf(visitWith('decisions:read'), { log: ENVIRONMENT, changes })).toString()
  expect(text(page)).toMatch(/at least 1 gained/)
})

test('somebody who may not ask about others reads that this is not shown, and nothing of it', async () => {
  const changes = [put('thing:1#reader@user:bob') as Proposed]
  const shown = (await consequencesOf(visitWith('relationships:write'), { log: 'acme', changes })).toString()
  expect([shown.includes('portcullis:decisions:read'), shown.includes('bob')]).toEqual([true, false])
})

test('who may read changes alone sees no members of a group, and no answer of now', async () => {
  await given(store, 'acme', put('thing:1#reader@group:staff#member'), put('group:staff#member@user:bob'))
  nowMs += 1_000
  const { position } = await store.write('acme', [drop('thing:1#reader@group:staff#member')], { context })
  const range = { log: 'acme', from: position.revision - 1, to: position.revision }
  const entries = (await store.entries([range], 10)).filter(({ revision }) => revision === position.revision)
  const auditor = text((await lostAccess(visitWith('audit:read'), entries)).toString())
  expect(auditor).toContain('group:staff#member')
  expect(auditor).not.toMatch(/bob|allowed|denied/)
  expect(text((await lostAccess(visitWith('audit:read', 'decisions:read'), entries)).toString())).toMatch(/bob.*denied/)
})
