/** A stream's configuration for its receiver (SSF 1.0 section 8.1.1), and our metadata (section 7.1). */
import { type MasterKeys, open, seal } from '../../shared/base/encryption.ts'
import { type GuardedPost, TargetRefused } from '../../shared/base/guarded-post.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import type { JsonObject, JsonValue } from '../../shared/domain/json.ts'
import { eventsDelivered, eventsSupported } from './events.ts'
import type { Stream, StreamRequest, SubjectFormat } from './streams.ts'

export const PUSH = 'urn:ietf:rfc:8935'
export const POLL = 'urn:ietf:rfc:8936'
/** The least number of seconds between two verifications. */
export const VERIFICATION_INTERVAL = 30
export const SUBJECT_FORMATS: readonly SubjectFormat[] = ['complex', 'iss_sub']

export const SSF_PATHS = {
  metadata: '/.well-known/ssf-configuration',
  stream: '/ssf/stream',
  status: '/ssf/status',
  addSubject: '/ssf/subjects:add',
  removeSubject: '/ssf/subjects:remove',
  verify: '/ssf/verify',
  poll: '/ssf/poll',
} as const
const urlOf = (issuer: string, path: string): string => issuer.replace(/\/$/, '') + path

/** The transmitter's metadata. All URLs come from the configured issuer. */
export function metadataOf(issuer: string, jwksUri: string): JsonObject {
  return {
    spec_version: '1_0',
    issuer,
    jwks_uri: jwksUri,
    delivery_methods_supported: [PUSH, POLL],
    configuration_endpoint: urlOf(issuer, SSF_PATHS.stream),
    status_endpoint: urlOf(issuer, SSF_PATHS.status),
    add_subject_endpoint: urlOf(issuer, SSF_PATHS.addSubject),
    remove_subject_endpoint: urlOf(issuer, SSF_PATHS.removeSubject),
    verification_endpoint: urlOf(issuer, SSF_PATHS.verify),
    authorization_schemes: [{ spec_urn: 'urn:ietf:rfc:6749' }],
    default_subjects: 'ALL',
  }
}

/** The configuration, without the Authorization field, which is secret. */
export function configurationOf(issuer: string, stream: Stream): JsonObject {
  const delivery =
    stream.endpointUrl === null
      ? { method: POLL, endpoint_url: pollUrl(issuer, stream.id) }
      : { method: PUSH, endpoint_url: stream.endpointUrl }
  return {
    stream_id: stream.id,
    ...suppliedByUs(issuer, stream),
    ...(stream.eventsRequested === null ? {} : { events_requested: stream.eventsRequested }),
    delivery,
    ...(stream.description === null ? {} : { description: stream.description }),
    subject_format: stream.subjectFormat,
  }
}

const suppliedByUs = (issuer: string, stream: Stream): JsonObject => ({
  iss: issuer,
  aud: stream.client,
  events_supported: eventsSupported(issuer),
  events_delivered: eventsDelivered(issuer, stream),
  min_verification_interval: VERIFICATION_INTERVAL,
})

const pollUrl = (issuer: string, id: string): string => urlOf(issuer, `${SSF_PATHS.poll}/${id}`)

/** Members from a receiver that count; all others are ignored. */
export type StreamBody = {
  readonly delivery?: {
    readonly method: string
    readonly endpoint_url?: string
    readonly authorization_header?: string
  }
  readonly events_requested?: readonly string[]
  readonly description?: string
  readonly subject_format?: SubjectFormat
  readonly [member: string]: unknown
}
type BodyDeps = {
  readonly issuer: string
  readonly masterKeys: MasterKeys
  readonly post: Pick<GuardedPost, 'check'>
}
type For = { readonly id: string; readonly body: StreamBody }

/** The request for a new or replaced stream; absent members are deleted. Throws PdpError `request_invalid`. */
export function requestOf(deps: BodyDeps, { id, body }: For): StreamRequest {
  return {
    ...deliveryOf(deps, { id, body }, null),
    eventsRequested: body.events_requested ?? null,
    subjectFormat: body.subject_format ?? 'complex',
    description: body.description ?? null,
  }
}

/** The request after a patch; absent members stay. Throws PdpError `request_invalid`. */
export function patchedRequest(deps: BodyDeps, stream: Stream, body: StreamBody): StreamRequest {
  const { endpointUrl, authorizationSealed } = stream
  return {
    ...(body.delivery === undefined
      ? { endpointUrl, authorizationSealed }
      : deliveryOf(deps, { id: stream.id, body }, stream)),
    eventsRequested: body.events_requested ?? stream.eventsRequested,
    subjectFormat: body.subject_format ?? stream.subjectFormat,
    description: body.description ?? stream.description,
  }
}

/** Throws PdpError `request_invalid` when the receiver changes members that only we may set (SSF 1.0 section 8.1.1.3). */
export function requireUnchanged(issuer: string, stream: Stream, body: StreamBody): void {
  for (const [name, value] of Object.entries(suppliedByUs(issuer, stream)))
    if (body[name] !== undefined && !isSame(body[name], value))
      throw invalid(`/${name}`, 'is not the receiver’s to change')
}

function isSame(given: unknown, ours: JsonValue): boolean {
  if (!Array.isArray(ours)) return given === ours
  return Array.isArray(given) && given.length === ours.length && ours.every((item) => given.includes(item))
}

function deliveryOf(
  deps: BodyDeps,
  { id, body: { delivery } }: For,
  before: Stream | null,
): Pick<StreamRequest, 'endpointUrl' | 'authorizationSealed'> {
  if (delivery === undefined) return { endpointUrl: null, authorizationSealed: null }
  const { method, endpoint_url: url, authorization_header: authorization } = delivery
  if (method === POLL) {
    if (authorization !== undefined) throw invalid('/delivery/authorization_header', 'is for push only')
    if (url !== undefined && url !== pollUrl(deps.issuer, id))
      throw invalid('/delivery/endpoint_url', 'is supplied by the transmitter for poll')
    return { endpointUrl: null, authorizationSealed: null }
  }
  if (method !== PUSH) throw invalid('/delivery/method', `must be ${PUSH} or ${POLL}`)
  if (url === undefined) throw invalid('/delivery/endpoint_url', 'is missing')
  try {
    deps.post.check(url)
  } catch (err) {
    if (err instanceof TargetRefused) throw invalid('/delivery/endpoint_url', err.message)
    throw err
  }
  if (authorization !== undefined)
    return { endpointUrl: url, authorizationSealed: sealAuthorization(deps.masterKeys, id, authorization) }
  // The field is never shown, so a receiver that returns what it has read lacks it: the stored one stays.
  return { endpointUrl: url, authorizationSealed: before?.endpointUrl === url ? before.authorizationSealed : null }
}

function invalid(place: string, message: string): PdpError {
  return new PdpError('request_invalid', `${place} ${message}`, { issues: [{ place, message }] })
}

/** The encryption purpose of the Authorization field for a receiver's endpoint, which is never shown or logged. */
export const AUTHORIZATION_PURPOSE = 'signal-authorization'
export const nameOfAuthorization = (stream: string): string => `signal-stream ${stream}`

export const sealAuthorization = (masterKeys: MasterKeys, stream: string, value: string): string =>
  seal(masterKeys.derive(AUTHORIZATION_PURPOSE), nameOfAuthorization(stream), value)

/** Throws Error when no master key fits. */
export function openAuthorization(
  masterKeys: MasterKeys,
  { id, authorizationSealed }: Pick<Stream, 'id' | 'authorizationSealed'>,
): string | null {
  if (authorizationSealed === null) return null
  return open(masterKeys.derive(AUTHORIZATION_PURPOSE), nameOfAuthorization(id), authorizationSealed)
}
