/** The gates of one check: by object and relation, and those that are still to do, the nearest first. */
import type { Gate } from './gates.ts'

/** So many are in a list, since making and asking a table costs more than those few. */
const LIST_MAX = 16

export class Frontier {
  /** Of the one at hand. */
  level = 0
  #list: Gate | null = null
  #listCount = 0
  /** By object; further relations of the object hang on the one that came first. */
  #others: Map<string, Gate> | null = null
  /** What is near comes first, and nothing wide goes before it. */
  readonly #levels: (Gate[] | undefined)[] = []
  /** The next one's place in its level. */
  #at = 0

  constructor(root: Gate | null) {
    if (root !== null) this.add(root)
  }

  find(object: string, relation: string): Gate | undefined {
    return inList(this.#list, object, relation) ?? inList(this.#others?.get(object) ?? null, object, relation)
  }

  add(node: Gate): void {
    if (this.#listCount < LIST_MAX) {
      node.next = this.#list
      this.#list = node
      this.#listCount++
      return
    }
    this.#others ??= new Map()
    const known = this.#others.get(node.object)
    if (known === undefined) this.#others.set(node.object, node)
    else {
      node.next = known.next
      known.next = node
    }
  }

  queue(node: Gate): void {
    node.queued = true
    const ofLevel = this.#levels[node.level]
    if (ofLevel === undefined) this.#levels[node.level] = [node]
    else ofLevel.push(node)
  }

  /** After what is as near as the one at hand. */
  queueAgain(node: Gate): void {
    node.level = Math.max(node.level, this.level)
    this.queue(node)
  }

  next(): Gate | undefined {
    for (; this.level < this.#levels.length; this.level++) {
      const node = this.#levels[this.level]?.[this.#at]
      if (node !== undefined) {
        this.#at++
        return node
      }
      this.#at = 0
    }
    return undefined
  }
}

function inList(list: Gate | null, object: string, relation: string): Gate | undefined {
  for (let node = list; node !== null; node = node.next)
    if (node.object === object && node.relation === relation) return node
  return undefined
}
