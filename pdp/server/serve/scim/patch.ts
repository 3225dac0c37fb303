/** Changes a resource by PATCH (RFC 7644 section 3.5.2), also in the spellings of Entra ID and Okta. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../shared/domain/json.ts'
import { type Attribute, named, type ResourceType, USER_SCHEMA, valuesMax } from './attributes.ts'
import { type Budget, createBudget } from './budget.ts'
import { readValue } from './document.ts'
import { ScimError } from './errors.ts'
import { type AttributePath, type Filter, parsePatchPath, termsIn } from './filter.ts'
import { matchesValue, memberOf } from './match.ts'
import { createMemberValues, type MemberValues, soleValueIn } from './members-patch.ts'
import { listOf, merged, objectOr, onePrimary, without } from './values.ts'

const OPERATIONS_MAX = 1_000
/** How many values one PATCH compares, for each term of a filter, or copies: all this happens under the locks of the organization. */
const WORK_MAX = 200_000
const OPS = ['add', 'replace', 'remove'] as const
type Operation = {
  readonly op: (typeof OPS)[number]
  readonly path: string | null
  readonly value: JsonValue | undefined
}

/** The resource after all operations. Throws ScimError, and then no operation counts. */
export function patched(resource: JsonObject, body: JsonValue | undefined, type: ResourceType): JsonObject {
  const budget = createBudget(WORK_MAX, 'the PATCH')
  let result: JsonObject = resource
  let members: MemberValues | null = null
  for (const operation of operationsIn(body)) {
    const { dropped, steps } = stepsOf(operation, type)
    if (dropped !== null) result = withMember(result, dropped, null)
    for (const step of steps) {
      const change = changeOf(step, type)
      if (change === null) continue
      if (isOfMembers(change)) {
        members ??= createMemberValues(spent(budget, listOf(result.members ?? null)))
        changeMembers(members, change, budget)
        continue
      }
      if (members !== null) result = withMember(result, 'members', [...spent(budget, members.list())])
      members = null
      result = applied(result, change, budget)
    }
  }
  return members === null ? result : withMember(result, 'members', [...members.list()])
}

function spent(budget: Budget, values: readonly JsonValue[]): readonly JsonValue[] {
  budget.spend(values.length)
  return values
}

type Step = Operation & { readonly path: string }

/** `dropped`: the extension that is removed before the steps. */
function stepsOf(operation: Operation, type: ResourceType): { dropped: string | null; steps: readonly Step[] } {
  const { path, op } = operation
  const { schema = null } = type.extension ?? {}
  if (schema !== null && path?.toLowerCase() === schema.toLowerCase()) {
    const dropped = op === 'add' ? null : schema
    if (op === 'remove') return { dropped, steps: [] }
    return { dropped, steps: spread({ op, path: null, value: { [schema]: required(operation, schema) } }, type) }
  }
  return { dropped: null, steps: path === null ? spread(operation, type) : [{ ...operation, path }] }
}

function operationsIn(body: JsonValue | undefined): readonly Operation[] {
  const list = isJsonObject(body) ? memberOf(body, 'Operations') : undefined
  if (!Array.isArray(list) || list.length === 0) throw new ScimError('invalidSyntax', 'the body has no Operations')
  if (list.length > OPERATIONS_MAX)
    throw new ScimError('invalidSyntax', `there are more than ${OPERATIONS_MAX} operations`)
  return list.map((one: JsonValue): Operation => {
    if (!isJsonObject(one)) throw new ScimError('invalidSyntax', 'an operation is not an object')
    const word = memberOf(one, 'op')
    const op = OPS.find((known) => typeof word === 'string' && known === word.toLowerCase())
    if (op === undefined) throw new ScimError('invalidSyntax', 'op must be add, replace or remove')
    const path = memberOf(one, 'path') ?? null
    if (path !== null && typeof path !== 'string') throw new ScimError('invalidPath', 'path is not a text')
    return { op, path: path === '' ? null : path, value: memberOf(one, 'value') }
  })
}

/**
 * True if the request ends the person's activity, even if it is otherwise invalid; the last operation counts. Entra ID sends texts, with
 * `op` and names in any case; Okta sends no path; a PUT is a single value.
 */
export function deactivates(method: string, body: JsonValue | undefined): boolean {
  if (!isJsonObject(body)) return false
  const operations: JsonValue | undefined =
    method === 'PUT' ? [{ op: 'replace', value: body }] : memberOf(body, 'Operations')
  let active: JsonValue | undefined
  for (const operation of Array.isArray(operations) ? operations.filter(isJsonObject) : []) {
    const [op, path, value] = ['op', 'path', 'value'].map((name) => memberOf(operation, name))
    if (typeof op !== 'string' || !/^(?:add|replace)$/i.test(op)) continue
    const values =
      typeof path === 'string' && path !== '' ? { [path]: value ?? null } : isJsonObject(value) ? value : {}
    for (const [name, said] of Object.entries(values)) if (ACTIVE.includes(name.toLowerCase())) active = said
  }
  return active === false || (typeof active === 'string' && /^false$/i.test(active))
}
const ACTIVE = ['active', `${USER_SCHEMA.toLowerCase()}:active`]

/** Without a path, each member of the value is a change of its own. Okta puts paths such as `name.givenName` into the members' names. */
function spread({ op, value }: Operation, type: ResourceType): readonly Step[] {
  if (op === 'remove') throw new ScimError('noTarget', 'remove needs a path')
  if (!isJsonObject(value)) throw new ScimError('invalidValue', 'without a path the value must be an object')
  return Object.entries(value).flatMap(([path, each]) => {
    const isExtension = path.toLowerCase() === type.extension?.schema.toLowerCase()
    if (isExtension && isJsonObject(each))
      return Object.entries(each).flatMap(([name, inner]) =>
        // Some clients send an extension as a resource with `schemas` of its own.
        name.toLowerCase() === 'schemas' ? [] : [{ op, path: `${path}:${name}`, value: inner }],
      )
    return isKnown(path, type) ? [{ op, path, value: each }] : []
  })
}

/** False for a path that we do not have, whose change is ignored. */
function isKnown(path: string, type: ResourceType): boolean {
  if (/^(?:schemas|id|meta)$/i.test(path)) return false
  try {
    return targetOf(parsePatchPath(path).path, type) !== null
  } catch {
    return false
  }
}

type Target = { readonly attribute: Attribute; readonly schema: string | null }

function targetOf({ schema, attribute }: AttributePath, type: ResourceType): Target | null {
  const { extension } = type
  const isExtended = extension !== null && schema === extension.schema.toLowerCase()
  if (schema !== null && schema !== type.schema.toLowerCase() && !isExtended) return null
  const found = named(isExtended ? extension.attributes : type.attributes, attribute)
  return found === null ? null : { attribute: found, schema: isExtended ? extension.schema : null }
}

type Change = Step & Target & { readonly filter: Filter | null; readonly sub: string | null }

/** The change of a step; null if its attribute is not kept: then it is ignored, as in a whole resource (RFC 7644 section 3.3). */
function changeOf(step: Step, type: ResourceType): Change | null {
  const { path, filter } = parsePatchPath(step.path)
  const target = targetOf(path, type)
  if (target === null) return null
  const { subAttributes } = target.attribute
  if (path.sub !== null && subAttributes !== undefined && named(subAttributes, path.sub) === null) return null
  requireMutable(target.attribute, step)
  return { ...step, ...target, filter, sub: path.sub }
}

/** True for an operation that directories send by the hundreds: adding or removing members of a group. */
function isOfMembers({ attribute, op, filter, sub, value }: Change): boolean {
  if (attribute.name !== 'members' || sub !== null || op === 'replace') return false
  return filter === null ? value !== undefined : op === 'remove' && soleValueIn(filter) !== null
}

function changeMembers(members: MemberValues, change: Change, budget: Budget): void {
  const text = soleValueIn(change.filter)
  budget.spend(1)
  if (text !== null) members.removeEqual(text)
  else {
    const values = spent(budget, valuesIn(change))
    if (change.op === 'add') members.add(values)
    else members.remove(values)
  }
  requireCount(change.attribute, members.size)
}

function applied(resource: JsonObject, change: Change, budget: Budget): JsonObject {
  const { attribute, schema, filter } = change
  const holder: JsonObject = schema === null ? resource : objectOr(resource[schema])
  const before = holder[attribute.name] ?? null
  budget.spend(1 + listOf(before).length * (filter === null ? 1 : termsIn(filter)))
  const after = attribute.multiValued ? changedValues(listOf(before), change) : changedValue(before, change)
  if (Array.isArray(after)) requireCount(attribute, spent(budget, after).length)
  const changed = withMember(holder, attribute.name, after)
  return schema === null ? changed : withMember(resource, schema, changed)
}

function requireCount(attribute: Attribute, count: number): void {
  const max = valuesMax(attribute)
  if (count > max) throw new ScimError('invalidValue', `${attribute.name} has more than ${max} values`)
}

function requireMutable(attribute: Attribute, { op, path }: Operation): void {
  if (attribute.mutability === 'readOnly') throw new ScimError('mutability', `${attribute.name} is read-only`)
  if (op === 'remove' && attribute.required && path?.includes('.') !== true)
    throw new ScimError('mutability', `${attribute.name} is required`)
}

function changedValue(before: JsonValue, change: Change): JsonValue {
  const { op, attribute, filter, sub } = change
  if (filter !== null) throw new ScimError('invalidPath', `${attribute.name} has only one value`)
  if (sub !== null) return withSub(objectOr(before), sub, change)
  if (op === 'remove') return null
  const value = readValue(required(change, change.attribute.name), attribute, attribute.name)
  // Section 3.5.2.1: adding to a complex attribute adds its sub-attributes.
  return op === 'add' && isJsonObject(value) ? { ...objectOr(before), ...value } : value
}

function changedValues(before: readonly JsonValue[], change: Change): JsonValue {
  const { op, attribute, filter, sub } = change
  if (filter === null && sub === null) {
    if (op === 'remove') return change.value === undefined ? null : without(before, valuesIn(change))
    const values = valuesIn(change)
    return op === 'replace' ? onePrimary([], values) : onePrimary(before, merged(before, values))
  }
  const isMeant = (value: JsonValue): boolean => filter === null || matchesValue(filter, value)
  const meant = before.filter(isMeant)
  if (meant.length === 0) {
    if (op === 'remove') return [...before]
    return onePrimary(before, [...before, changedOne(impliedBy(filter, attribute), change)])
  }
  if (op === 'remove' && sub === null) return before.filter((value) => !isMeant(value))
  const changed = before.map((value) => (isMeant(value) ? changedOne(objectOr(value), change) : value))
  return onePrimary(
    before,
    changed.filter((value) => Object.keys(objectOr(value)).length > 0),
  )
}

/** Entra ID replaces `emails[type eq "work"].value` even where no such value exists. Then the filter describes the new value. */
function impliedBy(filter: Filter | null, attribute: Attribute): JsonObject {
  if (filter === null) throw new ScimError('noTarget', `${attribute.name} has no value yet`)
  if (filter.kind === 'and') return { ...impliedBy(filter.left, attribute), ...impliedBy(filter.right, attribute) }
  const known =
    filter.kind === 'compare' && filter.op === 'eq' ? named(attribute.subAttributes ?? [], filter.path.attribute) : null
  if (filter.kind !== 'compare' || known === null)
    throw new ScimError('noTarget', `no value of ${attribute.name} is what the filter says`)
  return { [known.name]: readValue(filter.value, known, `${attribute.name}.${known.name}`) }
}

function changedOne(value: JsonObject, change: Change): JsonObject {
  const { op, attribute, sub } = change
  if (sub !== null) return withSub(value, sub, change)
  const sent = readValue(required(change, change.attribute.name), { ...attribute, multiValued: false }, attribute.name)
  return op === 'add' ? { ...value, ...objectOr(sent) } : { ...keptType(value), ...objectOr(sent) }
}

/** A replaced value keeps its `type` if the new one has none. */
const keptType = ({ type }: JsonObject): JsonObject => (type === undefined ? {} : { type })

function withSub(value: JsonObject, sub: string, change: Change): JsonObject {
  const { op, attribute } = change
  const known = named(attribute.subAttributes ?? [], sub)
  if (known === null) throw new ScimError('invalidPath', `${attribute.name} has no sub-attribute ${sub.slice(0, 80)}`)
  if (known.mutability === 'readOnly') throw new ScimError('mutability', `${attribute.name}.${known.name} is read-only`)
  const place = `${attribute.name}.${known.name}`
  return withMember(
    value,
    known.name,
    op === 'remove' ? null : readValue(required(change, change.attribute.name), known, place),
  )
}

function required({ value }: Pick<Operation, 'value'>, name: string): JsonValue {
  if (value === undefined) throw new ScimError('invalidValue', `there is no value for ${name}`)
  return value
}

const valuesIn = (change: Change): readonly JsonValue[] =>
  listOf(readValue(required(change, change.attribute.name), change.attribute, change.attribute.name))

function withMember(holder: JsonObject, name: string, value: JsonValue): JsonObject {
  const result: { [name: string]: JsonValue } = { ...holder }
  if (value === null) delete result[name]
  else result[name] = value
  return result
}
