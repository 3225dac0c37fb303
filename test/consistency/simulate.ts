/** One schedule: random writers and readers over the simulated store, the real cache and evaluator, every answer checked. */

import type { MemoryState } from '../../pdp/engine/store/memory/journal.ts'
import type { Change } from '../../pdp/shared/domain/change.ts'
import { ENVIRONMENT, type JournalId, TOKENS, type Vector } from '../../pdp/shared/domain/journal.ts'
import { referenceAnswer, type World } from '../support/reference.ts'
import { grant, member, organization, put, tuple } from '../support/tuples.ts'
import { type EvaluationParts, evaluationBy } from './conditions/evaluation.ts'
import { type AppModel, INHERITED } from './conditions/models.ts'
import {
  type Asked,
  CONDITIONAL,
  conditionalManifest,
  conditionalQuestion,
  conditionalWrite,
  type Pick1,
  worldFor,
} from './conditions/world.ts'
import { type Faults, SimulatedStore } from './simulated-store.ts'

/** The code under test, so that a mutated copy of it can take its place. */
export type Engine = EvaluationParts & {
  readonly Freshness: typeof import('../../pdp/engine/store/cache/freshness.ts').Freshness
  readonly begin: typeof import('../../pdp/engine/decide/slices.ts').begin
  readonly EventLoopTurns: typeof import('../../pdp/engine/store/cache/event-loop-turns.ts').EventLoopTurns
  readonly readRowSets: typeof import('../../pdp/engine/store/memory/rows.ts').readRowSets
}
type Focus = 'groups' | 'tree' | 'wide' | 'aside' | 'conditions'
export type Setup = Faults & {
  readonly cacheBytesMax?: number
  readonly triesMax?: number
  /** Every evaluation is paused halfway. */
  readonly paused?: boolean
  /** Chances per step. */
  readonly trim?: number
  readonly failOver?: number
  readonly steps?: number
  /** Writes and asks mostly about this, where the general mix comes by it too rarely. */
  readonly focus?: Focus
  /** Share of the focused questions and writes. Default 0.7. */
  readonly focusShare?: number
}
export type Outcome = { readonly wrong: readonly string[]; readonly asked: number; readonly answered: number }

/** Two versions of one app's model, which a manifest write switches between. */
const MODELS: readonly AppModel[] = [
  INHERITED,
  {
    text: 'model\n  schema 1.1\ntype doc\n  relations\n    define parent: [doc]\n    define editor: [user]\n    define viewer: [user, user:*, group#member] but not editor\n',
    rules: {
      doc: {
        parent: { direct: ['doc'] },
        editor: { direct: ['user'] },
        viewer: { base: { direct: ['user', 'user:*', 'group#member'] }, butNot: { same: 'editor' } },
      },
    },
  },
]
export function xorshift(seed: number): () => number {
  let x = (seed * 2654435761) >>> 0 || 1
  return () => {
    x ^= x << 13
    x >>>= 0
    x ^= x >>> 17
    x ^= x << 5
    x >>>= 0
    return x / 4294967296
  }
}

const ORGANIZATIONS = ['o0', 'o1', 'p'] as const
const USERS = ['u0', 'u1', 'u2'] as const

function randomWrite(pick: Pick1, random: () => number, clockMs: number): { log: JournalId; changes: Change[] } {
  const log = pick(ORGANIZATIONS)
  const roll = random()
  const user = pick(USERS)
  if (roll < 0.62) {
    const changes = new Map<string, Change>()
    for (let i = 0; i <= Math.floor(random() * 3); i++) {
      const text = randomTuple(pick)
      const expiry = random() < 0.15 ? clockMs + Math.floor(random() * 200) : null
      changes.set(text, random() < 0.45 ? { kind: 'tuple', op: 'delete', tuple: tuple(text) } : put(text, expiry))
    }
    return { log, changes: [...changes.values()] }
  }
  if (roll < 0.72) {
    const status = pick(['active', 'active', 'suspended'] as const)
    return {
      log,
      changes: [
        random() < 0.3
          ? { kind: 'membership', user, membership: null }
          : member(user, pick(['owner', 'member'] as const), status),
      ],
    }
  }
  if (roll < 0.84) {
    const subject = pick(['user:u0', 'user:u1', 'group:g0', 'group:g1'])
    const at = random() < 0.2 && !subject.startsWith('group') ? ENVIRONMENT : log
    const given = grant(`${subject}-r`.replace(':', '-'), 'r', subject)
    return { log: at, changes: [random() < 0.5 && given.kind === 'role_grant' ? { ...given, op: 'delete' } : given] }
  }
  if (roll < 0.9) return { log: ENVIRONMENT, changes: [organization('o0', pick([null, 'p', 'o1']))] }
  if (roll < 0.95) {
    const permissions = pick([[], ['x:read']])
    return { log: ENVIRONMENT, changes: [{ kind: 'role', key: 'r', role: { key: 'r', name: 'R', permissions } }] }
  }
  const model = pick(MODELS).text
  return {
    log: ENVIRONMENT,
    changes: [{ kind: 'manifest', manifest: { app: 'a', audiences: [], permissions: {}, roles: {}, model } }],
  }
}

const DOCS = ['doc:0', 'doc:1'] as const
function randomTuple(pick: Pick1): string {
  return pick([
    () => `${pick(DOCS)}#${pick(['viewer', 'editor'])}@user:${pick(USERS)}`,
    () => `${pick(DOCS)}#viewer@group:${pick(['g0', 'g1', 'g2'])}#member`,
    () => `doc:0#parent@doc:1`,
    () => `doc:0#viewer@user:*`,
    () => `group:${pick(['g0', 'g1', 'g2'])}#member@user:${pick(USERS)}`,
    () => `group:${pick(['g0', 'g1', 'g2'])}#member@group:${pick(['g0', 'g1', 'g2'])}#member`,
    () => `thing:0#r@organization:${pick(['o0', 'o1'])}#member`,
  ])()
}

function randomQuestion(pick: Pick1): Asked {
  const organizationId = pick(ORGANIZATIONS)
  const [relation, resource] = pick([
    ['viewer', pick(DOCS)],
    ['viewer', pick(DOCS)],
    ['editor', pick(DOCS)],
    ['r', 'thing:0'],
    ['member', `organization:${organizationId}`],
    ['x:read', `organization:${organizationId}`],
    ['x:read', `organization:${organizationId}`],
  ] as const)
  return { organization: organizationId, subject: `user:${pick(USERS)}`, relation, resource, app: null }
}

function focusedWrite(pick: Pick1, focus: Focus, clockMs: number): { log: JournalId; changes: Change[] } {
  if (focus === 'tree') {
    const holder = grant('g', 'r', 'user:u0')
    return pick<() => { log: JournalId; changes: Change[] }>([
      () => ({ log: ENVIRONMENT, changes: [organization('o0', pick([null, 'p', 'o1']))] }),
      () => ({
        log: pick(['p', 'o1']),
        changes: [holder.kind === 'role_grant' ? { ...holder, op: pick(['write', 'delete'] as const) } : holder],
      }),
      () => ({
        log: ENVIRONMENT,
        changes: [{ kind: 'role', key: 'r', role: { key: 'r', name: 'R', permissions: ['x:read'] } }],
      }),
    ])()
  }
  if (focus === 'conditions') return { log: 'o0', changes: [conditionalWrite(pick)] }
  const texts = {
    groups: [
      'group:g1#member@group:g0#member',
      'group:g0#member@user:u0',
      'thing:0#r@group:g1#member',
      'thing:0#r@user:u1',
    ],
    wide: ['thing:0#r@user:u0', 'thing:0#r@user:u1', 'thing:0#r@user:u2', 'thing:0#r@team:a#x', 'thing:0#r@team:b#x'],
    aside: [
      ...['a', 'b', 'c', 'd'].map((team) => `thing:0#r@team:${team}#x`),
      ...['a', 'b', 'c', 'd'].map((team) => `team:${team}#x@${team === 'd' ? 'team:a#x' : 'user:u0'}`),
      'team:b#x@user:u1',
    ],
  }
  const text = pick(texts[focus])
  const change = pick([
    put(text),
    put(text, clockMs + 30),
    { kind: 'tuple', op: 'delete', tuple: tuple(text) } as const,
  ])
  return { log: 'o0', changes: [change] }
}

function focusedQuestion(pick: Pick1, focus: Focus): Asked {
  if (focus === 'conditions') return conditionalQuestion(pick)
  const [organizationId, relation, resource] =
    focus === 'tree' ? (['o0', 'x:read', 'organization:o0'] as const) : (['o0', 'r', 'thing:0'] as const)
  return {
    organization: organizationId,
    subject: pick(['user:u0', 'user:u0', 'user:u1']),
    relation,
    resource,
    app: null,
  }
}

export async function simulate(seed: number, engine: Engine, setup: Setup = {}): Promise<Outcome> {
  const random = xorshift(seed)
  const pick: Pick1 = (items) => items[Math.floor(random() * items.length)]!
  const sim = new SimulatedStore(random, setup, engine.readRowSets)
  for (const id of ['p', 'o1', 'o0']) sim.commit(ENVIRONMENT, [organization(id, id === 'o0' ? 'p' : null)])
  if (setup.focus === 'conditions') sim.commit(ENVIRONMENT, [conditionalManifest()])
  const freshness = new engine.Freshness({
    store: sim.store,
    schedule: sim.schedule,
    late: sim.schedule,
    cacheBytesMax: setup.cacheBytesMax ?? 1e9,
    triesMax: setup.triesMax ?? 12,
    turns: new engine.EventLoopTurns({ nextTurn: sim.schedule, clock: () => 0 }),
  })
  const compile = engine.createModelCompiler()
  const evaluation = evaluationBy(engine, compile, setup.paused === true)
  const wrong: string[] = []
  let open = 0
  let asked = 0
  let answered = 0
  const ask = (): void => {
    const q =
      setup.focus !== undefined && random() < (setup.focusShare ?? 0.7)
        ? focusedQuestion(pick, setup.focus)
        : randomQuestion(pick)
    const start = sim.now
    open++
    asked++
    freshness
      .ask({
        organization: q.organization,
        evaluate: (view) => engine.begin(evaluation(view, q)),
      })
      .then(
        ({ value, vector: whole, logs }) => {
          answered++
          const vector = {
            clockMs: whole.clockMs,
            logs: new Map([...whole.logs].filter(([log]) => logs.includes(log))),
          }
          if (!possible(sim, { start, vector }, (world) => isRight(world, q, value.allowed))) {
            wrong.push(
              `seed ${seed}: ${q.subject} ${q.relation} ${q.resource} in ${q.organization} = ${value.allowed} at ${positions(vector)}`,
            )
          }
        },
        (error: { code?: string }) => {
          if (error.code !== 'store_unavailable') wrong.push(`seed ${seed}: ${String(error)}`)
        },
      )
      .finally(() => {
        open--
      })
  }
  const quiet = setup.failOver === undefined
  for (let step = 0; step < (setup.steps ?? 250); step++) {
    const roll = random()
    if (roll < 0.2 && open < 12) ask()
    else if (roll < 0.3) {
      const { log, changes } =
        setup.focus !== undefined && random() < (setup.focusShare ?? 0.7)
          ? focusedWrite(pick, setup.focus, sim.clockMs)
          : randomWrite(pick, random, sim.clockMs)
      sim.commit(log, changes)
    } else if (roll < 0.32) sim.tickClock(Math.floor(random() * 60))
    else if (roll < 0.32 + (setup.trim ?? 0)) sim.trim()
    else if (!quiet && roll < 0.36 + (setup.failOver ?? 0)) sim.failOver()
    else sim.step()
    await new Promise(setImmediate)
  }
  for (let step = 0; open > 0 && step < 5_000; step++) {
    sim.step()
    await new Promise(setImmediate)
  }
  if (open > 0) wrong.push(`seed ${seed}: ${open} questions were never answered`)
  return { wrong, asked, answered }
}

function isRight(world: World, q: Asked, allowed: boolean | null | 'refused'): boolean {
  if (allowed === 'refused') return (q.contextual ?? []).length > 0 && world.rules !== CONDITIONAL.rules
  return referenceAnswer(worldFor(world, q), q) === allowed
}

/** Was there a moment since the question was asked with exactly the reported positions, at which the answer was right? */
function possible(
  sim: SimulatedStore,
  at: { start: number; vector: Vector },
  right: (world: World) => boolean,
): boolean {
  const { start, vector } = at
  if (vector.clockMs < (sim.moments[start]?.clockMs ?? 0) || vector.clockMs > sim.clockMs) return false
  for (let i = start; i <= sim.now; i++) {
    const state = sim.moments[i]?.state
    if (state === undefined) continue
    const same = [...vector.logs].every(
      ([log, s]) =>
        state.positions.get(log)?.revision === s.revision && state.positions.get(log)?.writeId === s.writeId,
    )
    if (same && right(worldOf(state, vector.clockMs))) return true
  }
  return false
}

const positions = (vector: Vector): string => [...vector.logs].map(([log, s]) => `${log}:${s.revision}`).join(' ')

function worldOf(state: MemoryState, clockMs: number): World {
  const environment = state.logs.get(ENVIRONMENT)
  const content = [...state.logs].filter(([log]) => log !== ENVIRONMENT && log !== TOKENS)
  const model = environment?.manifests.get('a')?.model
  const rules =
    model === undefined || model === null ? {} : ([...MODELS, CONDITIONAL].find((m) => m.text === model)?.rules ?? {})
  return {
    clockMs,
    organizations: environment?.organizations ?? new Map(),
    content: new Map(
      content.map(([log, c]) => [
        log,
        { tuples: [...c.tuples.all()], memberships: c.memberships, grants: [...c.grants.values()] },
      ]),
    ),
    environmentGrants: [...(environment?.grants.values() ?? [])],
    roles: [...(environment?.roles.values() ?? [])],
    manifests: [...(environment?.manifests.values() ?? [])],
    rules,
  }
}
