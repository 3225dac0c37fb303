/** The system under test: PostgreSQL, Redis, three PDPs, two sidecars, the service behind them, and links that can fail. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  ensureCluster,
  locateCluster,
  readPassword,
  SUPERUSER,
  spawnPostmaster,
} from '../../pdp/engine/store/embedded-postgres/process.ts'
import { freePort } from '../support/free-port.ts'
import { createPart, type Part, spawnNode } from './part.ts'
import { type Link, openLink } from './proxy.ts'

export type Pdp = { readonly part: Part; readonly http: string; readonly readiness: string }
export type Sidecar = { readonly part: Part; readonly port: number; readonly readiness: string }
export type LinkName = 'sidecar-pdp' | 'pdp-postgres' | 'pdp-redis' | 'sidecar-redis' | 'sidecar-upstream'
export type System = {
  readonly folder: string
  readonly postgres: Part
  /** Null: `redis-server` is not installed. */
  readonly redis: Part | null
  readonly pdps: readonly Pdp[]
  readonly sidecars: readonly Sidecar[]
  readonly upstream: Part
  /** Those of the first PDP, or of all. */
  links(name: LinkName, of: 'one' | 'all'): readonly Link[]
  /** Where the database's files are on a file system of their own, which can be filled; else why they are not. */
  readonly disk: { readonly path: string } | { readonly missing: string }
  readonly adminSecret: string
  stop(): Promise<void>
}

/** Entitlements, each with a route. One is used up when the outcome of its write is not known. */
export const FEATURES: readonly string[] = Array.from({ length: 400 }, (_, at) => `f${at}`)
export const RESOURCE = 'https://documents.faults.example'
const ADMIN_SECRET = 'faults-admin-secret-0123456789'
const MASTER_KEY = Buffer.alloc(32, 'f').toString('base64')
/** More than the default: while parts start, a machine with two cores has no time for the others. */
const PDP_MS = 1_500
const COUNTS = { pdps: 3, sidecars: 2 }
export type Counts = { readonly [part in keyof typeof COUNTS]: number }
const ROOT = join(import.meta.dirname, '../..')
const SHIFT = join(import.meta.dirname, 'shift-clock.ts')

/** A database and a Redis that the caller started. `env`: settings of the PDPs that go with it. */
export type GivenDatabase = {
  readonly part: Part
  readonly port: number
  readonly urlAt: (port: number) => string
  readonly env: { readonly [name: string]: string }
  readonly redis: { readonly part: Part; readonly url: string }
}

/** `given`: database and Redis; without it those of the system's own, the database on a small disk. */
export async function startSystem({
  given = null,
  counts = COUNTS,
}: {
  readonly given?: GivenDatabase | null
  readonly counts?: Counts
}): Promise<System> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-faults-'))
  const disk = given === null ? mountDisk(folder) : { missing: 'the database is not of this system' }
  const closers: (() => Promise<void> | void)[] = [
    () => unmountDisk(disk),
    () => rmSync(folder, { recursive: true, force: true }),
  ]
  const stop = async (): Promise<void> => {
    for (const close of closers) await close()
  }
  const own = (part: Part): Part => {
    closers.unshift(async () => {
      part.signal('SIGCONT')
      part.signal('SIGKILL')
      await part.ended()
    })
    return part
  }
  const open = async (port: number): Promise<Link> => {
    const link = await openLink(port)
    closers.unshift(() => link.close())
    return link
  }
  try {
    const database = given ?? { ...(await createDatabase('path' in disk ? disk.path : folder, folder)), env: {} }
    const postgres = given === null ? own(database.part) : database.part
    if (given === null) await postgres.start()
    const redis = given === null ? await createRedis(folder) : null
    if (redis !== null) await own(redis.part).start()
    const redisAt = (link: Link | null): { [name: string]: string } => {
      const url = link === null ? given?.redis.url : `redis://127.0.0.1:${link.port}`
      return url === undefined ? {} : { REDIS_URL: url }
    }
    const links = new Map<LinkName, Link[]>()
    const keep = (name: LinkName, link: Link): Link => {
      links.set(name, [...(links.get(name) ?? []), link])
      return link
    }
    const ports = await Promise.all(
      Array.from({ length: counts.pdps }, async () => [await freePort(), await freePort(), await freePort()]),
    )
    const issuer = `http://127.0.0.1:${ports[0]?.[0]}`
    const pdps: Pdp[] = []
    for (const [at, [http = 0, grpc = 0, metrics = 0]] of ports.entries()) {
      const toPostgres = keep('pdp-postgres', await open(database.port))
      const toRedis = redis === null ? null : keep('pdp-redis', await open(redis.port))
      const env = {
        PORTCULLIS_ISSUER: issuer,
        PORTCULLIS_ADMIN_SECRET: ADMIN_SECRET,
        PORTCULLIS_MASTER_KEY: MASTER_KEY,
        PORTCULLIS_HTTP_LISTEN: `127.0.0.1:${http}`,
        PORTCULLIS_GRPC_LISTEN: `127.0.0.1:${grpc}`,
        PORTCULLIS_METRICS_LISTEN: `127.0.0.1:${metrics}`,
        PORTCULLIS_DATA_DIR: join(folder, `pdp-${at}`),
        DATABASE_URL: database.urlAt(toPostgres.port),
        ...redisAt(toRedis),
        ...database.env,
      }
      const readiness = `http://127.0.0.1:${metrics}/readyz`
      const part = own(
        nodePart({ name: `pdp-${at}`, folder, args: [join(ROOT, 'pdp/main.ts'), 'serve'], env, readiness }),
      )
      pdps.push({ part, http: `http://127.0.0.1:${http}`, readiness })
    }
    const servicePort = await freePort()
    const upstream = own(
      createPart({
        name: 'upstream',
        logFile: join(folder, 'upstream.log'),
        launch: (env, log) =>
          spawnNode([join(import.meta.dirname, 'upstream.ts')], { env: { ...env, PORT: `${servicePort}` }, log }),
        ready: () => canConnect(servicePort),
      }),
    )
    const sidecars: Sidecar[] = []
    for (let at = 0; at < counts.sidecars; at += 1) {
      const addresses = []
      for (const [, grpc = 0] of ports) addresses.push(`127.0.0.1:${keep('sidecar-pdp', await open(grpc)).port}`)
      const toRedis = redis === null ? null : keep('sidecar-redis', await open(redis.port))
      const service = keep('sidecar-upstream', await open(servicePort))
      const [port, admin] = [await freePort(), await freePort()]
      const path = join(folder, `routes-${at}.yaml`)
      writeFileSync(path, routeFile({ issuer, addresses, service: service.port }))
      const readiness = `http://127.0.0.1:${admin}/readyz`
      const listen = ['--listen', `127.0.0.1:${port}`, '--admin-listen', `127.0.0.1:${admin}`]
      const args = [join(ROOT, 'sidecar/main.ts'), 'run', '-f', path, ...listen]
      const part = own(nodePart({ name: `sidecar-${at}`, folder, args, env: redisAt(toRedis), readiness }))
      sidecars.push({ part, port, readiness })
    }
    // One after the other: at its start a PDP ends where the database does not answer in time, as beside others on two cores.
    for (const { part } of [...pdps, { part: upstream }, ...sidecars]) await part.start()
    return {
      folder,
      postgres,
      redis: given?.redis.part ?? redis?.part ?? null,
      pdps,
      sidecars,
      upstream,
      disk,
      adminSecret: ADMIN_SECRET,
      stop,
      links(name, of) {
        const all = links.get(name) ?? []
        if (of === 'all') return all
        // Each sidecar has a link to each PDP, in their order.
        return name === 'sidecar-pdp' ? all.filter((_, at) => at % counts.pdps === 1) : all.slice(1, 2)
      },
    }
  } catch (err) {
    await stop()
    throw err
  }
}

const routeFile = (at: { issuer: string; addresses: readonly string[]; service: number }): string => `portcullis: v1
resource: ${RESOURCE}
issuers: [{issuer: "${at.issuer}"}]
upstream: http://127.0.0.1:${at.service}
pdp: {addresses: ${JSON.stringify(at.addresses)}, insecure: true}
limits: {pdp_ms: ${PDP_MS}}
routes:
  GET /documents/{id}: viewer document:{id}
${FEATURES.map((name) => `  GET /features/${name}: entitlement feature.${name}`).join('\n')}
`

type NodePart = {
  readonly name: string
  readonly folder: string
  readonly args: readonly string[]
  readonly env: { readonly [name: string]: string }
  readonly readiness: string
}

function nodePart({ name, folder, args, env, readiness }: NodePart): Part {
  return createPart({
    name,
    logFile: join(folder, `${name}.log`),
    launch: (more, log) => {
      const preload = more.FAULTS_CLOCK_SHIFT_MS === undefined ? [] : ['--import', SHIFT]
      return spawnNode([...preload, ...args], { env: { ...env, ...more }, log })
    },
    ready: async () => (await fetch(readiness)).ok,
  })
}

async function createDatabase(place: string, folder: string) {
  const cluster = await locateCluster(join(place, 'database'))
  await ensureCluster(cluster)
  const password = await readPassword(cluster)
  const port = await freePort()
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: '200',
    port: `${port}`,
    max_wal_size: '64MB',
    min_wal_size: '32MB',
  }
  const part = createPart({
    name: 'postgres',
    logFile: join(folder, 'postgres-start.log'),
    launch: () => spawnPostmaster(cluster, settings),
    ready: () => canConnect(port),
  })
  return { part, port, urlAt: (at: number) => `postgresql://${SUPERUSER}:${password}@127.0.0.1:${at}/postgres` }
}

async function createRedis(folder: string): Promise<{ part: Part; port: number } | null> {
  if (spawnSync('redis-server', ['--version']).status !== 0) return null
  const port = await freePort()
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  const part = createPart({
    name: 'redis',
    logFile: join(folder, 'redis.log'),
    launch: (_env, log) => spawn('redis-server', args, { stdio: ['ignore', log, log] }),
    ready: () => canConnect(port),
  })
  return { part, port }
}

function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

const DISK_MB = 300

/** A small file system for the database, which only root can make. */
function mountDisk(folder: string): System['disk'] {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return { missing: 'only root on Linux can mount a small disk' }
  const path = join(folder, 'disk')
  mkdirSync(path, { mode: 0o711 })
  const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m,mode=0711`, 'tmpfs', path])
  return status === 0 ? { path } : { missing: `mount: ${String(stderr).trim()}` }
}

function unmountDisk(disk: System['disk']): void {
  if ('path' in disk) spawnSync('umount', ['-l', disk.path])
}
