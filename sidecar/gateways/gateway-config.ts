/** The command `gateway-config`: prints a gateway's configuration that makes it ask the doors of a route file. */
import { isLoopback, type ListenAddress } from '../../pdp/shared/process/listen.ts'
import type { DoorProfile } from '../http/door-fields.ts'
import type { DoorEntry } from '../route-file/doors.ts'
import type { RouteFile } from '../route-file/route-file.ts'
import { servedHosts } from '../route-file/served-hosts.ts'
import { caddyConfig } from './config/caddy.ts'
import { envoyConfig } from './config/envoy.ts'
import { envoyGatewayConfig, gatewayApiConfig } from './config/gateway-api.ts'
import { istioConfig } from './config/istio.ts'
import { AUTHORIZER, authorizerHost } from './config/kubernetes.ts'
import { nginxConfig } from './config/nginx.ts'
import { traefikConfig } from './config/traefik.ts'
import type { ConfigFile, DoorAccess, GatewayPlan, HostAndPort } from './plan.ts'
import { PlanError } from './plan-error.ts'

export const GATEWAYS = {
  envoy: { profile: 'envoy', inCluster: false, print: envoyConfig },
  istio: { profile: 'istio', inCluster: true, print: istioConfig },
  'gateway-api': { profile: 'gateway-api', inCluster: true, print: gatewayApiConfig },
  'envoy-gateway': { profile: 'gateway-api', inCluster: true, print: envoyGatewayConfig },
  nginx: { profile: 'nginx', inCluster: false, print: nginxConfig },
  traefik: { profile: 'traefik', inCluster: false, print: traefikConfig },
  caddy: { profile: 'caddy', inCluster: false, print: caddyConfig },
} as const satisfies {
  readonly [name: string]: {
    readonly profile: DoorProfile
    /** True: the configuration names the chart's Service instead of the door's address in its Pod. */
    readonly inCluster: boolean
    print(plan: GatewayPlan): readonly ConfigFile[]
  }
}
export type GatewayName = keyof typeof GATEWAYS

export const isGatewayName = (text: string): text is GatewayName => Object.hasOwn(GATEWAYS, text)

/** Addresses and paths that the operator gives for the gateway. Paths are those that the gateway sees. */
export type GatewayPlaces = {
  readonly listen: HostAndPort
  /** The door's address for the gateway; null: the address in the route file. */
  readonly door: HostAndPort | null
  readonly ca: string
  readonly cert: string
  readonly key: string
}

/** Throws PlanError with a sentence for the operator. */
export function gatewayConfig(name: GatewayName, file: RouteFile, places: GatewayPlaces): readonly ConfigFile[] {
  const { profile, inCluster, print } = GATEWAYS[name]
  const door = file.doors.find((entry) => entry.profile === profile)
  if (door === undefined)
    throw new PlanError(`the route file has no door for ${name}: add {profile: ${profile}, listen: …} to doors`)
  return print({
    door: inCluster ? authorizer(places) : accessOf(door, places),
    listen: places.listen,
    service: serviceOf(file),
    hosts: servedHosts(file),
    bodyBytesMax: door.body
      ? Math.max(file.bodyBytesMax, ...file.routes.map((route) => route.bodyBytesMax ?? 0))
      : null,
    encodedSlash: file.routes.some(({ encodedSlash }) => encodedSlash),
    forwardToken: file.routes.some(({ forwardToken }) => forwardToken),
    headers: file.headers,
  })
}

function accessOf({ listen, tls, secretFile }: DoorEntry, places: GatewayPlaces): DoorAccess {
  if ('path' in listen) return { kind: 'unix', path: listen.path }
  const at = places.door ?? reached(listen)
  if (tls === null) {
    if (secretFile === null) throw new PlanError('the door authenticates nobody')
    return { kind: 'plain', at, secretFile }
  }
  const { ca, cert, key } = places
  return { kind: 'tls', at, ca, client: tls.clientCaFile === null ? null : { cert, key }, secretFile }
}

const authorizer = ({ ca, cert, key, door }: GatewayPlaces): DoorAccess => ({
  kind: 'tls',
  at: door ?? { host: authorizerHost, port: AUTHORIZER.port },
  ca,
  client: { cert, key },
  secretFile: null,
})

/** The address at which a gateway reaches the door: by default this machine, if the door listens on all addresses. */
const reached = ({ host, port }: ListenAddress): HostAndPort => ({
  host: host === '' || host === '::' || host === '0.0.0.0' || isLoopback(host) ? '127.0.0.1' : host,
  port,
})

function serviceOf({ upstream }: Pick<RouteFile, 'upstream'>): GatewayPlan['service'] {
  const { hostname, port, protocol } = new URL(upstream.origin)
  const tls = protocol === 'https:'
  return { host: hostname.replaceAll(/[[\]]/g, ''), port: Number(port || (tls ? 443 : 80)), tls, http2: upstream.http2 }
}
