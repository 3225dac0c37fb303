/** Finds the resources whose answers may change with some tuples: those to which tuples lead from the objects of these. */

import { typeOf } from '../../shared/domain/names.ts'
import type { Tuple } from '../../shared/domain/tuple.ts'
import { type Model, NO_MODEL } from '../decide/model.ts'
import type { View } from '../decide/view.ts'

/** The most names that are followed. */
const FOLLOWED_MAX = 10_000

/** Resources, the nearest first. `whole`: no other resource of the type is concerned. */
export type Touched = { readonly resources: readonly string[]; readonly whole: boolean }

/**
 * An object depends on others only through tuples that name them or their usersets, whatever the model is. The search begins at the
 * objects of the changed tuples, so these need not be stored. Undefined while rows are missing.
 */
export function touchedBy(
  view: View,
  model: Model = NO_MODEL,
  of: { readonly organization: string; readonly type: string; readonly tuples: readonly Omit<Tuple, 'expiresAtMs'>[] },
): Touched | undefined {
  const reached = new Set(of.tuples.flatMap(({ object, relation }) => namesFor(model, object, relation)))
  let [missing, whole] = [false, true]
  // A loop over a Set also visits members that are added while it runs.
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

/** The object itself, and each of its usersets that may change with one of its relations. */
function namesFor(model: Model, object: string, relation: string): readonly string[] {
  const relations = model.get(typeOf(object))?.keys() ?? [relation]
  return [object, ...[...relations].map((known) => `${object}#${known}`)]
}
