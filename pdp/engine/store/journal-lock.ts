/** Locks a journal, a journal beside others, or one person's part of the directory, before reading what a write depends on. */
import { DIRECTORY, ENVIRONMENT, type JournalId, TOKENS } from '../../shared/domain/journal.ts'
import { ADVISORY_LOCKS } from './advisory-locks.ts'
import type { Queries } from './directory.ts'

/**
 * A lock. A journal's name: exclusive. `beside`: shared with other holders of `beside`, while no one raises the journal's revision.
 * `person`: `beside` of the directory, and exclusive for this person's part.
 */
export type Lock = JournalId | { readonly beside: keyof typeof TURNS } | { readonly person: string }

/** The first to be locked, in this order; people follow the directory, organizations come last, by id. One order for all prevents deadlocks. */
export const FIRST: readonly JournalId[] = [DIRECTORY, ENVIRONMENT, TOKENS]

// Advisory locks, where no one is overtaken: new holders of a shared row lock can overtake a writer that waits for the whole.
const TURNS = { [DIRECTORY]: ADVISORY_LOCKS.directory, [ENVIRONMENT]: ADVISORY_LOCKS.environment } as const
// `for key share` excludes exclusive holders and those who raise the revision, not others of its kind. It reads from `turn`, so it comes
// second.
const besideOf = (log: keyof typeof TURNS): string => `
  with turn as materialized (select pg_advisory_xact_lock_shared(${TURNS[log]})),
  beside as materialized (select 1 from revision, turn where organization_id = '${log}' for key share of revision)`
// The order makes a sort, which reads all turns before the first row is locked.
const LOCK = `
  with turns as materialized (select count(pg_advisory_xact_lock(number)) from unnest($2::bigint[]) number)
  select 1 from turns, unnest($1::text[]) with ordinality q(log, place) join revision r on r.organization_id = q.log
  order by q.place for update of r`

/**
 * Locks journals one by one, in the parameter's order, until the transaction ends. @returns how many exist. Later reads see what former
 * holders wrote.
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

// An id without a row is locked only by the advisory lock.
const HOLD_PERSON = `${besideOf(DIRECTORY)}
  select pg_advisory_xact_lock(${ADVISORY_LOCKS.person}, hashtext($1)) from beside`
// A separate statement, so that it finds a row that an earlier holder has committed.
const LOCK_PERSON = 'select 1 from user_account where user_id = $1 for no key update'

/**
 * The lock for what is written about one person: it waits for writers of the same person, and for a holder of the whole
 * directory's lock. Its holder must store entries of `#directory` by appendArrivals: two that raised the revision would deadlock.
 */
export async function lockPerson(sql: Queries, user: string): Promise<void> {
  await sql.query(HOLD_PERSON, [user])
  await sql.query(LOCK_PERSON, [user])
}
