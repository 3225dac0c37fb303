/** The grammar of ids, types, relations, tuples and subjects (ARCHITECTURE.md section 5), parsed once at the border. */
import { PdpError } from './errors.ts'
import type { Tuple } from './tuple.ts'

// What a character may be part of. Names are scanned by this table, since four RegExp calls cost as much as half a decision.
const IN_NAME = 1 // a-z 0-9 _ -
const IN_KEY = 2 // those, `.` and `:`; permission keys name an app's verbs: `invoices:approve`
const IN_ID = 4 // visible ASCII without `#`
const KINDS = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code)
  const inName = /[a-z0-9_-]/.test(character)
  const inKey = inName || character === '.' || character === ':'
  const inId = code > 0x20 && code < 0x7f && character !== '#'
  return (inName ? IN_NAME : 0) | (inKey ? IN_KEY : 0) | (inId ? IN_ID : 0)
})
const NAME_CHARACTERS_MAX = 64
const KEY_CHARACTERS_MAX = 128
const ID_CHARACTERS_MAX = 256

export const isId = (text: string): boolean => isIdFrom(text, 0)
/**
 * Begins the id of every subject that another issuer speaks for, and of no user or client of ours: whatever prefix an
 * issuer is given, it cannot name one of them.
 */
export const EXTERNAL = '~'
export const isName = (text: string): boolean => text.length > 0 && nameEnd(text) === text.length
export const isPermissionKey = (text: string): boolean =>
  text.length <= KEY_CHARACTERS_MAX && beginsWithLetter(text) && runEnd(text, IN_KEY, 1) === text.length
/** An entitlement key: a plain name or `feature.<name>`. */
export const isEntitlementKey = (text: string): boolean => isPermissionKey(text)

/** True for `type:id`. */
export function isObject(text: string): boolean {
  const colon = nameEnd(text)
  return colon > 0 && text[colon] === ':' && isIdFrom(text, colon + 1)
}

/** Where the characters are no longer of the kind. */
function runEnd(text: string, kind: number, from: number): number {
  let at = from
  while (at < text.length && ((KINDS[text.charCodeAt(at)] ?? 0) & kind) !== 0) at++
  return at
}

/** Where the name ends that the text begins with; 0 when it begins with none. */
function nameEnd(text: string): number {
  const end = beginsWithLetter(text) ? runEnd(text, IN_NAME, 1) : 0
  return end <= NAME_CHARACTERS_MAX ? end : 0
}

const beginsWithLetter = (text: string): boolean => text.charCodeAt(0) >= 0x61 && text.charCodeAt(0) <= 0x7a

/** `*` alone is the wildcard and never an id. */
function isIdFrom(text: string, from: number): boolean {
  const length = text.length - from
  if (length < 1 || length > ID_CHARACTERS_MAX || (length === 1 && text[from] === '*')) return false
  return runEnd(text, IN_ID, from) === text.length
}

/** True for `type:id`, `type:id#relation` and `type:*`. */
export function isSubject(text: string): boolean {
  const hash = text.indexOf('#')
  if (hash >= 0) return isObject(text.slice(0, hash)) && isName(text.slice(hash + 1))
  return isObject(text) || isWildcard(text)
}

export const isWildcard = (subject: string): boolean => subject.endsWith(':*') && isName(subject.slice(0, -2))

/** `invoice` of `invoice:42`. */
export const typeOf = (object: string): string => object.slice(0, object.indexOf(':'))

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

/** What is wrong with a tuple's words, or null. */
export function tupleIssue(tuple: Omit<Tuple, 'expiresAtMs'>): string | null {
  if (!isObject(tuple.object)) return `object ${quote(tuple.object)} is not <type>:<id>`
  if (!isName(tuple.relation)) return `relation ${quote(tuple.relation)} is not a relation name`
  if (!isSubject(tuple.subject))
    return `subject ${quote(tuple.subject)} is not <type>:<id>, <type>:<id>#<relation> or <type>:*`
  return null
}

function invalidTuple(text: string, issue = 'it has no # and @'): PdpError {
  return new PdpError('request_invalid', `${quote(text)} is not a tuple <type>:<id>#<relation>@<subject>: ${issue}`)
}

/** Outside text inside a message: quoted, escaped and bounded. */
export const quote = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
