/** Subject identifiers: RFC 9493, and the formats and complex subjects that SSF 1.0 section 3 adds. */

import { parseAddress } from '../../shared/base/addresses.ts'
import type { JsonMembers } from '../../shared/base/json-text.ts'
import { textIssue } from '../../shared/domain/json.ts'
import { members } from '../../shared/token/jws.ts'
import { SetError } from './errors.ts'

/** A principal with a single name. */
export type SimpleSubject =
  | { readonly format: 'account'; readonly uri: string }
  | { readonly format: 'email'; readonly email: string }
  | { readonly format: 'iss_sub'; readonly iss: string; readonly sub: string }
  | { readonly format: 'opaque'; readonly id: string }
  | { readonly format: 'phone_number'; readonly phone_number: string }
  | { readonly format: 'did'; readonly url: string }
  | { readonly format: 'uri'; readonly uri: string }
  | { readonly format: 'aliases'; readonly identifiers: readonly SimpleSubject[] }
  | { readonly format: 'jwt_id'; readonly iss: string; readonly jti: string }
  | { readonly format: 'saml_assertion_id'; readonly issuer: string; readonly assertion_id: string }
  | { readonly format: 'ip-addresses'; readonly 'ip-addresses': readonly string[] }
/** A subject; a complex one has several parts, also others than those in SSF 1.0 section 3.3. */
export type SubjectIdentifier =
  | SimpleSubject
  | { readonly format: 'complex'; readonly parts: ReadonlyMap<string, SimpleSubject> }

const TEXT_CHARS_MAX = 1_024
const LIST_MAX = 20
const PARTS_MAX = 16
const URI = /^[a-z][a-z0-9+.-]*:[\x21-\x7e]+$/i
const PART_NAME = /^[a-z][a-z0-9_-]{0,63}$/i

const FORMS = {
  account: { uri: /^acct:[\x21-\x7e]+$/i },
  email: { email: /^[^\s@]+@[^\s@]+$/u },
  iss_sub: { iss: null, sub: null },
  opaque: { id: null },
  // A phone number in the form of E.164.
  phone_number: { phone_number: /^\+[1-9]\d{1,14}$/ },
  did: { url: /^did:[a-z0-9]+:[\x21-\x7e]+$/ },
  uri: { uri: URI },
  jwt_id: { iss: null, jti: null },
  saml_assertion_id: { issuer: null, assertion_id: null },
} as const satisfies { readonly [format: string]: { readonly [member: string]: RegExp | null } }
const isForm = (format: string): format is keyof typeof FORMS => Object.hasOwn(FORMS, format)

/**
 * Reads a subject with exactly the members of its format (RFC 9493 section 3). `place` is named in the error. `unknownParts`: the treatment
 * of parts of a complex subject, other than the user, in unknown formats. Throws SetError `invalid_request`.
 */
export function parseSubject(
  value: unknown,
  place = 'sub_id',
  unknownParts: 'refused' | 'left out' = 'refused',
): SubjectIdentifier {
  const given = members(value)
  if (given?.format !== 'complex') return parseSimple(value, place)
  const names = Object.keys(given).filter((name) => name !== 'format')
  if (names.length === 0 || names.length > PARTS_MAX) throw invalid(`${place} has not 1 to ${PARTS_MAX} members`)
  const wrong = names.find((name) => !PART_NAME.test(name))
  if (wrong !== undefined) throw invalid(`${place} has a member whose name is malformed`)
  // The part `user` is kept in any case: an event without it would be acknowledged but end nothing.
  const isKept = (name: string): boolean => name === 'user' || !isOfUnknownFormat(given[name])
  const known = unknownParts === 'refused' ? names : names.filter(isKept)
  const parts = known.map((name) => [name, parseSimple(given[name], `${place}.${name}`)] as const)
  return { format: 'complex', parts: new Map(parts) }
}

/** True for an unknown format. RFC 9493 section 3 allows more formats, such as a vendor's for devices. */
function isOfUnknownFormat(value: unknown): boolean {
  const { format } = members(value) ?? {}
  return typeof format === 'string' && !isForm(format) && !['complex', 'aliases', 'ip-addresses'].includes(format)
}

function parseSimple(value: unknown, place: string): SimpleSubject {
  const given = members(value)
  if (given === null) throw invalid(`${place} is not a JSON object`)
  const { format } = given
  if (typeof format !== 'string') throw invalid(`${place}.format is missing`)
  if (format === 'complex') throw invalid(`${place} is a complex subject inside another subject`)
  if (format === 'aliases') return parseAliases(given, place)
  if (format === 'ip-addresses') return parseAddresses(given, place)
  if (!isForm(format)) throw invalid(`${place}.format is not a known format`)
  const form: { readonly [member: string]: RegExp | null } = FORMS[format]
  requireMembers(given, Object.keys(form), place)
  for (const [name, pattern] of Object.entries(form)) {
    const text = given[name]
    if (!isText(text) || pattern?.test(text) === false) throw invalid(`${place}.${name} is malformed`)
  }
  // Every member is one that the format requires, and each is a text of its form.
  return { ...given } as SimpleSubject
}

/** RFC 9493 section 3.2.8: at least one identifier, and no list within the list. */
function parseAliases(given: JsonMembers, place: string): SimpleSubject {
  requireMembers(given, ['identifiers'], place)
  const identifiers = listOf(given.identifiers, `${place}.identifiers`).map((value, i) => {
    const alias = parseSimple(value, `${place}.identifiers[${i}]`)
    if (alias.format === 'aliases') throw invalid(`${place}.identifiers[${i}] is a list of aliases itself`)
    return alias
  })
  return { format: 'aliases', identifiers }
}

function parseAddresses(given: JsonMembers, place: string): SimpleSubject {
  requireMembers(given, ['ip-addresses'], place)
  const addresses = listOf(given['ip-addresses'], `${place}.ip-addresses`).map((value, i) => {
    if (typeof value !== 'string' || parseAddress(value) === null)
      throw invalid(`${place}.ip-addresses[${i}] is not an IP address`)
    return value
  })
  return { format: 'ip-addresses', 'ip-addresses': addresses }
}

function listOf(value: unknown, place: string): readonly unknown[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > LIST_MAX)
    throw invalid(`${place} is not a list of 1 to ${LIST_MAX}`)
  return value
}

function requireMembers(given: JsonMembers, names: readonly string[], place: string): void {
  const expected = ['format', ...names]
  const unknown = Object.keys(given).some((name) => !expected.includes(name))
  if (unknown) throw invalid(`${place} has members that its format does not define`)
}

const isText = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= TEXT_CHARS_MAX && textIssue(value) === null

export function formatSubject(subject: SubjectIdentifier): JsonMembers {
  return subject.format === 'complex' ? { format: 'complex', ...Object.fromEntries(subject.parts) } : subject
}

/** A text that is equal for equal subjects, whatever their members' order. */
export function subjectKey(subject: SubjectIdentifier): string {
  return JSON.stringify(sorted(formatSubject(subject)))
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  const given = members(value)
  if (given === null) return value
  return Object.fromEntries(
    Object.keys(given)
      .sort()
      .map((name) => [name, sorted(given[name])]),
  )
}

/**
 * Matches subjects by SSF 1.0 section 8.1.3.1: simple subjects must be identical; of complex ones, each part must be identical or
 * absent in one. A simple subject matches a complex one here if it is its user, which the standard leaves open.
 */
export function subjectsMatch(a: SubjectIdentifier, b: SubjectIdentifier): boolean {
  if (a.format !== 'complex' && b.format !== 'complex') return subjectKey(a) === subjectKey(b)
  if (a.format !== 'complex') return isUserOf(a, b)
  if (b.format !== 'complex') return isUserOf(b, a)
  for (const [name, part] of a.parts) {
    const other = b.parts.get(name)
    if (other !== undefined && subjectKey(part) !== subjectKey(other)) return false
  }
  return true
}

function isUserOf(simple: SimpleSubject, complex: SubjectIdentifier): boolean {
  const user = complex.format === 'complex' ? complex.parts.get('user') : undefined
  return user !== undefined && subjectKey(user) === subjectKey(simple)
}

const invalid = (message: string): SetError => new SetError('invalid_request', message)
