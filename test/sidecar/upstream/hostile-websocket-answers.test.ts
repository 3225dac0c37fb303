/** Services that answer a WebSocket handshake wrongly: no raw connection to them is opened. */
import { createHash } from 'node:crypto'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'

const ROUTES = 'GET /ws: {check: public, upgrade: [websocket]}'
const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const ACCEPT = createHash('sha1').update(`${KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
const sockets = new Set<Socket>()
let answer = ''
/** What the service got after the handshake. */
let late = ''
let server: Server
let h: Harness

beforeAll(async () => {
  server = createServer((socket) => {
    sockets.add(socket)
    let asked = ''
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      if (asked.includes('\r\n\r\n')) late += chunk.toString('latin1')
      else {
        asked += chunk.toString('latin1')
        if (asked.includes('\r\n\r\n')) socket.write(answer)
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  h = await startHarness({ routes: ROUTES })
  h.upstream.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  h.apply(ROUTES)
})
afterAll(async () => {
  await h.close()
  for (const socket of sockets) socket.destroy()
  server.close()
})

/** Sends a handshake and, as what would be in the connection behind it, another request. */
async function shake(isOver: (text: string, closed: boolean) => boolean): Promise<string> {
  const socket = connect(h.port, '127.0.0.1')
  let text = ''
  let closed = false
  late = ''
  socket.on('error', () => undefined)
  socket.on('close', () => {
    closed = true
  })
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
  })
  const lines = ['GET /ws HTTP/1.1', 'Host: app.test', 'Connection: Upgrade', 'Upgrade: websocket']
  socket.write(`${[...lines, 'Sec-WebSocket-Version: 13', `Sec-WebSocket-Key: ${KEY}`].join('\r\n')}\r\n\r\n`)
  socket.write('GET /admin HTTP/1.1\r\nHost: app.test\r\n\r\n')
  await until(() => isOver(text, closed))
  socket.destroy()
  return text
}

const UPGRADE = 'Upgrade: websocket\r\nConnection: Upgrade\r\n'
const GOOD = `Sec-WebSocket-Accept: ${ACCEPT}\r\n`

test.each([
  ['has no answer to the key', UPGRADE],
  ['has an answer to another key', `${UPGRADE}Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOp=\r\n`],
  ['has two answers to the key', `${UPGRADE}${GOOD}${GOOD}`],
  ['names no protocol', `Connection: Upgrade\r\n${GOOD}`],
  ['names another protocol', `Upgrade: h2c\r\nConnection: Upgrade\r\n${GOOD}`],
  ['names two protocols', `Upgrade: h2c\r\n${UPGRADE}${GOOD}`],
])('101 that %s is 502, and nothing more reaches the service', async (_name, fields) => {
  answer = `HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n`
  expect(await shake((_text, closed) => closed)).toMatch(/^HTTP\/1\.1 502 /)
  expect(late).toBe('')
})

test.each([
  ['alone', '', ''],
  ['after informational responses', 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n', ''],
  ['with a length, which is not passed on', '', 'Content-Length: 5\r\n'],
])('101 with the answer to the key opens the connection: %s', async (_name, before, field) => {
  answer = `${before}HTTP/1.1 101 Switching Protocols\r\n${UPGRADE}${GOOD}${field}\r\n`
  const shaken = await shake((got) => got.includes('\r\n\r\n') && late.includes('/admin'))
  const text = shaken.replace('HTTP/1.1 103 Early Hints\r\n\r\n', '')
  expect(text).toMatch(/^HTTP\/1\.1 101 /)
  expect(text).not.toMatch(/content-length/i)
})
