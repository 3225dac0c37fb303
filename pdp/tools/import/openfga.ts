/** Makes an import plan from a store of OpenFGA, read from a file or its API. Types with a meaning of their own here are renamed. */
import { readDocument } from '../../engine/decide/language/document.ts'
import { compileDocument } from '../../engine/decide/language/model-language.ts'
import { placesIn } from '../../engine/decide/language/places.ts'
import type { Model } from '../../engine/decide/model.ts'
import { directOf } from '../../engine/decide/restrictions.ts'
import { typeOf } from '../../shared/domain/names.ts'
import type { TupleCondition } from '../../shared/domain/tuple.ts'
import { modelTextOf } from '../model-test/model-text.ts'
import { isTier, renamed, renameTypes, typeNames } from './mapping.ts'
import { checkedPlan, type Plan } from './plan.ts'

export type FgaTuple = {
  readonly user: string
  readonly relation: string
  readonly object: string
  readonly condition?: TupleCondition | null
}

/** `text`: the model. Throws PdpError `request_invalid` for one that is not valid. */
export function planOpenFga(text: string, tuples: readonly FgaTuple[]): Plan {
  const document = readDocument(text)
  const model = compileDocument(document, placesIn(text), { builtIn: false })
  const names = typeNames(new Set(model.keys()), reservedTypes(model, tuples))
  return checkedPlan({
    model: names.size === 0 ? text : modelTextOf(renameTypes(document, names)),
    tuples: tuples.map(({ object, relation, user, condition }) => ({
      object: renamed(object, names),
      relation,
      subject: renamed(user, names),
      expiresAtMs: null,
      ...(condition == null ? {} : { condition }),
    })),
    notes: [...names].map(renameNote),
    refusals: [],
  })
}

const renameNote = ([type, name]: readonly [string, string]): string =>
  `type "${type}" is called "${name}" here, since "${type}" is one of ours: ask about ${name}:<id>`

/** Types of the model that cannot keep their names: a PDP would refuse their definitions, or tuples of them. */
function reservedTypes(model: Model, tuples: readonly FgaTuple[]): ReadonlySet<string> {
  const reserved = new Set<string>()
  if ((model.get('app')?.size ?? 0) > 0) reserved.add('app')
  for (const [relation, expression] of model.get('organization') ?? []) {
    if (!isTier('organization', relation)) continue
    const direct = directOf(expression)
    if (
      direct === null ||
      direct.types.size !== 1 ||
      !direct.types.has('user') ||
      direct.wildcards.size + direct.usersets.size > 0
    )
      reserved.add('organization')
  }
  if (tuples.some(({ object, relation }) => isTier(typeOf(object), relation))) reserved.add('organization')
  return reserved
}
