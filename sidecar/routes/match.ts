/** The route of a parsed request, and what only the route can say about its path. */
import { malformed, RequestError } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import type { Match, RouteTable } from './route.ts'

/** Throws RequestError for a path that is ambiguous unless its route says otherwise. */
export function matchRequest(routes: RouteTable, { host, method, target }: InboundRequest): Match {
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
