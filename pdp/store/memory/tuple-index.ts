/**
 * Tuples of one organization in memory. Names become integers, so that a tuple costs a few bytes in typed arrays and a
 * question a few look-ups, whatever the number of tuples.
 */
import type { Userset } from '../../decide/usersets.ts'
import { compareNames } from '../../domain/names.ts'
import type { Tuple } from '../../domain/tuple.ts'
import type { SubjectRow } from '../contract.ts'
import { Column, holds, type Many, sizeOf } from './column.ts'
import { ConditionalTuples } from './conditional-tuples.ts'
import { GroupIndex } from './group-index.ts'
import { KeyOrder } from './key-order.ts'
import { isUsersetNumber, NumberedNames, rowOf } from './numbered-names.ts'

const NO_ROWS: readonly SubjectRow[] = []
const NO_NAMES: readonly string[] = []
const NO_USERSETS: readonly Userset[] = []

/** One relation's tuples by object. */
type Relation = {
  readonly subjects: Column
  /** Usersets and wildcards, where there are any: most sets have none or nothing else. */
  readonly usersets: Column
}

export class TupleIndex {
  readonly #names = new NumberedNames()
  readonly #relations = new Map<string, Relation>()
  readonly #groups = new GroupIndex()
  readonly #conditional = new ConditionalTuples()
  /** By `tupleKey`: instants; few tuples expire. */
  readonly #expiries = new Map<string, number>()
  /** Of the expiring tuples, those that put somebody in a group. */
  #expiringMembersCount = 0
  /** Made when the first page is asked for, and kept up from then on. */
  #order: { readonly objects: KeyOrder; readonly subjects: KeyOrder } | null = null
  #lastObject: string | null = null
  #lastObjectNumber: number | undefined
  #lastSubject: string | null = null
  #lastSubjectNumber: number | undefined
  #lastRelation: string | null = null
  #lastColumns: Relation | undefined

  /** One question asks about one object, subject and relation several times over, in the same strings. */
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

  #columns(relation: string): Relation | undefined {
    if (relation !== this.#lastRelation) {
      this.#lastRelation = relation
      this.#lastColumns = this.#relations.get(relation)
    }
    return this.#lastColumns
  }

  #forgetLast(): void {
    this.#lastObject = null
    this.#lastSubject = null
    this.#lastRelation = null
  }

  /** Undefined when there is no such tuple; null when it never expires. */
  expiryOf({ object, relation, subject }: Omit<Tuple, 'expiresAtMs'>): number | null | undefined {
    if (!this.has(object, relation, subject)) return undefined
    return this.#expiry(object, relation, subject)
  }

  #expiry(object: string, relation: string, subject: string): number | null {
    return this.#expiries.size === 0 ? null : (this.#expiries.get(tupleKey(object, relation, subject)) ?? null)
  }

  #setExpiry({ object, relation, subject }: Omit<Tuple, 'expiresAtMs'>, expiresAtMs: number | null): void {
    if (expiresAtMs === null && this.#expiries.size === 0) return
    const before = this.#expiries.size
    const key = tupleKey(object, relation, subject)
    if (expiresAtMs === null) this.#expiries.delete(key)
    else this.#expiries.set(key, expiresAtMs)
    if (isGroup(object, relation)) this.#expiringMembersCount += this.#expiries.size - before
  }

  /** True when a tuple expires at all: then each one that a question is shown has to be looked at. */
  get expires(): boolean {
    return this.#expiries.size > 0
  }

  /** True when somebody's place in a group expires: then closures depend on the time. */
  get groupsExpire(): boolean {
    return this.#expiringMembersCount > 0
  }

  /** The tuple as it is stored, with or without a condition. */
  find({ object, relation, subject }: Omit<Tuple, 'expiresAtMs'>): SubjectRow | undefined {
    const conditional = this.#conditional.get({ object, relation, subject })
    if (conditional !== undefined) return conditional
    const expiresAtMs = this.expiryOf({ object, relation, subject })
    return expiresAtMs === undefined ? undefined : { subject, expiresAtMs }
  }

  /** Those with a condition. Everything else here but `find` and the lists of tuples and names is about those without. */
  get conditional(): ConditionalTuples {
    return this.#conditional
  }

  has(object: string, relation: string, subject: string): boolean {
    // Neither look-up waits for the other, so that a processor waits for the memory of both at once.
    const s = this.#subjectNumber(subject)
    const held = this.#held(this.#columns(relation)?.subjects, object)
    if (held === null || s === undefined) return false
    return typeof held === 'number' ? held === s : holds(held, s)
  }

  #held(column: Column | undefined, object: string): number | Many | null {
    if (column === undefined) return null
    const o = this.#objectNumber(object)
    return o === undefined ? null : column.get(rowOf(o))
  }

  /** Subjects of object#relation, of every kind. */
  count(object: string, relation: string): number {
    const held = this.#held(this.#columns(relation)?.subjects, object)
    return held === null ? 0 : typeof held === 'number' ? 1 : sizeOf(held)
  }

  subjects(object: string, relation: string): readonly SubjectRow[] {
    return this.#rowsOf(this.#columns(relation)?.subjects, object, relation)
  }

  /** Plain objects among them, expired ones too. */
  objects(object: string, relation: string): readonly string[] {
    const held = this.#held(this.#columns(relation)?.subjects, object)
    if (held === null) return NO_NAMES
    if (typeof held === 'number') return isUsersetNumber(held) ? NO_NAMES : [this.#names.text(held)]
    return valuesOf(held).flatMap((value) => (isUsersetNumber(value) ? [] : this.#names.text(value)))
  }

  /** Those that are usersets or wildcards. */
  usersetRows(object: string, relation: string): readonly SubjectRow[] {
    return this.#rowsOf(this.#columns(relation)?.usersets, object, relation)
  }

  #rowsOf(column: Column | undefined, object: string, relation: string): readonly SubjectRow[] {
    const held = this.#held(column, object)
    if (held === null) return NO_ROWS
    return valuesOf(held).map((value) => {
      const subject = this.#names.text(value)
      return { subject, expiresAtMs: this.#expiry(object, relation, subject) }
    })
  }

  /** As usersetRows, expired ones too. */
  usersets(object: string, relation: string): readonly Userset[] {
    const columns = this.#columns(relation)
    const held = this.#held(columns?.subjects, object)
    if (held === null) return NO_USERSETS
    if (typeof held === 'number') return isUsersetNumber(held) ? [this.#names.userset(held)] : NO_USERSETS
    const several = this.#held(columns?.usersets, object) ?? []
    return valuesOf(several).map((value) => this.#names.userset(value))
  }

  /** Groups that name the subject, as `group:x#member`. */
  groupsOf(subject: string): readonly SubjectRow[] {
    const s = this.#subjectNumber(subject)
    const held = s === undefined ? null : this.#groups.of(s)
    if (held === null) return NO_ROWS
    return valuesOf(held).map((value) => {
      const group = this.#names.text(value)
      return { subject: group, expiresAtMs: this.#expiry(group.slice(0, -'#member'.length), 'member', subject) }
    })
  }

  /** Is the subject in the group, expired tuples counted? Null when there are more than `countMax` groups above it. */
  inGroup(subject: string, group: Userset, countMax: number): boolean | null {
    const s = this.#subjectNumber(subject)
    const number = group.number === 0 ? this.#names.find(group.text) : group.number
    return s === undefined || number === undefined ? false : this.#groups.holds(number, s, countMax)
  }

  put(tuple: Tuple): void {
    const { object, relation, subject, expiresAtMs, condition } = tuple
    if (condition !== undefined) {
      this.#removePlain(tuple)
      if (!this.#conditional.put({ object, relation, subject, expiresAtMs, condition })) return
      this.#order?.objects.add(object)
      this.#order?.subjects.add(subject)
      return
    }
    this.#removeConditional(tuple)
    this.#forgetLast()
    const o = this.#names.use(object)
    const s = this.#names.use(subject)
    const { subjects, usersets } = this.#relation(relation)
    const fresh = subjects.add(rowOf(o), s)
    this.#setExpiry({ object, relation, subject }, expiresAtMs)
    if (!fresh) {
      this.#names.release(o)
      this.#names.release(s)
      return
    }
    this.#order?.objects.add(object)
    this.#order?.subjects.add(subject)
    if (isUsersetNumber(s)) usersets.add(rowOf(o), s)
    if (isGroup(object, relation)) this.#groups.add(s, this.#names.use(`${object}#member`))
  }

  remove(tuple: Omit<Tuple, 'expiresAtMs'>): void {
    this.#removePlain(tuple)
    this.#removeConditional(tuple)
  }

  #removeConditional({ object, relation, subject }: Omit<Tuple, 'expiresAtMs'>): void {
    if (this.#conditional.empty || !this.#conditional.delete({ object, relation, subject })) return
    this.#order?.objects.delete(object)
    this.#order?.subjects.delete(subject)
  }

  #removePlain({ object, relation, subject }: Omit<Tuple, 'expiresAtMs'>): void {
    this.#forgetLast()
    const o = this.#names.find(object)
    const s = this.#names.find(subject)
    const held = this.#relations.get(relation)
    if (o === undefined || s === undefined || held?.subjects.has(rowOf(o), s) !== true) return
    held.subjects.delete(rowOf(o), s)
    if (isUsersetNumber(s)) held.usersets.delete(rowOf(o), s)
    this.#setExpiry({ object, relation, subject }, null)
    this.#order?.objects.delete(object)
    this.#order?.subjects.delete(subject)
    const group = isGroup(object, relation) ? this.#names.find(`${object}#member`) : undefined
    if (group !== undefined) {
      this.#groups.delete(s, group)
      this.#names.release(group)
    }
    this.#names.release(o)
    this.#names.release(s)
  }

  #relation(relation: string): Relation {
    const found = this.#relations.get(relation)
    if (found !== undefined) return found
    const made = { subjects: new Column(), usersets: new Column() }
    this.#relations.set(relation, made)
    return made
  }

  *all(): Iterable<Tuple> {
    for (const [relation, { subjects }] of this.#relations) {
      for (const row of subjects.rows()) {
        const object = this.#names.object(row)
        for (const subject of this.subjects(object, relation)) yield { object, relation, ...subject }
      }
    }
    yield* this.#conditional.all()
  }

  /** Names of objects or of subjects in key order, from `start` (inclusive) on. */
  names(kind: 'objects' | 'subjects', start: string): Iterable<string> {
    this.#order ??= {
      objects: new KeyOrder(map(this.all(), (tuple) => tuple.object)),
      subjects: new KeyOrder(map(this.all(), (tuple) => tuple.subject)),
    }
    return this.#order[kind].from(start)
  }

  /** Tuples in key order whose objects are `start` or greater. */
  *tuplesFrom(start: string): Iterable<Tuple> {
    for (const object of this.names('objects', start)) yield* this.tuplesOf(object)
  }

  /** In key order. */
  *tuplesOf(object: string): Iterable<Tuple> {
    const relations = new Set([...this.#relations.keys(), ...this.#conditional.relationsOf(object)])
    for (const relation of [...relations].sort(compareNames)) {
      const rows = [...this.subjects(object, relation), ...this.#conditional.rowsOf(object, relation)]
      for (const row of rows.toSorted((a, b) => compareNames(a.subject, b.subject))) yield { object, relation, ...row }
    }
  }
}

const isGroup = (object: string, relation: string): boolean => relation === 'member' && object.startsWith('group:')

const tupleKey = (object: string, relation: string, subject: string): string => `${relation} ${object} ${subject}`

const valuesOf = (held: number | Many): readonly number[] => (typeof held === 'number' ? [held] : [...held])

function* map<A, B>(items: Iterable<A>, f: (item: A) => B): Iterable<B> {
  for (const item of items) yield f(item)
}
