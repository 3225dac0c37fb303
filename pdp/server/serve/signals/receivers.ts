/** The callers of SSF's endpoints. A client is the receiver of its own streams and sees no others. */
import { PdpError } from '../../../shared/domain/errors.ts'
import { SetError } from '../../../signals/set/errors.ts'
import { parseSubject, type SubjectIdentifier } from '../../../signals/set/subjects.ts'
import type { Receiver } from '../../../signals/transmitter/streams.ts'
import type { Transmitter } from '../../../signals/transmitter/transmitter.ts'
import type { ManagementClient } from '../authentication/authenticate.ts'
import { type JsonSchema, text } from '../http/schemas.ts'
import { RequestProblem } from '../http/status.ts'
import type { ManagementDeps } from '../management/deps.ts'

export type SignalDeps = ManagementDeps & { readonly transmitter: Transmitter }

/** SSF 1.0 section 8.1.1: an id has only characters that a URL does not escape. */
export const STREAM_ID = text('^[A-Za-z0-9._~-]{1,128}$', '1 to 128 unreserved characters')
export const URI_TEXT: JsonSchema = { type: 'string', minLength: 1, maxLength: 512 }
export const COMMON = { tag: 'Shared Signals', organizationScope: 'call' } as const

/** A schema that allows more members: a receiver may send some that this transmitter does not know. */
export const open = (properties: { readonly [name: string]: JsonSchema }, required: readonly string[]): JsonSchema => ({
  type: 'object',
  required,
  properties,
})

/** Throws RequestProblem for a person: streams belong to clients. */
export function receiverOf({ token, organizationScope }: ManagementClient): Receiver {
  if (token.subject.type !== 'service')
    throw new RequestProblem('permission_denied', 'only a client_credentials token may manage streams')
  // The token may be limited to an organization below the client's.
  return { client: token.clientId, organization: token.organization ?? organizationScope[0] ?? null }
}

/** The same answer for another receiver's stream as for no stream. */
export const NO_STREAM = 'there is no such stream'

/** Throws PdpError `request_invalid`. */
export function subjectIn(body: { readonly subject: unknown }): SubjectIdentifier {
  try {
    return parseSubject(body.subject, '/subject')
  } catch (err) {
    if (!(err instanceof SetError)) throw err
    const issues = [{ place: '/subject', message: err.message.replace(/^\/subject[^ ]* /, '') }]
    throw new PdpError('request_invalid', err.message, { issues })
  }
}
