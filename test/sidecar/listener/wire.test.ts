import { connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { field, sendRaw } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { PATH_GRANTS, PATH_ROUTES } from '../support/routes.ts'
import { fieldOf } from '../support/upstream.ts'

let h: Harness
let token: string
beforeAll(async () => {
  h = await startHarness({ routes: PATH_ROUTES, script: tuples(PATH_GRANTS) })
  token = await h.issuer.token()
})
afterAll(() => h.close())
beforeEach(() => {
  h.upstream.reached.length = 0
  h.upstream.handle = null
})

describe('the framing of a request', () => {
  const head = (lines: string): string =>
    `POST /invoices/1/approve HTTP/1.1\r\nHost: app.test\r\nAuthorization: Bearer ${token}\r\n${lines}`

  test.each([
    ['both lengths', 'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['two transfer codings', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n'],
    ['chunked twice', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['chunked not last', 'Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n'],
    ['another coding', 'Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'],
    ['a coding that looks like chunked', 'Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n'],
    ['a folded coding', 'Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n'],
    ['a line that ends in LF', 'Content-Length: 5\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['a bare CR', 'X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['a space before the colon', 'Content-Length : 5\r\n\r\nhello'],
    ['a LF in a chunk extension', 'Transfer-Encoding: chunked\r\n\r\n1;\n\r\nX\r\n0\r\n\r\n'],
    ['a CR in a chunk extension', 'Transfer-Encoding: chunked\r\n\r\n2;\rxx\r\nXX\r\n0\r\n\r\n'],
    ['a signed length', 'Content-Length: +5\r\n\r\nhello'],
    ['a list of lengths', 'Content-Length: 5, 5\r\n\r\nhello'],
    ['two lengths', 'Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello'],
    ['another expectation', 'Expect: magic\r\nContent-Length: 5\r\n\r\nhello'],
    ['a header without a name', ': x\r\nContent-Length: 5\r\n\r\nhello'],
    ['a NUL in a value', 'X: a\0b\r\nContent-Length: 5\r\n\r\nhello'],
  ])('with %s is 400, once, and ends the connection', async (_name, lines) => {
    const answer = await sendRaw(h.port, head(lines))
    expect(answer.status).toBe(400)
    expect(answer.text.match(/HTTP\/1\.1 /g)?.length).toBe(1)
    expect(h.upstream.reached).toEqual([])
  })

  test('with chunked and HTTP/1.0 is 400', async () => {
    const bytes = head('Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n').replace('HTTP/1.1', 'HTTP/1.0')
    expect((await sendRaw(h.port, bytes)).status).toBe(400)
  })

  test('is rebuilt for the upstream', async () => {
    const chunked = head(
      'Transfer-Encoding: chunked\r\nTrailer: X-Auth-Subject\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX-Auth-Subject: root\r\n\r\n',
    )
    expect((await sendRaw(h.port, chunked)).status).toBe(200)
    const [reached] = h.upstream.reached
    expect([reached?.body, fieldOf(reached, 'transfer-encoding'), fieldOf(reached, 'trailer')]).toEqual([
      'abcde',
      'chunked',
      null,
    ])
  })

  test('may let the client wait for 100, which comes only after the decision', async () => {
    const allowed = await sendRaw(h.port, `${head('Expect: 100-continue\r\nContent-Length: 5\r\n\r\n')}hello`)
    expect(allowed.text).toContain('HTTP/1.1 100 Continue')
    expect(allowed.status).toBe(200)
    const denied = await sendRaw(
      h.port,
      head('Expect: 100-continue\r\nContent-Length: 5\r\n\r\n').replace('/1/', '/2/'),
    )
    expect([denied.status, denied.text.includes('100 Continue'), field(denied, 'connection')]).toEqual([
      403,
      false,
      'close',
    ])
  })

  test('CONNECT is refused', async () => {
    expect((await sendRaw(h.port, 'CONNECT app.test:443 HTTP/1.1\r\nHost: app.test:443\r\n\r\n')).status).toBe(405)
  })

  test.each([
    [100, 200],
    [101, 431],
  ])('%i header fields are %i', async (count, status) => {
    const fields = Array.from({ length: count - 1 }, (_, at) => `X-${at}: ${at}`)
    expect((await h.send('GET /public/a/b', { token: null, fields })).status).toBe(status)
  })

  test('header fields over 32 KiB are 431', async () => {
    expect((await h.send('GET /public/a/b', { token: null, fields: [`X-Big: ${'a'.repeat(33_000)}`] })).status).toBe(
      431,
    )
  })

  test('an Upgrade is not made, and the request is an ordinary one', async () => {
    const fields = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__']
    expect((await h.send('GET /invoices/1', { token, fields })).status).toBe(200)
    const [reached] = h.upstream.reached
    expect([fieldOf(reached, 'upgrade'), fieldOf(reached, 'http2-settings')]).toEqual([null, null])
  })
})

describe('credentials', () => {
  test.each([
    [['Authorization: Bearer TOKEN', 'Authorization: Bearer TOKEN'], 400],
    [['Authorization: Bearer TOKEN, Bearer TOKEN'], 401],
    [['Authorization: Bearer'], 400],
    [['Authorization: Bearer a b'], 401],
    [['Authorization: Bearer x'], 401],
    [['Authorization: Basic YWxpY2U6eA=='], 401],
    [['Authorization: TOKEN'], 401],
    [['Cookie: access_token=TOKEN'], 401],
    [['X-Authorization: Bearer TOKEN'], 401],
    [['Authorization: bearer TOKEN'], 200],
    [['authorization: BEARER  TOKEN'], 200],
  ])('%j are %i', async (fields, status) => {
    const lines = fields.map((line) => line.replaceAll('TOKEN', token))
    expect((await h.send('GET /invoices/1', { token: null, fields: lines })).status).toBe(status)
  })

  test('under the DPoP scheme for an unbound token are refused', async () => {
    const answer = await h.send('GET /invoices/1', { token: null, fields: [`Authorization: DPoP ${token}`] })
    expect([answer.status, field(answer, 'www-authenticate')?.startsWith('DPoP error="invalid_token"')]).toEqual([
      401,
      true,
    ])
  })
})

describe('the answer of the upstream', () => {
  test('loses what belongs to its connection, and keeps the rest', async () => {
    h.upstream.handle = (_req, res) => {
      res.writeHead(200, [
        'Connection',
        'close, X-Secret',
        'X-Secret',
        '1',
        'X-Kept',
        '2',
        'Set-Cookie',
        'a=1',
        'Set-Cookie',
        'b=2',
      ])
      res.end('ok')
    }
    const answer = await h.send('GET /invoices/1', { token })
    expect([field(answer, 'x-secret'), field(answer, 'x-kept'), field(answer, 'set-cookie')]).toEqual([
      null,
      '2',
      'a=1 | b=2',
    ])
  })

  test('streams, with trailers', async () => {
    h.upstream.handle = (_req, res) => {
      res.writeHead(200, { trailer: 'x-sum' })
      res.write('first')
      setTimeout(() => {
        res.addTrailers({ 'x-sum': '7' })
        res.end('second')
      }, 50)
    }
    const answer = await h.send('GET /invoices/1', { token })
    expect(answer.body).toBe('firstsecond')
    expect(answer.text).toContain('x-sum: 7')
  })

  test('is cut when the upstream breaks it off', async () => {
    h.upstream.handle = (_req, res) => {
      res.writeHead(200, { 'content-length': '100' })
      res.write('short', () => res.destroy())
    }
    const answer = await h.send('GET /invoices/1', { token })
    expect([answer.status, answer.body]).toEqual([200, 'short'])
  })

  test('may come before the body of the request is complete', async () => {
    const bytes = `POST /public/upload HTTP/1.1\r\nHost: app.test\r\nContent-Length: 5\r\n\r\nhel`
    const socket = connect(h.port, '127.0.0.1')
    socket.write(bytes)
    await until(() => h.upstream.reached.length === 1)
    socket.destroy()
    await until(async () => (await h.send('GET /public/a/b')).status === 200)
  })
})
