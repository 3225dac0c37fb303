/** What stands in front of the services while grants are removed: two sidecars, a gateway with a door of one, and a third for gRPC. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import type { Binaries } from '../../doors/binaries.ts'
import { doorFor, type Gateway, startGateway } from '../../doors/gateways.ts'
import { startProcess } from '../../sidecar/support/process.ts'
import { freePort } from '../../support/free-port.ts'
import { type Nodes, RESOURCE } from '../nodes/nodes.ts'
import { startServices } from './services.ts'

export type Place = { readonly name: string; readonly port: number }
export type Fronts = {
  readonly places: readonly Place[]
  /** Of the sidecar in front of the service with event streams and WebSocket. */
  readonly port: number
  /** Of the sidecar in front of the gRPC service. */
  readonly grpcPort: number
  /** Sends a byte on every open stream. */
  tick(): void
  stop(): Promise<void>
}

const MANY = 100_000
/** Everything comes from one address and one subject here. */
const LIMITS = Object.fromEntries(
  `requests_max client_requests_max subject_requests_max route_requests_max websockets_max client_websockets_max
  connections_max client_connections_max upstream_connections_max decisions_max waiting_max`
    .split(/\s+/)
    .map((name) => [name, MANY]),
)
const INVOICE = 'viewer invoice:{id}'

export async function startFronts(nodes: Nodes, binaries: Binaries): Promise<Fronts> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-fronts-'))
  const services = await startServices()
  const door = binaries.nginx === null ? null : doorFor('nginx', { folder, port: await freePort() })
  const routeFile = (upstream: object | string, more: object): string =>
    JSON.stringify({
      portcullis: 'v1',
      resource: RESOURCE,
      issuers: [{ issuer: nodes.issuer }],
      upstream,
      pdp: { addresses: nodes.nodes.map(({ grpc }) => grpc), insecure: true },
      limits: { ...LIMITS, pdp_ms: 5_000, waiting_ms: 10_000 },
      ...more,
    })
  const plain = `http://127.0.0.1:${services.port}`
  const routes = { 'GET /invoices/{id}': INVOICE }
  const lasting = {
    ...routes,
    'GET /streams/{id}': INVOICE,
    'GET /sockets/{id}': { check: INVOICE, upgrade: ['websocket'] },
  }
  const listen = door !== null && 'path' in door.listen ? `unix:${door.listen.path}` : null
  const doors = listen === null ? {} : { doors: [{ profile: 'nginx', listen }] }
  const withDoor = routeFile(plain, { routes, ...doors })
  const first = await startProcess({ routeFile: routeFile(plain, { routes: lasting }) })
  const second = await startProcess({ routeFile: withDoor })
  const rpc = { url: `http://127.0.0.1:${services.grpcPort}`, http2: true }
  const third = await startProcess({ routeFile: routeFile(rpc, { routes: { 'POST /bench.Streams/{id}': INVOICE } }) })
  const gateway = door === null ? null : await nginxFor(withDoor, binaries)
  return {
    places: [
      { name: 'the first sidecar', port: first.port },
      { name: 'the second sidecar', port: second.port },
      ...(gateway === null ? [] : [{ name: 'nginx, which asks a door', port: gateway.port }]),
    ],
    port: first.port,
    grpcPort: third.port,
    tick: services.tick,
    async stop() {
      await gateway?.stop()
      for (const sidecar of [first, second, third]) await sidecar.stop()
      services.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function nginxFor(source: string, binaries: Binaries): Promise<Gateway> {
  const { file, issues } = parseRouteFile(source)
  if (file === null) throw new Error(issues.map(({ message }) => message).join('\n'))
  return startGateway('nginx', file, binaries)
}
