/** Bounds a request's work: each step counts its cost before it begins. */
import { ScimError } from './errors.ts'

export type Budget = {
  /** Throws ScimError `tooMany` when the costs exceed the bound. */
  spend(cost: number): void
}

export function createBudget(costMax: number, what: string): Budget {
  let left = costMax
  return {
    spend(cost) {
      left -= cost
      if (left < 0) throw new ScimError('tooMany', `${what} would take too much work`)
    },
  }
}
