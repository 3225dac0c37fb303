import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Queries } from '../../../../../pdp/engine/store/directory.ts'
import { numberEvents } from '../../../../../pdp/engine/store/number-events.ts'
import { postgresDirectory } from '../../../../../pdp/engine/store/postgres/directory.ts'
import { appendEvents, type OutboxEvent } from '../../../../../pdp/engine/store/postgres/outbox.ts'
import { openPostgres } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import type { Change } from '../../../../../pdp/shared/domain/change.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { openTestDatabase, type TestDatabase } from '../../../../support/database.ts'
import { context } from '../../../../support/tuples.ts'

let database: TestDatabase
let opened: Awaited<ReturnType<typeof openPostgres>>
beforeEach(async () => {
  database = await openTestDatabase()
  opened = await openPostgres({ connectionString: database.connectionString })
})
afterEach(async () => {
  await opened.close()
  await database.drop()
})

type Row = { readonly seq: number; readonly organization: string; readonly version: number; readonly txn: string }
const READ = `select seq, organization_id as organization, (payload ->> 'version')::int as version, txn from outbox order by seq`
const numbered = async (): Promise<readonly Row[]> => {
  await numberEvents(opened.sql)
  return opened.sql.query<Row>(READ)
}
const event = (organization: string, version: number): OutboxEvent => ({
  type: 'entitlement.updated',
  organization,
  data: { organization, keys: [], version },
})
const countFrom = (first: number, count: number) => Array.from({ length: count }, (_, at) => first + at)

test('a writer waits for no other writer, and its event has the number of its commit', async () => {
  const [appended, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const slow = opened.sql.transaction(async (sql) => {
    await appendEvents(sql, [event('slow', 1)])
    appended.resolve()
    await held.promise
  })
  await appended.promise
  await opened.sql.transaction((sql) => appendEvents(sql, [event('fast', 1)]))
  expect(await numbered()).toMatchObject([{ seq: 1, organization: 'fast' }])
  held.resolve()
  await slow
  expect(await numbered()).toMatchObject([{ seq: 1 }, { seq: 2, organization: 'slow' }])
})

test('events of one transaction stay together, in their order and under one name', async () => {
  await opened.sql.transaction((sql) => appendEvents(sql, [event('acme', 1), event('acme', 2), event('acme', 3)]))
  const rows = await numbered()
  expect(rows.map(({ seq, version }) => [seq, version])).toEqual([
    [1, 1],
    [2, 2],
    [3, 3],
  ])
  expect(new Set(rows.map(({ txn }) => txn)).size).toBe(1)
})

test('what is rolled back has no number, and leaves no gap', async () => {
  const failing = opened.sql.transaction(async (sql) => {
    await appendEvents(sql, [event('acme', 1)])
    throw new Error('rolled back')
  })
  await expect(failing).rejects.toThrow('rolled back')
  await opened.sql.transaction((sql) => appendEvents(sql, [event('acme', 2)]))
  expect(await numbered()).toMatchObject([{ seq: 1, version: 2 }])
})

test('more than one piece is numbered by one call', async () => {
  const all = Array.from({ length: 10_001 }, (_, at) => event('acme', at + 1))
  await opened.sql.transaction((sql) => appendEvents(sql, all))
  const rows = await numbered()
  expect(rows.map(({ seq, version }) => seq === version)).toEqual(all.map(() => true))
  expect(await opened.sql.query('select 1 from outbox_arrival')).toEqual([])
})

test('whatever writes and numbers at the same time: no gap, nothing lost, and each log in the order of its commits', async () => {
  const [organizations, rounds] = [['a', 'b', 'c', 'd'], 25]
  let writing = true
  const writers = organizations.map(async (organization) => {
    for (let version = 1; version <= rounds; version++)
      await opened.sql.transaction((sql) => appendEvents(sql, [event(organization, version)]))
  })
  const readers = [1, 2].map(async () => {
    let seen = 0
    while (writing) {
      const rows = await numbered()
      // Nothing comes before what was read once.
      expect(rows.map(({ seq }) => seq)).toEqual(countFrom(1, rows.length))
      expect(rows.length).toBeGreaterThanOrEqual(seen)
      seen = rows.length
    }
  })
  await Promise.all(writers)
  writing = false
  await Promise.all(readers)
  const rows = await numbered()
  expect(rows.map(({ seq }) => seq)).toEqual(countFrom(1, organizations.length * rounds))
  for (const name of organizations)
    expect(rows.filter(({ organization }) => organization === name).map(({ version }) => version)).toEqual(
      countFrom(1, rounds),
    )
})

test('a PDP of the version before, which numbers its own events, numbers first what arrived before them', async () => {
  await opened.sql.transaction((sql) => appendEvents(sql, [event('acme', 1), event('acme', 2)]))
  await opened.sql.transaction(async (sql) => {
    const [row] = await sql.query<{ revision: number }>(
      "update revision set revision = revision + 1 where organization_id = '#events' returning revision",
    )
    await sql.query(
      `insert into outbox (seq, event_id, organization_id, type, payload) values ($1, $2, 'acme', 'entitlement.updated', '{"version": 3}')`,
      [row?.revision, randomUUID()],
    )
  })
  await opened.sql.transaction((sql) => appendEvents(sql, [event('acme', 4)]))
  expect((await numbered()).map(({ seq, version }) => [seq, version])).toEqual([
    [1, 1],
    [2, 2],
    [3, 3],
    [4, 4],
  ])
})

describe('an event about a person', () => {
  const signedOut: OutboxEvent = {
    type: 'user.signed_out',
    organization: null,
    data: { user: 'bob', tenants: ['acme'] },
    tenantsOf: 'bob',
  }
  const tenants = async (): Promise<unknown> => {
    await numberEvents(opened.sql)
    const rows = await opened.sql.query<{ tenants: unknown }>(
      "select payload -> 'tenants' as tenants from outbox where type = 'user.signed_out'",
    )
    return rows.map((row) => row.tenants)
  }
  const join = (organization: string, status: 'active' | 'suspended' = 'active') =>
    opened.store.write(organization, [{ kind: 'membership', user: 'bob', membership: { role: 'viewer', status } }], {
      context,
    })
  beforeEach(async () => {
    const bob = { id: 'bob', email: null, emailVerified: false, name: 'Bob' }
    await postgresDirectory(opened.sql).putUser(bob, context)
    const changes = ['acme', 'beta', 'gamma'].map(
      (id): Change => ({
        kind: 'organization',
        id,
        organization: { id, name: id, parent: null },
      }),
    )
    await opened.store.write(ENVIRONMENT, changes, { context })
  })

  const waiting = () =>
    opened.sql.query("select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")
  /** The second begins while the first is under way, and waits for it. */
  async function inTurn(first: (sql: Queries) => Promise<unknown>, second: () => Promise<unknown>): Promise<void> {
    let later: Promise<unknown> = Promise.resolve()
    await opened.sql.transaction(async (sql) => {
      await first(sql)
      later = second()
      await expect.poll(waiting, { timeout: 20_000, interval: 5 }).toHaveLength(1)
    })
    await later
  }
  const append = (sql: Queries) => appendEvents(sql, [signedOut])

  test('waits for a membership that is being written, and is for its organization', async () => {
    await join('gamma', 'suspended')
    await inTurn(
      (sql) =>
        sql.query(
          `insert into membership (organization_id, user_id, role, status) values ('beta', 'bob', 'viewer', 'active')`,
        ),
      () => opened.sql.transaction(append),
    )
    expect(await tenants()).toEqual([['acme', 'beta']])
  })

  test('makes a membership wait that is written while it is under way, and is not for its organization', async () => {
    await join('gamma', 'suspended')
    await inTurn(append, () => join('gamma'))
    expect(await tenants()).toEqual([['acme']])
  })

  test('is for no organization that the person joined later at another server, whose transactions have lower numbers', async () => {
    await join('beta')
    await opened.sql.transaction(append)
    // As a dump brings both from a server that had run many transactions.
    await opened.sql.query(`update membership set written_in = '900000000:900000000:'`)
    await opened.sql.query(`update outbox_arrival set xid = '900000000'`)
    await join('gamma')
    expect(await tenants()).toEqual([['acme', 'beta']])
  })

  test('keeps no number of a transaction, and neither does a membership', async () => {
    await join('beta')
    await opened.sql.transaction(append)
    expect(await opened.sql.query('select xid from outbox_arrival where xid is not null')).toEqual([])
    expect(await opened.sql.query('select 1 from membership where written_in is not null')).toEqual([])
  })

  test('is for no organization that the person joined later, or in which the membership does not count', async () => {
    await join('gamma', 'suspended')
    await opened.sql.transaction((sql) => appendEvents(sql, [signedOut]))
    await join('beta')
    await join('gamma')
    expect(await tenants()).toEqual([['acme']])
  })

  test('is for an organization that the person left while it was under way', async () => {
    await join('beta')
    await opened.sql.transaction(async (sql) => {
      await appendEvents(sql, [signedOut])
      await opened.store.write('beta', [{ kind: 'membership', user: 'bob', membership: null }], { context })
    })
    expect(await tenants()).toEqual([['acme', 'beta']])
  })
})
