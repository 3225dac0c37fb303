/** What callers without a compiler may have got wrong: the shapes that the HTTP API checks by its schemas. */
import type { ValidationIssue } from '../domain/errors.ts'
import { pointer } from '../domain/json.ts'
import type { Manifest } from '../domain/manifest.ts'
import { nothingWritten, PRECONDITIONS_MAX, type RelationshipsWrite, type TupleInput } from '../writes/relationships.ts'
import type { ManifestInput, RelationshipChanges, WriteOptions } from './embedded.ts'

const ITEMS_MAX = 1_000
const AUDIENCES_MAX = 100
const AUDIENCE_CHARACTERS_MAX = 2_048
const LABEL = /^\P{Cc}{1,256}$/u
// RFC 3339, as the schema's date-time.
const INSTANT = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/

type Issues = ValidationIssue[]
type Unknown = { readonly [name: string]: unknown }

/** Throws PdpError `request_invalid`. */
export function parseChanges(changes: RelationshipChanges, { if: conditions }: WriteOptions): RelationshipsWrite {
  const issues: Issues = []
  requireMembers(changes, ['write', 'delete'], { place: '', issues })
  for (const op of ['write', 'delete'] as const) {
    const items: unknown = changes[op] ?? []
    if (!Array.isArray(items)) issues.push({ place: `/${op}`, message: 'must be an array' })
    else for (const [i, item] of items.entries()) tupleIssues(item, pointer('', op, i), issues)
  }
  const list: unknown = conditions ?? []
  if (!Array.isArray(list)) issues.push({ place: '/if', message: 'must be an array' })
  else if (list.length > PRECONDITIONS_MAX)
    issues.push({ place: '/if', message: `has more than ${PRECONDITIONS_MAX} items` })
  else for (const [i, item] of list.entries()) conditionIssues(item, pointer('', 'if', i), issues)
  requireNone(issues)
  return { ...changes, ...(conditions === undefined ? {} : { if: conditions }) }
}

function conditionIssues(item: unknown, place: string, issues: Issues): void {
  if (!isRecord(item)) return void issues.push({ place, message: 'must be an object' })
  requireMembers(item, ['tuple', 'exists'], { place, issues })
  tupleIssues(item.tuple, `${place}/tuple`, issues)
  if (typeof item.exists !== 'boolean') issues.push({ place: `${place}/exists`, message: 'must be boolean' })
}

function tupleIssues(item: unknown, place: string, issues: Issues): void {
  if (typeof item === 'string') return
  if (!isRecord(item)) return void issues.push({ place, message: 'must be string or object' })
  requireMembers(item, ['object', 'relation', 'subject', 'expires_at', 'condition'], { place, issues })
  for (const name of ['object', 'relation', 'subject'] satisfies (keyof Exclude<TupleInput, string>)[])
    if (typeof item[name] !== 'string') issues.push({ place: `${place}/${name}`, message: 'must be string' })
  const { expires_at = null } = item
  if (expires_at !== null && (typeof expires_at !== 'string' || !INSTANT.test(expires_at)))
    issues.push({ place: `${place}/expires_at`, message: 'must be an instant such as 2030-01-31T12:00:00Z' })
}

/** Throws PdpError `request_invalid`. */
export function parseManifestInput(app: string, input: ManifestInput): Manifest {
  const issues: Issues = []
  requireMembers(input, ['audiences', 'permissions', 'roles', 'model'], { place: '', issues })
  requireNone(issues)
  const { audiences = [], permissions = {}, roles = {}, model = null } = input
  if (!isTexts(audiences, AUDIENCES_MAX) || audiences.some((text) => text.length > AUDIENCE_CHARACTERS_MAX))
    issues.push({ place: '/audiences', message: `must be at most ${AUDIENCES_MAX} different strings` })
  if (!isRecord(permissions) || Object.keys(permissions).length > ITEMS_MAX)
    issues.push({ place: '/permissions', message: `must be an object of at most ${ITEMS_MAX} permissions` })
  else
    for (const [key, label] of Object.entries(permissions))
      if (!isLabel(label)) issues.push({ place: pointer('', 'permissions', key), message: LABEL_FORM })
  if (!isRecord(roles) || Object.keys(roles).length > ITEMS_MAX)
    issues.push({ place: '/roles', message: `must be an object of at most ${ITEMS_MAX} roles` })
  else for (const [key, role] of Object.entries(roles)) roleIssues(role, pointer('', 'roles', key), issues)
  if (model !== null && typeof model !== 'string') issues.push({ place: '/model', message: 'must be string or null' })
  requireNone(issues)
  return { app, audiences, permissions, roles, model }
}

const LABEL_FORM = 'must be 1 to 256 characters, none of them a control character'
const isLabel = (value: unknown): boolean => typeof value === 'string' && LABEL.test(value)

function roleIssues(role: unknown, place: string, issues: Issues): void {
  if (!isRecord(role)) return void issues.push({ place, message: 'must be an object' })
  requireMembers(role, ['name', 'permissions'], { place, issues })
  if (!isLabel(role.name)) issues.push({ place: `${place}/name`, message: LABEL_FORM })
  if (!isTexts(role.permissions, ITEMS_MAX))
    issues.push({ place: `${place}/permissions`, message: `must be at most ${ITEMS_MAX} different strings` })
}

function requireMembers(
  value: unknown,
  known: readonly string[],
  { place, issues }: { readonly place: string; readonly issues: Issues },
): void {
  if (!isRecord(value)) return void issues.push({ place, message: 'must be an object' })
  for (const name of Object.keys(value))
    if (!known.includes(name)) issues.push({ place: pointer(place, name), message: 'is not a known member' })
}

const isRecord = (value: unknown): value is Unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isTexts = (value: unknown, countMax: number): value is readonly string[] =>
  Array.isArray(value) &&
  value.length <= countMax &&
  new Set(value).size === value.length &&
  value.every((item) => typeof item === 'string')

function requireNone(issues: Issues): void {
  if (issues.length > 0) throw nothingWritten('request_invalid', issues)
}
