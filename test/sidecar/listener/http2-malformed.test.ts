import { once } from 'node:events'
import { connect } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { countFields } from '../../../sidecar/listener/http2-frame-guard.ts'
import { effort } from '../../support/effort.ts'
import { until } from '../../support/until.ts'
import { startFramesHarness } from '../support/frames-harness.ts'
import type { Harness } from '../support/harness.ts'
import { ask, openSession } from '../support/http2-client.ts'
import {
  block,
  ERRORS,
  FLAGS,
  frame,
  headers,
  type Pair,
  PREFACE,
  pseudo,
  sendFrames,
  settings,
  TYPES,
} from '../support/raw-http2.ts'
import { fieldOf } from '../support/upstream.ts'

let h: Harness
beforeAll(async () => {
  h = await startFramesHarness()
})
afterAll(() => h.close())
beforeEach(() => {
  h.upstream.reached.length = 0
  h.upstream.handle = null
})
const GET = pseudo('GET', '/public/x')
const head = (...more: Pair[]): Buffer => headers(1, [...GET, ...more])

describe('a header section', () => {
  test('in order is answered', async () => {
    expect(await sendFrames(h.port, head(['x', 'y'], ['te', 'trailers']))).toMatchObject({ status: 200, goaway: null })
    expect(fieldOf(h.upstream.reached[0], 'te')).toBeNull()
  })

  test.each<[string, Pair]>([
    ['CR and LF in a value', ['x', 'a\r\nTransfer-Encoding: chunked']],
    ['a LF in a value', ['x', 'a\nb: c']],
    ['a CR in a value', ['x', 'a\rb']],
    ['a NUL in a value', ['x', 'a\0b']],
    ['a control character in a value', ['x', 'a\x01']],
    ['a space before a value', ['x', ' a']],
    ['a tab after a value', ['x', 'a\t']],
    ['a space in a name', ['x y', 'a']],
    ['a colon in a name', ['x:y', 'a']],
    ['CR and LF in a name', ['x\r\ny', 'a']],
    ['a NUL in a name', ['x\0', 'a']],
    ['a name that is not ASCII', ['x\xff', 'a']],
    ['an empty name', ['', 'a']],
    ['a credential with a NUL', ['authorization', 'Bearer a\0']],
  ])('with %s is 400', async (_name, pair) => {
    expect(await sendFrames(h.port, head(pair))).toMatchObject({ status: 400 })
    expect(h.upstream.reached).toEqual([])
  })

  test.each<[string, readonly Pair[]]>([
    ['Transfer-Encoding', [...GET, ['transfer-encoding', 'chunked']]],
    ['Connection', [...GET, ['connection', 'close']]],
    ['Connection, listing a field', [...GET, ['connection', 'x-auth-subject']]],
    ['Keep-Alive', [...GET, ['keep-alive', 'timeout=5']]],
    ['Proxy-Connection', [...GET, ['proxy-connection', 'close']]],
    ['Upgrade', [...GET, ['upgrade', 'websocket']]],
    ['TE other than trailers', [...GET, ['te', 'gzip']]],
    ['TE with more than trailers', [...GET, ['te', 'trailers, gzip']]],
    ['an upper-case name', [...GET, ['X-Foo', 'a']]],
    ['two paths', [...GET, [':path', '/invoices/1']]],
    ['two methods', [...GET, [':method', 'POST']]],
    ['two authorities', [...GET, [':authority', 'admin.test']]],
    ['two Host fields', [...GET, ['host', 'app.test'], ['host', 'admin.test']]],
    ['a pseudo-header field behind a field', [...GET.slice(0, 3), ['x', 'y'], [':path', '/public/x']]],
    ['an unknown pseudo-header field', [...GET, [':foo', 'bar']]],
    ['the pseudo-header field of an answer', [...GET, [':status', '200']]],
    ['no method', pseudo(null, '/public/x')],
    ['no scheme', pseudo('GET', '/public/x', { scheme: null })],
    ['no path', pseudo('GET', null)],
    ['no authority', pseudo('GET', '/public/x', { authority: null })],
    ['an empty path', pseudo('GET', '')],
    ['an asterisk for a path', pseudo('GET', '*')],
    ['a URL for a path', pseudo('GET', 'http://app.test/public/x')],
    ['a relative path', pseudo('GET', 'public/x')],
    ['a line break in the path', pseudo('GET', '/public/x\r\nX-Auth-Subject: root')],
    ['a request line in the path', pseudo('GET', '/public/x HTTP/1.1')],
    ['a request line in the method', pseudo('GET /invoices/1 HTTP/1.1', '/public/x')],
    ['an empty method', pseudo('', '/public/x')],
    ['an empty authority', pseudo('GET', '/public/x', { authority: '' })],
    ['user information in the authority', pseudo('GET', '/public/x', { authority: 'root@app.test' })],
    ['a content length that is no number', [...GET, ['content-length', '+5']]],
    ['two content lengths', [...GET, ['content-length', '0'], ['content-length', '0']]],
    ['a content length and no body', [...GET, ['content-length', '5']]],
    // RFC 8441 needs a setting that we do not send.
    ['extended CONNECT', [...pseudo('CONNECT', '/public/x'), [':protocol', 'websocket']]],
  ])('with %s is a stream error', async (_name, pairs) => {
    const answer = await sendFrames(h.port, headers(1, pairs))
    expect([answer.status, answer.resets.get(1)]).toEqual([0, ERRORS.protocol])
    expect(h.upstream.reached).toEqual([])
  })

  test.each<[string, number, readonly Pair[]]>([
    ['a Host field for another authority', 400, [...GET, ['host', 'admin.app.test']]],
    ['a Host field with another port', 400, [...GET, ['host', 'app.test:8080']]],
    ['the scheme of another connection', 400, pseudo('GET', '/public/x', { scheme: 'https' })],
    ['a scheme that is not HTTP', 400, pseudo('GET', '/public/x', { scheme: 'file' })],
    // Express would take it for POST, which may be another route.
    ['a method in lower case', 400, pseudo('post', '/any/x')],
    ['a method that nobody knows', 400, pseudo('FROB', '/any/x')],
    ['CONNECT', 405, pseudo('CONNECT', null, { scheme: null })],
    ['TRACE on a route for any method', 405, pseudo('TRACE', '/any/x')],
    ['a host that is not served', 421, pseudo('GET', '/public/x', { authority: 'evil.test' })],
    ['an authority that is no host', 400, pseudo('GET', '/public/x', { authority: 'app.test,evil.test' })],
    ['a dot segment', 400, pseudo('GET', '/public/../invoices/1')],
    ['an encoded slash', 400, pseudo('GET', '/public%2f..%2finvoices/1')],
    ['two slashes', 400, pseudo('GET', '//public/x')],
    ['a backslash', 400, pseudo('GET', '/public\\x')],
    ['a fragment', 400, pseudo('GET', '/public/x#/invoices/1')],
    ['a path that is not ASCII', 400, pseudo('GET', '/public/\xe9')],
    ['an authority in the path', 400, pseudo('GET', '//evil.test/public/x')],
    ['an expectation that cannot be met', 400, [...GET, ['expect', 'magic']]],
  ])('with %s is %i', async (_name, status, pairs) => {
    expect((await sendFrames(h.port, headers(1, pairs))).status).toBe(status)
    expect(h.upstream.reached).toEqual([])
  })

  test('gives each stream its own verdict, an ill-formed one among good ones', async () => {
    const answer = await sendFrames(
      h.port,
      Buffer.concat([
        headers(1, GET),
        headers(3, [...GET, ['x', 'a\nb']]),
        headers(5, [...GET, ['connection', 'close']]),
        headers(7, [...GET, ['cookie', 'a=1'], ['cookie', 'b=2']]),
        headers(9, [...GET, ['x', '']]),
      ]),
      { endCount: 5 },
    )
    expect([...answer.statuses].sort(([a], [b]) => a - b)).toEqual([
      [1, 200],
      [3, 400],
      [7, 200],
      [9, 200],
    ])
    expect([...answer.resets]).toEqual([[5, ERRORS.protocol]])
  })

  test.each([
    [96, 200],
    [101, 431],
    [200, 431],
    [300, 0],
  ])('with %i fields beside the host is %i', async (count, status) => {
    const fields = Array.from({ length: count }, (_, at): Pair => [`x-${at}`, 'y'])
    expect((await sendFrames(h.port, head(...fields))).status).toBe(status)
  })

  test('of more than 32 KiB is refused', async () => {
    const first = frame(TYPES.headers, FLAGS.endStream, 1, block([...GET, ['x', 'y'.repeat(16_000)]]))
    const more = frame(TYPES.continuation, FLAGS.none, 1, block([['y', 'y'.repeat(16_000)]]))
    const last = frame(TYPES.continuation, FLAGS.endHeaders, 1, block([['z', 'y'.repeat(16_000)]]))
    expect((await sendFrames(h.port, [first, more, last])).status).toBe(431)
    expect(h.upstream.reached).toEqual([])
  })

  test('may come in several frames, padded and with a priority', async () => {
    const fields = block([...GET, ['x-split', 'yes']])
    const start = Buffer.concat([Buffer.from([3, 0, 0, 0, 0, 16]), fields.subarray(0, 20), Buffer.alloc(3)])
    const answer = await sendFrames(h.port, [
      frame(TYPES.headers, FLAGS.endStream | FLAGS.padded | FLAGS.priority, 1, start),
      frame(TYPES.continuation, FLAGS.none, 1, fields.subarray(20, 21)),
      frame(TYPES.continuation, FLAGS.endHeaders, 1, fields.subarray(21)),
    ])
    expect([answer.status, fieldOf(h.upstream.reached[0], 'x-split')]).toEqual([200, 'yes'])
  })

  test('may come byte for byte', async () => {
    const bytes = Buffer.concat([PREFACE, settings(), head(['x-slow', 'yes'])])
    const socket = connect(h.port, '127.0.0.1').setNoDelay(true)
    for (const byte of bytes) {
      socket.write(Buffer.from([byte]))
      await new Promise((resolve) => setImmediate(resolve))
    }
    await until(() => h.upstream.reached.length > 0)
    socket.destroy()
    expect(fieldOf(h.upstream.reached[0], 'x-slow')).toBe('yes')
  })
})

describe('identity fields', () => {
  test.each(['x-auth-subject', 'x_auth_subject', 'x-forwarded-for', 'x.auth.subject', 'x-original-url', 'forwarded'])(
    '%s of a client reach nobody',
    async (name) => {
      await sendFrames(h.port, head([name, 'root']))
      const [reached] = h.upstream.reached
      expect(fieldOf(reached, name)).toBe(name === 'x-forwarded-for' ? '127.0.0.1' : null)
    },
  )

  test('that a check reads must be there once, an ill-formed second one included', async () => {
    const bearer: Pair = ['authorization', `Bearer ${await h.issuer.token()}`]
    const mine = [...pseudo('GET', '/mine'), bearer, ['x-invoice', '1'] as const]
    expect((await sendFrames(h.port, headers(1, mine))).status).toBe(200)
    expect((await sendFrames(h.port, headers(1, [...mine, ['x-invoice', '2']]))).status).toBe(400)
    expect((await sendFrames(h.port, headers(1, [...mine, ['x-invoice', '2\n']]))).status).toBe(400)
    expect((await sendFrames(h.port, headers(1, [...mine, bearer]))).status).toBe(400)
  })
})

describe('a body', () => {
  const POST = pseudo('POST', '/public/x')
  const post = (...more: Pair[]): Buffer => headers(1, [...POST, ...more], { end: false })
  const data = (text: string, end: boolean): Buffer =>
    frame(TYPES.data, end ? FLAGS.endStream : FLAGS.none, 1, Buffer.from(text))

  test('that is what its length says is forwarded whole', async () => {
    const answer = await sendFrames(h.port, [post(['content-length', '10']), data('hello', false), data('world', true)])
    expect([answer.status, h.upstream.reached[0]?.body]).toEqual([200, 'helloworld'])
  })

  test.each([
    ['shorter than its length', ['content-length', '10'], 'hello'],
    ['longer than its length', ['content-length', '3'], 'hello'],
    ['there although its length is 0', ['content-length', '0'], 'GET /invoices/1 HTTP/1.1'],
  ] as const)('%s is an error, and never whole to the upstream', async (_name, length, text) => {
    let whole = false
    h.upstream.handle = () => {
      whole = true
    }
    const { status, resets, closed } = await sendFrames(h.port, [post(length), data(text, true)])
    // The library ends the whole connection for a body that is too long.
    expect([status, resets.get(1) === ERRORS.protocol || closed, whole]).toEqual([0, true, false])
  })

  test.each(['CANCEL', 'NO_ERROR'])('that the client breaks off with %s does not end at the upstream', async (name) => {
    let whole = false
    h.upstream.handle = () => {
      whole = true
    }
    const code = Buffer.from([0, 0, 0, name === 'CANCEL' ? 8 : 0])
    const bytes = [post(), data('{"part":', false), frame(TYPES.reset, FLAGS.none, 1, code)]
    await sendFrames(h.port, bytes, { quietMs: 1_500 })
    expect(whole).toBe(false)
  })

  test.each<[string, Pair]>([
    ['a line break', ['x-sum', 'a\nb']],
    ['a pseudo-header field', [':path', '/invoices/1']],
    ['an upper-case name', ['X-Sum', 'a']],
  ])('with %s in its trailers is a stream error', async (_name, pair) => {
    let whole = false
    h.upstream.handle = () => {
      whole = true
    }
    const answer = await sendFrames(h.port, [post(['trailer', 'x-sum']), data('hello', false), headers(1, [pair])])
    expect([answer.status, answer.resets.get(1), whole]).toEqual([0, ERRORS.protocol, false])
  })
})

describe('the count of fields', () => {
  test('is what the library’s own encoder wrote, whatever it compressed', async () => {
    const name = fc.stringMatching(/^x-[a-z0-9]{1,12}$/)
    const value = fc.stringMatching(/^[!-~]{0,40}$/)
    const session = openSession(h.port)
    await once(session, 'remoteSettings')
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(name, value), { maxLength: 40 }), async (fields) => {
        const answer = await ask(session, 'GET /public/x', { headers: Object.fromEntries(fields) })
        expect(answer.status).toBe(200)
      }),
      { numRuns: effort({ short: 50, long: 200 }) },
    )
    session.destroy()
  })

  test.each([
    [[], 0],
    [[0x82], 1],
    [[0x82, 0x86, 0x84], 3],
    // A size update is no field.
    [[0x20, 0x3f, 0xe1, 0x1f, 0x82], 1],
    // Indexed name; new name; never indexed.
    [[0x44, 0x01, 0x2f, 0x40, 0x01, 0x78, 0x01, 0x79, 0x10, 0x01, 0x78, 0x00], 3],
    // A length of 127 + 128 bytes.
    [[0x44, 0x7f, 0x80, 0x01, ...Array(255).fill(0x61)], 1],
    [[0x44], null],
    [[0x44, 0x05, 0x61], null],
    [[0x00, 0x7f], null],
    [[0xff, 0xff, 0xff, 0xff, 0xff, 0xff], null],
  ])('of %j is %s', (bytes, count) => {
    expect(countFields(Buffer.from(bytes))).toBe(count)
  })
})
