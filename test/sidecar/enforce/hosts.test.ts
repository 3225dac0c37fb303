/** Which hosts are served: names with a star, names of a cluster, a dot at the end, and probes that name none. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { sendRaw } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, loadFile, routeFile, startHarness } from '../support/harness.ts'

const ROUTES = `GET /open: public
GET /tenant: viewer site:{request.host}
GET admin.app.test/open: scope admin`
const EXTRA = `hosts: [app.test, "app.test.", "*.app.test", "*.app.test.", "*.eu.app.test"]
cluster_service: orders.shop
probe_paths: [/healthz]
trusted_proxies: [127.0.0.1]`

let h: Harness
beforeAll(async () => {
  h = await startHarness({ routes: ROUTES, extra: EXTRA })
})
afterAll(() => h.close())
beforeEach(() => {
  h.pdp.script = tuples(['alice viewer site:one.app.test'])
  h.upstream.reached.length = 0
})

describe('a host', () => {
  test.each([
    'app.test',
    'APP.TEST',
    'app.test.',
    'app.test.:80',
    'one.app.test',
    'One.App.test:8443',
    'one.app.test.',
    'x.eu.app.test',
    'orders',
    'orders.shop',
    'orders.shop.svc',
    'orders.shop.svc.cluster.local',
    'orders.shop.svc.cluster.local.',
    'orders-0.orders.shop.svc.cluster.local',
    'orders-0.orders',
  ])('%s is served', async (host) => {
    expect((await h.send('GET /open', { host, token: null })).status).toBe(200)
  })

  test.each<[host: string, status: number]>([
    ['a.b.app.test', 421],
    ['x.eu.app.test.', 421],
    ['orders.shop.svc.', 421],
    ['other.test', 421],
    ['evilapp.test', 421],
    ['app.test.evil.test', 421],
    ['*.app.test', 400],
    ['.app.test', 400],
    ['app.test..', 400],
    ['.', 400],
    ['orders.other', 421],
    ['shop.svc.cluster.local', 421],
    ['a.b.orders.shop', 421],
  ])('%s is refused with %i', async (host, status) => {
    expect((await h.send('GET /open', { host, token: null })).status).toBe(status)
    expect(h.upstream.reached).toEqual([])
  })

  test.each(['admin.app.test', 'ADMIN.app.test.'])(
    '%s, which a star covers as well, keeps the routes of its own',
    async (host) => {
      expect((await h.send('GET /open', { host, token: null })).status).toBe(401)
    },
  )
})

describe('a check on the host', () => {
  test.each<[host: string, status: number]>([
    ['one.app.test', 200],
    ['ONE.app.test:443', 200],
    ['one.app.test.', 200],
    ['two.app.test', 403],
  ])('reads %s without case, port and dot', async (host, status) => {
    expect((await h.send('GET /tenant', { host })).status).toBe(status)
  })

  test('refuses a request whose forwarded host is another one, which the service may believe', async () => {
    const fields = ['X-Forwarded-Host: two.app.test']
    expect((await h.send('GET /tenant', { host: 'one.app.test', fields })).status).toBe(400)
    expect(
      (await h.send('GET /tenant', { host: 'one.app.test', fields: ['X-Forwarded-Host: one.app.test'] })).status,
    ).toBe(200)
  })
})

describe('a probe', () => {
  test.each([
    'GET /healthz HTTP/1.1\r\nHost: 10.4.2.17:15080\r\n\r\n',
    'GET /healthz HTTP/1.1\r\nHost: app.test\r\n\r\n',
    'GET /healthz HTTP/1.0\r\n\r\n',
  ])('gets what the admin port says: %j', async (bytes) => {
    const answer = await sendRaw(h.port, bytes)
    expect([answer.status, answer.body]).toEqual([200, 'ok\n'])
    expect(h.upstream.reached).toEqual([])
  })

  test.each<[bytes: string, status: number]>([
    ['GET /healthz?x HTTP/1.1\r\nHost: app.test\r\n\r\n', 404],
    ['GET /healthz/ HTTP/1.1\r\nHost: app.test\r\n\r\n', 404],
    ['POST /healthz HTTP/1.1\r\nHost: app.test\r\n\r\n', 404],
    ['GET /Healthz HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n', 421],
    ['GET /healthz/../open HTTP/1.1\r\nHost: app.test\r\n\r\n', 400],
    ['GET /open HTTP/1.0\r\n\r\n', 400],
  ])('is no other request: %j gets %i', async (bytes, status) => {
    expect((await sendRaw(h.port, bytes)).status).toBe(status)
    expect(h.upstream.reached).toEqual([])
  })

  test('gets 503 once the sidecar is to end', async () => {
    const other = await startHarness({ routes: 'GET /open: public', extra: 'probe_paths: [/healthz]' })
    try {
      other.sidecar.withdraw()
      const answer = await sendRaw(other.port, 'GET /healthz HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n')
      expect([answer.status, answer.body]).toEqual([503, 'not ready\n'])
    } finally {
      await other.close()
    }
  })
})

describe('a route file', () => {
  const load = (extra: string) => () =>
    loadFile(
      routeFile('GET /x: public', { extra }).replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1'),
    )

  test.each([
    'hosts: ["*"]',
    'hosts: ["*.test"]',
    'hosts: ["a*.app.test"]',
    'hosts: ["*.*.app.test"]',
    'hosts: ["app.*.test"]',
    'hosts: ["*.app.test:80"]',
    'hosts: ["*app.test"]',
    'cluster_service: orders',
    'cluster_service: orders.shop.svc',
    'cluster_service: Orders.shop',
    'cluster_service: "*.shop"',
    'probe_paths: [healthz]',
    'probe_paths: ["/healthz?x"]',
    'probe_paths: ["/{id}"]',
    'probe_paths: ["/**"]',
    'probe_paths: []',
  ])('with %s is refused', (extra) => {
    expect(load(extra)).toThrow()
  })
})

describe('a host whose first label is a value', () => {
  const TENANTS = `GET {tenant}.acme.test/sites/{id}: viewer site:{tenant}/{id}
GET {tenant}.acme.test/me: member tenant:{tenant}
GET own.acme.test/me: viewer site:own
GET *.flat.test/me: signed_in
MCP {tenant}.acme.test/mcp: {tools: {read: "viewer site:{tenant}"}}`
  const MAY = ['viewer site:one/1', 'member tenant:one', 'viewer site:own', 'member tenant:xn--bcher-kva'].map(
    (of) => `alice ${of}`,
  )
  let world: Harness
  beforeAll(async () => {
    world = await startHarness({
      routes: TENANTS,
      extra: 'hosts: [app.test]\ntrusted_proxies: [127.0.0.1]',
      script: tuples(MAY),
    })
  })
  afterAll(() => world.close())
  const status = async (line: string, host: string, fields: readonly string[] = []): Promise<number> =>
    (await world.send(line, { host, fields, token: await world.issuer.token() })).status

  test.each<[line: string, host: string, status: number]>([
    ['GET /sites/1', 'one.acme.test', 200],
    ['GET /sites/1', 'ONE.Acme.test:8443', 200],
    ['GET /sites/1', 'two.acme.test', 403],
    ['GET /sites/2', 'one.acme.test', 403],
    ['GET /me', 'one.acme.test', 200],
    ['GET /me', 'xn--bcher-kva.acme.test', 200],
    ['GET /me', 'own.acme.test', 200],
    ['GET /me', 'x.flat.test', 200],
    // A host with routes of its own has no others.
    ['GET /sites/1', 'own.acme.test', 404],
    ['GET /me', 'acme.test', 421],
    ['GET /me', 'a.one.acme.test', 421],
    ['GET /me', 'one.acme.test.', 421],
    ['GET /me', 'oneacme.test', 421],
    ['GET /me', 'app.test', 404],
    ['GET /me', '*.acme.test', 400],
    ['GET /me', '{tenant}.acme.test', 400],
    ['GET /me', '.acme.test', 400],
    ['GET /me?tenant=two', 'one.acme.test', 400],
    ['GET /me?tenant=one', 'one.acme.test', 200],
  ])('%s of %s: %i', async (line, host, expected) => {
    expect(await status(line, host)).toBe(expected)
  })

  test.each<[fields: readonly string[], status: number]>([
    [['X-Forwarded-Host: two.acme.test'], 400],
    [['X-Forwarded-Host: one.acme.test'], 200],
    [['X-Forwarded-Host: app.test'], 400],
    [['Forwarded: host=two.acme.test'], 400],
  ])('is not taken where a proxy names another: %s', async (fields, expected) => {
    expect(await status('GET /me', 'one.acme.test', fields)).toBe(expected)
    if (fields[0] === 'X-Forwarded-Host: one.acme.test') return
    expect(await status('GET /me', 'two.acme.test', ['X-Forwarded-Host: one.acme.test'])).toBe(400)
  })

  test('is a value for the tools of an MCP server', async () => {
    world.pdp.script = tuples(['alice viewer site:one'])
    const call = async (host: string) => {
      const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}'
      const fields = ['Content-Type: application/json', 'Accept: application/json, text/event-stream']
      const { text } = await world.send('POST /mcp', { host, fields, body, token: await world.issuer.token() })
      return text.includes('"error"') ? 'denied' : 'called'
    }
    expect([await call('one.acme.test'), await call('two.acme.test')]).toEqual(['called', 'denied'])
    world.pdp.script = tuples(MAY)
  })

  test.each<[routes: string, message: RegExp]>([
    ['GET {a}.{b}.acme.test/x: public', /must be a host name without a port; its first label/],
    ['GET {tenant}.acme.test:80/x: public', /must be a host name without a port/],
    ['GET x{tenant}.acme.test/x: public', /must be a host name without a port/],
    ['GET {tenant}/x: public', /must be a host name without a port/],
    ['GET {tenant}.test/x: public', /must be a host name without a port/],
    ['GET {tenant}.1.2.3/x: public', /must be a host name without a port/],
    ['GET {te nant}.acme.test/x: public', /must be "METHOD \/path" or/],
    ['GET *.*.test/x: public', /must be a host name without a port/],
    ['GET {id}.acme.test/x/{id}: "viewer doc:{id}"', /\{id\} is in the host and in the path/],
    ['GET {a}.acme.test/x: public\nGET {b}.acme.test/x: public', /is the same route as/],
    ['GET /x: "viewer doc:{tenant}"', /\{tenant\} is not a parameter of the path/],
  ])('%s is refused', (routes, message) => {
    const source = routeFile(routes).replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1')
    expect(parseRouteFile(source).issues.map(({ message: text }) => text)).toContainEqual(
      expect.stringMatching(message),
    )
  })
})
