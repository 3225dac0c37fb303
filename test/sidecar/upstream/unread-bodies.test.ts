/** Services that answer without reading a body: nothing of it may run as a request, of this client or of the next one. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { freePort } from '../../support/free-port.ts'
import { type RawAnswer, sendRaw } from '../../support/peers/raw-http.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'

const ROUTES = `
"* /public/**": public
GET /admin/users: admin system:main`.trim()
const SMUGGLED = 'GET /admin/users HTTP/1.1\r\nHost: app.test\r\nX-Auth-Subject: root\r\n\r\n'

let h: Harness | null = null
let python: ChildProcess | null = null
let server: Server | null = null
const sockets = new Set<Socket>()
afterEach(async () => {
  await h?.close()
  python?.kill('SIGKILL')
  for (const socket of sockets) socket.destroy()
  server?.close()
  h = python = server = null
})

async function start(origin: string, options = ''): Promise<Harness> {
  const harness = await startHarness({ routes: ROUTES })
  h = harness
  harness.upstream.origin = options === '' ? origin : `{url: "${origin}", ${options}}`
  harness.apply(ROUTES, 'trusted_proxies: [127.0.0.1]')
  return harness
}

/** Keeps its connections, as HTTP/1.1 is by default, and reads no body. Says in its log which requests it ran. */
const PYTHON = `
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def answer(self):
        print(self.command, self.path, flush=True)
        body = self.path.encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
`

const hasPython = spawnSync('python3', ['-c', 'import http.server']).status === 0
describe.skipIf(!hasPython)('behind the http.server of Python', () => {
  let ran = ''
  async function startPython(): Promise<string> {
    ran = ''
    const port = await freePort()
    const started = spawn('python3', ['-c', PYTHON, String(port)], { stdio: ['ignore', 'pipe', 'inherit'] })
    python = started
    started.stdout.on('data', (chunk) => {
      ran += chunk
    })
    const answers = async (): Promise<boolean> =>
      (await sendRaw(port, 'GET /ready HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')).status === 200
    await until(answers)
    return `http://127.0.0.1:${port}`
  }

  test.each([
    ['POST', `Content-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`],
    ['PUT', `Transfer-Encoding: chunked\r\n\r\n${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`],
    ['DELETE', `Content-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`],
    ['OPTIONS', `Content-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`],
    ['GET', `Content-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`],
    [
      'POST',
      `Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\nX-Sum: 1\r\n\r\n`,
    ],
  ])('a body of %s is not the next request: case %#', async (method, rest) => {
    const harness = await start(await startPython())
    for (let round = 0; round < 5; round += 1) {
      const head = `${method} /public/upload HTTP/1.1\r\nHost: app.test\r\n`
      expect((await sendRaw(harness.port, `${head}${rest}`)).body).toBe('/public/upload')
      expect((await harness.send('GET /public/next', { token: null })).body).toBe('/public/next')
    }
    expect(ran).not.toContain('/admin')
    expect(ran.match(/\/public\/next/g)?.length).toBe(5)
  })
})

describe('a connection to the upstream', () => {
  /** Answers each header section with the number of its connection, and reads on as if there were no bodies. */
  async function startCounting(): Promise<string> {
    let count = 0
    const started = createServer((socket) => {
      sockets.add(socket)
      count += 1
      const number = count
      socket.on('error', () => undefined)
      socket.on('data', (chunk) => {
        if (!/\r\n\r\n/.test(chunk.toString('latin1'))) return
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${String(number).length}\r\n\r\n${number}`)
      })
    })
    server = started
    await new Promise<void>((resolve) => started.listen(0, '127.0.0.1', resolve))
    const address = started.address()
    return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
  }
  const get = (harness: Harness): Promise<RawAnswer> => harness.send('GET /public/x', { token: null })
  const post = (harness: Harness): Promise<RawAnswer> => harness.send('POST /public/x', { token: null, body: 'abc' })

  test('is used again after requests without a body, never after one with', async () => {
    const harness = await start(await startCounting())
    const used: string[] = []
    for (const send of [get, get, post, get, post, post, get]) used.push((await send(harness)).body)
    expect(used).toEqual(['1', '1', '1', '2', '2', '3', '4'])
  })

  test('is used again after a body when the route file says that the service reads them', async () => {
    const harness = await start(await startCounting(), 'reuse_after_body: true')
    const used: string[] = []
    for (const send of [post, get, post, get]) used.push((await send(harness)).body)
    expect(new Set(used)).toEqual(new Set(['1']))
  })

  test('is never used again after a request with trailers, whose client takes late surplus bytes for an answer', async () => {
    const harness = await start(await startCounting(), 'reuse_after_body: true')
    const bytes =
      'POST /public/x HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Sum: 1\r\n\r\n'
    const used: string[] = []
    for (let round = 0; round < 3; round += 1) used.push((await sendRaw(harness.port, bytes)).body)
    expect(used).toEqual(['1', '2', '3'])
  })

  test('is of one client alone when the route file says so', async () => {
    const harness = await start(await startCounting(), 'connections: per_client, reuse_after_body: true')
    const request = 'GET /public/x HTTP/1.1\r\nHost: app.test\r\n\r\n'
    const clients = Array.from({ length: 3 }, () => keptConnection(harness.port))
    const used: string[][] = []
    for (const client of clients) used.push([await client.ask(request), await client.ask(request)])
    expect(used).toEqual([
      ['1', '1'],
      ['2', '2'],
      ['3', '3'],
    ])
    for (const client of clients) client.close()
    await until(() => [...sockets].every(({ readableEnded, destroyed }) => readableEnded || destroyed))
  })

  test('is of one subject alone, although a proxy brings several over one connection', async () => {
    const harness = await start(await startCounting(), 'connections: per_client')
    const client = keptConnection(harness.port)
    const as = (address: string): string =>
      `GET /public/x HTTP/1.1\r\nHost: app.test\r\nX-Forwarded-For: ${address}\r\n\r\n`
    const used: string[] = []
    for (const address of ['1.1.1.1', '2.2.2.2', '1.1.1.1', '2.2.2.2']) used.push(await client.ask(as(address)))
    client.close()
    expect(used).toEqual(['1', '2', '1', '2'])
  })

  function keptConnection(port: number): { ask(request: string): Promise<string>; close(): void } {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('error', () => undefined)
    return {
      async ask(request) {
        text = ''
        socket.write(request)
        await until(() => /\r\n\r\n./s.test(text))
        return text.slice(text.indexOf('\r\n\r\n') + 4)
      },
      close: () => socket.destroy(),
    }
  }
})
