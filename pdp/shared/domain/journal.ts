/** Journals: one for each organization and three of the environment; and positions in them, for which answers hold. */

/** The journals that are not an organization's. No organization id can have a `#`, so they cannot collide. */
export const ENVIRONMENT = '#environment'
export const TOKENS = '#tokens'
export const DIRECTORY = '#directory'
/** An organization's id, or one of the three above. Each journal has its own revision and gapless entries. */
export type JournalId = string
/** A position in a journal. `writeId` is random for each write, so that a database restored from a backup is noticed. */
export type JournalPosition = {
  readonly revision: number
  readonly writeId: string
  readonly entitlementVersion: number
  /** The write id of the write that made this entitlement version. */
  readonly entitlementWriteId: string
}
/**
 * Positions of several journals and the database's clock, all read by one statement. A journal that does not exist is absent.
 * `clockMsMax`: where the clock is not known but between the two.
 */
export type Vector = {
  readonly clockMs: number
  readonly clockMsMax?: number
  readonly logs: ReadonlyMap<JournalId, JournalPosition>
}
