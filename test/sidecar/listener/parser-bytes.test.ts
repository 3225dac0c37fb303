/** Request lines are judged alike whether Node's parser reads a connection itself or the bytes come as events, and however they are split. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'
import { makeCertificate } from '../../../sidecar/injector/certificate/certificate.ts'
import { readAlong } from '../../../sidecar/listener/parser-bytes.ts'
import { type LineForm, watchRequestLines } from '../../../sidecar/listener/request-lines.ts'
import { effort } from '../../support/effort.ts'
import { until } from '../../support/until.ts'

const servers: Server[] = []
const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const server of servers.splice(0)) server.close()
})

const HEAD_BYTES_MAX = 4_096
/** What a Node of another version could lack. */
const MISSING = ['getCurrentBuffer', 'constructor'] as const
type Missing = (typeof MISSING)[number] | null

/** Hides a member until the connection has begun, because a parser serves other connections later. */
function hide(missing: Missing, socket: Socket): void {
  if (missing === null || !('parser' in socket)) return
  const parser = Object(socket.parser)
  Object.defineProperty(parser, missing, { value: undefined, configurable: true })
  queueMicrotask(() => delete parser[missing])
}

type Seen = { readonly forms: LineForm[]; tooLong: number }
type Client = { readonly socket: Socket; readonly forms: () => readonly LineForm[]; readonly tooLong: () => number }
type Listening = { readonly open: () => Promise<Client>; readonly seen: Map<string, Seen> }

/** Serves as the sidecar does; what is seen is kept by the client's port. */
async function listen(missing: Missing, isTls = false): Promise<Listening> {
  const { certificate, key } = await makeCertificate({ names: ['localhost'], days: 1, nowMs: Date.now() })
  const server = isTls ? createTlsServer({ cert: certificate, key }) : createServer()
  const event = isTls ? 'secureConnection' : 'connection'
  const [serve] = server.listeners(event)
  const seen: Listening['seen'] = new Map()
  server.removeAllListeners(event).on(event, (socket: Socket) => {
    const found: Seen = { forms: [], tooLong: 0 }
    seen.set(String(socket.remotePort), found)
    const begin = (): void => {
      serve?.call(server, socket)
      hide(missing, socket)
    }
    const onTooLong = (): void => {
      found.tooLong += 1
      socket.destroy()
    }
    const lines = watchRequestLines(socket, begin, { headBytesMax: () => HEAD_BYTES_MAX, onTooLong })
    socket.on('error', () => undefined)
    forms.set(socket, (req) => found.forms.push(lines.formOf(req)))
  })
  const forms = new WeakMap<Socket, (req: Parameters<ReturnType<typeof watchRequestLines>['formOf']>[0]) => void>()
  server.on('request', (req, res) => {
    forms.get(req.socket)?.(req)
    req.resume()
    res.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  servers.push(server)
  const { port } = server.address() as AddressInfo
  const open = async (): Promise<Client> => {
    const socket = isTls
      ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
      : connect(port, '127.0.0.1')
    sockets.push(socket)
    socket.setNoDelay(true).resume()
    socket.on('error', () => undefined)
    await once(socket, isTls ? 'secureConnect' : 'connect')
    // A socket forgets its port when it is closed.
    const found = (): Seen | undefined => seen.get(localPort)
    const localPort = String(socket.localPort)
    return { socket, forms: () => found()?.forms ?? [], tooLong: () => found()?.tooLong ?? 0 }
  }
  return { open, seen }
}

const get = (line: string): string => `${line}\r\nHost: a\r\n\r\n`
const post = (fields: string, body: string): string => `POST /p HTTP/1.1\r\nHost: a\r\n${fields}\r\n${body}`
const GOOD = get('GET /a HTTP/1.1')
const TWO_BLANKS = get('GET  /a HTTP/1.1')
const WITH_LENGTH = post('Content-Length: 9\r\n', 'GET  /x H')
const CHUNKED = post('Transfer-Encoding: chunked\r\n', '3\r\nabc\r\n0\r\n\r\n')

const STREAMS: readonly (readonly [text: string, forms: readonly LineForm[]])[] = [
  [GOOD + GOOD, ['good', 'good']],
  [`\r\n${GOOD}\r\n\r\n${GOOD}`, ['good', 'good']],
  [GOOD + TWO_BLANKS, ['good', 'bad']],
  [TWO_BLANKS, ['bad']],
  [get('GET /a HTTP/0.9'), ['bad']],
  [get('GET /a'), ['bad']],
  [get('OPTIONS /a RTSP/1.0'), ['bad']],
  [WITH_LENGTH + GOOD, ['good', 'good']],
  [WITH_LENGTH + TWO_BLANKS, ['good', 'bad']],
  [`${WITH_LENGTH}\r\n${WITH_LENGTH}${get('GET /a RTSP/1.0')}`, ['good', 'good', 'bad']],
  [CHUNKED, ['good']],
]

/** Each byte, or in the short run every third; over TLS, which delivers the same bytes, every eighth. */
function splitsOf(text: string, isTls: boolean): readonly number[] {
  const step = effort({ short: isTls ? 8 : 3, long: 1 })
  return Array.from({ length: Math.floor((text.length - 1) / step) }, (_, at) => 1 + at * step)
}

describe.each([
  ['the parser reads it itself', null, false],
  ['the parser reads it itself, over TLS', null, true],
  ['its bytes come as events', 'getCurrentBuffer', false],
  ['its bytes come as events, over TLS', 'constructor', true],
] as const)('a connection: %s', (_how, missing, isTls) => {
  test.each(STREAMS)('%j, split at each byte', { timeout: 60_000 }, async (text, forms) => {
    const { open, seen } = await listen(missing, isTls)
    const pieces = splitsOf(text, isTls)
    for (let from = 0; from < pieces.length; from += 20)
      await Promise.all(
        pieces.slice(from, from + 20).map(async (at) => {
          const { socket, forms: found } = await open()
          socket.write(text.slice(0, at))
          await new Promise((resolve) => setTimeout(resolve, 5))
          socket.write(text.slice(at))
          await until(() => found().length === forms.length)
        }),
      )
    expect([...seen.values()].map((one) => one.forms)).toEqual(pieces.map(() => forms))
  })

  test('hides what is in one piece with the end of a chunked body, wherever that piece is split', async () => {
    const { open, seen } = await listen(missing, isTls)
    const text = CHUNKED + GOOD
    const pieces = splitsOf(text, isTls).filter((at) => at !== CHUNKED.length)
    for (let from = 0; from < pieces.length; from += 20)
      await Promise.all(
        pieces.slice(from, from + 20).map(async (at) => {
          const { socket, forms } = await open()
          socket.write(text.slice(0, at))
          await new Promise((resolve) => setTimeout(resolve, 5))
          socket.write(text.slice(at))
          await until(() => forms().length === 2)
        }),
      )
    expect([...seen.values()].map((one) => one.forms[1])).toEqual(pieces.map(() => 'unknown'))
  })

  test('never takes the beginning of a later piece for the one that a chunked body hid', async () => {
    const { open } = await listen(missing, isTls)
    const { socket, forms } = await open()
    // Each piece by itself looks like the end of a body or the beginning of a request.
    for (const piece of [`${CHUNKED}GET  /a HTTP/1.1\r\nHost: a`, '\r\n', 'Y: 1\r\n', 'Z:\r\n', '\r\n']) {
      socket.write(piece)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    await until(() => forms().length === 2)
    socket.write(GOOD)
    await until(() => forms().length === 3)
    expect(forms()).toEqual(['good', 'unknown', 'unknown'])
  })

  test.each([[CHUNKED], [WITH_LENGTH], [GOOD]])('%j, byte by byte, then another request', async (first) => {
    const { open } = await listen(missing, isTls)
    const { socket, forms } = await open()
    for (const count of [1, 3]) {
      for (const byte of first) {
        socket.write(byte)
        await new Promise((resolve) => setImmediate(resolve))
      }
      await until(() => forms().length === count)
      // So that the end of the body and the next request are not one piece.
      await new Promise((resolve) => setTimeout(resolve, 20))
      socket.write(GOOD)
      await until(() => forms().length === count + 1)
    }
    expect(forms()).toEqual(['good', 'good', 'good', 'good'])
  })

  test('says when a head is too long, though the parser counts no blanks', async () => {
    const { open } = await listen(missing, isTls)
    const { socket, forms, tooLong } = await open()
    socket.write('GET /a HTTP/1.1\r\nX:')
    for (let at = 0; at < 20 && !socket.destroyed; at += 1) {
      socket.write(' '.repeat(512))
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    await until(() => tooLong() === 1)
    expect([forms(), tooLong()]).toEqual([[], 1])
  })
})

describe('Node', () => {
  async function isNative(missing: Missing, isTls: boolean): Promise<boolean> {
    const { certificate, key } = await makeCertificate({ names: ['localhost'], days: 1, nowMs: Date.now() })
    const server = isTls ? createTlsServer({ cert: certificate, key }) : createServer()
    const event = isTls ? 'secureConnection' : 'connection'
    const [serve] = server.listeners(event)
    const found = new Promise<boolean>((resolve) => {
      server.removeAllListeners(event).on(event, (socket: Socket) => {
        const begin = (): void => {
          serve?.call(server, socket)
          hide(missing, socket)
        }
        const ignored = { take: () => undefined, passes: () => true, end: () => undefined }
        resolve(readAlong(socket, begin, ignored).isNative)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    servers.push(server)
    const { port } = server.address() as AddressInfo
    sockets.push(isTls ? connectTls({ port, rejectUnauthorized: false }) : connect(port, '127.0.0.1'))
    return found
  }

  test.each([false, true])('reads HTTP/1.1 itself and shows the bytes that it is at (TLS: %s)', async (isTls) => {
    expect(await isNative(null, isTls)).toBe(true)
  })

  test.each(MISSING)('without %s sends the bytes as events', async (missing) => {
    expect([await isNative(missing, false), await isNative(missing, true)]).toEqual([false, false])
  })
})
