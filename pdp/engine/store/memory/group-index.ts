/** Finds groups that name a subject, and the groups above them. Both are numbers of NumberedNames. */
import { Column, holds, type Many, packed, sizeOf } from './column.ts'
import { isUsersetNumber, rowOf } from './numbered-names.ts'

/** How many numbers all kept closures hold together; beyond it all are dropped, and derived again when needed. */
const KEPT_MAX = 4_000_000

/** The closure of one group: itself and the groups above it, as they were at `version`. */
type Above = { readonly groups: Many; readonly truncated: boolean; readonly version: number }

export class GroupIndex {
  readonly #ofObjects = new Column()
  readonly #ofUsersets = new Column()
  /** Closures, by the row of the group. */
  #above: (Above | undefined)[] = []
  #keptCount = 0
  /** Raised by each change of a group: a closure of an earlier version is derived again. */
  #version = 0

  /** The groups that name the subject. */
  of(subject: number): number | Many | null {
    return this.#columnOf(subject).get(rowOf(subject))
  }

  #columnOf(subject: number): Column {
    return isUsersetNumber(subject) ? this.#ofUsersets : this.#ofObjects
  }

  add(subject: number, group: number): void {
    this.#columnOf(subject).add(rowOf(subject), group)
    this.#version++
  }

  delete(subject: number, group: number): void {
    this.#columnOf(subject).delete(rowOf(subject), group)
    this.#version++
  }

  /** True if the subject is in the group, at any depth. Null: it is in none of `countMax` groups, but there are more. */
  holds(group: number, subject: number, countMax: number): boolean | null {
    const own = this.of(subject)
    if (own === null) return false
    if (typeof own === 'number') return this.#isAbove(own, group, countMax)
    let truncated = false
    for (const at of own) {
      const found = this.#isAbove(at, group, countMax)
      if (found === true) return true
      truncated ||= found === null
    }
    return truncated ? null : false
  }

  #isAbove(from: number, group: number, countMax: number): boolean | null {
    let above = this.#above[rowOf(from)]
    if (above?.version !== this.#version) {
      above = this.#climb(from, countMax)
      this.#keep(rowOf(from), above)
    }
    return holds(above.groups, group) || (above.truncated ? null : false)
  }

  #keep(row: number, above: Above): void {
    this.#keptCount += sizeOf(above.groups)
    if (this.#keptCount > KEPT_MAX) {
      this.#above = []
      this.#keptCount = 0
    }
    // The array is filled without holes, because V8 turns an array with large holes into a slow hash table.
    while (this.#above.length < row) this.#above.push(undefined)
    this.#above[row] = above
  }

  #climb(from: number, countMax: number): Above {
    const groups = new Set([from])
    // This loop also visits members that are added meanwhile, until no new one comes.
    for (const at of groups) {
      if (groups.size > countMax) return { groups: packed(groups), truncated: true, version: this.#version }
      const above = this.of(at)
      if (typeof above === 'number') groups.add(above)
      else if (above !== null) for (const group of above) groups.add(group)
    }
    return { groups: packed(groups), truncated: false, version: this.#version }
  }
}
