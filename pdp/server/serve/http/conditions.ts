/** Conditional requests (RFC 9110 section 13): entity tags, and the evaluation of If-Match and If-None-Match. */
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { trimBlanks } from '../../../shared/base/blanks.ts'
import { type ConstantAnswer, entityTag, isKnown } from '../../../shared/process/http/constant-answer.ts'
import { RequestProblem, SUCCESS } from './status.ts'

type Conditions = Pick<IncomingHttpHeaders, 'if-match' | 'if-none-match'>

// RFC 9110 section 8.8.3
const TAG = String.raw`(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"`
const LIST = new RegExp(String.raw`^(?:\*|${TAG}(?:[ \t]*,[ \t]*${TAG})*)$`)

/** A strong entity tag: different states have different tags. */
export const tagOf = (state: object): string => entityTag(JSON.stringify(state))

/** `tag` is null if nothing is stored. Throws RequestProblem `precondition_failed`, or `request_invalid` for a malformed list of tags. */
export function requireConditions(headers: Conditions, tag: string | null): void {
  const match = parseTags('If-Match', headers['if-match'])
  // A weak tag never matches here: section 8.8.3.2.
  if (match !== null && (tag === null || !(match === '*' || match.includes(tag)))) {
    throw new RequestProblem(
      'precondition_failed',
      `If-Match: ${tag === null ? 'it does not exist yet' : `its tag is now ${tag}`}`,
    )
  }
  if (isNoneMatch(headers, tag)) return
  throw new RequestProblem('precondition_failed', `If-None-Match: it exists already, with the tag ${tag}`)
}

/** False if `If-None-Match` names the stored state: the reader has it already, and the answer is 304. */
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

/** Sends an answer that is the same for everybody, or 304. */
export function sendConstant(
  request: FastifyRequest,
  reply: FastifyReply,
  { answer, type }: { readonly answer: ConstantAnswer; readonly type: string },
): FastifyReply {
  reply.header('etag', answer.tag)
  if (isKnown(answer, request.headers['if-none-match'])) return reply.code(SUCCESS.unmodified).send()
  return reply.type(type).send(answer.bytes)
}
