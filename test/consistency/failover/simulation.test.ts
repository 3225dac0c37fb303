/** Schedules of a failover in which nothing may be wrong, and mistakes that they must show. A failure is replayed by its seed. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { databaseOver } from '../../../pdp/engine/store/postgres/connection/connection.ts'
import { createFence } from '../../../pdp/engine/store/postgres/connection/fence.ts'
import { createLease } from '../../../pdp/engine/store/postgres/connection/lease.ts'
import { effort } from '../../support/effort.ts'
import { type Edit, plantSource } from '../mistakes.ts'
import { type Engine, simulateFailover } from './simulate.ts'

const ENGINE: Engine = { databaseOver, createFence, createLease }
const PLACE = 'engine/store/postgres/connection'
const SEEDS_MAX = 60
const TIMEOUT_MS = 600_000

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

async function run(engine: Engine, synchronous: boolean, count: number) {
  let [answered, written] = [0, 0]
  for (let seed = 1; seed <= count; seed++) {
    const outcome = await simulateFailover(seed, {
      ...{ engine, synchronous },
      advance: (ms) => vi.advanceTimersByTimeAsync(ms),
    })
    answered += outcome.answered
    written += outcome.written
    if (outcome.wrong.length > 0) return { seed, wrong: outcome.wrong[0], answered, written }
  }
  return { seed: null, wrong: null, answered, written }
}

describe('a failover', () => {
  test.each([
    ['shows nothing older to a process that has met the new primary', false],
    ['with synchronous replication shows nothing older to any process', true],
  ])('%s', { timeout: TIMEOUT_MS }, async (_, synchronous) => {
    const count = effort({ short: 40, long: 1_000 })
    const { wrong, answered, written } = await run(ENGINE, synchronous, count)
    expect(wrong).toBeNull()
    expect(answered).toBeGreaterThan(count * 100)
    expect(written).toBeGreaterThan(count * 10)
  })
})

const edit = (file: string, find: string, replace: string): Edit => ({ file: `${PLACE}/${file}`, find, replace })
const MISTAKES: readonly (readonly [name: string, synchronous: boolean, edits: readonly Edit[]])[] = [
  ['the timeline is not compared', false, [edit('fence.ts', 'timeline < latest', 'timeline < 0 * latest')]],
  [
    'the timeline is shared by one pool only',
    false,
    [
      edit(
        'connection.ts',
        "import type { Fence, Server } from './fence.ts'",
        "import { createFence, type Fence, type Server } from './fence.ts'",
      ),
      edit(
        'connection.ts',
        'const checkout = createCheckout({ fence, lease, hosts, answerMs: limits.decisionMs })',
        `const shared = createCheckout({ fence, lease, hosts, answerMs: limits.decisionMs })
  const apart = createCheckout({ fence: createFence(), lease, hosts, answerMs: limits.decisionMs })
  const checkout: typeof shared = (pool, use) => (pool === pools.reads ? shared : apart)(pool, use)`,
      ),
      edit('connection.ts', 'fence.pass(server) // a commit', 'undefined // a commit'),
    ],
  ],
  [
    'the lease is counted from the reply',
    true,
    [
      edit(
        'lease.ts',
        'const sentMs = clock()\n      const timeline = await beat()',
        'const timeline = await beat()\n      const sentMs = clock()',
      ),
    ],
  ],
  [
    'the first write on a timeline does not wait',
    true,
    [edit('connection.ts', "if (!begin.endsWith('read only')) await lease?.settle(server.timeline)", '')],
  ],
  [
    'a heartbeat of another timeline counts',
    true,
    [edit('lease.ts', 'held.timeline === timeline && held.sentMs', 'timeline > 0 && held.sentMs')],
  ],
]

describe('the simulation of a failover', () => {
  test.each(MISTAKES)('shows it when %s', { timeout: TIMEOUT_MS }, async (name, synchronous, edits) => {
    const root = plantSource(name, edits)
    const load = (file: string) => import(pathToFileURL(join(root, 'pdp', PLACE, file)).href)
    vi.useRealTimers() // modules are loaded in real time
    const planted: Engine = Object.assign(
      {},
      ...(await Promise.all(['connection.ts', 'fence.ts', 'lease.ts'].map(load))),
    )
    vi.useFakeTimers()
    const { seed } = await run(planted, synchronous, SEEDS_MAX)
    expect(seed, `not found within ${SEEDS_MAX} schedules`).not.toBeNull()
  })
})
