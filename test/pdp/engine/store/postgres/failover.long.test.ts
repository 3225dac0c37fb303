/** A primary that was overtaken and goes on, and a standby behind the address, with real servers. */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { ServerEvent } from '../../../../../pdp/engine/store/postgres/connection/fence.ts'
import { openPostgres, type PostgresOptions } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { freePort, isOpen } from '../../../../support/free-port.ts'
import { type PostgresPair, startPostgresPair } from '../../../../support/postgres-pair.ts'
import { context, given, organization, put } from '../../../../support/tuples.ts'
import { until } from '../../../../support/until.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function startPair(options?: Parameters<typeof startPostgresPair>[0]): Promise<PostgresPair> {
  const pair = await startPostgresPair(options)
  closing.push(() => pair.close())
  return pair
}

async function openAt(connectionString: string, options: Pick<PostgresOptions, 'replication'> = {}) {
  const events: ServerEvent[] = []
  const onServer = (event: ServerEvent): void => void events.push(event)
  const opened = await openPostgres({ connectionString, poolCountMax: 2, ...options }, { onServer })
  closing.push(() => opened.close())
  const kinds = (): readonly string[] => events.map(({ kind }) => kind)
  return { ...opened, events, kinds, vector: () => opened.store.vector([ENVIRONMENT]) }
}

describe('a primary that was overtaken and goes on', () => {
  test('is believed by nobody who has met the new one over any connection, for reads and writes alike', async () => {
    const pair = await startPair()
    const here = await openAt(pair.url)
    await given(here.store, 'acme', put('doc:1#viewer@user:alice'))
    await here.vector()
    await pair.caughtUp()
    await pair.promote()
    // Both pools have connections to the former primary, and keep them. One new connection meets the new one.
    pair.address.lead(pair.standby.port, 'keeps')
    const ask = () => here.sql.query<{ port: number }>('select inet_server_port() as port from pg_sleep(0.2)')
    const [first, second] = await Promise.allSettled([ask(), ask()])
    expect(first).toMatchObject({ status: 'rejected', reason: { code: 'store_unavailable' } })
    expect(second).toMatchObject({ status: 'fulfilled', value: [{ port: pair.standby.port }] })
    const written = await here.store.write('acme', [put('doc:2#viewer@user:bob')], { context })
    const [there] = await pair.standby.query<{ revision: string }>(
      `select revision from revision where organization_id = 'acme'`,
    )
    expect(Number(there?.revision)).toBe(written.position.revision)
    expect((await here.store.vector(['acme'])).logs.get('acme')).toEqual(written.position)
    const lost = here.events.find(({ kind }) => kind === 'overtaken')
    expect(lost).toMatchObject({ address: `127.0.0.1:${pair.primary.port}`, timeline: 1, latest: 2, isNew: false })
  })

  test('is given up within seconds by a process that asks nothing', async () => {
    const pair = await startPair()
    const here = await openAt(pair.url)
    await here.vector()
    await pair.promote()
    pair.address.lead(pair.standby.port, 'keeps')
    await until(() => here.events.some((event) => event.kind === 'primary' && event.timeline === 2))
    await here.vector()
    expect(here.kinds().filter((kind) => kind === 'overtaken')).toHaveLength(1)
  })

  test('commits nothing of a transaction that began there', async () => {
    const pair = await startPair()
    const here = await openAt(pair.url)
    const began = here.sql.transaction(async (sql) => {
      await sql.query('create table late (id integer)')
      await pair.promote()
      pair.address.lead(pair.standby.port, 'keeps')
      await until(() => here.events.some((event) => event.kind === 'primary' && event.timeline === 2))
    })
    await expect(began).rejects.toMatchObject({ code: 'store_unavailable', message: /overtaken/ })
    expect(await pair.primary.query(`select 1 from pg_class where relname = 'late'`)).toEqual([])
  })

  test('is refused, and said to be history that went back, when the address leads to it again', async () => {
    const pair = await startPair()
    await pair.promote()
    pair.address.lead(pair.standby.port, 'cuts')
    const here = await openAt(pair.url)
    await given(here.store, 'acme', put('doc:1#viewer@user:alice'))
    pair.address.lead(pair.primary.port, 'cuts')
    await expect(here.vector()).rejects.toMatchObject({ code: 'store_unavailable' })
    await expect(given(here.store, 'late')).rejects.toMatchObject({ code: 'store_unavailable' })
    await until(() => here.events.some((event) => event.kind === 'overtaken' && event.isNew))
    pair.address.lead(pair.standby.port, 'cuts')
    await until(() =>
      here.vector().then(
        () => true,
        () => false,
      ),
    )
    expect(here.events.at(-1)).toMatchObject({ kind: 'primary', timeline: 2 })
  })
})

describe('a standby behind the address', () => {
  test('is given up at once, by reads and by writes', async () => {
    const pair = await startPair()
    const here = await openAt(pair.url)
    await given(here.store, 'acme')
    pair.address.lead(pair.standby.port, 'cuts')
    await until(() =>
      here.vector().then(
        () => false,
        () => here.kinds().includes('standby'),
      ),
    )
    await expect(here.store.write(ENVIRONMENT, [organization('late')], { context })).rejects.toMatchObject({
      code: 'store_unavailable',
    })
    expect(here.connections().reads.open + here.connections().transactions.open).toBe(0)
    pair.address.lead(pair.primary.port, 'keeps')
    await until(() =>
      here.vector().then(
        () => true,
        () => false,
      ),
    )
  })
})

describe('a failover that loses acknowledged writes', () => {
  test('is said with the log and both revisions', async () => {
    const pair = await startPair()
    const here = await openAt(pair.url)
    await given(here.store, 'acme', put('doc:1#viewer@user:alice'))
    await pair.caughtUp()
    await pair.cutOff()
    const lost = await here.store.write('acme', [put('doc:2#viewer@user:alice')], { context })
    await here.store.vector(['acme'])
    await pair.promote()
    pair.address.lead(pair.standby.port, 'cuts')
    const { revision: known } = lost.position
    await until(() =>
      here.store.vector(['acme']).then(
        ({ logs }) => logs.get('acme')?.revision === known - 1,
        () => false,
      ),
    )
    expect(here.events).toContainEqual({ kind: 'history', log: 'acme', revision: known - 1, known })
  })
})

describe('a database URL with several hosts', () => {
  const both = ({ primary, standby }: PostgresPair): string =>
    primary.url.replace(/127\.0\.0\.1:\d+/, `127.0.0.1:${standby.port},127.0.0.1:${primary.port}`)

  test('leads to the one that takes writes, wherever it stands, without a word about the others', async () => {
    const pair = await startPair()
    const here = await openAt(`${both(pair)}?target_session_attrs=read-write`)
    await given(here.store, 'acme', put('doc:1#viewer@user:alice'))
    await Promise.all(Array.from({ length: 8 }, () => here.vector()))
    expect(new Set(here.kinds())).toEqual(new Set(['primary']))
  })

  test('leads to the new primary within seconds, while the former one goes on', async () => {
    const pair = await startPair()
    const here = await openAt(both(pair))
    await given(here.store, 'acme')
    await pair.caughtUp()
    await pair.promote()
    await until(() => here.events.some((event) => event.kind === 'primary' && event.timeline === 2))
    const { position } = await here.store.write('acme', [put('doc:2#viewer@user:bob')], { context })
    const [there] = await pair.standby.query<{ revision: string }>(
      `select revision from revision where organization_id = 'acme'`,
    )
    expect(Number(there?.revision)).toBe(position.revision)
    expect(here.events.some((event) => event.kind === 'overtaken' && event.isNew)).toBe(false)
  })

  test('leads past a host that is gone', async () => {
    const pair = await startPair()
    const here = await openAt(both(pair))
    await here.vector()
    await pair.promote()
    await pair.primary.stop()
    await until(() =>
      here.vector().then(
        () => true,
        () => false,
      ),
    )
  })
})

describe.skipIf(spawnSync('pgbouncer', ['--version']).status !== 0)('a pooler (Debian: pgbouncer)', () => {
  async function openThrough(mode: string, ignored: string) {
    const pair = await startPair()
    const { username, password } = new URL(pair.url)
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-pooler-'))
    chmodSync(folder, 0o755)
    const port = await freePort()
    const [users, settings] = [join(folder, 'users.txt'), join(folder, 'pooler.ini')]
    writeFileSync(users, `"${username}" "${password}"\n`)
    const lines = [
      ...['[databases]', `* = host=127.0.0.1 port=${pair.primary.port}`, '[pgbouncer]', 'listen_addr = 127.0.0.1'],
      ...[`listen_port = ${port}`, 'auth_type = plain', `auth_file = ${users}`, `pool_mode = ${mode}`],
      ...['unix_socket_dir =', `ignore_startup_parameters = ${ignored}`],
    ]
    writeFileSync(settings, lines.join('\n'))
    const asRoot = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
    const pooler = spawn('pgbouncer', [...asRoot, settings], { stdio: 'ignore' })
    closing.push(async () => {
      pooler.kill('SIGKILL')
      rmSync(folder, { recursive: true })
    })
    await until(() => isOpen(port))
    return openAt(pair.url.replace(/:\d+\/postgres/, `:${port}/postgres`))
  }

  test.each(['session', 'transaction'])(
    'that ignores the settings of the session is refused: pool_mode=%s',
    async (mode) => {
      await expect(openThrough(mode, 'options')).rejects.toMatchObject({
        code: 'store_unavailable',
        message: /settings of the session are lost/,
      })
    },
  )

  test('that refuses the settings of the session is refused', async () => {
    await expect(openThrough('session', '')).rejects.toMatchObject({
      code: 'store_unavailable',
      cause: { code: '08P01' },
    })
  })
})

describe('with synchronous replication', () => {
  const SYNCHRONOUS = { replication: 'synchronous' } as const
  const answers = (of: Awaited<ReturnType<typeof openAt>>): Promise<boolean> =>
    of.vector().then(
      () => true,
      () => false,
    )

  test('a former primary that nobody told is silent before the first write of the new one is acknowledged', async () => {
    const pair = await startPair({ synchronous: true })
    const there = await openAt(pair.primary.url, SYNCHRONOUS)
    await given(there.store, 'acme', put('doc:1#viewer@user:alice'))
    await there.vector()
    await pair.caughtUp()
    await pair.promote()
    const here = await openAt(pair.standby.url, SYNCHRONOUS)
    expect(await answers(there)).toBe(true)
    let isWritten = false
    const write = here.store.write('acme', [put('doc:2#viewer@user:bob')], { context }).then(() => {
      isWritten = true
    })
    let answeredBefore = 0
    while (!isWritten && (await answers(there))) answeredBefore++
    expect(isWritten).toBe(false)
    expect(answeredBefore).toBeGreaterThan(0)
    await write
    expect(await answers(there)).toBe(false)
    expect(await answers(here)).toBe(true)
    await expect(there.store.write('acme', [put('doc:1#viewer@user:alice')], { context })).rejects.toMatchObject({
      code: 'store_unavailable',
    })
  })

  test('nothing is answered while the standby is cut off, and everything soon after it is back', async () => {
    const pair = await startPair({ synchronous: true })
    const here = await openAt(pair.url, SYNCHRONOUS)
    expect(await answers(here)).toBe(true)
    await pair.cutOff()
    await until(async () => !(await answers(here)))
    expect(here.kinds()).toContain('unconfirmed')
    await pair.attach()
    await until(() => answers(here))
    await until(() => here.kinds().at(-1) === 'confirmed')
  })

  test('nothing is answered by a primary whose commits wait for no standby', async () => {
    const pair = await startPair()
    await expect(openAt(pair.url, SYNCHRONOUS).then((here) => here.vector())).rejects.toMatchObject({
      code: 'store_unavailable',
    })
  })

  test('leaves no waiting heartbeats behind at the server', async () => {
    const pair = await startPair({ synchronous: true })
    const here = await openAt(pair.url, SYNCHRONOUS)
    await here.vector()
    const count = async (): Promise<number> => {
      const [row] = await pair.primary.query<{ count: number }>(
        `select count(*)::int from pg_stat_activity where application_name like 'portcullis heartbeat%'`,
      )
      return row?.count ?? 0
    }
    await pair.cutOff()
    const pids = new Set<number>()
    await until(async () => {
      const rows = await pair.primary.query<{ pid: number }>(
        `select pid from pg_stat_activity where application_name like 'portcullis heartbeat%'`,
      )
      for (const { pid } of rows) pids.add(pid)
      return pids.size > 2
    })
    expect(await count()).toBeLessThanOrEqual(2)
    await pair.attach()
  })
})
