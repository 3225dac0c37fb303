/**
 * The subgoals of a check: a graph of "or" and "and" over relations, solved while it grows, like tabled evaluation of logic
 * programs. The result is the well-founded model: it does not depend on the order of expansion, and leaves undecided only
 * subgoals that depend on their own absence, or on rows that could not be read.
 */
import type { ReasonStep } from '../../shared/domain/decision.ts'
import type { Expression } from './model.ts'
import { FALSE, TRUE, type Truth, UNKNOWN } from './view.ts'

/** The truth of an undecided subgoal. UNKNOWN, in contrast, means that it cannot be decided. */
export const OPEN = 2
/** The way by which an allow holds, for the reason code: a tuple, a membership, a group of the subject, or a rule of a model. */
export type Way = 'tuple' | 'membership' | 'group' | 'model'
/** A subgoal is a relation of an object, or an operand in its definition: both an `or`; or it is the `and` of operands (`all`). */
export type SubgoalKind = 'relation' | 'operand' | 'all'

/** A dependency: `from` depends on `to` or, if `negative`, on its absence. */
export class Edge {
  readonly from: Subgoal
  readonly to: Subgoal
  readonly negative: boolean
  /** True when a rule of the model makes the dependency, false when a tuple that names a userset does. */
  readonly byRule: boolean
  /** Steps for an explanation; null without one. */
  readonly steps: readonly ReasonStep[] | null
  previous: Edge | null = null
  nextUse: Edge | null = null

  constructor(options: Pick<Edge, 'from' | 'to' | 'negative' | 'byRule' | 'steps'>) {
    this.from = options.from
    this.to = options.to
    this.negative = options.negative
    this.byRule = options.byRule
    this.steps = options.steps
  }
}

/** Notes for an explanation about a relation's own tuples: steps by which it holds, tuples that would do, and false conditions. */
export type Notes = { found: readonly ReasonStep[]; readonly missed: string[]; readonly unmet: string[] }

export class Subgoal {
  readonly object: string
  /** The object's type; '' without a model. */
  readonly type: string
  readonly relation: string
  /** The definition; null when no model has one. */
  readonly expression: Expression | null
  readonly kind: SubgoalKind
  truth: Truth | typeof OPEN = OPEN
  /** How many operands may still decide the subgoal, plus one until it is complete. */
  waiting = 1
  /** True after the whole definition has been expanded. */
  complete = false
  /** True while the subgoal is expanded, or waits for its expansion. */
  queued = false
  /** The distance from the root in levels; a step to many objects counts as several levels. */
  level = 0
  way: Way = 'tuple'
  /** Edges to the operands, the last operand first. */
  edges: Edge | null = null
  /** Edges from the subgoals that use this one. */
  uses: Edge | null = null
  /** The edge that decided the subgoal; null: one of its own tuples did. */
  witness: Edge | null = null
  notes: Notes | null = null
  /** The next subgoal in the list or bucket of Frontier. */
  next: Subgoal | null = null
  /** Used by settle.ts only, as is `needs`. */
  order = 0
  needs = 0

  constructor(object: string, type: string, relation: string, expression: Expression | null, kind: SubgoalKind) {
    this.object = object
    this.type = type
    this.relation = relation
    this.expression = expression
    this.kind = kind
  }
}

/** The truth of an operand that decides the goal alone: true for `or`, false for `and`. */
const decidedBy = (goal: Subgoal): typeof TRUE | typeof FALSE => (goal.kind === 'all' ? FALSE : TRUE)

/** True if an undecided relation depends on the subgoal. */
export function isNeeded(goal: Subgoal): boolean {
  for (let use = goal.uses; use !== null; use = use.nextUse)
    if (use.from.truth === OPEN && (use.from.kind === 'relation' || isNeeded(use.from))) return true
  return false
}

/** Decides a subgoal, and the subgoals that follow from this. */
export function decide(goal: Subgoal, truth: typeof TRUE | typeof FALSE): void {
  if (goal.truth !== OPEN) return
  goal.truth = truth
  if (goal.uses !== null) passOn([goal])
}

/** Decides that the subgoal holds, in this way. */
export function found(goal: Subgoal, way: Way): true {
  goal.way = way
  decide(goal, TRUE)
  return true
}

/** Notes that all operands are known. If none of them can decide the goal any more, an `or` is false and an `and` is true. */
export function completed(goal: Subgoal): void {
  goal.complete = true
  goal.waiting--
  if (goal.waiting === 0) decide(goal, decidedBy(goal) === TRUE ? FALSE : TRUE)
}

export function lean(edge: Edge): void {
  const { from, to } = edge
  edge.previous = from.edges
  from.edges = edge
  edge.nextUse = to.uses
  to.uses = edge
  from.waiting++
  if (to.truth !== OPEN && notify(edge) && from.uses !== null) passOn([from])
}

/** The way of a subgoal that holds because `to` holds. */
export const wayBy = (to: Subgoal, byRule: boolean): Way => (byRule ? 'model' : wayByTuple(to.way))

/** The way of a subgoal that holds through a tuple that names a userset. */
export const wayByTuple = (way: Way): Way => (way === 'tuple' ? 'group' : way)

/** The undecided subgoals on which a root depends, with the root itself. */
export function undecidedBelow(root: Subgoal): ReadonlySet<Subgoal> {
  const found = new Set([root])
  // This loop also visits members that are added meanwhile, until no new one comes.
  for (const goal of found)
    for (let edge = goal.edges; edge !== null; edge = edge.previous) if (edge.to.truth === UNKNOWN) found.add(edge.to)
  return found
}

/** Tells the decided subgoals of `todo` to those that use them, which may decide more subgoals, and so on. */
export function passOn(todo: Subgoal[]): void {
  for (let goal = todo.pop(); goal !== undefined; goal = todo.pop())
    for (let use = goal.uses; use !== null; use = use.nextUse) if (notify(use)) todo.push(use.from)
}

/** @returns true when this decided `from`. */
function notify(edge: Edge): boolean {
  const { from, to, negative } = edge
  if (from.truth !== OPEN || to.truth === OPEN || to.truth === UNKNOWN) return false
  const holds = (to.truth === TRUE) !== negative
  if (holds === (decidedBy(from) === TRUE)) {
    from.witness = edge
    from.truth = holds ? TRUE : FALSE
    if (holds) from.way = wayBy(to, edge.byRule)
    return true
  }
  from.waiting--
  if (from.waiting > 0) return false
  from.truth = holds ? TRUE : FALSE
  return true
}
