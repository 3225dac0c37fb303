/** Services that answer before the body has arrived: the rest of it is dropped, neither run as a request nor taken for ever. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'

const ROUTES = '"* /**": public'
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly'
const sockets = new Set<Socket>()
/** Method and target of each request that reached the service. */
const ran: string[] = []
let server: Server
let h: Harness
let client: Socket
let text = ''

beforeEach(async () => {
  // Answers the first bytes of each connection a moment later, and reads no more.
  server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('data', (chunk) => {
      ran.push(chunk.toString('latin1').split(' HTTP')[0] ?? '')
      socket.pause()
      setTimeout(() => socket.write(ANSWER), 200)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  h = await startHarness({ routes: ROUTES, limits: { keepAliveMs: 1_000 } })
  h.upstream.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  h.apply(ROUTES)
  text = ''
  ran.length = 0
  client = connect(h.port, '127.0.0.1')
  client.on('error', () => undefined)
  client.on('data', (chunk) => {
    text += chunk.toString('latin1')
  })
})
afterEach(async () => {
  client.destroy()
  await h.close()
  for (const socket of sockets) socket.destroy()
  server.close()
})

const CHUNKED = 'POST /x HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n'
const answers = (): number => text.split('early').length - 1

test.each([
  ['of a length', 'POST /x HTTP/1.1\r\nHost: app.test\r\nContent-Length: 1000000000\r\n\r\na', 'a'],
  ['in chunks', CHUNKED, '1\r\na\r\n'],
])('a body %s that goes on drop by drop after the answer ends with its connection', async (_name, head, drop) => {
  let closed = false
  client.on('close', () => {
    closed = true
  })
  client.write(head)
  await until(() => answers() === 1)
  const drops = setInterval(() => client.write(drop), 50)
  await until(() => closed)
  clearInterval(drops)
})

test('the rest of a body that comes in time is dropped, and the next request is served', async () => {
  const smuggled = 'GET /admin HTTP/1.1\r\nHost: app.test\r\n\r\n'
  client.write(`POST /x HTTP/1.1\r\nHost: app.test\r\nContent-Length: ${smuggled.length + 1}\r\n\r\na`)
  await until(() => answers() === 1)
  client.write(`${smuggled}GET /next HTTP/1.1\r\nHost: app.test\r\n\r\n`)
  await until(() => answers() === 2)
  expect(ran).toEqual(['POST /x', 'GET /next'])
})
