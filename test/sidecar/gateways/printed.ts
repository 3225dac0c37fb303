/** Printed configurations, for the tests of what reads them. */
import { type GatewayName, type GatewayPlaces, gatewayConfig } from '../../../sidecar/gateways/gateway-config.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'

const UPSTREAM = 'http://127.0.0.1:3000'

/** `doors` and `lines` are lines of the file: its doors, and more routes. */
export const routeFile = (doors: string, lines: string): string => `portcullis: v1
resource: https://app.example.com
issuers: [{issuer: https://id.example.com}]
upstream: ${UPSTREAM}
pdp: {address: "127.0.0.1:9090", insecure: true}
${doors}routes:
  GET /healthz: public
  GET /invoices/{id}: viewer invoice:{id}
${lines}`

export const PLACES: GatewayPlaces = {
  listen: { host: '0.0.0.0', port: 8080 },
  door: null,
  ca: '/etc/portcullis/ca.crt',
  cert: '/etc/portcullis/tls.crt',
  key: '/etc/portcullis/tls.key',
}
/** The door of a route file, after its profile. */
export const DOORS: { readonly [kind: string]: string } = {
  'a unix socket': 'listen: unix:/run/portcullis/door.sock',
  'a certificate': 'listen: "127.0.0.1:15081", tls: {cert_file: d.crt, key_file: d.key, client_ca_file: g.crt}',
  'a secret': 'listen: "127.0.0.1:15081", secret_file: /etc/portcullis/door-secret',
  'TLS and a secret':
    'listen: "127.0.0.1:15081", tls: {cert_file: d.crt, key_file: d.key}, secret_file: /etc/portcullis/door-secret',
}

type Options = {
  readonly lines?: string
  readonly door?: string | undefined
  readonly places?: GatewayPlaces
  /** Lines of the route file beside its doors. */
  readonly top?: string
  readonly upstream?: string
}

/** The configuration for `lines` of a route file besides the usual ones, and for this door. */
export function printed(
  gateway: GatewayName,
  options: Options = {},
): { readonly name: string; readonly text: string }[] {
  const { door = DOORS['a certificate'], places = PLACES, lines = '', top = '', upstream = UPSTREAM } = options
  const profile = gateway === 'envoy-gateway' ? 'gateway-api' : gateway
  const body = lines.includes('{body.') ? ', body: true' : ''
  const source = routeFile(`${top}doors: [{profile: ${profile}, ${door}${body}}]\n`, lines)
  const { file, issues } = parseRouteFile(source.replace(UPSTREAM, upstream))
  if (file === null) throw new Error(issues.map(({ message }) => message).join('\n'))
  return [...gatewayConfig(gateway, file, places)]
}
