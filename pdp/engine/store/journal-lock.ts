/** Locks a journal, a journal beside others, or one person's part of the directory, before reading what a write depends on. */
import { DIRECTORY, ENVIRONMENT, type JournalId, TOKENS } from '../../shared/domain/journal.ts'
import { ADVISORY_LOCKS } from './advisory-locks.ts'
import type { Queries } from './directory.ts'

/**
 * A journal's name: the holder has it alone. `beside`: nobody raises it meanwhile, the holder included, and other holders of
 * `beside` go on. `person`: `beside` of the directory, and this person's part of it alone.
 */
export type Lock = JournalId | { readonly beside: keyof typeof TURNS } | { readonly person: string }

/** The first to be locked, in this order; people follow the directory, organizations come last, by id. One order for all prevents deadlocks. */
export const FIRST: readonly JournalId[] = [DIRECTORY, ENVIRONMENT, TOKENS]

// PostgreSQL lets one who locks a row beside others overtake one who waits to have it alone; nobody overtakes at an advisory lock.
const TURNS = { [DIRECTORY]: ADVISORY_LOCKS.directory, [ENVIRONMENT]: ADVISORY_LOCKS.environment } as const
// `for key share` is compatible with itself, but not with the locks of who has the whole and of who raises the revision. `beside`
// reads from `turn`, so it comes second.
const besideOf = (log: keyof typeof TURNS): string => `
  with turn as materialized (select pg_advisory_xact_lock_shared(${TURNS[log]})),
  beside as materialized (select 1 from revision, turn where organization_id = '${log}' for key share of revision)`
// The order makes a sort, which reads all turns before the first row is locked.
const LOCK = `
  with turns as materialized (select count(pg_advisory_xact_lock(number)) from unnest($2::bigint[]) number)
  select 1 from turns, unnest($1::text[]) with ordinality q(log, place) join revision r on r.organization_id = q.log
  order by q.place for update of r`

/**
 * Locks journals one by one, in the order of the parameter, until the transaction ends; @returns how many are there. Later reads of
 * the transaction see what earlier holders of the locks wrote.
 */
export async function lockInOrder(sql: Queries, logs: readonly JournalId[]): Promise<number> {
  const turns = Object.entries(TURNS).flatMap(([log, number]) => (logs.includes(log) ? [number] : []))
  return (await sql.query(LOCK, [logs, turns])).length
}

export async function lockJournal(sql: Queries, log: JournalId): Promise<void> {
  await lockInOrder(sql, [log])
}

export async function lockBeside(sql: Queries, log: keyof typeof TURNS): Promise<void> {
  await sql.query(`${besideOf(log)} select 1 from beside`)
}

// An id that has no row yet is held by the advisory lock alone.
const HOLD_PERSON = `${besideOf(DIRECTORY)}
  select pg_advisory_xact_lock(${ADVISORY_LOCKS.person}, hashtext($1)) from beside`
// A statement of its own, so that it finds the row that an earlier holder of the lock committed.
const LOCK_PERSON = 'select 1 from user_account where user_id = $1 for no key update'

/**
 * The lock for what is written about one person: it waits for writers of the same person, and for a holder of the whole
 * directory's lock. Its holder must store entries of `#directory` by appendArrivals: two that raised the revision would deadlock.
 */
export async function lockPerson(sql: Queries, user: string): Promise<void> {
  await sql.query(HOLD_PERSON, [user])
  await sql.query(LOCK_PERSON, [user])
}
