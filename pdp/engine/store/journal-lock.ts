/** Locks a journal, a journal beside others, or one person's part of the directory, before reading what a write depends on. */
import { DIRECTORY, type ENVIRONMENT, type JournalId } from '../../shared/domain/journal.ts'
import { ADVISORY_LOCKS } from './advisory-locks.ts'
import type { Queries } from './directory.ts'

/**
 * A journal's name: the holder has it alone. `beside`: nobody raises it meanwhile, the holder included, and other holders of
 * `beside` go on. `person`: `beside` of the directory, and this person's part of it alone.
 */
export type Lock = JournalId | { readonly beside: typeof DIRECTORY | typeof ENVIRONMENT } | { readonly person: string }

/** Locks the journal until the transaction ends. Later reads of the transaction see what earlier holders of the lock wrote. */
export async function lockJournal(sql: Queries, log: JournalId): Promise<void> {
  await sql.query('select 1 from revision where organization_id = $1 for update', [log])
}

// PostgreSQL lets one who locks a row beside others overtake one who waits to have it alone; nobody overtakes at an advisory lock.
const IN_TURN = `select pg_advisory_xact_lock_shared(${ADVISORY_LOCKS.directory})`
/** Waits until nobody locks the directory beside others. Call it before locking the whole directory. */
export async function awaitDirectory(sql: Queries): Promise<void> {
  await sql.query(`select pg_advisory_xact_lock(${ADVISORY_LOCKS.directory})`)
}

export async function lockBeside(sql: Queries, log: JournalId): Promise<void> {
  if (log === DIRECTORY) await sql.query(IN_TURN)
  await sql.query('select 1 from revision where organization_id = $1 for key share', [log])
}

// `for key share` is compatible with itself, but not with the locks that lockJournal and a raised revision take. Each part reads
// from the one before, so all run, in this order. An id that has no row yet is held by the advisory lock alone.
const HOLD_PERSON = `
  with turn as materialized (${IN_TURN}),
  beside as materialized (select 1 from revision, turn where organization_id = '${DIRECTORY}' for key share of revision)
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
