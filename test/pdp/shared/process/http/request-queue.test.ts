/** Pipelined requests at a server that serves each connection in turns: metrics, probes, the PDP and the injector. */
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { serveInTurns } from '../../../../../pdp/shared/process/http/request-queue.ts'

let server: Server
const sockets: Socket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
})

async function start(answer: RequestListener): Promise<void> {
  server = createServer(answer)
  serveInTurns(server)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
}
function open({ reads = true } = {}) {
  const { port } = server.address() as AddressInfo
  const socket = connect(port, '127.0.0.1')
  sockets.push(socket)
  const seen = { text: '', ended: false }
  if (reads) socket.on('data', (chunk) => (seen.text += chunk))
  else socket.pause()
  socket.on('error', () => undefined)
  socket.on('close', () => {
    seen.ended = true
  })
  return { socket, seen }
}
const get = (path: number | string): string => `GET /${path} HTTP/1.1\r\nHost: a\r\n\r\n`
const many = (count: number): string => Array.from({ length: count }, (_, at) => get(at)).join('')

test('answers that need nothing of others leave a turn of the event loop between them', async () => {
  const turns: number[] = []
  let turn = 0
  let counting = true
  const count = (): void => {
    turn += 1
    if (counting) setImmediate(count)
  }
  await start((_req, res) => {
    turns.push(turn)
    res.end('x')
  })
  const { socket } = open()
  socket.write(many(50), count)
  await expect.poll(() => turns.length).toBe(50)
  counting = false
  expect(new Set(turns).size).toBe(50)
})

test('the requests of one connection are answered in their order', async () => {
  await start((req, res) => void setTimeout(() => res.end(req.url), req.url === '/0' ? 20 : 0))
  const { socket, seen } = open()
  socket.write(many(5))
  await expect.poll(() => [...seen.text.matchAll(/\/\d(?!\.)/g)].join('')).toBe('/0/1/2/3/4')
})

test('101 requests on one connection are answered', async () => {
  await start((req, res) => res.end(req.url))
  const { socket, seen } = open()
  socket.write(many(101))
  await expect.poll(() => seen.text.match(/HTTP\/1\.1 200/g)?.length).toBe(101)
})

test('one request more than may wait ends the connection, and none of them runs any more', async () => {
  const begun: (string | undefined)[] = []
  await start((req, res) => {
    begun.push(req.url)
    setTimeout(() => res.end(req.url), 10)
  })
  const { socket, seen } = open()
  socket.write(many(1_400))
  await expect.poll(() => seen.ended).toBe(true)
  const other = open()
  other.socket.write(get('other'))
  await expect.poll(() => other.seen.text).toContain('/other')
  expect(begun).toEqual(['/0', '/other'])
})

test('a client that reads nothing keeps one answer waiting, however many it asks for', async () => {
  let begun = 0
  const body = Buffer.alloc(32 * 1024 * 1024)
  await start((_req, res) => {
    begun += 1
    res.end(body)
  })
  const { socket } = open({ reads: false })
  socket.write(many(60))
  await expect.poll(() => begun).toBe(1)
  const other = open()
  other.socket.write(get('other'))
  await expect.poll(() => other.seen.text.length).toBeGreaterThan(body.length)
  expect(begun).toBe(2)
})

test('a client that left is not answered any more', async () => {
  const begun: (string | undefined)[] = []
  let answer = (): void => undefined
  await start((req, res) => {
    begun.push(req.url)
    answer = () => void res.end()
    if (req.url === '/other') answer()
  })
  const { socket, seen } = open()
  socket.write(many(2))
  await expect.poll(() => begun.length).toBe(1)
  socket.destroy()
  await expect.poll(() => seen.ended).toBe(true)
  answer()
  const other = open()
  other.socket.write(get('other'))
  await expect.poll(() => other.seen.text).toContain('200')
  expect(begun).toEqual(['/0', '/other'])
})
