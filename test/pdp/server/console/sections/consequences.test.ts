/** Who gains and who loses by a change of relationships: nothing is called whole that was not looked at. */
import { beforeEach, expect, test } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../../pdp/engine/store/memory/memory.ts'
import { consequencesOf } from '../../../../../pdp/server/console/sections/consequences.ts'
import { lostAccess } from '../../../../../pdp/server/console/sections/lost-access.ts'
import type { ConsoleVisit } from '../../../../../pdp/server/console/visit.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { parseTuple } from '../../../../../pdp/shared/domain/names.ts'
import { context, given, grant, organization, put } from '../../../../support/tuples.ts'

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
  const part = { deps: { management: { pdp, store } }, organization: 'acme', may, mayEverywhere: () => false }
  return part as unknown as ConsoleVisit
}
const shown = async (op: 'write' | 'delete', ...tuples: readonly string[]): Promise<string> =>
  (await consequencesOf(visitWith('decisions:read'), { op, tuples: tuples.map(parseTuple) })).toString()
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

test('a group that holds a role gives more than relationships', async () => {
  await given(store, 'acme', put('group:staff#member@user:bob'))
  expect(await shown('delete', 'group:staff#member@user:bob')).not.toContain(NOT_WHOLE)
  await given(store, 'acme', grant('g1', 'signer', 'group:staff', 'docs'))
  expect(await shown('delete', 'group:staff#member@user:bob')).toContain(NOT_WHOLE)
})

test('nothing is told to somebody who may not ask about others', async () => {
  const proposal = { op: 'write' as const, tuples: [parseTuple('thing:1#reader@user:bob')] }
  expect((await consequencesOf(visitWith('relationships:write'), proposal)).toString()).toBe('')
})

test('who may read changes alone sees no members of a group, and no answer of now', async () => {
  await given(store, 'acme', put('thing:1#reader@group:staff#member'), put('group:staff#member@user:bob'))
  const tuple = { ...parseTuple('thing:1#reader@group:staff#member'), expiresAtMs: null }
  nowMs += 1_000
  const { position } = await store.write('acme', [{ kind: 'tuple', op: 'delete', tuple }], { context })
  const range = { log: 'acme', from: position.revision - 1, to: position.revision }
  const entries = (await store.entries([range], 10)).filter(({ revision }) => revision === position.revision)
  const auditor = text((await lostAccess(visitWith('audit:read'), entries)).toString())
  expect(auditor).toContain('group:staff#member')
  expect(auditor).not.toMatch(/bob|allowed|denied/)
  expect(text((await lostAccess(visitWith('audit:read', 'decisions:read'), entries)).toString())).toMatch(/bob.*denied/)
})
