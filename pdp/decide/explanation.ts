/** What an evaluation notes as it goes: the steps that led to an allow, and tuples that would have led to one. */
import type { ReasonStep } from '../domain/decision.ts'
import type { LogId } from '../domain/log.ts'
import { DEPTH_MAX, type View } from './view.ts'

/** Missing tuples that are named at most. */
const MISSING_MAX = 20

export class Explanation {
  /** Innermost step first. */
  #path: ReasonStep[] = []
  /** Any one of them would turn the denial into an allow. */
  #missing: string[] = []

  /** The chain from the resource to the subject, and what is missing. */
  get found(): { readonly path: readonly ReasonStep[]; readonly missing: readonly string[] } {
    return { path: this.#path.toReversed(), missing: [...new Set(this.#missing)].slice(0, MISSING_MAX) }
  }

  step(...steps: readonly ReasonStep[]): void {
    this.#path.push(...steps)
  }

  miss(tuple: string): void {
    this.#missing.push(tuple)
  }

  get stepsCount(): number {
    return this.#path.length
  }

  get missingCount(): number {
    return this.#missing.length
  }

  stepsFrom(index: number): readonly ReasonStep[] {
    return this.#path.slice(index)
  }

  /** Takes back what was noted since; the missing only when there is a count for them. */
  forget(stepsCount: number, missingCount: number | null): void {
    this.#path.length = Math.min(this.#path.length, stepsCount)
    if (missingCount !== null) this.#missing.length = Math.min(this.#missing.length, missingCount)
  }
}

/** The memberships that lead from a group down to the subject, nearest to the group first; the shortest chain there is. */
export function groupSteps(
  view: View,
  log: LogId,
  of: { readonly subject: string; readonly group: string },
): readonly ReasonStep[] {
  const below = new Map<string, string>()
  const todo = [of.subject]
  for (let at = todo.shift(); at !== undefined && !below.has(of.group); at = todo.shift()) {
    for (const group of view.groups(log, at) ?? []) {
      if (below.has(group)) continue
      below.set(group, at)
      todo.push(group)
    }
  }
  const steps: ReasonStep[] = []
  for (let at = of.group; at !== of.subject && steps.length <= DEPTH_MAX; ) {
    const member = below.get(at)
    if (member === undefined) break
    steps.push({ tuple: `${at}@${member}` })
    at = member
  }
  return steps
}
