/** Builds WWW-Authenticate values (RFC 9110 section 11.6.1, RFC 6750 section 3, RFC 9449 section 7.1). */

export type ChallengeScheme = 'Bearer' | 'DPoP'
/** Error codes of a challenge (RFC 6750 section 3.1, RFC 9449 section 7.1, RFC 9470 section 3). */
export type ChallengeError =
  | 'invalid_request'
  | 'invalid_token'
  | 'insufficient_scope'
  | 'invalid_dpop_proof'
  | 'use_dpop_nonce'
  | 'insufficient_user_authentication'

export type ChallengeParameters = {
  readonly error?: ChallengeError
  readonly error_description?: string
  readonly scope?: string
  readonly algs?: string
  readonly resource_metadata?: string
  readonly acr_values?: string
  readonly max_age?: number
}

/** Returns `Bearer error="invalid_token", …`. Undefined parameters are omitted. */
export function challenge(scheme: ChallengeScheme, parameters: ChallengeParameters): string {
  const parts: string[] = []
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) parts.push(`${name}="${quotable(String(value))}"`)
  }
  return parts.length === 0 ? scheme : `${scheme} ${parts.join(', ')}`
}

// RFC 6750 section 3 allows %x20-21 / %x23-5B / %x5D-7E in these values: no quotes and no backslashes, so that no
// parser needs to unescape, and no line breaks, which could start another header field.
const quotable = (value: string): string => value.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, '?')
