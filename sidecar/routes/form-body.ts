/**
 * Refuses what would let a service read another value, or run another method, than was judged: many frameworks merge the fields of
 * a form into the query, where the form wins, and take `_method` for the method of a POST. The sidecar does not read forms.
 */
import { foldText } from '../http/folding.ts'
import { malformed, RequestError } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import { usesSource } from './checks.ts'
import { rulesOf } from './near-miss.ts'
import { decodeAgain } from './query.ts'
import type { Route } from './route.ts'

/** The route of the same path for another method; null: no route has it. */
export type RouteByMethod = (method: string) => Route | null
export type JudgedRequest = Pick<InboundRequest, 'method' | 'target' | 'raw' | 'names' | 'bodyBytes'>

/** Throws RequestError. Frameworks run only a POST as another method. */
export function refuseOtherReadings(request: JudgedRequest, route: Route, byMethod: RouteByMethod): void {
  const isPost = request.method === 'POST'
  if (isPost && request.target.query !== null) refuseMethodKey(request.target.query, { route, byMethod })
  if (route.form || !mayBeForm(request)) return
  if (route.check !== null && usesSource({ check: route.check, context: route.context }, 'query'))
    throw refusedForm('a check reads the query, and a service may take the value of a form instead')
  const other = isPost ? otherMethod(route, byMethod) : null
  if (other !== null) throw refusedForm(`its field _method may make a service run ${other.id}, which has other rules`)
}

function refusedForm(why: string): RequestError {
  const message = 'This route takes no form'
  return new RequestError('media_type_unsupported', message, `${message}: ${why}; to allow forms, set form: keep`)
}

const FORM = /x-www-form-urlencoded|multipart\//i
const MEDIA_TYPE = /^[a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+[ \t]*(?:;.*)?$/i

/** Rack takes a POST without a media type for a form. A gateway may not tell the length of a body, so the type alone counts. */
function mayBeForm({ method, raw, names, bodyBytes }: JudgedRequest): boolean {
  let found: string | null = null
  for (const [at, name] of names.entries()) {
    if (name !== 'content-type') continue
    if (found !== null) return true
    found = raw[2 * at + 1] ?? ''
  }
  return found === null ? bodyBytes !== 0 && !READING.includes(method) : !MEDIA_TYPE.test(found) || FORM.test(found)
}

const CHANGING = ['PUT', 'PATCH', 'DELETE']
const READING = ['GET', 'HEAD']

/** Who may POST may usually read, so reading counts only where everybody may POST. */
function otherMethod(route: Route, byMethod: RouteByMethod): Route | null {
  const methods = route.check === null ? [...CHANGING, ...READING] : CHANGING
  for (const method of methods) {
    const other = byMethod(method)
    if (other !== null && !protectsAlike(route, other)) return other
  }
  return null
}

const protectsAlike = (route: Route, other: Route): boolean =>
  other === route || other.check === null || rulesOf(other) === rulesOf(route)

/** The letters of such keys. Symfony, Laravel, Spring and Express know `_method`; Google's APIs and OData know others. */
const METHOD_KEYS = new Set([
  'httpmethod',
  'xhttpmethod',
  'methodoverride',
  'httpmethodoverride',
  'xmethodoverride',
  'xhttpmethodoverride',
])

/** A key `method` is an ordinary one, unless PHP or another reader could make `_method` of what is before it. */
function namesMethod(key: string): boolean {
  const text = foldText(decodeAgain(key))
  const letters = text.replace(/[^a-z]/g, '')
  return letters === 'method' ? !text.startsWith('method') : METHOD_KEYS.has(letters)
}

function refuseMethodKey(query: string, { route, byMethod }: { route: Route; byMethod: RouteByMethod }): void {
  // Most queries have no such key, however it is encoded.
  if (!/m|%/i.test(query)) return
  for (const pair of query.split(/[&;]/)) {
    const [key = '', value = ''] = pair.split('=', 2)
    if (!namesMethod(key)) continue
    const other = byMethod(decodeAgain(value).trim().toUpperCase())
    if (other === null || !protectsAlike(route, other))
      throw malformed('The query has a key that some servers read as the method of the request')
  }
}
