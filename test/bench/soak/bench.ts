/**
 * `npm run bench -- soak [--minutes N]`: a PDP under everything that stores something, while heap, memory and tables are sampled.
 * Once a minute all that is stored gets older than it is ever kept, so that minutes stand for days. Prints slopes and a verdict.
 */
import { rmSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { makeDataFolder } from '../../support/programs/data-folder.ts'
import { startDatabase } from '../../upgrade/database.ts'
import { type Pdp, startPdp } from '../../upgrade/versions.ts'
import { machine, table } from '../report/page.ts'
import { age, rowsOf } from './aging.ts'
import { startStorers } from './storers.ts'
import { type Series, slopeOf, verdictOf } from './trend.ts'

const SAMPLE_MS = 5_000
const AGE_MS = 60_000
const MINUTE_MS = 60_000
/** One for each that ever was: an id is never given out twice, nor is a revision. */
const FOR_EVER = new Set(['revision, rows', 'principal, rows'])

export async function bench(words: readonly string[]): Promise<void> {
  const { values } = parseArgs({ args: [...words], options: { minutes: { type: 'string', default: '60' } } })
  const minutes = Number(values.minutes)
  if (!(minutes >= 1)) throw new Error('--minutes is a number from 1 on')
  const folder = makeDataFolder('portcullis-soak-')
  const database = await startDatabase(folder)
  const env = { PORTCULLIS_CHANGES_KEPT_DAYS: '1', PORTCULLIS_LOG_LEVEL: 'warn' }
  let pdp: Pdp | null = null
  try {
    pdp = await startPdp({ name: 'pdp', folder, databaseUrl: database.url, env })
    const storers = await startStorers(pdp.origin)
    const series = new Map<string, Series>()
    const beginMs = performance.now()
    let agedMs = beginMs
    while (performance.now() - beginMs < minutes * MINUTE_MS) {
      await delay(SAMPLE_MS)
      if (performance.now() - agedMs > AGE_MS) {
        agedMs = performance.now()
        await age(database)
      }
      const atMinutes = (performance.now() - beginMs) / MINUTE_MS
      const sample = { ...(await memoryOf(pdp)), ...(await rowsOf(database)) }
      for (const [name, value] of Object.entries(sample)) {
        const points = series.get(name) ?? []
        points.push({ atMinutes, value })
        series.set(name, points)
      }
    }
    await storers.stop()
    console.log(`${machine()}, ${minutes} minutes, ${storers.done()}\n`)
    report(series)
  } finally {
    pdp?.part.signal('SIGKILL')
    await pdp?.part.ended()
    await database.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function memoryOf({ ports: [, , metrics] }: Pdp): Promise<{ readonly [name: string]: number }> {
  const text = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text()
  const megabytes = (name: string): number =>
    Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN) / 1_048_576
  return { 'heap, MB': megabytes('nodejs_heap_size_used_bytes'), 'RSS, MB': megabytes('process_resident_memory_bytes') }
}

function report(series: ReadonlyMap<string, Series>): void {
  const rows: string[][] = []
  let grows = 0
  for (const [name, points] of series) {
    const most = Math.max(...points.map(({ value }) => value))
    if (most === 0) continue
    const verdict = FOR_EVER.has(name) ? 'kept for ever' : verdictOf(name, points)
    if (verdict === 'grows') grows += 1
    const last = points.at(-1)?.value ?? 0
    rows.push([name, most.toFixed(0), last.toFixed(0), `${(slopeOf(points) * 60).toFixed(1)}/h`, verdict])
  }
  console.log(table(['what', 'most', 'at the end', 'slope of the second half', ''], rows))
  console.log(grows === 0 ? '\nok: nothing grows' : `\nFAIL: ${grows} of ${rows.length} grow`)
  process.exitCode = grows === 0 ? 0 : 1
}
