/** A unit of work: what a write depends on is read again under the lock of the journals that it changes, in one transaction. */
import { DIRECTORY, ENVIRONMENT, type JournalId, TOKENS } from '../../../shared/domain/journal.ts'
import type { Store } from '../contract.ts'
import type { Queries, Sql, Transaction } from '../directory.ts'
import type { Connection, Database } from './connection/database.ts'
import type { ServerEvent } from './connection/fence.ts'
import { type JournalTurns, NO_JOURNAL_TURNS } from './connection/journal-turns.ts'
import { storeOver } from './store.ts'

/** Reads and writes of one transaction; each read sees what had been committed when it was sent. */
export type Unit = { readonly sql: Sql; readonly store: Store }
/** `lengthy`: it looks at or deletes whole tables. */
export type Locks = { readonly logs: readonly JournalId[]; readonly lengthy?: boolean }
/**
 * Locks the journals until the end, then works. Everything is undone when `work` throws. `work` runs again when PostgreSQL undid it
 * for others: what it does outside the transaction belongs behind it.
 */
export type Atomically = <T>(locks: Locks, work: (unit: Unit) => Promise<T>) => Promise<T>

/** Several journals are locked in this order, then organizations by id: so transactions cannot deadlock. */
const FIRST: readonly JournalId[] = [DIRECTORY, ENVIRONMENT, TOKENS]

/** Rows are locked after they are sorted, one by one. */
const LOCK = `
  select 1 from unnest($1::text[]) with ordinality q(log, place) join revision r on r.organization_id = q.log
  order by q.place for update of r`
// Reads the journals that exist now: a statement does not see a journal that was made while it waited for another one.
const PRESENT = 'select 1 from revision where organization_id = any($1)'
/** Locked now, it would not be in order. The transaction begins again, as after every such failure (connection.ts). */
const APPEARED = `do $$ begin raise exception 'a log appeared' using errcode = 'serialization_failure'; end $$`

/** `turns`: of the journals, which every writer of this process waits for before it takes a connection. */
export function atomicallyOver(
  database: Database,
  turns: JournalTurns,
  report: (event: ServerEvent) => void,
): Atomically {
  return ({ logs, lengthy = false }, work) => {
    const ordered = inLockOrder(logs)
    const transaction = lengthy ? database.lengthy : database.within
    const transact = async (connection: Connection & Transaction) => {
      const within = databaseWithin(connection)
      await lockJournals(within, ordered)
      return work({ sql: within, store: storeOver(within, NO_JOURNAL_TURNS, { close: async () => undefined, report }) })
    }
    return turns.take(ordered, (sinceMs) => transaction('begin', transact, sinceMs))
  }
}

/** Waits for the other writers of these journals, in order. What is read afterwards holds what they wrote, and stays until the end. */
export async function lockJournals(sql: Queries, logs: readonly JournalId[]): Promise<void> {
  const ordered = inLockOrder(logs)
  const locked = await sql.query(LOCK, [ordered])
  if (locked.length === ordered.length) return
  const present = await sql.query(PRESENT, [ordered])
  if (present.length > locked.length) await sql.query(APPEARED)
}

function inLockOrder(logs: readonly JournalId[]): readonly JournalId[] {
  const named = new Set(logs)
  const organizations = [...named].filter((log) => !FIRST.includes(log)).sort()
  return [...FIRST.filter((log) => named.has(log)), ...organizations]
}

/** One connection does one thing at a time; a transaction within the transaction is a savepoint. */
function databaseWithin(connection: Connection & Transaction): Database {
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(run: () => Promise<T>): Promise<T> => {
    const turn = last.then(run, run)
    last = turn.catch(() => undefined)
    return turn
  }
  const query: Connection['query'] = (text, values) => inTurn(() => connection.query(text, values))
  const prepared: Connection['prepared'] = (name, text, values, read) =>
    inTurn(() => connection.prepared(name, text, values, read))
  let savepoints = 0
  /** The last savepoint that ended well: it is released when the next begins, and the last of all by the commit. */
  let ended: string | null = null
  const within: Database['within'] = async (_begin, work) => {
    const name = `nested_${++savepoints}`
    const release = ended === null ? '' : `release savepoint ${ended}; `
    ended = null
    await query(`${release}savepoint ${name}`)
    try {
      const result = await work({ query, prepared, arrived: connection.arrived })
      ended = name
      return result
    } catch (err) {
      await query(`rollback to savepoint ${name}`)
      // One within this one is gone with it.
      ended = null
      throw err
    }
  }
  return { query, prepared, within, lengthy: within, transaction: (work) => within('', work) }
}
