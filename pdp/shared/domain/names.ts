/** The grammar of ids, types, relations, tuples and subjects (ARCHITECTURE.md section 5). Names are parsed once, when they come in. */
import { PdpError } from './errors.ts'
import { isJsonObject, jsonText } from './json.ts'
import { CONTEXT_BYTES_MAX, type Tuple, type TupleCondition } from './tuple.ts'

// Bits for the kinds of name that may have an ASCII character, in a table: four RegExp calls cost half a decision.
const IN_NAME = 1 // visible, but none of : # @ *
const IN_KEY = 2 // a-z 0-9 _ - . and `:`; permission keys name an app's verbs: `invoices:approve`
const IN_OBJECT_ID = 4 // visible, but not `#`
const KINDS = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code)
  const visible = code > 0x20 && code < 0x7f
  const inName = visible && !':#@*'.includes(character)
  const inId = visible && character !== '#'
  return (inName ? IN_NAME : 0) | (/[a-z0-9_.:-]/.test(character) ? IN_KEY : 0) | (inId ? IN_OBJECT_ID : 0)
})
/** Matches what no name may have: white space, characters that cannot be stored, and U+FFFD for unreadable bytes. */
const UNFIT = /[\s\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}\ufffd]/u
const ASTERISK = '*'.charCodeAt(0)
const TYPE_BYTES_MAX = 254
const RELATION_BYTES_MAX = 64
const KEY_CHARACTERS_MAX = 128
const ID_CHARACTERS_MAX = 256
const OBJECT_ID_BYTES_MAX = 512

/** An id of an organization, a user, a client, an app or a role grant: these are sent in header fields, URLs and tokens. */
export const isId = (text: string): boolean =>
  text.length > 0 && text.length <= ID_CHARACTERS_MAX && text !== '*' && runEnd(text, IN_OBJECT_ID, 0) === text.length
/** True for an id as in tuples. */
export const isObjectId = (text: string): boolean => isObjectIdFrom(text, 0)
/**
 * The first character of the id of every subject of another issuer, and of no user or client of ours. So no prefix of an issuer
 * lets it name one of ours.
 */
export const EXTERNAL = '~'
/** Separates the organization's id in ids that its clients create. It is never percent-encoded (RFC 3986 section 2.3). */
export const NAME_SEPARATOR = '~'
/** The organization whose limits count. Organizations that a tenant creates have ids that begin with the tenant's. */
export const tenantOf = (organization: string): string => organization.split(NAME_SEPARATOR, 1)[0] || organization
export const isType = (text: string): boolean => isNameTo(text, 0, text.length, TYPE_BYTES_MAX)
export const isRelation = (text: string): boolean => isNameTo(text, 0, text.length, RELATION_BYTES_MAX)
export const isPermissionKey = (text: string): boolean =>
  text.length <= KEY_CHARACTERS_MAX && beginsWithLetter(text) && runEnd(text, IN_KEY, 1) === text.length
/** An entitlement key: a plain name or `feature.<name>`. */
export const isEntitlementKey = (text: string): boolean => isPermissionKey(text)
/** True for a name about which a check may ask. */
export const isRelationOrKey = (text: string): boolean => isRelation(text) || isPermissionKey(text)

/** True for `type:id`. */
export function isObject(text: string): boolean {
  const colon = text.indexOf(':')
  return isNameTo(text, 0, colon, TYPE_BYTES_MAX) && isObjectIdFrom(text, colon + 1)
}

/** The index of the first character after `from` that is not of the kind. */
function runEnd(text: string, kind: number, from: number): number {
  let at = from
  while (at < text.length && ((KINDS[text.charCodeAt(at)] ?? 0) & kind) !== 0) at++
  return at
}

function isNameTo(text: string, from: number, to: number, bytesMax: number): boolean {
  if (to <= from || to - from > bytesMax) return false
  let at = from
  while (at < to && ((KINDS[text.charCodeAt(at)] ?? 0) & IN_NAME) !== 0) at++
  return at === to || isWide(text.slice(from, to), IN_NAME, bytesMax)
}

const beginsWithLetter = (text: string): boolean => text.charCodeAt(0) >= 0x61 && text.charCodeAt(0) <= 0x7a

/** `*` alone is the wildcard and never an id. */
function isObjectIdFrom(text: string, from: number): boolean {
  const length = text.length - from
  if (length < 1 || length > OBJECT_ID_BYTES_MAX || (length === 1 && text[from] === '*')) return false
  return runEnd(text, IN_OBJECT_ID, from) === text.length || isWide(text.slice(from), IN_OBJECT_ID, OBJECT_ID_BYTES_MAX)
}

/** Checks a text with characters beyond ASCII, which is rare. */
function isWide(text: string, kind: number, bytesMax: number): boolean {
  for (let at = runEnd(text, kind, 0); at < text.length; at = runEnd(text, kind, at + 1))
    if (text.charCodeAt(at) < 0x80) return false
  return !UNFIT.test(text) && Buffer.byteLength(text) <= bytesMax
}

/** True for `type:id`, `type:id#relation` and `type:*`. */
export function isSubject(text: string): boolean {
  const hash = text.indexOf('#')
  if (hash >= 0) return isObject(text.slice(0, hash)) && isRelation(text.slice(hash + 1))
  return isObject(text) || isWildcard(text)
}

export const isWildcard = (subject: string): boolean =>
  subject.charCodeAt(subject.length - 1) === ASTERISK && subject.endsWith(':*') && isType(subject.slice(0, -2))

/** The type of an object: `invoice` for `invoice:42`. */
export const typeOf = (object: string): string => object.slice(0, object.indexOf(':'))

/**
 * Compares by code points, which is the order of UTF-8 bytes and of the database. JavaScript compares UTF-16 units, where
 * characters beyond U+FFFF come before U+E000.
 */
export function compareNames(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)]
    if (x !== y) return x >= 0xd800 && y >= 0xd800 ? rank(x) - rank(y) : x - y
  }
  return a.length - b.length
}

/** A text directly before the name in order. It ends in the last of all characters, which no name has, so no name is between them. */
export function nameBefore(name: string): string {
  const characters = [...name]
  const last = characters.pop()?.codePointAt(0) ?? 1
  return `${characters.join('')}${String.fromCodePoint(last === 0xe000 ? 0xd7ff : last - 1)}\u{10ffff}`
}

/** The rank of a UTF-16 unit. Surrogates, which encode characters beyond U+FFFF, come last. */
const rank = (unit: number): number => (unit < 0xe000 ? unit + 0x2000 : unit - 0x800)

/** `object#relation@subject`: split at the first `#` and the first `@` after it, since ids may hold `:` and `@`. */
export function parseTuple(text: string): Omit<Tuple, 'expiresAtMs'> {
  const hash = text.indexOf('#')
  const at = text.indexOf('@', hash + 1)
  if (hash < 0 || at < 0) throw invalidTuple(text)
  const tuple = { object: text.slice(0, hash), relation: text.slice(hash + 1, at), subject: text.slice(at + 1) }
  const issue = tupleIssue(tuple)
  if (issue !== null) throw invalidTuple(text, issue)
  return tuple
}

export const formatTuple = (tuple: Omit<Tuple, 'expiresAtMs'>): string =>
  `${tuple.object}#${tuple.relation}@${tuple.subject}`

/** The fault in the form of a tuple, or null. */
export function tupleIssue(tuple: Omit<Tuple, 'expiresAtMs'>): string | null {
  if (!isObject(tuple.object)) return `object ${quote(tuple.object)} is not <type>:<id>`
  if (!isRelation(tuple.relation)) return `relation ${quote(tuple.relation)} is not a relation name`
  if (!isSubject(tuple.subject))
    return `subject ${quote(tuple.subject)} is not <type>:<id>, <type>:<id>#<relation> or <type>:*`
  return null
}

/** True for a route's id as in route files, such as `GET /docs/{id}`. */
export const isRouteId = (text: string): boolean => /^\P{Cc}{1,512}$/u.test(text)
/** The id of a request, by which a decision is found; it is safe to log. */
export const isRequestId = (text: string): boolean => /^[A-Za-z0-9._-]{1,128}$/.test(text)

const CONDITION_NAME_CHARACTERS_MAX = 256

/** The fault in the form of a condition, or null: every store must be able to keep it. It does not depend on a model. */
export function conditionIssue(condition: TupleCondition | undefined): string | null {
  if (condition === undefined) return null
  const { name, context } = condition
  if (typeof name !== 'string') return 'the name of the condition is not a string'
  if (!/^[^\s\p{Cc}]+$/u.test(name) || name.length > CONDITION_NAME_CHARACTERS_MAX || !name.isWellFormed())
    return `condition ${quote(name)} is not a name`
  if (!isJsonObject(context)) return `the context of condition ${quote(name)} is not an object`
  const text = jsonText(context)
  if (text === null) return `the context of condition ${quote(name)} is not JSON`
  if (Buffer.byteLength(text) > CONTEXT_BYTES_MAX)
    return `the context of condition ${quote(name)} has more than ${CONTEXT_BYTES_MAX} bytes`
  // JSON escapes of characters that PostgreSQL cannot store.
  return /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/.test(text)
    ? `the context of condition ${quote(name)} has a character that cannot be stored`
    : null
}

function invalidTuple(text: string, issue = 'it has no # and @'): PdpError {
  return new PdpError('request_invalid', `${quote(text)} is not a tuple <type>:<id>#<relation>@<subject>: ${issue}`)
}

/** Outside text inside a message: quoted, escaped and bounded. */
export const quote = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
