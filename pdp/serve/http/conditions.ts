/** Conditional requests (RFC 9110 section 13): the tag of what is stored, and whether a request still wants it so. */
import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { RequestProblem } from '../problems/status.ts'

type Conditions = Pick<IncomingHttpHeaders, 'if-match' | 'if-none-match'>

// RFC 9110 section 8.8.3
const TAG = String.raw`(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"`
const LIST = new RegExp(String.raw`^(?:\*|${TAG}(?:[ \t]*,[ \t]*${TAG})*)$`)

/** A strong entity tag: another one for every other state. */
export function tagOf(state: object): string {
  return `"${createHash('sha256').update(JSON.stringify(state)).digest('base64url').slice(0, 27)}"`
}

/** Throws RequestProblem `precondition_failed`; null is what does not exist. `request_invalid` for what is no list of tags. */
export function requireConditions(headers: Conditions, tag: string | null): void {
  const match = parseTags('If-Match', headers['if-match'])
  // A weak tag never matches here: section 8.8.3.2.
  if (match !== null && (tag === null || !(match === '*' || match.includes(tag)))) {
    throw new RequestProblem(
      'precondition_failed',
      `If-Match: ${tag === null ? 'there is none yet' : `it is ${tag} now`}`,
    )
  }
  if (isNoneMatch(headers, tag)) return
  throw new RequestProblem('precondition_failed', `If-None-Match: there is one already, ${tag}`)
}

/** False when `If-None-Match` names what is stored: for a read that is allowed, and the reader has it already. */
export function isNoneMatch(headers: Conditions, tag: string | null): boolean {
  const others = parseTags('If-None-Match', headers['if-none-match'])
  if (others === null || tag === null) return true
  return others !== '*' && !others.some((other) => other.replace(/^W\//, '') === tag)
}

function parseTags(name: string, value: string | undefined): '*' | readonly string[] | null {
  if (value === undefined) return null
  const text = value.trim()
  if (!LIST.test(text)) throw new RequestProblem('request_invalid', `${name} is neither * nor a list of entity tags`)
  return text === '*' ? '*' : (text.match(new RegExp(TAG, 'g')) ?? [])
}
