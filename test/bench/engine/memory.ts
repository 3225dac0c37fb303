/** In process on the memory store: checks per second, look-ups and bytes a tuple, and what the asynchronous call adds. */
import { answerCheck } from '../../../pdp/engine/decide/check.ts'
import { NO_MODEL } from '../../../pdp/engine/decide/model.ts'
import { createPdp } from '../../../pdp/engine/decision-point/create-pdp.ts'
import { memoryStore } from '../../../pdp/engine/store/memory/memory.ts'
import type { ResidentStore } from '../../../pdp/engine/store/memory/resident.ts'
import type { Change } from '../../../pdp/shared/domain/change.ts'
import type { PermissionCheck, Subject } from '../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../pdp/shared/domain/journal.ts'
import { user } from '../../../pdp/shared/domain/subjects.ts'
import { context, organization } from '../../support/tuples.ts'
import { type Grants, grants, median, perSecond, questions } from './data.ts'

const SIZES = [1_000, 100_000, 1_000_000]
const ROUND_MS = 400
const ROUNDS = 5
/** Checks between two looks at the clock of the process, which is slow to answer. */
const BATCH = 20_000

type Prepared = {
  readonly asked: { readonly organization: string; readonly subject: string; readonly app: null }
  readonly check: PermissionCheck
  readonly subject: Subject
  readonly allowed: boolean
}

export async function benchMemory(): Promise<void> {
  console.log('memory store, through four nested groups, half denied, by CPU time of one core')
  await loaded(grants(1_000)) // what runs for the first time is compiled, and that is kept
  for (const count of SIZES) await measure(count)
  // Last, since the engine is slower once its look-ups have been counted.
  for (const count of SIZES) {
    const data = grants(count)
    const { store } = await loaded(data)
    const perCheck = lookUpsPerCheck(store, prepared(data))
    console.log(`  ${count.toLocaleString('en').padStart(9)} tuples  ${perCheck} look-ups a check`)
  }
}

async function measure(count: number): Promise<void> {
  const data = grants(count)
  const { store, bytesPerTuple } = await loaded(data)
  const asked = prepared(data)
  const pdp = createPdp({ store })
  const can = ({ subject, check }: Prepared): Promise<boolean> =>
    pdp.can('acme', subject, check.relation, check.resource)
  for (const q of asked.slice(0, 1_000))
    if ((await can(q)) !== q.allowed) throw new Error(`wrong: ${JSON.stringify(q)}`)
  // Turn by turn, so that what else the machine does slows both.
  const [core, calls]: [number[], number[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    core.push(evaluationsPerSecond(store, asked))
    calls.push(await callsPerSecond(can, asked))
  }
  const addedUs = median(core.map((rate, i) => 1e6 / (calls[i] ?? 0) - 1e6 / rate))
  console.log(
    `  ${count.toLocaleString('en').padStart(9)} tuples  ${perSecond(median(core)).padStart(10)} evaluated  ${perSecond(median(calls)).padStart(10)} by can(), +${addedUs.toFixed(2)} us a call  ${bytesPerTuple.toFixed(0)} bytes a tuple`,
  )
}

async function loaded(data: Grants): Promise<{ store: ResidentStore; bytesPerTuple: number }> {
  const store = memoryStore()
  await store.write(ENVIRONMENT, [organization('acme')], { context })
  const before = heapBytes()
  for (let i = 0; i < data.tuples.length; i += 1_000) {
    const changes = data.tuples.slice(i, i + 1_000).map((tuple): Change => ({ kind: 'tuple', op: 'write', tuple }))
    await store.write('acme', changes, { context })
  }
  return { store, bytesPerTuple: (heapBytes() - before) / data.tuples.length }
}

const prepared = (data: Grants): readonly Prepared[] =>
  questions(data, 100_000).map((q) => ({
    asked: { organization: 'acme', subject: `user:${q.user}`, app: null },
    check: { relation: 'viewer', resource: q.document },
    subject: user(q.user),
    allowed: q.allowed,
  }))

/** The synchronous core alone. */
function evaluationsPerSecond(store: ResidentStore, asked: readonly Prepared[]): number {
  const view = store.currentView()
  const begin = cpuMs()
  let done = 0
  while (cpuMs() - begin < ROUND_MS) {
    for (let i = 0; i < BATCH; i++) {
      const q = asked[done++ % asked.length]!
      answerCheck(view, NO_MODEL, q.asked, q.check)
    }
  }
  return (done / (cpuMs() - begin)) * 1_000
}

async function callsPerSecond(call: (q: Prepared) => Promise<boolean>, asked: readonly Prepared[]): Promise<number> {
  const begin = cpuMs()
  let done = 0
  while (cpuMs() - begin < ROUND_MS) for (let i = 0; i < BATCH; i++) await call(asked[done++ % asked.length]!)
  return (done / (cpuMs() - begin)) * 1_000
}

/** Look-ups in maps and sets, once everything has been asked; of questions that have neither name of the one before. */
function lookUpsPerCheck(store: ResidentStore, asked: readonly Prepared[]): string {
  const view = store.currentView()
  for (const q of asked) answerCheck(view, NO_MODEL, q.asked, q.check)
  const { get, has } = Map.prototype
  const hasInSet = Set.prototype.has
  let count = 0
  Map.prototype.get = function (key) {
    count++
    return get.call(this, key)
  }
  Map.prototype.has = function (key) {
    count++
    return has.call(this, key)
  }
  Set.prototype.has = function (value) {
    count++
    return hasInSet.call(this, value)
  }
  const all: number[] = []
  let last = asked[0]!
  for (const q of asked.slice(1)) {
    if (q.asked.subject !== last.asked.subject && q.check.resource !== last.check.resource) {
      count = 0
      answerCheck(view, NO_MODEL, q.asked, q.check)
      all.push(count)
    } else answerCheck(view, NO_MODEL, q.asked, q.check)
    last = q
  }
  Object.assign(Map.prototype, { get, has })
  Object.assign(Set.prototype, { has: hasInSet })
  const [least, most] = [Math.min(...all.slice(0, 50_000)), Math.max(...all.slice(0, 50_000))]
  return least === most ? `${most}` : `${least} to ${most}`
}

/** What all threads of this process used: other processes do not count, garbage collection does. */
function cpuMs(): number {
  const { user: inCode, system } = process.cpuUsage()
  return (inCode + system) / 1_000
}

function heapBytes(): number {
  globalThis.gc?.()
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
