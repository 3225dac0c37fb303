/** Step-up authentication (RFC 9470): is the sign-in behind a token strong and fresh enough for its route? */
import type { SignIn } from '../pdp-client/question.ts'

export type StepUp = {
  /** One of them is enough; empty: any. */
  readonly acrValues: readonly string[]
  /** Seconds since the sign-in; null: any. */
  readonly maxAgeSeconds: number | null
}

/** An unknown acr or auth_time does not satisfy a requirement. */
export function satisfies({ acr, authTime }: SignIn, { acrValues, maxAgeSeconds }: StepUp, nowMs: number): boolean {
  if (acrValues.length > 0 && (acr === null || !acrValues.includes(acr))) return false
  return maxAgeSeconds === null || (authTime !== null && nowMs / 1_000 - authTime <= maxAgeSeconds)
}

/** The sign-in that an external issuer's token names. Our own tokens never carry these claims (ARCHITECTURE.md section 6). */
export function signInOf(claims: { readonly [name: string]: unknown }): SignIn {
  const { acr, auth_time: authTime } = claims
  return {
    acr: typeof acr === 'string' ? acr : null,
    authTime: typeof authTime === 'number' && Number.isFinite(authTime) ? authTime : null,
  }
}
