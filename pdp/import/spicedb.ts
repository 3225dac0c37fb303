/** A schema and relationships of SpiceDB as a plan: definitions become types, relations and permissions become relations. */
import { PdpError, type ValidationIssue } from '../domain/errors.ts'
import { parseTuple } from '../domain/names.ts'
import type { Tuple } from '../domain/tuple.ts'
import { renamed, type TypeNames, typeNames } from './mapping.ts'
import { checkedPlan, type Plan } from './plan.ts'
import { type Allowed, type Definition, type Expression, parseSchema, type Schema } from './spicedb-schema.ts'

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
    notes: [...names].map(([type, name]) => `definition "${type}" is called "${name}" here`),
    refusals: refusals.slice(0, REFUSALS_MAX),
  }
  // What is missing of the schema would be told again, in other words.
  return refusals.length > 0 ? plan : checkedPlan(plan)
}

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

function modelOf({ definitions }: Schema, names: TypeNames): string {
  const lines = ['model', '  schema 1.1']
  for (const { name, relations, permissions } of definitions) {
    lines.push(`type ${names.get(name) ?? name}`)
    if (relations.size + permissions.size > 0) lines.push('  relations')
    for (const [relation, allowed] of relations)
      lines.push(`    define ${relation}: [${[...new Set(allowed.map((one) => allowedText(one, names)))].join(', ')}]`)
    for (const [permission, expression] of permissions)
      lines.push(`    define ${permission}: ${expressionText(expression, false)}`)
  }
  return `${lines.join('\n')}\n`
}

function allowedText({ type, relation }: Allowed, names: TypeNames): string {
  const name = names.get(type) ?? type
  if (relation === null) return name
  return relation === '*' ? `${name}:*` : `${name}#${relation}`
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
    const [, name = '', caveat = ''] = /^([^[]*?)\s*((?:\[.*\])?)$/.exec(trimmed) ?? []
    const expiry = /^\[expiration:([^\]]+)\]$/.exec(caveat)?.[1]
    const expiresAtMs = expiry === undefined ? null : Date.parse(expiry)
    if (caveat !== '' && (expiresAtMs === null || Number.isNaN(expiresAtMs))) {
      refusals.push(`line ${i + 1}: ${caveat.slice(0, 80)} has no translation yet`)
      continue
    }
    try {
      const { object, relation, subject } = parseTuple(name.replace(/#\.\.\.$/, ''))
      tuples.push({ object: renamed(object, names), relation, subject: renamed(subject, names), expiresAtMs })
    } catch (error) {
      if (!(error instanceof PdpError)) throw error
      refusals.push(`line ${i + 1}: ${error.message}`)
    }
  }
  return { tuples, refusals }
}
