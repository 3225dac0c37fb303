/** Random worlds: a model as text and as rules, tuples that it allows, and questions. One seed makes one world. */
import type { JsonObject } from '../../pdp/shared/domain/json.ts'
import type { Tuple } from '../../pdp/shared/domain/tuple.ts'
import type { Rule, Rules } from '../support/reference.ts'
import { tuple } from '../support/tuples.ts'
import { CONDITION_NAMES, conditionText, randomContext, storedContext } from './conditions.ts'

/** What a question brings: values for conditions, and tuples that count in it alone. */
export type Brought = { readonly context: JsonObject; readonly contextual: readonly Tuple[] }
export type Check = Brought & { readonly subject: string; readonly relation: string; readonly object: string }
export type ListObjects = Brought & { readonly subject: string; readonly relation: string; readonly type: string }
export type ListUsers = Brought & {
  readonly object: string
  readonly relation: string
  readonly type: string
  /** Null for those of the type themselves. */
  readonly subjectRelation: string | null
}
export type World = {
  readonly seed: number
  readonly model: string
  readonly rules: Rules
  readonly tuples: readonly Tuple[]
  readonly checks: readonly Check[]
  readonly objectLists: readonly ListObjects[]
  readonly userLists: readonly ListUsers[]
}

const USERS = ['user:a', 'user:b', 'user:c', 'robot:a'] as const
const TYPES = ['team', 'folder', 'doc'] as const
const RELATIONS = ['r0', 'r1', 'r2', 'r3'] as const
const OBJECTS_OF_A_TYPE = 3
const COUNTS = { checks: 40, objectLists: 6, userLists: 6 } as const

/** Mulberry32. */
function generator(seed: number) {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (count: number): number => Math.floor(next() * count)
  return {
    below,
    chance: (share: number): boolean => next() < share,
    pick<T>(items: readonly T[]): T {
      const item = items[below(items.length)]
      if (item === undefined) throw new Error('nothing to pick from')
      return item
    },
  }
}
type Random = ReturnType<typeof generator>
type Part = { readonly text: string; readonly rule: Rule }

/** Two fifths of the models have no conditions. */
export function randomWorld(seed: number): World {
  const random = generator(seed)
  const conditional = random.chance(0.6)
  const { model, rules } = randomModel(random, conditional)
  const objects = TYPES.flatMap((type) => Array.from({ length: OBJECTS_OF_A_TYPE }, (_, i) => `${type}:${i}`))
  const usersets = objects.flatMap((object) => RELATIONS.map((relation) => `${object}#${relation}`))
  const subjects = (): string => (random.chance(0.75) ? random.pick(USERS) : random.pick([...usersets, 'user:*']))
  const brought = (): Brought => ({
    context: conditional ? randomContext(random) : {},
    contextual: random.chance(0.2) ? randomTuples(random, { rules, objects, countMax: 3 }) : [],
  })
  const many = <T>(count: number, make: () => T): readonly T[] => Array.from({ length: count }, make)
  return {
    seed,
    model,
    rules,
    tuples: randomTuples(random, { rules, objects, countMax: 50 }),
    checks: many(COUNTS.checks, () => ({
      subject: subjects(),
      relation: random.pick(RELATIONS),
      object: random.pick(objects),
      ...brought(),
    })),
    objectLists: many(COUNTS.objectLists, () => ({
      subject: subjects(),
      relation: random.pick(RELATIONS),
      type: random.pick(TYPES),
      ...brought(),
    })),
    userLists: many(COUNTS.userLists, () => {
      const common = { object: random.pick(objects), relation: random.pick(RELATIONS), ...brought() }
      return random.chance(0.7)
        ? { ...common, type: random.pick(['user', 'robot']), subjectRelation: null }
        : { ...common, type: random.pick(TYPES), subjectRelation: random.pick(RELATIONS) }
    }),
  }
}

/** Half of the models subtract nothing that leads back to what it is subtracted from; the others may do anything. */
function randomModel(random: Random, conditional: boolean): { model: string; rules: Rules } {
  const wild = random.chance(0.5)
  const rules: { [type: string]: { [relation: string]: Rule } } = {}
  const lines = ['model', '  schema 1.1', 'type user', 'type robot']
  for (const type of TYPES) {
    const parents = TYPES.filter(() => random.chance(0.5))
    const parent = parents.length === 0 ? [random.pick(TYPES)] : parents
    const direct = withConditions(random, parent, conditional)
    const ofType: { [relation: string]: Rule } = { parent: { direct } }
    lines.push(`type ${type}`, '  relations', `    define parent: [${direct.join(', ')}]`)
    RELATIONS.forEach((relation, index) => {
      const { text, rule } = definition(random, { index, wild, conditional })
      ofType[relation] = rule
      lines.push(`    define ${relation}: ${text}`)
    })
    rules[type] = ofType
  }
  // The language refuses a condition that nothing uses.
  const used = CONDITION_NAMES.filter((name) => lines.some((line) => line.includes(` with ${name}`)))
  return { model: `${[...lines, ...used.map(conditionText)].join('\n')}\n`, rules }
}

type Scope = { readonly index: number; readonly wild: boolean; readonly conditional: boolean }

/** The language takes no operand twice in one definition, although the server does. */
function definition(random: Random, scope: Scope): Part {
  for (;;) {
    const part = anyDefinition(random, scope)
    const operands = part.text.split(/ or | and | but not /).map((operand) => operand.replace(/[()]/g, ''))
    if (new Set(operands).size === operands.length) return part
  }
}

function anyDefinition(random: Random, scope: Scope): Part {
  const own = direct(random, scope)
  if (scope.index === 0 || random.chance(0.25)) return own
  const first = random.chance(0.8) ? own : leaf(random, scope)
  const second = random.chance(0.3) ? nested(random, scope) : leaf(random, scope)
  return joined(random.pick(['or', 'or', 'and', 'but not']), first, second)
}

function nested(random: Random, scope: Scope): Part {
  const { text, rule } = joined(random.pick(['or', 'and', 'but not']), leaf(random, scope), leaf(random, scope))
  return { text: `(${text})`, rule }
}

function joined(word: 'or' | 'and' | 'but not', first: Part, second: Part): Part {
  const text = `${first.text} ${word} ${second.text}`
  if (word === 'or') return { text, rule: { or: [first.rule, second.rule] } }
  if (word === 'and') return { text, rule: { and: [first.rule, second.rule] } }
  return { text, rule: { base: first.rule, butNot: second.rule } }
}

/** Computed from a relation before it, since one that is defined by itself alone is refused; from a parent any. */
function leaf(random: Random, { index, wild }: Scope): Part {
  const earlier = RELATIONS.slice(0, index)
  if (earlier.length > 0 && random.chance(0.5)) {
    const relation = random.pick(earlier)
    return { text: relation, rule: { same: relation } }
  }
  const relation = random.pick(wild ? RELATIONS : RELATIONS.slice(0, index + 1))
  return { text: `${relation} from parent`, rule: { from: 'parent', relation } }
}

function direct(random: Random, { index, wild, conditional }: Scope): Part {
  const usersets = TYPES.flatMap((type) =>
    (wild ? RELATIONS : RELATIONS.slice(0, index + 1)).map((relation) => `${type}#${relation}`),
  )
  const names = new Set(['user', 'robot', 'user:*'].filter(() => random.chance(0.5)))
  for (let count = random.below(3); count > 0; count--) names.add(random.pick(usersets))
  if (![...names].some((name) => !name.includes('#'))) names.add('user')
  const allowed = withConditions(random, [...names], conditional)
  return { text: `[${allowed.join(', ')}]`, rule: { direct: allowed } }
}

/** Some of the kinds with a condition, in place of themselves or besides. */
function withConditions(random: Random, kinds: readonly string[], conditional: boolean): readonly string[] {
  return kinds.flatMap((kind) => {
    if (!conditional || random.chance(0.5)) return [kind]
    const named = CONDITION_NAMES.filter(() => random.chance(0.4)).map((name) => `${kind} with ${name}`)
    return named.length === 0 || random.chance(0.4) ? [kind, ...named] : named
  })
}

function randomTuples(
  random: Random,
  { rules, objects, countMax }: { rules: Rules; objects: readonly string[]; countMax: number },
): readonly Tuple[] {
  const found = new Map<string, Tuple>()
  for (let count = Math.ceil(countMax / 5) + random.below(countMax * 0.8); count > 0; count--) {
    const object = random.pick(objects)
    const ofType = rules[object.slice(0, object.indexOf(':'))] ?? {}
    const relation = random.pick(['parent', ...RELATIONS])
    const allowed = allowedIn(ofType[relation])
    if (allowed.length === 0) continue
    const [kind = '', condition] = random.pick(allowed).split(' with ')
    const subject = subjectOf(random, kind, objects)
    // OpenFGA takes no tuple that says what holds anyway.
    if (subject === `${object}#${relation}`) continue
    const text = `${object}#${relation}@${subject}`
    const stored = condition === undefined ? null : { name: condition, context: storedContext(random, condition) }
    found.set(text, { ...tuple(text), ...(stored !== null && { condition: stored }) })
  }
  return [...found.values()]
}

function allowedIn(rule: Rule | undefined): readonly string[] {
  if (rule === undefined) return []
  if ('direct' in rule) return rule.direct
  if ('base' in rule) return [...allowedIn(rule.base), ...allowedIn(rule.butNot)]
  const parts = 'or' in rule ? rule.or : 'and' in rule ? rule.and : []
  return parts.flatMap(allowedIn)
}

function subjectOf(random: Random, kind: string, objects: readonly string[]): string {
  if (kind.endsWith(':*')) return kind
  const [type = '', relation] = kind.split('#')
  const known = [...USERS, ...objects].filter((name) => name.startsWith(`${type}:`))
  return relation === undefined ? random.pick(known) : `${random.pick(known)}#${relation}`
}
