/**
 * A graph of "or" and "and" over relations, solved while it grows. What it comes to is the well-founded solution: it does
 * not depend on any order, and leaves open only what would depend on its own absence, or on what could not be looked at.
 */
import type { ReasonStep } from '../domain/decision.ts'
import type { Expression } from './model.ts'
import { FALSE, TRUE, type Truth, UNKNOWN } from './view.ts'

/** Not decided yet. UNKNOWN, of a gate: it cannot be decided. */
export const OPEN = 2
/** How an allow came about, for the reason code: a tuple, a membership, a group above the subject, a rule of a model. */
export type Way = 'tuple' | 'membership' | 'group' | 'model'
/** A relation of an object; an operand in its definition; the `and` of such operands. The first two are an `or`. */
export type GateKind = 'relation' | 'operand' | 'all'

/** `from` leans on `to`, or on its absence. */
export class Edge {
  readonly from: Gate
  readonly to: Gate
  readonly negative: boolean
  /** Through a rule of the model, and not through a tuple that names a userset. */
  readonly byRule: boolean
  /** What an explanation says of it; only when one is asked for. */
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

/** What an explanation says of a relation's own tuples: the steps that it holds by, tuples that would do, and conditions that are false. */
export type Notes = { found: readonly ReasonStep[]; readonly missed: string[]; readonly unmet: string[] }

export class Gate {
  readonly object: string
  /** Of the object; '' where there is no model. */
  readonly type: string
  readonly relation: string
  /** Null: no model says what it is. */
  readonly expression: Expression | null
  readonly kind: GateKind
  truth: Truth | typeof OPEN = OPEN
  /** Operands that may still decide it; one more until all of it has been looked at. */
  waiting = 1
  /** All of it has been looked at. */
  complete = false
  /** It is being looked at, or going to be. */
  queued = false
  /** How far it is from what was asked, where a wide step counts for several. */
  level = 0
  way: Way = 'tuple'
  /** What it leans on, the last in its definition first. */
  edges: Edge | null = null
  /** What leans on it. */
  uses: Edge | null = null
  /** The edge that decided it; null where a tuple of its own did. */
  witness: Edge | null = null
  notes: Notes | null = null
  /** In the table of gates. */
  next: Gate | null = null
  /** These serve `settle` alone. */
  order = 0
  needs = 0

  constructor(object: string, type: string, relation: string, expression: Expression | null, kind: GateKind) {
    this.object = object
    this.type = type
    this.relation = relation
    this.expression = expression
    this.kind = kind
  }
}

/** `or` is decided by the first operand that is true, `and` by the first that is false. */
const decidedBy = (gate: Gate): typeof TRUE | typeof FALSE => (gate.kind === 'all' ? FALSE : TRUE)

/** Is anything undecided that leans on it? */
export function isNeeded(gate: Gate): boolean {
  for (let use = gate.uses; use !== null; use = use.nextUse)
    if (use.from.truth === OPEN && (use.from.kind === 'relation' || isNeeded(use.from))) return true
  return false
}

/** By its own tuples, or for good. */
export function decide(gate: Gate, truth: typeof TRUE | typeof FALSE): void {
  if (gate.truth !== OPEN) return
  gate.truth = truth
  if (gate.uses !== null) passOn([gate])
}

/** It is allowed, in this way. */
export function found(gate: Gate, way: Way): true {
  gate.way = way
  decide(gate, TRUE)
  return true
}

/** All operands are there: once none of them can decide it any more, it is the opposite. */
export function completed(gate: Gate): void {
  gate.complete = true
  gate.waiting--
  if (gate.waiting === 0) decide(gate, decidedBy(gate) === TRUE ? FALSE : TRUE)
}

export function lean(edge: Edge): void {
  const { from, to } = edge
  edge.previous = from.edges
  from.edges = edge
  edge.nextUse = to.uses
  to.uses = edge
  from.waiting++
  if (to.truth !== OPEN && tell(edge) && from.uses !== null) passOn([from])
}

/** The way of a gate that holds because another one does. */
export const wayBy = (to: Gate, byRule: boolean): Way => (byRule ? 'model' : to.way === 'tuple' ? 'group' : to.way)

/** `todo`: decided gates whose users have not heard of it yet. */
export function passOn(todo: Gate[]): void {
  for (let gate = todo.pop(); gate !== undefined; gate = todo.pop())
    for (let use = gate.uses; use !== null; use = use.nextUse) if (tell(use)) todo.push(use.from)
}

/** @returns true when that decided the gate that leans. */
function tell(edge: Edge): boolean {
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
