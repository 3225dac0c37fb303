import { describe, expect, test } from 'vitest'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { loadFile, routeFile } from '../support/harness.ts'

const ready = (routes: string, extra?: string): string =>
  routeFile(routes, extra === undefined ? {} : { extra })
    .replace('UPSTREAM', 'http://127.0.0.1:8080')
    .replace('PDP', '127.0.0.1:9090')
const issues = (source: string): string[] =>
  parseRouteFile(source).issues.map(({ line, column, message }) => `${line}:${column} ${message}`)

test('the example of the documentation is read', () => {
  const file = loadFile(`portcullis: v1
resource: https://app.example.com        # required aud
public_url: https://app.example.com      # what DPoP htu names
issuers: [{issuer: https://id.example.com}]
upstream: http://127.0.0.1:8080
pdp: {address: pdp.portcullis.svc:9090}
routes:
  GET /public/**: public
  GET /invoices/{id}: viewer invoice:{id}
  PUT /invoices/{id}: editor invoice:{id}
  POST /invoices: {all: ["creator organization:{body.org}", entitlement feature.invoicing]}
  GET /orgs/{org}/invoices/{id}: {all: ["active_member organization:{org}", "viewer invoice:{id}"]}
  POST /invoices/{id}/approve: {check: permission invoices:approve}
tests:
  - {request: GET /invoices/42, as: {sub: alice, org: acme}, expect: {route: "GET /invoices/{id}", asks: ["viewer invoice:42"]}}
`)
  expect(file.routes.map(({ id }) => id)).toHaveLength(6)
  expect(file).toMatchObject({
    hosts: ['app.example.com'],
    issuers: [{ algorithms: ['RS256'] }],
    pdp: { insecure: false },
  })
})

test.each(['1\ne:\nos\no:', 't\ni:\n8]\nr:'])('what is no YAML in several ways says one of them: %j', (source) => {
  const { file, issues: found } = parseRouteFile(source)
  expect(file).toBe(null)
  expect(found).toHaveLength(1)
})

test.each([
  ['lists', '['.repeat(20_000)],
  ['closed lists', `routes: ${'['.repeat(20_000)}${']'.repeat(20_000)}`],
  ['maps', `routes: ${'{a: '.repeat(20_000)}1${'}'.repeat(20_000)}`],
  ['lists of dashes', `${'- '.repeat(20_000)}a`],
  ['keys of keys', '? '.repeat(20_000)],
  ['indented maps', Array.from({ length: 1_500 }, (_, at) => `${' '.repeat(at)}a:`).join('\n')],
])('%s nested without end are one mistake, in plain words', (_, source) => {
  expect(issues(source)).toEqual([
    expect.stringMatching(/^\d+:\d+ lists and maps are nested more than 100 levels deep$/),
  ])
})

test('a nesting that is read is judged as any other', () => {
  expect(issues(`routes: ${'['.repeat(90)}${']'.repeat(90)}`)).not.toEqual([expect.stringContaining('levels deep')])
})

test('a second document has its place', () => {
  expect(issues('a: 1\n---\nb: 2\n')).toEqual(['2:1 a second document begins here, but the file may hold only one'])
})

test('every mistake is told at once, with its place', () => {
  const source = `portcullis: v2
resource: app
issuers: [{issuer: http://id.example.com, algorithms: [none]}]
upstream: http://127.0.0.1:8080/path
pdp: {address: "pdp:9090", insecure: true}
relaton: x
routes:
  GET /a/:id: viewer invoice:{id}
  GET /b: viewer
  get /c: public
  GET /d: {all: []}
  GET /e: {check: "viewer invoice:{nope}", step_up: {max_age: 3}}
`
  expect(issues(source)).toEqual([
    '1:13 portcullis must be v1, the version of this format',
    '2:11 resource must be an absolute URI without a fragment',
    '3:20 issuer must be an https URL (http only on loopback) unless jwks_uri is set: over http, anybody on the way could give answers of their own. Name the public https address of the issuer, or give it TLS in the cluster and trust its authority (SSL_CERT_FILE, or authorities of the chart)',
    '3:56 none is not a supported algorithm; use one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519',
    '4:11 upstream must be an http or https URL without a path; the service gets paths below it with upstream: {url: http://127.0.0.1:8080, add_path: /path}',
    '5:38 insecure is allowed only when every address is loopback',
    '6:1 the route file has the unknown key "relaton"',
    '8:3 the path /a/:id has :id; a parameter is written {id}',
    '9:11 "viewer" is not "public", "signed_in", "<relation> <type>:<id>", "permission <key>", "entitlement <key>" or "scope <name>"',
    '10:3 "get /c" must be "METHOD /path" or "METHOD host/path": write GET',
    '11:12 all must have at least one check',
    '12:19 {nope} is not a parameter of the path, which has none',
  ])
})

test.each([
  ['mdoe: shadow', 'mode'],
  ['dpp: {nonce: off}', 'dpop'],
  ['limist: {}', 'limits'],
  ['strip_header: [x-a]', 'strip_headers'],
  ['pass_heders: [x-a]', 'pass_headers'],
])('suggests for %s the key that is nearest to it', (extra, key) => {
  expect(issues(ready('GET /a: public', extra))).toEqual([expect.stringMatching(new RegExp(`did you mean ${key}\\?$`))])
})

test.each(['url: x', 'level: info', 'port: 1'])('suggests nothing for %s, which is near to no key', (extra) => {
  expect(issues(ready('GET /a: public', extra)).join()).not.toContain('did you mean')
})

test.each([
  [
    'routes:\n  GET /a: public',
    'routes:\n\tGET /a: public',
    '8:1 the line is indented with a tab, but YAML needs spaces',
  ],
  [
    'routes:\n  GET /a: public',
    'routes:\n\tGET /a: public\n\tGET /b: public\n\tGET /c: public',
    '8:1 the line is indented with a tab, but YAML needs spaces; so are 2 more',
  ],
])('says one thing about tabs', (spaces, tabs, message) => {
  expect(issues(ready('GET /a: public').replace(spaces, tabs))).toEqual([message])
})

test.each([
  ['GET /a/{id}: {check: viewer doc:{id}, mode: shadow}', '"viewer doc:{id}"'],
  ['GET /a/{id}: {all: [viewer doc:{id}, scope x]}', 'put the check in quotes: "viewer doc:{id}"'],
  ['GET /a/{id}: {any: [scope x, viewer doc:{id}]}', 'put the check in quotes: "viewer doc:{id}"'],
  ['GET /a/{id}: viewer: doc', 'in quotes'],
  ['GET /a/{id}: @x', 'in quotes'],
])('says of %s that quotes are missing', (route, message) => {
  expect(issues(ready(route))).toEqual([expect.stringContaining(message)])
})

test('says one thing about one misspelt key', () => {
  const source = `portcullis: v1
resource: https://app.test
isuers: [{issuer: https://id.test}]
upstraem: http://127.0.0.1:1
pdp: {adress: "127.0.0.1:3", insecure: true}
routes:
  GET /b/{id}: {chek: "viewer a:{nope}"}
`
  expect(issues(source)).toEqual([
    '3:1 the route file has the unknown key "isuers"; did you mean issuers?',
    '4:1 the route file has the unknown key "upstraem"; did you mean upstream?',
    '5:7 pdp has the unknown key "adress"; did you mean address?',
    '7:17 a route has the unknown key "chek"; did you mean check?',
    '7:23 {nope} is not a parameter of the path, which has {id}',
  ])
})

test('names what is missing beside a key that is no misspelling of it', () => {
  const source = `portcullis: v1
resource: https://app.test
issuers: [{issuer: https://id.test}]
weather: fine
pdp: {colour: red}
routes: {GET /a: public}
`
  expect(issues(source)).toEqual([
    '1:1 the route file needs upstream',
    '4:1 the route file has the unknown key "weather"',
    '5:6 pdp needs either address or addresses',
    '5:7 pdp has the unknown key "colour"',
  ])
})

test.each([
  [ready('GET /a: public\nGET /a: public')],
  [ready('GET /a: public', 'mode: enforce\nmode: enforce')],
  [ready('GET /a: public').replace('[{issuer: https://as.test}]', 'https://as.test')],
  [ready('GET /a: [signed_in]')],
])('one mistake is told once: %#', (source) => {
  expect(issues(source)).toHaveLength(1)
})

describe('a mistake is', () => {
  test.each([
    ['', 'the route file is empty: it must be a map of keys and values'],
    ['# nothing yet', 'the route file is empty: it must be a map of keys and values'],
    ['text', 'the route file must be a map'],
    ['a: [', 'Flow sequence'],
    ['portcullis: v1', 'the route file needs resource'],
    ['resource: https://app.test', 'the route file needs portcullis: v1'],
    [ready('GET /a: public\nGET /a: public'), 'the key "GET /a" is written twice; the first one is in line'],
    [
      ready('GET /a: public').replace('issuers: [{issuer: https://as.test}]', 'issuers: []'),
      'issuers must have at least one item',
    ],
    [ready('GET /a: public').replace('insecure: true', 'insecure: yes please'), 'insecure must be true or false'],
    [ready('GET /a: public').replace('address: 127.0.0.1:9090', 'address: 127.0.0.1'), '"127.0.0.1" must be host:port'],
    [ready('GET /a: public').replace('address: 127.0.0.1:9090, ', ''), 'pdp needs either address or addresses'],
    [
      ready('GET /a: public', 'public_url: https://a.test/x?y'),
      'public_url must be an http or https URL with an optional path',
    ],
    [ready('GET /a: public', 'hosts: [a.test:80]'), '"a.test:80" must be a host name without a port'],
    [ready('GET /a: public', 'mode: audit'), 'mode must be enforce or shadow'],
    [ready('GET /a: public', 'tls: {cert_file: c.pem}'), 'tls needs key_file'],
    [ready('GET /a: public', 'tls: {cert_file: "", key_file: k.pem}'), 'cert_file must not be empty'],
    [ready('GET /a: public', 'dpop: {nonce: yes please}'), 'nonce must be required or off'],
    [ready('GET /a: public', 'log: {subject: secret}'), 'subject must be one of plain, hashed, omitted'],
    [
      ready('GET /a: public').replace('insecure: true', 'insecure: true, token_file: t'),
      'token_file cannot be combined with insecure',
    ],
    [
      ready('GET /a: public').replace('insecure: true', 'cert_file: c.pem'),
      'cert_file and key_file must be set together',
    ],
    [
      ready('GET /a: public').replace(/upstream: .*/, 'upstream: {url: http://127.0.0.1:1, ca_file: c.pem}'),
      'certificates can be used only with an https URL',
    ],
    [ready('GET /a: public').replace(/upstream: .*/, 'upstream: {http2: true}'), 'upstream needs url'],
    [ready('GET /a: public', 'body_bytes_max: 0'), 'body_bytes_max must be a whole number from 1 to'],
    [ready('GET /a: public', 'forward_tokn: true'), 'did you mean forward_token?'],
  ])('%#: %s', (source, message) => {
    expect(issues(source).join('\n')).toContain(message)
  })

  test.each([
    ['GET /a', 'routes must be a map'],
    ['GET a: public', 'must be "METHOD /path"'],
    ['/a: public', 'must be "METHOD /path"'],
    ['TRACE /a: public', 'TRACE cannot be forwarded'],
    ['GET /a//b: public', 'has an empty segment'],
    ['GET /a/../b: public', 'has a dot segment'],
    ['GET /a/**/b: public', 'has ** before its end'],
    ['GET /a/*: public', 'only ** as the last segment'],
    ['GET /a/{x}{id}: public', 'a segment has one parameter at most'],
    ['GET /{a}/{a}: public', 'names {a} twice'],
    ['GET /a%20b: public', 'write the character itself'],
    ['GET /a?b: public', 'a character that a path cannot have'],
    ['GET /a:', 'GET /a has no check'],
    ['GET /a: 7', 'a check must be a string'],
    ['GET /a: *nothing', 'a check is empty'],
    ['GET /a: {any: [*nothing]}', 'a check is empty'],
    ['GET /a: {all: [public]}', 'public must be the only check'],
    ['GET /a: {any: []}', 'any must have at least one check'],
    ['GET /a: {all: viewer}', 'all must be a list'],
    ['GET /a: {all: [scope a], any: [scope b]}', 'a map with exactly one of'],
    ['GET /a: {equals: {}}', 'equals must compare at least one value'],
    ['GET /a: {equals: {header.x-auth-role: admin}}', 'header.x-auth-role is removed from every request'],
    ['GET /a: {equals: {header.x_role: admin}}', 'is not a header name'],
    [
      'GET /a: {equals: {cookie.x: admin}}',
      'must be a path parameter, client.address, request.method, request.path or request.host, or start with',
    ],
    ['GET /a: viewer invoice', 'must be <type>:<id>'],
    ['GET /a: View#er invoice:1', 'is not a valid relation name'],
    ['GET /a: viewer I@n:1', 'is not a valid resource type'],
    ['GET /a: "viewer invoice:"', 'has no id'],
    ['GET /a: "viewer invoice:{query.a}{query.b}"', 'two adjacent placeholders'],
    ['GET /a: "viewer invoice:{query.a"', 'has { without }'],
    ['GET /a: "viewer invoice:a#b"', 'a character that an id cannot have'],
    ['GET /a: permission A', 'is not a valid permission key'],
    ['GET /a: entitlement A B', 'is not "public", "signed_in"'],
    ['GET /a: pubilc', '"pubilc" is not a check; did you mean "public"?'],
    ['GET /a: Public', '"Public" is not a check; did you mean "public"?'],
    ['GET /a: signedin', '"signedin" is not a check; did you mean "signed_in"?'],
    ['GET /a: {check: scope a, mode: off}', 'mode must be enforce or shadow'],
    ['GET /a: {check: scope a, upgrade: [h2c]}', 'upgrade must be websocket'],
    ['GET /a: {check: scope a, upgrade: []}', 'upgrade must have at least one item'],
    ['POST /a: {check: scope a, upgrade: [websocket]}', 'upgrade needs the method GET'],
    ['GET /a: {check: scope a, origins: ["https://a.test"]}', 'origins needs upgrade'],
    ['GET /a: {check: scope a, upgrade: [websocket], origins: [a.test]}', '"a.test" is not an origin'],
    ['GET /a: {check: scope a, upgrade: [websocket], origins: ["https://a.test/"]}', 'is not an origin'],
    ['GET /a: {check: scope a, upgrade: [websocket], origins: ["null"]}', 'is not an origin'],
    ['GET /a: {check: scope a, step_up: {}}', 'step_up needs acr_values, max_age or both'],
    ['GET /a: {check: scope a, step_up: mfa}', 'step_up must be a map'],
    ['GET /a: {check: scope a, step_up: {max_age: -1}}', 'max_age must be a whole number'],
    ['GET /a: {check: scope a, step_up: {acr_values: ["a b"]}}', '"a b" is not a valid acr value'],
    ['GET /a: {check: public, step_up: {max_age: 1}}', 'step_up cannot be used on a public route'],
    ['GET /a: {check: scope a, encoded_slash: yes}', 'encoded_slash must be keep'],
    ['GET /a: {check: scope a, encodedslash: keep}', 'did you mean encoded_slash?'],
    ['GET /a/{x}: public\nGET /a/{y}: scope a', 'is the same route as'],
  ])('%s', (routes, message) => {
    expect(issues(ready(routes)).join('\n')).toContain(message)
  })
})
