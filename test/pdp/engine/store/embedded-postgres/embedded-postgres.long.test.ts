import { type ChildProcess, spawn } from 'node:child_process'
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startEmbeddedPostgres } from '../../../../../pdp/engine/store/embedded-postgres/embedded-postgres.ts'
import { isRunning } from '../../../../../pdp/engine/store/embedded-postgres/process.ts'
import { StartError } from '../../../../../pdp/shared/process/exit.ts'
import { makeDataFolder } from '../../../../support/programs/data-folder.ts'

const FAST = { fsync: 'off' }
let dataDirectory: string
beforeEach(async () => {
  dataDirectory = makeDataFolder('embedded-')
})
afterEach(() => rm(dataDirectory, { recursive: true, force: true }))

const start = () => startEmbeddedPostgres({ dataDirectory, settings: FAST })
const serverPid = async () =>
  Number((await readFile(join(dataDirectory, 'postgres/postmaster.pid'), 'utf8')).split('\n')[0])
async function query(connectionString: string, text: string): Promise<readonly object[]> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

/** Another process that starts PostgreSQL here and stays; resolves once it has, or has said why not. */
async function startElsewhere(): Promise<{ child: ChildProcess; said: string }> {
  const module = new URL('../../../../../pdp/engine/store/embedded-postgres/embedded-postgres.ts', import.meta.url).href
  const script = `
    const { startEmbeddedPostgres } = await import(${JSON.stringify(module)})
    try {
      const { connectionString } = await startEmbeddedPostgres({ dataDirectory: ${JSON.stringify(dataDirectory)}, settings: ${JSON.stringify(FAST)} })
      console.log(connectionString)
      setInterval(() => {}, 1_000)
    } catch (err) { console.log(err.name + ': ' + err.message) }`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const said = await new Promise<string>((done) => child.stdout?.once('data', (chunk) => done(String(chunk).trim())))
  return { child, said }
}
async function kill(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const ended = new Promise((done) => child.once('exit', done))
  child.kill(signal)
  await ended
}

describe('startEmbeddedPostgres', () => {
  test('keeps what was written over a stop and a second start', async () => {
    const first = await start()
    await query(first.connectionString, 'create table kept as select 1 as one')
    const pid = await serverPid()
    await first.stop()
    expect(isRunning(pid)).toBe(false)
    const second = await start()
    expect(await query(second.connectionString, 'select one from kept')).toEqual([{ one: 1 }])
    await second.stop()
  })

  test('commits durably unless told otherwise, listens on loopback only, and demands the password', async () => {
    const postgres = await startEmbeddedPostgres({ dataDirectory })
    const [settings] = await query(
      postgres.connectionString,
      `select current_setting('fsync') as fsync, current_setting('synchronous_commit') as commit, current_setting('full_page_writes') as pages,
        current_setting('listen_addresses') as addresses, current_setting('unix_socket_directories') as sockets`,
    )
    expect(settings).toEqual({ fsync: 'on', commit: 'on', pages: 'on', addresses: '127.0.0.1', sockets: '' })
    const wrong = new URL(postgres.connectionString)
    wrong.password = 'wrong'
    await expect(query(wrong.href, 'select 1')).rejects.toThrow(/password authentication failed/)
    expect((await stat(join(dataDirectory, 'postgres/portcullis-password'))).mode & 0o777).toBe(0o600)
    expect((await stat(join(dataDirectory, 'postgres'))).mode & 0o777).toBe(0o700)
    await postgres.stop()
  })

  test('refuses a directory that another process uses, in one line, and leaves that one running', async () => {
    const first = await start()
    const second = await startElsewhere()
    expect(second.said).toBe(
      `StartError: ${join(dataDirectory, 'postgres')} is in use by another Portcullis process, and one data directory serves one process. Stop that one, or name another directory by PORTCULLIS_DATA_DIR`,
    )
    expect(await query(first.connectionString, 'select 1 as one')).toEqual([{ one: 1 }])
    await first.stop()
  })

  test('lets exactly one of several first starts win, and leaves nothing of the others', async () => {
    const starts = await Promise.all([startElsewhere(), startElsewhere(), startElsewhere()])
    const winners = starts.filter(({ said }) => said.startsWith('postgresql://'))
    expect(winners).toHaveLength(1)
    expect(starts.filter(({ said }) => said.startsWith('StartError: '))).toHaveLength(2)
    expect((await readdir(dataDirectory)).toSorted()).toEqual(['postgres', 'postgres.log'])
    await Promise.all(winners.map(({ child }) => kill(child, 'SIGKILL')))
    await (await start()).stop()
  })

  test('takes over the server that a killed process left behind', async () => {
    const { child, said } = await startElsewhere()
    await query(said, 'create table kept as select 1 as one')
    const pid = await serverPid()
    await kill(child, 'SIGKILL')
    const postgres = await start()
    expect(await serverPid()).toBe(pid)
    expect(await query(postgres.connectionString, 'select one from kept')).toEqual([{ one: 1 }])
    await postgres.stop()
    expect(isRunning(pid)).toBe(false)
  })

  test('starts after the server was killed too', async () => {
    const { child, said } = await startElsewhere()
    await query(said, 'create table kept as select 1 as one')
    await kill(child, 'SIGKILL')
    const pid = await serverPid()
    process.kill(pid, 'SIGKILL')
    while (isRunning(pid)) await delay(10)
    const postgres = await start()
    expect(await query(postgres.connectionString, 'select one from kept')).toEqual([{ one: 1 }])
    await postgres.stop()
  })

  test('starts although the process id of a dead server was given to another program', async () => {
    await (await start()).stop()
    const lines = [process.pid, join(dataDirectory, 'postgres'), 1, 5432, '', '127.0.0.1', '0 0', 'ready']
    await writeFile(join(dataDirectory, 'postgres/postmaster.pid'), `${lines.join('\n')}\n`)
    await (await start()).stop()
  })

  test('stops the server when the process ends without stopping it', async () => {
    const { child } = await startElsewhere()
    const pid = await serverPid()
    await kill(child, 'SIGTERM').then(() => undefined)
    // SIGTERM without a handler ends a process without running anything; the next start takes over.
    expect(isRunning(pid)).toBe(true)
    const module = new URL('../../../../../pdp/engine/store/embedded-postgres/embedded-postgres.ts', import.meta.url)
      .href
    const script = `const { startEmbeddedPostgres } = await import(${JSON.stringify(module)})
      await startEmbeddedPostgres({ dataDirectory: ${JSON.stringify(dataDirectory)} })
      throw new Error('a bug')`
    const crashing = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'ignore' })
    await new Promise((done) => crashing.once('exit', done))
    for (let tries = 0; isRunning(pid) && tries < 2_000; tries += 1) await delay(10)
    expect(isRunning(pid)).toBe(false)
  })

  test('starts a server again that was killed, at the same address, with all that was committed', async () => {
    let restarts = 0
    const onRestart = (): void => void restarts++
    const { connectionString, stop } = await startEmbeddedPostgres({ dataDirectory, onRestart })
    await query(connectionString, 'create table kept as select 1 as one')
    for (const count of [1, 2]) {
      const killed = await serverPid()
      process.kill(killed, 'SIGKILL')
      await expect.poll(() => restarts, { timeout: 30_000 }).toBe(count)
      expect(await query(connectionString, 'select one from kept')).toEqual([{ one: 1 }])
      expect(await serverPid()).not.toBe(killed)
    }
    await expect(start()).rejects.toThrow('is in use by another Portcullis process')
    const last = await serverPid()
    await stop()
    expect(isRunning(last)).toBe(false)
  })

  test('leaves no server behind when it is stopped while it is killed', async () => {
    const { stop } = await start()
    process.kill(await serverPid(), 'SIGKILL')
    await stop()
    await delay(500)
    const left = await serverPid().catch(() => 0)
    expect(left === 0 || !isRunning(left)).toBe(true)
  })

  test('says in one line why PostgreSQL does not start', async () => {
    await (await start()).stop()
    await writeFile(join(dataDirectory, 'postgres/postgresql.conf'), 'nonsense\n')
    const err = await start().catch((err: unknown) => err)
    expect(err).toBeInstanceOf(StartError)
    expect(String(err)).toMatch(/PostgreSQL did not start \(.*syntax error.*\)/)
  })

  test('says in one line that the data directory cannot be used', async () => {
    const err = await startEmbeddedPostgres({ dataDirectory: '/dev/null/x' }).catch((err: unknown) => err)
    expect(err).toBeInstanceOf(StartError)
    expect(String(err)).toMatch(/The data directory \/dev\/null\/x cannot be used/)
  })
})
