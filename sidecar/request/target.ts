/** Parses a request target (RFC 9112 section 3.2), and refuses one that two parsers could read differently. */
import { malformed, RequestError } from './errors.ts'

export type RequestTarget = {
  /** Path and query exactly as they arrived; they are forwarded unchanged. */
  readonly raw: string
  readonly path: string
  /** The query without the `?`; null if absent. */
  readonly query: string | null
  /** The path's segments, each percent-decoded once. The path `/` has one empty segment. */
  readonly segments: readonly string[]
  /**
   * Like `segments`, but a segment with an encoded reserved character stays encoded: by RFC 3986 section 2.2 it differs from a
   * segment with the character itself, although many servers decode both.
   */
  readonly written: readonly string[]
  /** Host and port of the absolute form; null for the origin form. */
  readonly authority: string | null
  /** The path has `%2f`, which only routes with `encoded_slash` accept. */
  readonly encodedSlash: boolean
  /** The path has `;` or `%3b`, which only routes with `semicolon` accept. */
  readonly semicolon: boolean
}

/** Real paths have some dozens of segments at most, and each reading of a path (path-readings.ts) copies them. */
export const SEGMENTS_MAX = 256
// pchar and `/` of RFC 3986 section 3.3, and four more that browsers send unescaped (URL Standard, path percent-encode set).
const PATH = /^\/[A-Za-z0-9\-._~!$&'()*+,;=:@%/[\]|^]*$/
// Wider than RFC 3986 section 3.4, since browsers send more characters unescaped. Excludes control, non-ASCII, quote, `<`, `>`, `#`.
const QUERY = /^[\x21\x24-\x3b\x3d\x3f-\x7e]*$/
const ABSOLUTE = /^https?:\/\/([^/?#]+)(.*)$/i
const BAD_TRIPLET = /%(?![0-9A-Fa-f]{2})/

/** Reads a request target. Throws RequestError. */
export function parseTarget(text: string): RequestTarget {
  const absolute = text.startsWith('/') ? null : ABSOLUTE.exec(text)
  const raw = absolute === null ? text : (absolute[2] ?? '')
  if (!raw.startsWith('/')) throw malformed('The request target is neither a path nor an http URL with a path')
  const mark = raw.indexOf('?')
  const path = mark < 0 ? raw : raw.slice(0, mark)
  const query = mark < 0 ? null : raw.slice(mark + 1)
  if (query !== null) checkQuery(query)
  return { raw, path, query, authority: absolute?.[1] ?? null, ...parsePath(path) }
}

/** The target as written, for a request that only shadow mode lets pass. Null: HTTP gives servers no such form (RFC 9112 section 3.2). */
export function unreadTarget(text: string): RequestTarget | null {
  const absolute = text.startsWith('/') ? null : ABSOLUTE.exec(text)
  const rest = absolute === null ? text : (absolute[2] ?? '')
  const raw = absolute === null || rest.startsWith('/') ? rest : `/${rest}`
  if (!raw.startsWith('/')) return null
  const [path = '', ...query] = raw.split('?')
  const unread = { segments: [], written: [], encodedSlash: false, semicolon: false }
  return { raw, path, query: query.length === 0 ? null : query.join('?'), authority: absolute?.[1] ?? null, ...unread }
}

function checkQuery(query: string): void {
  if (!QUERY.test(query)) throw malformed('The query has a character that a URL cannot have')
  if (BAD_TRIPLET.test(query)) throw malformed('The query has a percent sign without two hexadecimal digits')
  if (query.includes('%00')) throw malformed('The query has an encoded NUL')
}

function parsePath(path: string): Pick<RequestTarget, 'segments' | 'written' | 'encodedSlash' | 'semicolon'> {
  if (!PATH.test(path)) throw malformed('The path has a character that a path cannot have')
  if (path.includes('//')) throw malformed('The path has an empty segment')
  let semicolon = path.includes(';')
  let encodedSlash = false
  const raw = path.slice(1).split('/', SEGMENTS_MAX + 1)
  if (raw.length > SEGMENTS_MAX) throw tooManySegments()
  const segments = raw.map((segment) => {
    if (isDots(segment)) throw malformed('The path has a dot segment')
    if (!segment.includes('%')) return segment
    const decoded = decodeSegment(segment)
    // Servers that trim names read `%20..` as `..`.
    if (isDots(decoded.trim())) throw malformed('The path has a dot segment')
    semicolon ||= decoded.includes(';')
    if (decoded.includes('/')) {
      encodedSlash = true
      if (decoded.split('/').some((piece) => piece === '' || isDots(piece.trim())))
        throw malformed('The path has a dot segment or an empty segment beside an encoded slash')
    }
    return decoded
  })
  const written = path.includes('%')
    ? raw.map((text, at) => (RESERVED.test(text) ? text : (segments[at] ?? '')))
    : segments
  return { segments, written, encodedSlash, semicolon }
}

export const tooManySegments = (): RequestError =>
  new RequestError('path_too_complex', `The path has more than ${SEGMENTS_MAX} segments`)

/** Servers that know path parameters read `..;a=b` as `..`. */
const isDots = (segment: string): boolean => segment.startsWith('.') && /^\.{1,2}(?:[ \t]*;|$)/.test(segment)

/** RFC 3986 section 3.3: encodings of characters that a segment may also contain unencoded. */
const RESERVED = /%(?:21|24|26|27|28|29|2a|2b|2c|3a|3b|3d|40|5b|5d|5e|7c)/i

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const UNRESERVED = /[A-Za-z0-9\-._~]/
// C0, DEL and C1: no name needs them, and other programs end lines and strings at them.
const CONTROL = /[\p{Cc}]/u
const DOUBLE_ENCODED = /%[0-9A-Fa-f]{2}/

function decodeSegment(segment: string): string {
  if (BAD_TRIPLET.test(segment)) throw malformed('The path has a percent sign without two hexadecimal digits')
  for (const [, digits = ''] of segment.matchAll(/%(..)/g)) {
    const character = String.fromCharCode(Number.parseInt(digits, 16))
    // RFC 3986 section 2.3: such an encoding only makes a path look different.
    if (UNRESERVED.test(character)) throw malformed('The path encodes a character that needs no encoding')
    if (character === '\\') throw malformed('The path has an encoded backslash')
  }
  const decoded = decodeUtf8(segment)
  if (CONTROL.test(decoded)) throw malformed('The path has an encoded control character')
  if (DOUBLE_ENCODED.test(decoded)) throw malformed('The path is percent-encoded twice')
  return decoded
}

function decodeUtf8(segment: string): string {
  const bytes = segment.replace(/%(..)/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
  try {
    return UTF8.decode(Buffer.from(bytes, 'latin1'))
  } catch {
    throw malformed('The path is not UTF-8')
  }
}

export type Authority = {
  /** The host's name in lower case, without a final dot. */
  readonly hostname: string
  readonly port: string | null
  /** Written with a dot at its end: the same name (RFC 3986 section 3.2.2), but a service may take it for another host. */
  readonly dotted?: boolean
}

// RFC 3986 section 3.2.2 without user information; names in the characters that DNS and service names have.
const AUTHORITY = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?)(\.)?(?::(\d{1,5}))?$/

const PORT_MAX = 65_535
// Matches every host of RFC 3986 section 3.2.2, and the empty host of RFC 9112 section 3.2.
const ANY_HOST = /^(\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})*)(?::\d*)?$/

/** The host of a request that only shadow mode lets through. Null: HTTP refuses it, too. */
export function unreadAuthority(text: string): Authority | null {
  const match = ANY_HOST.exec(text)
  return match?.[1] === undefined ? null : { hostname: match[1].toLowerCase(), port: null }
}

/** The host name in lower case and the port of a Host field. Throws RequestError. */
export function parseAuthority(text: string): Authority {
  const match = AUTHORITY.exec(text)
  if (match?.[1] === undefined || Number(match[3] ?? 0) > PORT_MAX)
    throw malformed('The host is not a host name with an optional port')
  const host = { hostname: match[1].toLowerCase(), port: match[3] ?? null }
  return match[2] === undefined ? host : { ...host, dotted: true }
}
