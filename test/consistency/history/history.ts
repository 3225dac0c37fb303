/**
 * `npm run consistency [-- --seconds N] [-- --case TEXT]`: checks the histories of three PDP processes on one PostgreSQL, then
 * that every planted fault is caught. Without --seconds until 100,000 decisions were judged. Exit 0: none wrong, all caught.
 * `--leases [--schedules N] [--first N]` plays schedules of leases instead, from that seed on.
 */
import { rm } from 'node:fs/promises'
import { startEmbeddedPostgres } from '../../../pdp/engine/store/embedded-postgres/embedded-postgres.ts'
import { misused, readArguments, readNumber } from '../../support/programs/arguments.ts'
import { makeDataFolder } from '../../support/programs/data-folder.ts'
import { playLeases } from '../leases/leases.ts'
import { plantSource } from '../mistakes.ts'
import { FAULTS, type HistoryCase, HOOKS, QUICK_FAULTS, RIGHT } from './cases.ts'
import { startNode } from './nodes.ts'
import type { Violation } from './records.ts'
import { createTemplate, type Outcome, type RunOptions, runCase } from './run.ts'

type Rig = Pick<RunOptions, 'nodes' | 'serverUrl'>
type Plan = {
  readonly right: readonly HistoryCase[]
  readonly rightMs: number
  readonly faults: readonly HistoryCase[]
  readonly faultMsMax: number
  readonly decisionsMin: number
}

const DECISIONS_MIN = 100_000
const ROUNDS_MAX = 20
/** Of the seconds given; the rest goes to the faults, and to opening and closing. */
const SHORT_RIGHT_SHARE = 0.3
const FAULT_RUNS_MAX = 6
/** Most are caught within a second. */
const FAULT_MS_MAX = 20_000

const LEASE_SCHEDULES = 12_000
const USAGE = 'npm run consistency [-- --seconds N] [--case PATTERN] | [-- --leases] [--schedules N] [--first N]'
const TEXT = { type: 'string' } as const
const { values: given } = readArguments(
  { options: { seconds: TEXT, case: TEXT, leases: { type: 'boolean' }, schedules: TEXT, first: TEXT } },
  USAGE,
)
function planOf(words: { seconds?: string | undefined; case?: string | undefined }): Plan {
  const seconds = words.seconds === undefined ? null : readNumber('--seconds', words.seconds, USAGE)
  const chosen = (all: readonly HistoryCase[]): readonly HistoryCase[] =>
    words.case === undefined ? all : all.filter((c) => new RegExp(words.case ?? '').test(c.name))
  const short = seconds !== null && words.case === undefined
  const right = chosen(RIGHT)
  if (right.length + chosen(FAULTS).length === 0) misused(`no case is called ${words.case}`, USAGE)
  return {
    right,
    rightMs:
      seconds === null ? 12_000 : (seconds * 1_000 * (short ? SHORT_RIGHT_SHARE : 1)) / Math.max(1, right.length),
    faults: chosen(FAULTS).filter((c) => !short || QUICK_FAULTS.has(c.name)),
    faultMsMax: FAULT_MS_MAX,
    decisionsMin: seconds === null && words.case === undefined ? DECISIONS_MIN : 0,
  }
}

/** @returns the exit code. */
async function main(plan: Plan): Promise<number> {
  const dataDirectory = makeDataFolder('portcullis-history-')
  // Crashes are those of processes, not of the machine: what was written to the disk's cache survives them.
  const settings = { fsync: 'off', full_page_writes: 'off', max_connections: '200' }
  const postgres = await startEmbeddedPostgres({ dataDirectory, settings })
  const nodes = await Promise.all([startNode(), startNode(), startNode()])
  try {
    await createTemplate(postgres.connectionString)
    return await runAll(plan, { nodes, serverUrl: postgres.connectionString })
  } finally {
    await Promise.all(nodes.map((node) => node.stop()))
    await postgres.stop()
    await rm(dataDirectory, { recursive: true, force: true })
  }
}

async function runAll(plan: Plan, rig: Rig): Promise<number> {
  let decisions = 0
  let violations = 0
  const source = plantSource('history', HOOKS)
  for (let round = 0; round === 0 || (decisions < plan.decisionsMin && round < ROUNDS_MAX); round++) {
    for (const item of plan.right) {
      const outcome = await runCase(item, { ...rig, root: source, durationMs: plan.rightMs, stopEarly: false })
      decisions += outcome.decisions
      violations += outcome.violations.length
      report(item, outcome)
    }
  }
  let caught = 0
  for (const item of plan.faults) {
    const planted = plantOrExplain(item)
    if (planted === null) continue
    // What a fault needs to show is a matter of luck with three processes: each has a few runs.
    let found = false
    for (let run = 0; run < FAULT_RUNS_MAX && !found; run++) {
      const outcome = await runCase(item, { ...rig, root: planted, durationMs: plan.faultMsMax, stopEarly: true })
      found = outcome.violations.length > 0
      report(item, outcome)
    }
    if (found) caught++
  }
  const enough = decisions >= plan.decisionsMin
  const faults = plan.faults.length
  console.log(`${decisions} decisions, ${violations} violations; ${caught} of ${faults} planted faults caught`)
  return violations === 0 && caught === faults && enough ? 0 : 1
}

/** A fault that no longer fits the source counts as one that was not caught. */
function plantOrExplain(item: HistoryCase): string | null {
  try {
    return plantSource(`history ${item.name}`, [...HOOKS, ...item.edits])
  } catch (err) {
    console.log(`planted: ${item.name}: NOT PLANTED: ${err instanceof Error ? err.message : err}`)
    return null
  }
}

const EXAMPLES_MAX = 3

function report(item: HistoryCase, outcome: Outcome): void {
  const planted = item.edits.length > 0
  const counts = Map.groupBy(outcome.violations, (v: Violation) => v.rule)
  const found = [...counts].map(([rule, all]) => `${all.length} ${rule}`).join(', ')
  const crashes = outcome.crashes > 0 ? `, ${outcome.crashes} crashes, ${outcome.unanswered} unanswered` : ''
  const leased = outcome.leased > 0 ? `, ${outcome.leased} questions from memory` : ''
  const watched = outcome.standings > 0 ? `, ${outcome.pushes} answers to ${outcome.standings} watched questions` : ''
  const exchanged = outcome.claims > 0 ? `, ${outcome.claims} exchanged tokens` : ''
  console.log(
    `${planted ? 'planted: ' : ''}${item.name}: ${outcome.decisions} decisions, ${outcome.writes} writes, ` +
      `${outcome.rowSetsCompared} cached row sets compared${crashes}${leased}${watched}${exchanged}; ` +
      (planted
        ? found === ''
          ? 'NOT CAUGHT'
          : `caught: ${found}`
        : found === ''
          ? 'nothing wrong'
          : `WRONG: ${found}`),
  )
  if (planted || found === '') return
  for (const { rule, message } of outcome.violations.slice(0, EXAMPLES_MAX)) console.log(`  ${rule}: ${message}`)
}

function run(): Promise<number> {
  const { leases = false, schedules = String(LEASE_SCHEDULES), first = '1' } = given
  if (!leases) return main(planOf(given))
  return playLeases({
    schedules: readNumber('--schedules', schedules, USAGE),
    firstSeed: readNumber('--first', first, USAGE),
  })
}

process.exitCode = await run().catch((err: unknown) => {
  console.error(err)
  return 1
})
