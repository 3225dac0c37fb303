/** A real PDP, an upstream, and sidecars in front of it, for tests with an identity provider that is not ours. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPdp } from '../../pdp/server/runtime/start.ts'
import { createLog } from '../../pdp/shared/process/log.ts'
import { createShutdown } from '../../pdp/shared/process/shutdown.ts'
import { readConfig } from '../../sidecar/config/config.ts'
import { startSidecar } from '../../sidecar/runtime/start.ts'
import { openTestDatabase } from '../support/database.ts'
import { freePort } from '../support/free-port.ts'
import { clientToken } from '../support/sign-in.ts'
import { until } from '../support/until.ts'
import { choosePorts } from './demo-stack.ts'
import { pdpSettings } from './pdp-settings.ts'

export const RESOURCE = 'https://orders.test'
export const HOST = '127.0.0.1'
const ADMIN_SECRET = 'the-secret-of-the-administrator'
const SCOPES =
  'directory:write manifest:write relationships:write roles:write issuers:write clients:write sessions:revoke ssf.manage'

export type OwnIssuerWorld = {
  /** Of the PDP. */
  readonly issuer: string
  readonly directory: string
  /** Header fields of the requests that reached the upstream. */
  readonly reached: IncomingHttpHeaders[]
  /** Of the log of all parts. */
  readonly lines: string[]
  manage(method: string, path: string, body?: object): Promise<void>
  /** Null where nothing is. */
  read(path: string): Promise<unknown>
  /** Of a client of the PDP without an organization. */
  ownToken(): Promise<string>
  /** Writes a route file and returns its path. */
  routeFile(routes: string, entry: object, publicUrl?: string): Promise<string>
  /** Starts a sidecar with these routes and this entry of an issuer, and returns its URL when it is ready. */
  startOn(routes: string, entry: object): Promise<string>
  close(): Promise<void>
}

/** `internalHosts`: of transmitters on this machine. */
export async function openOwnIssuerWorld(options: { internalHosts?: readonly string[] } = {}): Promise<OwnIssuerWorld> {
  const lines: string[] = []
  const log = createLog({ service: 'test', level: 'info', destination: { write: (line) => void lines.push(line) } })
  const shutdown = createShutdown({ log, timeoutMs: 20_000 })
  const ports = await choosePorts({})
  const database = await openTestDatabase()
  const directory = await mkdtemp(join(tmpdir(), 'portcullis-own-issuer-'))
  const issuer = `http://${HOST}:${ports.http}`
  const reached: IncomingHttpHeaders[] = []
  const server = createServer((req, res) => {
    reached.push(req.headers)
    if (req.url?.startsWith('/streams/'))
      res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: an order\n\n')
    else res.end('an order')
  })
  await new Promise<void>((done) => server.listen(0, HOST, done))
  const address = server.address()
  const upstream = `http://${HOST}:${typeof address === 'object' ? address?.port : 0}`
  const databaseUrl = database.connectionString
  const settings = pdpSettings({
    issuer,
    adminSecret: ADMIN_SECRET,
    host: HOST,
    ports,
    databaseUrl,
    dataDirectory: directory,
  })
  await startPdp({ ...settings, ...options }, { log, shutdown })
  const admin = { issuer, clientId: 'admin', clientSecret: ADMIN_SECRET }

  async function send(method: string, path: string, body?: object): Promise<Response> {
    const { access_token: token } = await clientToken({ ...admin, scope: SCOPES })
    return fetch(`${issuer}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
  }

  async function routeFile(routes: string, entry: object, publicUrl = RESOURCE): Promise<string> {
    const file = join(directory, `routes-${await freePort()}.yaml`)
    await writeFile(
      file,
      `portcullis: v1
resource: ${RESOURCE}
public_url: ${publicUrl}
issuers:
  - {issuer: "${issuer}"}
  - ${JSON.stringify(entry)}
upstream: ${upstream}
pdp: {address: "${HOST}:${ports.grpc}", insecure: true}
limits: {pdp_ms: 5000}
routes:
${routes}`,
    )
    return file
  }

  return {
    issuer,
    routeFile,
    directory,
    reached,
    lines,
    async manage(method, path, body) {
      const response = await send(method, path, body)
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    },
    async read(path) {
      const response = await send('GET', path)
      const body: unknown = await response.json()
      return response.ok ? body : null
    },
    ownToken: async () => (await clientToken({ ...admin, resource: RESOURCE, scope: '' })).access_token,
    async startOn(routes, entry) {
      const [data, adminPort] = [await freePort(), await freePort()]
      const file = await routeFile(routes, entry, `http://${HOST}:${data}`)
      const config = readConfig({}, { file, listen: `${HOST}:${data}`, adminListen: `${HOST}:${adminPort}` })
      await startSidecar(config, { log, shutdown })
      await until(async () => (await fetch(`http://${HOST}:${adminPort}/readyz`)).ok)
      return `http://${HOST}:${data}`
    },
    async close() {
      await shutdown.run('test')
      server.closeAllConnections()
      server.close()
      await rm(directory, { recursive: true })
      await database.drop()
    },
  }
}

export async function call(url: string, token: string): Promise<{ status: number; code: unknown }> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
  const text = await response.text()
  return { status: response.status, code: response.ok ? null : JSON.parse(text).code }
}
