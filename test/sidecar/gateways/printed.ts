/** Printed configurations, for the tests of what reads them. */
import {
  type Door,
  type GatewayName,
  type GatewayPlaces,
  gatewayConfig,
} from '../../../sidecar/gateways/gateway-config.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'

const ROUTES = `portcullis: v1
resource: https://app.example.com
issuers: [{issuer: https://id.example.com}]
upstream: http://127.0.0.1:3000
pdp: {address: "127.0.0.1:9090", insecure: true}
routes:
  GET /healthz: public
  GET /invoices/{id}: viewer invoice:{id}
`
export const UNIX = { path: '/run/portcullis/door.sock' }
const TCP = { host: '127.0.0.1', port: 15_081 }
const TLS = { clientCaFile: '/etc/portcullis/gateways.crt' }
export const PLACES: GatewayPlaces = {
  listen: { host: '0.0.0.0', port: 8080 },
  door: null,
  ca: '/etc/portcullis/ca.crt',
  cert: '/etc/portcullis/tls.crt',
  key: '/etc/portcullis/tls.key',
}
export const DOORS: { readonly [kind: string]: Omit<Door, 'profile'> } = {
  'a unix socket': { listen: UNIX, tls: null, secretFile: null },
  'a certificate': { listen: TCP, tls: TLS, secretFile: null },
  'a secret': { listen: TCP, tls: null, secretFile: '/etc/portcullis/door-secret' },
  'TLS and a secret': { listen: TCP, tls: { clientCaFile: null }, secretFile: '/etc/portcullis/door-secret' },
}

/** The configuration for `lines` of a route file besides the usual ones, and for this door. */
export function printed(
  gateway: GatewayName,
  options: {
    readonly lines?: string
    readonly door?: Omit<Door, 'profile'> | undefined
    readonly places?: GatewayPlaces
  } = {},
): { readonly name: string; readonly text: string }[] {
  const { file, issues } = parseRouteFile(`${ROUTES}${options.lines ?? ''}`)
  if (file === null) throw new Error(issues.map(({ message }) => message).join('\n'))
  const { door = DOORS['a certificate'], places = PLACES } = options
  const profile = gateway === 'envoy-gateway' ? 'gateway-api' : gateway
  const doors = door === undefined ? [] : [{ ...door, profile }]
  return [...gatewayConfig(gateway, { ...file, doors }, places)]
}
