import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Ajv } from 'ajv'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { DEFAULT_LIMITS } from '../../../sidecar/route-file/default-limits.ts'
import {
  DPOP,
  EXPECT,
  LOG,
  ROUTE,
  ROUTE_FILE,
  routeFileSchema,
  STEP_UP,
  TEST,
} from '../../../sidecar/route-file/format.ts'
import { CLAIMS, EXTERNAL, INTROSPECTION, ISSUER } from '../../../sidecar/route-file/issuer-format.ts'
import { LIMIT_KEYS, LIMIT_MEMBERS } from '../../../sidecar/route-file/limits.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { PROVIDER, SIGN_IN } from '../../../sidecar/route-file/sign-in-format.ts'
import { CORS } from '../../../sidecar/route-file/words/cors.ts'
import { PDP, TLS, UPSTREAM } from '../../../sidecar/route-file/words/peer-format.ts'
import type { Member } from '../../../sidecar/route-file/words/schema.ts'
import { routeFile } from '../support/harness.ts'

const SCHEMA_FILE = fileURLToPath(new URL('../../../sidecar/route-file/route-file.schema.json', import.meta.url))
const schema: { properties: { limits: { properties: { [key: string]: object } } } } = JSON.parse(
  readFileSync(SCHEMA_FILE, 'utf8'),
)
const limits = schema.properties.limits.properties
const validate = new Ajv({ strict: true, strictRequired: false, strictTypes: false, allowUnionTypes: true }).compile(
  schema,
)
const file = (routes: string, extra = ''): string =>
  routeFile(routes, { extra }).replace('UPSTREAM', 'http://127.0.0.1:8080').replace('PDP', '127.0.0.1:9090')

const WHOLE_EXAMPLE = `portcullis: v1
resource: https://app.example.com
public_url: https://app.example.com
issuers: [{issuer: https://id.example.com}]
upstream: http://127.0.0.1:8080
pdp: {address: pdp.portcullis.svc:9090}
routes:
  GET /public/**: public
  GET /invoices/{id}: viewer invoice:{id}
  PUT /invoices/{id}: editor invoice:{id}
  POST /invoices: {all: ["creator organization:{body.org}", entitlement feature.invoicing]}
  GET /orgs/{org}/invoices/{id}: {all: ["active_member organization:{org}", "viewer invoice:{id}"]}
  POST /invoices/{id}/approve: {check: permission invoices:approve, step_up: {acr_values: [mfa], max_age: 300}}
  GET /feed/{id}: {check: "viewer feed:{id}", upgrade: [websocket], origins: [https://app.example.com]}
tests:
  - {request: GET /invoices/42, as: {sub: alice, org: acme}, expect: {route: "GET /invoices/{id}", asks: ["viewer invoice:42"]}}
`

// After a change to the table: `npm test -- test/sidecar/route-file/schema.test.ts -u` writes the file again.
test('the published schema is the table that the parser reads by', async () => {
  await expect(`${JSON.stringify(routeFileSchema(), null, 2)}\n`).toMatchFileSnapshot(SCHEMA_FILE)
})

test('each member of the format says what it means', () => {
  const issuers = [ISSUER, EXTERNAL, CLAIMS, INTROSPECTION]
  const tables = [
    ...issuers,
    SIGN_IN,
    PROVIDER,
    ROUTE_FILE,
    UPSTREAM,
    PDP,
    TLS,
    CORS,
    DPOP,
    LOG,
    ROUTE,
    STEP_UP,
    TEST,
    EXPECT,
    LIMIT_MEMBERS,
  ]
  for (const [name, { form }] of tables.flatMap((members) => Object.entries<Member>(members)))
    expect(form.description, name).toMatch(/^[\S\s]+[.]$/)
})

describe('the published schema and the parser both accept', () => {
  test.each([
    WHOLE_EXAMPLE,
    file('GET /a: public'),
    file('"* admin.app.test/**": admin system:main'),
    file('GET /a: {any: [scope a, {all: [scope b, {equals: {header.x-role: admin}}]}]}'),
    file('GET /a: {check: public, encoded_slash: keep, semicolon: keep, forward_token: true, mode: shadow}'),
    file('GET /a: {check: {all: [scope a]}, upgrade: [websocket]}'),
    file('GET /a: public', 'mode: shadow\nlog: {subject: hashed}\ndpop: {nonce: required}\nbody_bytes_max: 10'),
    file('GET /a: public', 'cors: {origins: ["https://a.test"], credentials: true, max_age: 1, preflight: pass}'),
    file('GET /a: {check: public, cors: {origins: ["*"], expose_headers: [X-A], allow_headers: [x-b]}}'),
    file('GET /a: public', 'identity_headers: {X-User: {claims.email}, X-Who: "a {claims.b}"}'),
    file('GET /a: public', 'trusted_proxies: [10.0.0.1]\nproxy_protocol: true'),
    file('GET /a: {check: signed_in, issuers: https://as.test, audience: [https://app.test], upstream_headers_ms: 10}'),
    file('GET /a: public').replace(
      /upstream: .*/,
      'upstream: {url: "https://a.test", socket: /run/a, server_name: b.test, host: "c.test:81"}',
    ),
    file('GET /a: {check: signed_in, upgrade: [websocket], token_from: {subprotocol: true, cookie: a}}'),
    file('GET /a: public', 'assertion: {header: X-A, audience: a, keys_file: k, claims: [email]}'),
    file('GET /a: public', 'tls: {cert_file: c.pem, key_file: k.pem, client_ca_file: a.pem}\nhosts: [a.test]'),
    file('GET /a: public').replace(/upstream: .*/, 'upstream: {url: https://up.test, ca_file: a.pem, http2: true}'),
    file('GET /a: public').replace(
      /pdp: .*/,
      'pdp: {addresses: ["a:1", "b:2"], token_file: t, cert_file: c, key_file: k}',
    ),
    file(
      'GET /a: public',
      'trusted_proxies: [10.0.0.0/8, "fd00::/8", 127.0.0.1]\nlimits: {requests_max: 5, pdp_ms: 100}',
    ),
    file('GET /a: public').replace(/upstream: .*/, 'upstream: {url: http://a.test, connections: per_client}'),
    file('GET /a: public').replace(/upstream: .*/, 'upstream: {url: http://a.test, reuse_after_body: true}'),
    file('GET /a: public').replace(
      'https://as.test}',
      'https://as.test, external: {subject_prefix: "idp:", organizations: [acme], typ: JWT, claims: {client: azp, organization: tid}, organization_values: {t1: acme}, required_claims: {ver: "2.0"}}, algorithms: [ES256]}',
    ),
    file('GET /a: public').replace(
      'https://as.test}',
      'https://as.test, external: {subject_prefix: "idp:", organizations: [acme]}, introspection: {endpoint: https://as.test/i, client_id: a, client_secret_file: s}}',
    ),
    file('GET /a: public').replace(
      'https://as.test}',
      'https://as.test, external: {subject_prefix: "idp:", organizations: [acme], audience: account, claims: {groups: groups, roles: realm_access.roles, subject: oid}}}',
    ),
    file('GET /me: signed_in\nGET /a: {all: [signed_in, scope a]}'),
    file(
      'GET /a: {check: signed_in, sign_in: false}',
      'sign_in: {keys_file: k, providers: [{issuer: https://as.test, client_id: web}]}',
    ),
    file(
      'GET /a: signed_in',
      'sign_in: {keys_file: k, session_max: 60, idle_max: 60, pages: {ask: Ask Ann., support: "mailto:a@acme.test", name: Acme, color: "#7a1fa2", logo: https://acme.test/a, terms: https://acme.test/t, privacy: https://acme.test/p}, providers: [{issuer: https://as.test, client_id: web, client_secret_file: s, name: as, label: As, scope: openid email, parameters: {audience: a}}]}',
    ),
  ])('%#', (source) => {
    expect(parseRouteFile(source).issues).toEqual([])
    expect(validate(parse(source)), JSON.stringify(validate.errors)).toBe(true)
  })
})

test.each(Object.entries(LIMIT_KEYS))(
  'the schema says of the limit %s what the parser does',
  (key, { name, min, max }) => {
    expect(limits[key]).toEqual({
      type: 'integer',
      minimum: min,
      maximum: max,
      default: DEFAULT_LIMITS[name],
      description: expect.stringMatching(name.endsWith('Ms') ? /Milliseconds/ : /./),
    })
    for (const [value, issues] of [
      [min, 0],
      [max, 0],
      [min - 1, 1],
      [max + 1, 1],
    ] as const) {
      const source = file('GET /a: public', `limits: {${key}: ${value}}`)
      expect([parseRouteFile(source).issues.length, validate(parse(source))]).toEqual([issues, issues === 0])
      if (issues === 0) expect(parseRouteFile(source).file?.limits).toEqual({ [name]: value })
    }
  },
)

describe('the published schema and the parser both refuse', () => {
  test.each([
    file('GET /a: public').replace('https://as.test}', 'https://as.test, external: true}'),
    file('GET /a: public').replace('https://as.test}', 'https://as.test, external: {organizations: [acme]}}'),
    file('GET /a: public').replace('https://as.test}', 'https://as.test, external: {subject_prefix: "idp:"}}'),
    file('GET /a: public').replace(
      'https://as.test}',
      'https://as.test, external: {subject_prefix: "idp:", organizations: [acme], typ: jwt}}',
    ),
    file('GET /a: public').replace(
      'https://as.test}',
      'https://as.test, external: {subject_prefix: "idp:", organizations: [acme], claims: {sub: x}}}',
    ),
    file('GET /a: public').replace(
      'https://as.test}',
      'https://as.test, external: {subject_prefix: "idp:", organizations: [acme], claims: {client: 5}}}',
    ),
    file('GET /a: public').replace(
      'https://as.test}',
      'https://as.test, external: {subject_prefix: "idp:", organizations: [acme], required_claims: {}}}',
    ),
    file('GET /a: public').replace(
      'https://as.test}',
      'https://as.test, external: {subject_prefix: "idp:", organizations: ["*"]}}',
    ),
    file('GET /a: public').replace(
      'https://as.test}',
      'https://as.test, external: {subject_prefix: "idp:", organizations: [acme]}, introspection: {endpoint: https://as.test/i, client_id: a}}',
    ),
    file('GET /a: public', 'limits: {request_max: 5}'),
    file('GET /a: public', 'limits: [5]'),
    file('GET /a: public', 'limits: {pdp_ms: 1.5}'),
    file('GET /a: public', 'limits: {pdp_ms: "100"}'),
    file('GET /a: public', 'trusted_proxies: []'),
    file('GET /a: public', 'trusted_proxies: 10.0.0.0/8'),
    file('GET /a: public', 'trusted_proxies: [ingress.test]'),
    file('GET /a: public').replace(/upstream: .*/, 'upstream: {url: http://a.test, connections: own}'),
    file('GET /a: public').replace(/upstream: .*/, 'upstream: {url: http://a.test, reuse_after_body: yes please}'),
    'portcullis: v1',
    '[]',
    file('GET /a: public').replace('v1', 'v2'),
    file('GET /a: public', 'relaton: x'),
    file('GET /a: public', 'mode: audit'),
    file('GET /a: public', 'tls: {cert_file: c.pem}'),
    file('GET /a: public', 'dpop: {nonce: yes please}'),
    file('GET /a: public', 'log: {subject: secret}'),
    file('GET /a: public', 'body_bytes_max: 0'),
    file('GET /a: public', 'hosts: []'),
    file('GET /a: public').replace(/pdp: .*/, 'pdp: {insecure: true}'),
    file('GET /a: public').replace(/pdp: .*/, 'pdp: {address: "a:1", addresses: ["b:2"]}'),
    file('GET /a: public').replace(/upstream: .*/, 'upstream: {http2: true}'),
    file('GET /a: public').replace('https://as.test}', 'https://as.test, algorithms: [none]}'),
    file('get /a: public'),
    file('/a: public'),
    file('GET a: public'),
    file('GET /a: viewer'),
    file('GET /a: {all: []}'),
    file('GET /a: {any: []}'),
    file('GET /a: {all: [public]}'),
    file('GET /a: {all: [scope a], any: [scope b]}'),
    file('GET /a: {equals: {}}'),
    file('GET /a: {check: scope a, mode: off}'),
    file('GET /a: {check: scope a, upgrade: [h2c]}'),
    file('GET /a: {check: scope a, step_up: {}}'),
    file('GET /a: {check: scope a, token_from: {}}'),
    file('GET /a: {check: scope a, token_from: {query: a}}'),
    file('GET /a: {check: scope a, step_up: {max_age: -1}}'),
    file('GET /a: {check: scope a, encoded_slash: yes}'),
    file('GET /a: {check: scope a, encodedslash: keep}'),
    file('GET /a: {encoded_slash: keep}'),
    file('GET /a: public').concat('tests:\n  - {request: GET /a}\n'),
    file('GET /a: public').concat('tests:\n  - {request: nothing, expect: {}}\n'),
  ])('%#', (source) => {
    expect(parseRouteFile(source).issues).not.toEqual([])
    expect(validate(parse(source))).toBe(false)
  })
})
