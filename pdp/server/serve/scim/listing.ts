/** Reads lists and single resources: filters, pages and projections (RFC 7644 section 3.4). */

import { setImmediate } from 'node:timers/promises'
import type { Provisioned } from '../../../engine/store/directory.ts'
import { trimBlanks } from '../../../shared/base/blanks.ts'
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts'
import type { Places } from '../authentication/admission.ts'
import { RequestProblem } from '../http/status.ts'
import type { ResourceType } from './attributes.ts'
import { createBudget } from './budget.ts'
import { ScimError } from './errors.ts'
import { type AttributePath, type Filter, parseAttributePath, parseFilter, termsIn } from './filter.ts'
import { matches, memberOf } from './match.ts'
import { placeOf } from './resource.ts'
import type { ScimCall, ScimOutcome } from './route.ts'

const LIST_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:ListResponse'
export const PAGE_MAX = 200
const PAGE_DEFAULT = 100
/** How many resources one filter looks at. A filter for an id, a name or an externalId looks at one. */
export const FILTERED_MAX = 20_000
/** How many resources a filter looks at if it names members or groups, which must be read for each. */
const RELATED_MAX = 500
const BATCH = 500
/** How many members or groups one call reads, for all its resources together. */
const RELATED_SUM_MAX = 50_000
/** How many values a filter looks at, multiplied by the number of its terms. */
const WORK_MAX = 500_000
/** The amount of work after which other requests get a turn of the event loop. */
const SLICE = 20_000
/** The longest page with members or groups: a group may have as many members as a hundred users have attributes. */
const RELATED_PAGE_MAX = 20
const PARAMETER_CHARACTERS_MAX = 2_000
const ALWAYS: ReadonlySet<string> = new Set(['id', 'schemas'])

/** `related`: whether members of a group or groups of a user are wanted; only then they are read. */
export type Listed = {
  readonly type: ResourceType
  present(call: ScimCall, resources: readonly Provisioned[], related: boolean): Promise<readonly JsonObject[]>
  readonly related: 'members' | 'groups'
}
/** `places` bounds how many expensive lists run at once. */
export type Searched = Listed & { readonly places: Places }

export async function list(call: ScimCall, listed: Searched): Promise<ScimOutcome> {
  const { query } = call
  const startIndex = Math.max(1, wholeNumber(query.startindex, 'startIndex') ?? 1)
  const view = viewOf(query, listed)
  const max = view.related ? RELATED_PAGE_MAX : PAGE_MAX
  const count = Math.min(max, Math.max(0, wholeNumber(query.count, 'count') ?? PAGE_DEFAULT))
  const page = { skip: startIndex - 1, countMax: count }
  const { total, resources } =
    query.filter === undefined ? await unfiltered(call, listed, view, page) : await filtered(call, listed, view, page)
  const body = {
    schemas: [LIST_SCHEMA],
    totalResults: total,
    startIndex,
    itemsPerPage: resources.length,
    Resources: resources.map((resource) => projected(resource, view)),
  }
  return { status: 'ok', body }
}

/** The resource with the attributes that the caller wants. Throws RequestProblem `not_found`. */
export async function show(call: ScimCall, listed: Listed): Promise<ScimOutcome> {
  const view = viewOf(call.query, listed)
  const resource = await read(call, listed, view.related)
  const { version } = Object(resource.meta)
  return { status: 'ok', body: projected(resource, view), tag: String(version) }
}

/** Throws RequestProblem `not_found`. */
export async function stored(call: ScimCall, { type }: Pick<Listed, 'type'>): Promise<Provisioned> {
  const [found] = await call.at.provisioning.find(placeOf(call, type), { id: call.id }, { after: null, countMax: 1 })
  if (found !== undefined) return found
  throw new RequestProblem('not_found', `there is no ${type.name} ${JSON.stringify(call.id.slice(0, 80))}`)
}

/** Throws RequestProblem `not_found`. */
export async function read(call: ScimCall, listed: Listed, related: boolean): Promise<JsonObject> {
  return presentOne(call, listed, await stored(call, listed), related)
}

type Page = { readonly skip: number; readonly countMax: number }
type ResultPage = { readonly total: number; readonly resources: readonly JsonObject[] }

async function unfiltered(call: ScimCall, listed: Listed, view: View, page: Page): Promise<ResultPage> {
  const of = placeOf(call, listed.type)
  const total = await call.at.provisioning.count(of)
  const rows = page.countMax === 0 ? [] : await call.at.provisioning.page(of, page)
  return { total, resources: await shownOf(call, listed, rows, view) }
}

/** A page with large groups gets fewer resources: the caller continues after the last one. */
async function shownOf(
  call: ScimCall,
  listed: Listed,
  rows: readonly Provisioned[],
  view: View,
): Promise<readonly JsonObject[]> {
  if (!view.related) return listed.present(call, rows, false)
  const shown: JsonObject[] = []
  let sum = 0
  for (const row of rows) {
    const resource = await presentOne(call, listed, row, true)
    sum += relatedIn(resource, listed)
    if (sum > RELATED_SUM_MAX && shown.length > 0) break
    shown.push(resource)
  }
  return shown
}

async function filtered(call: ScimCall, listed: Searched, view: View, page: Page): Promise<ResultPage> {
  const filter = parseFilter(call.query.filter ?? '')
  const related = names(filter, listed.related)
  const narrow = narrowed(filter, listed.type)
  const isSearch = related || Object.keys(narrow).length === 0
  const release = isSearch ? listed.places.take({ client: call.context.actor, organization: call.organization }) : null
  try {
    const found = await search(call, listed, { filter, related, narrow, page })
    if (!view.related || related) return found
    const ids = found.resources.flatMap(({ id }) => (typeof id === 'string' ? [id] : []))
    const rows: Provisioned[] = []
    for (const id of ids) rows.push(await stored({ ...call, id }, listed))
    return { ...found, resources: await shownOf(call, listed, rows, view) }
  } finally {
    release?.()
  }
}

async function search(
  call: ScimCall,
  listed: Listed,
  { filter, related, narrow, page }: { filter: Filter; related: boolean; narrow: Narrow; page: Page },
): Promise<ResultPage> {
  const { type } = listed
  const of = placeOf(call, type)
  const isFound = matcher(filter, type)
  const members = createBudget(RELATED_SUM_MAX, 'the filter')
  const lookedAtMax = related ? RELATED_MAX : FILTERED_MAX
  let total = 0
  let lookedAt = 0
  let after: string | null = null
  const resources: JsonObject[] = []
  for (;;) {
    const rows: readonly Provisioned[] = await call.at.provisioning.find(of, narrow, { after, countMax: BATCH })
    lookedAt += rows.length
    if (lookedAt > lookedAtMax)
      throw new ScimError('tooMany', `the filter would look at more than ${lookedAtMax} resources`)
    for await (const resource of presentedOf(call, listed, rows, related)) {
      members.spend(relatedIn(resource, listed))
      if (!(await isFound(resource))) continue
      total += 1
      if (total > page.skip && resources.length < page.countMax) resources.push(resource)
    }
    if (rows.length < BATCH) break
    after = rows.at(-1)?.id ?? null
  }
  return { total, resources }
}

/** Related attributes are read for one resource after another. */
async function* presentedOf(call: ScimCall, listed: Listed, rows: readonly Provisioned[], related: boolean) {
  if (related) for (const row of rows) yield await presentOne(call, listed, row, true)
  else yield* await listed.present(call, rows, false)
}

/** Tells whether a resource matches, within a bound of work for all resources together. */
function matcher(filter: Filter, type: ResourceType): (resource: JsonObject) => Promise<boolean> {
  const budget = createBudget(WORK_MAX, 'the filter')
  const terms = termsIn(filter)
  let slice = 0
  return async (resource) => {
    const cost = terms * valuesIn(resource)
    budget.spend(cost)
    slice += cost
    if (slice > SLICE) {
      slice = 0
      await setImmediate()
    }
    return matches(filter, resource, type)
  }
}

const valuesIn = (resource: JsonObject): number =>
  Object.values(resource).reduce((sum: number, value) => sum + (Array.isArray(value) ? value.length : 0), 1)

const relatedIn = (resource: JsonObject, { related }: Listed): number => {
  const found = resource[related]
  return Array.isArray(found) ? found.length : 0
}

async function presentOne(call: ScimCall, listed: Listed, row: Provisioned, related: boolean): Promise<JsonObject> {
  const [resource] = await listed.present(call, [row], related)
  if (resource === undefined) throw new TypeError('a resource was not presented')
  return resource
}

type Narrow = { id?: string; name?: string; externalId?: string }

/** Terms that every match must satisfy. For a conjunction these are the terms of both sides. */
function narrowed(filter: Filter, type: ResourceType): Narrow {
  if (filter.kind === 'and') return { ...narrowed(filter.left, type), ...narrowed(filter.right, type) }
  if (filter.kind !== 'compare' || filter.op !== 'eq' || typeof filter.value !== 'string') return {}
  const { attribute, sub, schema } = filter.path
  if (sub !== null || (schema !== null && schema !== type.schema.toLowerCase())) return {}
  if (attribute === 'id') return { id: filter.value }
  if (attribute === 'externalid') return { externalId: filter.value }
  return attribute === type.unique.toLowerCase() ? { name: filter.value } : {}
}

function names(filter: Filter, attribute: string): boolean {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return names(filter.left, attribute) || names(filter.right, attribute)
    case 'not':
      return names(filter.of, attribute)
    default:
      return filter.path.attribute === attribute
  }
}

/** The attributes of each resource that the caller wants. */
type View = {
  readonly only: readonly AttributePath[] | null
  readonly without: readonly AttributePath[]
  readonly related: boolean
}

function viewOf(query: ScimCall['query'], { related, type }: Listed): View {
  const only = query.attributes === undefined ? null : pathsIn(query.attributes, 'attributes')
  const without = pathsIn(query.excludedattributes ?? '', 'excludedAttributes')
  const byDefault = type.attributes.some(({ name, returned }) => name === related && returned === 'default')
  const asked = only === null ? byDefault : only.some(({ attribute }) => attribute === related)
  const excluded = without.some(({ attribute, sub }) => attribute === related && sub === null)
  return { only, without, related: asked && !excluded }
}

function pathsIn(text: string, parameter: string): readonly AttributePath[] {
  if (text.length > PARAMETER_CHARACTERS_MAX)
    throw new ScimError('invalidValue', `${parameter} is longer than ${PARAMETER_CHARACTERS_MAX} characters`)
  const words = text.split(',').map(trimBlanks)
  return words.filter((word) => word !== '').map((word) => parseAttributePath(word, 'invalidValue'))
}

function projected(resource: JsonObject, { only, without }: View): JsonObject {
  const entries = Object.entries(resource).flatMap(([name, value]) => {
    if (ALWAYS.has(name)) return [[name, value] as const]
    const named = (path: AttributePath): boolean => isNamed(path, name)
    const chosen = only?.filter(named) ?? null
    if (chosen !== null && chosen.length === 0) return []
    if (without.some((path) => named(path) && (path.sub === null || isExtension(name)))) return []
    const subs = chosen?.flatMap(({ sub }) => (sub === null ? [] : [sub])) ?? []
    const isWhole = chosen === null || subs.length < chosen.length || isExtension(name)
    return [[name, isWhole ? value : onlySubs(value, subs)] as const]
  })
  return Object.fromEntries(entries)
}

const isExtension = (name: string): boolean => name.startsWith('urn:')

/** If an attribute of an extension is wanted, the whole extension is shown. */
function isNamed({ schema, attribute }: AttributePath, name: string): boolean {
  const lower = name.toLowerCase()
  if (isExtension(name)) return schema === lower || `${schema}:${attribute}` === lower
  return attribute === lower
}

function onlySubs(value: JsonObject[string], subs: readonly string[]): JsonObject[string] {
  if (Array.isArray(value)) return value.map((one) => onlySubs(one, subs))
  if (!isJsonObject(value)) return value
  const kept = subs.flatMap((sub) => {
    const key = Object.keys(value).find((name) => name.toLowerCase() === sub)
    return key === undefined ? [] : [[key, memberOf(value, key) ?? null] as const]
  })
  return Object.fromEntries(kept)
}

function wholeNumber(text: string | undefined, name: string): number | null {
  if (text === undefined) return null
  if (/^-?\d{1,9}$/.test(text)) return Number(text)
  throw new ScimError('invalidValue', `${name} is not a whole number`)
}
