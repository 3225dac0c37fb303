import { afterAll, beforeAll, expect, test } from 'vitest'
import { openPostgres } from '../../../../pdp/engine/store/postgres/postgres.ts'
import { createSharedAttempts } from '../../../../pdp/identity/limits/shared-attempts.ts'
import { createProvenSecrets } from '../../../../pdp/identity/provider/proven-secrets.ts'
import { openTestDatabase, type TestDatabase } from '../../../support/database.ts'

let database: TestDatabase
let nodes: readonly Awaited<ReturnType<typeof openPostgres>>[]
const time = { ms: Date.parse('2026-01-01T00:00:00Z') }
beforeAll(async () => {
  database = await openTestDatabase()
  // Few connections: opening twenty at once takes a busy machine longer than a node waits for one.
  const open = () => openPostgres({ connectionString: database.connectionString, poolCountMax: 3 })
  nodes = [await open(), await open()]
})
afterAll(async () => {
  for (const node of nodes) await node.close()
  await database.drop()
})
const attemptsOf = () => nodes.map(({ sql }) => createSharedAttempts({ sql, clock: () => time.ms, windowMs: 900_000 }))

test('of many tries at once on several nodes exactly as many pass as there are', async () => {
  const attempts = attemptsOf()
  const tries = Array.from({ length: 60 }, (_, i) => attempts[i % attempts.length]?.take('raced', 10))
  expect((await Promise.all(tries)).filter((passed) => passed === true)).toHaveLength(10)
})

test('tries end with their window, which no later try makes longer', async () => {
  const [attempts] = attemptsOf()
  expect([await attempts?.take('timed', 2), await attempts?.take('timed', 2)]).toEqual([true, true])
  time.ms += 899_999
  expect(await attempts?.take('timed', 2)).toBe(false)
  time.ms += 1
  expect([await attempts?.take('timed', 2), await attempts?.take('timed', 2)]).toEqual([true, true])
  expect(await attempts?.take('timed', 2)).toBe(false)
})

test('tries are given back, and forgotten, and never fewer than none', async () => {
  const [attempts] = attemptsOf()
  await attempts?.giveBack('given')
  expect(await attempts?.take('given', 1)).toBe(true)
  await attempts?.giveBack('given')
  await attempts?.giveBack('given')
  expect([await attempts?.take('given', 1), await attempts?.take('given', 1)]).toEqual([true, false])
  await attempts?.forget('given')
  expect(await attempts?.take('given', 1)).toBe(true)
})

test('the table tells nothing of what was typed', async () => {
  const [attempts] = attemptsOf()
  await attempts?.take('strangers for nobody secret@x.example', 1)
  const rows = (await nodes[0]?.sql.query<{ key: string }>('select key from attempt')) ?? []
  expect(rows.length).toBeGreaterThan(0)
  for (const { key } of rows) expect(key).toMatch(/^[A-Za-z0-9_-]{43}$/)
})

test('a proven secret is known for five minutes, until it changes, and no other is', () => {
  let now = 0
  const proven = createProvenSecrets({ clock: () => now })
  expect(proven.has('right', 'hash 1')).toBe(false)
  proven.add('right', 'hash 1')
  expect([proven.has('right', 'hash 1'), proven.has('wrong', 'hash 1'), proven.has('right', 'hash 2')]).toEqual([
    true,
    false,
    false,
  ])
  now = 299_999
  expect(proven.has('right', 'hash 1')).toBe(true)
  now = 300_000
  expect(proven.has('right', 'hash 1')).toBe(false)
})
