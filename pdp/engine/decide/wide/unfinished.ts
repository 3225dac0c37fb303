/** Relations that are expanded bit by bit, because they name very many parents or usersets, and the work left for each. */

import type { Steps } from '../slices.ts'
import { OPEN, type Subgoal } from '../subgoals.ts'

export class Unfinished {
  /** The rest of each goal's work. A part returns true if it left out nothing. */
  readonly #left = new Map<Subgoal, { parts: Steps<boolean>[]; whole: boolean }>()

  has(goal: Subgoal): boolean {
    return this.#left.has(goal)
  }

  /** Adds work to a goal. @returns true, as for complete work; goOn tells at the end whether it was. */
  add(goal: Subgoal, part: Steps<boolean>): true {
    const known = this.#left.get(goal)
    if (known === undefined) this.#left.set(goal, { parts: [part], whole: true })
    else known.parts.push(part)
    return true
  }

  /** Notes whether the rest of the goal's expansion was complete (`whole`). @returns whether any work is left. */
  begun(goal: Subgoal, whole: boolean): boolean {
    const left = this.#left.get(goal)
    if (left === undefined) return false
    left.whole = whole
    return true
  }

  /** Does one step of each part. @returns null when work is left, else whether the expansion is complete. */
  goOn(goal: Subgoal): boolean | null {
    const left = this.#left.get(goal)
    if (left === undefined) return false
    const open: Steps<boolean>[] = []
    for (const part of left.parts) {
      if (goal.truth !== OPEN) break
      const { done, value } = part.next()
      if (done !== true) open.push(part)
      else if (!value) left.whole = false
    }
    left.parts = open
    if (open.length > 0 && goal.truth === OPEN) return null
    this.#left.delete(goal)
    return left.whole
  }
}
