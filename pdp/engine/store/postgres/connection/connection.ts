/** Connections to PostgreSQL as the store and the identity service use them, with errors that tell an outage from a faulty statement. */
import type pg from 'pg'
import { withTimeout } from '../../../../shared/base/with-timeout.ts'
import { PdpError } from '../../../../shared/domain/errors.ts'
import type { JournalId } from '../../../../shared/domain/journal.ts'
import { createNumbering } from '../../arrivals.ts'
import { createCheckout, type Use } from './checkout.ts'
import type { Connection, Database, OnStatement, ReadRows, TimeLimits } from './database.ts'
import { asPdpError, isLost, isUndone } from './errors.ts'
import type { Fence, Server } from './fence.ts'
import type { Hosts } from './hosts.ts'
import type { Lease } from './lease.ts'
import type { SharedHolder } from './shared-holder.ts'
import { createSilence } from './silence.ts'
import { mayRaise, type SoleHolder } from './sole-holder.ts'

export const TIME_LIMITS: TimeLimits = {
  decisionMs: 1_000,
  statementMs: 4_500,
  transactionMs: 5_000,
  lengthyMs: 60_000,
}
/** How often a caller may still try the database while it does not answer. */
const RETRY_MS = 250
/** The most tries of one transaction. PostgreSQL finds a deadlock after a second, so there is time for few more. */
const TRIES_MAX = 5

export type Pools = {
  readonly reads: pg.Pool
  /** A pool of its own, so that writers that wait for each other never take a connection from decisions. */
  readonly transactions: pg.Pool
}
type DatabaseOptions = {
  readonly fence: Fence
  readonly hosts: Hosts
  /** Null where replication is not synchronous. */
  readonly lease?: Lease | null
  readonly limits?: TimeLimits | undefined
  readonly onStatement?: OnStatement | null
  readonly holder?: SoleHolder | SharedHolder | null
}

export function databaseOver(pools: Pools, options: DatabaseOptions): Database {
  const { fence, hosts, lease = null, limits = TIME_LIMITS, onStatement = null, holder = null } = options
  const checkout = createCheckout({ fence, lease, hosts, answerMs: limits.decisionMs })
  const connectionOver = (client: pg.PoolClient, server: Server, leftMs: () => number): Connection =>
    connectionTo(client, { server, fence, leftMs, onStatement })
  const silence = createSilence({ silentMs: limits.decisionMs, retryMs: RETRY_MS, clock: () => performance.now() })

  async function on<T>(pool: pg.Pool, options: { readonly prompt: boolean }, use: Use<T>): Promise<T> {
    const done = silence.begin(options)
    if (done === null) throw new PdpError('store_unavailable', 'the database does not answer')
    try {
      const result = await checkout(pool, use)
      done(true)
      return result
    } catch (err) {
      done(!isLost(err))
      throw err
    }
  }

  const transact =
    (totalMs: number, statementMs: number, settings: readonly string[] = []): Within =>
    (begin, work, sinceMs = performance.now()) => {
      const endMs = sinceMs + totalMs
      const leftMs = (): number => Math.min(statementMs, endMs - performance.now())
      const once = () =>
        on(pools.transactions, { prompt: false }, async (client, server, drop) => {
          if (!begin.endsWith('read only')) await lease?.settle(server.timeline)
          const connection = connectionOver(client, server, leftMs)
          const committing = (): void => fence.pass(server) // a commit on an overtaken server is lost, so it must not be acknowledged
          const transaction = transactionOf({ begin, settings, work, committing })
          try {
            return await (holder === null ? transaction(connection) : holder.ownWrite(connection, transaction))
          } catch (err) {
            // After a lost answer, a rollback would get no answer either; the server rolls back when the connection closes.
            if (!isLost(err))
              await connectionOver(client, server, () => limits.decisionMs)
                .query('rollback')
                .catch(drop)
            throw err
          }
        })
      return again(endMs, once)
    }
  const { decisionMs, statementMs, transactionMs, lengthyMs } = limits
  const transaction = transact(transactionMs, statementMs)
  const query: Database['query'] = (text, values) => {
    const isSelect = firstWord(text) === 'select'
    if (holder !== null && !isSelect && mayRaise(text)) return transaction('begin', (sql) => sql.query(text, values))
    return again(performance.now() + transactionMs, () =>
      on(pools.reads, { prompt: false }, async (client, server) => {
        if (!isSelect) await lease?.settle(server.timeline)
        return connectionOver(client, server, () => statementMs).query(text, values)
      }),
    )
  }
  const number = createNumbering({ query })
  const within = numbering(transaction, number)
  return {
    query,
    prepared: (name, text, values, read) =>
      on(pools.reads, { prompt: true }, (client, server) =>
        connectionOver(client, server, () => decisionMs).prepared(name, text, values, read),
      ),
    within,
    lengthy: numbering(transact(lengthyMs, lengthyMs, [`set local statement_timeout = ${lengthyMs}`]), number),
    transaction: (work) => within('begin', work),
  }
}

type Within = <T>(begin: string, work: (connection: Connection) => Promise<T>, sinceMs?: number) => Promise<T>

/** `committing`: called before the commit is sent; `sent`: called at the same time by callers that must know that from then on the commit may happen. */
const transactionOf =
  <T>(of: {
    readonly begin: string
    readonly settings: readonly string[]
    readonly work: (connection: Connection) => Promise<T>
    readonly committing: () => void
  }) =>
  async (connection: Connection, sent: () => void = () => undefined): Promise<T> => {
    await connection.query(of.begin)
    for (const setting of of.settings) await connection.query(setting)
    const result = await of.work(connection)
    of.committing()
    sent()
    await connection.query('commit')
    return result
  }

/** Gives revisions to entries that arrived in the transaction, before its caller is answered. */
const numbering =
  (within: Within, number: (log: JournalId) => Promise<void>): Database['within'] =>
  async (begin, work, sinceMs) => {
    const arrived = new Set<JournalId>()
    const noting = (connection: Connection) => work({ ...connection, arrived: (log) => void arrived.add(log) })
    const result = await within(begin, noting, sinceMs)
    await Promise.all([...arrived].map(number))
    return result
  }

/** Runs a transaction, and runs it again when PostgreSQL undid it because of a deadlock, until `endMs`. */
async function again<T>(endMs: number, once: () => Promise<T>): Promise<T> {
  for (let count = 1; ; count++) {
    try {
      return await once()
    } catch (err) {
      if (!isUndone(err) || count === TRIES_MAX || performance.now() >= endMs) throw err
    }
  }
}

type ConnectionOptions = {
  readonly server: Server
  readonly fence: Fence
  /** The time that the next statement may take. */
  readonly leftMs: () => number
  readonly onStatement: OnStatement | null
}

function connectionTo(client: pg.PoolClient, { server, fence, leftMs, onStatement }: ConnectionOptions): Connection {
  async function rowsOf<Rows>(name: () => string, answer: Promise<{ readonly rows: Rows }>): Promise<Rows> {
    const ended = onStatement?.(name())
    try {
      const { rows } = await withTimeout(answer, leftMs(), lost)
      ended?.(null)
      return rows
    } catch (err) {
      ended?.(err)
      throw asPdpError(err)
    }
  }
  // A pooler or proxy in between may have led the connection to another server.
  const told = (timeline: number): void => fence.pass({ ...server, timeline })
  return {
    query: <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) =>
      rowsOf(() => firstWord(text), client.query<Row>({ text, values: [...values] })),
    prepared: async <T>(name: string, text: string, values: readonly unknown[], read: ReadRows<T>) => {
      const asked = client.query<unknown[]>({ name, text, values: [...values], rowMode: 'array' })
      return read(await rowsOf(() => name, asked), told)
    },
  }
}

const firstWord = (text: string): string => /^\s*(\w+)/.exec(text)?.[1]?.toLowerCase() ?? 'statement'

const lost = (): PdpError => new PdpError('store_unavailable', 'the database did not answer in time')
