/** The subgoals of one check: a table by object and relation, and a queue of those to be expanded, the nearest first. */
import { NEAR_LEVELS, NEAR_TUPLES } from '../near.ts'
import type { Subgoal } from '../subgoals.ts'

/** How many subgoals are kept in a list before a Map is made, which costs more than searching a short list. */
const LIST_MAX = 16

/** How many levels below the current one subgoals are expanded at once. While few tuples are visited, `NEAR_LEVELS` counts instead. */
const ALONG_MAX = 2

export class Frontier {
  /** The level whose subgoals are being expanded. */
  level = 0
  #list: Subgoal | null = null
  #listCount = 0
  /** Subgoals by object: the first of the object, with the others linked to it by `next`. */
  #others: Map<string, Subgoal> | null = null
  readonly #levels: (Subgoal[] | undefined)[] = []
  /** The index of the next subgoal in the queue of its level. */
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

  /** True if subgoals of this level are expanded at once. `tuplesCount`: how many tuples have been visited. */
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

  /** Queues a subgoal again, behind the others of the current level. */
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
