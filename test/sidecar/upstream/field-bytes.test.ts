/** Bytes beyond ASCII in fields are those that were sent, in answers and requests, over both versions (RFC 9110 section 5.5). */
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Harness, startHarness } from '../support/harness.ts'
import { ask, openSession } from '../support/http2-client.ts'

const NAMES: readonly (readonly [string, string])[] = [
  ['UTF-8 beyond Latin-1', Buffer.from('日本 – b.pdf').toString('latin1')],
  ['UTF-8 within Latin-1', Buffer.from('été.pdf').toString('latin1')],
  ['Latin-1', '\xe9t\xe9.pdf'],
  ['Shift_JIS', '\x93\xfa\x96\x7b.pdf'],
  ['every byte from 0x80', Array.from({ length: 128 }, (_, at) => String.fromCharCode(128 + at)).join('')],
]
const FIELDS = ['Content-Disposition', 'content-disposition', 'Content-Description', 'X-Name', 'Location', 'ETag']
const BODIES = [
  ['of known length', 'Content-Length: 2\r\n\r\nok'],
  ['in chunks', 'Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'],
  ['that are empty', 'Content-Length: 0\r\n\r\n'],
] as const

let server: Server
let h: Harness
let answer = ''
let asked = ''
beforeAll(async () => {
  server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      asked += chunk.toString('latin1')
      if (/\r\n\r\n(?:$|\{\}|2\r\n\{\}\r\n0\r\n)/.test(asked)) socket.write(answer, 'latin1')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  h = await startHarness({ routes: '"* /**": public' })
  h.upstream.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  h.apply('"* /**": public')
})
afterAll(async () => {
  await h.close()
  server.close()
})

async function send(bytes: string): Promise<string> {
  asked = ''
  const socket = connect(h.port, '127.0.0.1')
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
  })
  socket.on('error', () => undefined)
  socket.write(bytes, 'latin1')
  await new Promise((resolve) => socket.on('close', resolve))
  return text
}

describe.each(NAMES)('a file name in %s', (_encoding, name) => {
  const value = `attachment; filename="${name}"`

  test.each(BODIES)('comes to the client as the service wrote it, in answers %s', async (_how, body) => {
    for (const field of FIELDS)
      for (const head of [`${field}: ${value}\r\n${body}`, body.replace('\r\n', `\r\n${field}: ${value}\r\n`)]) {
        answer = `HTTP/1.1 200 OK\r\n${head}`
        for (const method of ['GET', 'HEAD']) {
          if (method === 'HEAD') answer = answer.slice(0, answer.indexOf('\r\n\r\n') + 4)
          const text = await send(`${method} /x HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n`)
          expect(text).toMatch(/^HTTP\/1\.1 200 /)
          expect(text).toContain(`\r\n${field}: ${value}\r\n`)
        }
      }
  })

  test('comes to a client of HTTP/2 as the service wrote it', async () => {
    for (const [, body] of BODIES) {
      answer = `HTTP/1.1 200 OK\r\nContent-Disposition: ${value}\r\n${body}`
      asked = ''
      const session = openSession(h.port)
      const { headers } = await ask(session, 'GET /x')
      session.destroy()
      expect(headers['content-disposition']).toBe(value)
    }
  })

  test.each([
    ['of known length', 'Content-Length: 2\r\n\r\n{}'],
    ['in chunks', 'Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n'],
    ['with trailers', 'Transfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n2\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n'],
  ])('comes to the service as the client wrote it, in requests %s', async (_how, body) => {
    answer = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'
    for (const field of FIELDS) {
      const head = `POST /x HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n`
      const text = await send(`${head}${body.replace('\r\n', `\r\n${field}: ${value}\r\n`)}`)
      expect(text).toMatch(/^HTTP\/1\.1 200 /)
      expect(asked.toLowerCase()).toContain(`\r\n${field}: ${value}\r\n`.toLowerCase())
    }
  })
})

const VALUE = `attachment; filename="${Buffer.from('été – 日本.pdf').toString('latin1')}"`
const DISPOSITION = `Content-Disposition: ${VALUE}`
/** All of the sidecar's ways to send an answer on. */
const ROUTES = `GET /plain: public
GET /cors: {check: public, cors: {origins: ["https://spa.test"], credentials: true}}
GET /who: {public: with_identity}
GET /guests: {check: {equals: {client.address: 127.0.0.1}}, guests: true}
GET /list: {check: signed_in, answer: {each: "$[*]", keep: "viewer doc:{item}"}}
GET /lines: {check: signed_in, answer: {each: ndjson, keep: "viewer doc:{item.id}"}}
GET /moved/**: {check: public, upstream: {url: "SERVICE", strip_path: /moved, add_path: /base}}
GET /socket: {check: public, upgrade: [websocket]}`
const JSON_TYPE = 'Content-Type: application/json\r\n'

describe('a file name beyond ASCII comes as the service wrote it', () => {
  beforeAll(() => h.apply(ROUTES.replace('SERVICE', h.upstream.origin.replace('127.0.0.1', 'localhost'))))

  test.each<[string, string, string, (string | false)?]>([
    [
      'of a part of a file',
      'GET /plain',
      `HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/9\r\n${DISPOSITION}\r\nContent-Length: 2\r\n\r\nok`,
    ],
    ['of a file that did not change', 'GET /plain', `HTTP/1.1 304 Not Modified\r\n${DISPOSITION}\r\n\r\n`],
    ['of an error', 'GET /plain', `HTTP/1.1 404 Not Found\r\n${DISPOSITION}\r\nContent-Length: 2\r\n\r\nno`],
    [
      'beside its length in the middle',
      'GET /plain',
      `HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 2\r\n${DISPOSITION}\r\nB: c\r\n\r\nok`,
    ],
    [
      'twice',
      'GET /plain',
      `HTTP/1.1 200 OK\r\nContent-Disposition: inline\r\nContent-Length: 2\r\n${DISPOSITION}\r\n\r\nok`,
    ],
    [
      'to a page of another origin',
      'GET /cors',
      `HTTP/1.1 200 OK\r\n${DISPOSITION}\r\nContent-Length: 2\r\n\r\nok`,
      'Origin: https://spa.test',
    ],
    ['where guests are told apart', 'GET /who', `HTTP/1.1 200 OK\r\nContent-Length: 2\r\n${DISPOSITION}\r\n\r\nok`],
    [
      'where guests are asked about',
      'GET /guests',
      `HTTP/1.1 200 OK\r\nContent-Length: 2\r\n${DISPOSITION}\r\n\r\nok`,
      false,
    ],
    [
      'of a list whose items are left out',
      'GET /list',
      `HTTP/1.1 200 OK\r\n${JSON_TYPE}Content-Length: 5\r\n${DISPOSITION}\r\n\r\n["1"]`,
    ],
    [
      'of lines that are left out',
      'GET /lines',
      `HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: 11\r\n${DISPOSITION}\r\n\r\n{"id":"1"}\n`,
    ],
    [
      'of a service below another path',
      'GET /moved/x',
      `HTTP/1.1 200 OK\r\nContent-Length: 2\r\n${DISPOSITION}\r\n\r\nok`,
    ],
    [
      'of a service that ends the connection',
      'GET /plain',
      `HTTP/1.0 200 OK\r\nContent-Length: 2\r\n${DISPOSITION}\r\n\r\nok`,
    ],
    [
      'behind a hint',
      'GET /plain',
      `HTTP/1.1 103 Early Hints\r\n${DISPOSITION}\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n${DISPOSITION}\r\n\r\nok`,
    ],
    [
      'where an upgrade is refused',
      'GET /socket',
      `HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n${DISPOSITION}\r\n\r\nno`,
      'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ],
  ])('%s', async (_, line, says, more = 'A: b') => {
    answer = says
    const token = more === false ? '' : `Authorization: Bearer ${await h.issuer.token()}\r\n`
    const own = more === false || more.includes('Connection') ? more : `${more}\r\nConnection: close`
    const text = await send(`${line} HTTP/1.1\r\nHost: app.test\r\n${token}${own || 'Connection: close'}\r\n\r\n`)
    expect(text).toMatch(/^HTTP\/1\.1 (?:200|206|304|404|103|400) /)
    expect(text.toLowerCase()).toContain(`\r\n${DISPOSITION}\r\n`.toLowerCase())
  })

  test('to a client of HTTP/1.0, and beside the cookie of a service', async () => {
    answer = `HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie: a=\xe9\r\n${DISPOSITION}\r\n\r\nok`
    const text = await send('GET /plain HTTP/1.0\r\nHost: app.test\r\n\r\n')
    expect(text).toContain(`\r\n${DISPOSITION}\r\n`)
    expect(text).toContain('\r\nSet-Cookie: a=\xe9\r\n')
  })
})
