/** A backup that is taken under load, and put back under PDPs that remember a later state. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Database, startDatabase } from './database.ts'
import { allowedOf, ask, held, isOfBearer, type Load, post, startLoad, token } from './load.ts'
import { credentials } from './survey.ts'
import { type Pdp, startPdp } from './versions.ts'
import { adminToken, apiOf, LOADER, makeWorld, ORGANIZATION, type Tokens } from './world.ts'

const RELATIONSHIPS = `/v1/organizations/${ORGANIZATION}/relationships`
/** By the load, two tuples at a time. */
const WRITTEN = /^\d+-\d+$/
const BACK_MS = 30_000

type Played = { readonly folder: string; readonly seconds: number }

export async function playRestore({ folder, seconds }: Played): Promise<readonly string[]> {
  const database = await startDatabase(folder)
  const running: Pdp[] = []
  const start = async (name: string, issuer?: string): Promise<Pdp> => {
    const pdp = await startPdp({ name, folder, databaseUrl: database.url, ...(issuer === undefined ? {} : { issuer }) })
    running.push(pdp)
    return pdp
  }
  try {
    const first = await start('first')
    const second = await start('second', first.origin)
    const tokens = await makeWorld(first.origin)
    const load = await startLoad([first.origin, second.origin], first.origin)
    await delay((seconds * 1_000) / 2)
    const acknowledged = load.oracle.settled()
    await database.backUp()
    await delay((seconds * 1_000) / 2)
    await load.stop()
    const startThird = (): Promise<Pdp> => start('third', first.origin)
    console.log(`     ${load.counts.wrote} writes, the backup in the middle of them`)
    return [
      ...(await load.complaints()),
      ...(await restored({ database, first, second, load, tokens, acknowledged, startThird })),
    ]
  } finally {
    for (const { part } of running) {
      part.signal('SIGKILL')
      await part.ended()
    }
    await database.stop()
  }
}

async function restored(at: {
  readonly database: Database
  readonly first: Pdp
  readonly second: Pdp
  readonly load: Load
  readonly tokens: Tokens
  readonly acknowledged: ReturnType<Load['oracle']['settled']>
  readonly startThird: () => Promise<Pdp>
}): Promise<readonly string[]> {
  const { database, first, second, load, tokens } = at
  const { origin: issuer } = first
  const formerManager = await adminToken(issuer)
  const reader = await token(issuer)
  const complaints: string[] = []
  // What both PDPs hold in memory, and the backup does not have.
  const late = ['late-1', 'late-2']
  const write = late.map((name) => `document:${name}#viewer@service:${LOADER}`)
  await post(issuer, RELATIONSHIPS, formerManager, { write })
  for (const { origin } of [first, second])
    for (const name of late)
      if (allowedOf((await ask(origin, reader, `document:${name}`)).body) !== true)
        complaints.push(`${origin} does not know of ${name}`)
  const eventsBefore = await eventCursor(issuer, formerManager)

  await database.restore()
  const manager = await answering(issuer)
  // Before the first question at the second PDP the history goes on: by more than was written after the backup.
  const later = at.load.counts.wrote
  for (let count = 0; count < later; count += 1) {
    const tuple = `document:after-${count % 2}#viewer@service:${LOADER}`
    await post(issuer, RELATIONSHIPS, manager, count % 4 < 2 ? { write: [tuple] } : { delete: [tuple] })
  }
  for (const { origin } of [first, second]) {
    const asked = (await ask(origin, await token(issuer), `document:${late[0]}`)).body
    if (allowedOf(asked) !== false)
      complaints.push(`${origin} answers from a state that is gone: ${JSON.stringify(asked)}`)
  }
  const { whole, halves } = await held(issuer, manager)
  complaints.push(
    ...halves.filter((name) => WRITTEN.test(name)).map((name) => `the backup holds half of a transaction: ${name}`),
  )
  for (const [name, { value, count }] of at.acknowledged)
    if (load.oracle.settled().get(name)?.count === count && whole.has(name) !== value)
      complaints.push(`the backup lacks what was acknowledged before it: ${name}`)
  // A PDP that starts now knows nothing of what is gone.
  const third = await at.startThird()
  if (isOfBearer((await ask(third.origin, reader, 'document:1')).body))
    complaints.push('a token from after the backup is good at a PDP that started later')
  return [
    ...complaints,
    ...(await brokenJournals(database)),
    ...(await credentials(issuer, tokens)),
    ...(await ahead(issuer, eventsBefore)),
  ]
}

/** A new token, for those from after the backup are not in it, once the PDP has found the database again. */
async function answering(issuer: string): Promise<string> {
  const deadline = performance.now() + BACK_MS
  for (;;) {
    const manager = await adminToken(issuer).catch(() => null)
    if (manager !== null) return manager
    if (performance.now() > deadline) throw new Error('the PDP does not find the restored database')
    await delay(50)
  }
}

/** Logs whose newest entry is not of the revision at which they stand, in words. */
async function brokenJournals(database: Database): Promise<readonly string[]> {
  const rows = await database.query<{ id: string }>(
    `select organization_id as id from revision r where revision > 0 and organization_id <> '#events' and not exists (
       select 1 from change_log c where c.organization_id = r.organization_id and c.revision = r.revision and c.write_id = r.write_id)`,
  )
  return rows.map(({ id }) => `the log of ${id} does not end where it stands`)
}

async function eventCursor(issuer: string, manager: string): Promise<string> {
  const api = apiOf(issuer, manager)
  for (let after = '0'; ; ) {
    const { items, next } = (await api('GET', `/v1/events?after=${after}`)) as { items: unknown[]; next: string }
    if (items.length === 0) return next
    after = next
  }
}

/** A reader of events that is ahead of a restored database must get what happens from now on. */
async function ahead(issuer: string, cursor: string): Promise<readonly string[]> {
  const manager = await adminToken(issuer)
  const api = apiOf(issuer, manager)
  const { next } = (await api('GET', `/v1/events?after=${cursor}`)) as { next: string }
  await api('PUT', `/v1/organizations/${ORGANIZATION}/entitlements/feature.after`, { value: true })
  const { items } = (await api('GET', `/v1/events?after=${next}&wait=5`)) as { items: { data: { keys?: string[] } }[] }
  return items.some(({ data }) => data.keys?.includes('feature.after'))
    ? []
    : ['a reader of events misses what follows a restore']
}
