/**
 * Makes an import plan from a schema and relationships of SpiceDB: definitions become types, relations and permissions become
 * relations, caveats become conditions.
 */
import type { ModelDocument, Reference, Userset } from '../../engine/decide/language/document.ts'
import { objectNameIssue } from '../../engine/decide/language/object-names.ts'
import { parseInstantText } from '../../shared/base/instant.ts'
import { PdpError, type ValidationIssue } from '../../shared/domain/errors.ts'
import { parseTuple } from '../../shared/domain/names.ts'
import type { Tuple, TupleCondition } from '../../shared/domain/tuple.ts'
import { modelTextOf } from '../model-test/model-text.ts'
import { parsedObject, refused, typeNames } from './mapping.ts'
import { checkedPlan, type Plan } from './plan.ts'
import { type Allowed, type Definition, type Expression, parseSchema, type Schema } from './spicedb-schema.ts'

const REFUSALS_MAX = 100

/** `readTuple`: reads a relationship of the file, under the names it has here. Throws PdpError `request_invalid`. */
export type SpiceDbPlan = Plan & { readonly readTuple: (line: string) => Tuple }

export function planSpiceDb(schemaText: string, relationshipText: string): SpiceDbPlan {
  const schema = parseSchema(schemaText)
  const names = namesOf(schema)
  const readTuple = (line: string): Tuple => readRelationship(line, names)
  const { tuples, refusals: ofTuples } = readRelationships(relationshipText, readTuple)
  const read = modelOf(schema, names)
  const refusals = [...schema.issues.map(shown), ...read.refusals, ...ofTuples]
  const plan = {
    model: modelTextOf(read.document),
    tuples,
    notes: [...notesOf(schema, names), ...read.notes],
    refusals: refusals.slice(0, REFUSALS_MAX),
  }
  // A schema with missing parts is not checked: the same errors would come again in other words.
  const checked = refusals.length > 0 ? plan : checkedPlan(plan)
  // The operator does not know the lines of the generated model, so places in it are replaced.
  return { ...checked, refusals: checked.refusals.map((one) => one.replace(/^model \d+:\d+:/, 'schema:')), readTuple }
}

/** New names; a name that is not in the map stays as it is. */
type Names = { readonly types: ReadonlyMap<string, string>; readonly caveats: ReadonlyMap<string, string> }

function notesOf({ caveats, expires, readings }: Schema, names: Names): readonly string[] {
  const notes = [...names.types].map(([type, name]) => `definition "${type}" is called "${name}" here`)
  for (const { name } of caveats)
    notes.push(
      `caveat "${name}" is the condition "${conditionName(name, names)}" here: without the value of a parameter a question that depends on it is an error, whether or not the expression needs that value`,
    )
  if (expires) notes.push('"with expiration": here every relationship may expire, and none has to')
  return [...notes, ...readings]
}

const shown = ({ place, message }: ValidationIssue): string => `schema ${place}: ${message}`

/** New names for types with a meaning here, and for names with a prefix, since `/` is not allowed. */
function namesOf({ definitions, caveats }: Schema): Names {
  const types = new Set(definitions.map(({ name }) => name))
  const reserved = definitions.filter(({ name, relations, permissions }) => {
    const isEmpty = relations.size + permissions.size === 0
    return !isEmpty && (name === 'organization' || name === 'app')
  })
  const known = typeNames(types, new Set(reserved.map(({ name }) => name)))
  return {
    types: new Map([...known, ...plainNames(types, known.values())]),
    caveats: plainNames(new Set(caveats.map(({ name }) => name)), []),
  }
}

/** New names for invalid ones. */
function plainNames(names: ReadonlySet<string>, given: Iterable<string>): ReadonlyMap<string, string> {
  const used = new Set([...names, ...given])
  const found = new Map<string, string>()
  for (const name of names) {
    const plain = relationName(name.replaceAll('/', '_'))
    if (plain === name) continue
    let free = plain
    while (used.has(free)) free += '_'
    found.set(name, free)
    used.add(free)
  }
  return found
}

const typeName = (type: string, { types }: Names): string => types.get(type) ?? type
const conditionName = (caveat: string, { caveats }: Names): string =>
  caveats.get(caveat) ?? relationName(caveat.replaceAll('/', '_'))
/** A relation that has the name of an object member gets a `_`. SpiceDB allows no name that ends in `_`, so names stay distinct. */
const relationName = (relation: string): string => (objectNameIssue(relation) === null ? relation : `${relation}_`)

function modelOf(
  { definitions, caveats }: Schema,
  names: Names,
): { readonly document: ModelDocument; readonly notes: readonly string[]; readonly refusals: readonly string[] } {
  const notes: string[] = []
  const refusals: string[] = []
  const document: ModelDocument = {
    schema_version: '1.1',
    type_definitions: definitions.map((definition) => {
      const { name, relations, permissions } = definition
      const direct = [...relations.keys()].map((relation) => [relationName(relation), { this: {} }] as const)
      const computed = [...permissions].map(([permission, expression]) => {
        const of = { definition, definitions, permission, notes, refusals }
        return [relationName(permission), usersetOf(expression, of) ?? NOBODY] as const
      })
      const kinds = [...relations].map(([relation, allowed]) => {
        const references = new Map(allowed.map((one) => [JSON.stringify(one), referenceOf(one, names)]))
        return [relationName(relation), { directly_related_user_types: [...references.values()] }] as const
      })
      return {
        type: typeName(name, names),
        relations: Object.fromEntries([...direct, ...computed]),
        metadata: { relations: Object.fromEntries(kinds) },
      }
    }),
    conditions: Object.fromEntries(
      caveats.map(({ name, parameters, expression }) => {
        const types = Object.fromEntries(parameters.map((parameter) => [parameter.name, parameter.type]))
        const condition = conditionName(name, names)
        return [condition, { name: condition, expression, parameters: types }]
      }),
    ),
  }
  return { document, notes, refusals }
}

function referenceOf({ type, relation, caveat }: Allowed, names: Names): Reference {
  return {
    type: typeName(type, names),
    ...(relation === '*' ? { wildcard: {} } : relation === null ? {} : { relation: relationName(relation) }),
    ...(caveat === null ? {} : { condition: conditionName(caveat, names) }),
  }
}

const NOBODY: Userset = { union: { child: [] } }

type Of = {
  readonly definition: Definition
  readonly definitions: readonly Definition[]
  readonly permission: string
  readonly notes: string[]
  readonly refusals: string[]
}

/** The set of subjects; null: it is always empty. */
function usersetOf(expression: Expression, of: Of): Userset | null {
  if (expression.kind === 'nothing') return null
  if (expression.kind === 'name') return nameOf(expression.name, of)
  if (expression.kind === 'arrow') return arrowOf(expression, of)
  const parts = expression.parts.map((part) => usersetOf(part, of))
  const found = parts.filter((part) => part !== null)
  if (expression.kind === 'or') return found.length < 2 ? (found[0] ?? null) : { union: { child: found } }
  if (expression.kind === 'and') return found.length < parts.length ? null : { intersection: { child: found } }
  const [base = null, subtract = null] = parts
  return base === null || subtract === null ? base : { difference: { base, subtract } }
}

function nameOf(name: string, { definition, permission, refusals }: Of): Userset | null {
  if (name === 'self' && !definition.relations.has(name) && !definition.permissions.has(name))
    refusals.push(
      `schema: permission "${permission}" of "${definition.name}": "self", the object itself, has no translation`,
    )
  return { computedUserset: { relation: relationName(name) } }
}

/** An arrow follows the objects of a relation; here these cannot be usersets or wildcards. */
function arrowOf({ relation, permission }: Extract<Expression, { kind: 'arrow' }>, of: Of): Userset | null {
  const { definition, definitions, notes, refusals } = of
  const allowed = definition.relations.get(relation)
  const where = `permission "${of.permission}" of "${definition.name}"`
  // The usersets already are the subjects of the permission, so the arrow means the relation itself.
  if (allowed !== undefined && allowed.length > 0 && allowed.every((one) => one.relation === permission))
    return { computedUserset: { relation: relationName(relation) } }
  if (allowed === undefined) refusals.push(`schema: ${where}: "${relation}->" needs a relation of the same definition`)
  else if (allowed.some((one) => one.relation !== null))
    refusals.push(
      `schema: ${where}: "${relation}->" goes through a relation that allows more than objects; give these a relation of their own`,
    )
  const isKnown = definitions.some(
    ({ name, relations, permissions }) =>
      allowed?.some(({ type }) => type === name) === true && (relations.has(permission) || permissions.has(permission)),
  )
  // A missing type is refused by its name elsewhere.
  if (!isKnown && allowed?.every(({ type }) => definitions.some(({ name }) => name === type)) === true) {
    notes.push(`${where}: "${relation}->${permission}" finds nothing, and is left out`)
    return null
  }
  return {
    tupleToUserset: {
      tupleset: { relation: relationName(relation) },
      computedUserset: { relation: relationName(permission) },
    },
  }
}

/** Reads relationships, one per line. */
function readRelationships(
  text: string,
  readTuple: (line: string) => Tuple,
): { tuples: readonly Tuple[]; refusals: readonly string[] } {
  const tuples: Tuple[] = []
  const refusals: string[] = []
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    const trimmed = line.trim()
    if (trimmed === '' || trimmed.startsWith('//') || trimmed.startsWith('#')) continue
    try {
      tuples.push(readTuple(trimmed))
    } catch (err) {
      if (!(err instanceof PdpError)) throw err
      refusals.push(`line ${i + 1}: ${err.message}`)
    }
  }
  return { tuples, refusals }
}

const TRAITS = /^(\[.*?\])??(?:\[expiration:([^\]]+)\])?$/s
/** Matches the form of `zed relationship read`, which has blanks instead of the first two signs. */
const PRINTED = /^(\S+)\s+(\S+)\s+(\S+)$/

/** Reads `document:1#reader@user:ann[late:{"hour":9}][expiration:2040-01-01T00:00:00Z]`. */
function readRelationship(line: string, names: Names): Tuple {
  const at = line.indexOf('[')
  const name = (at < 0 ? line : line.slice(0, at)).trim()
  const traits = at < 0 ? '' : line.slice(at).trim()
  const [matched, caveat, expiry] = TRAITS.exec(traits) ?? []
  const expiresAtMs = expiry === undefined ? null : parseInstantText(expiry)
  if (matched === undefined || Number.isNaN(expiresAtMs)) throw refused(`${traits.slice(0, 80)} is not understood`)
  const { object, relation, subject } = parseTuple(name.replace(/#\.\.\.$/, '').replace(PRINTED, '$1#$2@$3'))
  return {
    object: named(object, names),
    relation: relationName(relation),
    subject: named(subject, names),
    expiresAtMs,
    ...(caveat !== undefined && { condition: readCaveat(caveat, names) }),
  }
}

/** The name with its type renamed: `type:id` or `type:id#relation`. */
function named(name: string, names: Names): string {
  const colon = name.indexOf(':')
  const hash = name.indexOf('#')
  const object = `${typeName(name.slice(0, colon), names)}${name.slice(colon, hash < 0 ? undefined : hash)}`
  return hash < 0 ? object : `${object}#${relationName(name.slice(hash + 1))}`
}

/** Reads `[late]` or `[late:{"hour":9}]`. */
function readCaveat(text: string, names: Names): TupleCondition {
  const [, name, json = '{}'] = /^\[([A-Za-z_][\w/]*)(?::(.*))?\]$/s.exec(text) ?? []
  const context = parsedObject(json)
  if (name === undefined || context === null) throw refused(`${text.slice(0, 80)} is not a caveat with its context`)
  return { name: conditionName(name, names), context }
}
