/** A write of relationships is undone to what the log says was there, with its end, or not offered at all. */
import { beforeEach, expect, test } from 'vitest'
import type { Store } from '../../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../../pdp/engine/store/memory/memory.ts'
import { inverseOf } from '../../../../../pdp/server/console/sections/undo.ts'
import type { Change } from '../../../../../pdp/shared/domain/change.ts'
import { context, given } from '../../../../support/tuples.ts'

const END = Date.parse('2099-01-01T00:00:00Z')
const tuple = (op: 'write' | 'delete', object: string, expiresAtMs: number | null = null): Change => ({
  kind: 'tuple',
  op,
  tuple: { object, relation: 'viewer', subject: 'user:bob', expiresAtMs },
})

let store: Store
const write = async (...changes: readonly Change[]): Promise<number> =>
  (await store.write('acme', changes, { context })).position.revision
const undo = (revision: number, actor = context.actor) => inverseOf(store, { log: 'acme', revision, actor })
beforeEach(async () => {
  store = memoryStore({ clock: () => 0 })
  await given(store, 'acme')
})

test('what was new is deleted', async () => {
  const inverse = await undo(await write(tuple('write', 'doc:1'), tuple('write', 'doc:2')))
  expect([inverse?.op, inverse?.tuples.map(({ object }) => object)]).toEqual(['delete', ['doc:1', 'doc:2']])
})

test('what was deleted comes back with the end that it had, whatever the deletion said', async () => {
  await write(tuple('write', 'doc:1', END))
  expect(await undo(await write(tuple('delete', 'doc:1')))).toMatchObject({
    op: 'write',
    tuples: [{ object: 'doc:1', expiresAtMs: END }],
  })
})

test('another end is undone to the one before', async () => {
  await write(tuple('write', 'doc:1', END))
  expect(await undo(await write(tuple('write', 'doc:1')))).toMatchObject({
    op: 'write',
    tuples: [{ object: 'doc:1', expiresAtMs: END }],
  })
})

test('nothing is offered for the write of somebody else', async () => {
  expect(await undo(await write(tuple('write', 'doc:1')), 'user:somebody')).toBeNull()
})

test('nothing is offered where one operation cannot undo all', async () => {
  await write(tuple('write', 'doc:1'))
  expect(await undo(await write(tuple('delete', 'doc:1'), tuple('write', 'doc:2')))).toBeNull()
})

test('nothing is offered for a write of anything else, of too many, or that was not', async () => {
  const membership: Change = { kind: 'membership', user: 'bob', membership: { role: 'member', status: 'active' } }
  expect(await undo(await write(membership))).toBeNull()
  expect(await undo(await write(...Array.from({ length: 51 }, (_, i) => tuple('write', `doc:${i}`))))).toBeNull()
  expect(await undo(999)).toBeNull()
})
