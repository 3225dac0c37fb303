/** The request line of HTTP/1.1, byte by byte: what RFC 9112 section 3 does not describe is refused, wherever it begins. */
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { makeCertificate } from '../../../sidecar/injector/certificate/certificate.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'

const ROUTES = `
"* /public/**": public
GET /socket: {check: public, upgrade: [websocket]}`.trim()

let h: Harness
const sockets: Socket[] = []
beforeEach(async () => {
  h = await startHarness({ routes: ROUTES, script: tuples([]) })
})
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await h.close()
})

type Talk = { readonly socket: Socket; text(): string; ended(): boolean; statuses(): number[] }
function talk(socket: Socket = connect(h.port, '127.0.0.1')): Talk {
  let text = ''
  let ended = false
  socket.setNoDelay(true)
  socket.on('error', () => undefined)
  socket.on('data', (chunk) => {
    text += chunk
  })
  socket.on('close', () => {
    ended = true
  })
  sockets.push(socket)
  const statuses = (): number[] => [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status))
  return { socket, text: () => text, ended: () => ended, statuses }
}
const HOST = 'Host: app.test\r\n'
const get = (path: string, fields = ''): string => `GET ${path} HTTP/1.1\r\n${HOST}${fields}\r\n`
const targets = (): string[] => h.upstream.reached.map(({ target }) => target)
const CHUNKED = 'Transfer-Encoding: chunked\r\n'

const BAD = [
  'GET  /public/x HTTP/1.1\r\n',
  'GET /public/x  HTTP/1.1\r\n',
  'GET   /public/x   HTTP/1.1\r\n',
  'GET\t/public/x HTTP/1.1\r\n',
  'GET /public/x\tHTTP/1.1\r\n',
  'GET /public/x HTTP/1.1 \r\n',
  'GET /public/x RTSP/1.0\r\n',
  'OPTIONS /public/x RTSP/1.0\r\n',
  'SOURCE /public/x ICE/1.0\r\n',
  'GET /public/x HTTP/0.9\r\n',
  'GET /public/x HTTP/2.0\r\n',
  'GET /public/x HTTP/1.2\r\n',
  'GET /public/x\r\n',
  'GET /public/x \r\n',
  'GET /public/x HTTP/1.1\n',
  'GET /public/x http/1.1\r\n',
  ' GET /public/x HTTP/1.1\r\n',
  '\r\nGET  /public/x HTTP/1.1\r\n',
  'GET /public/x#y  HTTP/1.1\r\n',
]
const GOOD = ['GET /public/x HTTP/1.1\r\n', 'GET /public/x HTTP/1.0\r\n', '\r\n\r\nGET /public/x HTTP/1.1\r\n']

describe('a request line', () => {
  test.each(BAD)('%j is 400, is not forwarded, and ends the connection', async (line) => {
    const { socket, ended, statuses } = talk()
    socket.write(`${line}${HOST}\r\n${get('/public/next')}`)
    await until(ended)
    expect([statuses(), targets()]).toEqual([[400], []])
  })

  test.each(BAD.filter((line) => line.startsWith('GET  ') || line.includes('RTSP')))(
    '%j is 400 behind other requests, which are answered',
    async (line) => {
      const { socket, ended, statuses } = talk()
      const body = `POST /public/2 HTTP/1.1\r\n${HOST}Content-Length: 3\r\n\r\nabc`
      socket.write(`${get('/public/1')}${body}${line}${HOST}\r\n`)
      await until(ended)
      expect([statuses(), targets()]).toEqual([
        [200, 200, 400],
        ['/public/1', '/public/2'],
      ])
    },
  )

  test('that is malformed is 400 as the next one of a connection', async () => {
    const { socket, ended, statuses } = talk()
    for (const count of [1, 2, 3]) {
      socket.write(get(`/public/${count}`))
      await until(() => statuses().length === count)
    }
    socket.write(`GET  /public/4 HTTP/1.1\r\n${HOST}\r\n`)
    await until(ended)
    expect([statuses(), targets().length]).toEqual([[200, 200, 200, 400], 3])
    expect(h.log).toContainEqual(
      expect.objectContaining({ reason: 'request_invalid', detail: 'the request line is malformed' }),
    )
  })

  test.each(['GET  /public/x HTTP/1.1\r\n', 'GET /public/x RTSP/1.0\r\n', ...GOOD])(
    '%j is judged alike when it comes byte by byte',
    async (line) => {
      const { socket, statuses } = talk()
      for (const byte of `${line}${HOST}\r\n`) {
        socket.write(byte)
        await new Promise((resolve) => setImmediate(resolve))
      }
      await until(() => statuses().length === 1)
      expect(statuses()).toEqual([GOOD.includes(line) ? 200 : 400])
    },
  )

  test.each(['GET  /public/x HTTP/1.1\r\n', 'GET /public/x RTSP/1.0\r\n'])('%j is 400 over TLS', async (line) => {
    await h.close()
    const { certificate, key } = await makeCertificate({ names: ['localhost'], days: 1, nowMs: Date.now() })
    const tls = { ca: null, cert: Buffer.from(certificate), key: Buffer.from(key) }
    h = await startHarness({ routes: ROUTES, certificates: { ...NO_CERTIFICATES, tls } })
    const open = () => talk(connectTls({ port: h.port, host: '127.0.0.1', rejectUnauthorized: false }))
    const good = open()
    good.socket.write(get('/public/1'))
    await until(() => good.statuses().length === 1)
    good.socket.write(`${line}${HOST}\r\n`)
    await until(good.ended)
    expect(good.statuses()).toEqual([200, 400])
  })

  test.each([
    ['with a body', 'Content-Length: 3\r\n', 'abc'],
    ['with a chunked body', CHUNKED, '3\r\nabc\r\n0\r\n\r\n'],
    ['that waits for 100', 'Expect: 100-continue\r\nContent-Length: 3\r\n', 'abc'],
    ['that asks for a WebSocket', 'Connection: Upgrade\r\nUpgrade: websocket\r\n', ''],
  ])('that is malformed is 400 %s', async (_what, fields, body) => {
    const { socket, ended, statuses } = talk()
    socket.write(`POST  /public/x HTTP/1.1\r\n${HOST}${fields}\r\n${body}`)
    await until(ended)
    expect([statuses(), targets()]).toEqual([[400], []])
  })

  test('of a WebSocket handshake is judged before its upgrade', async () => {
    const { socket, ended, statuses } = talk()
    const key = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
    socket.write(`GET  /socket HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n${key}\r\n`)
    await until(ended)
    expect([statuses(), targets()]).toEqual([[400], []])
  })

  test('of a head that never ends is 431, though the parser counts no spaces', async () => {
    const { socket, ended, statuses } = talk()
    const blanks = ' '.repeat(8_192)
    socket.write(`GET /public/x HTTP/1.1\r\n${HOST}X-Blank:`)
    for (let at = 0; at < 16 && !ended(); at += 1) {
      socket.write(blanks)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    await until(ended)
    expect([statuses(), targets()]).toEqual([[431], []])
  })
})

describe('a request whose beginning is hidden by a chunked body', () => {
  const chunked = (path: string): string => `POST ${path} HTTP/1.1\r\n${HOST}${CHUNKED}\r\n3\r\nabc\r\n0\r\n\r\n`

  test('is not run, and the connection ends after the answer before it', async () => {
    const { socket, ended, statuses } = talk()
    socket.write(`${chunked('/public/1')}${get('/public/2')}`)
    await until(ended)
    expect([statuses(), targets()]).toEqual([[200], ['/public/1']])
  })

  test('is not run either when its first bytes come with that body, and others that look like a request follow', async () => {
    const { socket, ended, statuses } = talk()
    socket.write(`${chunked('/public/1')}GET  /public/2 HTTP/1.1\r\nX: `)
    await until(() => statuses().length === 1)
    socket.write(get('/public/3'))
    await until(ended)
    expect([statuses(), targets()]).toEqual([[200], ['/public/1']])
  })

  test.each([
    ['in one piece', [chunked('/public/1')]],
    ['byte by byte', [...chunked('/public/1')]],
    ['with trailers', [chunked('/public/1').replace(/\r\n$/, 'X-Sum: 1\r\n\r\n')]],
  ])('runs when it comes later: %s', async (_how, pieces) => {
    const { socket, statuses } = talk()
    for (const count of [1, 2, 3]) {
      for (const piece of pieces) {
        socket.write(piece)
        await new Promise((resolve) => setImmediate(resolve))
      }
      await until(() => statuses().length === 2 * count - 1)
      socket.write(get('/public/next'))
      await until(() => statuses().length === 2 * count)
    }
    expect(statuses()).toEqual(Array(6).fill(200))
  })
})

describe('requests behind bodies of a known length', () => {
  const post = (bytes: number): string =>
    `POST /public/x HTTP/1.1\r\n${HOST}Content-Length: ${bytes}\r\n\r\n${'G'.repeat(bytes)}`

  test.each([0, 1, 5_000, 200_000])('run after %i bytes, in whatever pieces they come', async (bytes) => {
    const { socket, statuses } = talk()
    const text = `${post(bytes)}${get('/public/y')}${post(bytes)}${get('/public/z')}`
    for (let at = 0; at < text.length; at += 7_919) {
      socket.write(text.slice(at, at + 7_919))
      await new Promise((resolve) => setImmediate(resolve))
    }
    await until(() => statuses().length === 4)
    expect([statuses(), targets()]).toEqual([
      [200, 200, 200, 200],
      ['/public/x', '/public/y', '/public/x', '/public/z'],
    ])
  })
})
