/** The gates of one check by object and relation: the first few in a list, since making and asking a table costs more than those few. */
import type { Gate } from './gates.ts'

const LIST_MAX = 16

export class GateTable {
  #list: Gate | null = null
  #listCount = 0
  /** By object; further relations of the object hang on the one that came first. */
  #others: Map<string, Gate> | null = null

  find(object: string, relation: string): Gate | undefined {
    return inList(this.#list, object, relation) ?? inList(this.#others?.get(object) ?? null, object, relation)
  }

  add(gate: Gate): void {
    if (this.#listCount < LIST_MAX) {
      gate.next = this.#list
      this.#list = gate
      this.#listCount++
      return
    }
    this.#others ??= new Map()
    const known = this.#others.get(gate.object)
    if (known === undefined) this.#others.set(gate.object, gate)
    else {
      gate.next = known.next
      known.next = gate
    }
  }
}

function inList(list: Gate | null, object: string, relation: string): Gate | undefined {
  for (let gate = list; gate !== null; gate = gate.next)
    if (gate.object === object && gate.relation === relation) return gate
  return undefined
}
