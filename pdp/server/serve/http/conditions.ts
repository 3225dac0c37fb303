/** Conditional requests (RFC 9110 section 13): makes entity tags and evaluates If-Match and If-None-Match. */
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { trimBlanks } from '../../../shared/base/blanks.ts'
import { type ConstantAnswer, entityTag, isKnown } from '../../../shared/process/http/constant-answer.ts'
import { RequestProblem, SUCCESS } from './status.ts'

type Conditions = Pick<IncomingHttpHeaders, 'if-match' | 'if-none-match'>

// An entity tag (RFC 9110 section 8.8.3).
const TAG = String.raw`(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"`
const LIST = new RegExp(String.raw`^(?:\*|${TAG}(?:[ \t]*,[ \t]*${TAG})*)$`)

/** A strong entity tag: different states have different tags. */
export const tagOf = (state: object): string => entityTag(JSON.stringify(state))

/** `tag`: null if nothing is stored. Throws RequestProblem `precondition_failed`, or `request_invalid` for malformed tags. */
export function requireConditions(headers: Conditions, tag: string | null): void {
  const match = parseTags('If-Match', headers['if-match'])
  // Weak tags never match (section 8.8.3.2).
  if (match !== null && (tag === null || !(match === '*' || match.includes(tag)))) {
    throw new RequestProblem(
      'precondition_failed',
      `If-Match: ${tag === null ? 'it does not exist yet' : `its tag is now ${tag}`}`,
    )
  }
  if (isNoneMatch(headers, tag)) return
  throw new RequestProblem('precondition_failed', `If-None-Match: it exists already, with the tag ${tag}`)
}

/** False if `If-None-Match` names the stored state, so that 304 is enough. */
export function isNoneMatch(headers: Conditions, tag: string | null): boolean {
  const others = parseTags('If-None-Match', headers['if-none-match'])
  if (others === null || tag === null) return true
  return others !== '*' && !others.some((other) => other.replace(/^W\//, '') === tag)
}

function parseTags(name: string, value: string | undefined): '*' | readonly string[] | null {
  if (value === undefined) return null
  const text = trimBlanks(value)
  if (!LIST.test(text)) throw new RequestProblem('request_invalid', `${name} is neither * nor a list of entity tags`)
  return text === '*' ? '*' : (text.match(new RegExp(TAG, 'g')) ?? [])
}

/** Sends an answer that is the same for all readers, or 304. */
export function sendConstant(
  request: FastifyRequest,
  reply: FastifyReply,
  { answer, type }: { readonly answer: ConstantAnswer; readonly type: string },
): FastifyReply {
  reply.header('etag', answer.tag)
  if (isKnown(answer, request.headers['if-none-match'])) return reply.code(SUCCESS.unmodified).send()
  return reply.type(type).send(answer.bytes)
}
