import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { GATEWAYS, gatewayConfig, isGatewayName } from '../../../sidecar/gateways/gateway-config.ts'
import { exactNames, prefixes } from '../../../sidecar/http/cleared.ts'
import { IDENTITY_FIELDS } from '../../../sidecar/http/door-fields.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { DOORS, PLACES, printed, routeFile } from './printed.ts'

const NAMES = Object.keys(GATEWAYS).filter(isGatewayName)
const text = (...given: Parameters<typeof printed>): string =>
  printed(...given)
    .map((file) => file.text)
    .join('\n')
const BODY = '  POST /orders: editor order:{body.id}\n'
const NO_HEADERS = { strip: [], pass: [] }

describe('gateway-config', () => {
  test.each(NAMES)('prints a whole configuration for %s, YAML where the gateway reads YAML', (name) => {
    for (const file of printed(name)) {
      expect(file.text.length).toBeGreaterThan(100)
      if (!file.name.endsWith('.yaml')) continue
      for (const document of parseAllDocuments(file.text)) expect(document.errors).toEqual([])
    }
  })

  test.each(['nginx', 'traefik', 'caddy'] as const)('names every identity field for %s', (name) => {
    const config = text(name).toLowerCase()
    for (const field of IDENTITY_FIELDS) expect(config).toContain(field)
  })

  test('lets Envoy send raw fields, refuse when the door is away, and change no target', () => {
    const envoy = text('envoy')
    expect(envoy).toContain('encode_raw_headers: true')
    expect(envoy).toContain('failure_mode_allow: false')
    expect(envoy).toContain('path_with_escaped_slashes_action: REJECT_REQUEST')
    expect(envoy).not.toContain('with_request_body')
    expect(
      text('envoy', { lines: '  GET /files/{name}: {check: "viewer file:{name}", encoded_slash: keep}\n' }),
    ).toContain('path_with_escaped_slashes_action: KEEP_UNCHANGED')
  })

  test.each(['envoy', 'istio', 'gateway-api', 'envoy-gateway'] as const)(
    'lets %s send bodies only when its door takes them',
    (name) => {
      expect(text(name)).not.toContain('65536')
      expect(text(name, { lines: BODY })).toContain('65536')
      // No check reads a body, but the door looks into those of this route for another value of the query.
      const lines = '  POST /orders: "editor order:{query.id}"\n'
      expect(text(name, { lines })).not.toContain('65536')
      expect(text(name, { lines, door: `${DOORS['a certificate']}, body: true` })).toContain('65536')
    },
  )

  test('says in the configuration of nginx that it speaks no HTTP/2 to a service', () => {
    expect(text('nginx')).not.toContain('HTTP/1.1 to this service')
    const upstream = '{url: "http://127.0.0.1:3000", http2: true}'
    expect(text('nginx', { upstream })).toContain('# nginx speaks HTTP/1.1 to this service.')
  })

  test('names no address as a host of an HTTPRoute, which may only have names', () => {
    const top = 'hosts: [app.example.com, localhost, 127.0.0.1, "[::1]"]\n'
    for (const name of ['gateway-api', 'envoy-gateway'] as const)
      expect(text(name, { top })).toContain('hostnames:\n    - app.example.com\n  rules:')
  })

  test('lets Gateway API speak TLS to a service that does', () => {
    const https = { hostname: 'app.example.svc', wellKnownCACertificates: 'System' }
    for (const name of ['gateway-api', 'envoy-gateway'] as const) {
      const policies = (config: string): unknown[] =>
        parseAllDocuments(config)
          .map((document) => document.toJS())
          .filter(({ kind }) => kind === 'BackendTLSPolicy')
      expect(policies(text(name))).toHaveLength(1)
      expect(policies(text(name, { upstream: 'https://app.example.svc:8443' }))[1]).toMatchObject({
        metadata: { name: 'app', namespace: 'default' },
        spec: { targetRefs: [{ group: '', kind: 'Service', name: 'app' }], validation: https },
      })
    }
  })

  test('proves the gateway by the socket, its certificate or its secret, as the door demands', () => {
    for (const name of ['envoy', 'nginx', 'caddy'] as const) {
      const of = (kind: string) => text(name, { door: DOORS[kind] })
      expect(of('a unix socket')).toContain('/run/portcullis/door.sock')
      expect(of('a certificate')).toContain('/etc/portcullis/tls.key')
      expect(of('a secret')).toMatch(/door-secret|PORTCULLIS_CALLER_SECRET/)
      expect(of('TLS and a secret')).toContain('/etc/portcullis/ca.crt')
      expect(of('TLS and a secret')).not.toContain('/etc/portcullis/tls.key')
    }
  })

  test('passes the token on only when a route does', () => {
    expect(text('nginx')).toContain('proxy_set_header Authorization "";')
    expect(text('caddy')).toContain('header_up -Authorization')
    const lines = '  GET /me: {check: signed_in, forward_token: true}\n'
    expect(text('nginx', { lines })).toContain('proxy_set_header Authorization $portcullis_authorization;')
    expect(text('caddy', { lines })).toMatch(/copy_headers .*Authorization DPoP/)
  })

  test.each(['a unix socket', 'a secret', 'TLS and a secret'])('refuses Traefik a door with %s', (kind) => {
    expect(() => printed('traefik', { door: DOORS[kind] })).toThrow(/by its certificate only/)
  })

  test.each(NAMES)('refuses %s when the route file has no door for it', (name) => {
    const { file } = parseRouteFile(routeFile('', ''))
    if (file === null) throw new Error('the route file is wrong')
    expect(() => gatewayConfig(name, file, PLACES)).toThrow(/no door for/)
  })
})

describe('the fields of a client that a gateway takes away', () => {
  test.each(['nginx', 'traefik', 'caddy'] as const)('are in the configuration of %s', (name) => {
    const config = text(name).toLowerCase()
    for (const field of exactNames(NO_HEADERS)) {
      const covered =
        config.includes(field) || prefixes(NO_HEADERS).some((p) => field.startsWith(p) && config.includes(p))
      expect([field, covered || field === 'x-real-ip']).toEqual([field, true])
    }
  })

  test('keep what pass_headers names, and lose what strip_headers names', () => {
    const headers = { strip: ['x-acme-*', 'x-tenant'], pass: ['cf-ray'] }
    expect(exactNames(headers)).toContain('x-tenant')
    expect(exactNames(headers)).not.toContain('cf-ray')
    expect(prefixes(headers)).toContain('x-acme-')
    expect(prefixes(headers)).not.toContain('cf-')
  })
})
