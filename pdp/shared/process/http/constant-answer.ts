/** Answers that are the same for all readers: the bytes are made once, and a reader that names their tag gets 304. */
import { createHash } from 'node:crypto'
import { trimBlanks } from '../../base/blanks.ts'

export type ConstantAnswer = { readonly bytes: Buffer; readonly tag: string }

export function constantAnswer(document: object): ConstantAnswer {
  const text = JSON.stringify(document)
  return { bytes: Buffer.from(text), tag: entityTag(text) }
}

/** A strong tag (RFC 9110 section 8.8.3), different for different texts. */
export const entityTag = (text: string): string =>
  `"${createHash('sha256').update(text).digest('base64url').slice(0, 27)}"`

/** True if the reader names the answer's tag. `field`: If-None-Match, compared weakly (RFC 9110 section 13.1.2). */
export function isKnown({ tag }: ConstantAnswer, field: string | undefined): boolean {
  return field?.split(',').some((one) => ['*', tag, `W/${tag}`].includes(trimBlanks(one))) === true
}
