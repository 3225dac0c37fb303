/** A PostgreSQL of the system with its own tools, which the page for operators uses; null where none is installed. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chownSync, existsSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { freePort } from '../support/free-port.ts'

export type SystemPostgres = { readonly url: string; readonly binaries: string; stop(): Promise<void> }

/** Where `initdb` and `pg_dump` of one version are. */
export function postgresBinaries(): string | null {
  const found = globSync('/usr/lib/postgresql/*/bin').toSorted().reverse()
  return found.find((path) => existsSync(join(path, 'initdb')) && existsSync(join(path, 'pg_dump'))) ?? null
}

export async function startSystemPostgres(binaries: string): Promise<SystemPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'system-postgres-'))
  const data = join(folder, 'data')
  const port = await freePort()
  // PostgreSQL does not run as root.
  const isRoot = userInfo().uid === 0
  if (isRoot) chownSync(folder, idOf('-u'), idOf('-g'))
  const command = (name: string, args: readonly string[]): [string, string[]] =>
    isRoot ? ['runuser', ['-u', 'postgres', '--', join(binaries, name), ...args]] : [join(binaries, name), [...args]]
  const [init, words] = command('initdb', ['-D', data, '-U', 'portcullis', '-A', 'trust', '-N'])
  const { status, stderr } = spawnSync(init, words, { encoding: 'utf8', cwd: folder })
  if (status !== 0) throw new Error(`initdb failed: ${stderr}`)
  const server: ChildProcess = spawn(
    ...command('postgres', ['-D', data, '-p', `${port}`, '-k', folder, '-c', 'listen_addresses=127.0.0.1']),
    { cwd: folder, stdio: 'ignore' },
  )
  const at = (database: string): string => `postgresql://portcullis@127.0.0.1:${port}/${database}`
  while (!(await succeeds(at('postgres'), 'create database portcullis'))) {
    if (server.exitCode !== null) throw new Error(`PostgreSQL ended with ${server.exitCode}`)
    await delay(50)
  }
  return {
    url: at('portcullis'),
    binaries,
    async stop() {
      const closed = new Promise((done) => server.once('close', done))
      spawnSync(...command('pg_ctl', ['-D', data, '-m', 'fast', 'stop']), { cwd: folder })
      await closed
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const idOf = (what: '-u' | '-g'): number => Number(spawnSync('id', [what, 'postgres'], { encoding: 'utf8' }).stdout)

async function succeeds(connectionString: string, statement: string): Promise<boolean> {
  const client = new pg.Client({ connectionString })
  try {
    await client.connect()
    await client.query(statement)
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => undefined)
  }
}
