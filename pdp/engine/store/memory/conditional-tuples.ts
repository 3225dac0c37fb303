/** Tuples with a condition, separate from all others, so that only questions about conditions read them. */

import type { Tuple, TupleCondition, TupleKey } from '../../../shared/domain/tuple.ts'
import { isUserset } from '../../decide/usersets.ts'
import type { SubjectRow } from '../contract.ts'

type ConditionalRow = SubjectRow & { readonly condition: TupleCondition }
/** Rows by subject. Usersets are kept apart because they are few, while plain objects may be many. */
type ConditionalRows = {
  readonly usersets: ReadonlyMap<string, ConditionalRow>
  readonly objects: ReadonlyMap<string, ConditionalRow>
}
type Rows = { readonly [kind in keyof ConditionalRows]: Map<string, ConditionalRow> }

const NONE: ConditionalRows = { usersets: new Map(), objects: new Map() }
const kindOf = (subject: string): keyof ConditionalRows => (isUserset(subject) ? 'usersets' : 'objects')

export class ConditionalTuples {
  /** Subjects by object and relation. */
  readonly #objects = new Map<string, Map<string, Rows>>()

  get({ object, relation, subject }: TupleKey): ConditionalRow | undefined {
    return this.of(object, relation)[kindOf(subject)].get(subject)
  }

  of(object: string, relation: string): ConditionalRows {
    return this.#objects.get(object)?.get(relation) ?? NONE
  }

  rowsOf(object: string, relation: string): readonly ConditionalRow[] {
    const { usersets, objects } = this.of(object, relation)
    return [...usersets.values(), ...objects.values()]
  }

  relationsOf(object: string): Iterable<string> {
    return this.#objects.get(object)?.keys() ?? []
  }

  /** @returns true when the tuple had no condition before. */
  put({ object, relation, ...row }: TupleKey & ConditionalRow): boolean {
    const relations = this.#objects.get(object) ?? new Map<string, Rows>()
    const rows = relations.get(relation) ?? { usersets: new Map(), objects: new Map() }
    this.#objects.set(object, relations.set(relation, rows))
    const ofKind = rows[kindOf(row.subject)]
    const fresh = !ofKind.has(row.subject)
    ofKind.set(row.subject, row)
    return fresh
  }

  /** Deletes a tuple. @returns false if there was none. */
  delete({ object, relation, subject }: TupleKey): boolean {
    const relations = this.#objects.get(object)
    const rows = relations?.get(relation)
    if (rows?.[kindOf(subject)].delete(subject) !== true) return false
    if (rows.usersets.size + rows.objects.size === 0) relations?.delete(relation)
    if (relations?.size === 0) this.#objects.delete(object)
    return true
  }

  *all(): Iterable<Tuple> {
    for (const [object, relations] of this.#objects)
      for (const [relation, rows] of relations)
        for (const ofKind of Object.values(rows)) for (const row of ofKind.values()) yield { object, relation, ...row }
  }
}
