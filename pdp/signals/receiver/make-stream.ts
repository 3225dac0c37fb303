/** Creates our stream at a transmitter, or finds the one that was created before (SSF 1.0 section 8.1.1). */
import type { JsonMembers } from '../../shared/base/json-text.ts'
import { members } from '../../shared/token/jws.ts'
import { ACTED_ON } from './effects.ts'
import type { MadeStream, ReceivedStream } from './streams.ts'
import { type Metadata, POLL, PUSH, type Transmitter, TransmitterError } from './transmitter.ts'

/** Our stream at the transmitter. `pollUrl`: where we poll; null when events are pushed. */
export type Stream = {
  readonly made: MadeStream
  readonly pollUrl: string | null
  /** The shortest time between two verifications that the transmitter allows, in milliseconds. */
  readonly verificationIntervalMs: number
}
export type Wanted = {
  readonly stream: ReceivedStream
  readonly metadata: Metadata
  readonly pushUrl: string
  readonly pushAuthorization: string
  /** The `iss` of the transmitter's SETs. */
  readonly issuer: string
  /** The settings have changed since the stream was made. */
  readonly isChanged: boolean
}

const STREAM_ID = /^[A-Za-z0-9._~-]{1,512}$/
const INTERVAL_S_MAX = 86_400
/** The statuses of a transmitter without PATCH, which the profile does not demand. */
const NO_PATCH = [404, 405, 501]

/** Throws TransmitterError. */
export async function makeStream(transmitter: Transmitter, wanted: Wanted): Promise<Stream> {
  const { delivery } = wanted.stream.ssf
  const methods = wanted.metadata.deliveryMethods
  const method = delivery === 'push' ? PUSH : POLL
  if (methods !== null && !methods.includes(method))
    throw new TransmitterError(`the transmitter does not deliver by ${delivery} (${method})`)
  const found = await findStream(transmitter, wanted)
  if (found === null) return create(transmitter, wanted)
  if (!wanted.isChanged && isAsWanted(found, wanted)) return parseStream(found, wanted)
  return change(transmitter, wanted, found)
}

function requestOf({ stream, pushUrl, pushAuthorization }: Wanted): JsonMembers {
  const { ssf, receiverId } = stream
  const delivery =
    ssf.delivery === 'push'
      ? { method: PUSH, endpoint_url: pushUrl, authorization_header: pushAuthorization }
      : { method: POLL }
  return { delivery, events_requested: ssf.events ?? ACTED_ON, description: descriptionOf(receiverId) }
}

/** The description of our stream. By it we find the stream even after our database has lost its id. */
const descriptionOf = (receiverId: string): string => `Portcullis ${receiverId}`

/** Our stream, found by its id or, if that is unknown, by its description. */
async function findStream(transmitter: Transmitter, wanted: Wanted): Promise<JsonMembers | null> {
  const { configurationEndpoint: url } = wanted.metadata
  const { stream, receiverId } = wanted.stream
  if (stream !== null) {
    const { status, body } = await transmitter.call('GET', urlOf(url, stream.stream_id), { statuses: [200, 404] })
    const found = status === 200 ? members(Array.isArray(body) ? body[0] : body) : null
    if (found?.stream_id === stream.stream_id) return found
  }
  const all = await listStreams(transmitter, url)
  return all.find(({ description }) => description === descriptionOf(receiverId)) ?? null
}

async function listStreams(transmitter: Transmitter, url: string): Promise<readonly JsonMembers[]> {
  const { status, body } = await transmitter.call('GET', url, { statuses: [200, 404] })
  // SSF 1.0 section 8.1.1.2 demands a list, but some transmitters with one stream for each receiver answer with that stream alone.
  const items: readonly unknown[] = Array.isArray(body) ? body : [body]
  return status === 404 ? [] : items.map(members).filter((item) => item !== null)
}

async function create(transmitter: Transmitter, wanted: Wanted): Promise<Stream> {
  const { configurationEndpoint: url } = wanted.metadata
  const { status, body } = await transmitter.call('POST', url, {
    statuses: [201, 200, 409],
    body: requestOf(wanted),
  })
  if (status !== 409) return parseStream(members(body), wanted)
  // The transmitter allows one stream for each receiver, and ours exists already.
  const [only, ...others] = await listStreams(transmitter, url)
  if (only === undefined || others.length > 0)
    throw new TransmitterError(`POST ${url} answered 409, and it is not clear which stream is in the way`, status)
  return change(transmitter, wanted, only)
}

async function change(transmitter: Transmitter, wanted: Wanted, found: JsonMembers): Promise<Stream> {
  const { configurationEndpoint: url } = wanted.metadata
  const body = { stream_id: found.stream_id, ...requestOf(wanted) }
  const answer = await transmitter.call('PATCH', url, { statuses: [200, ...NO_PATCH], body })
  if (answer.status === 200) return parseStream(members(answer.body), wanted)
  await deleteStream(transmitter, wanted.metadata, String(found.stream_id))
  return create(transmitter, wanted)
}

export async function deleteStream(transmitter: Transmitter, metadata: Metadata, id: string): Promise<void> {
  await transmitter.call('DELETE', urlOf(metadata.configurationEndpoint, id), { statuses: [204, 200, 404] })
}

/** The URL of a stream at an endpoint (SSF 1.0 sections 8.1.1.2, 8.1.1.5 and 8.1.2.1). */
export const urlOf = (endpoint: string, id: string): string =>
  `${endpoint}${endpoint.includes('?') ? '&' : '?'}stream_id=${encodeURIComponent(id)}`

function isAsWanted(found: JsonMembers, { stream, pushUrl }: Wanted): boolean {
  const delivery = members(found.delivery)
  const push = stream.ssf.delivery === 'push'
  if (delivery?.method !== (push ? PUSH : POLL)) return false
  return !push || delivery.endpoint_url === pushUrl
}

function parseStream(found: JsonMembers | null, { stream, metadata, issuer }: Wanted): Stream {
  const { stream_id: id, iss, aud, delivery, min_verification_interval: interval } = found ?? {}
  if (typeof id !== 'string' || !STREAM_ID.test(id))
    throw new TransmitterError('the configuration of the stream has no stream_id')
  if (iss !== issuer) throw new TransmitterError(`iss of the stream is not ${issuer}`)
  const given = [aud].flat().filter((one) => typeof one === 'string')
  const { audience } = stream.ssf
  if (given.length === 0) throw new TransmitterError('the configuration of the stream has no aud')
  if (audience !== undefined && !given.includes(audience))
    throw new TransmitterError(`aud of the stream does not name ${audience}`)
  const pollUrl = members(delivery)?.endpoint_url
  if (stream.ssf.delivery === 'poll' && typeof pollUrl !== 'string')
    throw new TransmitterError('the configuration of the stream has no delivery.endpoint_url to poll')
  const { jwksUri } = metadata
  const seconds = typeof interval === 'number' && interval > 0 ? Math.min(interval, INTERVAL_S_MAX) : 0
  return {
    made: {
      stream_id: id,
      iss,
      aud: audience === undefined ? given : [audience],
      ...(jwksUri !== null && { jwks_uri: jwksUri }),
    },
    pollUrl: stream.ssf.delivery === 'poll' ? String(pollUrl) : null,
    verificationIntervalMs: seconds * 1_000,
  }
}
