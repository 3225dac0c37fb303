/** `npm run bench`: every part in one run, one table; with `--json FILE`, and with `--write` into docs/benchmarks.md. */
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { machine, writeBlock, writePicture } from '../report/page.ts'
import { charts } from './charts.ts'
import { markdown, show } from './print.ts'
import { against, type Extent, type Part, SHORT, USUAL } from './rows.ts'

/** Loaded one by one: what one part loads can slow down another. */
const PARTS: readonly ((extent: Extent) => Promise<Part>)[] = [
  async (extent) => (await import('./engine.ts')).measureEngine(extent),
  async (extent) => (await import('../transports/bench.ts')).measureTransports(extent),
  async (extent) => {
    const { group } = await (await import('../identity/bench.ts')).measureIdentity(extent)
    return { name: 'identity', groups: [group], missing: [] }
  },
  async (extent) => {
    const { group, missing } = await (await import('../doors/bench.ts')).measureGateways(extent)
    return { name: 'sidecar and doors', groups: [group], missing }
  },
]
const COMMAND = 'npm run bench -- --write'

export async function runSuite(words: readonly string[]): Promise<void> {
  const options = { short: { type: 'boolean' }, write: { type: 'boolean' }, json: { type: 'string' } } as const
  const { values } = parseArgs({ args: [...words], options })
  const extent = values.short === true ? SHORT : USUAL
  const on = machine()
  console.log(on)
  const startedMs = performance.now()
  const parts: Part[] = []
  for (const run of PARTS) {
    const part = await run(extent)
    parts.push(part)
    show([part])
  }
  const minutes = (performance.now() - startedMs) / 60_000
  console.log(`\n${minutes.toFixed(1)} minutes`)
  const result = { on, minutes, extent, parts: parts.map(withRatios) }
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(result, null, 2)}\n`)
  if (values.write === true) {
    const sentence = `Measured ${on}: medians of ${extent.rounds} rounds of ${extent.roundMs / 1_000} s in turn, ${extent.revocations} revocations each.`
    writeBlock('docs/benchmarks.md', COMMAND, `${sentence}\n\n${markdown(parts)}`)
    for (const [name, svg] of charts(parts)) writePicture(name, svg)
  }
}

const withRatios = (part: Part) => ({
  ...part,
  groups: part.groups.map((group) => ({
    ...group,
    rows: group.rows.map((row) => ({ ...row, referenceIs: against(group, row) })),
  })),
})
