/** Relations that depend on more sets than one evaluation visits, and what is left to do for each. */

import type { Steps } from '../slices.ts'
import { OPEN, type Subgoal } from '../subgoals.ts'

/** Each part ends with whether nothing of it had to be left out. */
type Left = { parts: Steps<boolean>[]; whole: boolean }

export class Unfinished {
  readonly #left = new Map<Subgoal, Left>()

  has(goal: Subgoal): boolean {
    return this.#left.has(goal)
  }

  /** @returns true: whether something had to be left out is known at its end. */
  add(goal: Subgoal, part: Steps<boolean>): true {
    const known = this.#left.get(goal)
    if (known === undefined) this.#left.set(goal, { parts: [part], whole: true })
    else known.parts.push(part)
    return true
  }

  /** `whole`: nothing else had to be left out. @returns whether anything is left to do. */
  begun(goal: Subgoal, whole: boolean): boolean {
    const left = this.#left.get(goal)
    if (left === undefined) return false
    left.whole = whole
    return true
  }

  /** A step of each part. @returns whether nothing had to be left out; null: there is more to do. */
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
