/**
 * `npm run test:doors [-- --short] [-- --differences]`: attacks, random targets, forged control fields and failures through real
 * gateways with printed configurations, beside the data port. Ends with `N passed, N failed`.
 */
import { findBinaries } from './binaries.ts'
import { playCorpora } from './corpora.ts'
import { failAll, sendForged } from './forged.ts'
import { fuzzRouting } from './routing.ts'
import { Tally } from './tally.ts'

const short = process.argv.includes('--short')
const binaries = findBinaries(process.env, { make: !short })
const missing = Object.entries(binaries).flatMap(([name, path]) => (path === null ? [name] : []))
if (missing.length > 0) console.log(`left out, because their programs are missing: ${missing.join(', ')}`)
const tally = new Tally()
const parts = [
  () => playCorpora(tally, binaries, short ? 6 : 1).then((count) => console.log(`${count} attack cases`)),
  () => fuzzRouting(tally, binaries, short ? { count: 60, seed: 7 } : { count: 1_500, seed: Date.now() % 100_000 }),
  () => sendForged(tally, binaries),
  () => failAll(tally, binaries),
]
let broken = 0
for (const part of parts) {
  try {
    await part()
  } catch (err) {
    broken += 1
    console.error(err)
  }
}
tally.print()
const failed = tally.looser + broken
console.log(`\n${tally.held} passed, ${failed} failed`)
process.exit(failed > 0 || tally.held === 0 ? 1 : 0)
