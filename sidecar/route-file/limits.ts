/** Reads the limits and trusted proxies of a route file. route-file.schema.json describes each limit. */
import type { Node } from 'yaml'
import { type Network, parseNetwork } from '../../pdp/process/addresses.ts'
import type { SidecarLimits } from './default-limits.ts'
import type { YamlReader } from './yaml-reader.ts'

const COUNT = { min: 1, max: 1_000_000 }
const TIME = { min: 10, max: 3_600_000 }

/** The keys of `limits` in the route file. */
export const LIMIT_KEYS = {
  requests_max: { name: 'requestsMax', ...COUNT },
  client_requests_max: { name: 'clientRequestsMax', ...COUNT },
  subject_requests_max: { name: 'subjectRequestsMax', ...COUNT },
  route_requests_max: { name: 'routeRequestsMax', ...COUNT },
  websockets_max: { name: 'websocketsMax', ...COUNT },
  client_websockets_max: { name: 'clientWebsocketsMax', ...COUNT },
  waiting_max: { name: 'waitingMax', min: 0, max: COUNT.max },
  waiting_ms: { name: 'waitingMs', ...TIME },
  connections_max: { name: 'connectionsMax', ...COUNT },
  client_connections_max: { name: 'clientConnectionsMax', ...COUNT },
  pipelined_max: { name: 'pipelinedMax', min: 0, max: 1_000 },
  http2_streams_max: { name: 'http2StreamsMax', min: 1, max: 1_000 },
  header_bytes_max: { name: 'headerBytesMax', min: 1_024, max: 65_536 },
  headers_ms: { name: 'headersTimeoutMs', ...TIME },
  keep_alive_ms: { name: 'keepAliveMs', ...TIME },
  body_idle_ms: { name: 'bodyIdleMs', ...TIME },
  body_bytes_per_second_min: { name: 'bodyBytesPerSecondMin', min: 0, max: 1_000_000_000 },
  body_grace_ms: { name: 'bodyGraceMs', ...TIME },
  body_read_ms: { name: 'bodyReadMs', ...TIME },
  upstream_connections_max: { name: 'upstreamConnectionsMax', ...COUNT },
  upstream_connect_ms: { name: 'upstreamConnectMs', ...TIME },
  upstream_headers_ms: { name: 'upstreamHeadersMs', ...TIME },
  pdp_ms: { name: 'pdpTimeoutMs', ...TIME },
  drain_ms: { name: 'drainMs', ...TIME },
} as const satisfies { [key: string]: { name: keyof SidecarLimits; min: number; max: number } }

/** Only the limits that the file sets; others keep their defaults. Reports errors to the reader. */
export function readLimits(reader: YamlReader, node: Node | null): Partial<SidecarLimits> {
  if (node === null) return {}
  const keys = Object.fromEntries(Object.keys(LIMIT_KEYS).map((key) => [key, 'optional' as const]))
  const members = reader.members(node, 'limits', keys)
  const limits: { [name: string]: number } = {}
  for (const [key, { name, ...bounds }] of Object.entries(LIMIT_KEYS)) {
    const value = members?.[key] ?? null
    const count = value === null ? null : reader.count(value, key, bounds)
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
    reader.report(node, `${JSON.stringify(text)} ${err instanceof Error ? err.message : 'is not a network'}`)
    return null
  }
}
