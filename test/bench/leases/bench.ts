/** Questions and writes of applications that answer from memory, beside ones that ask the database each time. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPdp } from '../../../pdp/engine/decision-point/create-pdp.ts'
import { startEmbeddedPostgres } from '../../../pdp/engine/store/embedded-postgres/embedded-postgres.ts'
import { openPostgres } from '../../../pdp/engine/store/postgres/postgres.ts'
import { user } from '../../../pdp/shared/domain/subjects.ts'
import { context, given, put } from '../../support/tuples.ts'
import { until } from '../../support/until.ts'
import { short } from '../report/figures.ts'
import { show } from '../suite/print.ts'
import { type Group, measureInTurn, USUAL, type Way } from '../suite/rows.ts'

const ORGANIZATIONS = 20
const ASKS = 'ask the database'
/** The processes of each way. */
const COUNTS: { readonly [name: string]: number } = { [ASKS]: 0, 'one with a shared lease': 1, 'three with one': 3 }
type Opened = { readonly name: string; readonly nodes: readonly Node[]; readonly all: readonly Store[] }
type Store = Awaited<ReturnType<typeof openPostgres>>
type Node = Store & { readonly can: (i: number) => Promise<boolean>; readonly write: (i: number) => Promise<unknown> }

export async function bench(): Promise<void> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-bench-'))
  const postgres = await startEmbeddedPostgres({ dataDirectory, settings: { max_connections: '200' } })
  const admin = await openPostgres({ connectionString: postgres.connectionString })
  const opened: Opened[] = []
  try {
    for (const [at, [name, count]] of Object.entries(COUNTS).entries()) {
      const url = new URL(postgres.connectionString)
      url.pathname = `/bench${at}`
      await admin.sql.query(`create database bench${at}`)
      opened.push(await openAll(name, count, url.href))
    }
    show([{ name: 'leases', groups: await measureAll(opened), missing: [] }])
    for (const { name, nodes } of opened.slice(1)) await showFrozen(name, nodes)
  } finally {
    for (const store of [admin, ...opened.flatMap(({ all }) => all)]) await store.close()
    await postgres.stop()
    await rm(dataDirectory, { recursive: true, force: true })
  }
}

async function openAll(name: string, count: number, connectionString: string): Promise<Opened> {
  const first = await openPostgres({ connectionString })
  for (let n = 0; n < ORGANIZATIONS; n++) await given(first.store, `o${n}`, put('doc:1#viewer@user:ann'))
  const nodes: Node[] = []
  for (let n = 0; n < Math.max(1, count); n++) nodes.push(await openNode(connectionString, count > 0))
  return { name, nodes, all: [first, ...nodes] }
}

async function openNode(connectionString: string, isLeased: boolean): Promise<Node> {
  let leased = 0
  const store = await openPostgres(
    { connectionString, ...(isLeased ? { lease: 'shared' } : {}) },
    { onServer: (event) => void (event.kind === 'leased' && leased++) },
  )
  const pdp = createPdp({ store: store.store })
  const can = async (i: number): Promise<boolean> => {
    if (!(await pdp.can(`o${i % ORGANIZATIONS}`, user('ann'), 'viewer', 'doc:1'))) throw new Error('not allowed')
    return true
  }
  const write = (i: number): Promise<unknown> =>
    store.store.write(`o${i % ORGANIZATIONS}`, [put(`doc:2#viewer@user:u${i}-${Math.random()}`)], { context })
  for (let n = 0; n < ORGANIZATIONS; n++) await can(n)
  if (isLeased) await until(async () => (await can(0)) && leased > ORGANIZATIONS)
  return { ...store, can, write }
}

async function measureAll(opened: readonly Opened[]): Promise<readonly Group[]> {
  const ways = (call: 'can' | 'write') =>
    opened.map(
      ({ name, nodes }): Way => ({
        ...{ name, ours: true, unchecked: '' },
        call: (i) => nodes[0]?.[call](i) ?? Promise.reject(new TypeError('there is no node')),
        // Or the journals that are written are not those that all have asked about.
        beside: () => {
          const timer = setInterval(
            () => nodes.slice(1).forEach((node) => void node.can((Math.random() * 100) | 0)),
            20,
          )
          return async () => clearInterval(timer)
        },
      }),
    )
  const groups: Group[] = []
  for (const [call, unit] of [
    ['can', 'questions'],
    ['write', 'writes'],
  ] as const)
    for (const callers of call === 'can' ? [1, 32] : [1]) {
      const rows = await measureInTurn(ways(call), { ...USUAL, callers })
      groups.push({ title: `${callers} at once, ${ORGANIZATIONS} organizations`, unit, reference: ASKS, rows })
    }
  return groups
}

/** A process that does not answer: the first write waits for it, and strikes it off. */
async function showFrozen(name: string, nodes: readonly Node[]): Promise<void> {
  const [node] = nodes
  await node?.sql.query(`
    insert into lease_holder (id, interests, seen) values ('frozen', decode(repeat('ff', 128), 'hex'), nextval('lease_turn'))`)
  const tookMs: string[] = []
  for (let n = 0; n < 3; n++) {
    const sinceMs = performance.now()
    await node?.write(0)
    tookMs.push(short(performance.now() - sinceMs))
  }
  console.log(`${name}, and another that is frozen: writes one after the other took ${tookMs.join(', ')} ms`)
}
