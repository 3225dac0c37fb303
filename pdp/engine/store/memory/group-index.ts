/** Which groups name a subject, and which groups are above those. Subjects and groups are numbers of NumberedNames. */
import { Column, holds, type Many, packed, sizeOf } from './column.ts'
import { isUsersetNumber, rowOf } from './numbered-names.ts'

/** Numbers in all closures that are kept at most; beyond it they are derived again. */
const KEPT_MAX = 4_000_000

/** A group itself and the groups above it, as they were at the version. */
type Above = { readonly groups: Many; readonly truncated: boolean; readonly version: number }

export class GroupIndex {
  readonly #ofObjects = new Column()
  readonly #ofUsersets = new Column()
  /** By the row of the group. */
  #above: (Above | undefined)[] = []
  #keptCount = 0
  /** Raised by each change of the groups: a result that was derived from another one does not count. */
  #version = 0

  /** Groups that name the subject. */
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

  /** Through any nesting? Null when it is not found and there are more than `countMax` groups above the subject. */
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
    // Without holes, or the array would become a slow table.
    while (this.#above.length < row) this.#above.push(undefined)
    this.#above[row] = above
  }

  #climb(from: number, countMax: number): Above {
    const groups = new Set([from])
    // A loop over a Set also visits members that are added while it runs.
    for (const at of groups) {
      if (groups.size > countMax) return { groups: packed(groups), truncated: true, version: this.#version }
      const above = this.of(at)
      if (typeof above === 'number') groups.add(above)
      else if (above !== null) for (const group of above) groups.add(group)
    }
    return { groups: packed(groups), truncated: false, version: this.#version }
  }
}
