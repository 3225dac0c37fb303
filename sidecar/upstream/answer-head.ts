/** The fields of an upstream's response as the client gets them, in its final head and in informational ones. */
import { mediaTypeOf } from '../../pdp/shared/base/media-type.ts'
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'
import { grpcDenialEnd } from '../enforce/denial-response.ts'
import type { ClientAnswer, ClientRequest } from '../http/client-request.ts'
import { withoutOwnCookies } from '../http/cookies.ts'
import { withCors } from '../http/cors.ts'
import { downstreamFields, firstValue, splitList, valuesOf } from '../http/fields.ts'
import { isGrpc } from '../http/grpc.ts'
import { mayTrail } from './body-stream.ts'
import { CONTINUE, PASSED_OVER } from './http1-parser.ts'
import { type RawFields, rawFields } from './response-fields.ts'

/** Responses with these statuses have no body. */
const NO_CONTENT = 204
const NOT_MODIFIED = 304
const LENGTH = 'content-length'

export type HeadOptions = {
  readonly client: Pick<ClientRequest, 'method' | 'version'>
  /** True: the file has a sign-in, so the service must not set the cookies of the sidecar. */
  readonly keepsCookies: boolean
  /** True: the client came in by its session. Caches cannot see that; RFC 9111 section 3.5 protects only answers to `Authorization`. */
  readonly ofSession: boolean
  readonly cors: readonly string[]
}

/** The fields for the client, names and values alternating. */
export function clientFields(
  status: number,
  raw: RawFields,
  { client, keepsCookies, ofSession, cors }: HeadOptions,
): string[] {
  const given = rawFields(raw)
  // RFC 9110 section 8.6: status 204 has no Content-Length, and a careless client would wait for the body.
  const passing = downstreamFields(given, status === NO_CONTENT ? [LENGTH] : [])
  const fields = dispositionFirst(keepsCookies ? withoutOwnCookies(passing) : passing)
  const hasBody = client.method !== 'HEAD' && status !== NO_CONTENT && status !== NOT_MODIFIED
  const trails = client.version === '2' || (client.version === '1.1' && firstValue(fields, LENGTH) === null)
  const announced = hasBody && trails ? announcedIn(given) : []
  if (announced.length > 0) fields.push('trailer', announced.join(', '))
  if (ofSession && firstValue(fields, CACHE_CONTROL) === null) fields.push(CACHE_CONTROL, 'private')
  return withCors(fields, cors)
}

/** The names of trailers that the fields announce (RFC 9110 section 6.6.2). */
const announcedIn = (fields: readonly string[]): readonly string[] =>
  valuesOf(fields, 'trailer').flatMap(splitList).filter(mayTrail)

const CACHE_CONTROL = 'cache-control'
const DISPOSITION = 'content-disposition'

/** Puts Content-Disposition first: after Content-Length, Node writes this field alone in another encoding. */
function dispositionFirst(fields: string[]): string[] {
  const isDisposition = (at: number): boolean => {
    const name = fields[at & ~1]
    return name?.length === DISPOSITION.length && name.toLowerCase() === DISPOSITION
  }
  if (!fields.some((_, at) => isDisposition(at))) return fields
  return [...fields.filter((_, at) => isDisposition(at)), ...fields.filter((_, at) => !isDisposition(at))]
}

/**
 * Forwards an informational response (RFC 9110 section 15.2), except 100, since the sidecar itself answers `Expect`, and except those
 * that are not valid for the client.
 */
export function inform(
  res: ClientAnswer,
  status: number,
  raw: RawFields,
  { client, keepsCookies }: Omit<HeadOptions, 'ofSession' | 'cors'>,
): void {
  if (client.version === '1.0' || status === CONTINUE || status === PASSED_OVER || res.headersSent) return
  const fields = downstreamFields(rawFields(raw), [LENGTH])
  try {
    res.writeInformation(status, keepsCookies ? withoutOwnCookies(fields) : fields)
  } catch {
    // An informational response may be lost: the final one has everything that counts.
  }
}

/** Event streams and gRPC calls may end at any point, so the sidecar can end them with trailers that name the reason. */
export function endingOf(
  fields: readonly string[],
  version: string,
): ((code: ProblemCode) => [string, string][]) | null {
  if (version === '2' && isGrpc(fields)) return (code) => grpcDenialEnd(code)
  return isEventStream(fields) ? (code) => [['portcullis-problem', code]] : null
}

export const isEventStream = (fields: readonly string[]): boolean =>
  mediaTypeOf(firstValue(fields, 'content-type') ?? '') === 'text/event-stream' &&
  firstValue(fields, 'content-length') === null
