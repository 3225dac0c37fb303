/** How a subject may come to hold more, by the rules of a model: the steps that lead up from what it holds already. */
import type { Direct, Expression, Model } from '../model.ts'

/** To `relation` of the object itself, of an object whose tuples name the userset, or of one that has it as a parent. */
export type Step =
  | { readonly by: 'rule'; readonly relation: string }
  | { readonly by: 'tuple'; readonly type: string; readonly relation: string }
  | { readonly by: 'parent'; readonly tupleset: string; readonly type: string; readonly relation: string }
/** `any`: relations that no model says anything of lead there too, so that every tuple may be a step. */
export type Steps = { readonly from: ReadonlyMap<string, readonly Step[]>; readonly any: boolean }

/** In no model: named by brackets alone, and followed through groups. */
const GROUP = 'group#member'
/** Stands for a relation that no model defines. */
export const UNMODELLED = '?'

/** Kinds are as brackets have them: `user`, `user:*`, `team#member`. Only steps that lead on to one of `kinds`. */
export function stepsTowards(model: Model, kinds: Iterable<string>): Steps {
  const from = new Map<string, Step[]>()
  const needed = new Set(kinds)
  let any = false
  // A loop over a Set also visits members that are added while it runs.
  for (const kind of needed) {
    const hash = kind.indexOf('#')
    if (kind !== UNMODELLED && hash < 0) continue
    const type = kind.slice(0, hash)
    const relations = model.get(type)
    if (relations === undefined) {
      if (kind === GROUP || any) continue
      any = true
      for (const [type, relations] of model) for (const relation of relations.keys()) needed.add(`${type}#${relation}`)
      continue
    }
    const relation = kind.slice(hash + 1)
    const expression = relations.get(relation)
    if (expression === undefined) continue
    for (const [source, step] of sourcesOf(model, expression, { type, relation })) {
      needed.add(source)
      from.set(source, [...(from.get(source) ?? []), step])
    }
  }
  return { from, any }
}

/** One of all operands that have to hold is enough: a subject that is not found by it does not hold the rest either. */
function* sourcesOf(
  model: Model,
  expression: Expression,
  to: { readonly type: string; readonly relation: string },
): Iterable<readonly [string, Step]> {
  switch (expression.kind) {
    case 'direct':
      for (const kind of kindsOf(expression.allowed)) yield [kind, { by: 'tuple', ...to }]
      break
    case 'computed':
      yield [`${to.type}#${expression.relation}`, { by: 'rule', relation: to.relation }]
      break
    case 'from':
      for (const kind of parentKindsOf(model, expression))
        yield [kind, { by: 'parent', tupleset: expression.tupleset, ...to }]
      break
    case 'union':
      for (const part of expression.parts) yield* sourcesOf(model, part, to)
      break
    case 'intersection':
      for (const part of expression.parts.slice(0, 1)) yield* sourcesOf(model, part, to)
      break
    case 'exclusion':
      yield* sourcesOf(model, expression.base, to)
      break
  }
}

function kindsOf({ types, wildcards, usersets, conditional }: Direct): readonly string[] {
  const all = [...types, ...[...wildcards].map((type) => `${type}:*`), ...usersets, ...(conditional?.keys() ?? [])]
  return [...new Set(all)]
}

/** Usersets alone. */
export const usersetKindsOf = (allowed: Direct | null): readonly string[] =>
  allowed === null ? [UNMODELLED] : kindsOf(allowed).filter((kind) => kind.includes('#'))

/** The relations that a parent holds, for each type that it may have. */
export function parentKindsOf(
  model: Model,
  { relation, parents }: Extract<Expression, { kind: 'from' }>,
): readonly string[] {
  const types = kindsOf(parents).filter((kind) => !kind.includes('#') && !kind.endsWith(':*'))
  return types.map((type) => (model.has(type) ? `${type}#${relation}` : UNMODELLED))
}
