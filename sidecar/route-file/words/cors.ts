/** `cors` of a route file and of a route: which pages of other origins may read answers. */
import type { Node } from 'yaml'
import type { Cors } from '../../http/cors.ts'
import type { Route } from '../../routes/route.ts'
import { count, FLAG, HEADER, listOf, type Members, oneOf, optional, required, textLike } from './schema.ts'
import type { YamlReader } from './yaml-reader.ts'

const ORIGIN = /^(\*|[a-z][a-z0-9+.-]*:\/\/[^/?#\s]+)$/
const PREFLIGHTS = ['answer', 'pass'] as const
/** Browsers use the answer to a preflight for a day at most. */
const MAX_AGE_SECONDS = { min: 0, max: 86_400 }

export const CORS = {
  origins: required(
    listOf(textLike(ORIGIN)),
    'Origins of pages that may read answers, such as https://app.example.com; https://*.example.com for every name with one label more, of a domain that is yours alone; or "*" alone for every page.',
  ),
  credentials: optional(FLAG, 'Pages may send cookies, as with sign_in. Not with "*". Default: false.'),
  allow_headers: optional(
    listOf(textLike(HEADER)),
    'Request header fields that pages may send. Default: those that the preflight asks for.',
  ),
  expose_headers: optional(
    listOf(textLike(HEADER)),
    'Fields of answers that pages may read, beside WWW-Authenticate, DPoP-Nonce, Retry-After, X-Request-Id and Portcullis-Problem.',
  ),
  max_age: optional(count(MAX_AGE_SECONDS), 'Seconds for which browsers keep the answer to a preflight.'),
  preflight: optional(
    oneOf(PREFLIGHTS),
    'answer: the sidecar answers preflights, and answers of the service without CORS fields get those of this entry. pass: preflights go to the service without token and cookies, also where its routes need them, and the service writes the CORS fields of its own answers. Default: answer.',
  ),
} as const satisfies Members

export function readCors(reader: YamlReader, node: Node | null): Cors | null {
  const members = node === null ? null : reader.members(node, 'cors', CORS)
  if (members === null) return null
  const origins = reader.list(members.origins, 'origins', readOrigin) ?? []
  const credentials = members.credentials !== null && reader.boolean(members.credentials, 'credentials') === true
  const isEvery = origins.includes('*')
  if (isEvery && origins.length > 1) reader.report(members.origins, '"*" must be the only origin of cors')
  if (isEvery && credentials)
    reader.report(members.credentials, 'credentials cannot be used with the origin "*": name the origins')
  const names = (given: Node | null, what: string): readonly string[] | null =>
    reader.list(given, what, (_, item) => readName(reader, item, what))
  return {
    origins: isEvery ? null : new Set(origins),
    credentials,
    exposed: names(members.expose_headers, 'expose_headers') ?? [],
    allowed: names(members.allow_headers, 'allow_headers'),
    maxAgeSeconds: members.max_age === null ? null : reader.count(members.max_age, 'max_age', MAX_AGE_SECONDS),
    passesPreflights:
      members.preflight !== null && reader.choice(members.preflight, 'preflight', PREFLIGHTS) === 'pass',
  }
}

function readOrigin(reader: YamlReader, node: Node | null): string | null {
  const text = reader.text(node, 'an origin')
  // Origins are compared byte for byte with the Origin field of browsers (RFC 6454 section 6.2).
  if (text === null || text === '*' || isOrigin(text.replace(STARRED, '$1x'))) return text
  reader.report(node, `${JSON.stringify(text)} is not an origin, such as https://app.example.com`)
  return null
}

/** Matches origins with `*` before only two labels: they may be a domain of many owners, such as `vercel.app`. */
const WIDE = /^https?:\/\/\*\.[^.]+\.[^.]+$/

/** One sentence for each origin with `*` under a domain where everybody can have a name. */
export function originWarnings(routes: readonly Pick<Route, 'cors' | 'origins'>[]): string[] {
  const named = routes.flatMap(({ cors, origins }) => [...(cors?.origins ?? []), ...origins])
  return [...new Set(named)]
    .filter((origin) => WIDE.test(origin))
    .map(
      (origin) =>
        `the origin ${origin} is every name of this domain, also one that others may have or take over: name the origins, or a domain below it such as ${origin.replace('*.', '*.app.')}`,
    )
}

/** Matches a `*` before two or more labels: before one label it would match all names of a country. */
export const STARRED = /^(https?:\/\/)\*(?=\.[^.]+\.)/

/** True for an origin in the form that browsers write. */
export const isOrigin = (text: string): boolean => {
  if (text.includes('*')) return false
  const origin = URL.parse(text)?.origin
  // Pages of an extension or of an application have an origin of their own scheme, which this parser calls null.
  return origin === text || (origin === 'null' && /^(?!file:)[a-z][a-z0-9+.-]*:\/\/[a-z0-9.-]+$/.test(text))
}

function readName(reader: YamlReader, node: Node | null, what: string): string | null {
  const text = reader.text(node, what)
  // "*" does not include Authorization, and with credentials it is a mere name, so it is not accepted.
  if (text === null || (HEADER.test(text) && text !== '*')) return text
  reader.report(node, `${JSON.stringify(text)} in ${what} is not a header name`)
  return null
}
