/** PDPs that may need more connections than their database has: an operator learns of it at the start, not in a rush. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openPostgres } from '../../../../pdp/engine/store/postgres/postgres.ts'
import { checkConnections } from '../../../../pdp/server/runtime/database.ts'
import { createLog } from '../../../../pdp/shared/process/log.ts'
import { openTestDatabase, type TestDatabase } from '../../../support/database.ts'

let database: TestDatabase
let node: Awaited<ReturnType<typeof openPostgres>>
let places: number
beforeEach(async () => {
  database = await openTestDatabase()
  node = await openPostgres({ connectionString: database.connectionString })
  const [row] = await node.sql.query<{ places: number }>(
    `select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
       - current_setting('reserved_connections')::int as places`,
  )
  places = row?.places ?? 0
})
afterEach(async () => {
  await node.close()
  await database.drop()
})

const needed = (count: number): number => count * 20 + Math.ceil(count / 10)
/** How many PDPs with 20 connections each fit. */
const fitting = (): number => {
  let count = 0
  while (needed(count + 1) <= places) count++
  return count
}
const run = (count: number, seen = 'now()') =>
  node.sql.query(
    `insert into pdp_process (id, master_keys, sealing, seen_at) select 'pdp ' || n || ${seen}, '{}', '', ${seen} from generate_series(1, $1::int) n`,
    [count],
  )
async function lines(
  databaseConnections: number,
  of: { readonly replication?: 'synchronous'; readonly lease?: 'sole' | 'shared' } = {},
): Promise<readonly object[]> {
  const written: string[] = []
  const destination = { write: (line: string) => void written.push(line) }
  const log = createLog({ service: 'test', level: 'info', destination })
  await checkConnections({ databaseConnections, replication: null, lease: null, ...of }, { sql: node.sql, log })
  return written.map((line) => JSON.parse(line))
}

test('says nothing while all PDPs have as many as they may use', async () => {
  await run(fitting())
  expect(await lines(20)).toEqual([])
})

test('names both ways out when one more does not fit', async () => {
  const count = fitting() + 1
  await run(count)
  const [line] = await lines(20)
  expect(line).toMatchObject({
    event: 'database_connections_short',
    pdps_count: count,
    needed_count: needed(count),
    places_count: places,
    reason: expect.stringMatching(/max_connections .* PORTCULLIS_DATABASE_CONNECTIONS to \d+ or less/),
  })
})

test('counts the heartbeat of each where replication is synchronous, and the connection of a shared lease', async () => {
  await run(Math.floor(places / 5) + 1)
  expect(await lines(4)).toEqual([])
  expect(await lines(4, { replication: 'synchronous' })).toHaveLength(1)
  expect(await lines(4, { lease: 'sole' })).toEqual([])
  expect(await lines(4, { lease: 'shared' })).toHaveLength(1)
})

test('does not advise fewer than a PDP needs', async () => {
  await run(Math.floor(places / 4) + 1)
  const [line] = await lines(20)
  expect(line).toMatchObject({ reason: expect.not.stringContaining('PORTCULLIS_DATABASE_CONNECTIONS') })
})

test('does not count who has ended', async () => {
  await run(places, "(now() - interval '2 minutes')")
  expect(await lines(20)).toEqual([])
})
