/** Compiles models in the OpenFGA language (schema 1.1) or the JSON of its API, and refuses those that cannot be evaluated. */
import { MEMBERSHIP_RELATIONS } from '../../../shared/domain/membership.ts'
import { type ConditionDefinition, conditionIssues } from '../conditions/condition.ts'
import type { Direct, Expression, Model } from '../model.ts'
import {
  invalidModel,
  type ModelDocument,
  type Reference,
  readDocument,
  type TypeDefinition,
  type Userset,
} from './document.ts'
import { documentIssues, referencesOf } from './document-issues.ts'
import { type PlaceOf, placesIn } from './places.ts'

const ofUsers: readonly Reference[] = [{ type: 'user' }]
/** Types that models may use without a declaration. A model's own declaration of one replaces ours. */
const BUILT_IN: readonly TypeDefinition[] = [
  builtIn('user', {}),
  builtIn('service', {}),
  builtIn('group', { member: [...ofUsers, { type: 'service' }, { type: 'group', relation: 'member' }] }),
  builtIn('organization', Object.fromEntries([...MEMBERSHIP_RELATIONS].map((tier) => [tier, ofUsers]))),
]

function builtIn(type: string, kinds: { readonly [relation: string]: readonly Reference[] }): TypeDefinition {
  const entries = Object.entries(kinds)
  return {
    type,
    relations: Object.fromEntries(entries.map(([relation]) => [relation, { this: {} }])),
    metadata: {
      relations: Object.fromEntries(
        entries.map(([relation, references]) => [relation, { directly_related_user_types: references }]),
      ),
    },
  }
}

type Options = {
  /** False: the model may use only types that it declares. */
  readonly builtIn?: boolean
}

/**
 * Compiles the types that the text declares, and built-in types only if it declares them. Throws PdpError `request_invalid` with all
 * issues, each with its `line:column`.
 */
export function compileModel(text: string, options: Options = {}): Model {
  return compileDocument(readDocument(text), placesIn(text), options)
}

/** Does what compileModel does, for a document that is already read. `placeOf`: finds an issue's position in the text. */
export function compileDocument(document: ModelDocument, placeOf: PlaceOf, options: Options = {}): Model {
  const issues = [
    ...documentIssues(document, options.builtIn === false ? [] : BUILT_IN),
    ...conditionIssues(document.conditions),
  ]
  if (issues.length > 0) throw invalidModel(issues.map(({ spot, message }) => ({ place: placeOf(spot), message })))
  return typesOf(document)
}

/** The model with the built-in types, for callers that need a definition of every type that the model names. */
export const withBuiltIn = (model: Model): Model =>
  new Map([...typesOf({ schema_version: '1.1', type_definitions: BUILT_IN, conditions: {} }), ...model])

function typesOf(document: ModelDocument): Model {
  return new Map(
    document.type_definitions.map((definition) => {
      const relations = Object.entries(definition.relations).map(
        ([relation, rule]) => [relation, expressionOf(rule, { definition, document, relation })] as const,
      )
      return [definition.type, new Map(relations)] as const
    }),
  )
}

type Of = { readonly definition: TypeDefinition; readonly document: ModelDocument; readonly relation: string }

function directOf({ definition, document, relation }: Of): Direct {
  const named = referencesOf(definition, relation).map((r) => ({
    kind: r.wildcard !== undefined ? 'wildcards' : r.relation !== undefined ? 'usersets' : 'types',
    subject: r.wildcard !== undefined ? `${r.type}:*` : r.relation !== undefined ? `${r.type}#${r.relation}` : r.type,
    type: r.type,
    condition: r.condition,
  }))
  const plain = named.filter(({ condition }) => condition === undefined)
  const conditional = new Map<string, Map<string, ConditionDefinition>>()
  for (const { subject, condition } of named) {
    if (condition === undefined) continue
    const known = document.conditions[condition]
    if (known === undefined) throw new TypeError(`condition ${condition} is not defined`)
    const allowed = conditional.get(subject) ?? new Map<string, ConditionDefinition>()
    conditional.set(subject, allowed.set(condition, known))
  }
  return {
    types: new Set(plain.filter(({ kind }) => kind === 'types').map(({ type }) => type)),
    wildcards: new Set(plain.filter(({ kind }) => kind === 'wildcards').map(({ type }) => type)),
    usersets: new Set(plain.filter(({ kind }) => kind === 'usersets').map(({ subject }) => subject)),
    conditional: conditional.size === 0 ? null : conditional,
  }
}

function expressionOf(rule: Userset, of: Of): Expression {
  const nested = (part: Userset): Expression => expressionOf(part, of)
  const { computedUserset, union, intersection, difference, tupleToUserset } = rule
  if (computedUserset !== undefined) return { kind: 'computed', relation: computedUserset.relation }
  if (union !== undefined) return { kind: 'union', parts: union.child.map(nested) }
  if (intersection !== undefined) return { kind: 'intersection', parts: intersection.child.map(nested) }
  if (difference !== undefined)
    return { kind: 'exclusion', base: nested(difference.base), subtract: nested(difference.subtract) }
  if (tupleToUserset === undefined) return { kind: 'direct', allowed: directOf(of) }
  const tupleset = tupleToUserset.tupleset.relation
  const parents = directOf({ ...of, relation: tupleset })
  return { kind: 'from', tupleset, relation: tupleToUserset.computedUserset.relation, parents }
}
