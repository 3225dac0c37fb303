/** The subjects of one object#relation, or the groups of one subject, in as little memory as their number allows. */

import type { TupleCondition } from '../../../shared/domain/tuple.ts'
import { isUserset, Userset } from '../../decide/usersets.ts'
import type { SubjectRow } from '../contract.ts'

type ConditionalRow = SubjectRow & { readonly condition: TupleCondition }

const NONE: readonly never[] = []
/** The longest list: up to this length a list is searched faster than a Set, and is a fraction of its size. */
const LIST_MAX = 8
const NO_ROWS: ReadonlyMap<string, ConditionalRow> = new Map()
/** Bytes of a row with a condition; the values of its context take more on the heap than as text. */
const contextBytes = ({ context }: TupleCondition): number => 300 + 3 * JSON.stringify(context).length

export class SubjectSet {
  /** Members without a condition. A single one is kept as a string, because most sets have one. */
  #members: string | readonly string[] | Set<string> = NONE
  /** Members that expire, with the instant (milliseconds). */
  #expiries: Map<string, number> | null = null
  /** The usersets of the set, found at the first read because few sets need them; null before. */
  #usersets: readonly Userset[] | null = NONE
  #usersetsCount = 0
  /** Rows with a condition. They are not members, so that only a question about conditions reads them. */
  #conditional: Map<string, ConditionalRow> | null = null
  /** False: the set is too wide to hold. Its usersets are then its members, and `#probed` holds single tuples that were read. */
  #complete = true
  /** False: it has too many usersets to hold, too, and then no members. */
  #usersetsComplete = true
  #probed: Map<string, SubjectRow | null> | null = null
  /** Bytes of the conditions' contexts, which may be large. */
  #conditionBytes = 0

  static of(
    rows: readonly SubjectRow[],
    { complete, usersetsComplete }: { readonly complete: boolean; readonly usersetsComplete: boolean },
  ): SubjectSet {
    const set = new SubjectSet()
    set.#complete = complete
    set.#usersetsComplete = usersetsComplete
    if (rows.length > LIST_MAX) set.#members = new Set()
    for (const row of rows) set.put(row)
    return set
  }

  get complete(): boolean {
    return this.#complete
  }

  get usersetsComplete(): boolean {
    return this.#usersetsComplete
  }

  get size(): number {
    const members = this.#members
    return typeof members === 'string' ? 1 : members instanceof Set ? members.size : members.length
  }

  /** Approximate bytes on the heap; the factors were measured. */
  get bytes(): number {
    return (
      120 +
      this.size * 50 +
      this.#usersetsCount * 70 +
      (this.#expiries?.size ?? 0) * 60 +
      (this.#probed?.size ?? 0) * 90 +
      this.#conditionBytes
    )
  }

  /** Rows with a condition, by subject. */
  get conditional(): ReadonlyMap<string, ConditionalRow> {
    return this.#conditional ?? NO_ROWS
  }

  get usersets(): readonly Userset[] {
    this.#usersets ??= [...this.members()].filter(isUserset).map((text) => new Userset(text))
    return this.#usersets
  }

  get hasExpiries(): boolean {
    return this.#expiries !== null
  }

  has(subject: string): boolean {
    const members = this.#members
    if (typeof members === 'string') return members === subject
    return members instanceof Set ? members.has(subject) : members.includes(subject)
  }

  /** The member's expiry; null: never. */
  expiryOf(subject: string): number | null {
    return this.#expiries?.get(subject) ?? null
  }

  /** The set's only member if it never expires, as is usual; else null. */
  get only(): string | null {
    return typeof this.#members === 'string' && this.#expiries === null ? this.#members : null
  }

  members(): Iterable<string> {
    return typeof this.#members === 'string' ? [this.#members] : this.#members
  }

  /** A row of a wide set: null: it does not exist; undefined: not yet read. */
  probed(subject: string): SubjectRow | null | undefined {
    return this.#probed?.get(subject)
  }

  notePresence(subject: string, row: SubjectRow | null): void {
    this.#probed ??= new Map()
    const before = this.#probed.get(subject)?.condition
    if (before !== undefined) this.#conditionBytes -= contextBytes(before)
    if (row?.condition !== undefined) this.#conditionBytes += contextBytes(row.condition)
    this.#probed.set(subject, row)
  }

  put(row: SubjectRow): void {
    const { subject, expiresAtMs, condition } = row
    const userset = isUserset(subject)
    if (this.#isProbed(userset)) {
      this.notePresence(subject, row)
      return
    }
    if (condition !== undefined) {
      this.remove(subject)
      this.#conditional ??= new Map()
      this.#conditional.set(subject, { subject, expiresAtMs, condition })
      this.#conditionBytes += contextBytes(condition)
      return
    }
    this.#removeConditional(subject)
    if (expiresAtMs !== null) {
      this.#expiries ??= new Map()
      this.#expiries.set(subject, expiresAtMs)
    } else if (this.#expiries?.delete(subject) === true && this.#expiries.size === 0) this.#expiries = null
    if (this.has(subject)) return
    this.#add(subject)
    if (userset) this.#noteUsersets(1)
  }

  #noteUsersets(more: 1 | -1): void {
    this.#usersetsCount += more
    this.#usersets = this.#usersetsCount === 0 ? NONE : null
  }

  /** True if subjects of this kind are in `#probed`, because the set is too wide to hold them as members. */
  #isProbed(isUserset: boolean): boolean {
    return isUserset ? !this.#usersetsComplete : !this.#complete
  }

  #add(subject: string): void {
    const members = this.#members
    if (members instanceof Set) members.add(subject)
    else if (typeof members === 'string') this.#members = [members, subject]
    else if (members.length === 0) this.#members = subject
    else this.#members = members.length < LIST_MAX ? [...members, subject] : new Set([...members, subject])
  }

  #removeConditional(subject: string): void {
    const row = this.#conditional?.get(subject)
    if (row === undefined) return
    this.#conditional?.delete(subject)
    this.#conditionBytes -= contextBytes(row.condition)
  }

  remove(subject: string): void {
    if (this.#isProbed(isUserset(subject))) {
      this.notePresence(subject, null)
      return
    }
    this.#removeConditional(subject)
    if (!this.has(subject)) return
    const members = this.#members
    if (members instanceof Set) members.delete(subject)
    else if (typeof members === 'string') this.#members = members === subject ? NONE : members
    else this.#members = members.filter((member) => member !== subject)
    if (this.#expiries?.delete(subject) === true && this.#expiries.size === 0) this.#expiries = null
    if (isUserset(subject)) this.#noteUsersets(-1)
  }
}
