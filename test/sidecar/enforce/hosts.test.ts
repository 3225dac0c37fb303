/** Which hosts are served: names with a star, names of a cluster, a dot at the end, and probes that name none. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
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
