/** Questions that take long are evaluated in slices: everything else goes on meanwhile, and the answer is still of one moment. */
import { expect, test } from 'vitest'
import { Paused, Slice } from '../../../../../pdp/engine/decide/slices.ts'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import { EventLoopTurns } from '../../../../../pdp/engine/store/cache/event-loop-turns.ts'
import type { Store } from '../../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../../pdp/engine/store/memory/memory.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../../pdp/shared/domain/subjects.ts'
import { remoteMemoryStore } from '../../../../support/stores.ts'
import { drop, given, put } from '../../../../support/tuples.ts'

const MODEL = `model
  schema 1.1
type team
  relations
    define member: [user, team#member]
type doc
  relations
    define parent: [team]
    define viewer: [team#member] or member from parent
`
const TEAMS = 3_000
/** Every team names two others, so that what one of them holds leans on all of them. */
const TANGLED = [
  ...new Set(
    Array.from({ length: TEAMS }, (_, i) => [(i * 7 + 1) % TEAMS, (i * 13 + 5) % TEAMS] as const).flatMap(
      ([a, b], i) => [`team:${i}#member@team:${a}#member`, `team:${i}#member@team:${b}#member`],
    ),
  ),
]
const STORES = [
  ['in memory', memoryStore],
  ['through the cache', remoteMemoryStore],
] as const

async function opened(store: Store, texts: readonly string[]) {
  const manifest = { app: 'app', audiences: [], permissions: {}, roles: {}, model: MODEL }
  await given(store, ENVIRONMENT, { kind: 'manifest', manifest })
  await given(store, 'acme')
  for (let i = 0; i < texts.length; i += 1_000)
    await given(store, 'acme', ...texts.slice(i, i + 1_000).map((t) => put(t)))
  return createPdp({ store })
}

/** How often the event loop came round until it was done. */
async function turnsDuring<T>(work: Promise<T>): Promise<{ readonly value: T; readonly turns: number }> {
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  try {
    return { value: await work, turns }
  } finally {
    isOver = true
  }
}

const permissions = [{ relation: 'member', resource: 'team:0' }]

test.each(STORES)('lets everything else go on while it evaluates what takes long, %s', async (_, newStore) => {
  const pdp = await opened(newStore(), [...TANGLED, 'doc:1#parent@team:0'])
  const warm = await pdp.can('acme', user('ann'), 'member', 'team:0')
  expect(warm).toBe(false)
  const one = await turnsDuring(pdp.can('acme', user('ann'), 'member', 'team:0'))
  expect(one).toMatchObject({ value: false, turns: expect.any(Number) })
  expect(one.turns).toBeGreaterThan(3)
  const explained = await turnsDuring(
    pdp.decide({ organization: 'acme', subject: user('ann'), permissions, explain: true }),
  )
  expect(explained.value.permissions).toMatchObject([{ allowed: false, reason: { code: 'none', path: [] } }])
  expect(explained.turns).toBeGreaterThan(6)
  const list = { organization: 'acme', subject: user('ann'), relation: 'viewer', type: 'doc', pageSize: 2 }
  const listed = await turnsDuring(pdp.listResources(list))
  expect(listed.value.items).toEqual([])
  expect(listed.turns).toBeGreaterThan(3)
})

test.each(STORES)('answers a cheap question before a long one that was asked earlier, %s', async (_, newStore) => {
  const pdp = await opened(newStore(), [...TANGLED, 'doc:1#parent@team:x', 'team:x#member@user:ann'])
  await pdp.can('acme', user('ann'), 'member', 'team:0')
  const order: string[] = []
  const long = pdp.can('acme', user('ann'), 'member', 'team:0').then((value) => order.push(`long ${value}`))
  const cheap = pdp.can('acme', user('ann'), 'viewer', 'doc:1').then((value) => order.push(`cheap ${value}`))
  await Promise.all([long, cheap])
  expect(order).toEqual(['cheap true', 'long false'])
})

test.each(STORES)(
  'sees what was written before the question, and one moment of what is written meanwhile, %s',
  async (_, newStore) => {
    const store = newStore()
    // ann is in the one team or in the other, and never in none.
    const [here, there] = ['team:5#member@user:ann', 'team:6#member@user:ann']
    const pdp = await opened(store, [...TANGLED, here])
    await pdp.can('acme', user('bob'), 'member', 'team:0')
    let isOver = false
    const writing = (async () => {
      for (let at = here; !isOver; at = at === here ? there : here) {
        await given(store, 'acme', drop(at), put(at === here ? there : here))
        for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve))
      }
    })()
    for (let i = 0; i < 5; i++) expect(await pdp.can('acme', user('ann'), 'member', 'team:0')).toBe(true)
    isOver = true
    await writing
    await given(store, 'acme', drop(here))
    await given(store, 'acme', drop(there))
    expect(await pdp.can('acme', user('ann'), 'member', 'team:0')).toBe(false)
  },
)

test('gives no answer to what has not ended by its deadline', async () => {
  let nowMs = 0
  const turns = new EventLoopTurns({ clock: () => nowMs })
  let resumed = 0
  const forever = (): Paused<boolean> =>
    new Paused(() => {
      resumed++
      nowMs += 300
      return forever()
    })
  const ended = turns.finish(forever(), new Slice(1))
  await expect(ended).rejects.toMatchObject({
    code: 'evaluation_limit',
    message: 'the question takes too long to evaluate',
  })
  expect(resumed).toBe(17)
})

test('lets few evaluations hold a snapshot at once, and gives the place of one that ends to the next', async () => {
  const turns = new EventLoopTurns()
  const held: ((failed: boolean) => void)[] = []
  let [most, open] = [0, 0]
  const all = Array.from({ length: 6 }, () =>
    turns.inSnapshot('acme', async () => {
      most = Math.max(most, ++open)
      const failed = await new Promise<boolean>((resolve) => void held.push(resolve))
      open--
      if (failed) throw new Error('lost')
    }),
  )
  const settled = Promise.allSettled(all)
  for (let i = 0; i < 6; i++) {
    await expect.poll(() => held.length).toBeGreaterThan(i)
    held[i]?.(i % 2 === 0)
  }
  expect((await settled).map(({ status }) => status)).toEqual(
    Array.from({ length: 6 }, (_, i) => (i % 2 === 0 ? 'rejected' : 'fulfilled')),
  )
  expect(most).toBe(4)
})

test('gives each long evaluation one slice in a turn, and begins others before it', async () => {
  const waiting: (() => void)[] = []
  const turns = new EventLoopTurns({ clock: () => 0, nextTurn: (run) => void waiting.push(run), visitsPerSlice: 10 })
  const seen: string[] = []
  const slice = turns.newSlice()
  slice.left = 0
  for (const name of ['a', 'b']) void turns.next(slice, 1).then(() => seen.push(`${name} ${slice.left}`))
  turns.begin(() => seen.push('new'))
  for (let turn = 0; turn < 2; turn++) {
    waiting.shift()?.()
    await new Promise((resolve) => setImmediate(resolve))
    seen.push('turn')
  }
  expect(seen).toEqual(['new', 'a 10', 'turn', 'b 10', 'turn'])
  expect(waiting).toEqual([])
})
