/** The SSF transmitter of another issuer, as its registration names it: it reports which sessions and accounts ended. */

import { type MasterKeys, seal } from '../../shared/base/encryption.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { idAtIssuer, revocationKey } from '../../shared/domain/revocation.ts'
import type { AccessClaims } from '../../shared/token/claims.ts'

/** The purpose under which the secrets for transmitters are sealed, each with its name. */
export const TRANSMITTER_SEALED_AS = 'issuer-transmitter'
/** The purpose under which the secrets that they push with are sealed, each with its name. */
export const RECEIVED_STREAM_SEALED_AS = 'received-stream'

type Shown = {
  /** `iss` of its SETs; default: the issuer of the tokens. */
  readonly issuer?: string
  /** Default: as SSF 1.0 section 7.2 makes it from `issuer`. */
  readonly metadata_uri?: string
  readonly delivery: 'push' | 'poll'
  /** With `token_endpoint` by client_credentials, else by a static bearer token. */
  readonly authorization: {
    readonly token_endpoint?: string
    readonly client_id?: string
    readonly scope?: string
    readonly resource?: string
  }
  /** Default: the one that the transmitter gives the stream. */
  readonly audience?: string
  /** Event types that it is asked for; default: all that end tokens. */
  readonly events?: readonly string[]
  /** The effect of silence: whether a token of the issuer counts while the transmitter says nothing. Default `accept`. */
  readonly on_silence?: 'accept' | 'refuse'
}
/** One secret is needed; without it the stored one stays. Secrets are stored sealed and never shown. */
export type SignalsDocument = Omit<Shown, 'authorization'> & {
  readonly authorization: Shown['authorization'] & { readonly token?: string; readonly client_secret?: string }
}
export type StoredSignals = Shown & { readonly secret_sealed: string }

/** Throws PdpError `request_invalid` without a secret, when none is stored that goes to the same place. */
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
  // Otherwise a secret could be sent to a server that a later registration names.
  if (former !== undefined && placeOf(former) === placeOf(shown))
    return { ...shown, secret_sealed: former.secret_sealed }
  const member = authorization.token_endpoint === undefined ? 'token' : 'client_secret'
  const message = `ssf.authorization needs ${member}: none is stored for this transmitter`
  throw new PdpError('request_invalid', message, { issues: [{ place: `/ssf/authorization/${member}`, message }] })
}

const placeOf = ({ issuer, metadata_uri: metadata, authorization }: Shown): string =>
  JSON.stringify([issuer, metadata, authorization.token_endpoint, authorization.client_id])

export const shownSignals = ({ secret_sealed: _, ...shown }: StoredSignals): Shown => shown

/** True of a row `r` of received_stream without a sign of life for too long. */
export const SILENT = '(coalesce(r.heard_at, r.made_at) < now() - make_interval(secs => r.silent_after_s))'

/** Ends all that the issuer has issued. */
export const issuerKey = (issuer: string): string => revocationKey('foreign_issuer', idAtIssuer(issuer, ''))

/** Everything in the token log by which the issuer of the token ends it. */
export function externalKeys({ issuer, issuerNames }: AccessClaims): readonly string[] {
  if (issuerNames === undefined) return []
  const { subjects, session, jti } = issuerNames
  const email = issuerNames.email?.toLowerCase()
  const keyOf = (by: Parameters<typeof revocationKey>[0], value: string): string =>
    revocationKey(by, idAtIssuer(issuer, value))
  const keys = [issuerKey(issuer), ...subjects.map((subject) => keyOf('foreign_subject', subject))]
  if (email !== undefined) keys.push(keyOf('foreign_email', email))
  if (jti !== null) keys.push(keyOf('foreign_jti', jti))
  if (session !== null) return [...keys, keyOf('foreign_session', session)]
  const people = email === undefined ? subjects : [...subjects, email]
  return [...keys, ...people.map((name) => keyOf('foreign_sessionless', name))]
}
