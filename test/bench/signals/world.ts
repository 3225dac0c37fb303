/** Two PDPs on one PostgreSQL, organizations with a stream each, and a receiver that keeps what it was sent. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../../pdp/engine/store/embedded-postgres/embedded-postgres.ts'
import { postgresDirectory } from '../../../pdp/engine/store/postgres/directory.ts'
import { openPostgres } from '../../../pdp/engine/store/postgres/postgres.ts'
import { masterKeysOf } from '../../../pdp/shared/base/encryption.ts'
import type { Change } from '../../../pdp/shared/domain/change.ts'
import { ENVIRONMENT } from '../../../pdp/shared/domain/journal.ts'
import { createStream } from '../../../pdp/signals/transmitter/streams.ts'
import { createPart, type Part, spawnNode } from '../../faults/part.ts'
import { freePort } from '../../support/free-port.ts'
import { clientToken } from '../../support/sign-in.ts'
import { context } from '../../support/tuples.ts'

const MAIN = join(import.meta.dirname, '../../../pdp/main.ts')
const ADMIN_SECRET = 'bench-secret-of-no-value-anywhere-else'
const MASTER_KEY = Buffer.alloc(32, 's')
export const masterKeys = masterKeysOf(MASTER_KEY)
const SCOPES = 'directory:write'

export type Replica = { readonly part: Part; readonly url: string }
export type World = {
  readonly opened: Awaited<ReturnType<typeof openPostgres>>
  readonly replicas: readonly [Replica, Replica]
  readonly organizations: readonly string[]
  /** Of each stream the organization whose events it carries; '' for those that carry all. */
  readonly streams: ReadonlyMap<string, string>
  readonly folder: string
  readonly receiver: Receiver
  readonly token: string
  stop(): Promise<void>
}
/** What came on a stream, in order. */
export type Received = { readonly token: string; readonly atMs: number }
export type Receiver = { readonly url: string; readonly received: ReadonlyMap<string, Received[]>; close(): void }

export async function openWorld(streamsCount: number): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-'))
  const settings = { shared_preload_libraries: 'pg_stat_statements' }
  const postgres = await startEmbeddedPostgres({ dataDirectory: folder, settings })
  const opened = await openPostgres({ connectionString: postgres.connectionString })
  await opened.sql.query('create extension pg_stat_statements')
  const receiver = await startReceiver()
  const ports = await Promise.all([1, 2].map(async () => [await freePort(), await freePort(), await freePort()]))
  const issuer = `http://127.0.0.1:${ports[0]?.[0]}`
  const replicas = ports.map(([http = 0, grpc = 0, metrics = 0], at): Replica => {
    const env = {
      PORTCULLIS_ISSUER: issuer,
      PORTCULLIS_ADMIN_SECRET: ADMIN_SECRET,
      PORTCULLIS_MASTER_KEY: MASTER_KEY.toString('base64'),
      PORTCULLIS_HTTP_LISTEN: `127.0.0.1:${http}`,
      PORTCULLIS_GRPC_LISTEN: `127.0.0.1:${grpc}`,
      PORTCULLIS_METRICS_LISTEN: `127.0.0.1:${metrics}`,
      PORTCULLIS_DATA_DIR: join(folder, `pdp-${at}`),
      PORTCULLIS_SIGNAL_INTERNAL_HOSTS: '127.0.0.1',
      PORTCULLIS_LOG_LEVEL: 'warn',
      DATABASE_URL: postgres.connectionString,
    }
    const part = createPart({
      name: `pdp-${at}`,
      logFile: join(folder, `pdp-${at}.log`),
      launch: (more, log) => spawnNode([MAIN, 'serve'], { env: { ...env, ...more }, log }),
      ready: async () => (await fetch(`http://127.0.0.1:${metrics}/readyz`)).ok,
    })
    return { part, url: `http://127.0.0.1:${http}` }
  })
  const [first, second] = replicas
  if (first === undefined || second === undefined) throw new Error('two replicas are needed')
  async function stop(): Promise<void> {
    for (const { part } of replicas) part.signal('SIGTERM')
    for (const { part } of replicas) await part.ended()
    receiver.close()
    await opened.close()
    await postgres.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    for (const { part } of replicas) await part.start()
    const { organizations, streams } = await seed(opened, { count: streamsCount, receiver: receiver.url })
    const grant = await clientToken({ issuer, clientId: 'admin', clientSecret: ADMIN_SECRET, scope: SCOPES })
    const token = grant.access_token
    return { folder, opened, replicas: [first, second], organizations, streams, receiver, token, stop }
  } catch (err) {
    await stop()
    throw err
  }
}

const WRITES_AT_ONCE = 100
/** Streams that carry the events of all organizations. */
export const EVERY = 10

/** One organization for each stream, and `EVERY` streams that carry the events of all. */
async function seed(
  { sql, store }: World['opened'],
  { count, receiver }: { readonly count: number; readonly receiver: string },
): Promise<Pick<World, 'organizations' | 'streams'>> {
  const directory = postgresDirectory(sql)
  const organizations = Array.from({ length: count }, (_, at) => `org${at}`)
  for (let at = 0; at < organizations.length; at += WRITES_AT_ONCE) {
    const changes = organizations
      .slice(at, at + WRITES_AT_ONCE)
      .map((id): Change => ({ kind: 'organization', id, organization: { id, name: id, parent: null } }))
    await store.write(ENVIRONMENT, changes, { context })
  }
  await directory.putUser({ id: 'ann', email: null, emailVerified: false, name: null }, context)
  const streams = new Map<string, string>()
  const all = Array.from({ length: EVERY }, (_, at) => ({ name: `all-${at}`, organization: null }))
  for (const { name, organization } of [...organizations.map((id) => ({ name: id, organization: id })), ...all]) {
    const id = `stream-of-${name}`
    const client = `receiver-of-${name}`
    await directory.putClient({ id: client, app: null, organization, metadata: {} }, context)
    const request = {
      endpointUrl: `${receiver}/${id}`,
      authorizationSealed: null,
      eventsRequested: null,
      subjectFormat: 'complex',
      description: null,
    } as const
    await sql.transaction((tx) => createStream(tx, { client, organization }, { id, ...request }))
    streams.set(id, organization ?? '')
  }
  return { organizations, streams }
}

async function startReceiver(): Promise<Receiver> {
  const received = new Map<string, Received[]>()
  const server: Server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      const stream = req.url?.slice(1) ?? ''
      const all = received.get(stream) ?? []
      all.push({ token: Buffer.concat(chunks).toString(), atMs: Date.now() })
      received.set(stream, all)
      res.writeHead(202).end()
    })
  })
  const port = await freePort()
  await new Promise<void>((done) => server.listen(port, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
