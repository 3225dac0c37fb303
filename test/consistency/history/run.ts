/** One run: a fresh database, three nodes, random writers and readers, and the verdict over all that they saw. */
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { openPostgres } from '../../../pdp/engine/store/postgres/postgres.ts'
import { freePort } from '../../support/free-port.ts'
import { ARCHIVE, readArchive, readTables, TRIM } from './archive.ts'
import type { HistoryCase } from './cases.ts'
import { judge } from './check.ts'
import { createDelegatedTokens, DELEGATED, type DelegatedTokens } from './delegated.ts'
import { Unavailable } from './grpc.ts'
import {
  aboutReader,
  createMix,
  DELEGATED_SEED,
  ORGANIZATIONS,
  type Question,
  seedFor,
  USERS,
  type Write,
} from './mix.ts'
import type { Node, OpenNode } from './nodes.ts'
import type { DecisionRecord, StandingRecord, TokenUse, Violation, WriteRecord } from './records.ts'
import { createReaderTokens, judgeTokens, type ReaderTokens, type Served } from './served.ts'
import { decisionsOf, watchStanding } from './standing.ts'

export type Outcome = {
  readonly decisions: number
  /** Standing questions that were watched, and the answers that were told of them. */
  readonly standings: number
  readonly pushes: number
  readonly writes: number
  /** Exchanged tokens whose claims were judged. */
  readonly claims: number
  readonly unanswered: number
  readonly rowSetsCompared: number
  readonly crashes: number
  /** Questions whose positions came from memory. */
  readonly leased: number
  readonly violations: readonly Violation[]
}
export type RunOptions = {
  readonly nodes: readonly Node[]
  /** Superuser's connection to a PostgreSQL of the checker's own. */
  readonly serverUrl: string
  /** Holds the source to run. */
  readonly root: string
  readonly durationMs: number
  /** Judge again and again, and stop at the first violation. */
  readonly stopEarly: boolean
}

const STOPPED_MS = 3_000
const READERS = 36
const WRITERS = 6
const WATCHERS = 8
const CHAOS_MS = 8
const JUDGE_EVERY_MS = 700
const REVOKE_EVERY_MS = 200
const REVOKE_OFTEN_MS = 20
const EXCHANGE_EVERY_MS = 20
const EVERYTHING = 64 * 1024 * 1024
const TEMPLATE = 'history_template'
const SECRETS = {
  adminSecret: randomBytes(24).toString('base64url'),
  masterKey: randomBytes(32).toString('base64'),
}

/** A database with the schema and the archive's triggers, of which every run gets a copy. */
export async function createTemplate(serverUrl: string): Promise<void> {
  await administer(serverUrl, `create database ${TEMPLATE}`)
  const url = databaseUrl(serverUrl, TEMPLATE)
  const migrated = await openPostgres({ connectionString: url })
  await migrated.close()
  await administer(url, ARCHIVE)
}

function databaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}

async function administer(connectionString: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  await client.query(statement)
  await client.end()
}

export async function runCase({ setup }: HistoryCase, options: RunOptions): Promise<Outcome> {
  const name = `history_${randomBytes(6).toString('hex')}`
  await administer(options.serverUrl, `create database ${name} template ${TEMPLATE} strategy file_copy`)
  const url = databaseUrl(options.serverUrl, name)
  const database = new pg.Pool({ connectionString: url, max: 4 })
  database.on('error', () => {})
  const served: Served | null =
    setup.served === true ? { ...SECRETS, issuer: `http://127.0.0.1:${await freePort()}` } : null
  const nodeCase = {
    root: options.root,
    connectionString: url,
    cacheBytesMax: setup.cacheBytesMax ?? EVERYTHING,
    triesMax: setup.triesMax ?? 12,
    chaosMs: CHAOS_MS,
    lateRows: setup.lateRows === true,
    shedMs: setup.shedMs ?? null,
    served,
  }
  const nodes: OpenNode[] = []
  if (setup.statement !== undefined) await administer(url, setup.statement)
  try {
    // One after the other: on a busy machine three that start at once cannot connect in time.
    for (const [at, node] of options.nodes.entries())
      nodes.push(
        await node.open({
          ...nodeCase,
          isIssuer: at === 0,
          lease: at === 0 || setup.leased === 'shared' ? (setup.leased ?? null) : null,
        }),
      )
    const run = new Run(database, nodes, { setup, served })
    return await run.whole(options)
  } finally {
    await Promise.all(nodes.map((node) => node.close()))
    await database.end()
    await administer(options.serverUrl, `drop database ${name} with (force)`)
  }
}

class Run {
  readonly #database: pg.Pool
  readonly #nodes: readonly OpenNode[]
  readonly #setup: HistoryCase['setup']
  readonly #writes: WriteRecord[] = []
  readonly #decisions: DecisionRecord[] = []
  #unanswered = 0
  #crashes = 0
  #stopping = false
  readonly #served: Served | null
  #tokens: ReaderTokens | null = null
  #delegated: DelegatedTokens | null = null
  readonly #tokenUses: TokenUse[] = []
  readonly #standings: StandingRecord[] = []

  constructor(
    database: pg.Pool,
    nodes: readonly OpenNode[],
    { setup, served }: { setup: HistoryCase['setup']; served: Served | null },
  ) {
    this.#database = database
    this.#nodes = nodes
    this.#setup = setup
    this.#served = served
  }

  async whole(options: Pick<RunOptions, 'durationMs' | 'stopEarly'>): Promise<Outcome> {
    const mix = createMix({ random: Math.random, nowMs: Date.now, focus: this.#setup.focus ?? null })
    for (const write of seedFor(this.#setup.focus)) await this.#write(write)
    if (this.#served !== null) {
      this.#tokens = await createReaderTokens(this.#served.issuer, this.#served, { ORGANIZATIONS, USERS })
      if (this.#setup.focus === 'delegation') {
        for (const write of DELEGATED_SEED) await this.#write(write)
        this.#delegated = await createDelegatedTokens(this.#served)
      }
    }
    await this.#database.query('update history_setting set pause_ms_max = $1', [this.#setup.pauseMs ?? 6])
    const endAt = performance.now() + options.durationMs
    const loops = [
      ...Array.from({ length: this.#setup.writers ?? WRITERS }, () =>
        this.#loop(async () => {
          await this.#write(mix.write())
          await delay(Math.random() * (this.#setup.restMs ?? 10))
        }),
      ),
      ...Array.from({ length: READERS }, () => this.#loop(() => this.#ask(mix.question()))),
      this.#loop(() => this.#trim()),
      this.#loop(() => this.#crash()),
      this.#loop(() => this.#stop()),
      this.#loop(() => this.#revoke()),
      this.#loop(() => this.#exchange()),
      ...(this.#tokens === null
        ? []
        : Array.from({ length: WATCHERS }, () => this.#loop(() => this.#watch(mix.question())))),
    ]
    let violations: readonly Violation[] = []
    let failed = false
    const ended = Promise.all(loops).catch((err: unknown) => {
      failed = true
      throw err
    })
    ended.catch(() => {}) // awaited below
    while (performance.now() < endAt && violations.length === 0 && !failed) {
      await delay(Math.min(JUDGE_EVERY_MS, Math.max(0, endAt - performance.now())))
      if (options.stopEarly) violations = await this.#judge()
    }
    this.#stopping = true
    await ended
    return this.#finish(violations)
  }

  /** Everything is quiet: each node is asked once more about everything, and what is stored and cached is compared. */
  async #finish(found: readonly Violation[]): Promise<Outcome> {
    for (const node of this.#nodes) {
      for (const organization of ORGANIZATIONS) {
        const permissions = [{ relation: 'r', resource: 'thing:0' }]
        await this.#ask({ organization, subject: 'user:u0', permissions, entitlements: [] }, node)
      }
    }
    const audits = await Promise.all(this.#nodes.map((node) => node.audit()))
    // The checker once lost its grip on the store's statements: it went on, calmly, and saw less.
    if (audits.some(({ shaken }) => shaken === 0)) throw new Error('a node did not shake the order of its statements')
    const cached = audits.flatMap(({ wrong }) => wrong.map((message) => ({ rule: 'cache' as const, message })))
    const judged = found.length > 0 ? found : await this.#judge(await readTables(this.#database))
    return {
      decisions: this.#decisions.length,
      standings: this.#standings.length,
      pushes: this.#standings.reduce((n, { pushes }) => n + pushes.length, 0),
      writes: this.#writes.length,
      claims: this.#delegated?.claimed.length ?? 0,
      unanswered: this.#unanswered,
      rowSetsCompared: audits.reduce((n, a) => n + a.compared, 0),
      crashes: this.#crashes,
      leased: audits.reduce((n, a) => n + a.leased, 0),
      violations: [...judged, ...cached],
    }
  }

  async #judge(tables: ReadonlyMap<string, readonly string[]> | null = null): Promise<readonly Violation[]> {
    // What is judged was answered before the archive is read, so the archive has all of it.
    const writes = [...this.#writes]
    const decisions = [...this.#decisions]
    const standings = [...this.#standings]
    const claimed = [...(this.#delegated?.claimed ?? [])]
    const archive = await readArchive(this.#database)
    const judged = judge({ archive, writes, decisions, standings, claimed, tables })
    return [...judged, ...judgeTokens(this.#tokenUses)]
  }

  async #loop(work: () => Promise<unknown>): Promise<void> {
    while (!this.#stopping) await work()
  }

  #node(): OpenNode {
    const node = this.#nodes[Math.floor(Math.random() * this.#nodes.length)]
    if (node === undefined) throw new TypeError('a run needs nodes')
    return node
  }

  #writer(): OpenNode {
    const [first] = this.#nodes
    return first !== undefined && Math.random() < (this.#setup.ownShare ?? 0) ? first : this.#node()
  }

  async #stop(): Promise<void> {
    const { stopMs } = this.#setup
    for (let waited = 0; waited < (stopMs ?? 50) && !this.#stopping; waited += 50) await delay(50)
    if (stopMs !== undefined && !this.#stopping) await this.#nodes[0]?.stopFor(STOPPED_MS)
  }

  /** @returns null when there was no answer. */
  async #timed<T>(work: () => Promise<T>) {
    const [startAt, startMs] = [performance.now(), Date.now()]
    const value = await work().catch((err: unknown) => {
      if (!isOutage(err)) throw err
      return null
    })
    if (value === null) {
      this.#unanswered++
      await delay(5)
    }
    return { value, startAt, startMs, endAt: performance.now(), endMs: Date.now() + 1 }
  }

  async #write({ log, changes }: Write): Promise<void> {
    const requestId = randomUUID()
    const { value: outcome, ...times } = await this.#timed(() => this.#writer().write({ log, changes, requestId }))
    this.#writes.push({ log, changes, requestId, outcome, ...times })
  }

  async #ask(given: Question, node = this.#node()): Promise<void> {
    const acting = given.actor !== undefined
    const token = acting ? this.#delegated?.pick(given) : this.#tokens?.pick(given.organization)
    const roll = token === undefined ? 0 : Math.random()
    // Over gRPC each question here names its subject, for whom nobody acts.
    const from = roll < 0.25 ? 'the decision point' : roll < 0.5 ? 'HTTP' : roll < 0.7 && !acting ? 'gRPC' : 'a stream'
    const question = from === 'a stream' && !acting ? aboutReader(given) : given
    const { value, ...times } = await this.#timed(() => {
      if (token === undefined || from === 'the decision point') return node.decide(question)
      if (from === 'a stream') return node.decideOnStream(question, token.value)
      return from === 'HTTP' ? node.decideByHttp(question, token.value) : node.decideByGrpc(question, token.value)
    })
    if (value === null) return
    const { active, ...answered } = value
    if (active) this.#decisions.push({ question, ...answered, ...times, from })
    if (token !== undefined && from !== 'the decision point') this.#tokenUses.push({ token, active, ...times })
  }

  async #watch(given: Question): Promise<void> {
    const [tokens, node] = [this.#tokens, this.#node()]
    const origin = node.served?.http
    const { organization } = given
    if (tokens === null || origin === undefined || tokens.pick(organization) === undefined) return
    const delegated = given.actor === undefined ? null : this.#delegated
    const question = delegated === null ? aboutReader(given) : { ...given, ...DELEGATED }
    const token = await (delegated ?? tokens).mint(origin, organization)
    if (token === null) return
    const revoke = (): Promise<void> => (delegated ?? tokens).revoke(origin, organization, token)
    const watched = await watchStanding({ node, question, token, revoke, isOver: () => this.#stopping })
    this.#standings.push(watched)
    this.#decisions.push(...decisionsOf(watched))
  }

  async #revoke(): Promise<void> {
    await delay(this.#setup.focus === 'revocations' ? REVOKE_OFTEN_MS : REVOKE_EVERY_MS)
    const origin = this.#node().served?.http
    if (origin !== undefined && !this.#stopping) await this.#tokens?.revokeOne(origin)
  }

  async #exchange(): Promise<void> {
    await delay(EXCHANGE_EVERY_MS)
    const origin = this.#node().served?.http
    if (origin !== undefined && !this.#stopping) await this.#delegated?.mint(origin)
  }

  async #trim(): Promise<void> {
    await delay(this.#setup.trimMs ?? 50)
    if (this.#setup.trimMs === undefined) return
    await this.#database.query(TRIM, [Math.floor(Math.random() * 3)]).catch(() => {})
  }

  /** A backend that dies makes PostgreSQL end all others and recover from its log, on the same port. */
  async #crash(): Promise<void> {
    const { crashMs } = this.#setup
    for (let waited = 0; waited < (crashMs ?? 50) && !this.#stopping; waited += 50) await delay(50)
    if (crashMs === undefined || this.#stopping) return
    const victims = await this.#database
      .query<{ pid: number }>(
        `select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()
         and datname = current_database() order by random() limit 1`,
      )
      .catch(() => ({ rows: [] }))
    for (const { pid } of victims.rows) {
      process.kill(pid, 'SIGKILL')
      this.#crashes++
    }
  }
}

function isOutage(error: unknown): boolean {
  if (error instanceof Unavailable) return true
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET'
}
