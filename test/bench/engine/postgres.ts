/** On PostgreSQL, strictly fresh and warm, against one well-planned recursive statement for each check, in turn. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { createPdp } from '../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../pdp/engine/store/contract.ts'
import { startEmbeddedPostgres } from '../../../pdp/engine/store/embedded-postgres/embedded-postgres.ts'
import { openPostgres } from '../../../pdp/engine/store/postgres/postgres.ts'
import type { Change } from '../../../pdp/shared/domain/change.ts'
import type { Pdp } from '../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../pdp/shared/domain/journal.ts'
import { user } from '../../../pdp/shared/domain/subjects.ts'
import { context, organization, put } from '../../support/tuples.ts'
import { type Grants, grants, median, perSecond, type Question, questions } from './data.ts'

const ROUND_MS = 1_500
const GROUP = `relation = 'member' and object >= 'group:' and object < 'group;'`
/** What a service without our engine would send: the groups of the subject from its side, one probe for each. */
const CHECK = `with recursive g(name) as (
    select object || '#member' from relationship where organization_id = $1 and subject = $4 and ${GROUP}
    union select r.object || '#member' from g, lateral (
      select object from relationship where organization_id = $1 and subject = g.name and ${GROUP} offset 0) r)
  select exists (select from relationship where organization_id = $1 and object = $2 and relation = $3 and subject = $4)
    or exists (select from g, lateral (
      select from relationship where organization_id = $1 and object = $2 and relation = $3 and subject = g.name offset 0) r) as ok`

type Ask = (organization: string, q: Question) => Promise<boolean>

export async function benchPostgres(): Promise<void> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-bench-'))
  const postgres = await startEmbeddedPostgres({ dataDirectory })
  const { store, close } = await openPostgres({ connectionString: postgres.connectionString })
  const pool = new pg.Pool({
    connectionString: postgres.connectionString,
    max: 10,
    options: '-c enable_seqscan=off -c jit=off',
  })
  pool.on('error', () => {}) // connections that close last are cut by the server's end
  try {
    for (const organizations of [1, 1_000]) await compare({ store, pool, organizations })
  } finally {
    await pool.end()
    await close()
    await postgres.stop()
    await rm(dataDirectory, { recursive: true, force: true })
  }
}

async function compare({
  store,
  pool,
  organizations,
}: {
  store: Store
  pool: pg.Pool
  organizations: number
}): Promise<void> {
  const names = Array.from({ length: organizations }, (_, i) => `org-${organizations}-${i}`)
  const data = grants(organizations === 1 ? 20_000 : 100)
  await fill(store, names, data)
  const asked = questions(data, 2_000)
  const pdp: Pdp = createPdp({ store })
  const ours: Ask = (org, q) => pdp.can(org, user(q.user), 'viewer', q.document)
  const theirs: Ask = async (org, q) =>
    (await pool.query({ name: 'check', text: CHECK, values: [org, q.document, 'viewer', `user:${q.user}`] })).rows[0].ok
  console.log(`PostgreSQL, ${organizations} organization${organizations === 1 ? '' : 's'}, 100 writes/s`)
  await run(ours, { names, asked, callers: 64, ms: 3_000 }) // warm
  const stop = writeSteadily(store, names)
  for (const callers of [1, 32, 512]) {
    const rates: { ours: number[]; theirs: number[]; p99: number[] } = { ours: [], theirs: [], p99: [] }
    for (let round = 0; round < 3; round++) {
      const a = await run(ours, { names, asked, callers, ms: ROUND_MS })
      const b = await run(theirs, { names, asked, callers, ms: ROUND_MS })
      rates.ours.push(a.rate)
      rates.theirs.push(b.rate)
      rates.p99.push(a.p99Ms)
    }
    const ratio = median(rates.ours.map((rate, i) => rate / (rates.theirs[i] ?? 1)))
    console.log(
      `  ${`${callers}`.padStart(3)} callers  ${perSecond(median(rates.ours)).padStart(10)}  p99 ${median(rates.p99).toFixed(2)} ms   one SQL per check ${perSecond(median(rates.theirs)).padStart(9)}   ${ratio.toFixed(1)} times`,
    )
  }
  await stop()
}

async function fill(store: Store, names: readonly string[], data: Grants): Promise<void> {
  for (const name of names) {
    await store.write(ENVIRONMENT, [organization(name)], { context })
    for (let i = 0; i < data.tuples.length; i += 5_000) {
      const changes = data.tuples.slice(i, i + 5_000).map((tuple): Change => ({ kind: 'tuple', op: 'write', tuple }))
      await store.write(name, changes, { context })
    }
  }
}

/** 100 writes a second, spread over the organizations. */
function writeSteadily(store: Store, names: readonly string[]): () => Promise<void> {
  let i = 0
  let last: Promise<unknown> = Promise.resolve()
  const timer = setInterval(() => {
    const name = names[i++ % names.length] ?? ''
    // On a machine that is busy with other things, writes to one log are refused once too many wait.
    last = store.write(name, [put(`doc:written-${i}#viewer@user:0`)], { context }).catch(() => undefined)
  }, 10)
  return async () => {
    clearInterval(timer)
    await last
  }
}

async function run(
  ask: Ask,
  load: { names: readonly string[]; asked: readonly Question[]; callers: number; ms: number },
): Promise<{ rate: number; p99Ms: number }> {
  const times: number[] = []
  const begin = performance.now()
  const end = begin + load.ms
  let next = 0
  await Promise.all(
    Array.from({ length: load.callers }, async () => {
      while (performance.now() < end) {
        const i = next++
        const sent = performance.now()
        const q = load.asked[i % load.asked.length]!
        if ((await ask(load.names[i % load.names.length]!, q)) !== q.allowed)
          throw new Error(`wrong: ${JSON.stringify(q)}`)
        if (i % 10 === 0) times.push(performance.now() - sent)
      }
    }),
  )
  const elapsed = performance.now() - begin
  times.sort((a, b) => a - b)
  return { rate: (next / elapsed) * 1_000, p99Ms: times[Math.floor(times.length * 0.99)] ?? 0 }
}
