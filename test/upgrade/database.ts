/** A PostgreSQL that can be backed up while it serves, and put back as it was. */
import { spawnSync } from 'node:child_process'
import { chownSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import {
  ensureCluster,
  locateCluster,
  readPassword,
  SUPERUSER,
  spawnPostmaster,
} from '../../pdp/engine/store/embedded-postgres/process.ts'
import { createPart } from '../faults/part.ts'
import { freePort } from '../support/free-port.ts'

export type Database = {
  readonly url: string
  query<Row extends pg.QueryResultRow>(statement: string): Promise<Row[]>
  /** A copy of its files while it serves, as PostgreSQL's own manual says; of the moment when it resolves. */
  backUp(): Promise<void>
  /** Stops, and starts from the copy. */
  restore(): Promise<void>
  stop(): Promise<void>
}

export async function startDatabase(folder: string): Promise<Database> {
  const cluster = await locateCluster(folder)
  await ensureCluster(cluster)
  const copy = join(folder, 'copy')
  const port = await freePort()
  const url = `postgresql://${SUPERUSER}:${await readPassword(cluster)}@127.0.0.1:${port}/postgres`
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: '200',
    port: `${port}`,
    wal_level: 'logical',
    // The machine does not crash, and no disk is measured.
    fsync: 'off',
    // None of the log's files is used again before it is copied.
    max_wal_size: '4GB',
  }
  const part = createPart({
    name: 'postgres',
    logFile: join(folder, 'postgres-start.log'),
    launch: () => spawnPostmaster(cluster, settings),
    // It listens before it takes connections.
    ready: () => connected(async () => true),
  })
  await part.start()

  async function connected<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => {}) // the statement says so itself
    await client.connect()
    try {
      return await work(client)
    } finally {
      await client.end()
    }
  }
  const stop = async (): Promise<void> => {
    part.signal('SIGKILL')
    await part.ended()
  }
  return {
    url,
    query: (statement) => connected(async (client) => (await client.query(statement)).rows),
    backUp: () =>
      connected(async (client) => {
        await client.query(`select pg_backup_start('upgrade', true)`)
        copyFolder(cluster.directory, copy)
        const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)')
        rmSync(join(copy, 'pg_wal'), { recursive: true })
        copyFolder(join(cluster.directory, 'pg_wal'), join(copy, 'pg_wal'))
        rmSync(join(copy, 'postmaster.pid'))
        const label = join(copy, 'backup_label')
        writeFileSync(label, rows[0]?.labelfile ?? '')
        if (cluster.account !== null) chownSync(label, cluster.account.uid, cluster.account.gid)
      }),
    async restore() {
      await stop()
      rmSync(cluster.directory, { recursive: true })
      renameSync(copy, cluster.directory)
      await part.start()
    },
    stop,
  }
}

/** With owners. What PostgreSQL deletes meanwhile it makes again from its log. */
function copyFolder(from: string, to: string): void {
  const { stderr } = spawnSync('cp', ['-a', from, to], { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } })
  const failures = stderr.split('\n').filter((line) => line !== '' && !line.includes('No such file or directory'))
  if (failures.length > 0) throw new Error(failures.join('\n'))
}
