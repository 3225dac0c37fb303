/** How much work one request may make: what it costs is known before it is done. */
import { ScimError } from './errors.ts'

export type Budget = {
  /** Throws ScimError `tooMany`. */
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
