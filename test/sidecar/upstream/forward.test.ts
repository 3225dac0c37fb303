/** Tables of `forward()` with a fake client and a scripted upstream: what is sent, what is repeated, and how it fails. */
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
    const script: Script = ({ head, end }) => {
      head(200, 'X-A', 'a\nb')
      end()
    }
    const { forwarded, aborted } = await send({ scripts: [script] })
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
    expect([requests.length, answer.headersSent]).toEqual([1, false])
    expect(forwarded).toMatchObject({ kind: 'failed', code: 'upstream_unavailable' })
    const partly: Script = ({ head, data, fail }) => {
      head(200, 'Content-Length', '5')
      data('ab')
      fail(reset)
    }
    const cut = await send({ scripts: [partly] })
    expect([cut.requests.length, cut.forwarded]).toEqual([1, { kind: 'answered', status: 200 }])
    expect(cut.answer.destroyed).toBe(true)
  })
})
