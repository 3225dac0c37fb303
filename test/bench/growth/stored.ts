/** What grows in the database: tuples of one organization, organizations, depth, and the members of a group. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { createPdp } from '../../../pdp/engine/decision-point/create-pdp.ts'
import { startEmbeddedPostgres } from '../../../pdp/engine/store/embedded-postgres/embedded-postgres.ts'
import { openPostgres } from '../../../pdp/engine/store/postgres/postgres.ts'
import type { Pdp } from '../../../pdp/shared/domain/decision.ts'
import { user } from '../../../pdp/shared/domain/subjects.ts'
import type { Tuple } from '../../../pdp/shared/domain/tuple.ts'
import { tuple } from '../../support/tuples.ts'
import { grants, lcg, questions } from '../engine/data.ts'
import { latencyOf } from '../report/figures.ts'
import { type Axis, heapMb, type Point, type Scale, tens } from './axis.ts'
import { putOrganizations, putTuples } from './data.ts'

type World = { readonly pool: pg.Pool; readonly connectionString: string; readonly scale: Scale }
type Asked = {
  readonly organization: string
  readonly user: string
  readonly document: string
  readonly allowed: boolean
}

const ASKED = 2_000
const TUPLES_MAX = { short: 100_000, usual: 1_000_000, long: 1_000_000 } as const
const ORGANIZATIONS_MAX = { short: 10_000, usual: 100_000, long: 100_000 } as const
const MEMBERS_MAX = { short: 10_000, usual: 100_000, long: 100_000 } as const
/** In the long form, so that there are ten million tuples in all. */
const LARGE_ORGANIZATIONS = 9
const DEPTHS = [1, 2, 5, 10, 20]

export async function growStored(scale: Scale): Promise<readonly Axis[]> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-bench-'))
  const settings = { fsync: 'off', synchronous_commit: 'off', max_wal_size: '4GB', shared_buffers: '256MB' }
  const postgres = await startEmbeddedPostgres({ dataDirectory, settings })
  const pool = new pg.Pool({ connectionString: postgres.connectionString, max: 2 })
  pool.on('error', () => {}) // connections that close last are cut by the server's end
  try {
    // Makes the tables.
    await (await openPostgres({ connectionString: postgres.connectionString })).close()
    const world = { pool, connectionString: postgres.connectionString, scale }
    return [await tuples(world), await organizations(world), await depth(world), await members(world)]
  } finally {
    await pool.end()
    await postgres.stop()
    await rm(dataDirectory, { recursive: true, force: true })
  }
}

async function tuples(world: World): Promise<Axis> {
  const points: Point[] = []
  for (const count of tens(1_000, TUPLES_MAX[world.scale])) {
    const data = grants(count)
    const id = `tuples-${count}`
    await putOrganizations(world.pool, [id])
    await putTuples(world.pool, [id], data.tuples)
    const asked = questions(data, ASKED).map((question) => ({ ...question, organization: id }))
    points.push(await ask(world, { x: count, asked }))
    if (count === 1_000_000 && world.scale === 'long') {
      const others = Array.from({ length: LARGE_ORGANIZATIONS }, (_, at) => `large-${at}`)
      await putOrganizations(world.pool, others)
      for (const other of others) await putTuples(world.pool, [other], data.tuples)
      points.push(await ask(world, { x: 10_000_000, asked }))
    }
  }
  const what = `${ASKED} different questions through four groups, each asked for the first time; heap of the process that embeds the PDP`
  return { name: 'Tuples of one organization', file: 'growth-tuples', x: 'tuples', what, points }
}

async function organizations(world: World): Promise<Axis> {
  const points: Point[] = []
  const data = grants(10)
  const [question] = questions(data, 1)
  const random = lcg(5)
  for (const count of tens(1, ORGANIZATIONS_MAX[world.scale])) {
    const ids = Array.from({ length: count }, (_, at) => `many-${count}-${at}`)
    await putOrganizations(world.pool, ids)
    await putTuples(world.pool, ids, data.tuples)
    const asked = Array.from({ length: ASKED }, (): Asked => {
      const organization = ids[Math.floor(random() * count)] ?? ''
      return {
        organization,
        user: question?.user ?? '',
        document: question?.document ?? '',
        allowed: question?.allowed ?? false,
      }
    })
    points.push(await ask(world, { x: count, asked }))
  }
  const what = `${ASKED} questions, each to one of them at random; heap of the process that embeds the PDP`
  return { name: 'Organizations, of ten tuples each', file: 'growth-organizations', x: 'organizations', what, points }
}

async function depth(world: World): Promise<Axis> {
  const points: Point[] = []
  for (const levels of DEPTHS) {
    const id = `depth-${levels}`
    const rows: Tuple[] = []
    for (let chain = 0; chain < ASKED; chain += 1) {
      rows.push(tuple(`group:${chain}-0#member@user:${chain}`))
      for (let level = 1; level < levels; level += 1)
        rows.push(tuple(`group:${chain}-${level}#member@group:${chain}-${level - 1}#member`))
      rows.push(tuple(`doc:${chain}#viewer@group:${chain}-${levels - 1}#member`))
    }
    await putOrganizations(world.pool, [id])
    await putTuples(world.pool, [id], rows)
    const asked = Array.from({ length: ASKED }, (_, at): Asked => {
      return { organization: id, user: `${at}`, document: `doc:${at}`, allowed: true }
    })
    points.push(await ask(world, { x: levels, asked }))
  }
  const what = `${ASKED} questions through so many groups within each other, each asked for the first time; heap of the process that embeds the PDP`
  return { name: 'Depth', file: 'growth-depth', x: 'groups within each other', what, points }
}

async function members(world: World): Promise<Axis> {
  const points: Point[] = []
  for (const count of tens(1, MEMBERS_MAX[world.scale])) {
    const id = `members-${count}`
    const rows = Array.from({ length: count }, (_, at) => tuple(`group:all#member@user:${at}`))
    await putOrganizations(world.pool, [id])
    await putTuples(world.pool, [id], [tuple('doc:1#viewer@group:all#member'), ...rows])
    const asked = Array.from({ length: ASKED }, (_, at): Asked => {
      // Half of them are not in it.
      const allowed = at % 2 === 0
      return { organization: id, user: allowed ? `${(at * 97) % count}` : `x${at}`, document: 'doc:1', allowed }
    })
    points.push(await ask(world, { x: count, asked }))
  }
  const what = `${ASKED} questions about people, half of them members, each asked for the first time; heap of the process that embeds the PDP`
  return { name: 'Members of a group', file: 'growth-members', x: 'members', what, points }
}

/** By a PDP that knows nothing yet but the environment. Throws when an answer is wrong. */
async function ask(
  { connectionString }: World,
  { x, asked }: { readonly x: number; readonly asked: readonly Asked[] },
): Promise<Point> {
  const { store, close } = await openPostgres({ connectionString })
  try {
    const pdp: Pdp = createPdp({ store })
    await pdp.can(asked[0]?.organization ?? '', user('nobody'), 'viewer', 'doc:none')
    const timesMs: number[] = []
    for (const question of asked) {
      const startedMs = performance.now()
      const allowed = await pdp.can(question.organization, user(question.user), 'viewer', question.document)
      timesMs.push(performance.now() - startedMs)
      if (allowed !== question.allowed) throw new Error(`wrong at ${x}: ${JSON.stringify(question)}`)
    }
    const { p50, p99 } = latencyOf(timesMs)
    return { x, p50Ms: p50, p99Ms: p99, memoryMb: heapMb() }
  } finally {
    await close()
  }
}
