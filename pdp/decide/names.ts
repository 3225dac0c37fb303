/** The grammar of ids, types, relations, tuples and subjects (DESIGN section 3), parsed once at the border. */
import { PdpError } from '../errors.ts'
import type { Tuple } from '../store/contracts.ts'

// 1-256 characters of visible ASCII without `#`; `*` alone is the wildcard and never an id.
const ID = /^(?!\*$)[\x21\x22\x24-\x7e]{1,256}$/
const NAME = /^[a-z][a-z0-9_-]{0,63}$/
// Permission keys name an app's verbs: `invoices:approve`.
const PERMISSION = /^[a-z][a-z0-9_.:-]{0,127}$/

export const isId = (text: string): boolean => ID.test(text)
export const isName = (text: string): boolean => NAME.test(text)
export const isPermissionKey = (text: string): boolean => PERMISSION.test(text)
/** An entitlement key: a plain name or `feature.<name>`. */
export const isEntitlementKey = (text: string): boolean => PERMISSION.test(text)

/** True for `type:id`. */
export function isObject(text: string): boolean {
  const colon = text.indexOf(':')
  return colon > 0 && isName(text.slice(0, colon)) && isId(text.slice(colon + 1))
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
  const mistake = tupleMistake(tuple)
  if (mistake !== null) throw invalidTuple(text, mistake)
  return tuple
}

export const formatTuple = (tuple: Omit<Tuple, 'expiresAtMs'>): string =>
  `${tuple.object}#${tuple.relation}@${tuple.subject}`

/** What is wrong with a tuple's words, or null. */
export function tupleMistake(tuple: Omit<Tuple, 'expiresAtMs'>): string | null {
  if (!isObject(tuple.object)) return `object ${quote(tuple.object)} is not <type>:<id>`
  if (!isName(tuple.relation)) return `relation ${quote(tuple.relation)} is not a relation name`
  if (!isSubject(tuple.subject))
    return `subject ${quote(tuple.subject)} is not <type>:<id>, <type>:<id>#<relation> or <type>:*`
  return null
}

function invalidTuple(text: string, mistake = 'it has no # and @'): PdpError {
  return new PdpError('request_invalid', `${quote(text)} is not a tuple <type>:<id>#<relation>@<subject>: ${mistake}`)
}

/** Outside text inside a message: quoted, escaped and bounded. */
export const quote = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
