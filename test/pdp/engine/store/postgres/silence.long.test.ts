/** A database that falls silent, or a network that drops everything: what waits for it, for how long, and who else does. */
import { afterEach, describe, expect, test } from 'vitest'
import type { TimeLimits } from '../../../../../pdp/engine/store/postgres/connection/database.ts'
import { createSilence } from '../../../../../pdp/engine/store/postgres/connection/silence.ts'
import { openPostgres, type PostgresOptions } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import { ENVIRONMENT, TOKENS } from '../../../../../pdp/shared/domain/journal.ts'
import { openTestDatabase } from '../../../../support/database.ts'
import { startSilentProxy } from '../../../../support/silent-proxy.ts'
import { context, given, organization, put } from '../../../../support/tuples.ts'

const LIMITS: TimeLimits = { decisionMs: 500, statementMs: 1_000, transactionMs: 2_000, lengthyMs: 60_000 }
const UNAVAILABLE = { code: 'store_unavailable' }
const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** One store through a proxy that can fall silent, and one beside it. */
async function open(options: Partial<PostgresOptions> = {}) {
  const { connectionString, drop } = await openTestDatabase()
  closers.push(drop)
  const url = new URL(connectionString)
  const proxy = await startSilentProxy({ host: url.hostname, port: Number(url.port) })
  closers.push(proxy.close)
  const through = Object.assign(new URL(connectionString), { hostname: '127.0.0.1', port: String(proxy.port) })
  const beside = await openPostgres({ connectionString })
  const far = await openPostgres({ connectionString: through.href, timeLimits: LIMITS, ...options })
  closers.push(beside.close, () => Promise.race([far.close(), new Promise((done) => setTimeout(done, 1_000))]))
  await given(beside.store, 'acme', put('doc:1#viewer@user:alice'))
  return { beside, far, proxy }
}

describe('a database that falls silent', () => {
  test('is unavailable to decisions, queries, transactions and snapshots, and is used again once it answers', async () => {
    const { far, proxy } = await open()
    await far.store.vector([TOKENS])
    proxy.silence()
    const asked = [
      far.store.vector([TOKENS]),
      far.sql.query('select 1'),
      far.sql.transaction((session) => session.query('select 1')),
      far.store.snapshot((at) => at.rows([TOKENS], [])),
      far.store.write('acme', [put('doc:2#viewer@user:alice')], { context }),
    ]
    const refused = { status: 'rejected', reason: expect.objectContaining(UNAVAILABLE) }
    expect(await Promise.allSettled(asked)).toEqual(asked.map(() => refused))
    proxy.heal()
    await expect
      .poll(
        () =>
          far.store.vector([TOKENS]).then(
            ({ logs }) => logs.has(TOKENS),
            () => false,
          ),
        { timeout: 30_000 },
      )
      .toBe(true)
    await far.store.write('acme', [put('doc:2#viewer@user:alice')], { context })
  }, 60_000)

  test('is left alone by all but one now and then, who refuse at once', async () => {
    const { far, proxy } = await open()
    await far.store.vector([TOKENS])
    proxy.silence()
    await expect(far.store.vector([TOKENS])).rejects.toMatchObject(UNAVAILABLE)
    const before = proxy.connectionsCount
    const refusals = await Promise.allSettled(
      Array.from({ length: 200 }, (_, i) => (i % 2 ? far.store.vector([TOKENS]) : far.sql.query('select 1'))),
    )
    expect(refusals.every(({ status }) => status === 'rejected')).toBe(true)
    expect(proxy.connectionsCount - before).toBeLessThan(10)
  }, 60_000)

  test('blocks the log of a write that it cut off for some seconds and no longer: the next writer gets its turn', async () => {
    const { beside, far, proxy } = await open()
    const writes = Promise.allSettled(
      Array.from({ length: 5 }, (_, i) => far.store.write('acme', [put(`doc:cut${i}#viewer@user:alice`)], { context })),
    )
    const cut = far.sql.transaction(async (session) => {
      await session.query(`select 1 from revision where organization_id = 'acme' for update`)
      proxy.silence()
      await session.query('select 1')
    })
    await expect(cut).rejects.toMatchObject(UNAVAILABLE)
    await writes
    await beside.store.write('acme', [put('doc:3#viewer@user:alice')], { context })
    expect((await beside.store.tuples('acme', { object: 'doc:3' }, { after: null, countMax: 1 })).length).toBe(1)
  }, 60_000)

  test('is not asked to roll back: the connection is dropped, and the only place in the pool is free again', async () => {
    const { far, proxy } = await open({ poolCountMax: 1 })
    let statements = 0
    const stuck = far.sql.transaction(async (session) => {
      proxy.silence()
      statements += 1
      await session.query('select 1')
      statements += 1
    })
    await expect(stuck).rejects.toMatchObject(UNAVAILABLE)
    expect(statements).toBe(1)
    proxy.heal()
    await expect
      .poll(() => far.sql.transaction((session) => session.query('select 1 as one')).catch(() => null), {
        timeout: 30_000,
      })
      .toEqual([{ one: 1 }])
  }, 60_000)
})

describe('writers that wait for each other', () => {
  test('stand in the way of no decision, however many they are', async () => {
    const { beside, far } = await open({ poolCountMax: 1 })
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const holding = beside.sql.transaction(async (session) => {
      await session.query(`select 1 from revision where organization_id = 'acme' for update`)
      await held
    })
    const writes = Array.from({ length: 20 }, (_, i) =>
      far.store.write('acme', [put(`doc:w${i}#viewer@user:alice`)], { context }).catch(() => null),
    )
    for (let i = 0; i < 20; i++) expect((await far.store.vector(['acme', ENVIRONMENT])).logs.size).toBe(2)
    release()
    await holding
    await Promise.all(writes)
  }, 60_000)

  test('wait in line at this process, which has one of them at the database', async () => {
    const { beside } = await open()
    let transactions = 0
    const holding = beside.sql.transaction(async (session) => {
      await session.query(`select 1 from revision where organization_id = 'acme' for update`)
      const writes = Array.from({ length: 8 }, (_, i) => {
        const changes = [put(`doc:l${i}#viewer@user:alice`)]
        return i % 2 === 0
          ? beside.store.write('acme', changes, { context })
          : beside.atomically({ logs: ['acme', TOKENS] }, ({ store }) => store.write('acme', changes, { context }))
      })
      const waiting = `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      await expect.poll(async () => (await beside.sql.query<{ n: number }>(waiting))[0]?.n).toBe(1)
      transactions = (await beside.sql.query<{ n: number }>(waiting))[0]?.n ?? 0
      return writes
    })
    await Promise.all(await holding)
    expect(transactions).toBe(1)
  }, 60_000)
})

test.each([
  ['the deletion of an organization', 'relationship', 'delete from relationship'],
  ['a survey', 'relationship', 'split_part'],
])('%s may take longer than other transactions', async (name, table, statement) => {
  const { beside, far } = await open({ timeLimits: { ...LIMITS, statementMs: 500, transactionMs: 500 } })
  await beside.store.write(ENVIRONMENT, [organization('gone')], { context })
  const lengthy = () =>
    name === 'a survey'
      ? far.store.tupleShapes(['doc'])
      : far.store.write(ENVIRONMENT, [{ kind: 'organization', id: 'gone', organization: null }], { context })
  let waiting: Promise<unknown> = Promise.resolve()
  await beside.sql.transaction(async (session) => {
    await session.query(`lock table ${table} in access exclusive mode`)
    waiting = lengthy()
    waiting.catch(() => undefined) // awaited below
    const locked = `select query from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    await expect
      .poll(async () => (await beside.sql.query<{ query: string }>(locked))[0]?.query ?? '')
      .toContain(statement)
    await new Promise((done) => setTimeout(done, 1_000))
  })
  await waiting
})

describe('silence', () => {
  const make = () => {
    let nowMs = 0
    const silence = createSilence({ silentMs: 1_000, retryMs: 250, clock: () => nowMs })
    const begin = () => silence.begin({ prompt: true })
    const pass = (ms: number): void => {
      nowMs += ms
    }
    return { begin, slow: () => silence.begin({ prompt: false }), pass }
  }

  test('is noticed while a statement waits, before it is given up', () => {
    const { begin, pass } = make()
    begin()
    pass(1_000)
    expect(begin()).not.toBeNull()
    pass(1)
    expect(begin()).not.toBeNull() // the one that tries
    expect(begin()).toBeNull()
  })

  test('is not what a slow statement means, nor one that waits while others are answered', () => {
    const { begin, slow, pass } = make()
    slow()
    pass(5_000)
    begin()
    for (let i = 0; i < 5; i++) {
      pass(900)
      begin()?.(true)
    }
    expect(begin()).not.toBeNull()
  })

  test('ends with any answer, and with no failure', () => {
    const { begin, slow, pass } = make()
    begin()?.(false)
    const tries = begin()
    expect(tries).not.toBeNull()
    expect([begin(), slow()]).toEqual([null, null])
    tries?.(false)
    expect(begin()).toBeNull()
    pass(250)
    slow()?.(true)
    expect([begin(), begin()]).not.toContain(null)
  })

  test('is not begun by a failure that is older than the last answer', () => {
    const { begin, pass } = make()
    const old = begin()
    pass(500)
    begin()?.(true)
    old?.(false)
    expect([begin(), begin()]).not.toContain(null)
  })
})
