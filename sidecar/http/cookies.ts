/** Reads and writes cookies (RFC 6265), and hides the sidecar's own cookies from the service. */
import { isIP } from 'node:net'
import { trimBlanks } from '../../pdp/shared/base/blanks.ts'

/** Browsers accept a cookie with the prefix `__Host-` only with Secure, with Path=/ and without Domain: no other host can set it. */
export const OWN_COOKIES = '__Host-portcullis-'
// Names that some server could read as ours, though preceded by blanks, bytes that some take for blanks, or `=` of an empty name.
const LIKE_OWN_ANYWHERE = /__host-portcullis/i
export const LIKE_OWN = /^[^!-<>-~]*__host-portcullis/i
/** How many values of one cookie name are read. */
const VALUES_MAX = 4

export type SeparatedCookies = {
  /** Header fields, names and values alternating, without the sidecar's cookies. */
  readonly raw: readonly string[]
  /** The sidecar's cookies by name, without repeated names: two parsers could choose different values. */
  readonly own: ReadonlyMap<string, string>
  /** The sidecar's cookies, with one map for each value of a repeated name, so that sign-out ends every session that may be meant. */
  readonly readings: readonly ReadonlyMap<string, string>[]
  /** Names that are repeated, or lack the prefix that proves this host as setter: another host of the domain may have set them. */
  readonly planted: readonly string[]
}

const NONE: ReadonlyMap<string, string> = new Map()

/** Takes the sidecar's cookies out of a request's fields. Other fields stay as they are. */
export function separateCookies(raw: readonly string[]): SeparatedCookies {
  if (!raw.some((value, at) => at % 2 === 1 && isCookie(raw[at - 1]) && LIKE_OWN_ANYWHERE.test(value)))
    return { raw, own: NONE, readings: [NONE], planted: [] }
  const fields: string[] = []
  const found = new Map<string, string[]>()
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = '', value = ''] = [raw[at], raw[at + 1]]
    if (!isCookie(name) || !LIKE_OWN_ANYWHERE.test(value)) {
      fields.push(name, value)
      continue
    }
    const pairs = value.split(';')
    for (const pair of pairs.filter((text) => LIKE_OWN.test(text))) {
      const [key, text] = split(pair)
      found.set(key, [...(found.get(key) ?? []), text].slice(0, VALUES_MAX))
    }
    const others = pairs.filter((text) => !LIKE_OWN.test(text)).map(trimBlanks)
    if (others.length > 0) fields.push(name, others.join('; '))
  }
  return { raw: fields, ...sorted(found) }
}

/** Groups the cookies by their names. Without exactly our prefix, any host of the domain may have set the cookie. */
function sorted(found: ReadonlyMap<string, readonly string[]>): Omit<SeparatedCookies, 'raw'> {
  const ours = [...found].filter(([name]) => name.startsWith(OWN_COOKIES))
  const own = new Map(ours.flatMap(([name, [value = '', ...more]]) => (more.length > 0 ? [] : [[name, value]])))
  const countMax = Math.max(1, ...ours.map(([, values]) => values.length))
  const readings = Array.from(
    { length: countMax },
    (_, at) => new Map(ours.map(([name, values]) => [name, values[Math.min(at, values.length - 1)] ?? ''])),
  )
  return { own, readings, planted: [...found.keys()].filter((name) => name !== '' && !own.has(name)) }
}

const isCookie = (name: string | undefined): boolean => name?.length === 6 && name.toLowerCase() === 'cookie'

/** Splits a pair into name and value as browsers do (RFC 6265 section 5.2): only space and tab around both are dropped. */
function split(pair: string): readonly [name: string, value: string] {
  const at = pair.indexOf('=')
  return at < 0 ? [trimBlanks(pair), ''] : [trimBlanks(pair.slice(0, at)), trimBlanks(pair.slice(at + 1))]
}

/** A value for Set-Cookie. Null `maxAgeSeconds`: the cookie ends with the browser; 0 removes it. */
export function ownCookie(name: string, value: string, maxAgeSeconds: number | null = null): string {
  const age = maxAgeSeconds === null ? '' : `; Max-Age=${maxAgeSeconds}`
  return `${name}=${value}; Path=/; Secure; HttpOnly; SameSite=Lax${age}`
}

/** The service's response fields, names and values alternating, without those that would set a cookie of the sidecar. */
export function withoutOwnCookies(fields: string[]): string[] {
  const sets = (at: number): boolean =>
    fields[at]?.toLowerCase() === 'set-cookie' && LIKE_OWN.test(fields[at + 1] ?? '')
  if (!fields.some((_, at) => at % 2 === 0 && sets(at))) return fields
  return fields.filter((_, at) => !sets(at - (at % 2)))
}

/** The bytes of all removals at most: gateways have small buffers for the head of an answer. */
const REMOVAL_BYTES_MAX = 3_000

/**
 * Set-Cookie values that remove these cookies under each path, domain and partition from which a browser could send them here. `path`: the
 * request's path as the browser wrote it.
 */
export function removals(names: readonly string[], at: { readonly hostname: string; readonly path: string }): string[] {
  const lines: string[] = []
  let bytes = 0
  for (const partition of ['', '; Partitioned'])
    for (const name of names)
      for (const path of pathsAbove(at.path))
        for (const domain of domainsAbove(at.hostname)) {
          const line = `${name}=; Path=${path}${domain}; Max-Age=0; Secure${partition}`
          bytes += line.length
          if (bytes > REMOVAL_BYTES_MAX) return lines
          lines.push(line)
        }
  return lines
}

/** The path itself and all paths above it: a browser sends the cookies of all these to the path (RFC 6265 section 5.1.4). */
function* pathsAbove(path: string): Generator<string> {
  const [readable = ''] = path.split(';', 1)
  for (let at = readable.indexOf('/'); at >= 0; at = readable.indexOf('/', at + 1)) {
    if (at > 0) yield readable.slice(0, at)
    yield readable.slice(0, at + 1)
  }
  if (!readable.endsWith('/')) yield readable
}

/** The attribute for no domain, then for each domain that this host may set cookies for. */
function* domainsAbove(hostname: string): Generator<string> {
  yield ''
  yield `; Domain=${hostname}`
  if (isIP(hostname) !== 0 || hostname.startsWith('[')) return
  const labels = hostname.split('.')
  for (let at = 1; at < labels.length - 1; at += 1) yield `; Domain=${labels.slice(at).join('.')}`
}
