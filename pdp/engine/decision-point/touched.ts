/** Finds the resources whose answers some tuples may change: tuples lead from the changed objects to them. */

import { typeOf } from '../../shared/domain/names.ts'
import type { Tuple } from '../../shared/domain/tuple.ts'
import { type Model, NO_MODEL } from '../decide/model.ts'
import type { View } from '../decide/view.ts'

/** The most names that are followed. */
const FOLLOWED_MAX = 10_000

/** Resources, the nearest first. `whole`: no other resource of the type is concerned. */
export type Touched = { readonly resources: readonly string[]; readonly whole: boolean }

/**
 * The objects that depend on the changed tuples' objects: a dependency needs a tuple with the object's name or userset, under any model.
 * The changed tuples need not be stored. Undefined while rows are missing.
 */
export function touchedBy(
  view: View,
  model: Model = NO_MODEL,
  of: { readonly organization: string; readonly type: string; readonly tuples: readonly Omit<Tuple, 'expiresAtMs'>[] },
): Touched | undefined {
  const reached = new Set(of.tuples.flatMap(({ object, relation }) => namesFor(model, object, relation)))
  let [missing, whole] = [false, true]
  // This loop also visits members that are added meanwhile, until no new one comes.
  for (const name of reached) {
    const named = view.namedBy(of.organization, name, null)
    if (named === undefined) missing = true
    else if (named === null || reached.size > FOLLOWED_MAX) whole = false
    else
      for (const userset of named) {
        const hash = userset.indexOf('#')
        for (const next of namesFor(model, userset.slice(0, hash), userset.slice(hash + 1))) reached.add(next)
      }
  }
  if (missing) return undefined
  const prefix = `${of.type}:`
  return { resources: [...reached].filter((name) => name.startsWith(prefix) && !name.includes('#')), whole }
}

/** The object, with each userset of it that the relation may change. */
function namesFor(model: Model, object: string, relation: string): readonly string[] {
  const relations = model.get(typeOf(object))?.keys() ?? [relation]
  return [object, ...[...relations].map((known) => `${object}#${known}`)]
}
