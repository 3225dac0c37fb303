/** What grows: a group of 100,000 members, and a million tuples over a thousand organizations in a bounded cache. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { answerCheck } from '../../../pdp/engine/decide/check.ts'
import { NO_MODEL } from '../../../pdp/engine/decide/model.ts'
import { createPdp } from '../../../pdp/engine/decision-point/create-pdp.ts'
import { Freshness } from '../../../pdp/engine/store/cache/freshness.ts'
import type { Store } from '../../../pdp/engine/store/contract.ts'
import { startEmbeddedPostgres } from '../../../pdp/engine/store/embedded-postgres/embedded-postgres.ts'
import { openPostgres } from '../../../pdp/engine/store/postgres/postgres.ts'
import type { Change } from '../../../pdp/shared/domain/change.ts'
import { ENVIRONMENT } from '../../../pdp/shared/domain/journal.ts'
import { user } from '../../../pdp/shared/domain/subjects.ts'
import { context, organization, put } from '../../support/tuples.ts'
import { grants, lcg, median, perSecond } from './data.ts'

const MEMBERS = 100_000
const CACHE_BYTES_MAX = 16 * 1024 * 1024

export async function benchLarge(): Promise<void> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-bench-'))
  const postgres = await startEmbeddedPostgres({ dataDirectory })
  const { store, close } = await openPostgres({ connectionString: postgres.connectionString })
  try {
    await largeGroup(store)
    await manyOrganizations(store)
  } finally {
    await close()
    await postgres.stop()
    await rm(dataDirectory, { recursive: true, force: true })
  }
}

async function write(store: Store, log: string, changes: readonly Change[]): Promise<void> {
  for (let i = 0; i < changes.length; i += 5_000) await store.write(log, changes.slice(i, i + 5_000), { context })
}

async function largeGroup(store: Store): Promise<void> {
  await store.write(ENVIRONMENT, [organization('large')], { context })
  await write(
    store,
    'large',
    Array.from({ length: MEMBERS }, (_, i) => put(`group:all#member@user:${i}`)),
  )
  await write(store, 'large', [
    put('doc:1#viewer@group:all#member'),
    ...Array.from({ length: MEMBERS }, (_, i) => put(`doc:2#viewer@user:${i}`)),
  ])
  for (const document of ['doc:1', 'doc:2']) {
    const times: number[] = []
    for (let i = 0; i < 25; i++) {
      const pdp = createPdp({ store })
      await pdp.can('large', user('x'), 'viewer', 'doc:9') // the environment is warm, the question is not
      const begin = performance.now()
      if (!(await pdp.can('large', user(`${i * 97}`), 'viewer', document))) throw new Error('wrong')
      times.push(performance.now() - begin)
    }
    const what =
      document === 'doc:1'
        ? `a group of ${MEMBERS.toLocaleString('en')}`
        : `${MEMBERS.toLocaleString('en')} direct viewers`
    console.log(`${what}, cold question: median ${median(times).toFixed(2)} ms`)
  }
}

async function manyOrganizations(store: Store): Promise<void> {
  const data = grants(1_000)
  const names = Array.from({ length: 1_000 }, (_, i) => `many-${i}`)
  for (const name of names) {
    await store.write(ENVIRONMENT, [organization(name)], { context })
    await write(
      store,
      name,
      data.tuples.map((tuple): Change => ({ kind: 'tuple', op: 'write', tuple })),
    )
  }
  globalThis.gc?.()
  const before = process.memoryUsage().heapUsed
  const freshness = new Freshness({ store, cacheBytesMax: CACHE_BYTES_MAX })
  const random = lcg(3)
  const begin = performance.now()
  let asked = 0
  let most = 0
  const ask = async (): Promise<void> => {
    while (performance.now() - begin < 8_000) {
      const name = names[Math.floor(random() * names.length)] ?? ''
      const check = { relation: 'viewer', resource: `doc:${Math.floor(random() * data.documents)}` }
      const subject = `user:${Math.floor(random() * data.users)}`
      await freshness.ask({
        organization: name,
        evaluate: (view) => answerCheck(view, NO_MODEL, { organization: name, subject, app: null }, check),
      })
      asked++
      most = Math.max(most, freshness.size.bytes)
    }
  }
  await Promise.all(Array.from({ length: 64 }, ask))
  globalThis.gc?.()
  const mib = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(0)} MiB`
  console.log(
    `1,000,000 tuples over 1,000 organizations at random: ${perSecond((asked / (performance.now() - begin)) * 1_000)}, budget ${mib(CACHE_BYTES_MAX)}, accounted at most ${mib(most)}, heap grew ${mib(process.memoryUsage().heapUsed - before)}, ${freshness.size.evicted.toLocaleString('en')} evicted`,
  )
}
