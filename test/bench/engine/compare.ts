/** A change of a model compared on a million tuples of one organization: how long, how much memory, and whether the number is right. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPdp } from '../../../pdp/engine/decision-point/create-pdp.ts'
import { startEmbeddedPostgres } from '../../../pdp/engine/store/embedded-postgres/embedded-postgres.ts'
import { openPostgres } from '../../../pdp/engine/store/postgres/postgres.ts'
import { ENVIRONMENT } from '../../../pdp/shared/domain/journal.ts'
import { context, organization, put } from '../../support/tuples.ts'
import { lcg } from './data.ts'

const DOCUMENTS = 100_000
const USERS = 5_000
const VIEWERS = 8
const WRITTEN_TOGETHER = 500

const model = (viewer: string): string =>
  `model\n  schema 1.1\ntype user\ntype folder\n  relations\n    define viewer: [user]\ntype doc\n  relations\n    define parent: [folder]\n    define editor: [user]\n    define viewer: ${viewer}\n`

/** `documents`: fewer for a quick look. */
export async function benchCompare(documents = DOCUMENTS): Promise<void> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-bench-'))
  const postgres = await startEmbeddedPostgres({ dataDirectory })
  const { store, close } = await openPostgres({ connectionString: postgres.connectionString })
  try {
    const manifest = {
      ...{ app: 'docs', audiences: [], permissions: {}, roles: {} },
      model: model('[user] or editor or viewer from parent'),
    }
    await store.write(ENVIRONMENT, [organization('acme'), { kind: 'manifest', manifest }], { context })
    const random = lcg(7)
    const user = (): number => Math.floor(random() * USERS)
    let [expected, tuples] = [0, 0]
    for (let at = 0; at < documents; at += WRITTEN_TOGETHER) {
      const changes = Array.from({ length: Math.min(WRITTEN_TOGETHER, documents - at) }, (_, i) => {
        const doc = `doc:${String(at + i).padStart(6, '0')}`
        const [editor, viewers] = [user(), new Set(Array.from({ length: VIEWERS }, user))]
        if (!viewers.has(editor)) expected += 1
        return [
          put(`${doc}#parent@folder:${at + i}`),
          put(`${doc}#editor@user:${editor}`),
          ...[...viewers].map((viewer) => put(`${doc}#viewer@user:${viewer}`)),
        ]
      }).flat()
      tuples += changes.length
      await store.write('acme', changes, { context })
    }
    const pdp = createPdp({ store })
    const request = {
      ...{ organization: 'acme', relation: 'viewer', type: 'doc' },
      model: { app: 'docs', text: model('[user] or viewer from parent') },
    }
    globalThis.gc?.()
    const before = process.memoryUsage()
    let [loses, gains, calls, rss] = [0, 0, 0, 0]
    let after: string | null = null
    const begin = performance.now()
    do {
      const found = await pdp.compare({ ...request, ...(after !== null && { after }) })
      loses += found.losesCount
      gains += found.gainsCount
      after = found.next
      calls += 1
      rss = Math.max(rss, process.memoryUsage().rss)
    } while (after !== null)
    const seconds = (performance.now() - begin) / 1_000
    globalThis.gc?.()
    const mib = (bytes: number): string => `${(bytes / 1_024 / 1_024).toFixed(0)} MiB`
    console.log(
      `${tuples.toLocaleString('en')} tuples, ${documents.toLocaleString('en')} documents: ${seconds.toFixed(0)} s in ${calls} calls, ${Math.round(documents / seconds)} documents a second; ${loses === expected && gains === 0 ? 'the exact number' : `WRONG: ${loses} lose, ${gains} gain, expected ${expected}`} (${loses.toLocaleString('en')} lose); process ${mib(before.rss)} before, at most ${mib(rss)}, heap grew ${mib(process.memoryUsage().heapUsed - before.heapUsed)}`,
    )
  } finally {
    await close()
    await postgres.stop()
    await rm(dataDirectory, { recursive: true, force: true })
  }
}
