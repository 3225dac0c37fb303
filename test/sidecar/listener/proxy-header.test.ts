/** The PROXY protocol: which headers are read, whose, and that the client is who the balancer says, over each protocol. */
import { readFileSync } from 'node:fs'
import { connect as openHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { readProxyHeader } from '../../../sidecar/listener/proxy-header.ts'
import { until } from '../../support/until.ts'
import { type Harness, loadFile, routeFile, startHarness } from '../support/harness.ts'
import { fieldOf } from '../support/upstream.ts'

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n')
/** Version 2: command, family, body, and the length if it lies. */
const block = (command: number, family: number, body: Buffer, length = body.length): Buffer =>
  Buffer.concat([SIGNATURE, Buffer.from([command, family, length >> 8, length & 255]), body])
const V4 = Buffer.from([203, 0, 113, 7, 10, 0, 0, 1, 0x1f, 0x90, 0, 80])
const V6 = Buffer.concat([Buffer.from('20010db8000000000000000000000007', 'hex'), Buffer.alloc(16, 1), Buffer.alloc(4)])
const TLV = Buffer.from([4, 0, 3, 1, 2, 3])
const LINE = 'PROXY TCP4 203.0.113.7 10.0.0.1 8080 80\r\n'

describe('a header is read', () => {
  test.each<[Buffer | string, string | null]>([
    [LINE, '203.0.113.7'],
    ['PROXY TCP6 2001:db8::7 ::1 65535 0\r\n', '2001:db8::7'],
    ['PROXY TCP6 ::ffff:203.0.113.7 ::1 1 1\r\n', '203.0.113.7'],
    ['PROXY UNKNOWN\r\n', null],
    ['PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n', null],
    [block(0x21, 0x11, V4), '203.0.113.7'],
    [block(0x21, 0x11, Buffer.concat([V4, TLV])), '203.0.113.7'],
    [block(0x21, 0x21, V6), '2001:db8::7'],
    [block(0x20, 0x00, Buffer.alloc(0)), null],
    [block(0x20, 0x11, V4), null],
    [block(0x20, 0x77, TLV), null],
    [block(0x21, 0x00, TLV), null],
    [block(0x21, 0x31, Buffer.alloc(216)), null],
    [block(0x21, 0x11, Buffer.concat([V4, Buffer.alloc(4_068)])), '203.0.113.7'],
  ])('%j', (text, address) => {
    const bytes = Buffer.from(text as string, 'latin1')
    expect(readProxyHeader(Buffer.concat([bytes, Buffer.from('GET /')]))).toEqual({
      ...{ kind: 'whole', bytes: bytes.length, address },
    })
    for (let count = 0; count < bytes.length; count += 1)
      expect(readProxyHeader(bytes.subarray(0, count)).kind, String(count)).toBe('more')
  })

  test.each<[string, Buffer | string]>([
    ['of HTTP', 'GET / HTTP/1.1\r\n'],
    ['of TLS', Buffer.from([22, 3, 1])],
    ['in small letters', 'proxy TCP4 203.0.113.7 10.0.0.1 8080 80\r\n'],
    ['of another protocol', 'PROXY UDP4 203.0.113.7 10.0.0.1 8080 80\r\n'],
    ['of IPv6 in TCP4', 'PROXY TCP4 2001:db8::7 ::1 8080 80\r\n'],
    ['of IPv4 in TCP6', 'PROXY TCP6 203.0.113.7 10.0.0.1 8080 80\r\n'],
    ['of no address', 'PROXY TCP4 203.0.113.700 10.0.0.1 8080 80\r\n'],
    ['of no target', 'PROXY TCP4 203.0.113.7 10.0.0 8080 80\r\n'],
    ['of a port that is none', 'PROXY TCP4 203.0.113.7 10.0.0.1 65536 80\r\n'],
    ['with two spaces', 'PROXY TCP4  203.0.113.7 10.0.0.1 8080 80\r\n'],
    ['with more at its end', 'PROXY TCP4 203.0.113.7 10.0.0.1 8080 80 x\r\n'],
    ['with a zone', 'PROXY TCP6 fe80::1%eth0 ::1 8080 80\r\n'],
    ['that is longer than 107 bytes', `PROXY UNKNOWN ${'a'.repeat(92)}\r\n`],
    ['without an end', `PROXY ${'a'.repeat(200)}`],
    ['of version 1 in the block', block(0x11, 0x11, V4)],
    ['of an unknown command', block(0x22, 0x11, V4)],
    ['of UDP', block(0x21, 0x12, V4)],
    ['of an unknown family', block(0x21, 0x41, V4)],
    ['whose addresses do not fit', block(0x21, 0x11, V4.subarray(1))],
    ['whose IPv6 addresses do not fit', block(0x21, 0x21, V4)],
    ['that is longer than 4,096 bytes', block(0x21, 0x11, V4, 4_081)],
    ['whose signature is broken', Buffer.from('\r\n\r\n\0\r\nQUIT\r')],
  ])('but not one %s', (_, text) => {
    expect(readProxyHeader(Buffer.from(text as string, 'latin1')).kind).toBe('bad')
  })
})

const PEMS = join(import.meta.dirname, '../../support/certificates')
const pem = (name: string): Buffer => readFileSync(join(PEMS, name))
let h: Harness | null = null
const sockets: Socket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await h?.close()
  h = null
})
const start = async (trusted = '127.0.0.1', options: Partial<Parameters<typeof startHarness>[0]> = {}) => {
  const extra = `trusted_proxies: [${trusted}]\nproxy_protocol: true`
  h = await startHarness({ routes: 'GET /x: public', extra, ...options })
  return h
}
const REQUEST = 'GET /x HTTP/1.1\r\nHost: app.test\r\nX-Forwarded-For: 198.51.100.1\r\nConnection: close\r\n\r\n'

/** Everything that comes back until the connection ends. */
async function talk(socket: Socket, parts: readonly (string | Buffer)[]): Promise<string> {
  sockets.push(socket)
  let text = ''
  let closed = false
  socket
    .on('error', () => undefined)
    .on('close', () => {
      closed = true
    })
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
  })
  for (const part of parts) {
    socket.write(part)
    await new Promise(setImmediate)
  }
  await until(() => closed)
  return text
}
const plain = (parts: readonly (string | Buffer)[]) => talk(connect(h?.port ?? 0, '127.0.0.1'), parts)

describe('a connection of a trusted proxy', () => {
  test.each<[string, readonly (string | Buffer)[]]>([
    ['a line', [LINE + REQUEST]],
    ['a line in parts', [...LINE, REQUEST]],
    ['a block', [Buffer.concat([block(0x21, 0x11, V4), Buffer.from(REQUEST)])]],
    ['a block in parts', [block(0x21, 0x11, V4).subarray(0, 5), block(0x21, 0x11, V4).subarray(5), REQUEST]],
  ])('is of the client that %s names, whose own fields do not count', async (_, parts) => {
    const { upstream, log } = await start()
    expect(await plain(parts)).toMatch(/^HTTP\/1.1 200/)
    expect(fieldOf(upstream.reached[0], 'x-forwarded-for')).toBe('203.0.113.7')
    expect(JSON.stringify(log)).toContain('203.0.113.7')
  })

  test('is of a further proxy where the client is one', async () => {
    const { upstream } = await start('127.0.0.1, 203.0.113.7')
    expect(await plain([LINE + REQUEST])).toMatch(/^HTTP\/1.1 200/)
    expect(fieldOf(upstream.reached[0], 'x-forwarded-for')).toBe('198.51.100.1')
  })

  test.each(['PROXY UNKNOWN\r\n', block(0x20, 0, Buffer.alloc(0)).toString('latin1')])(
    'is of nobody where the header says so: %j',
    async (header) => {
      const { upstream } = await start()
      expect(await plain([Buffer.from(header + REQUEST, 'latin1')])).toMatch(/^HTTP\/1.1 200/)
      expect(fieldOf(upstream.reached[0], 'x-forwarded-for')).toBe('')
    },
  )

  test.each([REQUEST, 'PROXY TCP4 a b 1 2\r\n', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'])(
    'is closed without an answer after %j',
    async (first) => {
      const { upstream, log } = await start()
      expect(await plain([first])).toBe('')
      expect(upstream.reached).toEqual([])
      expect(JSON.stringify(log)).toContain('no header of the PROXY protocol')
    },
  )

  test('is closed when it stays silent', async () => {
    await start('127.0.0.1', { limits: { headersTimeoutMs: 100 } })
    expect(await plain(['PROXY TCP4 '])).toBe('')
  })

  test('may speak HTTP/2', async () => {
    const { upstream, port } = await start()
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket)
    socket.write(LINE)
    const session = openHttp2('http://app.test', { createConnection: () => socket })
    const stream = session.request({ ':path': '/x', 'x-forwarded-for': '198.51.100.1' })
    await new Promise((resolve) => stream.on('response', resolve).resume())
    session.destroy()
    expect(fieldOf(upstream.reached[0], 'x-forwarded-for')).toBe('203.0.113.7')
  })

  test.each([LINE, block(0x21, 0x11, V4)])('may speak TLS behind the header', async (header) => {
    const tls = { ca: null, cert: pem('server-1.pem'), key: pem('server-1.key') }
    const { upstream, port } = await start('127.0.0.1', { certificates: { ...NO_CERTIFICATES, tls } })
    const inner = connect(port, '127.0.0.1')
    inner.write(header)
    const socket = connectTls({ socket: inner, servername: 'localhost', ca: pem('ca.pem') })
    expect(await talk(socket, [REQUEST])).toMatch(/^HTTP\/1.1 200/)
    expect(fieldOf(upstream.reached[0], 'x-forwarded-for')).toBe('203.0.113.7')
  })
})

test('a header of anybody else is no request', async () => {
  const { upstream } = await start('192.0.2.1')
  expect(await plain([LINE + REQUEST])).toMatch(/^HTTP\/1.1 400/)
  expect(await plain([REQUEST])).toMatch(/^HTTP\/1.1 200/)
  expect(fieldOf(upstream.reached[0], 'x-forwarded-for')).toBe('127.0.0.1')
})

test('connections of one client are counted together, whoever forwards them', async () => {
  const { port } = await start('127.0.0.1', { limits: { clientConnectionsMax: 1 } })
  const held = connect(port, '127.0.0.1')
  sockets.push(held)
  held.write(LINE)
  held.on('error', () => undefined)
  await until(async () => (await plain([LINE + REQUEST])) === '')
  expect(await plain([LINE.replace('113.7', '113.8') + REQUEST])).toMatch(/^HTTP\/1.1 200/)
})

test.each([
  ['proxy_protocol: true', /proxy_protocol needs trusted_proxies/],
  ['proxy_protocol: v2\ntrusted_proxies: [127.0.0.1]', /proxy_protocol must be true or false/],
])('a route file with %s is refused', (extra, says) => {
  expect(() => loadFile(routeFile('GET /x: public', { extra }))).toThrow(says)
})
