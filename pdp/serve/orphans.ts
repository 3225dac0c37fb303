/** Which stored tuples a new model would leave without a meaning. */
import type { Direct, Expression, Model } from '../decide/model.ts'
import type { Store, TupleShape } from '../store/contracts.ts'

/** Shapes of stored tuples that count under the model in force and would not count under the new one. */
export async function orphansOf(
  store: Pick<Store, 'tupleShapes'>,
  models: { readonly current: Model; readonly wanted: Model },
): Promise<readonly TupleShape[]> {
  const { current, wanted } = models
  if (wanted.size === 0) return []
  const shapes = await store.tupleShapes([...wanted.keys()])
  return shapes.filter((shape) => counts(current, shape) && !counts(wanted, shape))
}

/** A type without a model takes every relation and subject. */
function counts(model: Model, { type, relation, subject }: TupleShape): boolean {
  const relations = model.get(type)
  if (relations === undefined) return true
  const expression = relations.get(relation)
  return expression !== undefined && directsOf(expression).some((direct) => takes(direct, subject))
}

function takes({ types, wildcards, usersets }: Direct, subject: string): boolean {
  if (subject.endsWith(':*')) return wildcards.has(subject.slice(0, -2))
  return types.has(subject) || usersets.has(subject)
}

function directsOf(expression: Expression): readonly Direct[] {
  switch (expression.kind) {
    case 'direct':
      return [expression.allowed]
    case 'union':
    case 'intersection':
      return expression.parts.flatMap(directsOf)
    case 'exclusion':
      return [...directsOf(expression.base), ...directsOf(expression.subtract)]
    default:
      return []
  }
}
