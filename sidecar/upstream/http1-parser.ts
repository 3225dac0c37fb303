/** Makes undici accept valid responses that its parser refuses. */
import type { Socket } from 'node:net'
import symbols from 'undici/lib/core/symbols.js'

/** Private members of undici's parser: a new version may change them. */
type Parser = {
  /** Names and values alternating. */
  headers: readonly Buffer[]
  /** The length of the body; -1: the response does not say it. */
  contentLength: number
  onHeadersComplete(status: number, upgrade: boolean, keepsAlive: boolean): number
}

export const CONTINUE = 100
/** The status that replaces 100, for which undici would end the connection. It is not registered. */
export const PASSED_OVER = 199

/** Must be called when undici has taken over the connection. */
export function acceptValid(connection: Socket & { [symbols.kParser]?: Parser }): void {
  const parser = connection[symbols.kParser]
  if (parser === undefined) return
  const complete = parser.onHeadersComplete
  parser.onHeadersComplete = (status, upgrade, keepsAlive) => {
    if (parser.contentLength !== -1) parser.contentLength = lengthIn(parser.headers)
    // RFC 9110 section 15.2: a client ignores informational responses that it did not ask for. undici does so, except for 100.
    return complete.call(parser, status === CONTINUE ? PASSED_OVER : status, upgrade, keepsAlive)
  }
}

const CONTENT_LENGTH = 'content-length'

/** The length without blanks after the number, which undici takes for digits. Its parser has refused everything else. */
function lengthIn(headers: readonly Buffer[]): number {
  for (let at = 0; at + 1 < headers.length; at += 2)
    if (headers[at]?.length === CONTENT_LENGTH.length && String(headers[at]).toLowerCase() === CONTENT_LENGTH)
      return Number(headers[at + 1])
  return -1
}
