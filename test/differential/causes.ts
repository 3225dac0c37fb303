/** Why OpenFGA answers otherwise than the reference: every cause that we know, and how it is recognized. */
import type { Tuple } from '../../pdp/shared/domain/tuple.ts'
import type { Rule } from '../support/reference.ts'
import type { Said } from './openfga.ts'
import type { World } from './worlds.ts'

export type Disagreement = {
  readonly world: World
  /** `object#relation` of all that the answer is about. */
  readonly about: readonly string[]
  /** Tuples of the question; they are among those of the world, too. */
  readonly contextual: readonly Tuple[]
  readonly right: boolean | readonly string[] | null
  readonly said: Said<boolean | readonly string[]>
}
export type Cause = { readonly text: string; readonly explains: (found: Disagreement) => boolean }

/** The first that fits is the cause. */
export const CAUSES: readonly Cause[] = [
  {
    text: 'a condition lacks a parameter, or has a value of another type: we say condition_failed wherever the answer may depend on it, OpenFGA only where it comes by it first',
    explains: ({ right, world }) => right === null && world.model.includes('\ncondition '),
  },
  {
    text: 'OpenFGA evaluates conditions that the answer does not depend on, and says what the first of them lacks',
    explains: ({ said }) =>
      'error' in said &&
      /missing context parameters|failed to evaluate relationship condition|parameter type error/.test(said.error),
  },
  {
    text: 'the answer would depend on its own absence ("but not"), so that there is none: we say evaluation_limit, OpenFGA says something',
    explains: ({ right }) => right === null,
  },
  {
    text: 'a cycle below a subtracted relation: OpenFGA takes the cycle for a denial of the whole, and not of what is subtracted',
    explains: ({ world, about }) => hasCycleBelowSubtraction(world, about),
  },
]

/** Why OpenFGA refuses a model that is sound. */
const REFUSALS: readonly { readonly text: string; readonly message: RegExp }[] = [
  {
    text: 'a model is refused for a loop that it does not have: what was visited on one branch of a rule counts as visited on the others (`maps.Clone` of a map of maps in hasEntrypoints)',
    message: /is invalid: potential loop$/,
  },
]
export const causeOfRefusal = (message: string) => REFUSALS.find((refusal) => refusal.message.test(message))

export const causeOf = (found: Disagreement): Cause | undefined => CAUSES.find(({ explains }) => explains(found))

type Edge = { readonly to: string; readonly negative: boolean }

function hasCycleBelowSubtraction(world: World, about: readonly string[]): boolean {
  const edges = edgesOf(world)
  const reached = reachedFrom(edges, about)
  return [...reached].some((node) =>
    edges(node).some(({ to, negative }) => {
      if (!negative) return false
      return [...reachedFrom(edges, [to])].some((below) =>
        reachedFrom(
          edges,
          edges(below).map((edge) => edge.to),
        ).has(below),
      )
    }),
  )
}

function reachedFrom(edges: (node: string) => readonly Edge[], from: readonly string[]): ReadonlySet<string> {
  const reached = new Set(from)
  // A set is gone through with what is added to it meanwhile.
  for (const node of reached) for (const { to } of edges(node)) reached.add(to)
  return reached
}

/** What `object#relation` leans on, by the rules and by its tuples. */
function edgesOf({ rules, tuples }: World): (node: string) => readonly Edge[] {
  const known = new Map<string, readonly Edge[]>()
  const subjects = (object: string, relation: string): readonly string[] =>
    tuples.flatMap((t) => (t.object === object && t.relation === relation ? [t.subject] : []))
  const edges = (object: string, relation: string, rule: Rule): readonly Edge[] => {
    const inner = (part: Rule): readonly Edge[] => edges(object, relation, part)
    const positive = (to: string): Edge => ({ to, negative: false })
    if ('direct' in rule)
      return subjects(object, relation)
        .filter((to) => to.includes('#'))
        .map(positive)
    if ('same' in rule) return [positive(`${object}#${rule.same}`)]
    if ('from' in rule) return subjects(object, rule.from).map((parent) => positive(`${parent}#${rule.relation}`))
    if ('base' in rule) return [...inner(rule.base), ...inner(rule.butNot).map(({ to }) => ({ to, negative: true }))]
    return ('or' in rule ? rule.or : rule.and).flatMap(inner)
  }
  return (node) => {
    const [object = '', relation = ''] = node.split('#')
    const rule = rules[object.slice(0, object.indexOf(':'))]?.[relation]
    const found = known.get(node) ?? (rule === undefined ? [] : edges(object, relation, rule))
    known.set(node, found)
    return found
  }
}
