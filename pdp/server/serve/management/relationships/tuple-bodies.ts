/** A tuple in requests and answers: the text `type:id#relation@subject`, or an object with an expiry. */

import { type ConditionInput, parseTupleInput } from '../../../../engine/writes/relationships.ts'
import { parseInstantText } from '../../../../shared/base/instant.ts'
import { isJsonObject } from '../../../../shared/domain/json.ts'
import { formatTuple, isObject, isRelation, isSubject, quote } from '../../../../shared/domain/names.ts'
import type { Tuple, TupleKey } from '../../../../shared/domain/tuple.ts'
import { parseJson } from '../../http/json.ts'
import { refuseParameter } from '../../http/pagination.ts'
import { type JsonSchema, object, TIMESTAMP } from '../../http/schemas.ts'
import { RequestProblem } from '../../http/status.ts'

/** A name in a body. The bound exceeds the longest real name, so that a longer one gets a good error. */
const WORD = { type: 'string', maxLength: 1_024 }
export const PARTS = { object: WORD, relation: WORD, subject: WORD }
export const PARTS_REQUIRED = ['object', 'relation', 'subject']
export const EXPIRY = {
  ...TIMESTAMP,
  type: ['string', 'null'],
  description: 'When the tuple expires; null or absent: never.',
}
export const CONDITION = {
  ...object({ name: WORD, context: { type: 'object', additionalProperties: true } }, ['name']),
  type: ['object', 'null'],
  description: 'The tuple counts only while this condition holds; values in its context win over those of a question.',
}
export const TUPLE: JsonSchema = {
  ...object({ ...PARTS, expires_at: EXPIRY, condition: CONDITION }, PARTS_REQUIRED),
  type: ['string', 'object'],
  maxLength: 2_048,
  description: 'The text type:id#relation@subject, or an object with its parts, an expiry and a condition.',
}
const MEMBERS: ReadonlySet<string> = new Set(['object', 'relation', 'subject', 'expires_at', 'condition'])
// Matches an RFC 3339 instant as strictly as the schema's date-time.
const INSTANT = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/

/**
 * Parses one line of an import: a JSON string or object as in a request body, or `tuple` or `tuple instant` in plain text.
 * Null for an empty line and for a comment, which begins with `#`.
 */
export function parseTupleLine(line: string): Tuple | string | null {
  const text = line.trim()
  if (text === '' || text.startsWith('#')) return null
  if (text.startsWith('{') || text.startsWith('"')) return parseJsonLine(text)
  const [tuple = '', expires_at, ...rest] = text.split(/[ \t]+/)
  if (rest.length > 0) return 'has more than a tuple and an instant'
  const parsed = parseTupleInput(tuple)
  return expires_at === undefined || typeof parsed === 'string' ? parsed : withExpiry(parsed, expires_at)
}

function parseJsonLine(text: string): Tuple | string {
  let value: unknown
  try {
    value = parseJson(text)
  } catch (err) {
    if (err instanceof RequestProblem) return err.issues.length === 0 ? 'is not JSON' : err.message
    throw err
  }
  if (typeof value === 'string') return parseTupleInput(value)
  if (typeof value !== 'object' || value === null) return 'is neither a tuple nor an object'
  const unknown = Object.keys(value).find((name) => !MEMBERS.has(name))
  if (unknown !== undefined) return `${JSON.stringify(unknown)} is not a known member`
  const { object, relation, subject, expires_at = null, condition = null }: { [name: string]: unknown } = { ...value }
  if (typeof object !== 'string' || typeof relation !== 'string' || typeof subject !== 'string')
    return 'needs object, relation and subject as strings'
  if (!isCondition(condition)) return 'condition is not an object with a name and a context'
  const parsed = parseTupleInput({ object, relation, subject, condition })
  if (expires_at === null || typeof parsed === 'string') return parsed
  return typeof expires_at === 'string' ? withExpiry(parsed, expires_at) : 'expires_at is not an instant'
}

function isCondition(value: unknown): value is ConditionInput | null {
  if (value === null) return true
  if (typeof value !== 'object' || Object.keys(value).some((name) => name !== 'name' && name !== 'context'))
    return false
  const { name, context = {} }: { name?: unknown; context?: unknown } = value
  return typeof name === 'string' && isJsonObject(context)
}

function withExpiry(tuple: Tuple, instant: string): Tuple | string {
  const expiresAtMs = INSTANT.test(instant) ? parseInstantText(instant) : Number.NaN
  return Number.isNaN(expiresAtMs) ? 'expires_at is not an instant' : { ...tuple, expiresAtMs }
}

export type TupleFilter = Partial<TupleKey>
const FORMS = {
  object: { is: isObject, hint: 'type:id, such as doc:1' },
  relation: { is: isRelation, hint: 'its name alone, such as viewer' },
  subject: { is: isSubject, hint: 'type:id or type:id#relation, such as user:alice or group:staff#member' },
}

/** Reads a filter. Throws RequestProblem if it can match no tuple, since a typo would look like an empty list. */
export function parseFilter({ object, relation, subject }: TupleFilter): TupleFilter {
  const given = Object.entries({ object, relation, subject }).filter(([, value]) => value !== undefined)
  const filter: TupleFilter = Object.fromEntries(given)
  for (const name of ['object', 'relation', 'subject'] as const) {
    const value = filter[name]
    const { is, hint } = FORMS[name]
    if (value !== undefined && !is(value))
      throw refuseParameter(name, `${quote(value)} is not the ${name} of a tuple; write ${hint}`)
  }
  return filter
}

export function presentTuple({ expiresAtMs, ...tuple }: Tuple) {
  return { ...tuple, expires_at: expiresAtMs === null ? null : new Date(expiresAtMs).toISOString() }
}

/** A line of an export, in the form for parseTupleLine. */
export function formatTupleLine(tuple: Tuple, format: 'json' | 'text'): string {
  const name = formatTuple(tuple)
  // Plain text has no form for a condition. An import reads lines of both kinds.
  if (tuple.condition !== undefined) return JSON.stringify(presentTuple(tuple))
  if (tuple.expiresAtMs === null) return format === 'json' ? JSON.stringify(name) : name
  return format === 'json'
    ? JSON.stringify(presentTuple(tuple))
    : `${name} ${new Date(tuple.expiresAtMs).toISOString()}`
}
