/** Step-up authentication (RFC 9470): tests whether the sign-in behind a token is strong and fresh enough for the route. */
import type { SignIn } from '../pdp-client/question.ts'

export type StepUp = {
  /** Values of `acr` of which the sign-in must have one; empty: any sign-in is enough. */
  readonly acrValues: readonly string[]
  /** The age of the sign-in at most, in seconds; null: any. */
  readonly maxAgeSeconds: number | null
}

/** How many seconds the clock of an issuer may be ahead of ours. */
const AHEAD_SECONDS_MAX = 60

/** An unknown acr or auth_time does not satisfy a requirement; neither does a time in the future. */
export function satisfies({ acr, authTime }: SignIn, { acrValues, maxAgeSeconds }: StepUp, nowMs: number): boolean {
  if (acrValues.length > 0 && (acr === null || !acrValues.includes(acr))) return false
  if (maxAgeSeconds === null) return true
  const ageSeconds = authTime === null ? Number.POSITIVE_INFINITY : nowMs / 1_000 - authTime
  return ageSeconds <= maxAgeSeconds && ageSeconds >= -AHEAD_SECONDS_MAX
}

/** The sign-in that an external issuer's token describes. Our own tokens lack these claims (ARCHITECTURE.md section 6). */
export function signInOf(claims: { readonly [name: string]: unknown }): SignIn {
  const { acr, auth_time: authTime } = claims
  return {
    acr: typeof acr === 'string' ? acr : null,
    authTime: typeof authTime === 'number' && Number.isFinite(authTime) ? authTime : null,
  }
}
