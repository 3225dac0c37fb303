/** Cross-origin resource sharing (Fetch standard, section 3.2): which pages of other origins may read an answer. */
import { onlyValue, splitList } from './fields.ts'

export type Cors = {
  /** Allowed origins as browsers write them, perhaps with `*` as first label; null: every origin, but never with credentials. */
  readonly origins: ReadonlySet<string> | null
  /** True: pages may send cookies and other credentials. */
  readonly credentials: boolean
  /** Fields of the service's answers that pages may read, besides those that the sidecar writes. */
  readonly exposed: readonly string[]
  /** Fields that pages may send; null: all those that a preflight names. */
  readonly allowed: readonly string[] | null
  readonly maxAgeSeconds: number | null
  /** True: preflights go on to the service, which answers CORS itself. */
  readonly passesPreflights: boolean
}

/** Our answers' fields that a page must read to sign in again, to retry, or to report an error. */
const OWN_EXPOSED = ['WWW-Authenticate', 'DPoP-Nonce', 'Retry-After', 'X-Request-Id', 'Portcullis-Problem']
const ALLOW_ORIGIN = 'access-control-allow-origin'
const ALLOW_CREDENTIALS = 'access-control-allow-credentials'
const TOKEN = /^[!#$%&'*+.^_`|~A-Za-z0-9-]+$/
const NONE: readonly string[] = []

/** The metadata of a resource is public: clients in browsers must read it before they have a token. */
export const PUBLIC_CORS: Cors = {
  origins: null,
  credentials: false,
  exposed: [],
  allowed: null,
  maxAgeSeconds: null,
  passesPreflights: false,
}

/** True when `origins` contains the origin itself, or the origin with `*` as its first label. */
export const hasOrigin = (origins: ReadonlySet<string>, origin: string): boolean =>
  !origin.includes('*') && (origins.has(origin) || origins.has(origin.replace(FIRST_LABEL, '$1*')))

/** Matches the first label of a host name with several. */
const FIRST_LABEL = /^([a-z][a-z0-9+.-]{0,31}:\/\/)[a-z0-9_-]{1,63}(?=\.)/

/** True when pages of the asking origin may read the answer. */
export const isShared = (fields: readonly string[]): boolean => fields.includes(ALLOW_ORIGIN)

/** Fields for the answer to a request with the fields `raw`. Names and values alternate. */
export const corsFields = (cors: Cors | null, raw: readonly string[]): readonly string[] =>
  fieldsFor(cors, onlyValue(raw, 'origin'))

/** The same fields as `corsFields` makes, from the page's origin alone; null: the request has no origin. */
export function fieldsFor(cors: Cors | null, origin: string | null): readonly string[] {
  if (cors === null) return NONE
  const fields = originFields(cors, origin)
  if (!fields.includes(ALLOW_ORIGIN)) return fields
  return [...fields, 'access-control-expose-headers', [...OWN_EXPOSED, ...cors.exposed].join(', ')]
}

/**
 * The service's fields with ours. Its own CORS answer is kept whole. Else its permission of credentials goes: some services give it to
 * every page, and our fields may name a page.
 */
export function withCors(fields: string[], cors: readonly string[]): string[] {
  const isAt = (at: number, name: string): boolean => fields[at & ~1]?.toLowerCase() === name
  if (cors.length === 0 || fields.some((_, at) => isAt(at, ALLOW_ORIGIN))) return fields
  return fields.filter((_, at) => !isAt(at, ALLOW_CREDENTIALS)).concat(cors)
}

/** The method that a browser announces in a preflight; null: the request is no preflight. */
export function askedMethod(request: {
  readonly method: string
  readonly raw: readonly string[]
  readonly authorization: readonly string[]
}): string | null {
  // An OPTIONS request with a token is no preflight: a preflight never has credentials.
  if (request.method !== 'OPTIONS' || request.authorization.length > 0) return null
  if (onlyValue(request.raw, 'origin') === null) return null
  const asked = onlyValue(request.raw, 'access-control-request-method')
  return asked !== null && TOKEN.test(asked) ? asked : null
}

/** Fields of the answer to a preflight, names and values alternating. `methods`: the methods that the path has. */
export function preflightFields(cors: Cors, methods: readonly string[], raw: readonly string[]): readonly string[] {
  const fields = originFields(cors, onlyValue(raw, 'origin'))
  if (!fields.includes(ALLOW_ORIGIN)) return fields
  const asked = splitList(onlyValue(raw, 'access-control-request-headers') ?? '').filter((name) => TOKEN.test(name))
  const allowed = cors.allowed ?? asked
  return [
    ...fields,
    'access-control-allow-methods',
    methods.join(', '),
    ...(allowed.length > 0 ? ['access-control-allow-headers', allowed.join(', ')] : []),
    ...(cors.maxAgeSeconds === null ? [] : ['access-control-max-age', String(cors.maxAgeSeconds)]),
  ]
}

function originFields({ origins, credentials }: Cors, origin: string | null): readonly string[] {
  if (origins === null) return [ALLOW_ORIGIN, '*']
  // A cache must not give the answer for one page to another.
  const varies = ['vary', 'Origin']
  if (origin === null || !hasOrigin(origins, origin)) return varies
  return [ALLOW_ORIGIN, origin, ...(credentials ? [ALLOW_CREDENTIALS, 'true'] : []), ...varies]
}
