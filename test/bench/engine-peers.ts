/** Against OpenFGA and SpiceDB where their binaries are on the PATH: one PostgreSQL, warm, while tuples are written. */
import { accessSync, constants } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import pg from 'pg'
import { createPdp } from '../../pdp/decision-point/create-pdp.ts'
import { user } from '../../pdp/domain/subjects.ts'
import { startEmbeddedPostgres } from '../../pdp/store/embedded-postgres/embedded-postgres.ts'
import { openPostgres } from '../../pdp/store/postgres/postgres.ts'
import { grants, median, perSecond, type Question, questions } from './engine-data.ts'
import { type Rig, type System, startOpenFga, startOurs, startSpiceDb, type Way } from './engine-peer-systems.ts'

const TUPLES = 5_000
const QUESTIONS = 500
const CALLERS = 32
const ROUND_MS = 1_000
const ROUNDS = 3
const WRITE_EVERY_MS = 10
const LONGEST_MS = 180_000
const SIGNALS = ['SIGINT', 'SIGTERM'] as const
const PEERS = [
  {
    binary: 'openfga',
    name: 'OpenFGA',
    start: startOpenFga,
    from: 'go install github.com/openfga/openfga/cmd/openfga@latest',
  },
  {
    binary: 'spicedb',
    name: 'SpiceDB',
    start: startSpiceDb,
    from: 'go mod init x && go get github.com/authzed/spicedb/cmd/spicedb@v1.45.1 && go install github.com/authzed/spicedb/cmd/spicedb',
  },
] as const

type Measured = { readonly rate: number; readonly p99Ms: number }

export async function benchPeers(): Promise<void> {
  console.log(`peers: ${TUPLES.toLocaleString('en')} tuples, four nested groups, ${CALLERS} callers, 100 writes/s`)
  const found = PEERS.flatMap((peer) => {
    const path = findBinary(peer.binary)
    if (path === null) console.log(`  ${peer.name} is not on the PATH: ${peer.from}`)
    return path === null ? [] : [{ ...peer, path }]
  })
  if (found.length === 0) return
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-bench-'))
  // SpiceDB asks for it.
  const settings = { track_commit_timestamp: 'on', max_connections: '200' }
  const postgres = await startEmbeddedPostgres({ dataDirectory, settings })
  const rig = createRig(postgres.connectionString, dataDirectory)
  const { promise: over, reject: stop } = Promise.withResolvers<never>()
  const timer = setTimeout(() => stop(new Error(`it took longer than ${LONGEST_MS} ms`)), LONGEST_MS)
  for (const signal of SIGNALS) process.once(signal, stop)
  try {
    await Promise.race([measure(rig, found), over])
  } finally {
    clearTimeout(timer)
    for (const signal of SIGNALS) process.off(signal, stop)
    await Promise.allSettled(rig.endings.map((end) => end()))
    await postgres.stop()
    await rm(dataDirectory, { recursive: true, force: true })
  }
}

/** Null when it is not on the PATH. */
function findBinary(name: string): string | null {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    try {
      accessSync(join(folder, name), constants.X_OK)
      return join(folder, name)
    } catch {
      // the next folder
    }
  }
  return null
}

type Found = { readonly path: string; readonly start: (path: string, rig: Rig) => Promise<System> }

async function measure(rig: Rig, found: readonly Found[]): Promise<void> {
  const systems = [await startOurs(rig), await startInProcess(rig)]
  for (const { start, path } of found) systems.push(await start(path, rig))
  await compare(systems, questions(rig.data, QUESTIONS))
}

function createRig(serverUrl: string, dataDirectory: string): Rig {
  const urls = new Map<string, string>()
  const data = grants(TUPLES)
  return {
    data,
    users: [...new Set(questions(data, QUESTIONS).map((q) => q.user))],
    dataDirectory,
    endings: [],
    async database(name) {
      const known = urls.get(name)
      if (known !== undefined) return known
      const client = new pg.Client({ connectionString: serverUrl })
      await client.connect()
      await client.query(`create database ${name}`)
      await client.end()
      const url = new URL(serverUrl)
      url.pathname = `/${name}`
      urls.set(name, url.href)
      return url.href
    },
  }
}

/** On the database that our process has filled. */
async function startInProcess(rig: Rig): Promise<System> {
  const { store, close } = await openPostgres({ connectionString: await rig.database('portcullis') })
  rig.endings.push(close)
  const pdp = createPdp({ store })
  return {
    ways: [{ name: 'ours in process, always fresh', ask: (q) => pdp.can('acme', user(q.user), 'viewer', q.document) }],
    write: (i) =>
      store.write(
        'acme',
        [
          {
            kind: 'tuple',
            op: 'write',
            tuple: { object: `doc:own-${i}`, relation: 'viewer', subject: 'user:0', expiresAtMs: null },
          },
        ],
        { context: { actor: 'bench', requestId: 'bench' } },
      ),
  }
}

/** In turns, so that what the machine does besides hits all alike. */
async function compare(systems: readonly System[], asked: readonly Question[]): Promise<void> {
  const all = systems.flatMap((system) => system.ways.map((way) => ({ system, way, measured: [] as Measured[] })))
  for (const { way } of all) await run(way, asked, ROUND_MS)
  let writesCount = 0
  for (let round = 0; round < ROUNDS; round++) {
    for (const { system, way, measured } of all) {
      const stop = writeSteadily(system, () => writesCount++)
      measured.push(await run(way, asked, ROUND_MS))
      await stop()
    }
  }
  const rates = (measured: readonly Measured[]) => measured.map(({ rate }) => rate)
  const ours = all.slice(0, 2)
  for (const { way, measured } of all) {
    const ratios = ours.map(({ measured: own }) =>
      median(rates(own).map((rate, i) => rate / (rates(measured)[i] ?? 1))),
    )
    const p99Ms = median(measured.map((m) => m.p99Ms)).toFixed(1)
    const against = ours.some((own) => own.way === way)
      ? ''
      : `   ours over HTTP ${ratios[0]?.toFixed(1)} times, in process ${ratios[1]?.toFixed(1)} times`
    console.log(
      `  ${way.name.padEnd(48)} ${perSecond(median(rates(measured))).padStart(10)}  p99 ${p99Ms} ms${against}`,
    )
  }
}

/** Returns what ends it, which throws what went wrong with a write. */
function writeSteadily(system: System, nextWrite: () => number): () => Promise<void> {
  const writes: Promise<unknown>[] = []
  const timer = setInterval(() => {
    writes.push(system.write(nextWrite()).catch((error: unknown) => error))
  }, WRITE_EVERY_MS)
  return async () => {
    clearInterval(timer)
    const failed = (await Promise.all(writes)).find((outcome) => outcome instanceof Error)
    if (failed !== undefined) throw failed
  }
}

async function run(way: Way, asked: readonly Question[], ms: number): Promise<Measured> {
  const times: number[] = []
  const begin = performance.now()
  await Promise.all(
    Array.from({ length: CALLERS }, async (_, caller) => {
      for (let i = caller; performance.now() < begin + ms; i += CALLERS) {
        const question = asked[i % asked.length]
        if (question === undefined) throw new TypeError('there is nothing to ask')
        const sentAt = performance.now()
        if ((await way.ask(question)) !== question.allowed)
          throw new Error(`${way.name} is wrong about ${JSON.stringify(question)}`)
        times.push(performance.now() - sentAt)
      }
    }),
  )
  const elapsedMs = performance.now() - begin
  times.sort((a, b) => a - b)
  return { rate: (times.length / elapsedMs) * 1_000, p99Ms: times[Math.floor(times.length * 0.99)] ?? 0 }
}
