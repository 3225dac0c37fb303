/** Reads and writes cookies (RFC 6265), and keeps those of the sidecar away from the service. */

/** Browsers accept a cookie with the prefix `__Host-` only with Secure, with Path=/ and without Domain: no other host can set it. */
export const OWN_COOKIES = '__Host-portcullis-'
// Some parsers ignore case. A cookie without a name is sent as its value alone, which then looks like a name.
const OWN_ANYWHERE = /__host-portcullis/i
const OWN_NAME = /^[\s=]*__host-portcullis/i

export type SeparatedCookies = {
  /** Header fields, names and values in turn, without the sidecar's cookies. */
  readonly raw: readonly string[]
  /** The sidecar's cookies by name. */
  readonly own: ReadonlyMap<string, string>
  /** One of them came more than once, so that two readers could believe different ones. */
  readonly repeated: boolean
}

const NONE: ReadonlyMap<string, string> = new Map()

/** Takes the sidecar's cookies out of a request's fields. Fields without any stay as they are. */
export function separateCookies(raw: readonly string[]): SeparatedCookies {
  if (!raw.some((value, at) => at % 2 === 1 && isCookie(raw[at - 1]) && OWN_ANYWHERE.test(value)))
    return { raw, own: NONE, repeated: false }
  const fields: string[] = []
  const own = new Map<string, string>()
  let repeated = false
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = '', value = ''] = [raw[at], raw[at + 1]]
    if (!isCookie(name) || !OWN_ANYWHERE.test(value)) {
      fields.push(name, value)
      continue
    }
    const pairs = value.split(';')
    for (const pair of pairs.filter((text) => OWN_NAME.test(text))) {
      const [key, text] = split(pair)
      repeated ||= own.has(key)
      own.set(key, text)
    }
    const others = pairs.filter((text) => !OWN_NAME.test(text)).map((text) => text.trim())
    if (others.length > 0) fields.push(name, others.join('; '))
  }
  return { raw: fields, own, repeated }
}

const isCookie = (name: string | undefined): boolean => name?.length === 6 && name.toLowerCase() === 'cookie'

function split(pair: string): readonly [name: string, value: string] {
  const at = pair.indexOf('=')
  return at < 0 ? [pair.trim(), ''] : [pair.slice(0, at).trim(), pair.slice(at + 1).trim()]
}

/** A value for Set-Cookie. Without `maxAgeSeconds` it ends with the browser; 0 removes the cookie. */
export function ownCookie(name: string, value: string, maxAgeSeconds: number | null = null): string {
  const age = maxAgeSeconds === null ? '' : `; Max-Age=${maxAgeSeconds}`
  return `${name}=${value}; Path=/; Secure; HttpOnly; SameSite=Lax${age}`
}

/** The service's response fields, names and values in turn, without those that would set a cookie of the sidecar. */
export function withoutOwnCookies(fields: string[]): string[] {
  const sets = (at: number): boolean =>
    fields[at]?.toLowerCase() === 'set-cookie' && OWN_NAME.test(fields[at + 1] ?? '')
  if (!fields.some((_, at) => at % 2 === 0 && sets(at))) return fields
  return fields.filter((_, at) => !sets(at - (at % 2)))
}
