/** Entries that arrive without a revision: writers do not wait for each other, and none is answered before its entry counts. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import { appendArrivals, numberArrivals } from '../../../../pdp/engine/store/arrivals.ts'
import { appendJournal } from '../../../../pdp/engine/store/postgres/journal.ts'
import { appendEvents } from '../../../../pdp/engine/store/postgres/outbox.ts'
import { openPostgres } from '../../../../pdp/engine/store/postgres/postgres.ts'
import { createRevocations, type Revocations } from '../../../../pdp/identity/issuer/tokens/revocation.ts'
import { startArrivals } from '../../../../pdp/server/runtime/arrivals.ts'
import type { Pdp } from '../../../../pdp/shared/domain/decision.ts'
import { DIRECTORY, ENVIRONMENT, type JournalId, TOKENS } from '../../../../pdp/shared/domain/journal.ts'
import { revocationKey } from '../../../../pdp/shared/domain/revocation.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { createLog } from '../../../../pdp/shared/process/log.ts'
import { openTestDatabase, type TestDatabase } from '../../../support/database.ts'
import { context, given, put } from '../../../support/tuples.ts'

let database: TestDatabase
let node: Awaited<ReturnType<typeof openPostgres>>
let revocations: Revocations
let pdp: Pdp

beforeEach(async () => {
  database = await openTestDatabase()
  node = await openPostgres({ connectionString: database.connectionString })
  revocations = createRevocations({ sql: node.sql, appendEvents, clock: Date.now })
  pdp = createPdp({ store: node.store })
  await given(node.store, 'acme', put('doc:1#viewer@user:ann'))
})
afterEach(async () => {
  await node.close()
  await database.drop()
})

const ended = (id: string) => ({ kind: 'token', by: 'grant', id }) as const
const isEnded = async (id: string): Promise<boolean> => {
  const asked = {
    organization: 'acme',
    subject: user('ann'),
    permissions: [],
    revocationKeys: [revocationKey('grant', id)],
  }
  return (await pdp.decide(asked)).tokenRevoked
}
type Entry = { revision: number; seq: number; write_id: string; id: string; actor: string }
const entries = (log: JournalId = TOKENS) =>
  node.sql.query<Entry>(
    `select revision, seq, write_id::text as write_id, change ->> 'id' as id, actor from change_log
     where organization_id = $1 order by revision, seq`,
    [log],
  )
const position = async (log: JournalId) => (await node.store.vector([log])).logs.get(log)
/** As a writer leaves it who was killed after the commit. */
const leave = (log: JournalId, ids: readonly string[]) =>
  node.sql.query(
    `insert into log_arrival (organization_id, change, actor, request_id)
     select $1, jsonb_build_object('kind', 'token', 'by', 'grant', 'id', id), 'killed', '' from unnest($2::text[]) id`,
    [log, ids],
  )

test('who ends tokens does not wait for who is ending others', async () => {
  await node.sql.transaction(async (tx) => {
    await revocations.endUser(tx, 'ann', context)
    await appendArrivals(tx, TOKENS, [ended('slow')], context)
    await revocations.endGrant('quick', context)
    expect(await isEnded('quick')).toBe(true)
    expect(await isEnded('slow')).toBe(false)
  })
  expect(await isEnded('slow')).toBe(true)
})

test('the next decision refuses what a call has ended, for each of many that end at once', async () => {
  const ids = Array.from({ length: 48 }, (_, n) => `g${n}`)
  const left = ids.values()
  // No more callers than there are connections: on a busy machine others would wait too long for one.
  const callers = Array.from({ length: 6 }, async () => {
    for (const id of left) {
      await revocations.endGrant(id, context)
      expect(await isEnded(id)).toBe(true)
    }
  })
  await Promise.all(callers)
  const found = await entries()
  expect(found.map(({ id }) => id).sort()).toEqual([...ids].sort())
  expect((await position(TOKENS))?.revision).toBe(found.at(-1)?.revision)
})

test.each<[string, (id: string) => Promise<unknown>]>([
  ['a grant that somebody else has ended', () => revocations.endReused({ kind: 'RefreshToken', key: 'gone' }, context)],
  ['a session that somebody else has ended', () => revocations.revokeSession('gone', context)],
  ['a member who has no grant any more', () => revocations.endMember({ organization: 'acme', user: 'ann' }, context)],
  ['a person who has no grant any more', () => revocations.revokeUser('ann', context)],
])('a call about %s is answered after the entry of who ended it counts', async (_, call) => {
  await leave(TOKENS, ['before'])
  await call('before')
  expect(await isEnded('before')).toBe(true)
})

test('another process gives a revision to the entry of one that was killed', async () => {
  await leave(TOKENS, ['killed'])
  const stop = startArrivals({ sql: node.sql, log: createLog({ service: 'test', level: 'silent' }), intervalMs: 5 })
  await expect.poll(() => isEnded('killed')).toBe(true)
  await stop()
})

test('a writer that holds the log puts its entry after all that arrived before, as one of an earlier version does', async () => {
  await leave(TOKENS, ['first', 'second'])
  const revision = await node.sql.transaction((tx) => appendJournal(tx, TOKENS, [ended('third')], context))
  const found = await entries()
  expect(found.map(({ id, revision: at, seq }) => [id, at, seq])).toEqual([
    ['first', 1, 1],
    ['second', 1, 2],
    ['third', 2, 1],
  ])
  expect(await position(TOKENS)).toMatchObject({ revision, writeId: found.at(-1)?.write_id })
  expect(await isEnded('first')).toBe(true)
})

test('thousands that arrive are revisions without gaps that a cache can follow, each with a write id of its own', async () => {
  expect(await isEnded('g0')).toBe(false)
  await leave(
    TOKENS,
    Array.from({ length: 5_600 }, (_, n) => `g${n}`),
  )
  await numberArrivals(node.sql, TOKENS)
  const found = await entries()
  expect(found).toHaveLength(5_600)
  const revisions = Map.groupBy(found, ({ revision }) => revision)
  expect([...revisions.keys()]).toEqual(Array.from({ length: 12 }, (_, n) => n + 1))
  for (const of of revisions.values()) {
    expect(of.length).toBeLessThanOrEqual(500)
    expect(of.map(({ seq }) => seq)).toEqual(of.map((_, n) => n + 1))
    expect(new Set(of.map(({ write_id: writeId }) => writeId)).size).toBe(1)
  }
  expect(new Set(found.map(({ write_id: writeId }) => writeId)).size).toBe(12)
  expect(await position(TOKENS)).toMatchObject({ revision: 12, writeId: found.at(-1)?.write_id })
  expect(await isEnded('g5599')).toBe(true)
})

test('nothing that arrives leaves the log where it is', async () => {
  await revocations.endGrant('one', context)
  const before = await position(TOKENS)
  await numberArrivals(node.sql, TOKENS)
  await revocations.revokeUser('ann', context)
  expect(await position(TOKENS)).toEqual(before)
})

test('entries of one log never get a revision of another', async () => {
  await leave(DIRECTORY, ['person'])
  await revocations.endGrant('one', context)
  expect((await entries()).map(({ id }) => id)).toEqual(['one'])
  expect(await entries(DIRECTORY)).toEqual([])
})

test('a transaction that is undone leaves no entry', async () => {
  const undone = node.sql.transaction(async (tx) => {
    await appendArrivals(tx, TOKENS, [ended('undone')], context)
    throw new Error('undone')
  })
  await expect(undone).rejects.toThrow('undone')
  await numberArrivals(node.sql, TOKENS)
  expect(await entries()).toEqual([])
})

test('a log whose writers need its lock takes no entries without a revision', async () => {
  for (const log of [ENVIRONMENT, 'acme'])
    await expect(node.sql.transaction((tx) => appendArrivals(tx, log, [ended('x')], context))).rejects.toThrow()
})

test('what is ended within a unit of work counts when the unit is answered, and not before', async () => {
  await node.atomically({ logs: [DIRECTORY, TOKENS] }, async ({ sql }) => {
    await createRevocations({ sql, appendEvents, clock: Date.now }).endGrant('inner', context)
    expect(await isEnded('inner')).toBe(false)
  })
  expect(await isEnded('inner')).toBe(true)
})
