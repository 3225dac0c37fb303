/**
 * Refuses requests in which a service could read another value, or run another method, than was checked: many frameworks merge the
 * fields of a form or of a JSON body into the query, where the body wins, and take `_method` for the method of a POST. Some read every
 * body as a form, whatever its type and method. The sidecar reads JSON alone.
 */
import { stringAt } from '../../pdp/shared/base/json-text.ts'
import { foldText } from '../http/folding.ts'
import { malformed, RequestError } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import { sourcesFrom, usesBody, usesSource } from './checks.ts'
import { eachTopMember, JSON_TYPE } from './json-body.ts'
import { rulesOf } from './path-readings.ts'
import { refuseJsonTwin } from './path-twins.ts'
import { decodeAgain, isReadAs } from './query.ts'
import type { Route } from './route.ts'

/** The routes to which the same path leads with another method. */
export type RoutesByMethod = (method: string) => readonly Route[]
export type JudgedRequest = Pick<InboundRequest, 'method' | 'target' | 'raw' | 'names' | 'bodyBytes'>

/** Throws RequestError for a JSON body in which a service could find other values, or another method, than were checked. */
export type JudgeJson = (text: string) => void

/** Throws RequestError. Null: the body need not be read. Frameworks run only a POST as another method. */
export function refuseOtherReadings(
  request: JudgedRequest,
  { route, parameters }: { readonly route: Route; readonly parameters: readonly string[] },
  byMethod: RoutesByMethod,
): JudgeJson | null {
  const isPost = request.method === 'POST'
  if (isPost && request.target.query !== null) refuseMethodKey(request.target.query, { route, byMethod })
  const kind = route.body === 'keep' ? null : bodyKind(request)
  if (kind === null) return null
  const asking = route.check === null ? null : { check: route.check, context: route.context }
  const readsQuery = asking !== null && usesSource(asking, 'query')
  const path = asking === null ? [] : sourcesFrom(asking, 'path')
  const isStrict = readsQuery || (route.body === 'judge' && path.length > 0)
  if (isStrict && kind !== 'json') return refuseOther(kind, request, readsQuery ? 'the query' : 'the path')
  const other = isPost ? otherMethod(route, byMethod) : null
  if (other !== null && kind === 'form')
    throw refused(
      'This route takes no form',
      `its field _method may make a service run ${other.id}, which has other rules`,
    )
  const isReadAnyway = isStrict || other !== null || (asking !== null && usesBody(asking))
  if (kind !== 'json' || !isReadAnyway) return null
  const wanted = asking === null ? [] : sourcesFrom(asking, 'query')
  const inForms = route.body === 'judge' ? [...wanted, ...path] : wanted
  return (text) => {
    if (inForms.length > 0) refuseFormKeys(text, inForms)
    const leads = leadsAlike({ route, byMethod })
    eachTopMember(text, (key, value) => {
      if (wanted.some(({ parts }) => isReadAs(key, parts)))
        throw refusedJson('has a key that some services read as a value of the query that a check reads')
      for (const parameter of path)
        refuseJsonTwin({ key, written: value, text: textIn(value) }, parameter, parameters[parameter.index] ?? '')
      if (other !== null && namesJsonMethod(key) && !leads(textIn(value)))
        throw refusedJson('has a key that some services read as the method of the request')
    })
  }
}

/** A service that reads every body as a form finds `org` in `{"x":"&org=acme&"}`. JSON itself begins with no key. */
function refuseFormKeys(text: string, wanted: readonly { readonly parts: readonly string[] }[]): void {
  for (const pair of text.split(/[&;]/).slice(1)) {
    const [key = ''] = pair.split('=', 1)
    if (key !== '' && wanted.some(({ parts }) => isReadAs(key, parts)))
      throw refusedJson('has a text with & or ; in which some services find a field that a check reads elsewhere')
  }
}

/** Refuses a body that is not JSON. A judge for a body that may be absent does nothing, because `readBody` has refused any other. */
function refuseOther(kind: 'form' | 'other' | 'unsaid', { bodyBytes }: JudgedRequest, from: string): JudgeJson {
  if (kind === 'unsaid' || (kind === 'other' && bodyBytes === 0)) return () => undefined
  throw refused(
    'This route takes no body but JSON',
    `a check takes a value of ${from}, and a service may take it from a body of any type instead`,
  )
}

function refused(message: string, why: string): RequestError {
  return new RequestError('media_type_unsupported', message, `${message}: ${why}; to allow it, set body: keep`)
}

function refusedJson(what: string): RequestError {
  const message = `The body ${what}`
  return new RequestError('request_invalid', message, `${message}; if this one does not, set body: keep`)
}

const FORM = /x-www-form-urlencoded|multipart\//i
const MEDIA_TYPE = /^[a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+[ \t]*(?:;.*)?$/i

/**
 * The kind of body that a service may see; null: no body. Rack reads a POST without a media type as a form. A gateway may not report the
 * length, so the type alone decides. `unsaid`: only the end of the request shows whether it has a body.
 */
function bodyKind({ method, raw, names, bodyBytes }: JudgedRequest): 'form' | 'json' | 'other' | 'unsaid' | null {
  let found: string | null = null
  for (const [at, name] of names.entries()) {
    if (name !== 'content-type') continue
    if (found !== null) return 'form'
    found = raw[2 * at + 1] ?? ''
  }
  if (found === null && bodyBytes === 0) return null
  if (found === null) return bodyBytes === null && READING.includes(method) ? 'unsaid' : 'form'
  if (!MEDIA_TYPE.test(found) || FORM.test(found)) return 'form'
  return JSON_TYPE.test(found) ? 'json' : 'other'
}

export const CHANGING = ['PUT', 'PATCH', 'DELETE']
export const READING = ['GET', 'HEAD']

/** A subject that may POST may usually read, so reading counts only where everybody may POST. */
function otherMethod(route: Route, byMethod: RoutesByMethod): Route | null {
  const methods = route.check === null ? [...CHANGING, ...READING] : CHANGING
  return methods.flatMap(byMethod).find((other) => !protectsAlike(route, other)) ?? null
}

const protectsAlike = (route: Route, other: Route): boolean =>
  other === route || other.check === null || rulesOf(other) === rulesOf(route)

/** Keys, without punctuation, that name another method. Symfony, Laravel, Spring and Express know `_method`; Google and OData others. */
const METHOD_KEYS = new Set([
  'httpmethod',
  'xhttpmethod',
  'methodoverride',
  'httpmethodoverride',
  'xmethodoverride',
  'xhttpmethodoverride',
])

/** The key `method` alone is an ordinary name, unless characters before it could become `_`, as in PHP. */
function namesMethod(key: string): boolean {
  const text = foldText(decodeAgain(key))
  const letters = text.replace(/[^a-z]/g, '')
  return letters === 'method' ? !text.startsWith('method') : METHOD_KEYS.has(letters)
}

/** In a JSON body `httpMethod` is an ordinary key, since bodies may describe requests. */
const namesJsonMethod = (key: string): boolean => namesMethod(key) && !/^http_?method$/i.test(key)

/** The text in a JSON string; empty for any other JSON value. */
const textIn = (value: string): string => (value.startsWith('"') ? stringAt(value, 0, value.length) : '')

/** How many methods one request may name. Each is matched to a route, which takes as long as the path is. */
const METHODS_NAMED_MAX = 4

/** True for a method whose routes have the same rules as this route. Throws RequestError if one request names too many methods. */
function leadsAlike({ route, byMethod }: Judging): (value: string) => boolean {
  let count = 0
  return (value) => {
    count += 1
    if (count > METHODS_NAMED_MAX) throw malformed(`The request names more than ${METHODS_NAMED_MAX} other methods`)
    const others = byMethod(value.trim().toUpperCase())
    return others.length > 0 && others.every((other) => protectsAlike(route, other))
  }
}

type Judging = { readonly route: Route; readonly byMethod: RoutesByMethod }

function refuseMethodKey(query: string, judging: Judging): void {
  // Most queries have no such key in any encoding, and are not parsed.
  if (!/m|%/i.test(query)) return
  const leads = leadsAlike(judging)
  for (const pair of query.split(/[&;]/)) {
    const [key = '', value = ''] = pair.split('=', 2)
    if (!namesMethod(key)) continue
    if (!leads(decodeAgain(value)))
      throw malformed('The query has a key that some servers read as the method of the request')
  }
}
