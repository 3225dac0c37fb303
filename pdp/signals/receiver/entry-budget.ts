/** How much one issuer may have in the token log, which every PDP holds in memory: past that, all its tokens end at once. */
import type { Change } from '../../shared/domain/change.ts'
import { ISSUER_REVOCATION_KEPT_MS, idAtIssuer } from '../../shared/domain/revocation.ts'

/** Entries of one issuer in the time for which they are kept, by this process. */
const ENTRIES_MAX = 100_000
const ISSUERS_MAX = 10_000

export type EntryBudget = {
  /** The changes, or one that ends all that the issuer has issued: nothing that it ended is forgotten for want of room. */
  within(issuer: string, changes: readonly Change[], nowMs: number): readonly Change[]
}

export function createEntryBudget(entriesMax: number = ENTRIES_MAX): EntryBudget {
  const used = new Map<string, { count: number; readonly untilMs: number }>()
  return {
    within(issuer, changes, nowMs) {
      const known = used.get(issuer)
      const window =
        known !== undefined && nowMs < known.untilMs ? known : { count: 0, untilMs: nowMs + ISSUER_REVOCATION_KEPT_MS }
      window.count += changes.length
      if (window !== known && used.size >= ISSUERS_MAX) used.clear()
      used.set(issuer, window)
      if (window.count <= entriesMax) return changes
      return [{ kind: 'token', by: 'foreign_issuer', id: idAtIssuer(issuer, ''), issuedUntilMs: nowMs }]
    },
  }
}
