/** Reads the header fields of an upstream's response. */
import type { Dispatcher } from 'undici'

export type RawFields = Dispatcher.DispatchController['rawHeaders']

/** Names and values alternating, as Latin-1, which keeps their bytes (RFC 9110 section 5.5). */
export function rawFields(raw: RawFields): string[] {
  if (!Array.isArray(raw)) return []
  return raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1', 0, endOf(part))))
}

/** The length without blanks at the end: they are no part of a value, and HTTP/2 clients refuse them (RFC 9113 section 8.2.1). */
function endOf(value: Buffer): number {
  let end = value.length
  while (end > 0 && (value[end - 1] === SPACE || value[end - 1] === TAB)) end -= 1
  return end
}

const SPACE = 0x20
const TAB = 0x09

const TRANSFER_ENCODING = 'transfer-encoding'
/** Matches `chunked`, but not with a tab: the parsers overlook a coding that a tab follows. */
const CHUNKED = /^chunked *$/i

/**
 * True if the answer has a transfer coding other than one `chunked`. Our parsers decode no other, and some make them miss the end of the
 * body (RFC 9112 section 6.1).
 */
export function hasOtherCoding(raw: RawFields): boolean {
  let codings = 0
  for (let at = 0; Array.isArray(raw) && at + 1 < raw.length; at += 2) {
    if (raw[at]?.length !== TRANSFER_ENCODING.length) continue
    if (String(raw[at]).toLowerCase() !== TRANSFER_ENCODING) continue
    codings += 1
    if (codings > 1 || !CHUNKED.test(String(raw[at + 1]))) return true
  }
  return false
}
