/** What people use against a sidecar process: curl, a reader of events, and bodies far larger than its memory. */
import { execFile, spawnSync } from 'node:child_process'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createIssuer, type Issuer } from '../../support/peers/issuer.ts'
import { type ScriptedPdp, startScriptedPdp, tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type SidecarProcess, startKeyServer, startProcess } from '../support/process.ts'

const MIB = 1024 * 1024
const BODY_BYTES = 256 * MIB
/** Half a body. Buffers may add up to 64 MiB before the engine collects them, which alone says nothing about holding a body. */
const GROWTH_MAX_MB = 128
const PIECE = Buffer.alloc(64 * 1024, 'x')

let issuer: Issuer
let pdp: ScriptedPdp
let keys: Awaited<ReturnType<typeof startKeyServer>>
let upstream: Server
let sidecar: SidecarProcess
beforeAll(async () => {
  issuer = await createIssuer({ issuer: 'https://as.test', audience: 'https://app.test', clock: Date.now })
  keys = await startKeyServer([issuer.jwks])
  pdp = await startScriptedPdp(tuples(['alice viewer doc:1']))
  upstream = createServer((req, res) => void serve(req, res))
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  sidecar = await startProcess({
    routeFile: JSON.stringify({
      portcullis: 'v1',
      resource: 'https://app.test',
      issuers: [{ issuer: 'https://as.test', jwks_uri: keys.urls[0] }],
      upstream: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
      pdp: { address: pdp.address, insecure: true },
      routes: { '* /docs/{id}': 'viewer doc:{id}', 'GET /events/{id}': 'viewer doc:{id}' },
    }),
  })
})
afterAll(async () => {
  await sidecar.stop()
  keys.close()
  await pdp.stop()
  upstream.closeAllConnections()
  upstream.close()
})

/** How many pieces of its answer the reader of events has. */
let readCount = 0

/** Each event when the one before has arrived; else a large body, or the size of the one that came. */
async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
  if (req.url?.startsWith('/events') === true) {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    for (let id = 1; id <= 3; id += 1) {
      res.write(`id: ${id}\n\n`)
      await until(() => readCount >= id)
    }
    return void res.end()
  }
  if (req.method === 'GET') {
    res.writeHead(200, { 'content-length': BODY_BYTES })
    return pipeline(Readable.from(pieces()), res).catch(() => undefined)
  }
  let size = 0
  for await (const chunk of req) size += chunk.length
  res.end(`${req.method} ${size}`)
}

function* pieces(): Generator<Buffer> {
  for (let sent = 0; sent < BODY_BYTES; sent += PIECE.length) yield PIECE
}

/** Bytes that arrived at the far end. */
async function transfer(method: 'GET' | 'POST'): Promise<number> {
  const headers = {
    host: 'app.test',
    authorization: `Bearer ${await issuer.token()}`,
    ...(method === 'POST' && { 'content-length': BODY_BYTES }),
  }
  const out = request({ host: '127.0.0.1', port: sidecar.port, path: '/docs/1', method, headers, agent: false })
  const answered = new Promise<number>((resolve, reject) => {
    out.on('error', reject)
    out.on('response', async (res) => {
      let size = 0
      let start = ''
      for await (const chunk of res) {
        size += chunk.length
        if (start.length < 100) start += chunk.subarray(0, 100)
      }
      resolve(method === 'POST' ? Number(start.split(' ')[1]) : size)
    })
  })
  if (method === 'POST') await pipeline(Readable.from(pieces()), out)
  else out.end()
  return answered
}

describe('a body of 256 MiB', () => {
  test.each(['POST', 'GET'] as const)('of %s passes in flat memory', { timeout: 60_000 }, async (method) => {
    await fetchStatus('/docs/1')
    const before = sidecar.memory().peakMb
    expect(await transfer(method)).toBe(BODY_BYTES)
    expect(sidecar.memory().peakMb - before).toBeLessThan(GROWTH_MAX_MB)
  })
})

async function fetchStatus(path: string): Promise<number> {
  const headers = { host: 'app.test', authorization: `Bearer ${await issuer.token()}` }
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port: sidecar.port, path, method: 'PUT', headers, agent: false }, (res) => {
      res.resume()
      resolve(res.statusCode ?? 0)
    })
      .on('error', reject)
      .end()
  })
}

test('a reader of events gets each as it is sent', async () => {
  const headers = { host: 'app.test', authorization: `Bearer ${await issuer.token()}`, accept: 'text/event-stream' }
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ host: '127.0.0.1', port: sidecar.port, path: '/events/1', headers }, resolve).on('error', reject).end()
  })
  let text = ''
  for await (const chunk of response) {
    text += chunk
    readCount += 1
  }
  // None of which the service would have sent if the one before had been kept back.
  expect(text).toBe('id: 1\n\nid: 2\n\nid: 3\n\n')
})

const hasCurl = spawnSync('curl', ['--version']).status === 0
describe.skipIf(!hasCurl)('curl', () => {
  async function curl(...words: string[]): Promise<string> {
    const fields = ['-H', 'Host: app.test', '-H', `Authorization: Bearer ${await issuer.token()}`]
    const url = words.at(-1) ?? ''
    const rest = words.slice(0, -1)
    const all = ['-s', '-m', '30', '-w', ' %{http_code} %{http_version}', ...fields, ...rest]
    return (await promisify(execFile)('curl', [...all, `http://127.0.0.1:${sidecar.port}${url}`])).stdout
  }

  test.each<[string, string[], string]>([
    ['a body', ['-d', 'abc', '/docs/1'], 'POST 3 200 1.1'],
    ['a body in chunks', ['-H', 'Transfer-Encoding: chunked', '-d', 'abc', '/docs/1'], 'POST 3 200 1.1'],
    ['a body after 100 (Continue)', ['-H', 'Expect: 100-continue', '-d', 'abc', '/docs/1'], 'POST 3 200 1.1'],
    ['HTTP/1.0', ['--http1.0', '-X', 'PUT', '/docs/1'], 'PUT 0 200 1.1'],
    ['HTTP/2 with prior knowledge', ['--http2-prior-knowledge', '-d', 'abc', '/docs/1'], 'POST 3 200 2'],
    ['an offer of h2c, which is declined', ['--http2', '-X', 'PUT', '/docs/1'], 'PUT 0 200 1.1'],
    ['dots that it is told to keep', ['--path-as-is', '-o', '/dev/null', '/docs/../docs/1'], ' 400 1.1'],
    ['what Alice may not see', ['-o', '/dev/null', '/docs/2'], ' 403 1.1'],
    ['HEAD of what she may not see', ['-I', '-o', '/dev/null', '/docs/2'], ' 403 1.1'],
  ])('sends %s', async (_what, words, expected) => {
    expect(await curl(...words)).toBe(expected)
  })
})
