/**
 * `npm run test:doors [-- --short] [-- --differences] [-- --write] [-- PART…]`: attacks, random targets, forged control fields
 * and failures through real gateways with printed configurations, beside the data port; and `probe-gateway` with planted mistakes. `--write` puts the table into
 * docs/doors.md. Ends with `N passed, N failed`.
 */
import { join } from 'node:path'
import { readArguments, requireNames } from '../support/programs/arguments.ts'
import { findBinaries } from './binaries.ts'
import { playCorpora } from './corpora.ts'
import { failAll, sendForged } from './forged.ts'
import { probeGateways } from './probes.ts'
import { fuzzRouting } from './routing.ts'
import { Tally } from './tally.ts'

const USAGE =
  'npm run test:doors [-- attacks | routing | forged | failures | probes] [--short] [--differences] [--write]'
const FLAG = { type: 'boolean', default: false } as const
const { values, positionals: named } = readArguments(
  { allowPositionals: true, options: { short: FLAG, differences: FLAG, write: FLAG } },
  USAGE,
)
const { short } = values
const PARTS = ['attacks', 'routing', 'forged', 'failures', 'probes']
requireNames(named, PARTS, USAGE)
const binaries = findBinaries(process.env, { make: !short })
const missing = Object.entries(binaries).flatMap(([name, path]) => (path === null ? [name] : []))
if (missing.length > 0) console.log(`left out, because their programs are missing: ${missing.join(', ')}`)
const tally = new Tally({ differences: values.differences })
const parts = {
  attacks: () => playCorpora(tally, binaries, short ? 6 : 1).then((count) => console.log(`${count} attack cases`)),
  routing: () =>
    fuzzRouting(tally, binaries, short ? { count: 60, seed: 7 } : { count: 1_500, seed: Date.now() % 100_000 }),
  forged: () => sendForged(tally, binaries),
  failures: () => failAll(tally, binaries),
  probes: async () => {
    const { right, wrong } = await probeGateways(binaries, { short })
    probed += right
    broken += wrong
  },
}
let [broken, probed] = [0, 0]
for (const [name, part] of Object.entries(parts)) {
  if (named.length > 0 && !named.includes(name)) continue
  try {
    await part()
  } catch (err) {
    broken += 1
    console.error(err)
  }
}
tally.print()
if (values.write) tally.write(join(import.meta.dirname, '../../docs/doors.md'))
const failed = tally.looser + broken
console.log(`\n${tally.held + probed} passed, ${failed} failed`)
process.exit(failed > 0 || tally.held + probed === 0 ? 1 : 0)
