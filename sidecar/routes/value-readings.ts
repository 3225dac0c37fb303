/**
 * Refuses what would let a service read another value, or run another method, than was judged: many frameworks merge the fields of
 * a form or of a JSON body into the query, where the body wins, and take `_method` for the method of a POST. The sidecar does not
 * read forms.
 */
import { stringAt } from '../../pdp/shared/base/json-text.ts'
import { foldText } from '../http/folding.ts'
import { malformed, RequestError } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import { sourcesFrom, usesBody, usesSource } from './checks.ts'
import { eachTopMember } from './json-body.ts'
import { rulesOf } from './path-readings.ts'
import { refuseJsonTwin } from './path-twins.ts'
import { decodeAgain, isReadAs } from './query.ts'
import type { Route } from './route.ts'

/** The route of the same path for another method; null: no route has it. */
export type RouteByMethod = (method: string) => Route | null
export type JudgedRequest = Pick<InboundRequest, 'method' | 'target' | 'raw' | 'names' | 'bodyBytes'>

/** Throws RequestError for the text of a JSON body from which a service could take something else than was judged. */
export type JudgeJson = (text: string) => void

/** Throws RequestError. Null: the body needs no judge. Frameworks run only a POST as another method. */
export function refuseOtherReadings(
  request: JudgedRequest,
  { route, parameters }: { readonly route: Route; readonly parameters: readonly string[] },
  byMethod: RouteByMethod,
): JudgeJson | null {
  const isPost = request.method === 'POST'
  if (isPost && request.target.query !== null) refuseMethodKey(request.target.query, { route, byMethod })
  const kind = route.body === 'keep' ? null : bodyKind(request)
  if (kind === null) return null
  const asking = route.check === null ? null : { check: route.check, context: route.context }
  const readsQuery = asking !== null && usesSource(asking, 'query')
  if (readsQuery && kind === 'form')
    throw refusedForm('a check reads the query, and a service may take the value of a form instead')
  const other = isPost ? otherMethod(route, byMethod) : null
  if (other !== null && kind === 'form')
    throw refusedForm(`its field _method may make a service run ${other.id}, which has other rules`)
  const path = asking === null ? [] : sourcesFrom(asking, 'path')
  if (route.body === 'judge' && path.length > 0 && kind === 'form')
    throw refusedForm('a check takes a parameter of the path, and a service may take the value of a form instead')
  const isReadAnyway = readsQuery || other !== null || (asking !== null && usesBody(asking))
  if (!isReadAnyway && (route.body !== 'judge' || path.length === 0)) return null
  const wanted = asking === null ? [] : sourcesFrom(asking, 'query')
  return (text) =>
    eachTopMember(text, (key, value) => {
      if (wanted.some(({ parts }) => isReadAs(key, parts)))
        throw refusedJson('some services read as a value of the query that a check reads')
      for (const parameter of path)
        refuseJsonTwin({ key, written: value, text: textIn(value) }, parameter, parameters[parameter.index] ?? '')
      if (other !== null && namesJsonMethod(key) && !leadsAlike(textIn(value), { route, byMethod }))
        throw refusedJson('some services read as the method of the request')
    })
}

function refusedForm(why: string): RequestError {
  const message = 'This route takes no form'
  return new RequestError('media_type_unsupported', message, `${message}: ${why}; to allow forms, set body: keep`)
}

function refusedJson(why: string): RequestError {
  const message = `The body has a key that ${why}`
  return new RequestError('request_invalid', message, `${message}; if this one does not, set body: keep`)
}

const FORM = /x-www-form-urlencoded|multipart\//i
const MEDIA_TYPE = /^[a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+[ \t]*(?:;.*)?$/i
const JSON_TYPE = /json/i

/**
 * What a service may take the body for; null: neither. Rack takes a POST without a media type for a form. A gateway may not tell
 * the length of a body, so the type alone counts.
 */
function bodyKind({ method, raw, names, bodyBytes }: JudgedRequest): 'form' | 'json' | null {
  let found: string | null = null
  for (const [at, name] of names.entries()) {
    if (name !== 'content-type') continue
    if (found !== null) return 'form'
    found = raw[2 * at + 1] ?? ''
  }
  if (found === null) return bodyBytes !== 0 && !READING.includes(method) ? 'form' : null
  if (!MEDIA_TYPE.test(found) || FORM.test(found)) return 'form'
  return JSON_TYPE.test(found) ? 'json' : null
}

export const CHANGING = ['PUT', 'PATCH', 'DELETE']
export const READING = ['GET', 'HEAD']

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

/** Bodies may describe requests, and `httpMethod` is an ordinary key there. */
const namesJsonMethod = (key: string): boolean => namesMethod(key) && !/^http_?method$/i.test(key)

/** Empty for what is no text. */
const textIn = (value: string): string => (value.startsWith('"') ? stringAt(value, 0, value.length) : '')

function leadsAlike(value: string, { route, byMethod }: Judging): boolean {
  const other = byMethod(value.trim().toUpperCase())
  return other !== null && protectsAlike(route, other)
}

type Judging = { readonly route: Route; readonly byMethod: RouteByMethod }

function refuseMethodKey(query: string, judging: Judging): void {
  // Most queries have no such key, however it is encoded.
  if (!/m|%/i.test(query)) return
  for (const pair of query.split(/[&;]/)) {
    const [key = '', value = ''] = pair.split('=', 2)
    if (!namesMethod(key)) continue
    if (!leadsAlike(decodeAgain(value), judging))
      throw malformed('The query has a key that some servers read as the method of the request')
  }
}
