/** Checks the WebSocket opening handshake (RFC 6455 section 4): its form, its route and its origin. */
import type { IncomingMessage } from 'node:http'
import { hasOrigin } from '../http/cors.ts'
import { onlyValue } from '../http/fields.ts'
import { malformed, RequestError } from '../request/errors.ts'
import { fieldValues, type InboundRequest } from '../request/inbound.ts'
import type { Route } from '../routes/route.ts'

/** True if the request asks for a WebSocket connection and no other upgrade. */
export const asksForWebSocket = ({ method, httpVersion, rawHeaders }: IncomingMessage): boolean =>
  method === 'GET' && httpVersion === '1.1' && onlyValue(rawHeaders, 'upgrade')?.toLowerCase() === 'websocket'

/**
 * Throws RequestError for a route without WebSocket connections, a handshake that two servers could read differently, and
 * a page of a refused origin.
 */
export function checkHandshake(request: InboundRequest, route: Route): void {
  // The rules may have changed since the listener chose to upgrade.
  if (!route.websocket) throw new RequestError('route_unknown', 'This route does not accept WebSocket connections')
  if (request.bodyBytes !== 0) throw malformed('A WebSocket handshake has no body')
  const [version, key] = [only(request, 'sec-websocket-version'), only(request, 'sec-websocket-key')]
  if (version !== '13') throw malformed('The WebSocket version must be 13')
  if (key === null || Buffer.from(key, 'base64').length !== 16)
    throw malformed('Sec-WebSocket-Key is not 16 bytes in base64')
  // Browsers send Origin with every handshake, together with cookies (RFC 6455 section 10.2).
  const origin = only(request, 'origin')
  if (origin !== null && !hasOrigin(route.origins, origin))
    throw new RequestError('origin_refused', 'Pages of this origin may not open a connection here')
}

function only(request: InboundRequest, name: string): string | null {
  const [value = null, ...more] = fieldValues(request, name)
  if (more.length > 0) throw malformed(`There is more than one ${name} field`)
  return value
}
