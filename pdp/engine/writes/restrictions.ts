/** Finds tuples without a meaning: stored tuples that a new model would not use, and tuples that must not be written. */

import type { Tuple } from '../../shared/domain/tuple.ts'
import { type Model, mergeModels } from '../decide/model.ts'
import { createModelCompiler } from '../decide/models/known-models.ts'
import { restrictionIssue, shapeIssue } from '../decide/restrictions.ts'
import type { Store, TupleShape } from '../store/contract.ts'
import { withModels } from '../worker/worker.ts'
import { readDeclared } from './role-definitions.ts'

/** The shapes of stored tuples that count under the present model, but not under the new one. */
export async function orphansOf(
  store: Pick<Store, 'tupleShapes'>,
  models: { readonly current: Model; readonly wanted: Model },
): Promise<readonly TupleShape[]> {
  const [current, wanted] = [mergeModels([models.current]), mergeModels([models.wanted])]
  if (wanted.size === 0) return []
  const shapes = await store.tupleShapes([...wanted.keys()])
  return shapes.filter((shape) => shapeIssue(current, shape) === null && shapeIssue(wanted, shape) !== null)
}

/** The reason why a tuple would not count under the present models; null: it counts. */
export type Restriction = (tuple: Omit<Tuple, 'expiresAtMs'>) => string | null

/** Reads the restriction by the current models. A tuple that counts now may not count under a later model. */
export function createRestrictions(): (store: Pick<Store, 'rows'>) => Promise<Restriction> {
  const compile = createModelCompiler()
  return async (store) => {
    const { manifests } = await readDeclared(store)
    const model = await withModels(() => compile(manifests))
    return (tuple) => restrictionIssue(model, tuple)
  }
}
