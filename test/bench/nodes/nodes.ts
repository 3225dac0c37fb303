/** Several PDPs on one PostgreSQL, each a process of its own, with what manages them and a client whose tokens ask. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Pool } from 'undici'
import { startEmbeddedPostgres } from '../../../pdp/engine/store/embedded-postgres/embedded-postgres.ts'
import { choosePorts } from '../../e2e/demo-stack.ts'
import { clientToken } from '../../support/sign-in.ts'
import { residentMb } from '../report/process-use.ts'

export const RESOURCE = 'https://app.test'
export type Node = { readonly http: string; readonly grpc: string; readonly metrics: string; memoryMb(): number }
export type Nodes = {
  readonly issuer: string
  readonly connectionString: string
  readonly nodes: readonly Node[]
  /** Of the client `bench`, for fifteen minutes. */
  token(): Promise<string>
  /** A management call of one node that must succeed. */
  manage(method: 'PUT' | 'POST', path: string, body: object, node?: number): Promise<void>
  stop(): Promise<void>
}
type Closers = (() => Promise<unknown>)[]

const MAIN = fileURLToPath(new URL('../../../pdp/main.ts', import.meta.url))
const ADMIN_SECRET = 'bench-secret-of-no-value-anywhere-else'
const CLIENT = { clientId: 'bench', clientSecret: 'bench-client-secret-of-no-value-anywhere' }
const SCOPES = 'directory:write manifest:write relationships:write clients:write decisions:read'
const READY_TRIES = 1_200
const AGAIN_TRIES = 100
const TOKEN_MS = 600_000

export async function startNodes(count: number): Promise<Nodes> {
  const closers: Closers = []
  const stop = async (): Promise<void> => {
    for (const close of closers) await close()
  }
  try {
    const folder = await mkdtemp(join(tmpdir(), 'portcullis-bench-'))
    closers.unshift(() => rm(folder, { recursive: true, force: true }))
    const postgres = await startEmbeddedPostgres({ dataDirectory: folder, settings: { max_connections: '200' } })
    closers.unshift(() => postgres.stop())
    const nodes: Node[] = []
    let issuer = ''
    for (let at = 0; at < count; at += 1) {
      const ports = await choosePorts({})
      if (at === 0) issuer = `http://127.0.0.1:${ports.http}`
      const child = spawn(process.execPath, [MAIN, 'serve'], {
        env: {
          PATH: process.env.PATH,
          PORTCULLIS_ISSUER: issuer,
          PORTCULLIS_ADMIN_SECRET: ADMIN_SECRET,
          PORTCULLIS_MASTER_KEY: Buffer.alloc(32, 'b').toString('base64'),
          PORTCULLIS_DATA_DIR: join(folder, `node-${at}`),
          PORTCULLIS_HTTP_LISTEN: `127.0.0.1:${ports.http}`,
          PORTCULLIS_GRPC_LISTEN: `127.0.0.1:${ports.grpc}`,
          PORTCULLIS_METRICS_LISTEN: `127.0.0.1:${ports.metrics}`,
          PORTCULLIS_LOG_LEVEL: 'warn',
          DATABASE_URL: postgres.connectionString,
        },
        stdio: ['ignore', 'ignore', 'inherit'],
      })
      closers.unshift(() => ended(child))
      const metrics = `http://127.0.0.1:${ports.metrics}`
      await ready(child, `${metrics}/readyz`)
      const http = `http://127.0.0.1:${ports.http}`
      nodes.push({ http, grpc: `127.0.0.1:${ports.grpc}`, metrics, memoryMb: () => residentMb(child.pid ?? 0) })
    }
    const manage = await manager(issuer, nodes, closers)
    await setUp(manage)
    const token = async (): Promise<string> =>
      (await clientToken({ issuer, ...CLIENT, resource: RESOURCE })).access_token
    return { issuer, connectionString: postgres.connectionString, nodes, manage, token, stop }
  } catch (err) {
    await stop()
    throw err
  }
}

async function manager(issuer: string, nodes: readonly Node[], closers: Closers): Promise<Nodes['manage']> {
  const admin = { issuer, clientId: 'admin', clientSecret: ADMIN_SECRET, scope: SCOPES }
  const pools = nodes.map(({ http }) => new Pool(http, { connections: 16 }))
  closers.unshift(() => Promise.all(pools.map((pool) => pool.destroy())))
  const mint = async () => ({ text: (await clientToken(admin)).access_token, untilMs: Date.now() + TOKEN_MS })
  let token = await mint()
  return async (method, path, body, node = 0) => {
    if (Date.now() > token.untilMs) token = await mint()
    const headers = { authorization: `Bearer ${token.text}`, 'content-type': 'application/json' }
    for (let triesLeft = AGAIN_TRIES; ; triesLeft -= 1) {
      const response = await pools[node % pools.length]?.request({ method, path, headers, body: JSON.stringify(body) })
      const text = (await response?.body.text()) ?? ''
      const status = response?.statusCode ?? 0
      if (status >= 200 && status < 300) return
      // A machine that others use as well refuses early; a client that is told to come back does so.
      if (status !== 429 || triesLeft === 0) throw new Error(`${method} ${path}: ${status} ${text}`)
      await delay(200)
    }
  }
}

async function setUp(manage: Nodes['manage']): Promise<void> {
  await manage('PUT', '/v1/organizations/acme', { name: 'Acme' })
  await manage('PUT', '/v1/apps/invoices/manifest', { audiences: [RESOURCE] })
  await manage('PUT', `/v1/clients/${CLIENT.clientId}`, {
    app: 'invoices',
    organization: 'acme',
    grant_types: ['client_credentials'],
    client_secret: CLIENT.clientSecret,
  })
  await manage('POST', '/v1/organizations/acme/relationships', { write: ['invoice:1#viewer@service:bench'] })
}

async function ready(child: ChildProcess, url: string): Promise<void> {
  for (let tries = 0; tries < READY_TRIES; tries += 1) {
    if ((await fetch(url).catch(() => null))?.ok === true) return
    if (child.exitCode !== null) throw new Error(`a PDP ended with ${child.exitCode}`)
    await delay(100)
  }
  throw new Error('a PDP did not become ready')
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await exit
  clearTimeout(timer)
}
