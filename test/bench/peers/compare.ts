/** Relationship engines beside each other: one PostgreSQL, warm, over HTTP, while tuples are written. */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { createPdp } from '../../../pdp/engine/decision-point/create-pdp.ts'
import { startEmbeddedPostgres } from '../../../pdp/engine/store/embedded-postgres/embedded-postgres.ts'
import { openPostgres } from '../../../pdp/engine/store/postgres/postgres.ts'
import { user } from '../../../pdp/shared/domain/subjects.ts'
import { grants, questions } from '../engine/data.ts'
import { staleness } from '../report/stale.ts'
import { type Extent, type Group, measureInTurn, type Way } from '../suite/rows.ts'
import { startCerbos } from './cerbos.ts'
import { findPeer, SOURCE } from './programs.ts'
import type { Rig } from './served.ts'
import { type System, startOpenFga, startOurs, startSpiceDb, tupleOf } from './systems.ts'

const TUPLES = 5_000
const QUESTIONS = 500
const CALLERS = 32
const RATE = 300
const WRITE_EVERY_MS = 20
const REFERENCE = 'Portcullis, always fresh'
const STARTS = { openfga: startOpenFga, spicedb: startSpiceDb, cerbos: startCerbos } as const
const NAMES = ['openfga', 'spicedb', 'cerbos'] as const

export async function compareEngines(extent: Extent): Promise<{ group: Group; missing: readonly string[] }> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-bench-'))
  // SpiceDB asks for it.
  const settings = { track_commit_timestamp: 'on', max_connections: '200' }
  const postgres = await startEmbeddedPostgres({ dataDirectory, settings })
  const rig = createRig(postgres.connectionString, dataDirectory)
  const missing: string[] = []
  try {
    const systems = [await startOurs(rig), await startInProcess(rig)]
    for (const name of NAMES) {
      const path = findPeer(name)
      if (path === null) missing.push(`${name} (${SOURCE[name]})`)
      else systems.push(await STARTS[name](path, rig))
    }
    return { group: await compare(systems, { rig, extent }), missing }
  } finally {
    await Promise.allSettled(rig.endings.map((end) => end()))
    await postgres.stop()
    await rm(dataDirectory, { recursive: true, force: true })
  }
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
  const context = { actor: 'bench', requestId: 'bench' }
  const change = (op: 'write' | 'delete', asked: Parameters<System['write']>[0]) =>
    store.write('acme', [{ kind: 'tuple', op, tuple: tupleOf(asked) }], { context })
  return {
    ways: [
      {
        name: 'Portcullis embedded in the caller',
        unchecked: 'no network, no token',
        ask: (q) => pdp.can('acme', user(q.user), 'viewer', q.document),
      },
    ],
    write: (asked) => change('write', asked),
    remove: (asked) => change('delete', asked),
  }
}

async function compare(
  systems: readonly System[],
  { rig, extent }: { readonly rig: Rig; readonly extent: Extent },
): Promise<Group> {
  const asked = questions(rig.data, QUESTIONS)
  const ways = systems.flatMap((system) => system.ways.map((way) => wayOf(way, { system, asked, rig, extent })))
  const rows = await measureInTurn(ways, { ...extent, callers: CALLERS, rate: RATE })
  const title = `one question through four nested groups, ${TUPLES.toLocaleString('en')} tuples, with ${1_000 / WRITE_EVERY_MS} writes a second; questions/s with ${CALLERS} callers over HTTP, latency at ${RATE}/s`
  return { title, unit: 'questions', reference: REFERENCE, rows }
}

function wayOf(
  way: System['ways'][number],
  { system, asked, rig, extent }: { system: System; asked: ReturnType<typeof questions>; rig: Rig; extent: Extent },
): Way {
  const trial = (i: number) => ({
    user: rig.users[i % rig.users.length] ?? '',
    document: `doc:${way.name.replace(/\W+/g, '-')}-${i}`,
  })
  const { remove } = system
  return {
    name: way.name,
    ours: way.name.startsWith('Portcullis'),
    unchecked: way.unchecked,
    beside: () => writeSteadily(system),
    async call(i) {
      const question = asked[i % asked.length]
      if (question === undefined) throw new TypeError('there is nothing to ask')
      if ((await way.ask(question)) !== question.allowed)
        throw new Error(`${way.name} is wrong about ${JSON.stringify(question)}`)
    },
    ...(remove !== null && {
      stale: () =>
        staleness(
          {
            grant: (i) => system.write(trial(i)),
            revoke: (i) => remove(trial(i)),
            allowed: (i) => way.ask(trial(i)),
          },
          { count: extent.revocations, waitMs: extent.waitMs },
        ),
    }),
  }
}

/** Returns what ends it, which throws what went wrong with a write. */
function writeSteadily(system: System): () => Promise<void> {
  const writes = new Set<Promise<unknown>>()
  const failed: unknown[] = []
  const timer = setInterval(() => {
    const write = system
      .write({ user: '0', document: `doc:written-${randomUUID()}` })
      .catch((err: unknown) => failed.push(err))
      .finally(() => writes.delete(write))
    writes.add(write)
  }, WRITE_EVERY_MS)
  return async () => {
    clearInterval(timer)
    await Promise.all(writes)
    if (failed.length > 0) throw failed[0]
  }
}
