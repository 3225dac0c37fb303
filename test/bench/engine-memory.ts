/** In process on the memory store: checks per second, bytes a tuple, and what the asynchronous call adds. */
import { createPdp } from '../../pdp/create-pdp.ts'
import { answerCheck } from '../../pdp/decide/check.ts'
import { NO_MODEL } from '../../pdp/decide/model.ts'
import type { Pdp } from '../../pdp/pdp.ts'
import { type Change, ENVIRONMENT } from '../../pdp/store/contracts.ts'
import { memoryStore, type ResidentStore } from '../../pdp/store/memory.ts'
import { user } from '../../pdp/subjects.ts'
import { context, organization } from '../support/tuples.ts'
import { type Grants, grants, median, perSecond, questions } from './engine-data.ts'

const ROUND_MS = 400

export async function benchMemory(): Promise<void> {
  console.log('memory store, through four nested groups, half denied')
  for (const count of [1_000, 100_000, 1_000_000]) {
    const data = grants(count)
    const { pdp, store, bytesPerTuple } = await loaded(data)
    const asked = questions(data, 100_000)
    for (const q of asked.slice(0, 1_000)) {
      if ((await pdp.can('acme', user(q.user), 'viewer', q.document)) !== q.allowed)
        throw new Error(`wrong: ${JSON.stringify(q)}`)
    }
    const rounds: number[] = []
    for (let round = 0; round < 5; round++) rounds.push(await calls(pdp, asked))
    const core = [0, 1, 2, 3, 4].map(() => evaluations(store, asked))
    const addedUs = 1e6 / median(rounds) - 1e6 / median(core)
    console.log(
      `  ${count.toLocaleString('en').padStart(9)} tuples  ${perSecond(median(core)).padStart(10)} evaluated  ${perSecond(median(rounds)).padStart(10)} by can(), +${addedUs.toFixed(2)} us a call  ${bytesPerTuple.toFixed(0)} bytes a tuple`,
    )
  }
}

async function loaded(data: Grants): Promise<{ pdp: Pdp; store: ResidentStore; bytesPerTuple: number }> {
  const store = memoryStore()
  await store.write(ENVIRONMENT, [organization('acme')], { context })
  const before = heapBytes()
  for (let i = 0; i < data.tuples.length; i += 1_000) {
    const changes = data.tuples.slice(i, i + 1_000).map((tuple): Change => ({ kind: 'tuple', op: 'write', tuple }))
    await store.write('acme', changes, { context })
  }
  return { pdp: createPdp({ store }), store, bytesPerTuple: (heapBytes() - before) / data.tuples.length }
}

/** The synchronous core alone. */
function evaluations(store: ResidentStore, asked: ReturnType<typeof questions>): number {
  const prepared = asked.map((q) => ({
    asked: { organization: 'acme', subject: `user:${q.user}`, app: null },
    check: { relation: 'viewer', resource: q.document },
  }))
  const view = store.look()
  const begin = performance.now()
  let done = 0
  while (performance.now() - begin < ROUND_MS) {
    for (let i = 0; i < 1_000; i++) {
      const q = prepared[done++ % prepared.length]!
      answerCheck(view, NO_MODEL, q.asked, q.check)
    }
  }
  return (done / (performance.now() - begin)) * 1_000
}

async function calls(pdp: Pdp, asked: ReturnType<typeof questions>): Promise<number> {
  const subjects = new Map(asked.map((q) => [q.user, user(q.user)]))
  const begin = performance.now()
  let done = 0
  while (performance.now() - begin < ROUND_MS) {
    for (let i = 0; i < 1_000; i++) {
      const q = asked[done++ % asked.length]!
      await pdp.can('acme', subjects.get(q.user)!, 'viewer', q.document)
    }
  }
  return (done / (performance.now() - begin)) * 1_000
}

function heapBytes(): number {
  globalThis.gc?.()
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
