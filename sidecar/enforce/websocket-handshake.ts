/** The WebSocket opening handshake (RFC 6455 section 4): who may ask for a connection, and in which form. */
import type { IncomingMessage } from 'node:http'
import { malformed, RequestError } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import type { Route } from '../routes/route.ts'

/** True when the request asks for exactly one WebSocket connection; any other upgrade is not made. */
export function asksForWebSocket({ method, httpVersion, rawHeaders }: IncomingMessage): boolean {
  const upgrades = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'upgrade')
  return (
    method === 'GET' && httpVersion === '1.1' && upgrades.length === 1 && upgrades[0]?.toLowerCase() === 'websocket'
  )
}

/**
 * Throws RequestError for a route that takes no WebSocket connections, a handshake that two servers could read
 * differently, and a page of another origin.
 */
export function checkHandshake(request: InboundRequest, route: Route): void {
  // The rules may have changed since the listener chose to upgrade.
  if (!route.websocket) throw new RequestError('route_unknown', 'No route here takes WebSocket connections')
  if (request.bodyBytes !== 0) throw malformed('A WebSocket handshake has no body')
  const [version, key] = [only(request, 'sec-websocket-version'), only(request, 'sec-websocket-key')]
  if (version !== '13') throw malformed('The only WebSocket version is 13')
  if (key === null || Buffer.from(key, 'base64').length !== 16)
    throw malformed('Sec-WebSocket-Key is not 16 bytes in base64')
  // Browsers send Origin with every handshake, together with cookies (RFC 6455 section 10.2).
  const origin = only(request, 'origin')
  if (origin !== null && !route.origins.has(origin))
    throw new RequestError('origin_refused', 'Pages of this origin may not open a connection here')
}

function only({ raw, names }: InboundRequest, name: string): string | null {
  const values = names.flatMap((folded, at) => (folded === name ? [raw[2 * at + 1] ?? ''] : []))
  if (values.length > 1) throw malformed(`There is more than one ${name} field`)
  return values[0] ?? null
}
