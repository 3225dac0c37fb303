/** Tables of `forward()` with a fake client and a scripted upstream: what is sent, repeated, answered and cut off. */
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { RequestError } from '../../../sidecar/request/errors.ts'
import { RefusedError } from '../../../sidecar/upstream/upstream.ts'
import type { Case } from '../support/enforcing.ts'
import { answerOk, type Exchange, type Script, send } from '../support/forwarding.ts'

const UPLOAD = { line: 'POST /upload', routes: 'POST /upload: public' }
const coded = (code: string): Error => Object.assign(new Error(`it is ${code}`), { code })
const failing =
  (err: Error): Script =>
  ({ fail }) =>
    fail(err)
const valuesOf = (fields: readonly string[] | undefined, name: string): (string | undefined)[] =>
  (fields ?? []).flatMap((field, at) => (at % 2 === 0 && field.toLowerCase() === name ? [fields?.[at + 1]] : []))

describe('the upstream gets', () => {
  const IDENTITY = { 'x-auth-subject': ['alice'], 'x-auth-client': ['c1'], 'x-auth-organization': ['acme'] }
  test.each<[string, Exchange, { readonly [name: string]: readonly string[] }]>([
    ['the sender of a permitted request', {}, { ...IDENTITY, 'x-auth-scope': ['docs:read'] }],
    ['no token', {}, { authorization: [] }],
    [
      'the token where the route forwards it',
      { request: { routes: 'GET /docs/{id}: {check: "viewer doc:{id}", forward_token: true}' } },
      { authorization: ['Bearer t'] },
    ],
    [
      'no identity that a client has written',
      { request: { line: 'GET /public', fields: ['X-Auth-Subject', 'root', 'X_Auth_Subject', 'root'] } },
      { 'x-auth-subject': [], x_auth_subject: [] },
    ],
    [
      'only our word for where a request comes from',
      { request: { fields: ['X-Forwarded-For', '10.0.0.1', 'Forwarded', 'for=10.0.0.1'] } },
      { 'x-forwarded-for': ['192.0.2.1'], 'x-forwarded-proto': ['https'], forwarded: [] },
    ],
    [
      'no field that the client lists in Connection',
      { request: { fields: ['Connection', 'X-Hop', 'X-Hop', '1', 'X-End', '2'] } },
      { connection: [], 'x-hop': [], 'x-end': ['2'] },
    ],
    [
      'the trace that we begin',
      { request: { fields: ['traceparent', 'theirs'] }, forwarding: { traceparent: 'ours' } },
      { traceparent: ['ours'] },
    ],
    [
      'the trace of the client otherwise',
      { request: { fields: ['traceparent', 'theirs'] } },
      { traceparent: ['theirs'] },
    ],
    ['the id of the request', { request: { fields: ['X-Request-Id', 'theirs'] } }, { 'x-request-id': ['request-1'] }],
    [
      'the host without a port that is not served',
      { request: { host: 'app.test:8443' } },
      { 'x-forwarded-host': ['app.test'] },
    ],
    [
      'the host with the public port',
      { request: { host: 'app.test:8443' }, deps: { publicPort: 8_443 } },
      { 'x-forwarded-host': ['app.test:8443'] },
    ],
    [
      'the host with the port that the client reached',
      { request: { host: 'app.test:8443' }, client: { localPort: () => 8_443 } },
      { 'x-forwarded-host': ['app.test:8443'] },
    ],
    [
      'the host that a trusted proxy names',
      {
        forwarding: {
          origin: { address: '::1', scheme: 'http', host: { hostname: 'outer.test', port: null }, fault: null },
        },
      },
      { 'x-forwarded-host': ['outer.test'], 'x-forwarded-for': ['::1'] },
    ],
    ['no length of a body that there is not', {}, { 'content-length': [], 'transfer-encoding': [] }],
    ['the length of a body', { request: { ...UPLOAD, fields: ['Content-Length', '3'] } }, { 'content-length': ['3'] }],
    [
      'no framing of the client for a body of unknown length',
      { request: { ...UPLOAD, fields: ['Transfer-Encoding', 'chunked'] } },
      { 'content-length': [], 'transfer-encoding': [] },
    ],
  ])('%s', async (_name, one, expected) => {
    const { requests } = await send(one)
    const got = Object.fromEntries(Object.keys(expected).map((name) => [name, valuesOf(requests[0]?.headers, name)]))
    expect(got).toEqual(expected)
  })

  test('method and target as the client sent them', async () => {
    const { requests } = await send({
      request: { line: 'GET /open/a%20b?q=%2F', routes: 'GET /open/{name}: public' },
    })
    expect(requests).toMatchObject([{ method: 'GET', path: '/open/a%20b?q=%2F', body: null }])
  })

  test('the bytes of a body that a check has read, and streams one that none has', async () => {
    const read = await send({ request: { line: 'POST /docs', body: '{"id":"7"}', fields: ['Content-Length', '10'] } })
    expect(read.requests[0]?.body).toEqual(Buffer.from('{"id":"7"}'))
    const streamed = await send({ request: { ...UPLOAD, fields: ['Content-Length', '3'] } })
    expect(streamed.requests[0]?.body).toBeInstanceOf(Readable)
  })

  test.each<[string, Exchange, boolean]>([
    ['a gRPC call over HTTP/2 as long as it needs', { version: '2' }, true],
    ['a gRPC call over HTTP/1.1, which cannot be one, only the time of others', {}, false],
  ])('%s', async (_name, one, patient) => {
    const { requests } = await send({ ...one, request: { fields: ['Content-Type', 'application/grpc'] } })
    expect(requests).toMatchObject([{ patient }])
  })
})

describe('a failure is', () => {
  test.each<[string, Error]>([
    ['upstream_timeout', coded('UND_ERR_HEADERS_TIMEOUT')],
    ['upstream_timeout', coded('UND_ERR_BODY_TIMEOUT')],
    ['upstream_timeout', coded('UND_ERR_CONNECT_TIMEOUT')],
    ['upstream_timeout', coded('ETIMEDOUT')],
    ['upstream_unavailable', coded('ECONNREFUSED')],
    ['upstream_unavailable', coded('ECONNRESET')],
    ['upstream_unavailable', coded('HPE_INVALID_CONSTANT')],
    ['upstream_unavailable', new Error('without a code')],
    ['request_timeout', new RequestError('request_timeout', 'the body stopped')],
  ])('%s when the request ends with %o', async (code, cause) => {
    const { forwarded, answer } = await send({ scripts: [failing(cause)] })
    expect(forwarded).toEqual({ kind: 'failed', code, cause })
    expect(answer.headersSent).toBe(false)
  })

  test.each<[string, unknown]>([
    ['an error', new Error('no socket')],
    ['something else', 'no socket'],
  ])('upstream_unavailable when the upstream throws %s', async (_name, thrown) => {
    const { forwarded } = await send({
      scripts: [
        () => {
          throw thrown
        },
      ],
    })
    expect(forwarded).toMatchObject({ kind: 'failed', code: 'upstream_unavailable', cause: { message: 'no socket' } })
  })

  test('upstream_unavailable when a response has a field that cannot be sent on', async () => {
    const { forwarded, aborted } = await send({ scripts: [({ head }) => head(200, 'X-A', 'a\nb')] })
    expect(forwarded).toMatchObject({ kind: 'failed', code: 'upstream_unavailable' })
    expect(aborted).toEqual(['Invalid character in header content'])
  })

  test('the reason of a cancellation, and the request is aborted', async () => {
    const script: Script = ({ cancellation, fail }) => {
      cancellation.cancel('token_expired')
      fail(coded('ECONNRESET'))
    }
    const { forwarded, aborted, requests } = await send({ scripts: [script] })
    expect(forwarded).toMatchObject({ kind: 'failed', code: 'token_expired' })
    expect([aborted, requests.length]).toEqual([['cancelled: token_expired'], 1])
  })

  test('of nobody when the client has left', async () => {
    const { forwarded, aborted } = await send({ scripts: [({ answer }) => answer.destroy()] })
    expect([forwarded, aborted]).toEqual([{ kind: 'abandoned' }, ['the client closed the connection']])
  })
})

describe('a request', () => {
  const reset = coded('ECONNRESET')
  const refused = new RefusedError('not processed')
  const READ: Case = { line: 'POST /docs', body: '{"id":"7"}', fields: ['Content-Length', '10'] }
  const method = (name: string): Case => ({ line: `${name} /open`, routes: `${name} /open: public` })
  test.each<[string, Case, Error, number]>([
    ['GET that met a closing connection is sent twice', {}, reset, 2],
    ['GET that undici found closed is sent twice', {}, coded('UND_ERR_SOCKET'), 2],
    ['GET whose stream was cancelled is sent twice', {}, coded('ERR_HTTP2_STREAM_CANCEL'), 2],
    ['HEAD that met a closing connection is sent twice', method('HEAD'), coded('EPIPE'), 2],
    ['OPTIONS that met a closing connection is sent twice', method('OPTIONS'), reset, 2],
    ['DELETE that met a closing connection is sent once', method('DELETE'), reset, 1],
    ['POST whose body was read and that met a closing connection is sent once', READ, reset, 1],
    ['POST whose body was read and that was not processed is sent twice', READ, refused, 2],
    ['DELETE without a body that was not processed is sent twice', method('DELETE'), refused, 2],
    ['POST whose body is streamed is sent once', { ...UPLOAD, fields: ['Content-Length', '3'] }, refused, 1],
    ['POST whose body has no length is sent once', { ...UPLOAD, fields: ['Transfer-Encoding', 'chunked'] }, refused, 1],
    ['GET that nobody accepted is sent once', {}, coded('ECONNREFUSED'), 1],
    ['GET that timed out is sent once', {}, coded('UND_ERR_HEADERS_TIMEOUT'), 1],
  ])('%s', async (_name, request, cause, times) => {
    const { requests, forwarded } = await send({ request, scripts: [failing(cause), answerOk] })
    expect(requests.length).toBe(times)
    expect(forwarded.kind).toBe(times === 2 ? 'answered' : 'failed')
  })

  test('is not sent a third time', async () => {
    const { requests, forwarded } = await send({ scripts: [failing(reset)] })
    expect([requests.length, forwarded]).toEqual([2, { kind: 'failed', code: 'upstream_unavailable', cause: reset }])
  })

  test('is not sent again once its response has begun', async () => {
    const script: Script = ({ head, fail }) => {
      head(200, 'Content-Length', '5')
      fail(reset)
    }
    const { requests, answer, forwarded } = await send({ scripts: [script] })
    expect([requests.length, forwarded]).toEqual([1, { kind: 'answered', status: 200 }])
    expect(answer.destroyed).toBe(true)
  })
})

describe('the client gets', () => {
  const answering =
    (fields: readonly string[], ...chunks: readonly string[]): Script =>
    ({ head, data, end }) => {
      head(200, ...fields)
      for (const chunk of chunks) data(chunk)
      end('X-Sum', '1', 'Connection', 'close')
    }

  test.each<[string, readonly string[], Partial<Exchange>, readonly string[]]>([
    ['the fields of the service', ['X-A', '1', 'Set-Cookie', 'b=2'], {}, ['X-A', '1', 'Set-Cookie', 'b=2']],
    ['none that belongs to the connection', ['Connection', 'x-a', 'X-A', '1', 'Keep-Alive', '5'], {}, []],
    ['ours after them', ['X-A', '1'], { forwarding: { answerFields: ['x-b', '2'] } }, ['X-A', '1', 'x-b', '2']],
    [
      'no cookie of the sidecar from the service, where browsers sign in',
      ['Set-Cookie', '__Host-portcullis-session=x', 'Set-Cookie', 'b=2'],
      { deps: { keepsCookies: true } },
      ['Set-Cookie', 'b=2'],
    ],
  ])('%s', async (_name, fields, one, expected) => {
    const { forwarded, answer } = await send({ ...one, scripts: [answering(fields)] })
    expect([forwarded, answer.status]).toEqual([{ kind: 'answered', status: 200 }, 200])
    expect([answer.fields, answer.trailers]).toEqual([expected, [['X-Sum', '1']]])
  })

  test('no informational response, but the one that follows', async () => {
    const script: Script = ({ head, end }) => {
      head(103, 'Link', '</a.css>')
      head(204)
      end()
    }
    const { forwarded, answer } = await send({ scripts: [script] })
    expect([forwarded, answer.fields]).toEqual([{ kind: 'answered', status: 204 }, []])
  })

  test.each<[string, readonly string[], readonly string[], readonly number[]]>([
    ['a small body of known length in one piece with its end', ['Content-Length', '3'], ['a\xe9b'], [3]],
    ['a body in parts as they come', ['Content-Length', '4'], ['ab', 'cd'], [2, 2, 0]],
    ['a body of unknown length as it comes', [], ['ab'], [2, 0]],
    ['a body of 16 KiB in one piece', ['Content-Length', '16384'], ['a'.repeat(16_384)], [16_384]],
    ['a larger body as it comes', ['Content-Length', '16385'], ['a'.repeat(16_385)], [16_385, 0]],
  ])('%s', async (_name, fields, chunks, lengths) => {
    for (const version of [undefined, '2'] as const) {
      const { answer } = await send({ ...(version && { version }), scripts: [answering(fields, ...chunks)] })
      expect([answer.body, answer.chunks.map(({ length }) => length)]).toEqual([chunks.join(''), lengths])
    }
  })

  test('a small body over HTTP/2 before the end of the response, which may be late', async () => {
    const script: Script = ({ head, data }) => {
      head(200, 'Content-Length', '2')
      data('ab')
    }
    const { answer } = await send({ version: '2', scripts: [script] })
    expect([answer.body, answer.writableFinished]).toEqual(['ab', false])
  })

  test('no more than it reads: the service waits until the client has drained', async () => {
    const paused: boolean[] = []
    const script: Script = ({ head, data, answer, controller }) => {
      head(200)
      answer.takes = false
      data('ab')
      paused.push(controller.paused)
      answer.emit('drain')
      paused.push(controller.paused)
    }
    await send({ scripts: [script] })
    expect(paused).toEqual([true, false])
  })

  const EVENTS = ['Content-Type', 'text/event-stream']
  test('the header section of an event stream before its first event', async () => {
    const { answer, cancellation } = await send({ scripts: [({ head }) => head(200, ...EVENTS)] })
    expect([answer.flushed, cancellation.endless]).toEqual([true, true])
  })

  const ENDED = { 'portcullis-problem': 'token_expired' }
  test.each<[string, Partial<Exchange>, readonly string[], object | null]>([
    ['an event stream, with the reason as a trailer', {}, EVENTS, ENDED],
    [
      'a gRPC call, with a status',
      { version: '2' },
      ['Content-Type', 'application/grpc'],
      { 'grpc-status': '16', ...ENDED },
    ],
    ['a download, by closing the connection', {}, ['Content-Length', '9'], null],
    ['an event stream with a length, by closing the connection', {}, [...EVENTS, 'Content-Length', '9'], null],
  ])('the end of the permission in %s', async (_name, one, fields, trailers) => {
    const script: Script = ({ head, cancellation }) => {
      head(200, ...fields)
      cancellation.cancel('token_expired')
    }
    const { answer, aborted, forwarded } = await send({ ...one, scripts: [script] })
    expect([forwarded, aborted]).toEqual([{ kind: 'answered', status: 200 }, ['cancelled: token_expired']])
    if (trailers === null) expect(answer.destroyed).toBe(true)
    else expect(Object.fromEntries(answer.trailers)).toMatchObject(trailers)
    expect(answer.writableFinished).toBe(trailers !== null)
  })

  test('nothing of a response that comes after the end of the permission', async () => {
    const script: Script = ({ head, data, end, cancellation }) => {
      cancellation.cancel('permission_denied')
      head(200, 'X-A', '1')
      data('secret')
      end()
    }
    const { answer, forwarded } = await send({ scripts: [script] })
    expect(forwarded).toMatchObject({ kind: 'failed', code: 'permission_denied' })
    expect([answer.headersSent, answer.body]).toEqual([false, ''])
  })
})
