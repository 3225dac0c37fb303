/** What another party could read as another message, in many spellings: each is refused before the service hears of it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sendRaw } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, startHarness } from '../support/harness.ts'

const ROUTES = `
GET /public/**: public
POST /open: public
GET /hdr: member organization:{header.x-org}
GET /ws: {check: "viewer invoice:1", upgrade: [websocket]}
POST /reports: member organization:{body.org}
`.trim()
let h: Harness
let token: string
beforeAll(async () => {
  const grants = ['alice viewer invoice:1', 'alice member organization:acme']
  h = await startHarness({ routes: ROUTES, script: tuples(grants) })
  token = await h.issuer.token()
})
afterAll(() => h.close())
beforeEach(() => {
  h.upstream.reached.length = 0
})
const fields = (): string => `Host: app.test\r\nAuthorization: Bearer ${token}\r\n`
const refused = async (bytes: string | Buffer): Promise<void> => {
  const answer = await sendRaw(h.port, bytes)
  expect(answer.status).toBeGreaterThanOrEqual(400)
  expect(answer.status).toBeLessThan(500)
  expect(answer.text.match(/HTTP\/1\.1 /g)?.length).toBe(1)
  expect(h.upstream.reached).toEqual([])
}
const NEXT = 'GET /public/next HTTP/1.1\r\nHost: app.test\r\n\r\n'

describe('a body is refused', () => {
  test.each<readonly [string, string]>([
    ...['chunked,', ',chunked', '"chunked"', 'chunked;q=1', '', '\x0bchunked', '\xa0chunked'].map(
      (coding) =>
        [`with the coding ${JSON.stringify(coding)}`, `Transfer-Encoding: ${coding}\r\n\r\n0\r\n\r\n`] as const,
    ),
    ['with a coding that has no effect', 'Transfer-Encoding: identity\r\nContent-Length: 0\r\n\r\n'],
    ['with a NUL in the name of its coding', 'Transfer-Encoding\0: chunked\r\n\r\n0\r\n\r\n'],
    ['with a folded field before its coding', 'X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ...['0x5', '1e1', '5 5', '-1', '99999999999999999999', '9223372036854775808', '', '5.0', '5;x'].map(
      (length) => [`with the length ${JSON.stringify(length)}`, `Content-Length: ${length}\r\n\r\nhello`] as const,
    ),
    ...['0x5', '-1', '+5', '5 ', ' 5', '', '10000000000000005'].map(
      (size) =>
        [
          `with a chunk of ${JSON.stringify(size)}`,
          `Transfer-Encoding: chunked\r\n\r\n${size}\r\nhello\r\n0\r\n\r\n`,
        ] as const,
    ),
    ['with line ends that are LF alone', 'Transfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n'],
    ['with a line end in a quoted extension', 'Transfer-Encoding: chunked\r\n\r\n5;a="\r\n"\r\nhello\r\n0\r\n\r\n'],
    ['with a chunk that is longer than it says', 'Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n'],
    ['with a length behind it', 'Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n'],
    ['with a coding behind it', 'Transfer-Encoding: chunked\r\n\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['with a request line behind it', 'Transfer-Encoding: chunked\r\n\r\n0\r\nGET /public/x HTTP/1.1\r\n\r\n'],
    ['with two expectations in one', 'Expect: 100-continue, x\r\nContent-Length: 0\r\n\r\n'],
    ['with an empty expectation', 'Expect:\r\nContent-Length: 0\r\n\r\n'],
  ])('%s', async (_, rest) => {
    await refused(Buffer.from(`POST /open HTTP/1.1\r\n${fields()}${rest}`, 'latin1'))
  })
})

describe('a request line is refused', () => {
  test.each([
    'GET\t/public/x\tHTTP/1.1',
    'GET /public/x HTTP/1.2',
    'GET /public/x HTTP/1.10',
    'GET /public/x HTTP/01.1',
    'GET /public/x http/1.1',
    'GET /public/x HTTP/1',
    'GET /public/x HTTP/1.1 ',
    ' GET /public/x HTTP/1.1',
    'get /public/x HTTP/1.1',
    'G@T /public/x HTTP/1.1',
    'PRI /public/x HTTP/1.1',
    'OPTIONS * HTTP/1.1',
    'CONNECT /public/x HTTP/1.1',
    'CONNECT http://app.test/ HTTP/1.1',
    'GET http://other.test/public/x HTTP/1.1',
    'GET http://app.test:80/public/x HTTP/1.1',
    'GET http://app.test@evil.test/public/x HTTP/1.1',
    'GET ws://app.test/public/x HTTP/1.1',
  ])('%j', async (line) => {
    await refused(`${line}\r\n${fields()}Connection: close\r\n\r\n`)
  })
})

describe('a host is refused', () => {
  test.each([
    'app.test:80a',
    'app.test.',
    'a@app.test',
    'app.test/x',
    'app.test#x',
    'app%2etest',
    '',
    'app.test,app.test',
  ])('%j', async (host) => {
    await refused(`GET /public/x HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  })
})

describe('a handshake of WebSocket is refused', () => {
  const HANDSHAKE =
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
  test.each<readonly [string, string]>([
    ['with a body', `${HANDSHAKE}Content-Length: ${NEXT.length}\r\n\r\n${NEXT}`],
    ['with a chunked body', `${HANDSHAKE}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n${NEXT}`],
    ['with an older version and a request behind it', `${HANDSHAKE.replace('13', '8')}\r\n${NEXT}`],
    ['with two keys and a request behind it', `${HANDSHAKE}Sec-WebSocket-Key: x\r\n\r\n${NEXT}`],
  ])('%s', async (_, rest) => {
    await refused(`GET /ws HTTP/1.1\r\n${fields()}${rest}`)
  })
})

test.each(['host', 'content_length', 'if_match', 'Authorization'])(
  'Connection that lists %s is refused',
  async (name) => {
    await refused(`GET /public/x HTTP/1.1\r\n${fields()}Connection: close, ${name}\r\n\r\n`)
  },
)

describe('a JSON body from which a check reads is refused', () => {
  const T = 'application/json'
  test.each<[string, string, string | Buffer]>([
    ['a byte order mark', T, '\ufeff{"org":"acme"}'],
    ['UTF-16', T, Buffer.from('{"org":"acme"}', 'utf16le')],
    ['UTF-7', `${T}; charset=utf-7`, '{"org":"acme","+AG8-rg":"victim"}'],
    ['two charsets', `${T}; charset=utf-8; charset=utf-16`, '{"org":"acme"}'],
    ['a list of types', `${T}, text/plain`, '{"org":"acme"}'],
    ['a sequence', 'application/json-seq', '{"org":"acme"}'],
    ['an overlong key', T, Buffer.from('{"org":"acme","\xc1\xafrg":"victim"}', 'latin1')],
    ['surrogates in UTF-8', T, Buffer.from('{"org":"acme","x\xed\xa0\xbd\xed\xb8\x80":1}', 'latin1')],
    ['half of a pair in a key', T, '{"org":"acme","or\\ud800g":"victim"}'],
    ['an invisible character in a key', T, '{"org":"acme","or\u200bg":"victim"}'],
    ['a blank in a key', T, '{"org":"acme"," org":"victim"}'],
    ['a key in full width', T, '{"org":"acme","\uff4frg":"victim"}'],
    ['a sign before a key', T, '{"org":"acme","$org":"victim"}'],
    ['an infinite number', T, '{"org":1e400}'],
    ['a number beyond exact ones', T, '{"org":12345678901234567890}'],
    ['minus zero', T, '{"org":-0}'],
    ['an operator', T, '{"org":{"$eq":"acme"}}'],
    ['a key of all objects', T, '{"__proto__":{"org":"acme"}}'],
    ['a comment', T, '{"org":"acme"/*,"org":"victim"*/}'],
    ['two texts', T, '{"org":"acme"}{"org":"victim"}'],
    ['a NUL at the end', T, '{"org":"acme"}\0'],
    ['a comma at the end', T, '{"org":"acme",}'],
    ['letters that combine', T, '{"org":"a\u0301cme"}'],
  ])('with %s', async (_, type, body) => {
    const head = `POST /reports HTTP/1.1\r\n${fields()}Content-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n`
    await refused(Buffer.concat([Buffer.from(head), Buffer.from(body)]))
  })
})
