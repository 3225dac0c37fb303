/**
 * One PDP process of the history checker: opens the source that it is told to, mutated or not, shakes the order of its
 * statements, and answers over HTTP. Started by fork; one case after the other.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { inspect } from 'node:util'
import pg from 'pg'
import type { PdpOptions } from '../../../pdp/engine/decision-point/options.ts'
import type { Store } from '../../../pdp/engine/store/contract.ts'
import type { Sql } from '../../../pdp/engine/store/directory.ts'
import type { Change } from '../../../pdp/shared/domain/change.ts'
import type { DecideRequest, Pdp } from '../../../pdp/shared/domain/decision.ts'
import type { JournalId } from '../../../pdp/shared/domain/journal.ts'
import { auditCaches, type Hooks } from './node-audit.ts'

export type NodeCase = {
  /** Holds the `pdp` folder whose code is to run. */
  readonly root: string
  readonly connectionString: string
  readonly cacheBytesMax: number
  readonly triesMax: number
  /** Most statements are quick, a few come very late, before or after they ran; 0 for none. */
  readonly chaosMs: number
  /** Half of the statements that read rows come late after they ran: the log has moved on when their rows are installed. */
  readonly lateRows: boolean
  /** Milliseconds between losses of cached row sets; null for none. */
  readonly shedMs: number | null
  readonly lease: 'sole' | 'shared' | null
  /** The whole process as `portcullis-pdp serve` starts it, besides the bare decision point. */
  readonly served: { readonly issuer: string; readonly adminSecret: string; readonly masterKey: string } | null
  /** It listens where the issuer's name says. */
  readonly isIssuer: boolean
}
export type Opened = { readonly url: string; readonly served: { readonly http: string; readonly grpc: string } | null }
export type NodeWrite = { readonly log: JournalId; readonly changes: readonly Change[]; readonly requestId: string }
type Running = {
  readonly store: Store
  readonly sql: Sql
  readonly pdp: Pdp
  readonly appendJournal: typeof import('../../../pdp/engine/store/postgres/journal.ts').appendJournal
  readonly appendArrivals: typeof import('../../../pdp/engine/store/arrivals.ts').appendArrivals
  readonly lockPerson: typeof import('../../../pdp/engine/store/journal-lock.ts').lockPerson
  readonly opened: Opened
  close(): Promise<void>
}

const SHARE_SHED = 0.3
const ARRIVE_SHARE = 0.8
const NEVER_MS = 2 ** 31 - 1

let chaosMs = 0
let lateRows = false
/** Of the open case. */
let shakenCount = 0
let leasedCount = 0
let running: Running | null = null

/** A third of the statements waits before it is sent, a third after its answer came; one in seven of those for long. */
function shake(): Promise<unknown> {
  const roll = Math.random()
  if (chaosMs === 0 || roll < 0.65) return Promise.resolve()
  shakenCount++
  return delay(roll > 0.95 ? lateMs() : Math.random() * chaosMs)
}

const lateMs = (): number => 15 + Math.random() * 20

/**
 * Shakes every statement but those of a writing transaction, which would hold its log's lock longer: these pause by themselves
 * before they commit. The store takes a client from its pool, so the client is what has to be shaken.
 */
function shakeStatements(): void {
  const writing = new WeakSet<pg.Client>()
  const query = pg.Client.prototype.query as (...words: unknown[]) => Promise<unknown>
  pg.Client.prototype.query = async function shaken(this: pg.Client, ...words: unknown[]): Promise<unknown> {
    const [given] = words as [string | { readonly text: string; readonly name?: string }]
    const { text, name = '' } = typeof given === 'string' ? { text: given } : given
    if (text === 'begin') writing.add(this)
    else if (text === 'commit' || text === 'rollback') writing.delete(this)
    if (writing.has(this) || text === 'commit') return query.apply(this, words)
    await shake()
    const answer = await query.apply(this, words)
    await (lateRows && name.startsWith('rows ') && Math.random() < 0.5 ? delay(lateMs()) : shake())
    return answer
  } as typeof pg.Client.prototype.query
}

async function open(from: NodeCase): Promise<Running> {
  const load = <T>(file: string): Promise<T> => import(pathToFileURL(join(from.root, 'pdp', file)).href)
  const hooks = globalThis as Hooks
  hooks.historyCaches = []
  hooks.historySheds = []
  shakenCount = 0
  leasedCount = 0
  const { openPostgres } = await load<typeof import('../../../pdp/engine/store/postgres/postgres.ts')>(
    'engine/store/postgres/postgres.ts',
  )
  const { createPdp } = await load<typeof import('../../../pdp/engine/decision-point/create-pdp.ts')>(
    'engine/decision-point/create-pdp.ts',
  )
  const { appendJournal } = await load<typeof import('../../../pdp/engine/store/postgres/journal.ts')>(
    'engine/store/postgres/journal.ts',
  )
  const { appendArrivals } =
    await load<typeof import('../../../pdp/engine/store/arrivals.ts')>('engine/store/arrivals.ts')
  const { lockPerson } =
    await load<typeof import('../../../pdp/engine/store/journal-lock.ts')>('engine/store/journal-lock.ts')
  const lease = from.lease === null ? {} : { lease: from.lease }
  const { connectionString } = from
  const database = await openPostgres(
    { connectionString, poolCountMax: 12, ...lease },
    {
      onServer(event) {
        if (event.kind === 'leased') leasedCount += event.questions
      },
    },
  )
  const { cacheBytesMax, triesMax } = from
  const options: PdpOptions & { cacheBytesMax: number; triesMax: number } = {
    store: database.store,
    cacheBytesMax,
    triesMax,
  }
  const pdp = createPdp(options)
  const served = from.served === null ? null : await serve(load, { ...from, ...from.served })
  const server = await listen()
  chaosMs = from.chaosMs
  lateRows = from.lateRows
  const shedding = setInterval(
    () => hooks.historySheds?.forEach((shed) => void shed(SHARE_SHED)),
    from.shedMs ?? NEVER_MS,
  )
  return {
    store: database.store,
    sql: database.sql,
    pdp,
    appendJournal,
    appendArrivals,
    lockPerson,
    opened: {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      served: served === null ? null : { http: served.httpUrl, grpc: served.grpcAddress },
    },
    async close() {
      chaosMs = 0
      clearInterval(shedding)
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
      await served?.close()
      await pdp.close()
    },
  }
}

async function serve(
  load: <T>(file: string) => Promise<T>,
  given: NonNullable<NodeCase['served']> & Pick<NodeCase, 'isIssuer' | 'connectionString'>,
) {
  const { startPdp } = await load<typeof import('../../../pdp/server/runtime/start.ts')>('server/runtime/start.ts')
  const { readConfig } = await load<typeof import('../../../pdp/server/runtime/config.ts')>('server/runtime/config.ts')
  const { createLog } = await load<typeof import('../../../pdp/shared/process/log.ts')>('shared/process/log.ts')
  const { createShutdown } =
    await load<typeof import('../../../pdp/shared/process/shutdown.ts')>('shared/process/shutdown.ts')
  const config = readConfig({
    PORTCULLIS_ISSUER: given.issuer,
    PORTCULLIS_ADMIN_SECRET: given.adminSecret,
    PORTCULLIS_MASTER_KEY: given.masterKey,
    PORTCULLIS_HTTP_LISTEN: given.isIssuer ? new URL(given.issuer).host : '127.0.0.1:0',
    PORTCULLIS_GRPC_LISTEN: '127.0.0.1:0',
    PORTCULLIS_METRICS_LISTEN: '127.0.0.1:0',
    DATABASE_URL: given.connectionString,
  })
  const log = createLog({ service: 'history', level: 'silent' })
  return startPdp(config, { log, shutdown: createShutdown({ log, timeoutMs: 10_000 }) })
}

type Problem = { readonly code?: string }

async function answer(path: string, body: unknown): Promise<unknown> {
  const node = running
  if (node === null) throw new Error('no case is open')
  if (path === '/decide') {
    const decision = await node.pdp.decide(body as DecideRequest)
    return { ...decision, entitlements: Object.fromEntries(decision.entitlements) }
  }
  if (path === '/write') {
    const { log, changes, requestId } = body as NodeWrite
    const context = { actor: 'history', requestId }
    if (!log.startsWith('#') || log === '#environment') {
      const { position, changed } = await node.store.write(log, changes, { context })
      return { revision: position.revision, changed }
    }
    // As PDPs of this version write to such a log, and now and then as those before did, beside them.
    if (Math.random() < ARRIVE_SHARE) {
      await node.sql.transaction(async (sql) => {
        for (const change of changes) if (change.kind === 'user') await node.lockPerson(sql, change.id)
        await node.appendArrivals(sql, log, changes, context)
      })
      return { revision: null, changed: true }
    }
    const revision = await node.sql.transaction((sql) => node.appendJournal(sql, log, changes, context))
    return { revision, changed: true }
  }
  const audits = []
  for (const caches of (globalThis as Hooks).historyCaches ?? []) audits.push(await auditCaches(node.store, caches()))
  const compared = audits.reduce((n, a) => n + a.compared, 0)
  return { compared, shaken: shakenCount, leased: leasedCount, wrong: audits.flatMap((a) => a.wrong) }
}

function listen(): Promise<Server> {
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (part) => {
      text += part
    })
    request.on('end', async () => {
      const result = await answer(request.url ?? '', text === '' ? null : JSON.parse(text)).then(
        (value) => ({ status: 200, value }),
        (error: Problem) => ({
          status: error.code === 'store_unavailable' ? 503 : error.code === undefined ? 500 : 409,
          value: { code: error.code ?? 'internal', message: String(error) },
        }),
      )
      response.writeHead(result.status, { 'content-type': 'application/json' }).end(JSON.stringify(result.value))
    })
  })
  return new Promise((done) => {
    server.listen(0, '127.0.0.1', () => done(server))
  })
}

shakeStatements()
process.on('message', async (message: NodeCase | 'close') => {
  try {
    if (message === 'close') {
      await running?.close()
      running = null
      process.send?.({ closed: true })
    } else {
      running = await open(message)
      process.send?.({ opened: running.opened })
    }
  } catch (err) {
    process.send?.({ failed: inspect(err) })
  }
})
process.on('disconnect', () => process.exit(0))
process.send?.({ ready: true })
