/** A service that speaks broken HTTP/2, frame by frame: what is not complete must look broken off to the client. */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sendRaw } from '../../support/peers/raw-http.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { ask, openSession } from '../support/http2-client.ts'
import { FLAGS, frame, headers, type Pair, PREFACE, settings, TYPES } from '../support/raw-http2.ts'

const ROUTES = '"* /**": public'
/** What the service writes when the header section of a request has arrived, at once. */
let answer: (streamId: number) => readonly Buffer[] = () => []
const sockets = new Set<Socket>()
let server: Server
let h: Harness

beforeAll(async () => {
  server = createServer((socket) => {
    sockets.add(socket)
    let rest: Buffer = Buffer.alloc(0)
    let greeted = false
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk])
      if (!greeted && rest.length >= PREFACE.length) {
        greeted = true
        rest = rest.subarray(PREFACE.length)
        socket.write(settings())
      }
      while (greeted && rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
        const end = 9 + rest.readUIntBE(0, 3)
        if (rest[3] === TYPES.headers) socket.write(Buffer.concat(answer(rest.readUInt32BE(5) & 0x7fffffff)))
        rest = rest.subarray(end)
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  h = await startHarness({ routes: ROUTES })
  h.upstream.origin = `{url: "http://127.0.0.1:${(server.address() as AddressInfo).port}", http2: true}`
  h.apply(ROUTES)
})
afterAll(async () => {
  await h.close()
  for (const socket of sockets) socket.destroy()
  server.close()
})

const head = (id: number, fields: readonly Pair[] = [], end = false): Buffer =>
  headers(id, [[':status', '200'], ...fields], { end })
const data = (id: number, text: string, end = false): Buffer =>
  frame(TYPES.data, end ? FLAGS.endStream : FLAGS.none, id, Buffer.from(text))
const reset = (id: number, code = 0): Buffer => {
  const payload = Buffer.alloc(4)
  payload.writeUInt32BE(code)
  return frame(TYPES.reset, FLAGS.none, id, payload)
}

/** How both kinds of client see the answer. */
async function seen(
  line = 'GET /x',
  body?: string,
): Promise<{ readonly text: string; readonly reset: number; readonly status: unknown }> {
  const [method, path] = line.split(' ')
  const length = body === undefined ? '' : `Content-Length: ${body.length}\r\n`
  const text = `${method} ${path} HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n${length}\r\n${body ?? ''}`
  const plain = await sendRaw(h.port, text, { head: method === 'HEAD' })
  const session = openSession(h.port)
  const { reset, status } = await ask(session, line, body === undefined ? {} : { body })
  session.destroy()
  return { text: plain.text, reset, status }
}

describe('a response that is reset without an error', () => {
  test.each([
    ['after its header section', (id: number) => [head(id), reset(id)]],
    ['after its length', (id: number) => [head(id, [['content-length', '4']]), data(id, 'half'), reset(id)]],
  ])('%s is 502 where nothing of it was sent', async (_name, frames) => {
    answer = frames
    for (const body of [undefined, 'abc']) {
      const { text, status } = await seen('POST /x', body)
      expect(text).toMatch(/^HTTP\/1\.1 502 /)
      expect(status).toBe(502)
    }
  })

  test.each([
    ['in the middle of a body without a length', (id: number) => [head(id), data(id, 'half'), reset(id)]],
    ['before its length', (id: number) => [head(id, [['content-length', '9']]), data(id, 'half'), reset(id)]],
  ])('%s is not whole to the client', async (_name, frames) => {
    answer = frames
    for (const body of [undefined, 'abc']) {
      const { text, reset } = await seen('POST /x', body)
      expect(text.endsWith('\r\n0\r\n\r\n')).toBe(false)
      expect(reset).not.toBe(0)
    }
  })

  test.each([
    ['its header section', (id: number) => [head(id, [], true), reset(id)], ''],
    ['its body', (id: number) => [head(id), data(id, 'whole', true), reset(id)], 'whole'],
    ['its trailers', (id: number) => [head(id), data(id, 'whole'), headers(id, [['x-sum', '1']]), reset(id)], 'whole'],
  ])('is whole when the end was in %s (RFC 9113 section 8.1)', async (_name, frames, body) => {
    answer = frames
    for (const sent of [undefined, 'abc']) {
      const { text, reset } = await seen('POST /x', sent)
      expect(text).toMatch(/^HTTP\/1\.1 200 /)
      expect(text).toContain(body)
      expect(reset).toBe(0)
    }
  })

  test('is whole although the upload goes on', async () => {
    answer = (id) => [head(id), data(id, 'whole', true), reset(id)]
    const session = openSession(h.port)
    const stream = session.request({ ':method': 'POST', ':path': '/x', ':authority': 'app.test' })
    let body = ''
    stream.on('data', (chunk) => {
      body += chunk
    })
    stream.on('error', () => undefined)
    stream.write('abc')
    await new Promise((resolve) => stream.on('close', resolve))
    session.destroy()
    expect([body, stream.rstCode]).toEqual(['whole', 0])
    const bytes = 'POST /x HTTP/1.1\r\nHost: app.test\r\nContent-Length: 9\r\n\r\nabc'
    expect((await sendRaw(h.port, bytes)).text).toMatch(/whole\r\n0\r\n\r\n$/)
  })
})
