/** What is left of a graph of gates once nothing more will be looked at: what leans on itself alone is false. */
import { type Edge, type Gate, OPEN, passOn } from './gates.ts'
import { inSteps, type Steps } from './slices.ts'
import { FALSE, UNKNOWN } from './view.ts'

/** Gates that are gone through again are counted; false: no more of that. */
export type Spend = (gates: number) => boolean
/** Where the walk is: at an edge of a gate from which it came to no gate that was entered before `lowest`. */
type Place = { readonly gate: Gate; edge: Edge | null; lowest: number }

/** Edges that are gone through between two stops. */
export const EDGES_PER_STEP = 2_000
/** As many take as long as a visit of a tuple. */
export const EDGES_PER_VISIT = 10

/** In one go. */
export function settle(root: Gate, spend: Spend): void {
  for (const _ of settleInSteps(root, spend));
}

/**
 * Components that lean on each other are taken from the bottom up (Tarjan, 1972), each in time that grows with its size.
 * One with a "but not" inside is gone through as long as that decides something.
 */
export function* settleInSteps(root: Gate, spend: Spend): Steps<void> {
  if (root.truth !== OPEN) return
  const path: Place[] = []
  const entered: Gate[] = []
  let count = 0
  const enter = (gate: Gate): void => {
    count++
    gate.order = count
    path.push({ gate, edge: gate.edges, lowest: count })
    entered.push(gate)
  }
  enter(root)
  let edgesCount = 0
  for (let at = path.at(-1); at !== undefined; at = path.at(-1)) {
    const { gate, edge } = at
    if (++edgesCount % EDGES_PER_STEP === 0) yield
    if (edge === null) {
      path.pop()
      const above = path.at(-1)
      if (above !== undefined) above.lowest = Math.min(above.lowest, at.lowest)
      if (at.lowest === gate.order) yield* settleComponent(entered.splice(entered.lastIndexOf(gate)), spend)
      continue
    }
    at.edge = edge.previous
    if (edge.to.truth !== OPEN) continue
    if (edge.to.order === 0) enter(edge.to)
    else at.lowest = Math.min(at.lowest, edge.to.order)
  }
}

/** All that it leans on outside is settled. */
function* settleComponent(members: readonly Gate[], spend: Spend): Steps<void> {
  for (let round = 1; round === 1 || spend(members.length); round++) {
    yield* markPossible(members)
    const unfounded = members.filter((gate) => gate.truth === OPEN && gate.needs > 0)
    if (unfounded.length === 0) break
    for (const gate of unfounded) gate.truth = FALSE
    passOn(unfounded)
  }
  for (const gate of members) if (gate.truth === OPEN) gate.truth = UNKNOWN
}

/** Brings `needs` to 0 for what would hold if all held that is not known to be false, other than by leaning on itself. */
function* markPossible(members: readonly Gate[]): Steps<void> {
  const possible: Gate[] = []
  yield* inSteps(members, (gate) => {
    gate.needs = gate.truth === OPEN ? needsOf(gate) : 0
    if (gate.truth === OPEN && gate.needs === 0) possible.push(gate)
    return true
  })
  let edgesCount = 0
  for (let gate = possible.pop(); gate !== undefined; gate = possible.pop()) {
    for (let use = gate.uses; use !== null; use = use.nextUse) {
      if (++edgesCount % EDGES_PER_STEP === 0) yield
      // Of a component further up nothing is needed yet.
      if (use.negative || use.from.truth !== OPEN || use.from.needs === 0) continue
      use.from.needs--
      if (use.from.needs === 0) possible.push(use.from)
    }
  }
}

/** How many of those that are open have to hold. */
function needsOf(gate: Gate): number {
  let openCount = 0
  for (let edge = gate.edges; edge !== null; edge = edge.previous) {
    if (gate.kind !== 'all' && edge.to.truth === UNKNOWN) return 0
    if (!edge.negative && edge.to.truth === OPEN) openCount++
  }
  if (gate.kind === 'all') return openCount
  return gate.complete ? 1 : 0
}
