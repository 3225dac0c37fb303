/** The limits of a route file, and how they and trusted proxies are read. */
import type { Node } from 'yaml'
import { type Network, parseNetwork } from '../../pdp/shared/base/addresses.ts'
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import { DEFAULT_LIMITS, type SidecarLimits } from './default-limits.ts'
import { count, type Members, optional } from './words/schema.ts'
import type { YamlReader } from './words/yaml-reader.ts'

const COUNT = { min: 1, max: 1_000_000 }
export const TIME = { min: 10, max: 3_600_000 }

/** The keys of `limits` in the route file. */
export const LIMIT_KEYS = {
  requests_max: {
    name: 'requestsMax',
    ...COUNT,
    description:
      'Requests that are open at the same time. With HTTP/1.1 never more than upstream_connections_max. Further requests wait, then get 503 with Retry-After. One client address has at most half of them, and the less the fewer are free.',
  },
  client_requests_max: {
    name: 'clientRequestsMax',
    ...COUNT,
    description:
      'Open requests of one client address (an IPv4 address, or the /64 of an IPv6 address). Raise it, requests_max and route_requests_max when a proxy that trusted_proxies does not name brings many clients.',
  },
  subject_requests_max: {
    name: 'subjectRequestsMax',
    ...COUNT,
    description: 'Open requests of one token subject.',
  },
  route_requests_max: {
    name: 'routeRequestsMax',
    ...COUNT,
    description: 'Open requests of one route, shared among clients like requests_max.',
  },
  decisions_max: {
    name: 'decisionsMax',
    ...COUNT,
    description:
      'Questions that are open at the PDP at the same time. Further ones wait; clients take turns. Raise it if the PDP is far away: with 64 and 20 ms to the PDP, at most 3,200 requests a second are decided. If too many wait, the oldest of the client with the most gets 503.',
  },
  websockets_max: {
    name: 'websocketsMax',
    ...COUNT,
    description: 'Open WebSocket connections. The limits above do not count them.',
  },
  client_websockets_max: {
    name: 'clientWebsocketsMax',
    ...COUNT,
    description: 'Open WebSocket connections of one client address, and of one token subject.',
  },
  waiting_max: {
    name: 'waitingMax',
    min: 0,
    max: COUNT.max,
    description: 'Requests that wait at each of the limits above. Further requests get 503 at once.',
  },
  waiting_ms: {
    name: 'waitingMs',
    ...TIME,
    description: 'Milliseconds that a request waits at most.',
  },
  connections_max: {
    name: 'connectionsMax',
    ...COUNT,
    description:
      'Open client connections, and open HTTP/2 streams, shared among clients like requests_max. Further connections are closed.',
  },
  client_connections_max: {
    name: 'clientConnectionsMax',
    ...COUNT,
    description:
      'Open connections of one client address, and its open HTTP/2 streams. Those of trusted proxies are not counted.',
  },
  pipelined_max: {
    name: 'pipelinedMax',
    min: 0,
    max: 1_000,
    description:
      'Requests that wait on one HTTP/1.1 connection behind the one that is answered. With more the connection is closed.',
  },
  http2_streams_max: {
    name: 'http2StreamsMax',
    min: 1,
    max: 1_000,
    description: 'Open requests on one HTTP/2 connection.',
  },
  header_bytes_max: {
    name: 'headerBytesMax',
    min: 1_024,
    max: 65_536,
    description:
      'Bytes of the request line and header section together, and of the header section of the service’s response. The request target may have a quarter as many characters, and 8,192 at least; then 414.',
  },
  headers_ms: {
    name: 'headersTimeoutMs',
    ...TIME,
    description:
      'Milliseconds from the first byte of a connection or request to the end of its header section; then 408.',
  },
  keep_alive_ms: {
    name: 'keepAliveMs',
    ...TIME,
    description:
      'Milliseconds between two requests of a connection, or for what is left of a body after the answer; then it is closed.',
  },
  body_idle_ms: {
    name: 'bodyIdleMs',
    ...TIME,
    description:
      'Milliseconds between two parts of a client’s body; then 408. Also for a client to read the next part of a response; then the response is cut off.',
  },
  body_bytes_per_second_min: {
    name: 'bodyBytesPerSecondMin',
    min: 0,
    max: 1_000_000_000,
    description:
      'Minimum average rate, in bytes per second, at which a client sends a body and reads a response, after body_grace_ms of waiting. 0: no minimum. It does not apply to gRPC calls.',
  },
  body_grace_ms: {
    name: 'bodyGraceMs',
    ...TIME,
    description: 'Milliseconds of waiting for a client before body_bytes_per_second_min applies.',
  },
  body_read_ms: {
    name: 'bodyReadMs',
    ...TIME,
    description: 'Milliseconds for the complete body when a check reads it; then 408.',
  },
  upstream_connections_max: {
    name: 'upstreamConnectionsMax',
    ...COUNT,
    description: 'Connections to the service.',
  },
  upstream_connect_ms: {
    name: 'upstreamConnectMs',
    ...TIME,
    description: 'Milliseconds to open a connection to the service; then 504.',
  },
  upstream_headers_ms: {
    name: 'upstreamHeadersMs',
    ...TIME,
    description:
      'Milliseconds from the end of a request to the header section of the response; then 504. Informational responses (1xx) prolong it to at most three times as long. gRPC calls wait as long as their client.',
  },
  answer_bytes_max: {
    name: 'answerBytesMax',
    min: 1_024,
    max: 1_073_741_824,
    description: 'Bytes of an answer, or of a line or an event of one, of which a route takes items out; then 502.',
  },
  answers_held_bytes: {
    name: 'answersHeldBytes',
    min: 1_024,
    max: 4_294_967_296,
    description:
      'Bytes of all such answers that wait for the PDP or for a client that reads slowly; then 503. They are memory of the sidecar.',
  },
  pdp_ms: {
    name: 'pdpTimeoutMs',
    ...TIME,
    description: 'Milliseconds for one decision of the PDP, including its retry; then 503.',
  },
  drain_ms: {
    name: 'drainMs',
    ...TIME,
    description: 'Milliseconds for open requests to finish when the sidecar stops.',
  },
} as const satisfies { [key: string]: { name: keyof SidecarLimits; min: number; max: number; description: string } }

export const LIMIT_MEMBERS: Members = Object.fromEntries(
  Object.entries(LIMIT_KEYS).map(([key, { name, min, max, description }]) => [
    key,
    optional(count({ min, max }, { default: DEFAULT_LIMITS[name] }), description),
  ]),
)

/** Returns only the limits that the file sets; others keep their defaults. Reports errors to the reader. */
export function readLimits(reader: YamlReader, node: Node | null): Partial<SidecarLimits> {
  if (node === null) return {}
  const members = reader.members(node, 'limits', LIMIT_MEMBERS)
  const limits: { [name: string]: number } = {}
  for (const [key, { name, min, max }] of Object.entries(LIMIT_KEYS)) {
    const value = members?.[key] ?? null
    const count = value === null ? null : reader.count(value, key, { min, max })
    if (count !== null) limits[name] = count
  }
  return limits
}

export function readNetwork(reader: YamlReader, node: Node | null): Network | null {
  const text = reader.text(node, 'a trusted proxy')
  if (text === null) return null
  try {
    return parseNetwork(text)
  } catch (err) {
    reader.report(node, `${JSON.stringify(text)} ${messageOf(err)}`)
    return null
  }
}
