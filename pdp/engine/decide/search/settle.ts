/** The undecided rest of the graph, once every subgoal is expanded: what depends on itself alone is false. */

import { inSteps, type Steps } from '../slices.ts'
import { type Edge, OPEN, passOn, type Subgoal } from '../subgoals.ts'
import { FALSE, UNKNOWN } from '../view.ts'

/** Subgoals that are gone through again are counted; false: no more of that. */
export type Spend = (goals: number) => boolean
/** Where the walk is: at an edge of a subgoal from which it came to no subgoal that was entered before `lowest`. */
type Visited = { readonly goal: Subgoal; edge: Edge | null; lowest: number }

/** Edges that are gone through between two stops. */
export const EDGES_PER_STEP = 2_000
/** As many take as long as a visit of a tuple. */
export const EDGES_PER_VISIT = 10

/** In one go. */
export function settle(root: Subgoal, spend: Spend): void {
  for (const _ of settleInSteps(root, spend));
}

/**
 * Components that lean on each other are taken from the bottom up (Tarjan, 1972), each in time that grows with its size.
 * One with a "but not" inside is gone through as long as that decides something.
 */
export function* settleInSteps(root: Subgoal, spend: Spend): Steps<void> {
  if (root.truth !== OPEN) return
  const path: Visited[] = []
  const entered: Subgoal[] = []
  let count = 0
  const enter = (goal: Subgoal): void => {
    count++
    goal.order = count
    path.push({ goal, edge: goal.edges, lowest: count })
    entered.push(goal)
  }
  enter(root)
  let edgesCount = 0
  for (let at = path.at(-1); at !== undefined; at = path.at(-1)) {
    const { goal, edge } = at
    if (++edgesCount % EDGES_PER_STEP === 0) yield
    if (edge === null) {
      path.pop()
      const above = path.at(-1)
      if (above !== undefined) above.lowest = Math.min(above.lowest, at.lowest)
      if (at.lowest === goal.order) yield* settleComponent(entered.splice(entered.lastIndexOf(goal)), spend)
      continue
    }
    at.edge = edge.previous
    if (edge.to.truth !== OPEN) continue
    if (edge.to.order === 0) enter(edge.to)
    else at.lowest = Math.min(at.lowest, edge.to.order)
  }
}

/** All that it leans on outside is settled. */
function* settleComponent(members: readonly Subgoal[], spend: Spend): Steps<void> {
  for (let round = 1; round === 1 || spend(members.length); round++) {
    yield* markPossible(members)
    const unfounded = members.filter((goal) => goal.truth === OPEN && goal.needs > 0)
    if (unfounded.length === 0) break
    for (const goal of unfounded) goal.truth = FALSE
    passOn(unfounded)
  }
  for (const goal of members) if (goal.truth === OPEN) goal.truth = UNKNOWN
}

/** Brings `needs` to 0 for what would hold if all held that is not known to be false, other than by leaning on itself. */
function* markPossible(members: readonly Subgoal[]): Steps<void> {
  const possible: Subgoal[] = []
  yield* inSteps(members, (goal) => {
    goal.needs = goal.truth === OPEN ? needsOf(goal) : 0
    if (goal.truth === OPEN && goal.needs === 0) possible.push(goal)
    return true
  })
  let edgesCount = 0
  for (let goal = possible.pop(); goal !== undefined; goal = possible.pop()) {
    for (let use = goal.uses; use !== null; use = use.nextUse) {
      if (++edgesCount % EDGES_PER_STEP === 0) yield
      // A component further up needs nothing yet.
      if (use.negative || use.from.truth !== OPEN || use.from.needs === 0) continue
      use.from.needs--
      if (use.from.needs === 0) possible.push(use.from)
    }
  }
}

/** How many of those that are open have to hold. */
function needsOf(goal: Subgoal): number {
  let openCount = 0
  for (let edge = goal.edges; edge !== null; edge = edge.previous) {
    if (goal.kind !== 'all' && edge.to.truth === UNKNOWN) return 0
    if (!edge.negative && edge.to.truth === OPEN) openCount++
  }
  if (goal.kind === 'all') return openCount
  return goal.complete ? 1 : 0
}
