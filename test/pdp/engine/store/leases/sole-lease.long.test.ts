/** A process that writes alone answers from memory, and whatever another writes is in the very next answer. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import type { EmbeddedPdp } from '../../../../../pdp/engine/decision-point/embedded.ts'
import { appendArrivals } from '../../../../../pdp/engine/store/arrivals.ts'
import { createFence, type ServerEvent } from '../../../../../pdp/engine/store/postgres/connection/fence.ts'
import { SoleHolder } from '../../../../../pdp/engine/store/postgres/connection/sole-holder.ts'
import { appendJournal } from '../../../../../pdp/engine/store/postgres/journal.ts'
import { openPostgres, type PostgresOptions } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import { TOKENS } from '../../../../../pdp/shared/domain/journal.ts'
import { revocationKey } from '../../../../../pdp/shared/domain/revocation.ts'
import { user } from '../../../../../pdp/shared/domain/subjects.ts'
import { openTestDatabase, type TestDatabase } from '../../../../support/database.ts'
import { context, drop, given, put } from '../../../../support/tuples.ts'
import { until } from '../../../../support/until.ts'
import type { Said } from './leased-process.ts'

type Opened = Awaited<ReturnType<typeof openPostgres>>
type Node = Opened & {
  readonly pdp: EmbeddedPdp
  readonly events: ServerEvent[]
  leased(): number
  isHolding(): boolean
}

const ANN = 'doc:1#viewer@user:ann'
const BOB = 'doc:1#viewer@user:bob'
/** A write beside a lease takes 2.5 s, and a test has a few. */
const TIMEOUT_MS = 30_000

let database: TestDatabase
let holder: Node
let sql: pg.Client
let closers: (() => Promise<unknown>)[]

async function open(options: Partial<PostgresOptions> = {}): Promise<Node> {
  const events: ServerEvent[] = []
  const opened = await openPostgres(
    { connectionString: database.connectionString, poolCountMax: 4, ...options },
    { onServer: (event) => events.push(event) },
  )
  closers.push(opened.close)
  const lease = () => events.filter((event) => event.kind === 'lease').at(-1)
  return {
    ...opened,
    events,
    pdp: createPdp({ store: opened.store }),
    leased: () => events.reduce((count, event) => count + (event.kind === 'leased' ? event.questions : 0), 0),
    isHolding: () => lease()?.ended === null,
  }
}

beforeEach(async () => {
  closers = []
  database = await openTestDatabase()
  const before = await open()
  await given(before.store, 'acme', put(ANN), put(BOB))
  await before.close()
  holder = await open({ lease: 'sole' })
  sql = new pg.Client({ connectionString: database.connectionString })
  await sql.connect()
  await until(() => holder.isHolding())
})
afterEach(async () => {
  await sql.end()
  for (const close of closers) await close().catch(() => {})
  await database.drop()
})

const may = (name: string, { pdp }: Pick<Node, 'pdp'> = holder) => pdp.can('acme', user(name), 'viewer', 'doc:1')
/** Until an answer comes from memory. */
async function untilLeased(name: string, node = holder): Promise<void> {
  const before = node.leased()
  await until(async () => {
    await may(name, node)
    return node.leased() > before
  })
}
const idOf = async () => (await sql.query<{ id: string | null }>('select id from sole_lease')).rows[0]?.id
const RAW_REVOKE = `
  with gone as (delete from relationship where organization_id = 'acme' and subject = 'user:ann'),
  raised as (update revision set revision = revision + 1, write_id = 4711 where organization_id = 'acme' returning *)
  insert into change_log (organization_id, revision, seq, write_id, change, actor, request_id)
  select organization_id, revision, 1, write_id, '{"kind": "clear"}', 'psql', '' from raised`

describe('what was revoked is gone on the very next call', () => {
  test('by a write of the process itself, each time', { timeout: TIMEOUT_MS }, async () => {
    await untilLeased('ann')
    for (let round = 0; round < 50; round++) {
      await holder.store.write('acme', [drop(ANN)], { context })
      expect(await may('ann')).toBe(false)
      expect(await may('ann')).toBe(false)
      await holder.store.write('acme', [put(ANN)], { context })
      expect(await may('ann')).toBe(true)
    }
    expect(holder.isHolding()).toBe(true)
  })

  test('by another process, which waits for the answers from memory', { timeout: TIMEOUT_MS }, async () => {
    const other = await open()
    await untilLeased('ann')
    await other.store.write('acme', [drop(ANN)], { context })
    expect(await may('ann')).toBe(false)
    expect(holder.isHolding()).toBe(false)
  })

  test('by hand, in one statement', { timeout: TIMEOUT_MS }, async () => {
    await untilLeased('ann')
    await sql.query(RAW_REVOKE)
    expect(await may('ann')).toBe(false)
  })

  test('by a revocation of a token, as this version and those before store it', { timeout: TIMEOUT_MS }, async () => {
    const other = await open()
    const isEnded = async (id: string) => {
      const revocationKeys = [revocationKey('grant', id)]
      const asked = { organization: 'acme', subject: user('ann'), permissions: [], revocationKeys }
      return (await holder.pdp.decide(asked)).tokenRevoked
    }
    await untilLeased('ann')
    const ended = { kind: 'token', by: 'grant', id: 'g1' } as const
    await other.sql.transaction((tx) => appendJournal(tx, TOKENS, [ended], context))
    expect(await isEnded('g1')).toBe(true)
    await other.sql.transaction((tx) => appendArrivals(tx, TOKENS, [{ ...ended, id: 'g2' }], context))
    expect(await isEnded('g2')).toBe(true)
  })

  test('while its process is stopped, and goes on', { timeout: TIMEOUT_MS }, async () => {
    await holder.close()
    const child = fork(join(import.meta.dirname, 'leased-process.ts'), [database.connectionString])
    closers.push(async () => child.kill('SIGKILL'))
    await once(child, 'message')
    await until(async () => (await ask(child)).leased > 0)
    child.kill('SIGSTOP')
    await sql.query(RAW_REVOKE)
    child.kill('SIGCONT')
    expect((await ask(child)).allowed).toBe(false)
  })

  test('by a commit whose answer was lost, as soon as it is there', { timeout: TIMEOUT_MS }, async () => {
    await holder.close()
    const limits = { decisionMs: 1_000, statementMs: 300, transactionMs: 2_000, lengthyMs: 2_000 }
    const hasty = await open({ lease: 'sole', timeLimits: limits })
    await until(() => hasty.isHolding())
    await untilLeased('ann', hasty)
    await sql.query(`create function late() returns trigger language plpgsql as $$ begin perform pg_sleep(2); return null; end $$;
      create constraint trigger late after insert on change_log deferrable initially deferred for each row execute function late()`)
    await expect(hasty.store.write('acme', [drop(ANN)], { context })).rejects.toThrow('in time')
    expect(await may('ann', hasty)).toBe(true)
    await until(async () => (await sql.query("select from relationship where subject = 'user:ann'")).rowCount === 0)
    expect(await may('ann', hasty)).toBe(false)
    await untilLeased('ann', hasty)
    expect(await may('ann', hasty)).toBe(false)
  })

  test('by the application, in a transaction of its own, which waits for nothing', {
    timeout: TIMEOUT_MS,
  }, async () => {
    await untilLeased('ann')
    await sql.query('begin')
    await holder.pdp.write('acme', { delete: [ANN] }, { client: sql })
    expect(await may('ann')).toBe(true)
    await delay(1_200)
    const row = await sql.query('select id from sole_lease')
    await sql.query('commit')
    expect(await may('ann')).toBe(false)
    expect(row.rows[0]?.id).not.toBeNull()
    expect(holder.isHolding()).toBe(true)
    await untilLeased('ann')
    expect(await may('ann')).toBe(false)
  })

  test('when it expires', { timeout: TIMEOUT_MS }, async () => {
    const endMs = Math.ceil((await holder.store.vector([])).clockMs) + 1_500
    await holder.store.write('acme', [put('doc:1#viewer@user:eve', endMs)], { context })
    await untilLeased('ann')
    while (await may('eve')) await untilLeased('ann')
    expect((await holder.store.vector([])).clockMs).toBeGreaterThanOrEqual(endMs)
    expect(await may('eve')).toBe(false)
  })
})

describe('the lease', () => {
  test('stays where a write of another is rolled back, which waits for nothing', async () => {
    const id = await idOf()
    await sql.query(`begin; ${RAW_REVOKE}; rollback`)
    expect(await idOf()).toBe(id)
    await untilLeased('ann')
    expect(await may('ann')).toBe(true)
  })

  test('refuses another’s write above READ COMMITTED, which would not see it', async () => {
    await sql.query(`begin isolation level repeatable read; ${RAW_REVOKE}`)
    await expect(sql.query('commit')).rejects.toThrow('must be READ COMMITTED')
    expect(await may('ann')).toBe(true)
  })

  test('makes a write last that would not wait for the disk', { timeout: TIMEOUT_MS }, async () => {
    await sql.query(`begin; set local synchronous_commit = off; ${RAW_REVOKE}; set constraints all immediate`)
    const { rows } = await sql.query('show synchronous_commit')
    await sql.query('commit')
    expect(rows).toEqual([{ synchronous_commit: 'on' }])
  })

  test('has one process alone, and passes to another that waits when this one is closed', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const others = await Promise.all([open({ lease: 'sole' }), open({ lease: 'sole' })])
    await delay(1_000)
    expect([holder, ...others].map((node) => node.isHolding())).toEqual([true, false, false])
    await holder.close()
    await until(() => others.some((node) => node.isHolding()))
    await delay(1_000)
    expect(others.filter((node) => node.isHolding())).toHaveLength(1)
  })

  test('is taken from a process that ended without a word', { timeout: TIMEOUT_MS }, async () => {
    await holder.close()
    await sql.query("update sole_lease set id = 'gone', renewed_at = now() - interval '1 minute'")
    const next = await open({ lease: 'sole' })
    await until(() => next.isHolding())
    expect(await idOf()).not.toBe('gone')
  })

  test('is given up when another PDP uses the database', { timeout: TIMEOUT_MS }, async () => {
    await sql.query("insert into pdp_process (id, master_keys, sealing) values ('a', '{}', 'x'), ('b', '{}', 'x')")
    await until(() => !holder.isHolding())
    expect(holder.events).toContainEqual({ kind: 'lease', ended: 'another PDP uses the database' })
    await until(async () => (await idOf()) === null)
  })

  test('is given up when somebody turns the trigger off', { timeout: TIMEOUT_MS }, async () => {
    await sql.query('alter table revision disable trigger hold_back')
    await until(() => !holder.isHolding())
    const before = holder.leased()
    await may('ann')
    expect(holder.leased()).toBe(before)
  })

  test('leaves a database alone in which nobody wants it', async () => {
    const untouched = await openTestDatabase()
    const plain = await openPostgres({ connectionString: untouched.connectionString })
    const found = await plain.sql.query("select tgenabled from pg_trigger where tgname = 'hold_back'")
    await plain.close()
    await untouched.drop()
    expect(found).toEqual([{ tgenabled: 'D' }])
  })
})

describe('a clock that jumps', () => {
  const shift = { wallMs: 0, databaseMs: 0 }
  const events: ServerEvent[] = []
  let lease: SoleHolder
  beforeEach(async () => {
    Object.assign(shift, { wallMs: 0, databaseMs: 0 })
    events.length = 0
    await holder.close()
    const plain = await open()
    const fence = createFence((event) => events.push(event))
    fence.admit({ address: '', timeline: 1 }, () => {})
    const wallClock = () => Date.now() + shift.wallMs
    lease = new SoleHolder({ fence, clock: () => performance.now(), wallClock })
    const shifted = async <Row extends object>(rows: Promise<readonly Row[]>) =>
      (await rows).map((row) => ('clockMs' in row ? { ...row, clockMs: Number(row.clockMs) + shift.databaseMs } : row))
    lease.keep({
      query: (text, values) => shifted(plain.sql.query(text, values)),
      transaction: (work) => plain.sql.transaction(work),
    })
    closers.unshift(() => lease.end())
    await until(() => events.some((event) => event.kind === 'lease'))
    const reading = lease.reading()
    lease.read(reading, (await plain.store.vector(['acme'])).logs)
    expect(lease.vector(['acme'], 1)).not.toBeNull()
  })
  const ended = () => events.flatMap((event) => (event.kind === 'lease' && event.ended !== null ? [event.ended] : []))

  test('after a suspend asks at once, and ends the lease', { timeout: TIMEOUT_MS }, async () => {
    shift.wallMs = 300
    expect(lease.vector(['acme'], 1)).toBeNull()
    await until(() => ended().length > 0)
    expect(ended()).toEqual(['a clock was set, or the machine was stopped'])
  })

  test.each([-400, 400])('of the database by %d ms ends the lease', async (databaseMs) => {
    shift.databaseMs = databaseMs
    await until(() => ended().length > 0)
    expect(lease.vector(['acme'], 1)).toBeNull()
  })
})

async function ask(child: ChildProcess): Promise<Said> {
  child.send(['acme', 'ann', 'doc:1'])
  const [said] = (await once(child, 'message')) as [Said]
  return said
}
