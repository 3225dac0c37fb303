/** The shapes of arguments of an embedded PDP's methods; the HTTP API checks the same by its schemas. */
import { ENFORCEMENTS } from '../../shared/domain/entitlement.ts'
import { isJsonObject } from '../../shared/domain/json.ts'
import { MEMBERSHIP_STATUSES, TIERS } from '../../shared/domain/membership.ts'
import { isId, isPermissionKey, isType } from '../../shared/domain/names.ts'
import { PRECONDITIONS_MAX } from '../writes/relationships.ts'
import {
  boolean,
  listOf,
  map,
  mapOf,
  members,
  nullable,
  optional,
  type Shapes,
  shape,
  text,
  withMembers,
} from './shapes.ts'

const ITEMS_MAX = 1_000
const AUDIENCES_MAX = 100
const AUDIENCE_CHARACTERS_MAX = 2_048
const LABEL = /^\P{Cc}{1,256}$/u
// An instant of RFC 3339, like `date-time` in the HTTP API's schemas.
const INSTANT = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/

const oneOf = (values: readonly string[]) =>
  shape((value) => values.some((known) => known === value), `must be one of ${values.join(', ')}`)
const id = shape((value) => typeof value === 'string' && isId(value), 'is not an id')
const key = shape((value) => typeof value === 'string' && isPermissionKey(value), 'is not an entitlement key')
const type = shape((value) => typeof value === 'string' && isType(value), 'is not a type')
const label = shape(
  (value) => typeof value === 'string' && value.isWellFormed() && LABEL.test(value),
  'must be 1 to 256 characters, none of them a control character',
)
const instant = shape(
  (value) => typeof value === 'string' && INSTANT.test(value),
  'must be an instant such as 2030-01-31T12:00:00Z',
)
const count = shape((value) => Number.isFinite(value), 'must be a number')
const differentTexts = (countMax: number, charactersMax = Number.POSITIVE_INFINITY) =>
  shape(
    (value) =>
      Array.isArray(value) &&
      value.length <= countMax &&
      new Set(value).size === value.length &&
      value.every((item) => typeof item === 'string' && item.length <= charactersMax),
    `must be at most ${countMax} different strings`,
  )

const SUBJECT = withMembers({ type: text, id: text, relation: optional(text) })
const CHECK = withMembers({ relation: text, resource: text })
const BY_MEMBERS = { actor: optional(label), requestId: optional(label) }
const BY = ['/by', optional(members(BY_MEMBERS))] as const
const ORGANIZATION = ['/organization', id] as const
const PAGE = { organization: text, relation: text, type: text, app: nullable(id) }
const TUPLE_MEMBERS = members({
  object: text,
  relation: text,
  subject: text,
  expires_at: nullable(instant),
  condition: nullable(withMembers({ name: text, context: optional(map) })),
})
const TUPLE: typeof text = (value, place, issues) => {
  if (typeof value === 'string') return
  if (!isJsonObject(value)) return void issues.push({ place, message: 'must be string or object' })
  TUPLE_MEMBERS(value, place, issues)
}
const ROLE = members({ name: label, permissions: differentTexts(ITEMS_MAX) })
const GRANT = members({ app: nullable(id), role: text, subject: text })

export const CAN: Shapes = [
  ORGANIZATION,
  ['/subject', SUBJECT],
  ['/relation', text],
  ['/resource', text],
  ['/options', optional(withMembers({ context: optional(map) }))],
]
export const DECIDE: Shapes = [
  [
    '',
    withMembers({
      organization: id,
      subject: SUBJECT,
      actor: optional(withMembers({ type: text, id: text })),
      scopes: optional(listOf(text)),
      permissions: optional(listOf(CHECK)),
      entitlements: optional(listOf(text)),
      contextualTuples: optional(listOf(map)),
      withoutTuples: optional(listOf(map)),
      context: optional(map),
    }),
  ],
]
export const ENTITLEMENT: Shapes = [ORGANIZATION, ['/key', key]]
export const TOKEN: Shapes = [
  ['', withMembers({ revocationKeys: optional(listOf(text)), issuedAtMs: optional(count) })],
]
export const TOKEN_KEYS: Shapes = [['', withMembers({ jti: text, keyId: nullable(text) })]]
export const HELD: Shapes = [['', withMembers({ organization: id, subject: SUBJECT, app: nullable(id) })]]
export const OF_ORGANIZATION: Shapes = [ORGANIZATION]
export const RELATIONS: Shapes = [ORGANIZATION, ['/type', type]]
export const LIST_RESOURCES: Shapes = [['', withMembers({ ...PAGE, subject: SUBJECT })]]
export const LIST_SUBJECTS: Shapes = [['', withMembers({ ...PAGE, resource: text, subjectRelation: optional(text) })]]
export const COMPARE: Shapes = [['', map]]

const CHANGES = members({ write: optional(listOf(TUPLE)), delete: optional(listOf(TUPLE)) })
const OPTIONS = members({
  ...BY_MEMBERS,
  if: optional(listOf(members({ tuple: TUPLE, exists: boolean }), PRECONDITIONS_MAX)),
  client: optional(shape((value) => typeof value === 'object' && value !== null, 'must be a pg client')),
})
export const WRITE: Shapes = [ORGANIZATION, ['', CHANGES], ['', optional(OPTIONS)]]
export const MANIFEST: Shapes = [
  ['/app', id],
  [
    '',
    members({
      audiences: optional(differentTexts(AUDIENCES_MAX, AUDIENCE_CHARACTERS_MAX)),
      permissions: optional(mapOf(label, `must be an object of at most ${ITEMS_MAX} permissions`, ITEMS_MAX)),
      roles: optional(mapOf(ROLE, `must be an object of at most ${ITEMS_MAX} roles`, ITEMS_MAX)),
      model: nullable(text),
      actors: optional(oneOf(['subject', 'both'])),
    }),
  ],
  BY,
]
export const PUT_ORGANIZATION: Shapes = [['/id', id], ['', members({ name: label, parent: nullable(id) })], BY]
export const DELETE_ORGANIZATION: Shapes = [['/id', id], BY]
export const PUT_MEMBER: Shapes = [
  ORGANIZATION,
  ['/user', id],
  ['', members({ role: oneOf(TIERS), status: optional(oneOf(MEMBERSHIP_STATUSES)) })],
  BY,
]
export const DELETE_MEMBER: Shapes = [ORGANIZATION, ['/user', id], BY]
export const PUT_ENTITLEMENT: Shapes = [
  ORGANIZATION,
  ['/key', key],
  ['/value', shape((value) => typeof value === 'boolean' || isJsonObject(value), 'is neither an object nor a boolean')],
  ['', optional(members({ ...BY_MEMBERS, enforcement: optional(oneOf(ENFORCEMENTS)) }))],
]
export const DELETE_ENTITLEMENT: Shapes = [ORGANIZATION, ['/key', key], BY]
export const ROLE_GRANT: Shapes = [ORGANIZATION, ['', GRANT], BY]
