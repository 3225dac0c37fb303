/** Answers that leave in one piece: every byte of them, nothing else, and no later than the upstream has said them. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { ClientHttp2Session, ServerHttp2Stream } from 'node:http2'
import { connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { parseAnswer } from '../../support/peers/raw-http.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { ask, openSession } from '../support/http2-client.ts'
import { type Http2Upstream, startHttp2Upstream } from '../support/http2-upstream.ts'

const ROUTES = '"* /public/**": public'
const WHOLE_MAX = 16 * 1024
const SIZES = [0, 1, 256, WHOLE_MAX - 1, WHOLE_MAX, WHOLE_MAX + 1, 3 * WHOLE_MAX]
const VERSIONS = ['1.1', '2'] as const
const PAIRS = VERSIONS.flatMap((client) => VERSIONS.map((upstream) => [client, upstream] as const))
type Version = (typeof VERSIONS)[number]

/** All values that a byte can have, in turn. */
const bytesOf = (size: number): Buffer => Buffer.from(Array.from({ length: size }, (_, at) => (at * 7 + 255) % 256))
/** Bytes that are no text. */
const NAME = 'n\xe4me\xff'

let h: Harness
let up: Http2Upstream
let session: ClientHttp2Session
let origin: string
beforeAll(async () => {
  h = await startHarness({ routes: ROUTES })
  origin = h.upstream.origin
  up = await startHttp2Upstream()
  session = openSession(h.port)
})
afterAll(async () => {
  session.destroy()
  await h.close()
  await up.close()
})
beforeEach(() => {
  h.upstream.handle = null
  up.handle = null
})

type Fields = { readonly [name: string]: string | number }
/** The upstream of this version answers so, with Content-Length where it is among the fields. */
function answerWith(version: Version, status: number, fields: Fields, parts: readonly Buffer[]): void {
  h.upstream.origin = version === '1.1' ? origin : `{url: "http://127.0.0.1:${up.port}", http2: true}`
  h.apply(ROUTES)
  const send = async (res: ServerResponse | ServerHttp2Stream): Promise<void> => {
    for (const part of parts.slice(0, -1)) {
      res.write(part)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    res.end(parts.at(-1))
  }
  h.upstream.handle = (_req, res) => void send(res.writeHead(status, fields))
  up.handle = (stream) => {
    stream.respond({ ':status': status, ...fields })
    void send(stream)
  }
}

type Got = { readonly status: number; readonly length: string; readonly name: string; readonly body: Buffer }

/** What `method` gets; over HTTP/1.1 twice on one connection, where a byte too many or too few would show. */
async function got(version: Version, method: string): Promise<Got> {
  if (version === '2') {
    const { status, headers, body, reset } = await ask(session, `${method} /public/x`)
    expect(reset).toBe(0)
    const { 'content-length': length = '', 'x-name': name = '' } = headers
    return { status, length: String(length), name: String(name), body: Buffer.from(body, 'latin1') }
  }
  const request = (last: string): string => `${method} /public/x HTTP/1.1\r\nHost: app.test\r\n${last}\r\n`
  const text = await readAll(`${request('')}${request('Connection: close\r\n')}`)
  const second = text.lastIndexOf('HTTP/1.1 ')
  const [first, last] = [text.slice(0, second), text.slice(second)].map(parseAnswer)
  if (first === undefined || last === undefined) throw new Error('no answer')
  expect([first.status, first.body]).toEqual([last.status, last.body])
  const value = (name: string): string => last.fields.find(([key]) => key.toLowerCase() === name)?.[1] ?? ''
  const body = Buffer.from(last.body, 'latin1')
  return { status: last.status, length: value('content-length'), name: value('x-name'), body }
}

/** All that comes until the connection ends. */
async function readAll(bytes: string): Promise<string> {
  const socket = connect(h.port, '127.0.0.1')
  socket.write(bytes)
  socket.on('error', () => undefined)
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
  })
  await once(socket, 'close')
  return text
}

describe.each(PAIRS)('to an HTTP/%s client from an HTTP/%s upstream', (client, upstream) => {
  test.each(SIZES)('a body of %d bytes comes as it is, with the fields', async (size) => {
    const body = bytesOf(size)
    answerWith(upstream, 200, { 'content-length': size, 'x-name': NAME }, [body])
    const answer = await got(client, 'GET')
    expect([answer.status, answer.length, answer.name]).toEqual([200, String(size), NAME])
    expect(answer.body.equals(body)).toBe(true)
  })

  test.each(SIZES)('a body of %d bytes without a length comes as it is', async (size) => {
    const body = bytesOf(size)
    answerWith(upstream, 200, { 'x-name': NAME }, [body])
    expect((await got(client, 'GET')).body.equals(body)).toBe(true)
  })

  test.each([[[1, 1]], [[255, 1]], [[1, WHOLE_MAX - 1]], [[WHOLE_MAX, 1]], [[WHOLE_MAX, WHOLE_MAX]], [[3, 0, 3]]])(
    'a body that comes in pieces of %j is put together in order',
    async (sizes) => {
      const body = bytesOf(sizes.reduce((sum, size) => sum + size, 0))
      let at = 0
      const parts = sizes.map((size) => {
        at += size
        return body.subarray(at - size, at)
      })
      answerWith(upstream, 200, { 'content-length': body.length }, parts)
      expect((await got(client, 'GET')).body.equals(body)).toBe(true)
    },
  )

  test('the answer to HEAD has the length of another, and no body', async () => {
    answerWith(upstream, 200, { 'content-length': 5, 'x-name': NAME }, [])
    expect(await got(client, 'HEAD')).toMatchObject({ status: 200, length: '5', name: NAME, body: Buffer.alloc(0) })
  })

  test('304 has the length of another answer, and no body', async () => {
    answerWith(upstream, 304, { 'content-length': 5 }, [])
    expect(await got(client, 'GET')).toMatchObject({ status: 304, length: '5', body: Buffer.alloc(0) })
  })

  test('204 has no body', async () => {
    answerWith(upstream, 204, {}, [])
    expect(await got(client, 'GET')).toMatchObject({ status: 204, body: Buffer.alloc(0) })
  })

  test('a body that breaks off before its length is reached is not taken for whole', async () => {
    answerWith(upstream, 200, {}, [])
    h.upstream.handle = (_req, res) => {
      res.writeHead(200, { 'content-length': 5 }).write('half')
      setTimeout(() => res.destroy(), 20)
    }
    up.handle = (stream) => {
      stream.respond({ ':status': 200, 'content-length': 5 })
      stream.write('half')
      setTimeout(() => stream.destroy(new Error('broken')), 20)
    }
    if (client === '2') expect((await ask(session, 'GET /public/x')).reset).not.toBe(0)
    else {
      const answer = parseAnswer(await readAll('GET /public/x HTTP/1.1\r\nHost: app.test\r\n\r\n'))
      expect(Buffer.byteLength(answer.body, 'latin1')).toBeLessThan(5)
    }
  })
})

describe('from an HTTP/2 upstream that ends its answer late', () => {
  /** The whole body, and its end only when that is asked for. */
  function answerLate(fields: Fields): { end: () => void } {
    const late = { end: (): void => undefined }
    answerWith('2', 200, {}, [])
    up.handle = (stream) => {
      stream.respond({ ':status': 200, 'content-length': 5, ...fields }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '5', 'grpc-status': '0' }))
      stream.write('whole')
      late.end = () => stream.end()
    }
    return late
  }

  test('an HTTP/1.1 client has it when it has come', async () => {
    const late = answerLate({})
    const socket = connect(h.port, '127.0.0.1')
    socket.write('GET /public/x HTTP/1.1\r\nHost: app.test\r\n\r\n')
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
    })
    await expect.poll(() => text).toMatch(/\r\n\r\nwhole$/)
    late.end()
    socket.end()
    await once(socket, 'close')
    expect(text).toMatch(/\r\n\r\nwhole$/)
  })

  test.each(['text/plain', 'application/grpc'])('an HTTP/2 client has it when it has come, of %s', async (type) => {
    const late = answerLate({ 'content-type': type })
    const stream = session.request({ ':path': '/public/x', ':authority': 'app.test' })
    let text = ''
    let trailers: object | null = null
    stream.on('data', (chunk) => {
      text += chunk.toString('latin1')
    })
    stream.on('trailers', (came) => {
      trailers = came
    })
    await expect.poll(() => text).toBe('whole')
    expect(trailers).toBeNull()
    late.end()
    await once(stream, 'close')
    expect([text, trailers, stream.rstCode]).toMatchObject(['whole', { 'x-sum': '5', 'grpc-status': '0' }, 0])
  })

  test('its body and trailers come together when it says them so', async () => {
    answerWith('2', 200, {}, [])
    up.handle = (stream) => {
      stream.respond({ ':status': 200, 'content-length': 5 }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '5' }))
      stream.end('whole')
    }
    expect(await ask(session, 'GET /public/x')).toMatchObject({ body: 'whole', trailers: { 'x-sum': '5' }, reset: 0 })
  })
})
