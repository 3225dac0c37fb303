/** The subgoals of one check: by object and relation, and those that are still to do, the nearest first. */
import { NEAR_LEVELS, NEAR_TUPLES } from '../near.ts'
import type { Subgoal } from '../subgoals.ts'

/** So many are in a list, since making and asking a table costs more than those few. */
const LIST_MAX = 16

/** Subgoals within so many levels of the one that is being expanded are expanded along with it; to begin with, all that are near. */
const ALONG_MAX = 2

export class Frontier {
  /** The level at hand. */
  level = 0
  #list: Subgoal | null = null
  #listCount = 0
  /** By object; further relations of the object hang on the one that came first. */
  #others: Map<string, Subgoal> | null = null
  /** Near goals come first, and nothing wide goes before them. */
  readonly #levels: (Subgoal[] | undefined)[] = []
  /** The next one's place in its level. */
  #at = 0

  constructor(root: Subgoal | null) {
    if (root !== null) this.add(root)
  }

  find(object: string, relation: string): Subgoal | undefined {
    return inList(this.#list, object, relation) ?? inList(this.#others?.get(object) ?? null, object, relation)
  }

  add(goal: Subgoal): void {
    if (this.#listCount < LIST_MAX) {
      goal.next = this.#list
      this.#list = goal
      this.#listCount++
      return
    }
    this.#others ??= new Map()
    const known = this.#others.get(goal.object)
    if (known === undefined) this.#others.set(goal.object, goal)
    else {
      goal.next = known.next
      known.next = goal
    }
  }

  /** `tuplesCount`: visited so far. */
  isAlong(level: number, tuplesCount: number): boolean {
    const away = level - this.level
    return away <= ALONG_MAX || (away <= NEAR_LEVELS && tuplesCount < NEAR_TUPLES)
  }

  queue(goal: Subgoal): void {
    goal.queued = true
    const ofLevel = this.#levels[goal.level]
    if (ofLevel === undefined) this.#levels[goal.level] = [goal]
    else ofLevel.push(goal)
  }

  /** After what is as near as the one at hand. */
  queueAgain(goal: Subgoal): void {
    goal.level = Math.max(goal.level, this.level)
    this.queue(goal)
  }

  next(): Subgoal | undefined {
    for (; this.level < this.#levels.length; this.level++) {
      const goal = this.#levels[this.level]?.[this.#at]
      if (goal !== undefined) {
        this.#at++
        return goal
      }
      this.#at = 0
    }
    return undefined
  }
}

function inList(list: Subgoal | null, object: string, relation: string): Subgoal | undefined {
  for (let goal = list; goal !== null; goal = goal.next)
    if (goal.object === object && goal.relation === relation) return goal
  return undefined
}
