import { once } from 'node:events'
import type { ClientHttp2Session, IncomingHttpHeaders } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { ask, openSession } from '../support/http2-client.ts'
import { fieldOf } from '../support/upstream.ts'

const ROUTES = `GET /public/**: public
POST /public/**: public
GET /invoices/{id}: viewer invoice:{id}
POST /invoices: 'creator organization:{body.org}'
GET /events/{id}: viewer feed:{id}`
const ALLOWED = ['alice viewer invoice:1', 'alice creator organization:acme', 'alice viewer feed:1']

let h: Harness
let session: ClientHttp2Session
beforeAll(async () => {
  h = await startHarness({ routes: ROUTES, script: tuples(ALLOWED) })
})
afterAll(() => h.close())
beforeEach(() => {
  h.upstream.reached.length = 0
  h.upstream.handle = null
  h.pdp.script = tuples(ALLOWED)
  session = openSession(h.port)
})
afterEach(() => session.destroy())
const bearer = async (): Promise<{ authorization: string }> => ({ authorization: `Bearer ${await h.issuer.token()}` })

describe('a request over HTTP/2', () => {
  test('is judged and forwarded like any other, with what we say about it', async () => {
    const answer = await ask(session, 'GET /invoices/1', { headers: { ...(await bearer()), x_auth_subject: 'root' } })
    expect([answer.status, answer.reset]).toEqual([200, 0])
    const [reached] = h.upstream.reached
    expect(fieldOf(reached, 'host')).toBe('app.test')
    expect(fieldOf(reached, 'via')).toBe('2 portcullis')
    expect(fieldOf(reached, 'x-auth-subject')).toBe('alice')
    expect([fieldOf(reached, 'x_auth_subject'), fieldOf(reached, 'authorization')]).toEqual([null, null])
    expect(h.log.at(-1)).toMatchObject({ event: 'decision', http_version: '2', decision: 'allow' })
  })

  test.each([
    ['GET /invoices/2', true, 403, 'permission_denied'],
    ['GET /invoices/1', false, 401, 'token_missing'],
    ['GET /nothing', true, 404, 'route_unknown'],
    ['PATCH /invoices/1', true, 405, 'method_unsupported'],
    ['GET /public/%2e%2e/invoices/2', true, 400, 'request_invalid'],
  ])('%s, with a token: %s, is refused with %i and the problem', async (line, withToken, status, code) => {
    const answer = await ask(session, line, { headers: withToken ? await bearer() : {} })
    expect([answer.status, JSON.parse(answer.body).code, answer.reset]).toEqual([status, code, 0])
    expect(answer.headers['content-type']).toBe('application/problem+json')
    expect(answer.headers.connection).toBeUndefined()
    expect(h.upstream.reached).toEqual([])
  })

  test('to a host that is not served is 421', async () => {
    const answer = await ask(session, 'GET /public/x', { headers: { ':authority': 'other.test' } })
    expect([answer.status, h.upstream.reached.length]).toEqual([421, 0])
  })

  test('has its body streamed, framed anew, and its answer as well', async () => {
    h.upstream.handle = (_req, res, body) => res.end(body)
    const body = Buffer.alloc(900_000, 'portcullis ')
    const answer = await ask(session, 'POST /public/x', { body })
    expect(answer.body).toBe(body.toString())
    expect(fieldOf(h.upstream.reached[0], 'transfer-encoding')).toBe('chunked')
  })

  test('whose empty body ends in a frame of its own is forwarded', async () => {
    const headers = await bearer()
    for (const line of ['GET /public/x', 'POST /public/x', 'GET /invoices/1'])
      expect((await ask(session, line, { headers, body: '' })).status).toBe(200)
    expect(h.upstream.reached.map(({ body }) => body)).toEqual(['', '', ''])
  })

  test('with a length is forwarded with that length', async () => {
    const answer = await ask(session, 'POST /public/x', { body: 'hello', headers: { 'content-length': '5' } })
    expect(answer.status).toBe(200)
    const [reached] = h.upstream.reached
    expect([reached?.body, fieldOf(reached, 'content-length'), fieldOf(reached, 'transfer-encoding')]).toEqual([
      'hello',
      '5',
      null,
    ])
  })

  test('has its JSON body read for a check', async () => {
    const headers = { ...(await bearer()), 'content-type': 'application/json' }
    expect((await ask(session, 'POST /invoices', { headers, body: '{"org":"acme"}' })).status).toBe(200)
    expect((await ask(session, 'POST /invoices', { headers, body: '{"org":"other"}' })).status).toBe(403)
    expect(h.upstream.reached.map(({ body }) => body)).toEqual(['{"org":"acme"}'])
  })

  test.each([0, 1])('whose JSON body is too large is 413, and leaves nothing behind: %#', async (declared) => {
    const body = JSON.stringify({ org: 'x'.repeat(200_000) })
    const length = declared === 1 ? { 'content-length': String(body.length) } : {}
    const headers = { ...(await bearer()), 'content-type': 'application/json', ...length }
    for (let at = 0; at < 5; at += 1)
      expect(await ask(session, 'POST /invoices', { headers, body })).toMatchObject({ status: 413, reset: 0 })
  })

  test.each([204, 205, 304])('may be answered with %i, which has no body', async (status) => {
    h.upstream.handle = (_req, res) => void setTimeout(() => res.writeHead(status, { etag: '"a"' }).end(), 10)
    expect(await ask(session, 'GET /public/x')).toMatchObject({ status, body: '', reset: 0 })
  })

  test('with trailers passes on those that it announced, without anybody’s word for who asks', async () => {
    let seen: readonly string[] = []
    h.upstream.handle = (req, res) => {
      seen = req.rawTrailers
      res.end()
    }
    const trailers = { 'x-digest': 'abc', 'x-auth-subject': 'root', 'x-silent': '1' }
    const headers = { trailer: 'x-digest, x-auth-subject' }
    expect((await ask(session, 'POST /public/x', { body: 'hello', headers, trailers })).status).toBe(200)
    expect(seen).toEqual(['x-digest', 'abc'])
  })

  test('gets the trailers of its answer, and every field as often as the upstream sent it', async () => {
    h.upstream.handle = (_req, res) => {
      res.writeHead(200, ['Trailer', 'X-Sum', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'X-Mixed', 'CaSe'])
      res.write('part')
      res.addTrailers({ 'X-Sum': '4' })
      res.end()
    }
    const answer = await ask(session, 'GET /public/x')
    expect(answer).toMatchObject({ status: 200, body: 'part', trailers: { 'x-sum': '4' } })
    expect(answer.headers).toMatchObject({ 'set-cookie': ['a=1', 'b=2'], 'x-mixed': 'CaSe' })
  })

  test('gets the bytes of fields that are not ASCII, and those that came twice', async () => {
    h.upstream.handle = (_req, res) => {
      res.writeHead(200, ['X-Name', Buffer.from('é').toString('latin1'), 'ETag', '"a"', 'ETag', '"b"'])
      res.end()
    }
    const { status, headers } = await ask(session, 'GET /public/x')
    expect([status, Buffer.from(String(headers['x-name']), 'latin1').toString()]).toEqual([200, 'é'])
  })

  test('has the crumbs of its cookie joined', async () => {
    await ask(session, 'GET /public/x', { headers: { cookie: ['a=1', 'b=2'] } })
    expect(fieldOf(h.upstream.reached[0], 'cookie')).toBe('a=1; b=2')
  })

  test('with HEAD has no body in its answer, allowed or not', async () => {
    expect(await ask(session, 'HEAD /public/x')).toMatchObject({ status: 200, body: '', reset: 0 })
    expect(await ask(session, 'HEAD /nothing')).toMatchObject({ status: 404, body: '', reset: 0 })
  })

  test('with OPTIONS is told the methods, without asking anybody', async () => {
    const answer = await ask(session, 'OPTIONS /public/x')
    expect([answer.status, answer.headers.allow]).toEqual([204, 'GET, HEAD, OPTIONS, POST'])
  })

  test('that waits for 100 gets it after the decision', async () => {
    const stream = session.request(
      { ':method': 'POST', ':path': '/public/x', ':authority': 'app.test', expect: '100-continue' },
      { endStream: false },
    )
    await once(stream, 'continue')
    stream.end('hello')
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
    expect(headers[':status']).toBe(200)
    const refused = session.request(
      { ':method': 'POST', ':path': '/nothing', ':authority': 'app.test', expect: '100-continue' },
      { endStream: false },
    )
    let continued = false
    refused.on('continue', () => {
      continued = true
    })
    const [answered] = (await once(refused, 'response')) as [IncomingHttpHeaders]
    expect([answered[':status'], continued]).toEqual([404, false])
  })

  test('whose body nobody reads is told so when it was answered', async () => {
    const fields = { ':method': 'POST', ':path': '/nothing', ':authority': 'app.test' }
    const stream = session.request(fields, { endStream: false })
    stream.resume()
    await once(stream, 'close')
    // RFC 9113 section 8.1: the answer is whole, and no more of the request is wanted.
    expect(stream.rstCode).toBe(0)
  })
})

describe('an exchange over HTTP/2', () => {
  test('that the client gives up is given up at the upstream, and the connection goes on', async () => {
    let closed = false
    h.upstream.handle = (_req, res) => {
      res.write('first')
      res.on('close', () => {
        closed = true
      })
    }
    const stream = session.request({ ':path': '/public/x', ':authority': 'app.test' })
    await once(stream, 'data')
    stream.close(8)
    await until(() => closed)
    h.upstream.handle = null
    expect((await ask(session, 'GET /public/x')).status).toBe(200)
  })

  test('whose upstream breaks off is reset, not ended', async () => {
    h.upstream.handle = (_req, res) => {
      res.writeHead(200, { 'content-length': '10' })
      res.write('half')
      setTimeout(() => res.destroy(), 20)
    }
    expect(await ask(session, 'GET /public/x')).toMatchObject({ status: 200, body: 'half', reset: 2 })
  })

  test('waits for a client that reads slowly instead of keeping what it does not read', async () => {
    let written = 0
    h.upstream.handle = (_req, res) => {
      const chunk = Buffer.alloc(64 * 1024)
      const push = (): void => {
        for (let more = true; more && written < 256 * 1024 * 1024; written += chunk.length) more = res.write(chunk)
      }
      res.on('drain', push)
      push()
    }
    const stream = session.request({ ':path': '/public/x', ':authority': 'app.test' })
    await once(stream, 'response')
    stream.pause()
    // Until it stands still, at the latest when all was taken.
    for (let before = -1; written !== before; await sleep(300)) before = written
    // Of the kernel's buffers, mostly.
    expect(written).toBeLessThan(16 * 1024 * 1024)
  })

  test('that streams events ends in order, with the reason in a trailer, when its permission does', async () => {
    h.upstream.handle = (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write('data: 1\n\n')
    }
    const asked = ask(session, 'GET /events/1', { headers: await bearer() })
    await until(() => h.pdp.watched() === 1)
    h.pdp.script = tuples([])
    h.pdp.changed()
    expect(await asked).toMatchObject({
      status: 200,
      body: 'data: 1\n\n',
      trailers: { 'portcullis-problem': 'permission_denied' },
      reset: 0,
    })
  })

  test('that lasts is cut off when its permission ends', async () => {
    h.upstream.handle = (_req, res) => void res.write('first')
    const asked = ask(session, 'GET /invoices/1', { headers: await bearer() })
    await until(() => h.pdp.watched() === 1)
    h.pdp.script = tuples([])
    h.pdp.changed()
    expect(await asked).toMatchObject({ status: 200, body: 'first', reset: 2 })
  })
})
