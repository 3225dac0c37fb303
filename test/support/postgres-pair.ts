/** Two real PostgreSQL servers, a primary and its standby, behind an address that a test leads from one to the other. */
import { execFileSync } from 'node:child_process'
import { appendFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import {
  type Cluster,
  ensureCluster,
  findPostmaster,
  locateCluster,
  readPassword,
  SUPERUSER,
  signalPostmaster,
  spawnPostmaster,
} from '../../pdp/engine/store/embedded-postgres/process.ts'
import { freePort } from './free-port.ts'
import { makeDataFolder } from './programs/data-folder.ts'
import { until } from './until.ts'

export type PairServer = {
  readonly port: number
  /** Of the superuser, past the address. */
  readonly url: string
  query<Row extends pg.QueryResultRow>(text: string): Promise<readonly Row[]>
  stop(): Promise<void>
}
export type PostgresPair = {
  readonly primary: PairServer
  readonly standby: PairServer
  /** Leads to the primary until it is led elsewhere. */
  readonly address: Address
  /** Of the superuser, by the address. */
  readonly url: string
  /** The standby becomes a primary, and the former one goes on, as one does whose agent died. */
  promote(): Promise<void>
  /** The standby gets nothing more, until it is attached again. */
  cutOff(): Promise<void>
  attach(): Promise<void>
  /** All that the primary wrote so far is at the standby. */
  caughtUp(): Promise<void>
  close(): Promise<void>
}

export type Address = {
  readonly port: number
  /** New connections go there; open ones stay where they are, or end. */
  lead(port: number, open: 'keeps' | 'cuts'): void
  close(): Promise<void>
}

/** `synchronous`: a commit of the primary waits until the standby has written it, and after the promotion for a third server. */
export async function startPostgresPair({ synchronous = false } = {}): Promise<PostgresPair> {
  const folders = [1, 2, 3].map(() => makeDataFolder('portcullis-test-'))
  const [from, to, third] = await Promise.all(folders.map(locateCluster))
  if (from === undefined || to === undefined || third === undefined)
    throw new TypeError('three folders make three clusters')
  await ensureCluster(from)
  const password = await readPassword(from)
  const follow = (cluster: Cluster, upstream: PairServer, name: string): Promise<PairServer> => {
    writeFileSync(join(cluster.directory, 'standby.signal'), '', { mode: 0o666 })
    const source = conninfo(password, upstream.port, name)
    // Where `alter system` can change it.
    appendFileSync(join(cluster.directory, 'postgresql.auto.conf'), `primary_conninfo = '${source}'\n`)
    return startServer(cluster, password, {
      wal_retrieve_retry_interval: '100ms',
      synchronous_standby_names: synchronous && name === 'standby' ? 'third' : '',
    })
  }
  for (const copy of synchronous ? [to, third] : [to]) execFileSync('cp', ['-a', from.directory, copy.directory])
  const primary = await startServer(from, password, {
    synchronous_standby_names: synchronous ? 'standby' : '',
    wal_keep_size: '256MB',
  })
  const standby = await follow(to, primary, 'standby')
  const servers = [primary, standby, ...(synchronous ? [await follow(third, standby, 'third')] : [])]
  const address = await openAddress(primary.port)
  const setSource = async (source: string): Promise<void> => {
    await standby.query(`alter system set primary_conninfo = '${source}'`)
    await standby.query('select pg_reload_conf()')
    const count = source === '' ? 0 : 1
    await until(async () => (await primary.query('select 1 from pg_stat_replication')).length === count)
  }
  return {
    primary,
    standby,
    address,
    url: urlOf(password, address.port),
    async promote() {
      await standby.query('select pg_promote(true, 20)')
    },
    cutOff: () => setSource(''),
    attach: () => setSource(conninfo(password, primary.port, 'standby')),
    async caughtUp() {
      const [row] = await primary.query<{ lsn: string }>('select pg_current_wal_lsn()::text as lsn')
      await until(async () => {
        const [at] = await standby.query<{ there: boolean }>(
          `select pg_last_wal_replay_lsn() >= '${row?.lsn}' as there`,
        )
        return at?.there === true
      })
    },
    async close() {
      await address.close()
      await Promise.all(servers.map((server) => server.stop()))
      for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

const conninfo = (password: string, port: number, name: string): string =>
  `host=127.0.0.1 port=${port} user=${SUPERUSER} password=${password} application_name=${name}`
const urlOf = (password: string, port: number): string =>
  `postgresql://${SUPERUSER}:${password}@127.0.0.1:${port}/postgres`

async function startServer(
  cluster: Cluster,
  password: string,
  settings: { readonly [name: string]: string },
): Promise<PairServer> {
  const port = await freePort()
  const child = spawnPostmaster(cluster, {
    ...{ port: `${port}`, listen_addresses: '127.0.0.1', unix_socket_directories: '', max_connections: '100' },
    ...{ fsync: 'off', full_page_writes: 'off', ...settings },
  })
  const url = urlOf(password, port)
  const query = async <Row extends pg.QueryResultRow>(text: string): Promise<readonly Row[]> => {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
    client.on('error', () => undefined)
    try {
      await client.connect()
      return (await client.query<Row>(text)).rows
    } finally {
      await client.end()
    }
  }
  await until(() =>
    query('select 1').then(
      () => true,
      () => false,
    ),
  )
  return {
    port,
    url,
    query,
    async stop() {
      const pid = findPostmaster(cluster)?.pid
      if (pid !== undefined) signalPostmaster(cluster, pid, 'SIGQUIT')
      await until(() => child.exitCode !== null || child.signalCode !== null)
    },
  }
}

export async function openAddress(target: number): Promise<Address> {
  let port = target
  const sockets = new Set<Socket>()
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on('error', () => socket.destroy()).once('close', () => sockets.delete(socket))
  }
  const server = createServer((near) => {
    const far = keep(connect(port, '127.0.0.1'))
    keep(near).pipe(far).pipe(near)
    near.once('close', () => far.destroy())
    far.once('close', () => near.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const cutAll = (): void => sockets.forEach((socket) => void socket.destroy())
  return {
    port: (server.address() as AddressInfo).port,
    lead(to, open) {
      port = to
      if (open === 'cuts') cutAll()
    },
    async close() {
      cutAll()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
