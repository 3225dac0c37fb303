/** Parses a compact JWS (RFC 7515 section 7.1) strictly: three parts, canonical base64url, UTF-8, JSON objects. */
import { lowerAscii } from '../base/blanks.ts'
import type { JsonMembers } from '../base/json-text.ts'

export type Jws = {
  readonly header: JsonMembers
  readonly payload: JsonMembers
  readonly signed: { readonly input: Buffer; readonly signature: Buffer }
}

/** The longest access token that any part of the system accepts. */
export const TOKEN_CHARS_MAX = 16_384

const BASE64URL = /^[A-Za-z0-9_-]+$/
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Splits a compact JWS; null: the text is none, but for example an encrypted token (RFC 7516). `textMax` is checked first. */
export function parseJws(text: string, textMax: number): Jws | null {
  if (text.length > textMax) return null
  const parts = text.split('.', 4)
  const [head, body, tail] = parts
  if (parts.length !== 3 || head === undefined || body === undefined || tail === undefined) return null
  const header = parseMembers(head)
  const payload = header === null ? null : parseMembers(body)
  const signature = decode(tail)
  if (header === null || payload === null || signature === null) return null
  // No extension is supported (RFC 7515 section 4.1.11): RFC 7797, for example, changes which bytes are signed.
  if (header.crit !== undefined || header.b64 !== undefined || header.zip !== undefined) return null
  return {
    header,
    payload,
    signed: { input: Buffer.from(text.slice(0, head.length + 1 + body.length), 'latin1'), signature },
  }
}

function parseMembers(part: string): JsonMembers | null {
  const bytes = decode(part)
  if (bytes === null) return null
  try {
    return members(JSON.parse(UTF8.decode(bytes)))
  } catch {
    return null
  }
}

/** A JSON object without a prototype, so that lookups find only names that were sent; null for any other value. */
export function members(value: unknown): JsonMembers | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  return Object.assign(Object.create(null), value)
}

/** The decoded part; null for non-canonical base64url, because a second spelling of a token would have another digest. */
function decode(part: string): Buffer | null {
  if (!BASE64URL.test(part)) return null
  const bytes = Buffer.from(part, 'base64url')
  return bytes.toString('base64url') === part ? bytes : null
}

/** RFC 7515 section 4.1.9: a media type without `application/` when it has no other slash; case does not count. */
export function hasType(header: JsonMembers, type: string): boolean {
  if (typeof header.typ !== 'string') return false
  const typ = lowerAscii(header.typ)
  return typ === type || typ === `application/${type}`
}
