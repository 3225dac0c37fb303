/** Decides the rest of the graph after all subgoals are expanded. Subgoals that depend only on themselves become false. */

import { inSteps, type Steps } from '../slices.ts'
import { type Edge, OPEN, passOn, type Subgoal } from '../subgoals.ts'
import { FALSE, UNKNOWN } from '../view.ts'

/** Counts the subgoals of a further round; false when the budget does not allow it. */
export type Spend = (goals: number) => boolean

/** How many edges are followed between two yields. */
export const EDGES_PER_STEP = 2_000
/** How many followed edges cost as much time as one visited tuple. */
export const EDGES_PER_VISIT = 10

/** Does what settleInSteps does, without pauses. */
export function settle(root: Subgoal, spend: Spend): void {
  for (const _ of settleInSteps(root, spend));
}

/**
 * Takes strongly connected components from the bottom up (Tarjan, 1972), each in time proportional to its size. A component with
 * a "but not" inside is repeated as long as a round decides something.
 */
export function* settleInSteps(root: Subgoal, spend: Spend): Steps<void> {
  if (root.truth !== OPEN) return
  // The path of the walk: each subgoal, its next edge, and the lowest order (Tarjan's low-link) that it has reached.
  const path: { readonly goal: Subgoal; edge: Edge | null; lowest: number }[] = []
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

/** Decides a component; all components that it depends on are decided. */
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

/** Brings `needs` to 0 for each member that could still hold without depending on itself. */
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
      // `needs` is 0 also for a goal of a component further up, which is not counted yet.
      if (use.negative || use.from.truth !== OPEN || use.from.needs === 0) continue
      use.from.needs--
      if (use.from.needs === 0) possible.push(use.from)
    }
  }
}

/** How many of its undecided operands have to hold for the goal to hold. */
function needsOf(goal: Subgoal): number {
  let openCount = 0
  for (let edge = goal.edges; edge !== null; edge = edge.previous) {
    if (goal.kind !== 'all' && edge.to.truth === UNKNOWN) return 0
    if (!edge.negative && edge.to.truth === OPEN) openCount++
  }
  if (goal.kind === 'all') return openCount
  return goal.complete ? 1 : 0
}
