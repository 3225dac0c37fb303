/**
 * Tuples of one organization in memory. Names become integers, so that a tuple takes a few bytes in typed arrays, and a
 * question takes a few look-ups however many tuples there are.
 */

import { compareNames } from '../../../shared/domain/names.ts'
import type { Tuple } from '../../../shared/domain/tuple.ts'
import type { Userset } from '../../decide/usersets.ts'
import type { SubjectRow } from '../contract.ts'
import { Column, holds, type Many, sizeOf, valuesOf } from './column.ts'
import { ConditionalTuples } from './conditional-tuples.ts'
import { Expiries, isGroup } from './expiries.ts'
import { GroupIndex } from './group-index.ts'
import { KeyOrder, namesOf } from './key-order.ts'
import { NamerIndex } from './namer-index.ts'
import { isUsersetNumber, NumberedNames, rowOf } from './numbered-names.ts'

const NO_ROWS: readonly SubjectRow[] = []
const NO_NAMES: readonly string[] = []
const NO_USERSETS: readonly Userset[] = []

/** The tuples of one relation, by object. */
type Relation = {
  readonly subjects: Column
  /** The usersets and wildcards among `subjects` again, so that they are found without reading all subjects. */
  readonly usersets: Column
}

export class TupleIndex {
  readonly #names = new NumberedNames()
  readonly #relations = new Map<string, Relation>()
  readonly #groups = new GroupIndex()
  readonly #conditional = new ConditionalTuples()
  readonly #expiries = new Expiries()
  /** Names in order, built when the first page is read, and updated by each later write. */
  #order: { readonly objects: KeyOrder; readonly subjects: KeyOrder } | null = null
  /** Built by the first call of `namedBy`, and updated by each later write. */
  #namers: NamerIndex | null = null
  #lastObject: string | null = null
  #lastObjectNumber: number | undefined
  #lastSubject: string | null = null
  #lastSubjectNumber: number | undefined
  #lastRelation: string | null = null
  #lastColumns: Relation | undefined

  /** The last look-up is kept: a question asks several times for the same object, subject and relation. */
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

  /** The tuple's expiry; null: never; undefined: there is no such tuple. */
  expiryOf({ object, relation, subject }: Omit<Tuple, 'expiresAtMs'>): number | null | undefined {
    if (!this.has(object, relation, subject)) return undefined
    return this.#expiries.of({ object, relation, subject })
  }

  /** True when any tuple expires: a question must then check the expiry of each tuple that it reads. */
  get expires(): boolean {
    return this.#expiries.count > 0
  }

  /** True when any membership of a group expires: closures then depend on the time. */
  get groupsExpire(): boolean {
    return this.#expiries.membersCount > 0
  }

  /** The stored tuple, also one with a condition. */
  find({ object, relation, subject }: Omit<Tuple, 'expiresAtMs'>): SubjectRow | undefined {
    const conditional = this.#conditional.get({ object, relation, subject })
    if (conditional !== undefined) return conditional
    const expiresAtMs = this.expiryOf({ object, relation, subject })
    return expiresAtMs === undefined ? undefined : { subject, expiresAtMs }
  }

  /** Tuples with a condition. Here only `find`, `namedBy`, `names` and `tuples…` include them. */
  get conditional(): ConditionalTuples {
    return this.#conditional
  }

  has(object: string, relation: string, subject: string): boolean {
    // Two independent look-ups, so that the processor fetches memory for both at once.
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

  subjects(object: string, relation: string): readonly SubjectRow[] {
    return this.#rowsOf(this.#columns(relation)?.subjects, object, relation)
  }

  /** Subjects that are plain objects, expired ones too. Null when there are more than `countMax` subjects of any kind. */
  objects(object: string, relation: string, countMax: number): readonly string[] | null {
    const held = this.#held(this.#columns(relation)?.subjects, object)
    if (held === null) return NO_NAMES
    if (typeof held === 'number') {
      if (countMax < 1) return null
      return isUsersetNumber(held) ? NO_NAMES : [this.#names.object(rowOf(held))]
    }
    if (sizeOf(held) > countMax) return null
    return valuesOf(held).flatMap((value) => (isUsersetNumber(value) ? [] : this.#names.text(value)))
  }

  usersetRows(object: string, relation: string): readonly SubjectRow[] {
    return this.#rowsOf(this.#columns(relation)?.usersets, object, relation)
  }

  #rowsOf(column: Column | undefined, object: string, relation: string): readonly SubjectRow[] {
    const held = this.#held(column, object)
    if (held === null) return NO_ROWS
    return valuesOf(held).map((value) => {
      const subject = this.#names.text(value)
      return { subject, expiresAtMs: this.#expiries.of({ object, relation, subject }) }
    })
  }

  /** Subjects that are usersets or wildcards, expired ones too. Null when there are more than `countMax`. */
  usersets(object: string, relation: string, countMax: number): readonly Userset[] | null {
    const columns = this.#columns(relation)
    const held = this.#held(columns?.subjects, object)
    if (held === null) return NO_USERSETS
    if (typeof held === 'number') {
      if (!isUsersetNumber(held)) return NO_USERSETS
      return countMax < 1 ? null : [this.#names.userset(held)]
    }
    const several = this.#held(columns?.usersets, object) ?? []
    if (typeof several !== 'number' && sizeOf(several) > countMax) return null
    return valuesOf(several).map((value) => this.#names.userset(value))
  }

  /** Groups that name the subject, as `group:x#member`. */
  groupsOf(subject: string): readonly SubjectRow[] {
    const s = this.#subjectNumber(subject)
    const held = s === undefined ? null : this.#groups.of(s)
    if (held === null) return NO_ROWS
    return valuesOf(held).map((value) => {
      const group = this.#names.text(value)
      return {
        subject: group,
        expiresAtMs: this.#expiries.of({ object: group.slice(0, -'#member'.length), relation: 'member', subject }),
      }
    })
  }

  /** Tuples with the subject `name`, as `object#relation`, even with a condition or expired. */
  *namedBy(
    name: string,
    where: { readonly type: string; readonly relation: string } | null,
  ): Iterable<{ readonly subject: string; readonly expiresAtMs: number | null }> {
    this.#namers ??= new NamerIndex(this.all())
    for (const { object, relation } of this.#namers.of(name, where)) {
      const found = this.find({ object, relation, subject: name })
      if (found !== undefined) yield { subject: `${object}#${relation}`, expiresAtMs: found.expiresAtMs }
    }
  }

  /** True if the subject is in the group, without regard to expiry. Null: more than `countMax` groups are above it. */
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
      this.#added(tuple)
      return
    }
    if (this.#conditional.delete(tuple)) this.#removed(tuple)
    this.#forgetLast()
    const o = this.#names.use(object)
    const s = this.#names.use(subject)
    const { subjects, usersets } = this.#relation(relation)
    const fresh = subjects.add(rowOf(o), s)
    this.#expiries.set({ object, relation, subject }, expiresAtMs)
    if (!fresh) {
      this.#names.release(o)
      this.#names.release(s)
      return
    }
    this.#added(tuple)
    if (isUsersetNumber(s)) usersets.add(rowOf(o), s)
    if (isGroup(object, relation)) this.#groups.add(s, this.#names.use(`${object}#member`))
  }

  remove(tuple: Omit<Tuple, 'expiresAtMs'>): void {
    this.#removePlain(tuple)
    if (this.#conditional.delete(tuple)) this.#removed(tuple)
  }

  #added(tuple: Tuple): void {
    this.#order?.objects.add(tuple.object)
    this.#order?.subjects.add(tuple.subject)
    this.#namers?.add(tuple)
  }

  #removed(tuple: Omit<Tuple, 'expiresAtMs'>): void {
    this.#order?.objects.delete(tuple.object)
    this.#order?.subjects.delete(tuple.subject)
    this.#namers?.delete(tuple)
  }

  #removePlain(tuple: Omit<Tuple, 'expiresAtMs'>): void {
    const { object, relation, subject } = tuple
    this.#forgetLast()
    const o = this.#names.find(object)
    const s = this.#names.find(subject)
    const held = this.#relations.get(relation)
    if (o === undefined || s === undefined || held?.subjects.has(rowOf(o), s) !== true) return
    held.subjects.delete(rowOf(o), s)
    if (isUsersetNumber(s)) held.usersets.delete(rowOf(o), s)
    this.#expiries.set({ object, relation, subject }, null)
    this.#removed(tuple)
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
      objects: new KeyOrder(namesOf(this.all(), 'object')),
      subjects: new KeyOrder(namesOf(this.all(), 'subject')),
    }
    return this.#order[kind].from(start)
  }

  /** The tuples in ascending order from the object `start` on. */
  *tuplesFrom(start: string): Iterable<Tuple> {
    for (const object of this.names('objects', start)) yield* this.tuplesOf(object)
  }

  /** Tuples of the object, in ascending order of relation and subject. */
  *tuplesOf(object: string): Iterable<Tuple> {
    const relations = new Set([...this.#relations.keys(), ...this.#conditional.relationsOf(object)])
    for (const relation of [...relations].sort(compareNames)) {
      const rows = [...this.subjects(object, relation), ...this.#conditional.rowsOf(object, relation)]
      for (const row of rows.toSorted((a, b) => compareNames(a.subject, b.subject))) yield { object, relation, ...row }
    }
  }
}
