/** Limits the entries of one issuer in the token journal, which every PDP holds in memory. Beyond it, all its tokens are revoked. */
import type { Change } from '../../shared/domain/change.ts'
import { ISSUER_REVOCATION_KEPT_MS, idAtIssuer } from '../../shared/domain/revocation.ts'

/** The most entries of one issuer that this process makes in the time for which they are kept. */
const ENTRIES_MAX = 100_000
const ISSUERS_MAX = 10_000

export type EntryBudget = {
  /** The changes; or, beyond the limit, one that revokes all tokens of the issuer, so that no revocation is lost. */
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
