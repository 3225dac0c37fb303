/**
 * Tuples of one organization in memory. Names become integers, so that a tuple costs a few bytes in typed arrays and a
 * question a few look-ups, whatever the number of tuples.
 */
import type { SubjectRow, Tuple } from './contracts.ts'
import { isUserset } from './subject-set.ts'

const NONE = -1
const NO_ROWS: readonly SubjectRow[] = []
const NO_NAMES: readonly string[] = []
/** Up to here a list is searched faster than a Set, and is a fraction of its size. */
const LIST_MAX = 16
type Many = number[] | Set<number>

/** One integer, or several, for each of many integers. */
class Column {
  /** NONE, the only value, or -2 - n for `#many[n]`. */
  #cells = new Int32Array(64).fill(NONE)
  #many: Many[] = []
  #free: number[] = []

  /** Null for none. */
  get(row: number): number | Many | null {
    const cell = row < this.#cells.length ? (this.#cells[row] ?? NONE) : NONE
    if (cell === NONE) return null
    return cell >= 0 ? cell : (this.#many[-2 - cell] ?? null)
  }

  has(row: number, value: number): boolean {
    const held = this.get(row)
    if (held === null) return false
    return typeof held === 'number' ? held === value : held instanceof Set ? held.has(value) : held.includes(value)
  }

  /** @returns false when it was there. */
  add(row: number, value: number): boolean {
    if (this.has(row, value)) return false
    if (row >= this.#cells.length) this.#grow(row)
    const cell = this.#cells[row] ?? NONE
    if (cell === NONE) this.#cells[row] = value
    else if (cell >= 0) this.#cells[row] = -2 - this.#keep([cell, value])
    else this.#insert(-2 - cell, value)
    return true
  }

  #insert(index: number, value: number): void {
    const many = this.#many[index]
    if (many instanceof Set) many.add(value)
    else if (many !== undefined && many.length < LIST_MAX) many.push(value)
    else this.#many[index] = new Set(many).add(value)
  }

  #keep(many: number[]): number {
    const index = this.#free.pop() ?? this.#many.length
    this.#many[index] = many
    return index
  }

  delete(row: number, value: number): void {
    const held = this.get(row)
    if (typeof held === 'number') {
      if (held === value) this.#cells[row] = NONE
      return
    }
    if (held === null) return
    if (held instanceof Set) held.delete(value)
    else if (held.includes(value)) held.splice(held.indexOf(value), 1)
    const [only, second] = held
    if (second !== undefined) return
    const index = -2 - (this.#cells[row] ?? NONE)
    this.#many[index] = []
    this.#free.push(index)
    this.#cells[row] = only ?? NONE
  }

  *rows(): Iterable<number> {
    for (let row = 0; row < this.#cells.length; row++) if (this.#cells[row] !== NONE) yield row
  }

  #grow(row: number): void {
    const cells = new Int32Array(Math.max(row + 1, Math.ceil(this.#cells.length * 1.5))).fill(NONE)
    cells.set(this.#cells)
    this.#cells = cells
  }
}

/** Names that are in use, numbered from 0; a number is used again when its name is gone. */
class Names {
  readonly #numbers = new Map<string, number>()
  readonly #texts: string[] = []
  #uses = new Int32Array(64)
  readonly #free: number[] = []

  find(text: string): number | undefined {
    return this.#numbers.get(text)
  }

  text(number: number): string {
    return this.#texts[number] ?? ''
  }

  use(text: string): number {
    let number = this.#numbers.get(text)
    if (number === undefined) {
      number = this.#free.pop() ?? this.#texts.length
      this.#numbers.set(text, number)
      this.#texts[number] = text
      if (number >= this.#uses.length) {
        const uses = new Int32Array(Math.ceil(this.#uses.length * 1.5) + 1)
        uses.set(this.#uses)
        this.#uses = uses
      }
    }
    this.#uses[number] = (this.#uses[number] ?? 0) + 1
    return number
  }

  release(number: number): void {
    const left = (this.#uses[number] ?? 0) - 1
    this.#uses[number] = left
    if (left > 0) return
    this.#numbers.delete(this.text(number))
    this.#texts[number] = ''
    this.#free.push(number)
  }
}

export class TupleIndex {
  readonly #names = new Names()
  /** relation -> object -> subjects */
  readonly #relations = new Map<string, Column>()
  /** object#relation -> its usersets and wildcards, where there are any: most sets have none or nothing else. */
  readonly #usersets = new Map<string, Column>()
  /** subject -> groups as `group:x#member` */
  readonly #groups = new Column()
  /** `relation object subject` -> instant; few tuples expire. */
  readonly #expiries = new Map<string, number>()
  #lastObject: string | null = null
  #lastObjectNumber: number | undefined
  #lastSubject: string | null = null
  #lastSubjectNumber: number | undefined
  /** group -> itself and the groups above it; forgotten at every change of groups. */
  readonly #above = new Map<number, { readonly groups: ReadonlySet<number>; readonly truncated: boolean }>()

  /** One question asks about one object and one subject several times over, in the same strings. */
  #objectNumber(text: string): number | undefined {
    if (text !== this.#lastObject) {
      this.#lastObject = text
      this.#lastObjectNumber = this.#names.find(text)
    }
    return this.#lastObjectNumber
  }

  #subjectNumber(text: string): number | undefined {
    if (text !== this.#lastSubject) {
      this.#lastSubject = text
      this.#lastSubjectNumber = this.#names.find(text)
    }
    return this.#lastSubjectNumber
  }

  #forgetLast(): void {
    this.#lastObject = null
    this.#lastSubject = null
  }

  /** Undefined when there is no such tuple; null when it never expires. */
  expiryOf({ object, relation, subject }: Omit<Tuple, 'expiresAtMs'>): number | null | undefined {
    const o = this.#names.find(object)
    const s = this.#names.find(subject)
    if (o === undefined || s === undefined || this.#relations.get(relation)?.has(o, s) !== true) return undefined
    return this.#expiries.size === 0 ? null : (this.#expiries.get(`${relation} ${object} ${subject}`) ?? null)
  }

  subjects(object: string, relation: string): readonly SubjectRow[] {
    return this.#rowsOf(this.#relations.get(relation), object, (subject) => `${relation} ${object} ${subject}`)
  }

  usersets(object: string, relation: string): readonly SubjectRow[] {
    return this.#rowsOf(this.#usersets.get(relation), object, (subject) => `${relation} ${object} ${subject}`)
  }

  /** Groups that name the subject, as `group:x#member`. */
  groupsOf(subject: string): readonly SubjectRow[] {
    return this.#rowsOf(this.#groups, subject, (group) => `member ${group.slice(0, -'#member'.length)} ${subject}`)
  }

  #rowsOf(column: Column | undefined, name: string, expiryKey: (value: string) => string): readonly SubjectRow[] {
    const row = column === undefined ? undefined : this.#objectNumber(name)
    const held = row === undefined ? null : (column?.get(row) ?? null)
    if (held === null) return NO_ROWS
    const values = typeof held === 'number' ? [held] : [...held]
    return values.map((value) => {
      const subject = this.#names.text(value)
      return {
        subject,
        expiresAtMs: this.#expiries.size === 0 ? null : (this.#expiries.get(expiryKey(subject)) ?? null),
      }
    })
  }

  /** Names of the usersets and wildcards, where nothing expires. */
  usersetNames(object: string, relation: string): readonly string[] {
    const column = this.#usersets.get(relation)
    const row = column === undefined ? undefined : this.#objectNumber(object)
    const held = row === undefined ? null : (column?.get(row) ?? null)
    if (held === null) return NO_NAMES
    return typeof held === 'number' ? [this.#names.text(held)] : [...held].map((value) => this.#names.text(value))
  }

  /** True when a tuple expires at all: then the quick paths below do not apply. */
  get expires(): boolean {
    return this.#expiries.size > 0
  }

  /** As expiryOf, where nothing expires. */
  has(object: string, relation: string, subject: string): boolean {
    const column = this.#relations.get(relation)
    if (column === undefined) return false
    const o = this.#objectNumber(object)
    if (o === undefined) return false
    const held = column.get(o)
    if (held === null) return false
    const s = this.#subjectNumber(subject)
    if (s === undefined) return false
    return typeof held === 'number' ? held === s : held instanceof Set ? held.has(s) : held.includes(s)
  }

  /** Is the subject in the group, where nothing expires? Null when the groups above it go deeper than `depthMax`. */
  inGroup(subject: string, group: string, depthMax: number): boolean | null {
    const s = this.#subjectNumber(subject)
    const g = this.#names.find(group)
    if (s === undefined || g === undefined) return false
    const own = this.#groups.get(s)
    if (own === null) return false
    if (typeof own === 'number') return this.#isAbove(own, g, depthMax)
    let truncated = false
    for (const at of own) {
      const found = this.#isAbove(at, g, depthMax)
      if (found === true) return true
      truncated ||= found === null
    }
    return truncated ? null : false
  }

  #isAbove(from: number, group: number, depthMax: number): boolean | null {
    let above = this.#above.get(from)
    if (above === undefined) {
      above = this.#climb(from, depthMax)
      this.#above.set(from, above)
    }
    return above.groups.has(group) || (above.truncated ? null : false)
  }

  #climb(from: number, depthMax: number): { groups: ReadonlySet<number>; truncated: boolean } {
    const groups = new Set<number>()
    let level = [from]
    for (let depth = 1; level.length > 0; depth++) {
      const next: number[] = []
      for (const at of level) {
        if (groups.has(at)) continue
        if (depth > depthMax) return { groups, truncated: true }
        groups.add(at)
        const above = this.#groups.get(at)
        if (typeof above === 'number') next.push(above)
        else if (above !== null) next.push(...above)
      }
      level = next
    }
    return { groups, truncated: false }
  }

  put({ object, relation, subject, expiresAtMs }: Tuple): void {
    this.#forgetLast()
    const o = this.#names.use(object)
    const s = this.#names.use(subject)
    const fresh = columnOf(this.#relations, relation).add(o, s)
    const key = `${relation} ${object} ${subject}`
    if (expiresAtMs === null) this.#expiries.delete(key)
    else this.#expiries.set(key, expiresAtMs)
    if (!fresh) {
      this.#names.release(o)
      this.#names.release(s)
      return
    }
    if (isUserset(subject)) columnOf(this.#usersets, relation).add(o, s)
    if (!isGroup(object, relation)) return
    this.#groups.add(s, this.#names.use(`${object}#member`))
    this.#above.clear()
  }

  remove({ object, relation, subject }: Omit<Tuple, 'expiresAtMs'>): void {
    this.#forgetLast()
    const o = this.#names.find(object)
    const s = this.#names.find(subject)
    if (o === undefined || s === undefined || this.#relations.get(relation)?.has(o, s) !== true) return
    this.#relations.get(relation)?.delete(o, s)
    this.#usersets.get(relation)?.delete(o, s)
    this.#expiries.delete(`${relation} ${object} ${subject}`)
    if (isGroup(object, relation)) {
      const g = this.#names.find(`${object}#member`)
      if (g !== undefined) {
        this.#groups.delete(s, g)
        this.#names.release(g)
      }
      this.#above.clear()
    }
    this.#names.release(o)
    this.#names.release(s)
  }

  *all(): Iterable<Tuple> {
    for (const [relation, column] of this.#relations) {
      for (const row of column.rows()) {
        const object = this.#names.text(row)
        for (const { subject, expiresAtMs } of this.subjects(object, relation))
          yield { object, relation, subject, expiresAtMs }
      }
    }
  }
}

const isGroup = (object: string, relation: string): boolean => relation === 'member' && object.startsWith('group:')

function columnOf(columns: Map<string, Column>, relation: string): Column {
  const found = columns.get(relation)
  if (found !== undefined) return found
  const made = new Column()
  columns.set(relation, made)
  return made
}
