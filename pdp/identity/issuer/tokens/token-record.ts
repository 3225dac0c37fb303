/** The parts of a token that never change: verified claims, and what was recorded when it was minted. Read once per token. */
import type { Queries } from '../../../engine/store/directory.ts'
import { type TokenOrigin, tokenOrigin } from '../../../engine/store/token-origin.ts'
import { BoundedMap } from '../../../shared/base/bounded-map.ts'
import { type AccessClaims, actorsIn } from '../../../shared/token/claims.ts'
import { TokenError, type TokenErrorCode } from '../../../shared/token/errors.ts'
import type { TokenVerifier } from '../../../shared/token/verify.ts'
import type { TokenRecord } from './token-state.ts'

const ENTRIES_MAX = 20_000

/** The token's record; null: malformed, of another issuer, expired, unknown or revoked. Throws PdpError `store_unavailable`. */
export type ReadRecord = (token: string) => Promise<TokenRecord | null>

export function createReadRecord(deps: {
  readonly issuer: string
  readonly sql: Queries
  /** Verifies our own tokens. */
  readonly verifier: TokenVerifier
}): ReadRecord {
  // Tokens are short-lived, so age is as good a criterion as use.
  const records = new BoundedMap<string, TokenRecord>(ENTRIES_MAX)

  return async (token) => {
    const claims = await verified(deps.verifier, token)
    if (claims === null) return null
    const known = records.get(claims.digest)
    if (known !== undefined) return known
    const origin = await tokenOrigin(deps.sql, claims.jti)
    const record = origin === null ? null : toRecord(claims, origin)
    if (record !== null) records.set(record.digest, record)
    return record
  }
}

/** Errors by which it stays unknown whether the token is valid. */
const UNANSWERED: ReadonlySet<TokenErrorCode> = new Set(['keys_unavailable', 'issuer_unavailable'])

/** The claims of a token; null: this verifier does not accept it. */
export async function verified(verifier: TokenVerifier, token: string): Promise<AccessClaims | null> {
  try {
    return await verifier.verify(token)
  } catch (err) {
    if (err instanceof TokenError && !UNANSWERED.has(err.code)) return null
    throw err
  }
}

function toRecord(claims: AccessClaims, origin: TokenOrigin): TokenRecord | null {
  // The subject is a client, not a user, if it equals the client's id: their ids never coincide (RFC 9068 section 5).
  const isService = claims.subject === claims.clientId
  if (origin.kind !== (isService ? 'ClientCredentials' : 'AccessToken')) return null
  if (!isService && origin.grants.length === 0) return null
  return {
    subject: { type: isService ? 'service' : 'user', id: claims.subject },
    organization: claims.organization,
    clientId: claims.clientId,
    scopes: claims.scopes,
    audiences: claims.audiences,
    jkt: claims.jkt,
    jti: claims.jti,
    grantId: origin.grantId,
    issuedAtMs: claims.issuedAtMs,
    expiresAtMs: claims.expiresAtMs,
    acr: origin.acr,
    authTime: origin.authTime,
    grants: origin.grants,
    clients: isService ? [claims.clientId] : origin.clients,
    sessionUid: origin.sessionUid,
    userId: isService ? null : claims.subject,
    digest: claims.digest,
    act: claims.all.act,
    actors: actorsIn(claims.all.act),
    externalIssuer: null,
  }
}
