/** Somebody in thousands of organizations is deleted: shut out at once, and everywhere gone after some pieces, whoever does them. */
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Directory } from '../../../../../pdp/engine/store/directory.ts'
import { postgresDirectory } from '../../../../../pdp/engine/store/postgres/directory.ts'
import { openPostgres } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import { startDepartures } from '../../../../../pdp/server/runtime/departures.ts'
import { DIRECTORY, TOKENS } from '../../../../../pdp/shared/domain/journal.ts'
import { createLog } from '../../../../../pdp/shared/process/log.ts'
import { openTestDatabase, type TestDatabase } from '../../../../support/database.ts'
import { calls, openStatementCounter } from '../../../../support/statements.ts'
import { context } from '../../../../support/tuples.ts'

const MANY = 5_200
type Node = Awaited<ReturnType<typeof openPostgres>> & { readonly directory: Directory }

let database: TestDatabase
let node: Node
let ends: (() => Promise<unknown>)[]

const openNode = async (): Promise<Node> => {
  const opened = await openPostgres({ connectionString: database.connectionString })
  ends.unshift(() => opened.close())
  return { ...opened, directory: postgresDirectory(opened.sql) }
}

beforeEach(async () => {
  ends = []
  database = await openTestDatabase()
  node = await openNode()
})
afterEach(async () => {
  for (const end of ends) await end()
  await database.drop()
})

/** A user of this id, with as many memberships in organizations of their own. */
async function member(user: string, count: number): Promise<void> {
  await node.directory.putUser({ id: user, email: null, emailVerified: false, name: user }, context)
  const statements = [
    `insert into revision (organization_id, revision, write_id) select o, 1, 1 from own`,
    `insert into organization (organization_id, name) select o, o from own`,
    `insert into membership (organization_id, user_id, role, status) select o, $1, 'member', 'active' from own`,
  ]
  const own = `with own as (select $1 || '-' || lpad(n::text, 6, '0') as o from generate_series(1, $2::int) n)`
  for (const statement of statements) {
    const [insert, from] = statement.split(' select ')
    await node.sql.query(`${insert} ${own} select ${from}`, [user, count])
  }
}

const left = async (user: string): Promise<number> =>
  (await node.sql.query('select 1 from membership where user_id = $1', [user])).length
const isDone = async (): Promise<boolean> => (await node.sql.query('select 1 from departure')).length === 0

/** Beginning at once and going on as long as the test. */
const start = (on: Pick<Node, 'sql'>): void =>
  void ends.unshift(
    startDepartures({ sql: on.sql, log: createLog({ service: 'test', level: 'silent' }), intervalMs: 10 }),
  )

describe('the deletion of a person with thousands of memberships', () => {
  test('takes as many statements as that of one with a hundred, and shuts out at once', async () => {
    await member('few', 100)
    await member('many', MANY)
    const counter = await openStatementCounter(database.connectionString)
    ends.unshift(() => counter.close())
    const remove = (user: string) =>
      counter.during(async () => expect(await node.directory.deleteUser(user, context)).toBe(true))
    const few = calls(await remove('few'))
    expect(calls(await remove('many'))).toBe(few)
    expect(await node.directory.user('many')).toBeNull()
    const [token] = await node.sql.query<{ change: object }>(
      'select change from change_log where organization_id = $1 order by revision desc limit 1',
      [TOKENS],
    )
    expect(token?.change).toEqual({ kind: 'token', by: 'user', id: 'many' })
    expect(await left('many')).toBeGreaterThan(5_000)
  })

  test('ends all of them, each in the log of its organization and with one event', async () => {
    await member('ann', MANY)
    await node.directory.deleteUser('ann', context)
    start(node)
    await expect.poll(isDone, { timeout: 60_000 }).toBe(true)
    expect(await left('ann')).toBe(0)
    const logged = await node.sql.query<{ revision: number; change: object; actor: string }>(
      "select revision, change, actor from change_log where organization_id like 'ann-%'",
    )
    expect(logged).toHaveLength(MANY)
    const entry = { revision: 2, change: { kind: 'membership', user: 'ann', membership: null }, actor: context.actor }
    expect(new Set(logged.map((one) => JSON.stringify(one)))).toEqual(new Set([JSON.stringify(entry)]))
    const events = await node.sql.query<{ organization_id: string }>(
      `select organization_id from outbox_arrival where type = 'claims.changed' union all
       select organization_id from outbox where type = 'claims.changed'`,
    )
    expect([events.length, new Set(events.map((event) => event.organization_id)).size]).toEqual([MANY, MANY])
  })

  test('goes on by another node, where the connection of the first broke in the middle of a piece', async () => {
    await member('ann', 400)
    await node.directory.deleteUser('ann', context)
    // The piece waits here, with half of its locks.
    const writer = new pg.Client({ connectionString: database.connectionString })
    await writer.connect()
    await writer.query('begin')
    await writer.query("select 1 from revision where organization_id = 'ann-000080' for update")
    const first = await openNode()
    start(first)
    const cut = () =>
      node.sql.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'`,
      )
    const before = await left('ann')
    await expect.poll(async () => (await cut()).length).toBe(1)
    await ends.shift()?.()
    expect(await left('ann')).toBe(before)
    await writer.query('rollback')
    await writer.end()
    start(await openNode())
    await expect.poll(isDone).toBe(true)
    expect(await left('ann')).toBe(0)
    const entries = await node.sql.query("select 1 from change_log where organization_id like 'ann-%'")
    expect(entries).toHaveLength(400)
  })

  test('is shared by two nodes, and ends each membership once', async () => {
    for (const user of ['ann', 'ben', 'cid']) {
      await member(user, 300)
      await node.directory.deleteUser(user, context)
    }
    for (const one of [node, await openNode(), await openNode()]) start(one)
    await expect.poll(isDone).toBe(true)
    for (const user of ['ann', 'ben', 'cid']) {
      expect([user, await left(user)]).toEqual([user, 0])
      expect(
        await node.sql.query('select 1 from change_log where starts_with(organization_id, $1)', [`${user}-`]),
      ).toHaveLength(300)
    }
  })

  test('keeps nobody else waiting where one organization does not let it go on', async () => {
    await member('ann', 120)
    await member('ben', 120)
    for (const user of ['ann', 'ben']) await node.directory.deleteUser(user, context)
    const writer = new pg.Client({ connectionString: database.connectionString })
    await writer.connect()
    await writer.query('begin')
    await writer.query("select 1 from revision where organization_id = 'ann-000110' for update")
    start(node)
    await expect.poll(() => left('ben'), { timeout: 30_000 }).toBe(0)
    expect(await left('ann')).toBeGreaterThan(0)
    await writer.query('rollback')
    await writer.end()
    await expect.poll(() => left('ann'), { timeout: 30_000 }).toBe(0)
  })

  test.each([
    [
      "insert into relationship (organization_id, object, relation, subject) values ($1, 'doc:1', 'viewer', 'user:ann')",
    ],
    ["insert into role_grant (organization_id, grant_id, role, subject) values ($1, 'g', 'r', 'user:ann')"],
  ])('leaves a suspended membership that withholds something: %s', async (holding) => {
    await member('ann', 120)
    for (const organization of ['ann-000010', 'ann-000090', 'ann-000100', 'ann-000120'])
      await node.sql.query("update membership set status = 'suspended' where organization_id = $1", [organization])
    for (const organization of ['ann-000010', 'ann-000090', 'ann-000120']) await node.sql.query(holding, [organization])
    await node.directory.deleteUser('ann', context)
    start(node)
    await expect.poll(isDone).toBe(true)
    const stayed = await node.directory.memberships('ann')
    expect(stayed.map(({ organization }) => organization)).toEqual(['ann-000010', 'ann-000090', 'ann-000120'])
  })

  test('of somebody who is not there leaves nothing behind', async () => {
    expect(await node.directory.deleteUser('nobody', context)).toBe(false)
    expect(await isDone()).toBe(true)
    const logged = await node.sql.query('select 1 from change_log where organization_id = $1', [DIRECTORY])
    expect(logged).toEqual([])
  })
})
