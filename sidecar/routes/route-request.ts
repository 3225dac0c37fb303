/** Finds the route of a parsed request. The pipeline, `explain` and the listener all use it, so they cannot disagree. */
import { createNetworks } from '../../pdp/shared/base/addresses.ts'
import { malformed, RequestError } from '../request/errors.ts'
import { createHostSet } from '../request/host-set.ts'
import type { InboundRequest } from '../request/inbound.ts'
import type { Authority } from '../request/target.ts'
import { sourcesFrom } from './checks.ts'
import { refuseFetchedPath } from './fetched-paths.ts'
import { refuseFunction } from './functions.ts'
import { refuseQueryTwin } from './path-twins.ts'
import type { Match, MatchedRoute, OpenPath, Route, RouteTable } from './route.ts'
import { createRouteTable, createRouteTableInTurns } from './route-table.ts'
import { type JudgedRequest, type JudgeJson, refuseOtherReadings } from './value-readings.ts'

export type RoutingDeps = {
  /** All served hosts in lower case, without port. */
  readonly hosts: ReturnType<typeof createHostSet>
  readonly routes: RouteTable
  /** The route of a path that is open to this sender under every host; null: the path is not open to it. */
  readonly openRoute: (request: RoutedRequest) => Route | null
}
/** The route of a request. `method`: the path has routes, but not for this method. `none`: the path has no route. */
export type RequestMatch =
  | Exclude<Match, { readonly kind: 'ambiguous' | 'overlap' | 'route' }>
  | (Extract<Match, { readonly kind: 'route' }> & {
      /** Judges a JSON body, and must be called before the body is forwarded; null: the body need not be read. */
      readonly judgeJson: JudgeJson | null
    })
export type RoutedRequest = Pick<InboundRequest, 'host' | 'namedHost' | 'clientAddress'> & JudgedRequest

/** Bounds the hosts in a log line, which any client can cause. */
const HOSTS_NAMED_MAX = 10

type Routed = {
  readonly hosts: readonly string[]
  readonly routes: readonly Route[]
  readonly openPaths: readonly OpenPath[]
}

export const createRouting = (file: Routed): RoutingDeps => routingOf(file, createRouteTable(file.routes))

/** Does what `createRouting` does, in steps: between two steps a serving process answers requests. */
export const createRoutingInTurns = async (file: Routed): Promise<RoutingDeps> =>
  routingOf(file, await createRouteTableInTurns(file.routes))

const routingOf = ({ hosts, openPaths }: Routed, routes: RouteTable): RoutingDeps => ({
  hosts: createHostSet([...hosts, ...routes.hosts]),
  routes,
  openRoute: createOpenRoutes(openPaths),
})

/** Fields that only proxies add. A request with one came through a proxy, perhaps an untrusted one, so the peer is not its sender. */
const OF_PROXIES = /^(?:x-forwarded-|x-real-ip$|forwarded$|via$)/

function createOpenRoutes(openPaths: readonly OpenPath[]): RoutingDeps['openRoute'] {
  const open = new Map(openPaths.map(({ path, peers, route }) => [path, { route, peers: createNetworks(peers) }]))
  return ({ method, target, bodyBytes, clientAddress, names }) => {
    const found = open.get(target.path)
    if (found === undefined || (method !== 'GET' && method !== 'HEAD') || bodyBytes !== 0) return null
    return found.peers.has(clientAddress) && !names.some((name) => OF_PROXIES.test(name)) ? found.route : null
  }
}

/**
 * Throws RequestError: `host_unknown` for a host that is not served; `route_ambiguous` where routes overlap; `request_invalid` for
 * a path that servers could read as another route's or that may run functions of another page, and for two host names with
 * different routes; `media_type_unsupported` for a form in which a service could find other values than were checked.
 */
export function routeRequest(deps: RoutingDeps, request: RoutedRequest): RequestMatch {
  const { host, namedHost } = request
  const open = deps.openRoute(request)
  if (open !== null) return { kind: 'route', route: open, parameters: [], alike: [], judgeJson: null }
  if (!deps.hosts.has(writtenName(host)))
    throw new RequestError(
      'host_unknown',
      'This host is not served',
      unknownHostReason(writtenName(host), deps.hosts.names),
    )
  const match = matchRequest(deps.routes, request)
  if (namedHost === null || namedHost.hostname === host.hostname) return match
  // The host that a trusted proxy reports must lead to the same route as the Host field, since services believe it.
  if (!deps.hosts.has(writtenName(namedHost)))
    throw new RequestError(
      'host_unknown',
      'The forwarded host is not served',
      unknownHostReason(writtenName(namedHost), deps.hosts.names),
    )
  const other = matchRequest(deps.routes, { ...request, host: namedHost })
  if (match.kind === 'route' && match.route.hostParameter !== null)
    throw malformed('The Host field and the forwarded host differ, and the route takes a value from the host')
  if (other.kind !== match.kind || (other.kind === 'route' && match.kind === 'route' && other.route !== match.route))
    throw malformed('The Host field and the forwarded host lead to different routes')
  return match
}

function matchRequest(routes: RouteTable, request: Omit<RoutedRequest, 'namedHost'>): RequestMatch {
  const { method, target } = request
  const host = request.host.hostname
  const match = routes.match({ host, method, path: target })
  const route = match.kind === 'route' ? match.route : null
  if (target.encodedSlash && route?.encodedSlash !== true) throw malformed('The path has an encoded slash')
  if (target.semicolon && route?.semicolon !== true) throw malformed('The path has a semicolon')
  if (match.kind === 'ambiguous') {
    const message = 'Some servers would read this path as another path'
    throw new RequestError('request_invalid', message, `${message}, of route ${match.other.id}, which has other rules`)
  }
  if (match.kind === 'overlap') throw overlapping(match.routes)
  if (match.kind !== 'route') return match
  refuseFetchedPath(target, match.route, (path) => routes.match({ host, method: 'GET', path }))
  refuseFunction(request, match.route, (names) => routes.guarded({ host, route: match.route, names }))
  const byMethod = (other: string): readonly Route[] => routesOf(routes.match({ host, method: other, path: target }))
  const refusals = [match, ...match.alike].map((one) => refuseOtherReadings(request, one, byMethod))
  for (const one of match.alike) refuseQueryTwins(target.query, one)
  return { ...match, judgeJson: both(refusals) }
}

/** A judge that applies all the given judges; null: there are none. */
function both(refusals: readonly (JudgeJson | null)[]): JudgeJson | null {
  const found = refusals.filter((refuse) => refuse !== null)
  if (found.length < 2) return found[0] ?? null
  return (text) => {
    for (const refuse of found) refuse(text)
  }
}

/** Throws RequestError if the query has a parameter of this route with another value. values.ts checks the deciding route. */
function refuseQueryTwins(query: string | null, { route, parameters }: MatchedRoute): void {
  if (route.check === null || route.query) return
  for (const parameter of sourcesFrom({ check: route.check, context: route.context }, 'path'))
    refuseQueryTwin(query, parameter, parameters[parameter.index] ?? '')
}

function overlapping(routes: readonly Route[]): RequestError {
  const message = 'Several routes match this path, and none is the most specific'
  const named = routes.slice(0, ROUTES_NAMED_MAX).map(({ id }) => id)
  const why = `${message}: ${named.join(', ')}; add a route for this path`
  return new RequestError('route_ambiguous', message, why)
}

const ROUTES_NAMED_MAX = 4

function routesOf(match: Match): readonly Route[] {
  switch (match.kind) {
    case 'route':
      return [match.route, ...match.alike.map(({ route }) => route)]
    case 'ambiguous':
      return [match.route, match.other]
    case 'overlap':
      return match.routes
    case 'method':
    case 'none':
      return []
  }
}

/** The host's name with the final dot that the client wrote: the file must list this form, but routes are found without the dot. */
const writtenName = ({ hostname, dotted }: Authority): string => (dotted === true ? `${hostname}.` : hostname)

/** The reason for the log and the command line alone: a client does not learn which hosts are served. */
function unknownHostReason(host: string, hosts: readonly string[]): string {
  const more = hosts.length > HOSTS_NAMED_MAX ? ` and ${hosts.length - HOSTS_NAMED_MAX} more` : ''
  const named = `${hosts.slice(0, HOSTS_NAMED_MAX).join(', ')}${more}`
  return `the host ${host} is not served; served hosts: ${named}; to serve it, add it to hosts in the route file`
}
