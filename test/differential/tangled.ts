/** Teams that name each other at random, two members each, beside a real OpenFGA server where one is found. */
import { createPdp } from '../../pdp/engine/decision-point/create-pdp.ts'
import { memoryStore } from '../../pdp/engine/store/memory/memory.ts'
import { ENVIRONMENT } from '../../pdp/shared/domain/journal.ts'
import { formatTuple } from '../../pdp/shared/domain/names.ts'
import { user } from '../../pdp/shared/domain/subjects.ts'
import type { Tuple } from '../../pdp/shared/domain/tuple.ts'
import { median } from '../bench/engine/data.ts'
import { given, put, tuple } from '../support/tuples.ts'
import { openFgaBinary } from './binary.ts'
import { startOpenFga } from './openfga.ts'
import type { Check } from './worlds.ts'

const SIZES = [60, 200, 2_000]
const CHECKS = 100
const MODEL = `model
  schema 1.1
type user
type team
  relations
    define member: [user, team#member]
`
/** One answer, or none, and how long it took. */
type Asked = { readonly answer: boolean | null; readonly ms: number }
type Ask = (check: Check) => Promise<boolean | null>

export async function benchTangled(): Promise<void> {
  const binary = openFgaBinary(process.env)
  const peer = 'path' in binary ? await startOpenFga(binary.path) : null
  console.log('teams that name each other, two members each: answered, refused, and how long a check takes (ms)')
  if ('missing' in binary) console.log(`  without OpenFGA: ${binary.missing}`)
  try {
    for (const teams of SIZES) {
      const tuples = tangled(teams)
      const checks = checksIn(teams)
      const ours = await askAll(await ourselves(tuples), checks)
      console.log(`  ${String(teams).padStart(5)} teams  ours     ${described(ours)}`)
      if (peer === null) continue
      const world = { seed: 0, model: MODEL, rules: {}, tuples, checks, objectLists: [], userLists: [] }
      const store = await peer.open(world)
      if ('refused' in store) throw new Error(store.refused)
      const theirs = await askAll(async (check) => {
        const [said] = await store.checks([check])
        return said !== undefined && 'value' in said ? said.value : null
      }, checks)
      const differing = theirs.filter(({ answer }, i) => answer !== null && answer !== ours[i]?.answer).length
      console.log(`               OpenFGA  ${described(theirs)}, ${differing} other answers`)
    }
  } finally {
    await peer?.close()
  }
}

async function ourselves(tuples: readonly Tuple[]): Promise<Ask> {
  const store = memoryStore()
  const manifest = { app: 'app', audiences: [], permissions: {}, roles: {}, model: MODEL }
  await given(store, ENVIRONMENT, { kind: 'manifest', manifest })
  await given(store, 'acme')
  for (let i = 0; i < tuples.length; i += 1_000)
    await given(store, 'acme', ...tuples.slice(i, i + 1_000).map((one) => put(formatTuple(one))))
  const pdp = createPdp({ store })
  return ({ subject, relation, object }) =>
    pdp.can('acme', user(subject.slice('user:'.length)), relation, object).catch(() => null)
}

async function askAll(ask: Ask, checks: readonly Check[]): Promise<readonly Asked[]> {
  const asked: Asked[] = []
  for (const check of checks) {
    const begin = performance.now()
    const answer = await ask(check)
    asked.push({ answer, ms: performance.now() - begin })
  }
  return asked
}

function described(asked: readonly Asked[]): string {
  const answered = asked.filter(({ answer }) => answer !== null)
  const times = asked.map(({ ms }) => ms)
  const shown = [median(times), Math.max(...times)].map((ms) => ms.toFixed(ms < 10 ? 2 : 0))
  return `answered ${answered.length}, refused ${asked.length - answered.length}, median ${shown[0]}, longest ${shown[1]}`
}

/** The same each time. */
function numbers(): (below: number) => number {
  let at = 1
  return (below) => {
    at = (at * 48_271) % 2_147_483_647
    return at % below
  }
}

function tangled(teams: number): readonly Tuple[] {
  const next = numbers()
  const texts = new Set<string>()
  for (let i = 0; i < teams; i++)
    while (texts.size < 2 * (i + 1)) texts.add(`team:${i}#member@team:${(i + 1 + next(teams - 1)) % teams}#member`)
  // One person in ten teams; the other nine tenths of those asked about are in none.
  for (let i = 0; i < 10; i++) texts.add(`team:${next(teams)}#member@user:${i}`)
  return [...texts].map((text) => tuple(text))
}

function checksIn(teams: number): readonly Check[] {
  const next = numbers()
  return Array.from({ length: CHECKS }, () => ({
    subject: `user:${next(20)}`,
    relation: 'member',
    object: `team:${next(teams)}`,
    context: {},
    contextual: [],
  }))
}
