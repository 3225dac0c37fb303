/** The pending questions of one stream, by id. */

const FIRST_SLOTS = 64

/**
 * An array of open questions. A Map would keep whole requests alive when it grows: V8's old table holds them beyond the young generation.
 */
export class PendingQuestions<T> {
  #slots: (Slot<T> | null)[] = emptySlots(FIRST_SLOTS)
  #count = 0
  #lastId: number

  /** The first id is the one after `lastId`. */
  constructor(lastId = 0) {
    this.#lastId = lastId
  }

  /** Returns an unused id. Ids repeat only after all 32 bits were used. */
  add(value: T): number {
    if (2 * this.#count >= this.#slots.length) this.#grow()
    do this.#lastId = (this.#lastId + 1) >>> 0
    while (this.#slots[this.#at(this.#lastId)] !== null)
    const id = this.#lastId
    this.#slots[this.#at(id)] = { id, value }
    this.#count += 1
    return id
  }

  find(id: number): T | null {
    const slot = this.#slots[this.#at(id)] ?? null
    return slot !== null && slot.id === id ? slot.value : null
  }

  /** Removes a value; false: the id was not pending. */
  delete(id: number): boolean {
    if (this.find(id) === null) return false
    this.#slots[this.#at(id)] = null
    this.#count -= 1
    return true
  }

  /** Removes all values and returns them. */
  clear(): T[] {
    const values = this.#slots.flatMap((slot) => (slot === null ? [] : [slot.value]))
    this.#slots.fill(null)
    this.#count = 0
    return values
  }

  #at(id: number): number {
    return id & (this.#slots.length - 1)
  }

  /** Doubling the slots uses one more bit of each id, so ids cannot collide. */
  #grow(): void {
    const former = this.#slots
    this.#slots = emptySlots(2 * former.length)
    for (const slot of former) if (slot !== null) this.#slots[this.#at(slot.id)] = slot
  }
}

type Slot<T> = { readonly id: number; readonly value: T }
const emptySlots = (count: number): null[] => new Array<null>(count).fill(null)
