import { describe, expect, test } from 'vitest'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { openedRoutes } from '../../../sidecar/runtime/opened-routes.ts'
import { openedSettings } from '../../../sidecar/runtime/opened-settings.ts'
import { loadFile, routeFile } from '../support/harness.ts'

const routesOf = (text: string) =>
  loadFile(routeFile(text).replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:2')).routes
const opened = async (former: string, next: string): Promise<string[]> => {
  const found = await openedRoutes(routesOf(former), routesOf(next))
  return found.map(({ before, route, now }) => `${before} -> ${route}: ${now}`)
}

const GUARDED = 'GET /a/{id}: viewer a:{id}'

describe('a change of the routes opens', () => {
  test.each([
    ['a route that becomes public', GUARDED, 'GET /a/{id}: public', 'GET /a/{id}: public'],
    ['paths that a wider public route takes over', `${GUARDED}\nGET /**: public`, 'GET /**: public', 'GET /**: public'],
    ['paths of a new public route', 'GET /**: scope x', 'GET /**: scope x\nGET /a: public', 'GET /a: public'],
    ['paths that had no route', GUARDED, `${GUARDED}\nGET /b: public`, 'GET /b: public'],
    ['methods that had no route', GUARDED, `${GUARDED}\nPOST /a/{id}: public`, 'POST /a/{id}: public'],
    [
      'paths that had no route, and whose refusals are only counted',
      GUARDED,
      `${GUARDED}\nGET /b: {check: "viewer a:b", mode: shadow}`,
      'GET /b: shadow',
    ],
    [
      'a method that a public one takes over',
      `${GUARDED}\n"* /a/{id}": public`,
      '"* /a/{id}": public',
      '* /a/{id}: public',
    ],
    [
      'a route whose refusals are only counted',
      GUARDED,
      'GET /a/{id}: {check: "viewer a:{id}", mode: shadow}',
      'GET /a/{id}: shadow',
    ],
    [
      'paths that a route which is gone shared with a new public one, whose others were public before',
      'GET /a/b/{y}: viewer a:1\nGET /a/**: public',
      'GET /a/{x}/c: public\nGET /a/**: viewer a:1',
      'GET /a/{x}/c: public',
    ],
    [
      'a route that loses one of its checks',
      'GET /a/{id}: {all: ["viewer a:{id}", scope x]}',
      GUARDED,
      'GET /a/{id}: weaker',
    ],
    [
      'a route that gets another way in',
      GUARDED,
      'GET /a/{id}: {any: ["viewer a:{id}", scope x]}',
      'GET /a/{id}: weaker',
    ],
    [
      'all that becomes any',
      'GET /a/{id}: {all: ["viewer a:{id}", scope x]}',
      'GET /a/{id}: {any: ["viewer a:{id}", scope x]}',
      'GET /a/{id}: weaker',
    ],
    [
      'a route that needs no second factor any more',
      'GET /a/{id}: {check: "viewer a:{id}", step_up: {acr_values: [mfa]}}',
      GUARDED,
      'GET /a/{id}: weaker',
    ],
    [
      'a route that takes older sign-ins',
      'GET /a/{id}: {check: "viewer a:{id}", step_up: {max_age: 60}}',
      'GET /a/{id}: {check: "viewer a:{id}", step_up: {max_age: 600}}',
      'GET /a/{id}: weaker',
    ],
    ['a check in place of another', GUARDED, 'GET /a/{id}: editor a:{id}', 'GET /a/{id}: other'],
    ['another object', GUARDED, 'GET /a/{id}: viewer a:1', 'GET /a/{id}: other'],
    [
      'one of two ways in that is another one',
      'GET /a/{id}: {any: ["viewer a:{id}", scope x]}',
      'GET /a/{id}: {any: ["viewer a:{id}", scope y]}',
      'GET /a/{id}: other',
    ],
    [
      'a check that is told something else',
      'GET /a/{id}: {check: "viewer a:{id}", context: {ip: {client.address}}}',
      'GET /a/{id}: {check: "viewer a:{id}", context: {ip: "10.0.0.1"}}',
      'GET /a/{id}: other',
    ],
    ['bodies that are not read', GUARDED, 'GET /a/{id}: {check: "viewer a:{id}", body: keep}', 'GET /a/{id}: allows'],
    ['queries that are kept', GUARDED, 'GET /a/{id}: {check: "viewer a:{id}", query: keep}', 'GET /a/{id}: allows'],
    [
      'tokens that the service gets',
      GUARDED,
      'GET /a/{id}: {check: "viewer a:{id}", forward_token: true}',
      'GET /a/{id}: allows',
    ],
    ['WebSocket', GUARDED, 'GET /a/{id}: {check: "viewer a:{id}", upgrade: [websocket]}', 'GET /a/{id}: allows'],
    [
      'tokens in a cookie',
      GUARDED,
      'GET /a/{id}: {check: "viewer a:{id}", token_from: {cookie: a}}',
      'GET /a/{id}: allows',
    ],
  ])('%s', async (_name, former, next, expected) => {
    const [one, ...others] = await opened(former, next)
    expect([one?.split(' -> ')[1], others]).toEqual([expected, []])
  })

  test.each([
    ['that stays as it is', GUARDED, GUARDED],
    [
      'that is written in another order',
      'GET /a/{id}: {all: ["viewer a:{id}", scope x]}',
      'GET /a/{id}: {all: [scope x, "viewer a:{id}"]}',
    ],
    ['that becomes stricter', GUARDED, 'GET /a/{id}: {all: ["viewer a:{id}", scope x]}'],
    ['whose parameter has another name', GUARDED, 'GET /a/{key}: viewer a:{key}'],
    ['that takes fewer ways in', 'GET /a/{id}: {any: ["viewer a:{id}", scope x]}', GUARDED],
    ['that reads bodies again', 'GET /a/{id}: {check: "viewer a:{id}", body: keep}', GUARDED],
    ['that was public', 'GET /a/{id}: public', 'GET /a/{id}: public\nGET /a/1: public'],
    ['that is gone', `${GUARDED}\nGET /b: public`, 'GET /b: public'],
    ['that was only counted', 'GET /a/{id}: {check: "viewer a:{id}", mode: shadow}', 'GET /a/{id}: public'],
    ['that a stricter one takes over', 'GET /a/{id}: public', GUARDED],
    ['that is new and asks', GUARDED, `${GUARDED}\nPOST /a/{id}: editor a:{id}`],
  ])('nothing by a route %s', async (_name, former, next) => {
    expect(await opened(former, next)).toEqual([])
  })
})

const FILE = `portcullis: v1
resource: https://app.test
issuers: [{issuer: "https://id.test"}]
upstream: http://127.0.0.1:1
pdp: {address: "127.0.0.1:2", insecure: true}
routes:
  ${GUARDED}
`
const read = (source: string) => ({ file: loadFile(source), certificates: NO_CERTIFICATES })
const settings = (former: string, next: string): readonly string[] =>
  openedSettings(read(FILE + former), read(FILE + next))
const changed = (from: string, to: string): readonly string[] =>
  openedSettings(read(FILE), read(FILE.replace(from, to)))

describe('a change of what else the file says opens', () => {
  test.each([
    ['strip_headers: [x-tenant, x-unit-*]', 'strip_headers: [x-tenant]', 'strip_headers: the service gets x-unit-*'],
    ['', 'pass_headers: [x_tenant]', 'pass_headers: the service gets x_tenant'],
    ['', 'trusted_proxies: [10.0.0.0/8]', 'trusted_proxies: forwarding fields of 10.0.0.0/8'],
    ['trusted_proxies: [10.0.0.0/16]', 'trusted_proxies: [10.0.0.0/8]', 'trusted_proxies: '],
    ['', 'hosts: [app.test, other.test]', 'hosts: other.test'],
    ['dpop: {nonce: required}', '', 'dpop: proofs need no nonce'],
    ['', 'doors: [{profile: nginx, listen: "unix:/tmp/door"}]', 'doors: gateways may ask at /tmp/door'],
  ])('from %j to %j', (former, next, expected) => {
    const [first, ...others] = settings(former, next)
    expect([first?.startsWith(expected), others]).toEqual([true, []])
    expect(settings(next, next)).toEqual([])
  })

  test.each([
    [
      'resource: https://app.test',
      'resource: https://new.test\npublic_url: https://app.test',
      ['resource: ', 'hosts: '],
    ],
    [
      '[{issuer: "https://id.test"}]',
      '[{issuer: "https://id.test"}, {issuer: "https://new.test"}]',
      ['issuers: https://new.test is'],
    ],
    ['127.0.0.1:2', '127.0.0.1:3', ['pdp: another PDP decides']],
    ['http://127.0.0.1:1', 'http://127.0.0.1:3', ['upstream: http://127.0.0.1:3 gets the requests now']],
    [
      'upstream: http://127.0.0.1:1',
      'upstream: {url: "http://127.0.0.1:1", reuse_after_body: true}',
      ['upstream: a connection'],
    ],
    [
      'upstream: http://127.0.0.1:1',
      'upstream: {url: "http://127.0.0.1:1", socket: /run/service}',
      ['upstream: /run/service gets the requests now'],
    ],
    [
      'upstream: http://127.0.0.1:1',
      'upstream: {url: "http://127.0.0.1:1", host: a.test}',
      ['upstream: the service is reached by another name'],
    ],
    ['"https://id.test"}', '"https://id.test", jwks_uri: "https://keys.test/jwks"}', ['issuers: https://id.test is']],
  ])('where %j becomes %j', (from, to, expected) => {
    const found = changed(from, to)
    expect(found.length).toBe(expected.length)
    for (const [at, text] of expected.entries()) expect(found[at]).toContain(text)
  })

  const pem = (...authorities: string[]) => {
    const text = authorities.map((one) => `-----BEGIN CERTIFICATE-----\n${one}\n-----END CERTIFICATE-----\n`)
    return { ca: authorities.length === 0 ? null : Buffer.from(text.join('')), cert: null, key: null }
  }
  test.each([
    [pem('A'), pem('A', 'B'), true],
    [pem('A'), pem('B'), true],
    [pem('A'), pem(), true],
    [pem(), pem('A'), true],
    [pem('A', 'B'), pem('B'), false],
    [pem('A', 'B'), pem('B', 'A'), false],
    [pem(), pem(), false],
  ])('authorities in files of the same names: %#', (before, now, isSaid) => {
    const file = loadFile(`${FILE}tls: {cert_file: a, key_file: b, client_ca_file: c}\n`)
    for (const [name, isMeant] of [
      ['upstream', true],
      ['pdp', true],
      ['tls', before.ca !== null && now.ca !== null],
    ] as const) {
      if (!isMeant) continue
      const read = (one: typeof before) => ({ file, certificates: { ...NO_CERTIFICATES, [name]: one } })
      const [said, ...others] = openedSettings(read(before), read(now))
      expect([said?.startsWith(`${name}: `) === true, others]).toEqual([isSaid, []])
    }
  })

  test.each([
    ['a field more that is taken away', '', 'strip_headers: [x-tenant]'],
    ['a proxy less', 'trusted_proxies: [10.0.0.0/8]', ''],
    ['another order', 'strip_headers: [x-a, x-b]', 'strip_headers: [x-b, x-a]'],
    ['limits', '', 'limits: {client_requests_max: 3}'],
  ])('nothing by %s', (_, former, next) => {
    expect(settings(former, next)).toEqual([])
  })
})
