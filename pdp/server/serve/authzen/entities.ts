/** Reads entities of the AuthZEN Authorization API 1.0: subjects, actions, resources and contexts. Unknown members are ignored. */
import { lowerAscii } from '../../../shared/base/blanks.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../shared/domain/json.ts'
import { isObjectId, isRelationOrKey, isType } from '../../../shared/domain/names.ts'
import { RequestProblem } from '../http/status.ts'

/** `type` and `id` are arbitrary texts: a name that our grammar does not allow has no grants. */
export type Entity = { readonly type: string; readonly id: string }
export type Evaluation = {
  readonly subject: Entity
  readonly action: string
  readonly resource: Entity
  /** The request's value for its organization, of any JSON type; null: no value. */
  readonly organization: JsonValue
  /** Parameters of conditions: properties of the entities, each name with its prefix; members of the request's context take precedence. */
  readonly parameters: JsonObject
}
export type Semantic = 'execute_all' | 'deny_on_first_deny' | 'permit_on_first_permit'

/** The object `type:id`, or null for an entity that no tuple can name. A colon in the type would make another object. */
export const objectOf = ({ type, id }: Entity): string | null =>
  isType(type) && isObjectId(id) ? `${type}:${id}` : null

/** The relation for an action; null: no relation can fit. For the type `route`: an HTTP method in lower case. */
export function relationOf(action: string, resourceType: string): string | null {
  const relation = resourceType === 'route' ? lowerAscii(action) : action
  return isRelationOrKey(relation) ? relation : null
}

const ITEMS_MAX = 256
const SEMANTICS: ReadonlySet<string> = new Set<Semantic>([
  'execute_all',
  'deny_on_first_deny',
  'permit_on_first_permit',
])
const ENTITIES = ['subject', 'action', 'resource', 'context'] as const

/** Throws RequestProblem `request_invalid` that names the member. Members that the API does not know are ignored. */
export function readEvaluation(body: unknown, base = ''): Evaluation {
  const request = objectAt(body, '')
  return {
    subject: readEntity(request.subject, `${base}/subject`),
    action: readAction(request.action, `${base}/action`),
    resource: readEntity(request.resource, `${base}/resource`),
    ...readContext(request, base),
  }
}

/**
 * The items of a batch; null: it has no items, and so is one evaluation (section 7.1.1). An unreadable item is denied, and others are still
 * answered. Throws RequestProblem `request_invalid`.
 */
export function readBatch(
  body: unknown,
): { readonly semantic: Semantic; readonly items: readonly (Evaluation | RequestProblem)[] } | null {
  const { evaluations, options, ...defaults } = objectAt(body, '')
  if (evaluations === undefined || evaluations === null) return null
  if (!Array.isArray(evaluations)) throw invalid('/evaluations', 'must be an array')
  if (evaluations.length === 0) return null
  if (evaluations.length > ITEMS_MAX) throw invalid('/evaluations', `has more than ${ITEMS_MAX} items`)
  for (const name of ENTITIES) if (defaults[name] != null) objectAt(defaults[name], `/${name}`)
  const items = evaluations.map((item: unknown, i) => {
    try {
      // An item's entity replaces the whole default entity; their members are not merged.
      return readEvaluation({ ...defaults, ...present(objectAt(item, `/evaluations/${i}`)) }, `/evaluations/${i}`)
    } catch (err) {
      if (err instanceof RequestProblem) return err
      throw err
    }
  })
  return { semantic: readSemantic(options), items }
}

function readSemantic(options: unknown): Semantic {
  if (options === undefined || options === null) return 'execute_all'
  const { evaluations_semantic: semantic } = objectAt(options, '/options')
  if (semantic === undefined || semantic === null) return 'execute_all'
  if (isSemantic(semantic)) return semantic
  throw invalid('/options/evaluations_semantic', `must be one of ${[...SEMANTICS].join(', ')}`)
}

const isSemantic = (value: unknown): value is Semantic => typeof value === 'string' && SEMANTICS.has(value)

/** Reads an entity; `type` and `id` are required. */
export function readEntity(value: unknown, place: string): Entity {
  const entity = objectAt(value, place)
  checkProperties(entity, place)
  return { type: textAt(entity.type, `${place}/type`), id: textAt(entity.id, `${place}/id`) }
}

/** The type of the entities for which a search looks; their `id` is ignored. */
export function readType(value: unknown, place: string): string {
  const entity = objectAt(value, place)
  checkProperties(entity, place)
  return textAt(entity.type, `${place}/type`)
}

export function readAction(value: unknown, place: string): string {
  const action = objectAt(value, place)
  checkProperties(action, place)
  return textAt(action.name, `${place}/name`)
}

/** The parameters `subject_<name>`, `resource_<name>` and `action_<name>` from the properties, followed by those of the context. */
export function readContext(request: JsonObject, base = ''): Pick<Evaluation, 'organization' | 'parameters'> {
  const own = request.context == null ? {} : objectAt(request.context, `${base}/context`)
  const entities = ['subject', 'resource', 'action'].flatMap((entity) => {
    const properties = isJsonObject(request[entity]) ? request[entity].properties : null
    return isJsonObject(properties)
      ? Object.entries(properties).map(([name, value]) => [`${entity}_${name}`, value])
      : []
  })
  return { organization: own.organization ?? null, parameters: { ...Object.fromEntries(entities), ...own } }
}

function checkProperties({ properties }: JsonObject, place: string): void {
  if (properties !== undefined && properties !== null) objectAt(properties, `${place}/properties`)
}

/** The members that are not null: null means absent, because an item has no other way to leave a default out. */
const present = (item: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(item).filter(([, value]) => value !== null))

export function objectAt(value: unknown, place: string): JsonObject {
  if (value === undefined || value === null) throw invalid(place, 'is missing')
  if (!isJsonObject(value)) throw invalid(place, 'must be an object')
  return value
}

function textAt(value: JsonValue | undefined, place: string): string {
  if (value === undefined || value === null) throw invalid(place, 'is missing')
  if (typeof value !== 'string') throw invalid(place, 'must be a string')
  return value
}

export function invalid(place: string, message: string): RequestProblem {
  return new RequestProblem('request_invalid', `${place || 'the body'} ${message}`, { issues: [{ place, message }] })
}
