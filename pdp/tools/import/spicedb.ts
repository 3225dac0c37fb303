/**
 * A schema and relationships of SpiceDB as a plan: definitions become types, relations and permissions become relations, and
 * caveats become conditions.
 */
import { PdpError, type ValidationIssue } from '../../shared/domain/errors.ts'
import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts'
import { parseTuple } from '../../shared/domain/names.ts'
import type { Tuple, TupleCondition } from '../../shared/domain/tuple.ts'
import { refused, renamed, type TypeNames, typeNames } from './mapping.ts'
import { checkedPlan, type Plan } from './plan.ts'
import {
  type Allowed,
  type Caveat,
  type Definition,
  type Expression,
  parseSchema,
  type Schema,
} from './spicedb-schema.ts'

const REFUSALS_MAX = 100

export function planSpiceDb(schemaText: string, relationshipText: string): Plan {
  const schema = parseSchema(schemaText)
  const names = namesOf(schema)
  const { tuples, refusals: ofTuples } = readRelationships(relationshipText, names)
  const refusals = [
    ...schema.issues.map(shown),
    ...schema.definitions.flatMap((definition) => arrowRefusals(definition)),
    ...ofTuples,
  ]
  const plan = {
    model: modelOf(schema, names),
    tuples,
    notes: notesOf(schema, names),
    refusals: refusals.slice(0, REFUSALS_MAX),
  }
  // A missing part of the schema would be told again, in other words.
  return refusals.length > 0 ? plan : checkedPlan(plan)
}

function notesOf({ caveats, expires }: Schema, names: TypeNames): readonly string[] {
  const notes = [...names].map(([type, name]) => `definition "${type}" is called "${name}" here`)
  for (const { name } of caveats)
    notes.push(
      `caveat "${name}" is the condition "${conditionName(name)}" here: without the value of a parameter a question that depends on it is an error, whether or not the expression needs that value`,
    )
  if (expires) notes.push('"with expiration": here every relationship may expire, and none has to')
  return notes
}

/** The language takes no `/` in names. */
const conditionName = (caveat: string): string => caveat.replaceAll('/', '_')

const shown = ({ place, message }: ValidationIssue): string => `schema ${place}: ${message}`

/** Types of ours, and names of a prefix, whose `/` the language does not take. */
function namesOf({ definitions }: Schema): TypeNames {
  const types = new Set(definitions.map(({ name }) => name))
  const reserved = definitions.filter(({ name, relations, permissions }) => {
    const isEmpty = relations.size + permissions.size === 0
    return !isEmpty && (name === 'organization' || name === 'app')
  })
  const names = new Map(typeNames(types, new Set(reserved.map(({ name }) => name))))
  for (const type of types) {
    if (!type.includes('/')) continue
    let name = type.replaceAll('/', '_')
    while (types.has(name) || [...names.values()].includes(name)) name += '_'
    names.set(type, name)
  }
  return names
}

/** An arrow looks at the objects that a relation names; here these cannot be usersets or wildcards. */
function arrowRefusals({ name, relations, permissions }: Definition): readonly string[] {
  const refusals: string[] = []
  const visit = (permission: string, expression: Expression): void => {
    if (expression.kind === 'arrow') {
      const allowed = relations.get(expression.relation)
      const where = `schema: permission "${permission}" of "${name}"`
      if (allowed === undefined)
        refusals.push(`${where}: "${expression.relation}->" needs a relation of the same definition`)
      else if (allowed.some(({ relation }) => relation !== null))
        refusals.push(`${where}: "${expression.relation}->" goes through a relation that allows more than objects`)
    } else if (expression.kind !== 'name') for (const part of expression.parts) visit(permission, part)
  }
  for (const [permission, expression] of permissions) visit(permission, expression)
  return refusals
}

function modelOf({ definitions, caveats }: Schema, names: TypeNames): string {
  const lines = ['model', '  schema 1.1']
  for (const { name, relations, permissions } of definitions) {
    lines.push(`type ${names.get(name) ?? name}`)
    if (relations.size + permissions.size > 0) lines.push('  relations')
    for (const [relation, allowed] of relations)
      lines.push(`    define ${relation}: [${[...new Set(allowed.map((one) => allowedText(one, names)))].join(', ')}]`)
    for (const [permission, expression] of permissions)
      lines.push(`    define ${permission}: ${expressionText(expression, false)}`)
  }
  return `${[...lines, ...caveats.map(conditionText)].join('\n')}\n`
}

function conditionText({ name, parameters, expression }: Caveat): string {
  const declared = parameters.map((parameter) => `${parameter.name}: ${parameter.type}`).join(', ')
  return `condition ${conditionName(name)}(${declared}) {\n  ${expression}\n}`
}

function allowedText({ type, relation, caveat }: Allowed, names: TypeNames): string {
  const name = names.get(type) ?? type
  const subject = relation === null ? name : relation === '*' ? `${name}:*` : `${name}#${relation}`
  return caveat === null ? subject : `${subject} with ${conditionName(caveat)}`
}

function expressionText(expression: Expression, inner: boolean): string {
  if (expression.kind === 'name') return expression.name
  if (expression.kind === 'arrow') return `${expression.permission} from ${expression.relation}`
  const text = expression.parts.map((part) => expressionText(part, true)).join(` ${expression.kind} `)
  return inner ? `(${text})` : text
}

/** A relationship on each line, as `zed` writes them. */
function readRelationships(text: string, names: TypeNames): { tuples: readonly Tuple[]; refusals: readonly string[] } {
  const tuples: Tuple[] = []
  const refusals: string[] = []
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    const trimmed = line.trim()
    if (trimmed === '' || trimmed.startsWith('//') || trimmed.startsWith('#')) continue
    try {
      tuples.push(readRelationship(trimmed, names))
    } catch (err) {
      if (!(err instanceof PdpError)) throw err
      refusals.push(`line ${i + 1}: ${err.message}`)
    }
  }
  return { tuples, refusals }
}

const TRAITS = /^(\[.*?\])??(?:\[expiration:([^\]]+)\])?$/s

/** `document:1#reader@user:ann[late:{"hour":9}][expiration:2040-01-01T00:00:00Z]`. */
function readRelationship(line: string, names: TypeNames): Tuple {
  const at = line.indexOf('[')
  const name = (at < 0 ? line : line.slice(0, at)).trim()
  const traits = at < 0 ? '' : line.slice(at)
  const [matched, caveat, expiry] = TRAITS.exec(traits) ?? []
  const expiresAtMs = expiry === undefined ? null : Date.parse(expiry)
  if (matched === undefined || Number.isNaN(expiresAtMs)) throw refused(`${traits.slice(0, 80)} is not understood`)
  const { object, relation, subject } = parseTuple(name.replace(/#\.\.\.$/, ''))
  return {
    ...{ object: renamed(object, names), relation, subject: renamed(subject, names), expiresAtMs },
    ...(caveat !== undefined && { condition: readCaveat(caveat) }),
  }
}

/** `[late]` or `[late:{"hour":9}]`. */
function readCaveat(text: string): TupleCondition {
  const [, name, json = '{}'] = /^\[([A-Za-z_][\w/]*)(?::(.*))?\]$/s.exec(text) ?? []
  const context = parsedObject(json)
  if (name === undefined || context === null) throw refused(`${text.slice(0, 80)} is not a caveat with its context`)
  return { name: conditionName(name), context }
}

function parsedObject(json: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(json)
    return isJsonObject(value) ? value : null
  } catch {
    return null
  }
}
