/** Models in the JSON of OpenFGA's API. The language is another notation for the same models, except for a few that only JSON has. */
import { createRequire } from 'node:module'
import type Openfga from '@openfga/syntax-transformer'
import { PdpError, type ValidationIssue } from '../../../shared/domain/errors.ts'
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts'
import type { ConditionDefinition } from '../conditions/condition.ts'
import type { ParameterReference } from '../conditions/parameters.ts'
import { syntaxMessage } from './model-messages.ts'
import { objectNameIssues } from './object-names.ts'

const require = createRequire(import.meta.url)

/** The parser. It is loaded at the first call, because it takes a sixth of the time to load the whole program. */
export const loadOpenfga = (): typeof Openfga => require('@openfga/syntax-transformer')

export type Userset = {
  readonly this?: object
  readonly computedUserset?: { readonly relation: string }
  readonly tupleToUserset?: {
    readonly tupleset: { readonly relation: string }
    readonly computedUserset: { readonly relation: string }
  }
  readonly union?: { readonly child: readonly Userset[] }
  readonly intersection?: { readonly child: readonly Userset[] }
  readonly difference?: { readonly base: Userset; readonly subtract: Userset }
}
/** A subject that a relation's tuples may name, perhaps by `relation` of its object and under a `condition`. */
export type Reference = {
  readonly type: string
  readonly relation?: string
  readonly wildcard?: object
  readonly condition?: string
}
export type TypeDefinition = {
  readonly type: string
  readonly relations: { readonly [relation: string]: Userset }
  readonly metadata: {
    readonly relations: { readonly [relation: string]: { readonly directly_related_user_types: readonly Reference[] } }
  }
}
export type ModelDocument = {
  readonly schema_version: string
  readonly type_definitions: readonly TypeDefinition[]
  readonly conditions: { readonly [name: string]: ConditionDefinition }
}

/** The deepest nesting of rules: a deeper one could exhaust the stack. */
const NESTING_MAX = 100

export const isJsonModel = (text: string): boolean => text.trimStart().startsWith('{')

/** Reads a model's text. Throws PdpError `request_invalid` with all issues, each with its `line:column`. */
export function readDocument(text: string): ModelDocument {
  return isJsonModel(text) ? documentOf(parseJson(text)) : readLanguage(text)
}

export function invalidModel(issues: readonly ValidationIssue[]): PdpError {
  const said = issues.map(({ place, message }) => `${place} ${message}`).join('; ')
  return new PdpError('request_invalid', `the model is not valid: ${said}`, { issues })
}

function readLanguage(text: string): ModelDocument {
  const taken = objectNameIssues(text)
  if (taken.length > 0) throw invalidModel(taken)
  return documentOf(parsed(() => loadOpenfga().transformer.transformDSLToJSONObject(text), text))
}

/** Turns an error of the language's parser into a PdpError `request_invalid` with every issue. */
export function parsed<T>(parse: () => T, text: string): T {
  try {
    return parse()
  } catch (err) {
    throw invalidModel(issuesOf(err, text))
  }
}

/** The issues of a parser error. The parser counts lines and columns from 0. */
function issuesOf(error: unknown, text: string): readonly ValidationIssue[] {
  type SyntaxIssue = { msg?: string; line?: { start?: number }; column?: { start?: number } }
  const found = (error as { errors?: readonly SyntaxIssue[] }).errors
  if (!Array.isArray(found) || found.length === 0)
    return [{ place: '1:1', message: 'this is not a model in the OpenFGA language, schema 1.1' }]
  return found.map(({ msg = '', line, column }: SyntaxIssue) => {
    const number = (line?.start ?? 0) + 1
    return { place: `${number}:${(column?.start ?? 0) + 1}`, message: syntaxMessage(msg, text, number) }
  })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (err) {
    const said = err instanceof Error ? err.message : ''
    // The parser gives no position for a text that ends too early.
    const lines = text.split('\n')
    const [, line = lines.length, column = (lines.at(-1)?.length ?? 0) + 1] = /line (\d+) column (\d+)/.exec(said) ?? []
    throw invalidModel([{ place: `${line}:${column}`, message: 'this is not JSON' }])
  }
}

/** Reads the members that have a meaning; a server may add others. Throws PdpError `request_invalid`. */
export function documentOf(value: unknown): ModelDocument {
  const model = objectAt(value, 'the model')
  const conditions = Object.entries(objectAt(model.conditions ?? {}, 'conditions'))
  return {
    schema_version: textAt(model.schema_version ?? '', 'schema_version'),
    type_definitions: listAt(model.type_definitions ?? [], 'type_definitions').map(readType),
    conditions: Object.fromEntries(conditions.map(([name, definition]) => [name, readCondition(name, definition)])),
  }
}

function readType(value: unknown, at: number): TypeDefinition {
  const definition = objectAt(value, `type_definitions[${at}]`)
  const type = textAt(definition.type ?? '', `type_definitions[${at}].type`)
  const of = `type ${JSON.stringify(type)}`
  const metadata = objectAt(definition.metadata ?? {}, `metadata of ${of}`)
  const kinds = Object.entries(objectAt(metadata.relations ?? {}, `metadata of ${of}`))
  const relations = Object.entries(objectAt(definition.relations ?? {}, `relations of ${of}`))
  const relationOf = (relation: string): string => `relation ${JSON.stringify(relation)} of ${of}`
  return {
    type,
    relations: Object.fromEntries(relations.map(([name, rule]) => [name, readUserset(rule, relationOf(name), 0)])),
    metadata: {
      relations: Object.fromEntries(
        kinds.flatMap(([name, known]) => {
          const references = objectAt(known ?? {}, relationOf(name)).directly_related_user_types ?? []
          const read = listAt(references, relationOf(name)).map((one) => readReference(one, relationOf(name)))
          return read.length === 0 ? [] : [[name, { directly_related_user_types: read }]]
        }),
      ),
    },
  }
}

/** Reads a rule. Each name may have two forms, as in Protobuf's JSON. */
function readUserset(value: unknown, of: string, depth: number): Userset {
  if (depth > NESTING_MAX) throw shapeless(`${of} is nested more than ${NESTING_MAX} levels deep`)
  const rule = objectAt(value, of)
  const { union, intersection, difference } = rule
  const computed = rule.computedUserset ?? rule.computed_userset
  const parents = rule.tupleToUserset ?? rule.tuple_to_userset
  const inner = (one: unknown): Userset => readUserset(one, of, depth + 1)
  const children = (operator: unknown): { child: readonly Userset[] } => ({
    child: listAt(objectAt(operator, of).child ?? [], of).map(inner),
  })
  const relationIn = (one: unknown): { relation: string } => ({
    relation: textAt(objectAt(one ?? {}, of).relation ?? '', of),
  })
  if (rule.this != null) return { this: {} }
  if (computed != null) return { computedUserset: relationIn(computed) }
  if (union != null) return { union: children(union) }
  if (intersection != null) return { intersection: children(intersection) }
  if (difference != null) {
    const { base, subtract } = objectAt(difference, of)
    return { difference: { base: inner(base), subtract: inner(subtract) } }
  }
  if (parents == null) throw shapeless(`${of} has a rewrite that this version does not know`)
  const { tupleset, computedUserset, computed_userset } = objectAt(parents, of)
  return {
    tupleToUserset: {
      tupleset: relationIn(tupleset),
      computedUserset: relationIn(computedUserset ?? computed_userset),
    },
  }
}

function readReference(value: unknown, of: string): Reference {
  const { type, relation, wildcard, condition } = objectAt(value, of)
  return {
    type: textAt(type ?? '', of),
    ...(relation == null || relation === '' ? {} : { relation: textAt(relation, of) }),
    ...(wildcard == null ? {} : { wildcard: {} }),
    ...(condition == null || condition === '' ? {} : { condition: textAt(condition, of) }),
  }
}

function readCondition(name: string, value: unknown): ConditionDefinition {
  const of = `condition ${JSON.stringify(name)}`
  const definition = objectAt(value, of)
  const expression = textAt(definition.expression ?? '', of)
  const given = Object.entries(objectAt(definition.parameters ?? {}, of))
  const parameters = Object.fromEntries(given.map(([parameter, type]) => [parameter, readParameter(type, of, 0)]))
  if (definition.name != null && definition.name !== name)
    throw shapeless(`${of} has another name inside: ${JSON.stringify(definition.name)}`)
  return { name, expression, parameters }
}

/** Reads a parameter's type. Whether the type exists is checked when conditions are compiled. */
function readParameter(value: unknown, of: string, depth: number): ParameterReference {
  if (depth > NESTING_MAX) throw shapeless(`${of} has a type that is nested more than ${NESTING_MAX} levels deep`)
  const { type_name, generic_types } = objectAt(value, of)
  const inner = listAt(generic_types ?? [], of).map((one) => readParameter(one, of, depth + 1))
  return { type_name: textAt(type_name ?? '', of), ...(inner.length === 0 ? {} : { generic_types: inner }) }
}

function objectAt(value: unknown, what: string): JsonObject {
  if (isJsonObject(value)) return value
  throw shapeless(`${what} is not an object`)
}

function listAt(value: unknown, what: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw shapeless(`${what} has something that is not a list where one belongs`)
}

function textAt(value: unknown, what: string): string {
  if (typeof value === 'string') return value
  throw shapeless(`${what} has something that is not text where a name belongs`)
}

const shapeless = (message: string): PdpError => invalidModel([{ place: '1:1', message }])
