/** A write is undone to what the log says was there, with its end, or not offered at all. */
import { beforeEach, expect, test } from 'vitest'
import type { Store } from '../../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../../pdp/engine/store/memory/memory.ts'
import { inverseOf, revisionOf } from '../../../../../pdp/server/console/sections/undo.ts'
import type { Change } from '../../../../../pdp/shared/domain/change.ts'
import { context, gate, given, grant, member } from '../../../../support/tuples.ts'

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
  expect(await undo(await write(tuple('write', 'doc:1'), tuple('write', 'doc:2')))).toEqual([
    tuple('delete', 'doc:1'),
    tuple('delete', 'doc:2'),
  ])
})

test('what was deleted comes back with the end that it had, whatever the deletion said', async () => {
  await write(tuple('write', 'doc:1', END))
  expect(await undo(await write(tuple('delete', 'doc:1')))).toEqual([tuple('write', 'doc:1', END)])
})

test('another end is undone to the one before', async () => {
  await write(tuple('write', 'doc:1', END))
  expect(await undo(await write(tuple('write', 'doc:1')))).toEqual([tuple('write', 'doc:1', END)])
})

test('nothing is offered for the write of somebody else', async () => {
  expect(await undo(await write(tuple('write', 'doc:1')), 'user:somebody')).toBeNull()
})

test('each change of a write has its own inverse', async () => {
  await write(tuple('write', 'doc:1'))
  expect(await undo(await write(tuple('delete', 'doc:1'), tuple('write', 'doc:2')))).toEqual([
    tuple('write', 'doc:1'),
    tuple('delete', 'doc:2'),
  ])
})

test('a membership goes back to its tier and status, or to none', async () => {
  const before = member('bob', 'admin')
  const joined = await write(before)
  expect(await undo(await write(member('bob', 'viewer', 'suspended')))).toEqual([before])
  expect(await undo(joined)).toEqual([{ kind: 'membership', user: 'bob', membership: null }])
})

test('a role that was given is taken back, and one that was taken is given back', async () => {
  const given = grant('g1', 'signer', 'user:bob')
  const taken = { ...given, op: 'delete' }
  expect(await undo(await write(given))).toEqual([taken])
  expect(await undo(await write(taken as Change))).toEqual([given])
})

test('the write of a request is found by its id, and no other', async () => {
  const revision = await write(tuple('write', 'doc:1'))
  expect(await revisionOf(store, { log: 'acme', requestId: context.requestId })).toBe(revision)
  expect(await revisionOf(store, { log: 'acme', requestId: 'another' })).toBeNull()
})

test('nothing is offered for a write of anything else, of too many, or that was not', async () => {
  expect(await undo(await write(gate('feature.x', true)))).toBeNull()
  expect(await undo(await write(...Array.from({ length: 51 }, (_, i) => tuple('write', `doc:${i}`))))).toBeNull()
  expect(await undo(999)).toBeNull()
})
