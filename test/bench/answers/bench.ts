/**
 * `npm run bench -- answers [ROUNDS]`: a service that reads 10,000 rows from PostgreSQL, asked by itself, through a sidecar that
 * passes its list, and through one that keeps the half that its reader may see; then 64 readers who do not read. Prints figures.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { startProcess } from '../../sidecar/support/process.ts'
import { RESOURCE, startNodes } from '../nodes/nodes.ts'
import { spreadOf } from '../report/figures.ts'
import { machine } from '../report/page.ts'
import { residentMb } from '../report/process-use.ts'

const ROWS = 10_000
const ROUNDS = 15
const SLOW = 64
const WRITE_MAX = 1_000

export async function bench(words: readonly string[]): Promise<void> {
  const rounds = Number(words[0] ?? ROUNDS)
  const nodes = await startNodes(1)
  const database = new pg.Pool({ connectionString: nodes.connectionString })
  const service = createServer(async (_, res) => {
    const { rows } = await database.query('select id, customer, amount, note from bench_invoice order by id')
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ items: rows, next: null }))
  })
  service.listen(0, '127.0.0.1')
  await once(service, 'listening')
  const direct = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
  try {
    await database.query(
      `create table bench_invoice as select n as id, 'customer ' || n % 97 as customer, n * 3.5 as amount, repeat('x', 60) as note from generate_series(1, ${ROWS}) n`,
    )
    for (let at = 0; at < ROWS / 2; at += WRITE_MAX) {
      const write = Array.from({ length: WRITE_MAX }, (_, of) => `invoice:${(at + of) * 2 + 2}#viewer@service:bench`)
      await nodes.manage('POST', '/v1/organizations/acme/relationships', { write })
    }
    const routes = {
      'GET /plain': 'signed_in',
      'GET /kept': { check: 'signed_in', answer: { each: '$.items[*]', keep: 'viewer invoice:{item.id}' } },
    }
    const file = {
      portcullis: 'v1',
      resource: RESOURCE,
      hosts: ['127.0.0.1'],
      issuers: [{ issuer: nodes.issuer }],
      upstream: direct,
      pdp: { addresses: nodes.nodes.map(({ grpc }) => grpc), insecure: true },
      limits: { pdp_ms: 5_000 },
      routes,
    }
    const sidecar = await startProcess({ routeFile: JSON.stringify(file) })
    try {
      const headers = { authorization: `Bearer ${await nodes.token()}` }
      const urls = {
        service: direct,
        passed: `http://127.0.0.1:${sidecar.port}/plain`,
        kept: `http://127.0.0.1:${sidecar.port}/kept`,
      }
      const timesMs: { [name in keyof typeof urls]: number[] } = { service: [], passed: [], kept: [] }
      const counts = new Map<string, number>()
      for (let round = -3; round < rounds; round += 1)
        for (const name of ['service', 'passed', 'kept'] as const) {
          const startedMs = performance.now()
          const answer = await fetch(urls[name], { headers })
          const { items } = (await answer.json()) as { items: unknown[] }
          if (round >= 0) timesMs[name].push(performance.now() - startedMs)
          counts.set(name, items.length)
        }
      const median = (name: keyof typeof urls): number => spreadOf(timesMs[name]).median
      console.log(`${machine()}\n`)
      for (const name of ['service', 'passed', 'kept'] as const)
        console.log(
          `${name.padEnd(8)} ${median(name).toFixed(1).padStart(7)} ms  ${(median(name) / median('service')).toFixed(2)} of the service  ${counts.get(name)} rows`,
        )
      await slowReaders(sidecar, headers.authorization)
    } finally {
      await sidecar.stop()
    }
  } finally {
    service.close()
    await database.end()
    await nodes.stop()
  }
}

/** Readers of filtered answers who take nothing of them. */
async function slowReaders(
  sidecar: { readonly port: number; readonly pid: number },
  authorization: string,
): Promise<void> {
  const before = residentMb(sidecar.pid)
  const sockets: Socket[] = []
  let most = before
  for (let at = 0; at < SLOW; at += 1) {
    const socket = connect({ port: sidecar.port, host: '127.0.0.1' }).on('error', () => undefined)
    socket.pause()
    socket.write(`GET /kept HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${authorization}\r\n\r\n`)
    sockets.push(socket)
  }
  for (let round = 0; round < 50; round += 1) {
    most = Math.max(most, residentMb(sidecar.pid))
    await delay(100)
  }
  for (const socket of sockets) socket.destroy()
  console.log(`\n${SLOW} readers who do not read: ${before.toFixed(0)} MB before, ${most.toFixed(0)} MB at most`)
}
