/** What the lock of logs holds when they come and go meanwhile. */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openPostgres } from '../../../../pdp/store/postgres/postgres.ts'
import { lockLogs } from '../../../../pdp/store/postgres/unit-of-work.ts'
import { openTestDatabase } from '../../../support/database.ts'

let clients: readonly pg.Client[]
let close: () => Promise<void>
beforeAll(async () => {
  const database = await openTestDatabase()
  const opened = await openPostgres({ connectionString: database.connectionString })
  clients = Array.from({ length: 3 }, () => new pg.Client({ connectionString: database.connectionString }))
  for (const client of clients) await client.connect()
  close = async () => {
    for (const client of clients) await client.end()
    await opened.close()
    await database.drop()
  }
})
afterAll(() => close())

const add = (client: pg.Client, log: string) =>
  client.query('insert into revision (organization_id, revision, write_id) values ($1, 0, 0)', [log])
const sqlOf = (client: pg.Client) => ({
  query: async <Row>(text: string, values?: readonly unknown[]) =>
    (await client.query(text, [...(values ?? [])])).rows as Row[],
})

test('a log that is made while another one is waited for is locked as well', async () => {
  const [first, second, third] = clients
  if (first === undefined || second === undefined || third === undefined) throw new Error('no clients')
  await add(first, 'org-b')
  await first.query('begin')
  await lockLogs(sqlOf(first), ['org-b'])
  await second.query('begin')
  const { rows } = await second.query<{ pid: number }>('select pg_backend_pid() as pid')
  const locking = lockLogs(sqlOf(second), ['org-a', 'org-b', 'org-c'])
  await expect
    .poll(() => third.query('select 1 from pg_locks where not granted and pid = $1', [rows[0]?.pid]))
    .toMatchObject({ rowCount: 1 })
  for (const log of ['org-a', 'org-c']) await add(third, log)
  await first.query('commit')
  await locking
  for (const log of ['org-a', 'org-b', 'org-c'])
    await expect(
      third.query('select 1 from revision where organization_id = $1 for update nowait', [log]),
    ).rejects.toMatchObject({ code: '55P03' })
  await second.query('commit')
})
