/** Finds parts of a model that cannot be evaluated or can never hold. Each issue has a position and a replacement. */

import { didYouMean } from '../../../shared/base/nearest.ts'
import { isRelation, isType } from '../../../shared/domain/names.ts'
import type { ModelDocument, Reference, TypeDefinition, Userset } from './document.ts'
import { objectNameIssue } from './object-names.ts'
import type { Spot } from './places.ts'

export type DocumentIssue = { readonly spot: Spot; readonly message: string }
type Types = ReadonlyMap<string, TypeDefinition>

/** `builtIn`: types that the model may name without declaring them. */
export function documentIssues(document: ModelDocument, builtIn: readonly TypeDefinition[]): readonly DocumentIssue[] {
  const { schema_version: schema, type_definitions: definitions, conditions } = document
  const types: Types = new Map([...builtIn, ...definitions].map((definition) => [definition.type, definition]))
  const issues: DocumentIssue[] = []
  if (!['1.1', '1.2'].includes(schema))
    issues.push({
      spot: { word: 'schema' },
      message: 'the schema is not one that is known here; write "  schema 1.1" below "model"',
    })
  if (definitions.length === 0)
    issues.push({ spot: {}, message: 'the model declares no type; add one, such as "type doc"' })
  for (const [at, { type }] of definitions.entries()) {
    if (definitions.findIndex((other) => other.type === type) !== at)
      issues.push({
        spot: { type },
        message: `type "${type}" is declared twice; join its relations in one declaration`,
      })
    issues.push(...nameIssues(type, isType(type) ? null : 254, { type }))
  }
  for (const name of Object.keys(conditions)) issues.push(...nameIssues(name, null, { condition: name }))
  const found = definitions.flatMap((definition) => relationIssues(definition, { types, conditions }))
  issues.push(...found)
  return found.length > 0 ? issues : [...issues, ...deadIssues(types)]
}

/** `bytesMax`: the limit on the length of the name, when the name is invalid; null when it is valid. */
function nameIssues(name: string, bytesMax: number | null, spot: Spot): readonly DocumentIssue[] {
  const taken = objectNameIssue(name)
  if (taken !== null) return [{ spot, message: taken }]
  if (bytesMax === null) return []
  const reason =
    Buffer.byteLength(name) > bytesMax
      ? `is longer than ${bytesMax} bytes`
      : 'is empty, or has white space or one of : # @ *'
  const shown = name.length > 80 ? `${name.slice(0, 80)}…` : name
  return [{ spot, message: `the name "${shown}" cannot be one: it ${reason}` }]
}

type Scope = { readonly types: Types; readonly conditions: ModelDocument['conditions'] }

function relationIssues(definition: TypeDefinition, scope: Scope): readonly DocumentIssue[] {
  const { type, relations, metadata } = definition
  return Object.entries(relations).flatMap(([relation, rule]) => {
    const of = ` (relation "${relation}" of type "${type}")`
    const at = (word: string | undefined, message: string): DocumentIssue => ({
      spot: { type, relation, ...(word === undefined ? {} : { word }) },
      message: `${message}${of}`,
    })
    const references = referencesOf(definition, relation)
    const issues = [
      ...nameIssues(relation, isRelation(relation) ? null : 64, { type, relation }),
      ...ruleIssues(rule, definition, { scope, at }),
      ...references.flatMap((reference) => referenceIssues(reference, { scope, at })),
    ]
    const assignable = hasThis(rule)
    if (assignable && references.length === 0)
      issues.push(
        at(undefined, 'the brackets are empty; name the types of subjects that a tuple may have, such as [user]'),
      )
    if (!assignable && (metadata.relations[relation]?.directly_related_user_types.length ?? 0) > 0)
      issues.push(at(undefined, 'its rule does not say where the subjects of its own tuples count: "this" is missing'))
    return issues
  })
}

export const referencesOf = ({ metadata }: TypeDefinition, relation: string): readonly Reference[] =>
  Object.hasOwn(metadata.relations, relation) ? (metadata.relations[relation]?.directly_related_user_types ?? []) : []

type Context = { readonly scope: Scope; readonly at: (word: string | undefined, message: string) => DocumentIssue }

function referenceIssues(reference: Reference, { scope, at }: Context): readonly DocumentIssue[] {
  const { type, relation, wildcard, condition } = reference
  const issues: DocumentIssue[] = []
  const known = scope.types.get(type)
  if (known === undefined) issues.push(at(type, `there is no type "${type}"${didYouMean(type, scope.types.keys())}`))
  else if (relation !== undefined && !Object.hasOwn(known.relations, relation))
    issues.push(
      at(relation, `type "${type}" has no relation "${relation}"${didYouMean(relation, Object.keys(known.relations))}`),
    )
  if (relation !== undefined && wildcard !== undefined)
    issues.push(at(type, `"${type}" has both * and a relation; write one of them`))
  if (condition !== undefined && !Object.hasOwn(scope.conditions, condition))
    issues.push(
      at(
        condition,
        `there is no condition "${condition}"; define it below the types, or remove "with ${condition}"${didYouMean(condition, Object.keys(scope.conditions))}`,
      ),
    )
  return issues
}

function ruleIssues(rule: Userset, definition: TypeDefinition, context: Context): readonly DocumentIssue[] {
  const { at, scope } = context
  const inner = (part: Userset): readonly DocumentIssue[] => ruleIssues(part, definition, context)
  const has = (relation: string): boolean => Object.hasOwn(definition.relations, relation)
  const unknown = (relation: string): DocumentIssue =>
    at(relation, `there is no relation "${relation}"${didYouMean(relation, Object.keys(definition.relations))}`)
  if (rule.computedUserset !== undefined) {
    const { relation } = rule.computedUserset
    return has(relation) ? [] : [unknown(relation)]
  }
  if (rule.tupleToUserset === undefined) return partsOf(rule).flatMap(inner)
  const tupleset = rule.tupleToUserset.tupleset.relation
  const { relation } = rule.tupleToUserset.computedUserset
  if (!has(tupleset)) return [unknown(tupleset)]
  const parents = referencesOf(definition, tupleset)
  if (
    definition.relations[tupleset]?.this === undefined ||
    parents.some((parent) => parent.relation !== undefined || parent.wildcard !== undefined)
  )
    return [
      at(tupleset, `"${tupleset}" comes after "from", so its own rule must be a list of types alone, such as [folder]`),
    ]
  if (parents.some(({ type }) => Object.hasOwn(scope.types.get(type)?.relations ?? {}, relation))) return []
  // A type that does not exist has an issue of its own.
  if (parents.length === 0 || parents.some(({ type }) => !scope.types.has(type))) return []
  const named = parents.map(({ type }) => `"${type}"`).join(', ')
  return [
    at(
      relation,
      `"${relation} from ${tupleset}" finds nothing: type ${named}, which "${tupleset}" names, has no relation "${relation}"`,
    ),
  ]
}

export const partsOf = ({ union, intersection, difference }: Userset): readonly Userset[] =>
  union?.child ?? intersection?.child ?? (difference === undefined ? [] : [difference.base, difference.subtract])

export const hasThis = (rule: Userset): boolean => rule.this !== undefined || partsOf(rule).some(hasThis)

/** Relations that no subject can ever have, because their rules only lead back to them. An empty union is intended, so it is no issue. */
function deadIssues(types: Types): readonly DocumentIssue[] {
  const alive = new Set<string>()
  let waiting = [...types].flatMap(([type, definition]) =>
    Object.entries(definition.relations).map(([relation, rule]) => ({ type, relation, rule, definition })),
  )
  for (let before = -1; before !== waiting.length; ) {
    before = waiting.length
    waiting = waiting.filter((one) => {
      if (!canHold(one.rule, one, alive)) return true
      alive.add(`${one.type}#${one.relation}`)
      return false
    })
  }
  return waiting.map(({ type, relation }) => ({
    spot: { type, relation },
    message: `nobody can ever have relation "${relation}" of type "${type}", since its rule leads back to itself alone; add the subjects that a tuple may name, such as [user]`,
  }))
}

function canHold(
  rule: Userset,
  of: { readonly relation: string; readonly definition: TypeDefinition },
  alive: ReadonlySet<string>,
): boolean {
  const { relation, definition } = of
  const inner = (part: Userset): boolean => canHold(part, of, alive)
  if (rule.this !== undefined)
    return referencesOf(definition, relation).some(
      ({ type, relation: set }) => set === undefined || alive.has(`${type}#${set}`),
    )
  if (rule.computedUserset !== undefined) return alive.has(`${definition.type}#${rule.computedUserset.relation}`)
  if (rule.union !== undefined) return rule.union.child.length === 0 || rule.union.child.some(inner)
  if (rule.intersection !== undefined) return rule.intersection.child.every(inner)
  if (rule.difference !== undefined) return inner(rule.difference.base) && inner(rule.difference.subtract)
  const { tupleset, computedUserset } = rule.tupleToUserset ?? {}
  return referencesOf(definition, tupleset?.relation ?? '').some(({ type }) =>
    alive.has(`${type}#${computedUserset?.relation}`),
  )
}
