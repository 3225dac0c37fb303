/** Connections to PostgreSQL as the store and the identity service use them, with errors that tell an outage from a faulty statement. */
import type pg from 'pg'
import { withTimeout } from '../../../../shared/base/with-timeout.ts'
import { PdpError } from '../../../../shared/domain/errors.ts'
import type { Connection, Database, OnStatement, TimeLimits } from './database.ts'
import { createSilence } from './silence.ts'

export const TIME_LIMITS: TimeLimits = {
  decisionMs: 1_000,
  statementMs: 4_500,
  transactionMs: 5_000,
  lengthyMs: 60_000,
}
/** How often one caller tries the database while it does not answer. */
const RETRY_MS = 250
/** Tries of one transaction. A deadlock is found after a second, so its time has room for few more. */
const TRIES_MAX = 5

export type Pools = {
  readonly reads: pg.Pool
  /** Apart, so that writers who wait for each other never stand in the way of a decision. */
  readonly transactions: pg.Pool
}
type Use<T> = (client: pg.PoolClient, drop: (reason: unknown) => void) => Promise<T>

export function databaseOver(pools: Pools, limits = TIME_LIMITS, onStatement: OnStatement | null = null): Database {
  const connectionOver = (client: pg.PoolClient, leftMs: () => number): Connection =>
    connectionTo(client, { leftMs, onStatement })
  const silence = createSilence({ silentMs: limits.decisionMs, retryMs: RETRY_MS, clock: () => performance.now() })

  async function on<T>(pool: pg.Pool, options: { readonly prompt: boolean }, use: Use<T>): Promise<T> {
    const done = silence.begin(options)
    if (done === null) throw new PdpError('store_unavailable', 'the database does not answer')
    try {
      const result = await onClient(pool, use)
      done(true)
      return result
    } catch (err) {
      done(!isLost(err))
      throw err
    }
  }

  const transact =
    (totalMs: number, statementMs: number, settings: readonly string[] = []): Database['within'] =>
    (begin, work, sinceMs = performance.now()) => {
      const endMs = sinceMs + totalMs
      const leftMs = (): number => Math.min(statementMs, endMs - performance.now())
      const once = () =>
        on(pools.transactions, { prompt: false }, async (client, drop) => {
          const connection = connectionOver(client, leftMs)
          try {
            await connection.query(begin)
            for (const setting of settings) await connection.query(setting)
            const result = await work(connection)
            await connection.query('commit')
            return result
          } catch (err) {
            // Where there was no answer a rollback would get none either; the server makes it when the connection is closed.
            if (!isLost(err))
              await connectionOver(client, () => limits.decisionMs)
                .query('rollback')
                .catch(drop)
            throw err
          }
        })
      return again(endMs, once)
    }
  const { decisionMs, statementMs, transactionMs, lengthyMs } = limits
  const within = transact(transactionMs, statementMs)
  return {
    query: (text, values) =>
      again(performance.now() + transactionMs, () =>
        on(pools.reads, { prompt: false }, (client) => connectionOver(client, () => statementMs).query(text, values)),
      ),
    prepared: (name, text, values) =>
      on(pools.reads, { prompt: true }, (client) =>
        connectionOver(client, () => decisionMs).prepared(name, text, values),
      ),
    within,
    lengthy: transact(lengthyMs, lengthyMs, [`set local statement_timeout = ${lengthyMs}`]),
    transaction: (work) => within('begin', work),
  }
}

/** Whole, and once more each time that PostgreSQL undid it so that others can go on, while there is time. */
async function again<T>(endMs: number, once: () => Promise<T>): Promise<T> {
  for (let count = 1; ; count++) {
    try {
      return await once()
    } catch (err) {
      if (!isUndone(err) || count === TRIES_MAX || performance.now() >= endMs) throw err
    }
  }
}

/** A connection that did not answer, or broke, is discarded. */
async function onClient<T>(pool: pg.Pool, use: Use<T>): Promise<T> {
  const client = await pool.connect().catch((err: unknown) => {
    throw asPdpError(err)
  })
  let broken: Error | undefined
  const drop = (reason: unknown): void => {
    broken = reason instanceof Error ? reason : new Error('the connection is closed')
  }
  // A connection that breaks between two statements says so by an event, which would end the process if nobody listened.
  client.on('error', drop)
  try {
    return await use(client, drop)
  } catch (err) {
    if (isLost(err)) drop(err)
    throw err
  } finally {
    client.off('error', drop)
    client.release(broken)
  }
}

/** `leftMs`: what the next statement may take. */
function connectionTo(
  client: pg.PoolClient,
  { leftMs, onStatement }: { readonly leftMs: () => number; readonly onStatement: OnStatement | null },
): Connection {
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
  return {
    query: <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) =>
      rowsOf(() => firstWord(text), client.query<Row>({ text, values: [...values] })),
    prepared: (name, text, values) =>
      rowsOf(() => name, client.query<unknown[]>({ name, text, values: [...values], rowMode: 'array' })),
  }
}

const firstWord = (text: string): string => /^\s*(\w+)/.exec(text)?.[1]?.toLowerCase() ?? 'statement'

const lost = (): PdpError => new PdpError('store_unavailable', 'the database did not answer in time')

/** Whether the connection gave no answer, rather than one that says why not. */
const isLost = (error: unknown): boolean =>
  error instanceof PdpError && error.code === 'store_unavailable' && !isDatabaseError(error.cause)

/** A serialization failure or a deadlock: nothing of the transaction is left, and done again it may succeed. */
const isUndone = (error: unknown): boolean =>
  error instanceof PdpError && isDatabaseError(error.cause) && /^40(001|P01)$/.test(error.cause.code)

/** An answer of the server, also to a client of another copy of the driver. */
export const isDatabaseError = (error: unknown): error is Error & { readonly code: string } =>
  error instanceof Error && 'severity' in error && 'code' in error && typeof error.code === 'string'

/** Errors of the connection and of a server that is going away. What the statement itself did wrong passes unchanged. */
export function asPdpError(error: unknown): unknown {
  if (error instanceof PdpError) return error
  if (isDatabaseError(error)) {
    const { code } = error
    // 08 connection, 53 resources, 57P server going away, 25006 read-only (a standby), 40 what was undone for others each time
    if (/^(08|53|57P|40|25006)/.test(code))
      return new PdpError('store_unavailable', 'the database is not available', { cause: error })
    // 55P03 a lock, 57014 a statement, 25P03 and 25P04 a transaction: what took longer than the session allows
    if (/^(55P03|57014|25P0[34])$/.test(code))
      return new PdpError('store_unavailable', 'the database took too long', { cause: error })
    // 22021, 22P05: U+0000, which a string of ours may hold and a text of PostgreSQL may not
    if (/^(22021|22P05)$/.test(code))
      return new PdpError('request_invalid', 'a text holds the character U+0000', { cause: error })
    return error
  }
  return new PdpError('store_unavailable', 'the database cannot be reached', { cause: error })
}
