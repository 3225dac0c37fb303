/** `npm run bench -- sidecar body`: 1 GiB to the service behind and 1 GiB back, with the most memory that the sidecar took. */
import { createServer, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type SidecarProcess, startProcess } from '../../sidecar/support/process.ts'
import { RESOURCE, startBenchPdp } from './pdp.ts'

const GIB = 1024 ** 3
const PIECE = Buffer.alloc(64 * 1024, 'x')

export async function benchBody(): Promise<void> {
  const pdp = await startBenchPdp()
  const upstream = createServer((req, res) => {
    if (req.method === 'GET') return void send(res)
    let size = 0
    req.on('data', (chunk: Buffer) => {
      size += chunk.length
    })
    req.on('end', () => res.end(String(size)))
  })
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  const sidecar = await startProcess({
    routeFile: JSON.stringify({
      portcullis: 'v1',
      resource: RESOURCE,
      issuers: [{ issuer: pdp.issuer }],
      upstream: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
      pdp: { address: pdp.grpcAddress, insecure: true },
      routes: { '* /invoices/{id}': 'viewer invoice:{id}' },
    }),
  })
  try {
    const token = await pdp.token()
    say(`idle: RSS ${sidecar.memory().nowMb.toFixed(1)} MB`)
    await measure('to the service behind', sidecar, () => exchange(sidecar.port, token, 'POST'))
    await measure('and back', sidecar, () => exchange(sidecar.port, token, 'GET'))
  } finally {
    await sidecar.stop()
    upstream.closeAllConnections()
    upstream.close()
    await pdp.stop()
  }
}

async function measure(what: string, sidecar: SidecarProcess, run: () => Promise<number>): Promise<void> {
  const startedMs = performance.now()
  const bytes = await run()
  if (bytes !== GIB) throw new Error(`${bytes} bytes arrived`)
  const seconds = (performance.now() - startedMs) / 1_000
  const { nowMb, peakMb } = sidecar.memory()
  say(`1 GiB ${what}: ${seconds.toFixed(1)} s, RSS ${nowMb.toFixed(1)} MB, at most ${peakMb.toFixed(1)} MB`)
}

/** Bytes that arrived at the far end: upstream of POST, here of GET. */
async function exchange(port: number, token: string, method: 'GET' | 'POST'): Promise<number> {
  const headers = {
    host: 'app.test',
    authorization: `Bearer ${token}`,
    ...(method === 'POST' && { 'content-length': GIB }),
  }
  const out = request({ host: '127.0.0.1', port, path: '/invoices/1', method, headers, agent: false })
  const answered = new Promise<number>((resolve, reject) => {
    out.on('error', reject)
    out.on('response', async (res) => {
      if (res.statusCode !== 200) return reject(new Error(`answered with ${res.statusCode}`))
      let size = 0
      let text = ''
      for await (const chunk of res) {
        size += chunk.length
        if (method === 'POST') text += chunk
      }
      resolve(method === 'POST' ? Number(text) : size)
    })
  })
  if (method === 'POST') await pipeline(Readable.from(pieces()), out)
  else out.end()
  return answered
}

function* pieces(): Generator<Buffer> {
  for (let sent = 0; sent < GIB; sent += PIECE.length) yield PIECE
}

async function send(res: ServerResponse): Promise<void> {
  res.writeHead(200, { 'content-length': GIB })
  // Whoever waits for the rest sees that it does not come.
  await pipeline(Readable.from(pieces()), res).catch(() => undefined)
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)
