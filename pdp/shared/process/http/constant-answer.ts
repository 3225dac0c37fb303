/** Answers that are the same for everybody: bytes that are made once, with a tag by which a reader that has them gets 304. */
import { createHash } from 'node:crypto'
import { trimBlanks } from '../../base/blanks.ts'

export type ConstantAnswer = { readonly bytes: Buffer; readonly tag: string }

export function constantAnswer(document: object): ConstantAnswer {
  const text = JSON.stringify(document)
  return { bytes: Buffer.from(text), tag: entityTag(text) }
}

/** A strong one (RFC 9110 section 8.8.3): different texts have different tags. */
export const entityTag = (text: string): string =>
  `"${createHash('sha256').update(text).digest('base64url').slice(0, 27)}"`

/** True: the reader has it already. `field`: If-None-Match, compared weakly (RFC 9110 section 13.1.2). */
export function isKnown({ tag }: ConstantAnswer, field: string | undefined): boolean {
  return field?.split(',').some((one) => ['*', tag, `W/${tag}`].includes(trimBlanks(one))) === true
}
