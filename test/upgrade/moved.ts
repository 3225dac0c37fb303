/** The database goes on at other servers: by a dump, then by logical replication; then the address leads back to the first one. */
import { mkdirSync, readFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../support/free-port.ts'
import { type Database, startDatabase } from './database.ts'
import { dumpOf, schemaOf } from './dump.ts'
import { allowedOf, ask, post, token } from './load.ts'
import { credentials, differences, survey } from './survey.ts'
import { type Pdp, ROOT, startPdp, stopPdp } from './versions.ts'
import { adminToken, apiOf, EMAIL, LOADER, makeWorld, ORGANIZATION, PASSWORD, type Tokens } from './world.ts'

const RELATIONSHIPS = `/v1/organizations/${ORGANIZATION}/relationships`
/** So many that those of a fresh server stay below for as long as this takes. */
const BURN = 'do $$ begin for n in 1..20000 loop perform pg_current_xact_id(); commit; end loop; end $$'
const WAIT_MS = 60_000

export async function playMove({ folder }: { readonly folder: string }): Promise<readonly string[]> {
  const address = await openAddress()
  const databases: Database[] = []
  const pdps: Pdp[] = []
  const server = async (name: string): Promise<Database> => {
    mkdirSync(join(folder, name))
    const database = await startDatabase(join(folder, name))
    databases.push(database)
    return database
  }
  const serve = async (database: Database, name: string): Promise<Pdp> => {
    address.leadTo(database.url)
    const [former] = pdps
    const same = former === undefined ? {} : { ports: former.ports, issuer: former.origin }
    const pdp = await startPdp({ name, folder, databaseUrl: address.urlOf(database), ...same })
    pdps.push(pdp)
    return pdp
  }
  try {
    const [first, second, third] = await Promise.all([server('first'), server('second'), server('third')])
    const atFirst = await serve(first, 'at-first')
    const { origin } = atFirst
    const tokens = await makeWorld(origin)
    await first.query(BURN)
    const before = await survey(origin)
    await stopPdp(atFirst)

    await second.query(await dumpOf(first, { root: ROOT, said: {} }))
    const atSecond = await serve(second, 'at-second')
    const complaints = await standing({ origin, database: second, tokens, before })

    await replicate({ from: second, to: third, write: () => grant(origin, 'while-copied') })
    await stopPdp(atSecond)
    await cutOver({ from: second, to: third })
    await serve(third, 'at-third')
    complaints.push(...(await standing({ origin, database: third, tokens, before: null })))
    complaints.push(...(await knows(origin, 'while-copied')))

    await grant(origin, 'later')
    const { username, password } = new URL(third.url)
    await first.query(`alter role ${username} password '${password}'`)
    address.leadTo(first.url)
    return [...complaints, ...(await saysThatItWentBack(origin, join(folder, 'at-third.log')))]
  } finally {
    await Promise.all(pdps.map(killed))
    await Promise.all(databases.map((database) => database.stop()))
    address.close()
  }
}

async function killed({ part }: Pdp): Promise<void> {
  part.signal('SIGKILL')
  await part.ended()
}

/** Everything is there, and an event about a person names the organizations of that person. `before` null: it has changed since. */
async function standing(at: {
  readonly origin: string
  readonly database: Database
  readonly tokens: Tokens
  readonly before: Awaited<ReturnType<typeof survey>> | null
}): Promise<string[]> {
  const { origin, database, tokens, before } = at
  const complaints = before === null ? [] : differences(before, await survey(origin))
  complaints.push(...(await credentials(origin, tokens)))
  const api = apiOf(origin, await adminToken(origin))
  // Her membership was written at the first server.
  const ann = { name: 'ann', email: EMAIL, email_verified: true }
  await api('PUT', '/v1/users/ann', { ...ann, password: `${PASSWORD}!` })
  await api('PUT', '/v1/users/ann', { ...ann, password: PASSWORD })
  await api('GET', '/v1/events?after=0') // gives them numbers
  const rows = await database.query<{ tenants: readonly string[] }>(
    `select payload -> 'tenants' as tenants from outbox
     where type in ('credential.changed', 'user.signed_out') and payload ->> 'user' = 'ann' order by seq desc limit 4`,
  )
  if (rows.length < 4 || rows.some(({ tenants }) => !tenants.includes(ORGANIZATION)))
    complaints.push(`an event about a person lacks her organization: ${JSON.stringify(rows)}`)
  return complaints
}

const grant = async (origin: string, name: string): Promise<void> => {
  const manager = await adminToken(origin)
  await post(origin, RELATIONSHIPS, manager, { write: [`document:${name}#viewer@service:${LOADER}`] })
}
const knows = async (origin: string, name: string): Promise<readonly string[]> =>
  allowedOf((await ask(origin, await token(origin), `document:${name}`)).body) === true
    ? []
    : [`what was granted as ${name} is gone`]

async function replicate(at: {
  readonly from: Database
  readonly to: Database
  readonly write: () => Promise<void>
}): Promise<void> {
  const { from, to, write } = at
  await to.query(await schemaOf(from, ROOT))
  await from.query('create publication moved for all tables')
  await to.query(`create subscription moved connection '${from.url}' publication moved`)
  await write()
  await until('the first copy', async () => {
    const left = await to.query(`select 1 from pg_subscription_rel where srsubstate <> 'r'`)
    return left.length === 0
  })
}

/** Nobody writes any more. Numbers of rows that count by themselves go on where they were. */
async function cutOver({ from, to }: { readonly from: Database; readonly to: Database }): Promise<void> {
  const [row] = await from.query<{ lsn: string }>('select pg_current_wal_lsn()::text as lsn')
  await until('the last write', async () => {
    const reached = await from.query(`select 1 from pg_stat_replication where replay_lsn >= '${row?.lsn}'`)
    return reached.length > 0
  })
  await to.query('drop subscription moved')
}

/** What it knew is newer than what the server says: an operator must learn of it. */
async function saysThatItWentBack(origin: string, log: string): Promise<readonly string[]> {
  const manager = await adminToken(origin).catch(() => null)
  const deadline = performance.now() + WAIT_MS
  while (performance.now() < deadline) {
    await ask(origin, manager ?? '', 'document:later').catch(() => null)
    await token(origin)
      .then((reader) => ask(origin, reader, 'document:later'))
      .catch(() => null)
    if (readFileSync(log, 'utf8').includes('history_went_back')) return []
    await delay(200)
  }
  return ['the former server came back, and no line says that history went back']
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + WAIT_MS
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`${what} did not arrive`)
    await delay(50)
  }
}

/** One address before all servers, as of HAProxy or a Service. */
async function openAddress() {
  const port = await freePort()
  const open = new Set<Socket>()
  let target = 0
  const listener = createServer((near) => {
    const far = connect({ port: target, host: '127.0.0.1' })
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one)
      one.on('error', () => other.destroy()).on('close', () => open.delete(one))
      one.pipe(other)
    }
  })
  await new Promise<void>((done) => listener.listen(port, '127.0.0.1', done))
  const cut = (): void => {
    for (const socket of open) socket.destroy()
  }
  return {
    leadTo(url: string): void {
      target = Number(new URL(url).port)
      cut()
    },
    urlOf(database: Database): string {
      const url = new URL(database.url)
      url.port = `${port}`
      return url.href
    },
    close(): void {
      listener.close()
      cut()
    },
  }
}
