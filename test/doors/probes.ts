/** `probe-gateway` against real gateways: those with printed configurations hold, and each planted mistake is found. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { startOperations } from '../../pdp/shared/process/admin-listener.ts'
import { formatAddress } from '../../pdp/shared/process/listen.ts'
import { loadFile, routeFile } from '../sidecar/support/harness.ts'
import { createIssuer, issuerFetch } from '../support/peers/issuer.ts'
import { tuples } from '../support/peers/scripted-pdp.ts'
import { runCli } from '../support/peers/sidecar-cli.ts'
import type { Binaries } from './binaries.ts'
import type { GatewayName } from './gateways.ts'
import { openWorld, type Way } from './world.ts'

/** `found`: by `probe-gateway`, in one of its two runs. The others are sentences of docs/doors.md. */
type Mistake = readonly [what: string, find: string | RegExp, replace: string, found?: 'not found']

const ROUTES = `GET /docs/{id}: viewer doc:{id}
GET /admin/**: admin doc:all
GET /public/**: public`

const ROUTE = /- match:\n +prefix: \//
const PER_ROUTE = 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute'
const off = (match: string): string =>
  `- match: ${match}
                          typed_per_filter_config: {envoy.filters.http.ext_authz: {"@type": ${PER_ROUTE}, disabled: true}}
                          route: {cluster: service}
                        $&`
const filter = (settings: string): Mistake => [settings, 'clear_route_cache: false', settings]
const ENVOY: readonly Mistake[] = [
  ['a route that is off', ROUTE, off('{prefix: /docs/}')],
  ['a path in other letters that is off', ROUTE, off('{safe_regex: {regex: "/(?i)DOCS/.*"}}')],
  ['a path with a suffix that is off', ROUTE, off('{safe_regex: {regex: ".*[.]json"}}')],
  [
    'a route that is off by a field of the client',
    ROUTE,
    off('{prefix: /, headers: [{name: x-http-method-override, present_match: true}]}'),
  ],
  ['no filter', /- name: envoy.filters.http.ext_authz[\s\S]*?(?=- name: envoy.filters.http.router)/, ''],
  ['an open failure', 'failure_mode_allow: false', 'failure_mode_allow: true'],
  filter('filter_enabled: {default_value: {numerator: 50}}'),
  filter('filter_enabled_metadata: {filter: a, path: [{key: a}], value: {bool_match: true}}'),
  ['a good status on failure', 'code: ServiceUnavailable', 'code: OK'],
  ['some fields for the door', 'clear_route_cache: false', 'allowed_headers: {patterns: [{exact: host}]}'],
  [
    'refusals that look like a success',
    'http_filters:',
    'local_reply_config: {mappers: [{filter: {status_code_filter: {comparison: {op: GE, value: {default_value: 400, runtime_key: a}}}}, status_code: 200}]}\n                http_filters:',
  ],
  ['a door without the secret', /initial_metadata:[\s\S]*?(?=\n +failure_mode)/, 'timeout: 2s'],
  ['merged slashes', 'merge_slashes: false', 'merge_slashes: true', 'not found'],
  [
    'a rewritten path',
    'cluster: service',
    'cluster: service\n                            prefix_rewrite: /admin',
    'not found',
  ],
]
const SERVICE = 'proxy_pass http://SERVICE;'
const before = (line: string): readonly [string, string] => ['location / {', `${line}\n    location / {`]
const NGINX: readonly Mistake[] = [
  ['a location that asks nobody', ...before(`location /docs/ { ${SERVICE} }`)],
  ['a location for a suffix', ...before(`location ~ \\.json$ { ${SERVICE} }`)],
  ['a location in other letters', ...before(`location ~* ^/DOCS/ { auth_request off; ${SERVICE} }`)],
  ['files without a question', ...before('location /docs/ { root /srv; }')],
  [
    'a nested location',
    'auth_request /',
    `location ~ ^/docs/[a-z] { auth_request off; ${SERVICE} }\n        auth_request /`,
  ],
  ['satisfy any', 'auth_request /', 'satisfy any; allow all;\n        auth_request /'],
  [
    'a condition of the client',
    ...before(`if ($http_x_original_url) { rewrite ^ /open last; }\n    location /open { ${SERVICE} }`),
  ],
  ['an answer of nginx itself', 'internal;', 'internal; return 204;'],
  ['a public path by $uri', ...before(`location /public/ { ${SERVICE} }`)],
  ['a cleaned target for the door', 'X-Original-Uri $request_uri', 'X-Original-Uri $uri', 'not found'],
  [
    'a target that the client names',
    /proxy_set_header X-Original-Uri .*/,
    'proxy_set_header X-Original-Uri $http_x_original_uri;',
  ],
  ['a method that is fixed', 'X-Original-Method $request_method', 'X-Original-Method OPTIONS'],
  [
    'a failure that becomes a success',
    'internal;',
    'internal; proxy_intercept_errors on; error_page 500 502 504 =204 /ok;',
  ],
  [
    'the same beside the page of the door',
    /(error_page 403 = [^;]+;)([\s\S]*)\}\s*$/,
    `$1 error_page 500 = /ok;$2    location = /ok { ${SERVICE} }\n}\n`,
  ],
  ['no secret and no socket of the door', 'server unix:', 'server 127.0.0.1:1; # unix:'],
  ['a path in proxy_pass', /(proxy_pass http:\/\/127\.0\.0\.1:\d+);/, '$1/;', 'not found'],
  ['a Host of the client', 'proxy_set_header Host $http_host;', 'proxy_set_header Host $http_x_host;', 'not found'],
  [
    'an identity of the client',
    /proxy_set_header X-Auth-Subject .*;/,
    'proxy_set_header X-Auth-Subject $http_x_auth_subject;',
    'not found',
  ],
  ['underscores', 'underscores_in_headers off;', 'underscores_in_headers on;', 'not found'],
]
const ROUTER = '    service:\n      entryPoints'
const open = (rule: string): string =>
  `    open: {entryPoints: [web], rule: "${rule}", priority: 1000, service: service}\n${ROUTER}`
const TRAEFIK: readonly Mistake[] = [
  ['a router that asks nobody', ROUTER, open('PathPrefix(`/docs/`)')],
  ['a router for a suffix', ROUTER, open('PathRegexp(`[.]json$`)')],
  ['a router by a field of the client', ROUTER, open('HeaderRegexp(`X-Original-Url`, `.`)')],
  ['no middleware', /middlewares:\n +- portcullis\n/, ''],
  ['fields that the client may set', 'trustForwardHeader: false', 'trustForwardHeader: true'],
  ['another path of the door', '/authorize', '/auth'],
  [
    'a door that is not verified',
    'trustForwardHeader',
    'maxResponseBodySize: 1000000\n        trustForwardHeader',
    'not found',
  ],
]
const CADDY: readonly Mistake[] = [
  ['a matcher of a path', 'forward_auth ', 'forward_auth /docs/* '],
  ['a service before the question', '\t\tforward_auth ', '\t\treverse_proxy /docs/* SERVICE\n\t\tforward_auth '],
  ['files before the question', '\t\tforward_auth ', '\t\tfile_server /docs/*\n\t\tforward_auth '],
  [
    'a refusal that is handled',
    'uri /authorize',
    'uri /authorize\n\t\t\t@no status 401 403\n\t\t\thandle_response @no {\n\t\t\t\treverse_proxy SERVICE\n\t\t\t}',
  ],
  ['errors that the service answers', '\troute {', '\thandle_errors {\n\t\treverse_proxy SERVICE\n\t}\n\troute {'],
  ['an order that puts the service first', 'uri /authorize', 'uri /authorize', 'not found'],
]
const MISTAKES: { readonly [name in GatewayName]: readonly Mistake[] } = {
  envoy: ENVOY,
  istio: ENVOY.slice(0, 1),
  nginx: NGINX,
  traefik: TRAEFIK,
  caddy: CADDY.slice(0, -1),
}

type Ends = { readonly right: number; readonly wrong: number }

/** How many runs of the command ended as they should, and how many did not. `short`: without mistakes, and with the first. */
export async function probeGateways(binaries: Binaries, { short }: { readonly short: boolean }): Promise<Ends> {
  const rounds = short ? 1 : Math.max(...Object.values(MISTAKES).map(({ length }) => length))
  const ends: boolean[] = []
  for (let round = -1; round < rounds; round += 1) ends.push(...(await playRound(round, binaries)))
  return { right: ends.filter((end) => end).length, wrong: ends.filter((end) => !end).length }
}

/** `round`: of the mistakes; -1: none is made. */
async function playRound(round: number, binaries: Binaries): Promise<readonly boolean[]> {
  const issuer = await createIssuer({ issuer: 'https://as.test', audience: 'https://app.test', clock: Date.now })
  const source = routeFile(ROUTES, { extra: 'hosts: [app.test]' })
  const text = source.replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1')
  const mistakeOf = (name: string): Mistake | undefined => MISTAKES[name as GatewayName]?.[round]
  const edited = new Set<string>()
  const world = await openWorld(loadFile(text), {
    script: tuples([]),
    fetch: issuerFetch([issuer]),
    binaries,
    edit(name, printed) {
      const mistake = mistakeOf(name)
      if (mistake === undefined) return printed
      const [, find, replace] = mistake
      const service = /(?:proxy_pass http:\/\/|reverse_proxy )(127\.0\.0\.1:\d+)/.exec(printed)?.[1] ?? ''
      const after = printed.replace(find, replace.replaceAll('SERVICE', service))
      if (after !== printed) edited.add(name)
      return after
    },
  })
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-probes-'))
  writeFileSync(join(folder, 'routes.yaml'), text)
  writeFileSync(join(folder, 'token'), await issuer.token({ scope: '' }))
  const ends: boolean[] = []
  try {
    for (const way of world.ways) {
      const mistake = mistakeOf(way.name)
      if (mistake === undefined && round >= 0) continue
      if (mistake !== undefined && !edited.has(way.name))
        throw new Error(`${way.name}: nothing was replaced: ${mistake[0]}`)
      // Made-up ids do not exist.
      way.upstream.handle = (_req, res) => res.writeHead(404).end('no such thing\n')
      ends.push(await endsRight(way, mistake ?? null, folder))
    }
  } finally {
    await world.close()
    rmSync(folder, { recursive: true })
  }
  return ends
}

async function endsRight({ name, port, sidecar }: Way, mistake: Mistake | null, folder: string): Promise<boolean> {
  const admin = await startOperations({
    listen: { host: '127.0.0.1', port: 0 },
    registry: new Registry(),
    probes: {},
    refusal: sidecar.refusal,
  })
  const options = [
    '--url',
    `http://127.0.0.1:${port}`,
    '--file',
    join(folder, 'routes.yaml'),
    '--token',
    join(folder, 'token'),
  ]
  const command = ['probe-gateway', ...options, '--admin', `http://${formatAddress(admin.address)}`]
  const first = await runCli(command)
  await admin.close()
  await sidecar.close()
  const second = await runCli([...command, '--door-stopped'])
  const found = first.status === 1 || second.status === 1
  const right = found === (mistake !== null && mistake[3] === undefined) && first.status + second.status <= 2
  const last = [first, second].map(({ stdout, stderr }) => (stdout + stderr).trim().split('\n').at(-1))
  console.log(
    `${right ? 'ok  ' : 'FAIL'} ${name}: ${mistake?.[0] ?? 'as it is printed'}: ${last.join(' / with the door stopped: ')}`,
  )
  if (!right) console.log((first.stdout + first.stderr + second.stdout + second.stderr).slice(0, 8_000))
  return right
}
