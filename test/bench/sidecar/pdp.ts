/** The PDP beside the benchmarked sidecar: a process of its own on its embedded PostgreSQL, and a client of it with tokens. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { NODE_FLAGS } from '../../../pdp/shared/process/command/node-flags.ts'
import { choosePorts } from '../../e2e/demo-stack.ts'
import { type KeyPair, proof } from '../../support/peers/issuer.ts'
import { clientToken } from '../../support/sign-in.ts'

export type BenchPdp = {
  readonly issuer: string
  readonly grpcAddress: string
  readonly pid: number
  /** Of the metrics listener. */
  readonly operationsUrl: string
  readonly dataDirectory: string
  /** A management call that must succeed. */
  manage(method: string, path: string, body: object): Promise<void>
  /** For fifteen minutes. With keys: bound to them. */
  token(keys?: KeyPair): Promise<string>
  /** Of another client that may do the same. */
  otherToken(): Promise<string>
  /** For another audience: the PDP itself. */
  ownToken(): Promise<string>
  stop(): Promise<void>
}

export const RESOURCE = 'https://app.test'
export const PATH = '/invoices/1'
const MAIN = fileURLToPath(new URL('../../../pdp/main.ts', import.meta.url))
const ADMIN_SECRET = 'bench-secret-of-no-value-anywhere-else'
const CLIENT = { clientId: 'bench', clientSecret: 'bench-client-secret-of-no-value-anywhere' }
const OTHER = { clientId: 'other', clientSecret: CLIENT.clientSecret }
const SCOPES = 'directory:write manifest:write relationships:write clients:write decisions:read decisions:ask'

/** `main`: the `pdp/main.ts` of another build. `flags`: of Node; default `PDP_FLAGS`, else those that it is installed with. `more`: settings. */
export async function startBenchPdp(
  main = MAIN,
  flags = process.env.PDP_FLAGS ?? NODE_FLAGS.pdp.join(' '),
  more: NodeJS.ProcessEnv = {},
): Promise<BenchPdp> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-'))
  const ports = await choosePorts({})
  const issuer = `http://127.0.0.1:${ports.http}`
  const grpcAddress = `127.0.0.1:${ports.grpc}`
  const child = spawn(process.execPath, [...flags.split(' '), main, 'serve'], {
    env: {
      PATH: process.env.PATH,
      PORTCULLIS_DATA_DIR: folder,
      PORTCULLIS_ADMIN_SECRET: ADMIN_SECRET,
      PORTCULLIS_HTTP_LISTEN: `127.0.0.1:${ports.http}`,
      PORTCULLIS_GRPC_LISTEN: grpcAddress,
      PORTCULLIS_METRICS_LISTEN: `127.0.0.1:${ports.metrics}`,
      ...more,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  let manage: BenchPdp['manage']
  try {
    await ready(child, `http://127.0.0.1:${ports.metrics}/readyz`)
    manage = await manager(issuer)
    await setUp(manage)
  } catch (err) {
    child.kill('SIGTERM')
    throw err
  }
  return {
    issuer,
    grpcAddress,
    pid: child.pid ?? 0,
    operationsUrl: `http://127.0.0.1:${ports.metrics}`,
    dataDirectory: folder,
    manage,
    token: (keys) => (keys === undefined ? bearerToken(issuer, CLIENT) : boundToken(issuer, keys)),
    otherToken: () => bearerToken(issuer, OTHER),
    ownToken: () => bearerToken(issuer, CLIENT, issuer),
    stop: () =>
      new Promise((resolve) => {
        child.once('exit', () => {
          rmSync(folder, { recursive: true, force: true })
          resolve()
        })
        child.kill('SIGTERM')
      }),
  }
}

/** The first start makes a database; that takes a while on a busy machine. */
async function ready(child: ChildProcess, url: string): Promise<void> {
  for (let tries = 0; tries < 600; tries += 1) {
    if ((await fetch(url).catch(() => null))?.ok === true) return
    if (child.exitCode !== null) throw new Error(`the PDP ended with ${child.exitCode}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('the PDP did not become ready')
}

/** On a machine that has more to do, a first call may miss the PDP's deadline. */
export async function patiently<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; tries < 20; tries += 1) {
    const done = await attempt().catch(() => null)
    if (done !== null) return done
  }
  return attempt()
}

async function manager(issuer: string): Promise<BenchPdp['manage']> {
  const admin = await patiently(() =>
    clientToken({ issuer, clientId: 'admin', clientSecret: ADMIN_SECRET, scope: SCOPES }),
  )
  return async (method, path, body) => {
    const headers = { authorization: `Bearer ${admin.access_token}`, 'content-type': 'application/json' }
    await patiently(async () => {
      const response = await fetch(`${issuer}${path}`, { method, headers, body: JSON.stringify(body) })
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
      return true
    })
  }
}

/** Two clients of one organization may view one invoice. */
async function setUp(manage: BenchPdp['manage']): Promise<void> {
  await manage('PUT', '/v1/organizations/acme', { name: 'Acme' })
  await manage('PUT', '/v1/apps/invoices/manifest', { audiences: [RESOURCE] })
  for (const { clientId, clientSecret } of [CLIENT, OTHER])
    await manage('PUT', `/v1/clients/${clientId}`, {
      app: 'invoices',
      organization: 'acme',
      grant_types: ['client_credentials'],
      client_secret: clientSecret,
    })
  const write = [CLIENT, OTHER].map(({ clientId }) => `invoice:1#viewer@service:${clientId}`)
  await manage('POST', '/v1/organizations/acme/relationships', { write })
}

const bearerToken = async (issuer: string, client: typeof CLIENT, resource = RESOURCE): Promise<string> =>
  (await patiently(() => clientToken({ issuer, ...client, resource }))).access_token

async function boundToken(issuer: string, keys: KeyPair): Promise<string> {
  const url = `${issuer}/oauth/token`
  const dpop = await proof({ keys, method: 'POST', url, token: '', clock: Date.now, claims: { ath: undefined } })
  const authorization = `Basic ${Buffer.from(`${CLIENT.clientId}:${CLIENT.clientSecret}`).toString('base64')}`
  const body = new URLSearchParams({ grant_type: 'client_credentials', resource: RESOURCE })
  const response = await fetch(url, { method: 'POST', headers: { authorization, dpop }, body })
  if (!response.ok) throw new Error(`no bound token: ${response.status} ${await response.text()}`)
  return ((await response.json()) as { access_token: string }).access_token
}
