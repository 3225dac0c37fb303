/**
 * `npm run bench -- start [MAIN...]`: from the start of the process to ready, on a database that exists, and what of it is CPU
 * time; then what the embedded database adds. `MAIN`: builds to compare, such as `dist/pdp/bin.js`; default `pdp/main.ts`.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../../pdp/engine/store/embedded-postgres/embedded-postgres.ts'
import { choosePorts } from '../../e2e/demo-stack.ts'
import { short, spreadOf } from '../report/figures.ts'
import { cpuMs, residentMb } from '../report/process-use.ts'

const ROUNDS = 5
const POLL_MS = 5

type Started = { readonly readyMs: number; readonly cpu: number; readonly memoryMb: number }

export async function bench(words: readonly string[]): Promise<void> {
  const mains = words.length === 0 ? ['pdp/main.ts'] : words
  const dataDir = mkdtempSync(join(tmpdir(), 'portcullis-start-'))
  const database = await startEmbeddedPostgres({ dataDirectory: dataDir })
  try {
    const settings = { DATABASE_URL: database.connectionString, PORTCULLIS_DATA_DIR: dataDir }
    await start(mains[0] ?? '', settings) // makes the tables
    const all = mains.map((main) => ({ main, rounds: [] as Started[] }))
    for (let round = 0; round < ROUNDS; round++)
      for (const { main, rounds } of all) rounds.push(await start(main, settings))
    for (const { main, rounds } of all) say(`${main}, existing database`, rounds)
  } finally {
    await database.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
  const own = mkdtempSync(join(tmpdir(), 'portcullis-start-'))
  try {
    const first = await start(mains[0] ?? '', { PORTCULLIS_DATA_DIR: own })
    say(`${mains[0]}, embedded database, first start`, [first])
    const later = await start(mains[0] ?? '', { PORTCULLIS_DATA_DIR: own })
    say(`${mains[0]}, embedded database, later start`, [later])
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
}

function say(what: string, rounds: readonly Started[]): void {
  const figure = (name: keyof Started): string => short(spreadOf(rounds.map((one) => one[name])).median)
  console.log(`${what}: ready after ${figure('readyMs')} ms, ${figure('cpu')} ms of CPU, ${figure('memoryMb')} MB`)
}

async function start(main: string, settings: { readonly [name: string]: string }): Promise<Started> {
  const ports = await choosePorts({})
  const startedMs = performance.now()
  const child = spawn(process.execPath, [main, 'serve'], {
    env: {
      PATH: process.env.PATH,
      ...settings,
      PORTCULLIS_HTTP_LISTEN: `127.0.0.1:${ports.http}`,
      PORTCULLIS_GRPC_LISTEN: `127.0.0.1:${ports.grpc}`,
      PORTCULLIS_METRICS_LISTEN: `127.0.0.1:${ports.metrics}`,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  await ready(child, `http://127.0.0.1:${ports.metrics}/readyz`)
  const { pid = 0 } = child
  const started = { readyMs: performance.now() - startedMs, cpu: cpuMs(pid), memoryMb: residentMb(pid) }
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await ended
  return started
}

async function ready(child: ChildProcess, url: string): Promise<void> {
  while ((await fetch(url).catch(() => null))?.ok !== true) {
    if (child.exitCode !== null) throw new Error(`the PDP ended with ${child.exitCode}`)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}
