/** Several processes answer from memory, and whatever anybody writes is in the very next answer of each. */
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import type { EmbeddedPdp } from '../../../../../pdp/engine/decision-point/embedded.ts'
import { appendArrivals } from '../../../../../pdp/engine/store/arrivals.ts'
import type { ServerEvent } from '../../../../../pdp/engine/store/postgres/connection/fence.ts'
import { openPostgres, type PostgresOptions } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import { TOKENS } from '../../../../../pdp/shared/domain/journal.ts'
import { revocationKey } from '../../../../../pdp/shared/domain/revocation.ts'
import { user } from '../../../../../pdp/shared/domain/subjects.ts'
import { openTestDatabase, type TestDatabase } from '../../../../support/database.ts'
import { context, drop, given, put } from '../../../../support/tuples.ts'
import { until } from '../../../../support/until.ts'
import type { Said } from './leased-process.ts'

type Node = Awaited<ReturnType<typeof openPostgres>> & {
  readonly pdp: EmbeddedPdp
  readonly events: ServerEvent[]
  leased(): number
}

const ANN = 'doc:1#viewer@user:ann'
const BOB = 'doc:1#viewer@user:bob'
const TIMEOUT_MS = 60_000

let database: TestDatabase
let nodes: readonly Node[]
let sql: pg.Client
let closers: (() => Promise<unknown>)[]

async function open(options: Partial<PostgresOptions> = {}): Promise<Node> {
  const events: ServerEvent[] = []
  const opened = await openPostgres(
    { connectionString: database.connectionString, poolCountMax: 4, ...options },
    { onServer: (event) => events.push(event) },
  )
  closers.push(opened.close)
  return {
    ...opened,
    events,
    pdp: createPdp({ store: opened.store }),
    leased: () => events.reduce((count, event) => count + (event.kind === 'leased' ? event.questions : 0), 0),
  }
}

beforeEach(async () => {
  closers = []
  database = await openTestDatabase()
  sql = new pg.Client({ connectionString: database.connectionString })
  await sql.connect()
  const before = await open()
  await given(before.store, 'acme', put(ANN), put(BOB))
  await before.close()
  nodes = await Promise.all([0, 1, 2].map(() => open({ lease: 'shared' })))
  await allLeased()
}, TIMEOUT_MS)
afterEach(async () => {
  await sql.end()
  for (const close of closers) await close().catch(() => {})
  await database.drop()
}, TIMEOUT_MS)

const may = (name: string, node: Node | undefined) => node?.pdp.can('acme', user(name), 'viewer', 'doc:1')
async function untilLeased(node: Node): Promise<void> {
  const before = node.leased()
  await until(async () => {
    await Promise.all([may('ann', node), may('bob', node)])
    return node.leased() > before
  })
}
/** Until every process answers from memory. */
async function allLeased(): Promise<void> {
  for (const node of nodes) await untilLeased(node)
}
const answers = (name: string) => Promise.all(nodes.map((node) => may(name, node)))
const [NONE, ALL] = [
  [false, false, false],
  [true, true, true],
]
async function ask(child: ChildProcess): Promise<Said> {
  child.send(['acme', 'ann', 'doc:1'])
  const [said] = (await once(child, 'message')) as [Said]
  return said
}
/** Another process that answers from memory. */
async function started(): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, 'leased-process.ts'), [database.connectionString, 'shared'])
  closers.push(async () => child.kill('SIGKILL'))
  await once(child, 'message')
  await until(async () => (await ask(child)).leased > 0)
  return child
}
const RAW_REVOKE = `
  with gone as (delete from relationship where organization_id = 'acme' and subject = 'user:ann'),
  raised as (update revision set revision = revision + 1, write_id = 4711 where organization_id = 'acme' returning *)
  insert into change_log (organization_id, revision, seq, write_id, change, actor, request_id)
  select organization_id, revision, 1, write_id, '{"kind": "clear"}', 'psql', '' from raised`
const missedTriggers = (node: Node) =>
  node.events.some((event) => event.kind === 'lease' && /triggers/.test(event.ended ?? ''))
const rows = async () => (await sql.query<{ id: string }>('select id from lease_holder')).rows
/** A process that never answers, and is interested in everything. */
async function frozen(): Promise<string> {
  const id = randomUUID()
  await sql.query(
    `insert into lease_holder (id, interests, seen) values ($1, decode(repeat('ff', 128), 'hex'), nextval('lease_turn'))`,
    [id],
  )
  return id
}

describe('what was revoked is gone on the very next call of each process', () => {
  test('by a write of each of them, each time', { timeout: TIMEOUT_MS }, async () => {
    for (let round = 0; round < 30; round++) {
      const writer = nodes[round % nodes.length]
      await writer?.store.write('acme', [drop(ANN)], { context })
      expect(await answers('ann')).toEqual(NONE)
      await writer?.store.write('acme', [put(ANN)], { context })
      expect(await answers('ann')).toEqual(ALL)
      if (round % 10 === 0) await allLeased()
    }
    expect(await rows()).toHaveLength(3)
  })

  test('by a process without the setting, or of an older version', { timeout: TIMEOUT_MS }, async () => {
    const other = await open()
    await other.store.write('acme', [drop(ANN)], { context })
    expect(await answers('ann')).toEqual(NONE)
    await allLeased()
    expect(await answers('ann')).toEqual(NONE)
  })

  test('by hand, in one statement', { timeout: TIMEOUT_MS }, async () => {
    await sql.query(RAW_REVOKE)
    expect(await answers('ann')).toEqual(NONE)
  })

  test('of one that was stopped meanwhile, and goes on', { timeout: TIMEOUT_MS }, async () => {
    const child = await started()
    child.kill('SIGSTOP')
    await nodes[0]?.store.write('acme', [drop(ANN)], { context })
    child.kill('SIGCONT')
    expect((await ask(child)).allowed).toBe(false)
    expect(await answers('ann')).toEqual(NONE)
  })

  test('by a revocation of a token', { timeout: TIMEOUT_MS }, async () => {
    const revocationKeys = [revocationKey('grant', 'g1')]
    const asked = { organization: 'acme', subject: user('ann'), permissions: [], revocationKeys }
    const ended = { kind: 'token', by: 'grant', id: 'g1' } as const
    await nodes[0]?.sql.transaction((tx) => appendArrivals(tx, TOKENS, [ended], context))
    const decided = await Promise.all(nodes.map((node) => node.pdp.decide(asked)))
    expect(decided.map(({ tokenRevoked }) => tokenRevoked)).toEqual(ALL)
  })

  test('by the application, in a transaction of its own', { timeout: TIMEOUT_MS }, async () => {
    await sql.query('begin')
    await nodes[0]?.pdp.write('acme', { delete: [ANN] }, { client: sql })
    expect(await answers('ann')).toEqual(ALL)
    await sql.query('commit')
    expect(await answers('ann')).toEqual(NONE)
    await allLeased()
    expect(await answers('ann')).toEqual(NONE)
  })
})

describe('a writer', () => {
  test('waits once for a process that does not answer, and strikes it off', { timeout: TIMEOUT_MS }, async () => {
    const id = await frozen()
    const beganMs = performance.now()
    await nodes[0]?.store.write('acme', [drop(ANN)], { context })
    expect(performance.now() - beganMs).toBeGreaterThan(2_040)
    expect((await rows()).map((row) => row.id)).not.toContain(id)
    expect(await answers('ann')).toEqual(NONE)
  })

  test('waits for a process that was killed no longer than for one that does not answer', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const child = await started()
    expect(await rows()).toHaveLength(4)
    child.kill('SIGKILL')
    await nodes[0]?.store.write('acme', [drop(ANN)], { context })
    expect(await rows()).toHaveLength(3)
    expect(await answers('ann')).toEqual(NONE)
  })

  test('that is rolled back strikes nobody off', { timeout: TIMEOUT_MS }, async () => {
    const id = await frozen()
    await sql.query(`begin; ${RAW_REVOKE}; set constraints all immediate`)
    await sql.query('rollback')
    expect((await rows()).map((row) => row.id)).toContain(id)
    expect(await answers('ann')).toEqual(ALL)
  })

  test('waits out the term on a primary whose registry may lack processes', { timeout: TIMEOUT_MS }, async () => {
    await sql.query("update lease_settled set timeline = '00000000'")
    const beganMs = performance.now()
    await nodes[0]?.store.write('acme', [drop(ANN)], { context })
    expect(performance.now() - beganMs).toBeGreaterThan(2_040)
    expect(await answers('ann')).toEqual(NONE)
    const { rows: settled } = await sql.query('select timeline = lease_timeline() as known from lease_settled')
    expect(settled).toEqual([{ known: true }])
  })

  test('above READ COMMITTED is refused, since it would not see who answers', { timeout: TIMEOUT_MS }, async () => {
    await sql.query(`begin isolation level repeatable read; ${RAW_REVOKE}`)
    await expect(sql.query('commit')).rejects.toThrow('must be READ COMMITTED')
    expect(await answers('ann')).toEqual(ALL)
  })
})

describe('a process', () => {
  test('that was struck off asks, and registers again', { timeout: TIMEOUT_MS }, async () => {
    const before = await rows()
    await sql.query('delete from lease_holder')
    await until(async () => (await rows()).length === 3)
    expect(await rows()).not.toEqual(before)
    await allLeased()
  })

  test('whose row a writer has locked asks', { timeout: TIMEOUT_MS }, async () => {
    await sql.query('begin')
    await sql.query('select from lease_holder for update')
    const reasons = (node: Node) => node.events.flatMap((event) => (event.kind === 'lease' ? [event.ended] : []))
    await until(() => nodes.every((node) => reasons(node).includes('a writer waited in vain for this process')))
    await sql.query('rollback')
    await allLeased()
  })

  test('that ends takes its row with it', { timeout: TIMEOUT_MS }, async () => {
    await nodes[2]?.close()
    expect(await rows()).toHaveLength(2)
  })

  test('asks when somebody turns a trigger off', { timeout: TIMEOUT_MS }, async () => {
    await sql.query('alter table revision disable trigger note_intent')
    await until(() => nodes.every(missedTriggers))
    const before = nodes.map((node) => node.leased())
    await answers('ann')
    expect(nodes.map((node) => node.leased())).toEqual(before)
  })
})

describe('what the triggers could miss', () => {
  const RAISE = 'update revision set revision = revision + 1, write_id = 4712 where organization_id = $1'
  const raise = (log: string) => sql.query(RAISE, [log])

  test('a writer whose constraints are immediate', { timeout: TIMEOUT_MS }, async () => {
    await given(nodes[0]?.store as Node['store'], 'globex', put(ANN))
    await allLeased()
    await sql.query('begin; set constraints all immediate')
    await raise('globex')
    const seen = async () => (await sql.query('select min(seen) as turn from lease_holder')).rows[0].turn
    const { rows: noted } = await sql.query("select current_setting('portcullis.turn')::bigint as turn")
    await until(async () => BigInt(await seen()) > BigInt(noted[0].turn))
    await sql.query(RAW_REVOKE)
    await sql.query('commit')
    expect(await answers('ann')).toEqual(NONE)
    await allLeased()
    expect(await answers('ann')).toEqual(NONE)
  })

  test('one that takes back a savepoint', { timeout: TIMEOUT_MS }, async () => {
    await sql.query(`begin; savepoint outer_; ${RAW_REVOKE}; savepoint inner_`)
    await raise('acme')
    await sql.query('rollback to inner_; release outer_; commit')
    expect(await answers('ann')).toEqual(NONE)
  })

  test('one that gives a journal another name, or deletes it, does so', { timeout: TIMEOUT_MS }, async () => {
    await sql.query("insert into revision (organization_id, revision, write_id) values ('former', 1, 1)")
    await sql.query("update revision set organization_id = 'latter' where organization_id = 'former'")
    const { rows: gone } = await sql.query("delete from revision where organization_id = 'latter' returning revision")
    expect(gone).toEqual([{ revision: '1' }])
  })

  test('one that turns other triggers off for its session', { timeout: TIMEOUT_MS }, async () => {
    await sql.query(`set session_replication_role = replica; ${RAW_REVOKE}`)
    expect(await answers('ann')).toEqual(NONE)
  })

  test('one that turns them off and on again is seen by the next renewal', { timeout: TIMEOUT_MS }, async () => {
    const each = (how: string) =>
      ['note_intent', 'await_leases'].map((name) => `alter table revision ${how} trigger ${name};`).join('')
    await sql.query(`begin; ${each('disable')} ${RAW_REVOKE}; ${each('enable always')} commit`)
    await until(() => nodes.every(missedTriggers))
    expect(await answers('ann')).toEqual(NONE)
  })

  test('one that waits for two, each interested in another journal, waits once', { timeout: TIMEOUT_MS }, async () => {
    for (const log of ['acme', '#tokens'])
      await sql.query(
        `insert into lease_holder (id, interests, seen)
         values ($1, set_bit(decode(repeat('00', 128), 'hex'), lease_bucket($1), 1), nextval('lease_turn'))`,
        [log],
      )
    await nodes[0]?.sql.transaction(async (tx) => {
      for (const log of ['acme', '#tokens']) await tx.query(RAISE, [log])
    })
    expect(await rows()).toHaveLength(3)
  })
})

test('a database in which nobody wants leases has its triggers off', async () => {
  const untouched = await openTestDatabase()
  const plain = await openPostgres({ connectionString: untouched.connectionString })
  const found = await plain.sql.query(
    "select tgenabled from pg_trigger where tgname in ('note_intent', 'await_leases')",
  )
  await plain.close()
  await untouched.drop()
  expect(found).toEqual(Array(2).fill({ tgenabled: 'D' }))
})
