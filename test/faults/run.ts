/** `npm run faults [-- NAME… | --short | --list | --write]`: faults under load, with an oracle for every answer and every write. */
import { machine, writeBlock } from '../bench/report/page.ts'
import { readArguments, requireNames } from '../support/programs/arguments.ts'
import { FAULTS, type Fault, SHORT } from './catalogue.ts'
import { playFault, type Verdict } from './judgement.ts'
import { startLoad } from './load.ts'
import { faultTables, type Played } from './page.ts'
import { startSystem } from './system.ts'

const USAGE = 'npm run faults [-- NAME… | --short | --list | --write]'
const COMMAND = 'npm run faults -- --write'
const { values, positionals } = readArguments(
  {
    allowPositionals: true,
    options: { short: { type: 'boolean' }, list: { type: 'boolean' }, write: { type: 'boolean' } },
  },
  USAGE,
)
function chosen(): readonly Fault[] {
  const names = values.short === true ? SHORT : positionals
  return names.length === 0 ? FAULTS : FAULTS.filter(({ name }) => names.includes(name))
}

async function main(faults: readonly Fault[]): Promise<void> {
  const system = await startSystem({})
  const on = machine()
  const played: Played[] = []
  const counts = { passed: 0, failed: 0 }
  try {
    const load = await startLoad(system)
    write(`${'fault'.padEnd(30)} ${COLUMNS.map(([title, width]) => title.padStart(width)).join(' ')}`)
    for (const fault of faults) {
      const missing = fault.missing?.(system) ?? null
      if (missing !== null) {
        write(`${fault.name.padEnd(30)} skipped: ${missing}`)
        continue
      }
      const verdict = await playFault(fault, { system, load })
      played.push({ fault, verdict })
      const passed = verdict.complaints.length === 0
      counts[passed ? 'passed' : 'failed'] += 1
      write(
        `${fault.name.padEnd(30)} ${COLUMNS.map(([, width, show]) => show(verdict).padStart(width)).join(' ')}  ${passed ? 'passed' : 'FAILED'}`,
      )
      for (const complaint of verdict.complaints) write(`  ${complaint}`)
    }
    await load.stop()
  } finally {
    await system.stop()
  }
  write(`${counts.passed} passed, ${counts.failed} failed`)
  if (counts.failed > 0) process.exitCode = 1
  // The page shows all of them: the tables of some would hide the others.
  if (values.write === true && played.length === FAULTS.length)
    writeBlock('docs/faults.md', COMMAND, `Measured ${on}.\n\n${faultTables(played)}`)
  else if (values.write === true)
    write(`docs/faults.md stays as it is: ${played.length} of ${FAULTS.length} were played`)
}

const COLUMNS: readonly (readonly [title: string, width: number, show: (verdict: Verdict) => string])[] = [
  ['asked', 7, ({ asked }) => `${asked}`],
  ['unanswered', 10, ({ unavailable }) => `${unavailable}`],
  ['replays', 7, ({ replays }) => `${replays}`],
  ['writes', 7, ({ writes }) => `${writes}`],
  ['slowest ask', 12, ({ slowestAskMs }) => `${Math.round(slowestAskMs)} ms`],
  ['slowest write', 14, ({ slowestWriteMs }) => `${Math.round(slowestWriteMs)} ms`],
  ['back after', 11, ({ backMs }) => `${(backMs / 1_000).toFixed(1)} s`],
]

function write(line: string): void {
  process.stdout.write(`${line}\n`)
}

const names = FAULTS.map(({ name }) => name)
requireNames(positionals, names, `${USAGE}\n--list names them`)
if (values.list === true) process.stdout.write(`${names.join('\n')}\n`)
else await main(chosen())
