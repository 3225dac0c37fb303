/** A PDP behind an egress proxy: what it calls through the proxy, what it never does, and proxies that are wrong. */
import { createServer, type Server, setGlobalProxyFromEnv } from 'node:http'
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { inspect } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { readConfig } from '../../../../pdp/server/runtime/config.ts'
import { createGuardedPost } from '../../../../pdp/shared/base/guarded-post.ts'
import { postJson } from '../../../../pdp/shared/base/http-json.ts'
import { proxyOf, useProxy } from '../../../../pdp/shared/process/egress.ts'
import { readJson } from '../../../../pdp/shared/token/remote-keys.ts'
import { makeCertificate } from '../../../../sidecar/injector/certificate/certificate.ts'

const NAMES = ['idp.example', 'hook.example']
const asked: string[] = []
const reached: string[] = []
let origin: SecureServer
let proxy: Server
let restore = (): void => undefined

const listen = (server: Server | SecureServer): Promise<void> =>
  new Promise((done) => server.listen(0, '127.0.0.1', () => done()))
const portOf = (server: Server | SecureServer): number => (server.address() as AddressInfo).port
const urlOf = (server: Server): string => `http://ann:p%40ss@127.0.0.1:${portOf(server)}`

beforeAll(async () => {
  const { key, certificate, authority } = await makeCertificate({ names: NAMES, days: 1, nowMs: Date.now() })
  setDefaultCACertificates([...getCACertificates('default'), authority])
  origin = createSecureServer({ key, cert: certificate }, (req, res) => {
    reached.push(`${req.method} ${req.headers.host}${req.url}`)
    res.end('{"keys":[]}')
  })
  proxy = createServer((req, res) => {
    asked.push(`${req.method} ${req.url}`)
    res.writeHead(502).end()
  })
  proxy.on('connect', (req, socket) => {
    asked.push(`CONNECT ${req.url}`)
    const onward = connect(portOf(origin), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      onward.pipe(socket).pipe(onward)
    })
    for (const side of [socket, onward]) side.on('error', () => undefined)
  })
  for (const server of [origin, proxy]) await listen(server)
  // Undone at the end: this process has other tests.
  restore = setGlobalProxyFromEnv({})
})
afterAll(() => {
  restore()
  for (const server of [origin, proxy]) {
    server.closeAllConnections()
    server.close()
  }
})
beforeEach(() => {
  asked.length = 0
  reached.length = 0
})

type Environment = { readonly [name: string]: string }
const through = (server: Server, more: Environment = {}): Environment => ({ HTTPS_PROXY: urlOf(server), ...more })
/** A call of a URL that another party chose: sign-out and keys of clients, sign-in providers, receivers of events. */
async function guarded(environment: Environment, url: string, more: object = {}): Promise<number> {
  const calls = createGuardedPost({ internalHosts: [], proxy: proxyOf(environment), ...more })
  try {
    return (await calls.send({ method: 'GET', url, headers: {}, deadlineMs: 1_000, bytesMax: 100 })).status
  } finally {
    calls.close()
  }
}
/** A call of the token hook, or of the source of entitlements. */
function posted(environment: Environment, url: string): Promise<unknown> {
  useProxy(environment)
  const headers = { authorization: 'Bearer secret' }
  return postJson({ fetch: globalThis.fetch, url, headers, body: '{}', deadlineMs: 1_000, bytesMax: 100 })
}
/** The keys of an issuer. */
async function fetched(environment: Environment, url: string): Promise<unknown> {
  useProxy(environment)
  const signal = AbortSignal.timeout(1_000)
  return readJson(await globalThis.fetch(url, { redirect: 'manual', signal }), url)
}
const KINDS = [
  ['a call that another party asked for', guarded],
  ['the token hook', posted],
  ['the keys of an issuer', fetched],
] as const
type LookupDone = (error: Error | null, found?: object) => void
/** A machine that has no DNS of its own. */
const noDns = (_host: string, _options: object, done: LookupDone): void => done(new Error('ENOTFOUND'))
const lookupOf =
  (...addresses: string[]) =>
  (_host: string, _options: object, done: LookupDone): void =>
    done(
      null,
      addresses.map((address) => ({ address, family: 4 })),
    )

test('a PDP takes proxy and exceptions from its environment, in capitals or not', () => {
  expect(readConfig({ HTTPS_PROXY: 'http://a:1', NO_PROXY: '.svc' }).proxy).toEqual({
    https_proxy: 'http://a:1',
    no_proxy: expect.stringMatching(/^\.svc,localhost,/),
  })
  const small = { HTTPS_PROXY: 'http://a:1', https_proxy: 'http://b:1', no_proxy: '*' }
  expect(readConfig(small).proxy).toEqual({ https_proxy: 'http://b:1', no_proxy: '*' })
  for (const none of [{}, { HTTP_PROXY: 'http://a:1' }, { HTTPS_PROXY: '' }, { ALL_PROXY: 'http://a:1' }])
    expect(readConfig(none).proxy).toBeNull()
})

describe('through the proxy goes', () => {
  test('a call that another party asked for, whose name the proxy resolves', async () => {
    expect(await guarded(through(proxy), 'https://idp.example/x', { lookup: noDns })).toBe(200)
    expect([asked, reached]).toEqual([['CONNECT idp.example:443'], ['GET idp.example/x']])
  })

  test('the token hook', async () => {
    expect(await posted(through(proxy), 'https://hook.example:8443/mint')).toEqual({ keys: [] })
    expect([asked, reached]).toEqual([['CONNECT hook.example:8443'], ['POST hook.example:8443/mint']])
  })

  test('the request for the keys of an issuer', async () => {
    expect(await fetched({ https_proxy: urlOf(proxy) }, 'https://idp.example/keys')).toEqual({ keys: [] })
    expect([asked, reached]).toEqual([['CONNECT idp.example:443'], ['GET idp.example/keys']])
  })

  test.each(KINDS)('%s to another host than its certificate names, and fails', async (_, call) => {
    await expect(call(through(proxy), 'https://other.example/x')).rejects.toThrow()
    expect([asked, reached]).toEqual([['CONNECT other.example:443'], []])
  })

  test.each(KINDS)('%s to a host whose name only ends like one of NO_PROXY', async (_, call) => {
    const environment = through(proxy, { NO_PROXY: 'p.example,.svc' })
    await call(environment, 'https://idp.example/x')
    await expect(call(environment, 'https://a.svc.example/x')).rejects.toThrow()
    expect(asked).toEqual(['CONNECT idp.example:443', 'CONNECT a.svc.example:443'])
  })
})

describe('past the proxy goes', () => {
  test.each(['.example', '*.example', 'idp.example', 'a.b, IDP.EXAMPLE ,c.d', 'idp.example:443', '*', 'a.b,*'])(
    'each call to a host that NO_PROXY names by %s',
    async (NO_PROXY) => {
      for (const [, call] of KINDS)
        await expect(call(through(proxy, { NO_PROXY }), 'https://idp.example/x')).rejects.toThrow()
      expect(asked).toEqual([])
    },
  )

  test.each([{}, { NO_PROXY: '' }, { NO_PROXY: '.svc' }, { no_proxy: 'a.example' }])(
    'a call to a name of the cluster and to loopback, with %o',
    async (exceptions) => {
      const urls = ['kubernetes.default.svc', 'kubernetes.default.svc.cluster.local', 'localhost:1', '127.0.0.1:1']
      for (const host of [...urls, '[::1]:1'])
        for (const call of [posted, fetched])
          await expect(call(through(proxy, exceptions), `https://${host}/keys`)).rejects.toThrow()
      expect(asked).toEqual([])
    },
  )

  test('a call by fetch to an internal host that the operator named', async () => {
    useProxy(through(proxy, { NO_PROXY: 'a.example' }), ['idp.example', 'hook.example:8443'])
    for (const url of ['https://idp.example:9/x', 'https://hook.example:8443/x'])
      await expect(globalThis.fetch(url)).rejects.toThrow()
    expect(asked).toEqual([])
    await globalThis.fetch('https://hook.example/x')
    expect(asked).toEqual(['CONNECT hook.example:443'])
  })

  test('a call by http', async () => {
    const plain = createServer((_req, res) => void res.end('{}'))
    await listen(plain)
    const environment = through(proxy, { HTTP_PROXY: urlOf(proxy), http_proxy: urlOf(proxy) })
    for (const call of [posted, fetched])
      expect(await call(environment, `http://127.0.0.1:${portOf(plain)}/x`)).toEqual({})
    plain.closeAllConnections()
    plain.close()
    expect(asked).toEqual([])
  })

  test('a call to an internal host that the operator named', async () => {
    const internalHosts = [`127.0.0.1:${portOf(origin)}`]
    const call = guarded(through(proxy), `https://${internalHosts[0]}/x`, { internalHosts })
    await expect(call).rejects.toThrow(/certificate/)
    expect(asked).toEqual([])
  })

  test('no name that resolves to an internal address, where NO_PROXY names it', async () => {
    const lookup = lookupOf('10.0.0.1')
    const call = guarded(through(proxy, { NO_PROXY: 'idp.example' }), 'https://idp.example/x', { lookup })
    await expect(call).rejects.toThrow('resolves to an internal address')
  })
})

test.each([
  'https://127.0.0.1/x',
  'https://169.254.169.254/latest/meta-data',
  'https://[::1]/x',
  'https://2130706433/x',
  'https://localhost/x',
  'https://metadata.google.internal/x',
  'https://pdp.portcullis.svc.cluster.local/x',
  'https://kubernetes/x',
  'http://idp.example/x',
  'https://user:word@idp.example/x',
])('the proxy is not asked for %s, which nobody may choose', async (url) => {
  await expect(guarded(through(proxy), url)).rejects.toMatchObject({ name: 'TargetRefused' })
  expect(asked).toEqual([])
})

test.each([['10.0.0.5'], ['127.0.0.1'], ['::ffff:10.0.0.5'], ['93.184.216.34', '169.254.169.254']])(
  'the proxy is not asked for a name that has the address %s here',
  async (...addresses) => {
    const call = guarded(through(proxy), 'https://idp.example/x', { lookup: lookupOf(...addresses) })
    await expect(call).rejects.toMatchObject({ name: 'TargetRefused' })
    expect(asked).toEqual([])
  },
)

test('the proxy is asked for a name that has a public address here, or whose lookup does not end', async () => {
  for (const lookup of [lookupOf('93.184.216.34'), () => undefined])
    expect(await guarded(through(proxy), 'https://idp.example/x', { lookup })).toBe(200)
})

test.each(['10.0.0.0/8', 'a.example, 10.96.0.0/12', 'fd00::/8 .svc', '/'])(
  'a PDP does not start with NO_PROXY=%s, and says what to write',
  (NO_PROXY) => {
    expect(() => useProxy(through(proxy, { NO_PROXY }))).toThrow(/write each name and address by itself/)
  },
)

describe.each<[string, (socket: Duplex) => void]>([
  ['refuses', (socket) => socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n')],
  ['wants another password', (socket) => socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')],
  ['ends', (socket) => socket.destroy()],
  ['speaks another protocol', (socket) => socket.end('\x05\x00')],
  ['says nothing', () => undefined],
  ['says a head without end', (socket) => socket.write(`HTTP/1.1 200 OK\r\nA: ${'a'.repeat(100_000)}`)],
  ['connects, and then ends', (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n')],
  ['connects, and then says nothing', (socket) => socket.write('HTTP/1.1 200 OK\r\n\r\n')],
])('a proxy that %s', (_, play) => {
  let bad: Server
  beforeAll(async () => {
    bad = createServer().on('connect', (_req, socket: Duplex) => {
      socket.on('error', () => undefined)
      play(socket)
    })
    await listen(bad)
  })
  afterAll(() => {
    bad.closeAllConnections()
    bad.close()
  })

  test.each(KINDS)('makes %s fail in its time, and the error says no password', async (_kind, call) => {
    const error: unknown = await call(through(bad), 'https://idp.example/x').then(
      () => null,
      (err: unknown) => err,
    )
    expect(error).toBeInstanceOf(Error)
    const said = inspect(error, { depth: 20, showHidden: true })
    for (const secret of ['p@ss', 'p%40ss', Buffer.from('ann:p@ss').toString('base64'), 'Bearer secret'])
      expect(said).not.toContain(secret)
    expect(reached).toEqual([])
  })
})
