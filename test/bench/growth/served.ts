/** What grows around servers: PDPs on one database, idle connections of a sidecar, and streams of sidecars to a PDP. */
import { connect, type Socket } from 'node:net'
import { Pool } from 'undici'
import { type GrpcClient, grpcClient } from '../../consistency/history/grpc.ts'
import { startProcess } from '../../sidecar/support/process.ts'
import { type Nodes, RESOURCE, startNodes } from '../nodes/nodes.ts'
import { latencyOf, load } from '../report/figures.ts'
import { startServices } from '../revocation/services.ts'
import { type Axis, type Point, type Scale, tens } from './axis.ts'

const NODES_MAX = 3
const CALLERS = 8
const ROUND_MS = 3_000
const CONNECTIONS_MAX = { short: 1_000, usual: 9_000, long: 9_000 } as const
const STREAMS_MAX = { short: 100, usual: 1_000, long: 1_000 } as const
const QUESTION = {
  organization: 'acme',
  subject: '',
  permissions: [{ relation: 'viewer', resource: 'invoice:1' }],
  entitlements: [],
}

export async function growServed(scale: Scale): Promise<readonly Axis[]> {
  const axes: Axis[] = [await pdps()]
  const nodes = await startNodes(1)
  try {
    axes.push(await connections(nodes, CONNECTIONS_MAX[scale]), await streams(nodes, STREAMS_MAX[scale]))
  } finally {
    await nodes.stop()
  }
  return axes
}

async function pdps(): Promise<Axis> {
  const points: Point[] = []
  for (let count = 1; count <= NODES_MAX; count += 1) {
    const nodes = await startNodes(count)
    const clients = nodes.nodes.map(({ grpc }) => grpcClient(grpc))
    try {
      const token = await nodes.token()
      const ask = (i: number): Promise<void> => allowedBy(clients[i % count], token)
      await load(ask, { callers: CALLERS, ms: ROUND_MS })
      const { timesMs } = await load(ask, { callers: CALLERS, ms: ROUND_MS })
      const { p50, p99 } = latencyOf(timesMs)
      const memoryMb = nodes.nodes.reduce((sum, node) => sum + node.memoryMb(), 0)
      points.push({ x: count, p50Ms: p50, p99Ms: p99, memoryMb })
    } finally {
      for (const client of clients) client.close()
      await nodes.stop()
    }
  }
  const what = `${CALLERS} callers in turn over streams, on the same two cores; memory of all PDPs`
  return { name: 'PDPs on one database', file: 'growth-pdps', x: 'PDPs', what, points }
}

async function allowedBy(client: GrpcClient | undefined, token: string): Promise<void> {
  if ((await client?.ask(QUESTION, token))?.permissions[0]?.allowed !== true) throw new Error('a wrong answer')
}

async function connections(nodes: Nodes, most: number): Promise<Axis> {
  const services = await startServices()
  const names = ['connections_max', 'client_connections_max']
  const sidecar = await startProcess({
    routeFile: JSON.stringify({
      portcullis: 'v1',
      resource: RESOURCE,
      issuers: [{ issuer: nodes.issuer }],
      upstream: `http://127.0.0.1:${services.port}`,
      pdp: { address: nodes.nodes[0]?.grpc, insecure: true },
      limits: { ...Object.fromEntries(names.map((name) => [name, 100_000])), pdp_ms: 5_000, headers_ms: 600_000 },
      routes: { 'GET /invoices/{id}': 'viewer invoice:{id}' },
    }),
  })
  const pool = new Pool(`http://127.0.0.1:${sidecar.port}`, { connections: CALLERS })
  const idle: Socket[] = []
  const points: Point[] = []
  try {
    const headers = { host: 'app.test', authorization: `Bearer ${await nodes.token()}` }
    const ask = async (): Promise<void> => {
      const { statusCode, body } = await pool.request({ method: 'GET', path: '/invoices/1', headers })
      await body.dump()
      if (statusCode !== 200) throw new Error(`a request got ${statusCode}`)
    }
    await load(ask, { callers: CALLERS, ms: ROUND_MS })
    for (const count of [...tens(1, most), most]) {
      if (points.at(-1)?.x === count) continue
      while (idle.length < count) idle.push(await openIdle(sidecar.port))
      const { timesMs } = await load(ask, { callers: CALLERS, ms: ROUND_MS })
      const { p50, p99 } = latencyOf(timesMs)
      points.push({ x: count, p50Ms: p50, p99Ms: p99, memoryMb: sidecar.memory().nowMb })
    }
  } finally {
    for (const socket of idle) socket.destroy()
    await pool.destroy()
    await sidecar.stop()
    services.stop()
  }
  const what = `${CALLERS} callers beside so many connections that are open and silent; memory of the sidecar`
  return { name: 'Idle connections of a sidecar', file: 'growth-connections', x: 'connections', what, points }
}

/** Without a byte of a request. */
export function openIdle(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket))
    socket.once('error', reject)
    socket.on('error', () => undefined)
  })
}

async function streams(nodes: Nodes, most: number): Promise<Axis> {
  const [node] = nodes.nodes
  const clients: GrpcClient[] = []
  const points: Point[] = []
  try {
    const token = await nodes.token()
    for (const count of tens(1, most)) {
      while (clients.length < count) {
        const client = grpcClient(node?.grpc ?? '')
        clients.push(client)
        await allowedBy(client, token)
      }
      const { timesMs } = await load((i) => allowedBy(clients[i % count], token), { callers: CALLERS, ms: ROUND_MS })
      const { p50, p99 } = latencyOf(timesMs)
      points.push({ x: count, p50Ms: p50, p99Ms: p99, memoryMb: node?.memoryMb() ?? 0 })
    }
  } finally {
    for (const client of clients) client.close()
  }
  const what = `${CALLERS} callers, who ask over one stream after another; memory of the PDP`
  return { name: 'Streams of sidecars to a PDP', file: 'growth-streams', x: 'streams', what, points }
}
