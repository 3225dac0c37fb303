/** Answers preflights of browsers (Fetch standard, section 4.8), which never have credentials, and requests that match no route. */
import { askedMethod, type Cors, corsFields, PUBLIC_CORS, preflightFields } from '../http/cors.ts'
import { malformed, RequestError } from '../request/errors.ts'
import { type InboundRequest, withFields } from '../request/inbound.ts'
import type { Route } from '../routes/route.ts'
import { type RequestMatch, type RoutingDeps, routeRequest } from '../routes/route-request.ts'
import { type Denial, denied } from './denial.ts'
import { ARRIVED } from './stages.ts'

export type PreflightDeps = RoutingDeps & {
  /** CORS where no route matches; null: pages of other origins may not read answers. */
  readonly cors: Cors | null
  /** Path of the protected resource metadata (RFC 9728); null when it is not served. */
  readonly metadataPath: string | null
}
export type Preflight =
  /** `fields`: names and values alternating. */
  | { readonly kind: 'answer'; readonly allow: readonly string[]; readonly fields: readonly string[] }
  /** Goes to the service, with this request. */
  | { readonly kind: 'pass'; readonly route: Route; readonly request: InboundRequest }

/** The decision about a preflight or OPTIONS; null: the request is decided like any other. Throws RequestError. */
export function judgePreflight(request: InboundRequest, deps: PreflightDeps): Preflight | null {
  const method = askedMethod(request)
  if (method === null) return null
  const own = routeRequest(deps, request) // RequestError
  const isPublic = own.kind === 'route' && own.route.check === null
  // The operator's own route for OPTIONS leaves preflights to the service.
  if (isPublic && own.route.method === 'OPTIONS') return null
  const asked = routeRequest(deps, { ...request, method }) // RequestError
  const cors = asked.kind === 'route' ? asked.route.cors : deps.cors
  if (asked.kind === 'none' && request.target.path === deps.metadataPath)
    return answer(PUBLIC_CORS, ['GET', 'HEAD'], request)
  const allow = asked.kind === 'method' ? asked.allow : [method]
  if (cors === null) {
    const isGuarded = own.kind === 'route' && !isPublic
    return isGuarded ? { kind: 'answer', allow, fields: [] } : null
  }
  if (!cors.passesPreflights) return answer(cors, allow, request)
  if (asked.kind !== 'route') return null
  if (request.bodyBytes !== 0) throw malformed('A preflight has no body')
  // The Cookie field is removed: no browser sends it in a preflight, and no check has verified it here.
  return { kind: 'pass', route: asked.route, request: withFields(request, (name) => name !== 'cookie') }
}

const answer = (cors: Cors, allow: readonly string[], { raw }: InboundRequest): Preflight => ({
  kind: 'answer',
  allow,
  fields: preflightFields(cors, allow, raw),
})

/**
 * Answers requests for the resource metadata, and OPTIONS requests that no route takes. Throws RequestError `route_unknown` for all others.
 */
export function answerUnrouted(
  match: Exclude<RequestMatch, { kind: 'route' }>,
  { method, target, raw }: InboundRequest,
  { metadataPath, cors }: Pick<PreflightDeps, 'metadataPath' | 'cors'>,
):
  | { readonly kind: 'options'; readonly allow: readonly string[]; readonly fields: readonly string[] }
  | { readonly kind: 'metadata' }
  | Denial {
  if (match.kind === 'method') {
    const { allow } = match
    if (method === 'OPTIONS') return { kind: 'options', allow, fields: corsFields(cors, raw) }
    return denied('method_unsupported', ARRIVED, { reason: 'no route of this path has this method', allow })
  }
  const isRead = method === 'GET' || method === 'HEAD'
  if (isRead && metadataPath !== null && target.path === metadataPath) return { kind: 'metadata' }
  throw new RequestError('route_unknown', 'No route has this path')
}
