/** Finds the tuples that have a name as their subject. It is built on first use, because few stores need it. */
import { typeOf } from '../../../shared/domain/names.ts'
import type { TupleKey } from '../../../shared/domain/tuple.ts'

export type Where = { readonly type: string; readonly relation: string }

export class NamerIndex {
  /** subject -> relation and type of the object -> objects */
  readonly #names = new Map<string, Map<string, Set<string>>>()

  constructor(tuples: Iterable<TupleKey>) {
    for (const tuple of tuples) this.add(tuple)
  }

  add({ object, relation, subject }: TupleKey): void {
    const kinds = this.#names.get(subject) ?? new Map<string, Set<string>>()
    const kind = kindOf({ type: typeOf(object), relation })
    const objects = kinds.get(kind) ?? new Set<string>()
    this.#names.set(subject, kinds.set(kind, objects.add(object)))
  }

  delete({ object, relation, subject }: TupleKey): void {
    const kinds = this.#names.get(subject)
    const kind = kindOf({ type: typeOf(object), relation })
    const objects = kinds?.get(kind)
    if (objects?.delete(object) !== true || objects.size > 0) return
    kinds?.delete(kind)
    if (kinds?.size === 0) this.#names.delete(subject)
  }

  /** The tuples with the subject `name`. `where`: null for all types and relations. */
  *of(name: string, where: Where | null): Iterable<{ readonly object: string; readonly relation: string }> {
    for (const [kind, objects] of this.#names.get(name) ?? []) {
      if (where !== null && kind !== kindOf(where)) continue
      const relation = kind.slice(0, kind.indexOf(' '))
      for (const object of objects) yield { object, relation }
    }
  }
}

/** A key for relation and type, unique because neither holds a space. */
const kindOf = ({ type, relation }: Where): string => `${relation} ${type}`
