/**
 * The subgoals of a check: a graph of "or" and "and" over relations, solved while it grows, as tabled evaluation of logic
 * programs does. The result is the well-founded model: it does not depend on any order, and leaves undecided only what
 * would depend on its own absence, or on what could not be read.
 */
import type { ReasonStep } from '../../shared/domain/decision.ts'
import type { Expression } from './model.ts'
import { FALSE, TRUE, type Truth, UNKNOWN } from './view.ts'

/** Not decided yet. UNKNOWN, of a subgoal: it cannot be decided. */
export const OPEN = 2
/** How an allow came about, for the reason code: a tuple, a membership, a group above the subject, a rule of a model. */
export type Way = 'tuple' | 'membership' | 'group' | 'model'
/** A relation of an object; an operand in its definition; the `and` of such operands. The first two are an `or`. */
export type SubgoalKind = 'relation' | 'operand' | 'all'

/** `from` leans on `to`, or on its absence. */
export class Edge {
  readonly from: Subgoal
  readonly to: Subgoal
  readonly negative: boolean
  /** Through a rule of the model, and not through a tuple that names a userset. */
  readonly byRule: boolean
  /** Steps for an explanation; only when one is asked for. */
  readonly steps: readonly ReasonStep[] | null
  /** The one before it, of those of `from`. */
  previous: Edge | null = null
  /** Another one to `to`. */
  nextUse: Edge | null = null

  constructor(options: Pick<Edge, 'from' | 'to' | 'negative' | 'byRule' | 'steps'>) {
    this.from = options.from
    this.to = options.to
    this.negative = options.negative
    this.byRule = options.byRule
    this.steps = options.steps
  }
}

/** Notes for the explanation of a relation's own tuples: the steps that it holds by, tuples that would do, and conditions that are false. */
export type Notes = { found: readonly ReasonStep[]; readonly missed: string[]; readonly unmet: string[] }

export class Subgoal {
  readonly object: string
  /** The object's type; '' where there is no model. */
  readonly type: string
  readonly relation: string
  /** Null: no model says what it is. */
  readonly expression: Expression | null
  readonly kind: SubgoalKind
  truth: Truth | typeof OPEN = OPEN
  /** Operands that may still decide it; one more until it is complete. */
  waiting = 1
  /** All of its definition has been expanded. */
  complete = false
  /** It is being expanded, or going to be. */
  queued = false
  /** How far it is from what was asked, where a wide step counts for several. */
  level = 0
  way: Way = 'tuple'
  /** The goals that it leans on, the last in its definition first. */
  edges: Edge | null = null
  /** The goals that lean on it. */
  uses: Edge | null = null
  /** The edge that decided it; null where a tuple of its own did. */
  witness: Edge | null = null
  notes: Notes | null = null
  /** In the table of subgoals. */
  next: Subgoal | null = null
  /** These serve `settle` alone. */
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

/** `or` is decided by the first operand that is true, `and` by the first that is false. */
const decidedBy = (goal: Subgoal): typeof TRUE | typeof FALSE => (goal.kind === 'all' ? FALSE : TRUE)

/** Is anything undecided that leans on it? */
export function isNeeded(goal: Subgoal): boolean {
  for (let use = goal.uses; use !== null; use = use.nextUse)
    if (use.from.truth === OPEN && (use.from.kind === 'relation' || isNeeded(use.from))) return true
  return false
}

/** By its own tuples, or for good. */
export function decide(goal: Subgoal, truth: typeof TRUE | typeof FALSE): void {
  if (goal.truth !== OPEN) return
  goal.truth = truth
  if (goal.uses !== null) passOn([goal])
}

/** It is allowed, in this way. */
export function found(goal: Subgoal, way: Way): true {
  goal.way = way
  decide(goal, TRUE)
  return true
}

/** All operands are there: once none of them can decide it any more, it is the opposite. */
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

/** The way of a subgoal that holds because another one does. */
export const wayBy = (to: Subgoal, byRule: boolean): Way => (byRule ? 'model' : wayByTuple(to.way))

/** Through a tuple that names a userset. */
export const wayByTuple = (way: Way): Way => (way === 'tuple' ? 'group' : way)

/** All goals that keep a goal from being decided, itself included. */
export function undecidedBelow(root: Subgoal): ReadonlySet<Subgoal> {
  const found = new Set([root])
  // A loop over a Set also visits members that are added while it runs.
  for (const goal of found)
    for (let edge = goal.edges; edge !== null; edge = edge.previous) if (edge.to.truth === UNKNOWN) found.add(edge.to)
  return found
}

/** `todo`: decided subgoals whose users have not been notified yet. */
export function passOn(todo: Subgoal[]): void {
  for (let goal = todo.pop(); goal !== undefined; goal = todo.pop())
    for (let use = goal.uses; use !== null; use = use.nextUse) if (notify(use)) todo.push(use.from)
}

/** @returns true when that decided the subgoal that leans. */
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
