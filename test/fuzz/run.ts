/**
 * `npm run fuzz [-- --parser NAME] [--seconds N] [--seed S]`: changed inputs for each parser, and requests that a service may
 * read in another way than the sidecar. `--seconds`: in all. The last line is `N passed, N failed`.
 */
import { playBypasses } from '../sidecar/fuzz/bypasses.ts'
import { misused, readArguments, readNumber, requireNames } from '../support/programs/arguments.ts'
import { DOCUMENTS } from './parsers/documents.ts'
import { RELATIONSHIPS } from './parsers/relationships.ts'
import { REQUESTS } from './parsers/requests.ts'
import { TOKENS } from './parsers/tokens.ts'
import { type Parser, play } from './play.ts'

const PARSERS: readonly Parser[] = [...REQUESTS, ...RELATIONSHIPS, ...TOKENS, ...DOCUMENTS]
/** Not a parser alone: frameworks are started, and are asked. */
const BYPASS = 'bypass'

const names = [...PARSERS.map(({ name }) => name), BYPASS]
const USAGE = `npm run fuzz [-- --parser ${names.join(' | ')}] [--seconds N] [--seed N]`
const { values } = readArguments(
  { options: { parser: { type: 'string' }, seconds: { type: 'string', default: '120' }, seed: { type: 'string' } } },
  USAGE,
)
const seed = Number(values.seed ?? Date.now() % 1_000_000)
if (!Number.isInteger(seed)) misused(`--seed ${values.seed} is not a whole number`, USAGE)
const seconds = readNumber('--seconds', values.seconds, USAGE)
requireNames(values.parser === undefined ? [] : [values.parser], names, USAGE)
const chosen = PARSERS.filter(({ name }) => values.parser === undefined || name === values.parser)
const ms = (seconds * 1_000) / Math.max(1, chosen.length)
let [passed, failed] = [0, 0]
const count = (ok: boolean): void => {
  if (ok) passed++
  else failed++
}
for (const parser of chosen) {
  const { inputs, accepted, fault } = await play(parser, { seed, ms })
  console.log(`${parser.name}: ${inputs} inputs, ${accepted} accepted, ${fault === null ? 'no fault' : 'FAULT'}`)
  if (fault !== null)
    console.log(
      `  ${fault.message}\n  ${JSON.stringify(fault.text)}\n  again: npm run fuzz -- --parser ${parser.name} --seed ${seed}`,
    )
  count(fault === null)
}
// Frameworks take seconds to start, so that it is left to those who ask for it.
if (values.parser === BYPASS) count(await playBypasses({ seconds, seed }))
console.log(`seed ${seed}: ${passed} passed, ${failed} failed`)
if (failed > 0) process.exitCode = 1
