/** A service that speaks broken HTTP/1.1: what it breaks off must look broken off to the client, and nothing is made up for it. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Harness, startHarness } from '../support/harness.ts'
import { ask, openSession } from '../support/http2-client.ts'

const ROUTES = '"* /**": public'
/** What the service writes after each request, in pieces, and then does. */
let answer: readonly string[] = []
/** What it writes before, with each part of the request. */
let early = ''
let ending: (socket: Socket) => unknown = () => undefined
let server: Server
let h: Harness

beforeAll(async () => {
  server = createServer((socket) => {
    let asked = ''
    socket.on('error', () => undefined)
    socket.on('data', async (chunk) => {
      asked += chunk
      socket.write(early)
      const isWhole = asked.startsWith('POST') ? asked.includes('\r\n0\r\n') : asked.includes('\r\n\r\n')
      if (!isWhole) return
      asked = ''
      for (const piece of answer) {
        socket.write(piece, 'latin1')
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      ending(socket)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  h = await startHarness({ routes: ROUTES })
  const { port } = server.address() as AddressInfo
  h.upstream.origin = `http://127.0.0.1:${port}`
  h.apply(ROUTES)
})
afterAll(async () => {
  await h.close()
  server.close()
})

const GET = 'GET /x HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n'
const GET_1_0 = 'GET /x HTTP/1.0\r\nHost: app.test\r\n\r\n'
const WITH_TRAILERS =
  'POST /x HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n'

/** Without the informational responses before it. */
const finalOf = (text: string): string => text.replace(/^(?:HTTP\/1\.1 1\d\d [^\r]*\r\n(?:[^\r]+\r\n)*\r\n)*/, '')

/** The whole answer, and whether the connection was reset. */
async function send(bytes: string | readonly string[]): Promise<{ readonly text: string; readonly isReset: boolean }> {
  const socket = connect(h.port, '127.0.0.1')
  let text = ''
  let isReset = false
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
  })
  socket.on('error', () => {
    isReset = true
  })
  const closed = new Promise((resolve) => socket.on('close', resolve))
  for (const part of [bytes].flat()) {
    socket.write(part)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await closed
  return { text, isReset }
}
const CLOSED = (socket: Socket): unknown => socket.end()
const RESET = (socket: Socket): unknown => socket.resetAndDestroy()
const UNTIL_CLOSE = 'HTTP/1.1 200 OK\r\n\r\n'
const CHUNKED = 'HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n'
const LENGTH = 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\n'

describe('a body that the service breaks off', () => {
  const BROKEN: readonly (readonly [string, string, typeof ending])[] = [
    ['by a reset, where its end would be the end of the connection', UNTIL_CLOSE, RESET],
    ['by a reset before its last chunk', CHUNKED, RESET],
    ['before its last chunk', CHUNKED, CLOSED],
    ['before its length', LENGTH, CLOSED],
    ['by a reset before its length', LENGTH, RESET],
  ]
  test.each(BROKEN)('%s is not whole to the client', async (_name, head, how) => {
    answer = [head, head === CHUNKED ? '4\r\nhalf\r\n' : 'half']
    ending = how
    for (const request of [GET, WITH_TRAILERS]) {
      const { text } = await send(request)
      expect(text).toContain('half')
      expect(text.endsWith('\r\n0\r\n\r\n')).toBe(false)
    }
    const session = openSession(h.port)
    expect((await ask(session, 'GET /x')).reset).not.toBe(0)
    session.destroy()
  })

  test.each(BROKEN)('%s is a reset connection to a client of HTTP/1.0', async (_name, head, how) => {
    answer = [head, head === CHUNKED ? '4\r\nhalf\r\n' : 'half']
    ending = how
    expect((await send(GET_1_0)).isReset).toBe(true)
  })

  test.each([
    [UNTIL_CLOSE, 'whole'],
    [CHUNKED, '5\r\nwhole\r\n0\r\n\r\n'],
    [LENGTH.replace('9', '5'), 'whole'],
  ])('but that ends as it says is whole: %j', async (head, body) => {
    answer = [head, body]
    ending = CLOSED
    expect((await send(GET)).text).toMatch(/whole(\r\n0\r\n\r\n)?$/)
    const { text, isReset } = await send(GET_1_0)
    expect([text.endsWith('whole'), isReset]).toEqual([true, false])
  })
})

test.each([
  [
    '101 that nobody asked for',
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n',
  ],
  ['101 without a protocol', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
  ['a status below 100', 'HTTP/1.1 099 X\r\nContent-Length: 2\r\n\r\nok'],
  ['a status above 599', 'HTTP/1.1 600 X\r\nContent-Length: 2\r\n\r\nok'],
  ['the status 999', 'HTTP/1.1 999 X\r\nContent-Length: 2\r\n\r\nok'],
  ['an informational response alone', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
])('%s is 502, and never an answer of ours', async (_name, text) => {
  answer = [text]
  ending = CLOSED
  for (const request of [GET, GET_1_0, WITH_TRAILERS])
    expect(finalOf((await send(request)).text)).toMatch(/^HTTP\/1\.1 502 [\s\S]*upstream_unavailable/)
  const session = openSession(h.port)
  const { status, reset, body } = await ask(session, 'GET /x')
  session.close()
  expect([status, reset, body]).toEqual([502, 0, expect.stringContaining('upstream_unavailable')])
})

test('informational responses without end are 504, although each of them is in time', async () => {
  answer = [...Array(200).fill('HTTP/1.1 103 Early Hints\r\n\r\n'), 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok']
  ending = CLOSED
  h.apply(ROUTES, 'limits: {upstream_headers_ms: 100}')
  for (const request of [GET, WITH_TRAILERS])
    expect(finalOf((await send(request)).text)).toMatch(/^HTTP\/1\.1 504 [\s\S]*upstream_timeout/)
  h.apply(ROUTES)
})

test('informational responses during a long upload take no time from the answer', async () => {
  early = 'HTTP/1.1 103 Early Hints\r\n\r\n'
  answer = ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok']
  ending = CLOSED
  h.apply(ROUTES, 'limits: {upstream_headers_ms: 1500}')
  const head = 'POST /x HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n'
  const parts = [head, ...Array(110).fill('1\r\na\r\n'), '0\r\n\r\n']
  const { text } = await send(parts)
  early = ''
  h.apply(ROUTES)
  expect(finalOf(text)).toMatch(/^HTTP\/1\.1 200 /)
})

test('an answer keeps all its fields, however many they are', async () => {
  const fields = Array.from({ length: 1_200 }, (_, at) => `x${at}: 1\r\n`).join('')
  answer = [`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n${fields}\r\nok`]
  ending = CLOSED
  for (const request of [GET, WITH_TRAILERS]) expect((await send(request)).text).toMatch(/\r\nx1199: 1\r\n/)
})

test('204 has no length, which a careless client would wait for or take from the next answer', async () => {
  answer = ['HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok']
  ending = CLOSED
  const { text } = await send(GET)
  expect(text).toMatch(/^HTTP\/1\.1 204 /)
  expect(text.toLowerCase()).not.toContain('content-length')
})

test('blanks behind a value are no part of it (RFC 9110 section 5.5)', async () => {
  answer = ['HTTP/1.1 200 OK\r\nContent-Length: 5  \r\nX-A: b \t \r\n\r\n', 'whole']
  ending = () => undefined
  for (const request of [GET, WITH_TRAILERS])
    expect((await send(request)).text).toMatch(/\r\nX-A: b\r\n[\s\S]*\r\n\r\nwhole$/)
  const session = openSession(h.port)
  const { body, reset, headers } = await ask(session, 'GET /x')
  session.close()
  expect([body, reset, headers['x-a'], headers['content-length']]).toEqual(['whole', 0, 'b', '5'])
})

describe('an informational response that nobody asked for', () => {
  test.each([
    ['100', 'HTTP/1.1 100 Continue\r\n\r\n', ''],
    ['100 with fields', 'HTTP/1.1 100 Continue\r\nX-A: 1\r\nContent-Length: 0\r\n\r\n', ''],
    ['102', 'HTTP/1.1 102 Processing\r\n\r\n', 'HTTP/1.1 102 Processing\r\n\r\n'],
    [
      '103 with other bytes than ASCII',
      'HTTP/1.1 103 X\r\nLink: </\xe9\x81>\r\nConnection: x\r\n\r\n',
      'HTTP/1.1 103 Early Hints\r\nLink: </\xe9\x81>\r\n\r\n',
    ],
    ['150', 'HTTP/1.1 150 X\r\n\r\n', 'HTTP/1.1 150 unknown\r\n\r\n'],
    [
      'several',
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n',
      'HTTP/1.1 103 Early Hints\r\n\r\n',
    ],
  ])('%s is forwarded but 100, before the final one (RFC 9110 section 15.2)', async (_name, text, forwarded) => {
    ending = () => undefined
    const final = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
    for (const pieces of [[text + final], [text, final]])
      for (const request of [GET, WITH_TRAILERS]) {
        answer = pieces
        const got = (await send(request)).text
        expect(finalOf(got)).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\nok$/)
        expect(got.slice(0, got.length - finalOf(got).length)).toBe(forwarded)
      }
    answer = [text + final]
    expect((await send(GET_1_0)).text).toMatch(/^HTTP\/1\.[01] 200 OK\r\n/)
  })
})

test.each(['zz\r\nhalf\r\n', '4;a\x01\r\n'])('a bad chunk before the first byte is 502: %j', async (chunk) => {
  ending = () => undefined
  for (const pieces of [[CHUNKED + chunk], [CHUNKED, chunk]]) {
    answer = pieces
    for (const request of [GET, WITH_TRAILERS]) {
      const { text } = await send(request)
      expect(text).toMatch(/^HTTP\/1\.1 502 [\s\S]*upstream_unavailable/)
    }
  }
  answer = [CHUNKED + chunk]
  const session = openSession(h.port)
  expect(await ask(session, 'GET /x')).toMatchObject({ status: 502 })
  session.destroy()
})

test.each([
  ['another coding in front', 'Transfer-Encoding: gzip, chunked'],
  ['another coding in a field of its own', 'Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked'],
  ['another coding behind', 'Transfer-Encoding: chunked, gzip'],
  ['another coding alone', 'Transfer-Encoding: gzip'],
  ['identity', 'Transfer-Encoding: identity'],
  ['identity in front', 'Transfer-Encoding: identity, chunked'],
  ['chunked twice', 'Transfer-Encoding: chunked, chunked'],
  ['chunked twice in two fields', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked'],
  ['a parameter', 'Transfer-Encoding: chunked;q=1'],
  ['a tab behind it', 'Transfer-Encoding: chunked\t'],
  ['a blank and a tab behind it', 'transfer-encoding:chunked \t '],
  ['a name that is almost chunked', 'Transfer-Encoding: xchunked'],
  ['an empty value', 'Transfer-Encoding: '],
  ['an empty value behind chunked', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: '],
  ['a length beside it', 'Transfer-Encoding: chunked\r\nContent-Length: 5'],
  ['a length before it', 'Content-Length: 5\r\nTransfer-Encoding: chunked'],
])('a transfer coding with %s is 502, because the body would be read wrongly', async (_name, fields) => {
  ending = CLOSED
  for (const body of ['5\r\nwhole\r\n0\r\n\r\n', 'whole']) {
    answer = [`HTTP/1.1 200 OK\r\n${fields}\r\n\r\n${body}`]
    for (const request of [GET, WITH_TRAILERS])
      expect((await send(request)).text).toMatch(/^HTTP\/1\.1 502 [\s\S]*upstream_unavailable/)
  }
})

test.each(['chunked', 'Chunked', ' chunked '])('the transfer coding %j is understood', async (coding) => {
  answer = [`HTTP/1.1 200 OK\r\nTransfer-Encoding:${coding}\r\n\r\n5\r\nwhole\r\n0\r\n\r\n`]
  ending = () => undefined
  for (const request of [GET, WITH_TRAILERS]) expect((await send(request)).text).toMatch(/whole\r\n0\r\n\r\n$/)
})

test.each([
  ['two different lengths', 'Content-Length: 5\r\nContent-Length: 6'],
  ['a list of different lengths', 'Content-Length: 5, 6'],
  ['the same length twice', 'Content-Length: 5\r\nContent-Length: 5'],
  ['a list of one length', 'Content-Length: 5, 5'],
  ['a sign', 'Content-Length: +5'],
  ['a negative length', 'Content-Length: -5'],
  ['a hexadecimal length', 'Content-Length: 0x5'],
  ['blanks within', 'Content-Length: 0 5'],
  ['no length', 'Content-Length: '],
  ['a length that no number holds', `Content-Length: ${'9'.repeat(25)}`],
])('%s is 502', async (_name, fields) => {
  answer = [`HTTP/1.1 200 OK\r\n${fields}\r\n\r\nwhole`]
  ending = CLOSED
  for (const request of [GET, WITH_TRAILERS])
    expect((await send(request)).text).toMatch(/^HTTP\/1\.1 502 [\s\S]*upstream_unavailable/)
})
