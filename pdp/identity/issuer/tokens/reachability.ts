/** Trusted issuers that did not answer this process, so that their tokens could not be verified. */
import { TokenError } from '../../../shared/token/errors.ts'

export type Unreachable = {
  readonly issuer: string
  /** Since when no token of the issuer could be verified, in milliseconds since the epoch. */
  readonly sinceMs: number
}

/** How long a failure is shown. Without newer tokens, the issuer's state is unknown after that. */
const KEPT_MS = 3_600_000
const ISSUERS_MAX = 200

export function createReachability(clock: () => number): {
  /** Returns the result of `work`, or throws its error, and notes whether the issuer answered. */
  watch<T>(issuer: string, work: Promise<T>): Promise<T>
  unreachable(): readonly Unreachable[]
} {
  const failing = new Map<string, { readonly sinceMs: number; readonly latestMs: number }>()
  return {
    async watch(issuer, work) {
      try {
        const result = await work
        failing.delete(issuer)
        return result
      } catch (err) {
        const isSilent = err instanceof TokenError && /^(keys|issuer)_unavailable$/.test(err.code)
        const latestMs = clock()
        if (isSilent && (failing.has(issuer) || failing.size < ISSUERS_MAX))
          failing.set(issuer, { sinceMs: failing.get(issuer)?.sinceMs ?? latestMs, latestMs })
        throw err
      }
    },
    unreachable: () =>
      [...failing].flatMap(([issuer, { sinceMs, latestMs }]) =>
        clock() - latestMs > KEPT_MS ? [] : [{ issuer, sinceMs }],
      ),
  }
}
