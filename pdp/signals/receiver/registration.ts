/** The registration of another issuer's SSF transmitter, which reports sessions and accounts that ended. */

import { type MasterKeys, seal } from '../../shared/base/encryption.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { idAtIssuer, revocationKey } from '../../shared/domain/revocation.ts'
import type { AccessClaims } from '../../shared/token/claims.ts'

/** The encryption purpose of the secrets with which we call transmitters. */
export const TRANSMITTER_SEALED_AS = 'issuer-transmitter'
/** The encryption purpose of the secrets with which transmitters push to us. */
export const RECEIVED_STREAM_SEALED_AS = 'received-stream'

type Shown = {
  /** `iss` of its SETs; default: the issuer of the tokens. */
  readonly issuer?: string
  /** The URL of the transmitter's metadata; default: made from `issuer` by SSF 1.0 section 7.2. */
  readonly metadata_uri?: string
  readonly delivery: 'push' | 'poll'
  /** The authorization: tokens by client_credentials if there is a `token_endpoint`, else a static bearer token. */
  readonly authorization: {
    readonly token_endpoint?: string
    readonly client_id?: string
    readonly scope?: string
    readonly resource?: string
  }
  /** The audience of SETs; default: the one that the transmitter gives the stream. */
  readonly audience?: string
  /** The event types to ask for. Default: all that end tokens. */
  readonly events?: readonly string[]
  /** The treatment of the issuer's tokens while the transmitter is silent. Default `accept`. */
  readonly on_silence?: 'accept' | 'refuse'
}
/** A registration with at most one new secret; without it, the stored one stays. Secrets are stored encrypted and never shown. */
export type SignalsDocument = Omit<Shown, 'authorization'> & {
  readonly authorization: Shown['authorization'] & { readonly token?: string; readonly client_secret?: string }
}
export type StoredSignals = Shown & { readonly secret_sealed: string }

/** The document to store. Throws PdpError `request_invalid` without a secret, new or stored for the same endpoint. */
export function storedSignals(
  { authorization: given, ...rest }: SignalsDocument,
  former: StoredSignals | undefined,
  masterKeys: MasterKeys,
): StoredSignals {
  const { token, client_secret: clientSecret, ...authorization } = given
  const shown: Shown = { ...rest, authorization }
  const secret = authorization.token_endpoint === undefined ? token : clientSecret
  if (secret !== undefined) {
    const keys = masterKeys.derive(TRANSMITTER_SEALED_AS)
    return { ...shown, secret_sealed: seal(keys, TRANSMITTER_SEALED_AS, secret) }
  }
  // A stored secret must not be sent to another server, which a later registration names.
  if (former !== undefined && placeOf(former) === placeOf(shown))
    return { ...shown, secret_sealed: former.secret_sealed }
  const member = authorization.token_endpoint === undefined ? 'token' : 'client_secret'
  const message = `ssf.authorization needs ${member}: none is stored for this transmitter`
  throw new PdpError('request_invalid', message, { issues: [{ place: `/ssf/authorization/${member}`, message }] })
}

const placeOf = ({ issuer, metadata_uri: metadata, authorization }: Shown): string =>
  JSON.stringify([issuer, metadata, authorization.token_endpoint, authorization.client_id])

export const shownSignals = ({ secret_sealed: _, ...shown }: StoredSignals): Shown => shown

/** SQL: true if row `r` of received_stream has had no sign of life for too long. */
export const SILENT = '(coalesce(r.heard_at, r.made_at) < now() - make_interval(secs => r.silent_after_s))'

/** The token-journal keys by which the token's issuer can revoke it. */
export function externalKeys({ issuer, issuerNames }: AccessClaims): readonly string[] {
  if (issuerNames === undefined) return []
  const { subjects, session, jti } = issuerNames
  const email = issuerNames.email?.toLowerCase()
  const keyOf = (by: Parameters<typeof revocationKey>[0], value: string): string =>
    revocationKey(by, idAtIssuer(issuer, value))
  const keys = [keyOf('foreign_issuer', ''), ...subjects.map((subject) => keyOf('foreign_subject', subject))]
  if (email !== undefined) keys.push(keyOf('foreign_email', email))
  if (jti !== null) keys.push(keyOf('foreign_jti', jti))
  if (session !== null) return [...keys, keyOf('foreign_session', session)]
  const people = email === undefined ? subjects : [...subjects, email]
  return [...keys, ...people.map((name) => keyOf('foreign_sessionless', name))]
}
