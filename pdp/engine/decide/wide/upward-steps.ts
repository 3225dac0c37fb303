/** The steps by which a model's rules lead up from a subject or userset to usersets that hold it. */
import type { Direct, Expression, From, Model } from '../model.ts'
import { kindsOf } from '../restrictions.ts'

/** A step up to `relation`: of the same object (`rule`), of an object whose tuple names the userset, or of an object with it as parent. */
export type Step =
  | { readonly by: 'rule'; readonly relation: string }
  | { readonly by: 'tuple'; readonly type: string; readonly relation: string }
  | { readonly by: 'parent'; readonly tupleset: string; readonly type: string; readonly relation: string }
/** Steps by the kind from which they lead up. `any`: types without a model lead there too, so every tuple may be a step. */
export type Steps = { readonly from: ReadonlyMap<string, readonly Step[]>; readonly any: boolean }

/** The members of a group, which no model has to define: they are followed through the subject's groups. */
const GROUP = 'group#member'
/** The kind of every relation of a type without a model. */
export const UNMODELLED = '?'

/** The steps that may lead to one of `kinds` in a model's form: `user`, `user:*`, `team#member`. */
export function stepsTowards(model: Model, kinds: Iterable<string>): Steps {
  const from = new Map<string, Step[]>()
  const needed = new Set(kinds)
  let any = false
  // This loop also visits members that are added meanwhile, until no new one comes.
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

/** The kinds and steps that lead to a relation. Of an intersection the first part is enough, since every subject must have it. */
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

/** The kinds of the usersets that tuples may name. */
export const usersetKindsOf = (allowed: Direct | null): readonly string[] =>
  allowed === null ? [UNMODELLED] : kindsOf(allowed).filter((kind) => kind.includes('#'))

/** The rule's relation of a parent, for each type that the parent may have. */
export function parentKindsOf(model: Model, { relation, parents }: From): readonly string[] {
  const types = kindsOf(parents).filter((kind) => !kind.includes('#') && !kind.endsWith(':*'))
  return types.map((type) => (model.has(type) ? `${type}#${relation}` : UNMODELLED))
}
