/** The route of a parsed request. The pipeline, `explain` and the WebSocket listener all ask here, so they cannot disagree. */
import { malformed, RequestError } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import type { Match, Route, RouteTable } from './route.ts'
import { createRouteTable } from './route-table.ts'

export type RoutingDeps = {
  /** Every host that is served: lower case, without port. */
  readonly hosts: ReadonlySet<string>
  readonly routes: RouteTable
}
/** `method`: the path has routes, but none for this method. `none`: the path has no route. */
export type RequestMatch = Exclude<Match, { readonly kind: 'ambiguous' }>
export type RoutedRequest = Pick<InboundRequest, 'host' | 'namedHost' | 'method' | 'target'>

export function createRouting(file: {
  readonly hosts: readonly string[]
  readonly routes: readonly Route[]
}): RoutingDeps {
  const routes = createRouteTable(file.routes)
  return { hosts: new Set([...file.hosts, ...routes.hosts]), routes }
}

/**
 * Throws RequestError `host_unknown` for a host that is not served, and `request_invalid` for a path that other servers
 * could read as another route's, or for two host names that lead to different routes.
 */
export function routeRequest(deps: RoutingDeps, request: RoutedRequest): RequestMatch {
  const { host, namedHost } = request
  if (!deps.hosts.has(host.hostname))
    throw new RequestError('host_unknown', 'This host is not served', `${host.hostname} is not served`)
  const match = matchRequest(deps.routes, request)
  if (namedHost === null || namedHost.hostname === host.hostname) return match
  // Services believe the host that a trusted proxy names, so it must lead to the same route as the Host field.
  if (!deps.hosts.has(namedHost.hostname))
    throw new RequestError('host_unknown', 'The forwarded host is not served', `${namedHost.hostname} is not served`)
  const other = matchRequest(deps.routes, { ...request, host: namedHost })
  if (other.kind !== match.kind || (other.kind === 'route' && match.kind === 'route' && other.route !== match.route))
    throw malformed('The Host field and the forwarded host lead to different routes')
  return match
}

function matchRequest(routes: RouteTable, { host, method, target }: Omit<RoutedRequest, 'namedHost'>): RequestMatch {
  const match = routes.match({ host: host.hostname, method, path: target })
  const route = match.kind === 'route' ? match.route : null
  if (target.encodedSlash && route?.encodedSlash !== true) throw malformed('The path has an encoded slash')
  if (target.semicolon && route?.semicolon !== true) throw malformed('The path has a semicolon')
  if (match.kind === 'ambiguous') {
    const message = 'Some servers would read this path as another one'
    throw new RequestError('request_invalid', message, `${message}: that of ${match.other.id}, whose check is another`)
  }
  return match
}
