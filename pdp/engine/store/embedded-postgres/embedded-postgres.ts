/** Runs a PostgreSQL server in the data directory, where no DATABASE_URL is given: starts it, takes it over after a crash, stops it. */
import type { ChildProcess } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { StartError } from '../../../shared/process/exit.ts'
import { ADVISORY_LOCKS } from '../advisory-locks.ts'
import {
  type Cluster,
  ensureCluster,
  findPostmaster,
  isRunning,
  locateCluster,
  type Postmaster,
  readPassword,
  SUPERUSER,
  signalPostmaster,
  spawnPostmaster,
} from './process.ts'

const START_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 10_000
const POLL_MS = 20
// How long a start waits for the lock's holder. A killed holder's lock disappears within milliseconds.
const OWNER_WAIT_MS = 2_000
const RETAKE_MS = 250

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  max_connections: '100',
  log_checkpoints: 'off',
  jit: 'off',
}

/**
 * Starts PostgreSQL in `<dataDirectory>/postgres`, or takes over the one that a killed process left running there. If it
 * ends, it is started again at the same port, and `onRestart` is called.
 * `settings` override PostgreSQL's. Throws StartError, one line, when the directory is in use by another process or belongs to
 * another user, or PostgreSQL does not start.
 */
export async function startEmbeddedPostgres(options: {
  readonly dataDirectory: string
  readonly settings?: { readonly [name: string]: string }
  readonly onRestart?: () => void
}): Promise<{ readonly connectionString: string; stop(): Promise<void> }> {
  const cluster = await locateCluster(resolve(options.dataDirectory))
  await ensureCluster(cluster)
  const password = await readPassword(cluster)
  const settings = { ...SETTINGS, ...options.settings }
  const { port, pid } = await findOrStart(cluster, settings)
  let running = { pid, stay: () => {} }
  const connectionString = `postgresql://${SUPERUSER}:${password}@127.0.0.1:${port}/postgres`
  const owner = await becomeOwner(cluster, connectionString, async () => {
    // While the postmaster runs, it restarts crashed server processes by itself.
    if (findPostmaster(cluster) !== null) return
    const again = await findOrStart(cluster, { ...settings, port: `${port}` })
    running.stay()
    running = { pid: again.pid, stay: stopAtExit(cluster, again.pid) }
    options.onRestart?.()
  })
  running.stay = stopAtExit(cluster, pid)
  return {
    connectionString,
    async stop() {
      await owner.release()
      await stopPostmaster(cluster, running.pid)
      running.stay()
    },
  }
}

/** Stops the server if this process ends without stop(), as by an uncaught error. The returned function undoes this. */
function stopAtExit(cluster: Cluster, pid: number): () => void {
  const onExit = (): void => signalPostmaster(cluster, pid, 'SIGINT')
  process.once('exit', onExit)
  return () => void process.removeListener('exit', onExit)
}

/** Finds the running server or starts one, on any free port unless `settings.port` is set. */
async function findOrStart(
  cluster: Cluster,
  settings: { readonly [name: string]: string },
): Promise<Postmaster & { port: number }> {
  const deadline = Date.now() + START_TIMEOUT_MS
  let child: ChildProcess | null = null
  let stay = (): unknown => undefined
  while (Date.now() < deadline) {
    const found = findPostmaster(cluster)
    if (found?.ready && found.port !== null) {
      child?.unref()
      stay()
      return { ...found, port: found.port }
    }
    if (found === null && child !== null && hasEnded(child)) await explainFailure(cluster)
    if (found === null && (child === null || hasEnded(child))) {
      child = spawnPostmaster(cluster, { port: `${await freePort()}`, ...settings })
      child.on('error', () => undefined) // an error of the start is noticed below, as an end without a pid
      stay()
      if (child.pid !== undefined) stay = stopAtExit(cluster, child.pid)
    }
    await delay(POLL_MS)
  }
  throw new StartError(`PostgreSQL did not become ready in ${START_TIMEOUT_MS / 1000} s; its log is ${cluster.logFile}`)
}

function hasEnded(child: ChildProcess): boolean {
  return child.pid === undefined || child.exitCode !== null || child.signalCode !== null
}

// Throws the log's explanation, unless a new try may help: another start was faster, or the port was taken meanwhile.
async function explainFailure({ logFile }: Cluster): Promise<void> {
  const log = await readFile(logFile, 'utf8').catch(() => '')
  if (/lock file "postmaster\.pid" already exists|could not bind|Address already in use/.test(log)) return
  const reason = log.trim().split('\n').slice(-3).join(' | ')
  throw new StartError(`PostgreSQL did not start (${reason || 'it wrote nothing'}); its log is ${logFile}`)
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done, fail) => server.once('error', fail).listen(0, '127.0.0.1', done))
  const address = server.address()
  await new Promise((done) => server.close(done))
  return address === null || typeof address === 'string' ? 0 : address.port
}

/**
 * Keeps a lock in the database while this process lives. PostgreSQL drops it with our connection, even after kill -9; a file could not
 * distinguish a later process with the same id. `revive` starts a server that has ended.
 */
async function becomeOwner(
  cluster: Cluster,
  connectionString: string,
  revive: () => Promise<void>,
): Promise<{ release(): Promise<void> }> {
  const deadline = Date.now() + OWNER_WAIT_MS
  let released = false
  let retaking: Promise<void> | null = null
  let client = await takeLock()
  while (client === null && Date.now() < deadline) {
    await delay(POLL_MS)
    client = await takeLock()
  }
  if (client === null) {
    throw new StartError(
      `${cluster.directory} is in use by another Portcullis process, and one data directory serves one process. Stop that one, or name another directory by PORTCULLIS_DATA_DIR`,
    )
  }

  async function takeLock(): Promise<pg.Client | null> {
    const candidate = new pg.Client({
      connectionString,
      ssl: false,
      keepAlive: true,
      application_name: 'portcullis-owner',
    })
    candidate.on('error', () => undefined) // 'end' follows
    await candidate.connect()
    const { rows } = await candidate.query<{ got: boolean }>('select pg_try_advisory_lock($1) as got', [
      ADVISORY_LOCKS.clusterOwner,
    ])
    if (rows[0]?.got !== true) {
      await candidate.end()
      return null
    }
    candidate.once('end', () => {
      if (!released) retaking = retake()
    })
    return candidate
  }

  // A restarted server has lost its locks, so ours is taken again.
  async function retake(): Promise<void> {
    while (!released) {
      await delay(RETAKE_MS, undefined, { ref: false })
      if (released) return
      // The start is repeated until it succeeds: the old server's shared memory may be in use for a moment.
      const again = await revive()
        .then(takeLock, () => null)
        .catch(() => null)
      if (again === null) continue
      client = again
      return
    }
  }

  return {
    async release() {
      released = true
      // `retaking` alone does not keep this process alive while it waits, so a timer does.
      if (retaking !== null) await Promise.all([retaking, delay(RETAKE_MS)])
      await client?.end().catch(() => undefined)
    },
  }
}

async function stopPostmaster(cluster: Cluster, pid: number): Promise<void> {
  for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
    signalPostmaster(cluster, pid, signal)
    const deadline = Date.now() + STOP_TIMEOUT_MS
    while (Date.now() < deadline) {
      await delay(POLL_MS)
      if (findPostmaster(cluster)?.pid !== pid && !isRunning(pid)) return
    }
  }
  throw new Error(`PostgreSQL (process ${pid}) did not stop`)
}
