/** A sidecar as a process in front of one server, beside a real PDP. */
import { type BenchPdp, RESOURCE } from '../bench/sidecar/pdp.ts'
import { startProcess } from '../sidecar/support/process.ts'
import type { Server } from './servers.ts'

export type Gate = {
  readonly url: string
  readonly port: number
  readonly pid: number
  stop(): Promise<void>
}

const MANY = 100_000
/** Everything comes from one address and one subject here. */
const LIMITS = Object.fromEntries(
  `requests_max client_requests_max subject_requests_max route_requests_max connections_max client_connections_max
  upstream_connections_max decisions_max waiting_max`
    .split(/\s+/)
    .map((name) => [name, MANY]),
)

/** `tools`: with their rules. `route`: more members of the route. `routes`: more routes. */
export async function openGate(
  { pdp, server }: { readonly pdp: BenchPdp; readonly server: Pick<Server, 'port'> },
  { tools, route = {}, routes = {} }: { readonly tools: object; readonly route?: object; readonly routes?: object },
): Promise<Gate> {
  const routeFile = JSON.stringify({
    portcullis: 'v1',
    resource: RESOURCE,
    hosts: ['127.0.0.1', 'localhost'],
    issuers: [{ issuer: pdp.issuer }],
    upstream: `http://127.0.0.1:${server.port}`,
    pdp: { address: pdp.grpcAddress, insecure: true },
    limits: { ...LIMITS, pdp_ms: 5_000, waiting_ms: 10_000 },
    routes: { 'MCP /mcp': { tools, ...route }, ...routes },
  })
  const { port, pid, stop } = await startProcess({ routeFile })
  return { url: `http://127.0.0.1:${port}/mcp`, port, pid, stop }
}

/** Writes or deletes a relationship of the service `bench`. */
export const relate = (pdp: BenchPdp, change: 'write' | 'delete', grants: readonly string[]): Promise<void> =>
  pdp.manage('POST', '/v1/organizations/acme/relationships', { [change]: grants.map((one) => `${one}@service:bench`) })
