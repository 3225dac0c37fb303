/** What `check` says today about the files that people brought from other proxies, and that were once refused without a way out. */
import { describe, expect, test } from 'vitest'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { fileWarnings } from '../../../sidecar/route-file/warnings.ts'
import { routeFile } from '../support/harness.ts'

const said = (routes: string, extra = '', change: (text: string) => string = (text) => text): string => {
  const text = routeFile(routes, { extra }).replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1')
  const { file, issues } = parseRouteFile(change(text))
  return (file === null ? issues.map(({ line, message }) => `error ${line}: ${message}`) : fileWarnings(file)).join(
    '\n',
  )
}
const issuers = (list: string) => (text: string) => text.replace(/issuers: .*/, `issuers: ${list}`)
const MEMBERS = 'GET /committees/{uid}/members/{m}: viewer committee:{uid}'
const SEATS = 'GET /committees/b2b-org/{uid}/seats: auditor b2b_org:{uid}'

describe('a file that was refused is valid', () => {
  test.each<[string, string, string?, ((text: string) => string)?]>([
    ['paths that overlap, and agree', `${MEMBERS}\nGET /committees/b2b-org/{uid}/members: viewer committee:b2b-org`],
    [
      'methods after a colon',
      'POST /v1/operations/{id}:cancel: editor op:{id}\nPOST /v1/operations/{id}:delete: owner op:{id}',
    ],
    ['a host for each customer', 'GET /a: viewer site:{request.host}', 'hosts: ["*.app.example.com"]'],
    ['a field of the application', 'GET /a: signed_in', 'identity_headers: {X-WEBAUTH-USER: {claims.email}}'],
    ['a signed field', 'GET /a: signed_in', 'assertion: {header: X-Jwt, audience: a, keys_file: k}'],
    ['pages of another origin', 'GET /a: signed_in', 'cors: {origins: ["https://spa.test"]}'],
    ['a probe by address', 'GET /a: signed_in', 'probe_paths: [/healthz]'],
    ['a path in the log', 'GET /a: signed_in', 'log: {path: full}'],
    ['a bound of one body', 'POST /a: {check: "viewer a:{body.id}", body_bytes_max: 1000000}'],
    ['a token of a page', 'GET /a: {check: signed_in, upgrade: [websocket], token_from: {subprotocol: true}}'],
    ['a balancer that forwards TCP', 'GET /a: signed_in', 'trusted_proxies: [10.0.0.1]\nproxy_protocol: true'],
    ['pages of every preview', 'GET /a: signed_in', 'cors: {origins: ["https://*.preview.example.com"]}'],
    ['a claim that is named by a URL', 'GET /a: {equals: {"claims.https://a.test/roles": admin}}'],
    ['true of a body', 'POST /a: {equals: {body.dry_run: true}}'],
    [
      'two audiences',
      'GET /a: signed_in',
      '',
      issuers('[{issuer: https://a.test, external: {subject_prefix: "p:", organizations: [a], audience: [old, new]}}]'),
    ],
    [
      'tokens of workloads',
      'GET /a: signed_in',
      '',
      issuers('[{issuer: https://a.test, external: {subject_prefix: "p:", organizations: [a], workloads: true}}]'),
    ],
  ])('%s', (_, routes, extra, change) => {
    expect(said(routes, extra, change)).toBe('')
  })
})

const EXTERNAL = '[{issuer: https://a.test, external: {subject_prefix: "p:", organizations: [a]}}]'
const CHECKS_ALLOW = 'checks only allow: say who may, by a relation with "but not" in its model'

describe('a file names the way out', () => {
  test.each<[string, string, string, string?, ((text: string) => string)?]>([
    ['paths that overlap', 'both match /committees/b2b-org/members/seats', `${MEMBERS}\n${SEATS}`],
    [
      'calls of MCP',
      'A route of the kind MCP',
      'POST /mcp: {any: [{equals: {body.method: tools/list}}, {all: [{equals: {body.method: tools/call}}, "caller tool:{body.params.name}"]}]}',
    ],
    ['two parameters of a segment', 'a segment has one parameter at most', 'GET /a/{x}-{y}: signed_in'],
    ['** in the middle', 'has ** before its end', 'GET /a/**/b: signed_in'],
    ['a public alternative', 'public must be the only check of a route', 'GET /a: {any: [public, signed_in]}'],
    [
      'a star within a host',
      'must be a host name without a port, or *. and one',
      'GET /a: signed_in',
      'hosts: ["a.*.test"]',
    ],
    ['preflights of the whole service', 'Set cors', 'GET /api/x: viewer doc:1\nOPTIONS /**: public'],
    ['credentials for everybody', 'name the origins', 'GET /a: signed_in', 'cors: {origins: ["*"], credentials: true}'],
    ['fields set as elsewhere', 'did you mean identity_headers?', 'GET /a: signed_in', 'set_headers: {X-User: a}'],
    ['a time-out as elsewhere', 'did you mean upstream_headers_ms?', 'GET /a: {check: signed_in, timeout: 30s}'],
    [
      'a field of the sidecar',
      'is set by the sidecar',
      'GET /a: signed_in',
      'identity_headers: {Authorization: {claims.a}}',
    ],
    [
      'a token in the query',
      'token_from has the unknown key "query"',
      'GET /a: {check: signed_in, token_from: {query: a}}',
    ],
    ['a body beyond the bound', 'from 1 to 8388608', 'POST /a: {check: signed_in, body_bytes_max: 9000000}'],
    [
      'a log without paths',
      'path must be one of full, without_query, omitted',
      'GET /a: signed_in',
      'log: {path: off}',
    ],
    ['one key of another list', 'did you mean issuers?', 'GET /a: {check: signed_in, issuer: https://as.test}'],
    [
      'a unix socket as an address',
      'upstream: {url: http://localhost, socket: /path}',
      'GET /a: signed_in',
      '',
      (text) => text.replace(/upstream: .*/, 'upstream: unix:/run/a.sock'),
    ],
    [
      'one issuer twice',
      'names an issuer twice',
      'GET /a: signed_in',
      '',
      issuers('[{issuer: https://a.test}, {issuer: https://a.test}]'),
    ],
    [
      'one provider of two names',
      'say so by renamed_from',
      'GET /a: signed_in',
      '',
      issuers(
        `[${['old', 'new'].map((name) => `{issuer: https://${name}.test, external: {subject_prefix: "p:", organizations: [a]}}`).join(', ')}]`,
      ),
    ],
    [
      'keys over plain http',
      'Name the public https address of the issuer, or give it TLS in the cluster',
      'GET /a: signed_in',
      '',
      issuers('[{issuer: https://a.test, jwks_uri: "http://keycloak.svc:8080/certs"}]'),
    ],
    ...[
      ['an issuer of the cluster', '{issuer: "http://keycloak:8080/realms/a"}'],
      ['an issuer by its address', '{issuer: "http://10.0.0.7"}'],
      ['an issuer on another computer', '{issuer: "http://host.docker.internal:8080"}'],
      ['a name that only looks like this computer', '{issuer: "http://localhost.evil.test"}'],
      [
        'an opaque token over plain http',
        '{issuer: https://a.test, introspection: {endpoint: "http://hydra-admin:4445/oauth2/introspect", client_id: a, client_secret_file: b}, external: {subject_prefix: "p:", organizations: [a]}}',
      ],
    ].map(([what = '', issuer = '']): [string, string, string, string, (text: string) => string] => [
      what,
      'Name the public https address of the issuer, or give it TLS in the cluster',
      'GET /a: signed_in',
      '',
      issuers(`[${issuer}]`),
    ]),
    [
      'a password in the URL of keys',
      'jwks_uri must have no name and password before its host',
      'GET /a: signed_in',
      '',
      issuers('[{issuer: https://a.test, jwks_uri: "https://u:p@a.test/keys"}]'),
    ],
    [
      'keys without a scheme',
      'jwks_uri must be an https URL (http only on loopback)',
      'GET /a: signed_in',
      '',
      issuers('[{issuer: https://a.test, jwks_uri: keycloak.internal/keys}]'),
    ],
    ['a part that denies', CHECKS_ALLOW, 'GET /a: {all: [{not: {equals: {claims.a: b}}}, signed_in]}'],
    ['a check that denies', CHECKS_ALLOW, 'GET /a: {not_equals: {claims.a: b}}'],
    ['who may not', CHECKS_ALLOW, 'GET /a: {check: signed_in, deny: {equals: {claims.a: b}}}'],
    ['a path of nobody', 'what has no route is refused', 'GET /a: deny'],
    ['a bypass', 'did you mean "public"?', 'GET /a: bypass'],
    ['two factors', 'did you mean {check: signed_in, step_up: {acr_values: [mfa]}}?', 'GET /a: two_factor'],
    [
      'several values',
      'write an equals for each, in any',
      'GET /a: {equals: {client.address: [10.0.0.0/8, 192.0.2.1]}}',
    ],
    ['a number of the query', 'must be a string: write "2"', 'GET /a: {equals: {query.v: 2}}'],
    ['an expression over a claim', 'there are no expressions', 'GET /a: {all: [{matches: {claims.sub: "a.*"}}]}'],
    ['one item of a claim', 'a character that it cannot have', 'GET /a: {equals: {"claims.aud[0]": a}}'],
    ['an expression in a path', 'a parameter is a name alone, {id}', 'GET /a/{id:[0-9]+}: signed_in'],
    ['a typed parameter', 'a parameter is a name alone, {id}', 'GET /a/<int:id>: signed_in'],
    ['any name in a path', 'a parameter is a name alone, {id}', 'GET /a/<.*>: signed_in'],
    ['a host in another script', 'in DNS it is xn--bcher-kva.example', 'GET /a: signed_in', 'hosts: [bücher.example]'],
    ['methods as elsewhere', 'the method stands before the path', 'GET /a: {check: signed_in, methods: [POST]}'],
    [
      'methods of pages',
      'the methods that have routes',
      'GET /a: signed_in',
      'cors: {origins: ["https://a.test"], allow_methods: [GET]}',
    ],
    [
      'a certificate that nobody verifies',
      'ca_file names the authority',
      'GET /a: {check: signed_in, upstream: {url: "https://a.test", tls_skip_verify: true}}',
    ],
    ...['https://*', 'https://*.com', 'https://a.*.test', 'https://*a.b.test', 'https://*.*.test', '*.a.b.test'].map(
      (origin): [string, string, string, string] => [
        `the origin ${origin}`,
        'is not an origin',
        'GET /a: signed_in',
        `cors: {origins: ["${origin}"]}`,
      ],
    ),
    ...['cors: {origins: ["https://*.vercel.app"]}', 'cors: {origins: ["https://*.co.uk:8443"]}'].map(
      (extra): [string, string, string, string] => [
        `a whole domain, ${extra}`,
        'is every name of this domain',
        'GET /a: signed_in',
        extra,
      ],
    ),
    [
      'a whole domain for WebSockets',
      'such as https://*.app.example.com',
      'GET /a: {check: signed_in, upgrade: [websocket], origins: ["https://*.example.com"]}',
    ],
    [
      'a subject of another provider',
      'begins with ~p:: compare ~p:repo:a/b',
      'GET /a: {equals: {claims.sub: "repo:a/b"}}',
      '',
      issuers(EXTERNAL),
    ],
    [
      'what is of a subject of another provider',
      'compare another claim with {id}',
      'GET /a/{id}: {equals: {claims.sub: "{id}"}}',
      '',
      issuers(EXTERNAL),
    ],
    ['a star in a claim', 'starts_with and ends_with compare a part', 'GET /a: {equals: {claims.email: "*@a.test"}}'],
    [
      'a comparison the other way round',
      'the claim stands first: {equals: {claims.sub: "{id}"}}',
      'GET /a/{id}: {equals: {id: "{claims.sub}"}}',
    ],
    [
      'two values of the client',
      'only a claim is compared with a value of the request',
      'GET /a/{id}: {equals: {id: "{query.id}"}}',
    ],
    ['two claims', 'claims.a is compared with a value of the request', 'GET /a: {equals: {claims.a: "{claims.b}"}}'],
    [
      'a part that the client names',
      'starts_with compares with a text alone',
      'GET /a/{id}: {starts_with: {claims.a: "{id}"}}',
    ],
    [
      'a value that the path does not have',
      '{id} is not a parameter of the path',
      'GET /a: {equals: {claims.a: "{id}"}}',
    ],
    [
      'a value without quotes',
      'put the value for claims.a in quotes: "{id}"',
      'GET /a/{id}: {equals: {claims.a: {id}}}',
    ],
    ...['{*path}', '{path*}', '{path...}', '{proxy+}', ':path*'].map((rest): [string, string, string] => [
      `the rest of a path as ${rest}`,
      'the rest of a path is written ** at its end',
      `GET /a/${rest}: signed_in`,
    ]),
    ...['~/a/[0-9]+', '^/a/.*$', '*/info'].map((path): [string, string, string] => [
      `the path ${path}`,
      'there are no expressions in paths',
      `GET ${path}: signed_in`,
    ]),
    ...[
      ['permitAll', 'did you mean "public"?'],
      ['required', 'did you mean "signed_in"?'],
      ['optional', 'did you mean {public: with_identity}?'],
      ['denyAll', 'what has no route is refused'],
      ['scope a b', 'write {all: [scope a, scope b]}'],
      ['role admin', '{equals: {claims.roles: admin}}'],
      ['group admin', '{equals: {claims.groups: admin}}'],
      ['{check: signed_in, groups: [a]}', 'a check compares claims'],
      ['{scopes: [a]}', 'a check is scope NAME'],
      ['{check: signed_in, ip: 10.0.0.0/8}', '{equals: {client.address: 10.0.0.0/8}}'],
      ['{check: signed_in, allow_missing: true}', 'did you mean public: with_identity?'],
      ['{check: signed_in, rate_limit: 5}', 'of a gateway in front'],
      ['{anyOf: [signed_in, scope a]}', 'did you mean any?'],
      ['{allOf: [signed_in, scope a]}', 'did you mean all?'],
    ].map(([check = '', says = '']): [string, string, string] => [`the check ${check}`, says, `GET /a: ${check}`]),
    ['the word ANY', 'did you mean "*"?', '"ANY /a": signed_in'],
    [
      'a host that a wildcard takes',
      'a.b.test has the routes of *.b.test alone, and none without a host such as GET /a',
      'GET /a: signed_in\nGET {tenant}.b.test/a: signed_in',
      'hosts: [a.b.test]',
    ],
    ['a nesting without end', 'nested more than 100 levels deep', `GET /a: ${'{all: ['.repeat(10_000)}`],
  ])('with %s', (_, says, routes, extra, change) => {
    expect(said(routes, extra, change)).toContain(says)
  })
})
