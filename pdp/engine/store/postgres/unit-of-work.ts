/** Runs a transaction that locks journals first, so that what it reads stays true until its writes commit. */
import { DIRECTORY, ENVIRONMENT, type JournalId } from '../../../shared/domain/journal.ts'
import type { Store } from '../contract.ts'
import type { Queries, Sql, Transaction } from '../directory.ts'
import { FIRST, type Lock, lockBeside, lockInOrder, lockPerson } from '../journal-lock.ts'
import type { Connection, Database } from './connection/database.ts'
import type { ServerEvent } from './connection/fence.ts'
import { type JournalTurns, NO_JOURNAL_TURNS, type Turn } from './connection/journal-turns.ts'
import { storeOver } from './store.ts'

/** Reads and writes of one transaction. Each read sees what was committed when it was sent. */
export type Unit = { readonly sql: Sql; readonly store: Store }
/** `lengthy`: the transaction reads or deletes whole tables. */
export type Locks = { readonly logs: readonly Lock[]; readonly lengthy?: boolean }
/**
 * Locks the journals until the transaction ends, and runs `work`. It is rolled back when `work` throws. `work` runs again when
 * PostgreSQL undid it because of a deadlock, so it must do nothing outside the transaction.
 */
export type Atomically = <T>(locks: Locks, work: (unit: Unit) => Promise<T>) => Promise<T>

// Counts the journals that exist now: lockInOrder does not see a journal that was created while it waited for another one.
const PRESENT = 'select 1 from revision where organization_id = any($1)'
/** A journal that is locked late would break the order, so the transaction fails, and begins again (connection.ts). */
const APPEARED = `do $$ begin raise exception 'a log appeared' using errcode = 'serialization_failure'; end $$`

/** `turns`: the queue of this process's writers for each journal; a writer waits there before it takes a connection. */
export function atomicallyOver(
  database: Database,
  turns: JournalTurns,
  report: (event: ServerEvent) => void,
): Atomically {
  return ({ logs, lengthy = false }, work) => {
    const locks = inOrder(logs)
    const transaction = lengthy ? database.lengthy : database.within
    const transact = async (connection: Connection & Transaction) => {
      const within = databaseWithin(connection)
      await lockAll(within, locks)
      return work({ sql: within, store: storeOver(within, NO_JOURNAL_TURNS, { close: async () => undefined, report }) })
    }
    return turns.take(turnsOf(locks), (sinceMs) => transaction('begin', transact, sinceMs))
  }
}

/** Locks these journals, in order. Later reads see what earlier writers wrote, and nobody else writes until the transaction ends. */
export async function lockJournals(sql: Queries, logs: readonly JournalId[]): Promise<void> {
  const ordered = wholeInOrder(logs)
  const locked = await lockInOrder(sql, ordered)
  if (locked === ordered.length) return
  const present = await sql.query(PRESENT, [ordered])
  if (present.length > locked) await sql.query(APPEARED)
}

function wholeInOrder(logs: readonly JournalId[]): readonly JournalId[] {
  const named = new Set(logs)
  const organizations = [...named].filter((log) => !FIRST.includes(log)).sort()
  return [...FIRST.filter((log) => named.has(log)), ...organizations]
}

/** `people` and `beside` are locked before `whole`. */
type Ordered = {
  readonly people: readonly string[]
  readonly beside: ReadonlySet<JournalId>
  readonly whole: readonly JournalId[]
}

function inOrder(locks: readonly Lock[]): Ordered {
  const whole = locks.filter((lock) => typeof lock === 'string')
  const people = locks.flatMap((lock) => (typeof lock !== 'string' && 'person' in lock ? [lock.person] : []))
  const beside = locks.flatMap((lock) => (typeof lock !== 'string' && 'beside' in lock ? [lock.beside] : []))
  // The directory comes first: who holds it alone has nothing to lock before it.
  if (whole.includes(DIRECTORY)) return { people: [], beside: new Set(), whole: wholeInOrder([...whole, ...beside]) }
  return {
    people: [...new Set(people)].sort(),
    beside: new Set((people.length === 0 ? beside : [DIRECTORY, ...beside]).filter((log) => !whole.includes(log))),
    whole: wholeInOrder(whole),
  }
}

async function lockAll(sql: Queries, { people, beside, whole }: Ordered): Promise<void> {
  if (beside.has(DIRECTORY) && people.length === 0) await lockBeside(sql, DIRECTORY)
  for (const user of people) await lockPerson(sql, user)
  if (beside.has(ENVIRONMENT)) await lockBeside(sql, ENVIRONMENT)
  if (whole.length > 0) await lockJournals(sql, whole)
}

function turnsOf({ people, beside, whole }: Ordered): readonly Turn[] {
  const besideOf = (log: JournalId): readonly Turn[] => (beside.has(log) ? [{ beside: log }] : [])
  return [...besideOf(DIRECTORY), ...people.map((user) => `user ${user}`), ...besideOf(ENVIRONMENT), ...whole]
}

/** A Database over one connection, which runs one statement at a time. A transaction within the transaction is a savepoint. */
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
  /** The last savepoint that succeeded. It is released when the next begins, which saves a statement. */
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
      // The rollback also removed every savepoint made after this one.
      ended = null
      throw err
    }
  }
  return { query, prepared, within, lengthy: within, transaction: (work) => within('', work) }
}
