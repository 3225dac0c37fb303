/** Takes the values for a route's checks from the request, where each must occur exactly once (folding.ts says which names are equal). */
import { isObjectId } from '../../pdp/shared/domain/names.ts'
import type { AccessClaims } from '../../pdp/shared/token/claims.ts'
import { claimAt } from '../../pdp/shared/token/issuer-claims.ts'
import { malformed, missing, unusable } from '../request/errors.ts'
import { fieldValues, type InboundRequest } from '../request/inbound.ts'
import type { CheckValues } from './checks.ts'
import { isReadAlike, type ReadType } from './context.ts'
import { exactPlace, readMember, valueText, writtenAt } from './json-body.ts'
import { refuseQueryTwin } from './path-twins.ts'
import { decodeQuery, isReadAs, queryPairs, readQuery } from './query.ts'
import { describeSource, type Source, type Template } from './template.ts'

export type ValueOptions = {
  readonly request: InboundRequest
  readonly parameters: readonly string[]
  /** True: the query may have other values for parameters of the path. */
  readonly keepQuery: boolean
  /** The token's claims; null: a guest has no token. */
  readonly claims: Pick<AccessClaims, 'all' | 'scopes' | 'organization'> | null
  /** The text of the JSON body; null: the request has no body, or no check of the route reads it. */
  readonly body: string | null
  /** The JSON text of an item of the answer. */
  readonly item?: string
}

/** Reads values of a request. `fill` and `read` throw RequestError. */
export function requestValues(options: ValueOptions): CheckValues {
  const { request, parameters, keepQuery, claims: given, body, item = '' } = options
  const claims = given ?? NO_CLAIMS
  const read = (source: Source): string | null => readTyped(source, 'string')

  function readTyped(source: Source, type: ReadType): string | null {
    switch (source.from) {
      case 'path':
        return readParameter(source)
      case 'query':
        refuseCookieTwin(request, source)
        return readQuery(request.target.query, source)
      case 'header':
        return readHeader(request, source.name)
      case 'claims':
        return claimText(claimAt(claims.all, source.name))
      case 'body':
        refuseTwin(request.target.query, source)
        if (body === null) throw missing('This route needs a body')
        return readMember(body, source, type)
      case 'item':
        return readItem(item, source, type)
      case 'client':
        if (request.clientAddress === '') throw malformed('The address of the client is not known')
        return request.clientAddress
      case 'request':
        if (source.name === 'host') return hostOf(request)
        return source.name === 'method' ? request.method : decodedPath(request)
    }
  }

  function readParameter(source: Extract<Source, { from: 'path' }>): string | null {
    const value = parameters[source.index] ?? null
    if (value !== null && !keepQuery) refuseQueryTwin(request.target.query, source, value)
    return value
  }

  function fill(template: Template): string | null {
    let id = ''
    for (let at = 0; at < template.length; at += 1) {
      const part = template[at] ?? ''
      if (typeof part === 'string') {
        id += part
        continue
      }
      const value = read(part)
      if (value === null) return null
      const next = template[at + 1]
      // A value must not contain the character that ends it: in `{a}/{b}`, two different pairs of values could give the same id.
      if (typeof next === 'string' && template.length > 2 && value.includes(next.charAt(0)))
        throw malformed(`The value of ${describeSource(part)} contains the character that ends it`)
      id += checkPart(value, part)
    }
    if (!isObjectId(id)) throw malformed('The values do not make a resource id')
    return id
  }

  const claim = (name: string): unknown => claimAt(claims.all, name)
  return {
    read,
    readTyped,
    claim,
    fill,
    scopes: claims.scopes,
    organization: claims.organization,
    isGuest: given === null,
  }
}

const NO_CLAIMS = { all: Object.freeze(Object.create(null)), scopes: new Set<string>(), organization: null }

/** The value of a member of an item, by exact names: clients read answers so. Throws RequestError. */
function readItem(item: string, source: Extract<Source, { from: 'item' }>, type: ReadType): string {
  const at = exactPlace(item, source.path)
  if (at === null) throw missing(`${describeSource(source)} is missing`)
  return valueText(writtenAt(item, at), describeSource(source), type)
}

function checkPart(value: string, source: Source): string {
  if (!isObjectId(value)) throw malformed(`The value of ${describeSource(source)} cannot be part of a resource id`)
  // A claim comes from the issuer, so no service reads it out of the request.
  if (source.from !== 'claims' && !isReadAlike(value))
    throw malformed(`The value of ${describeSource(source)} has characters that some servers read as others`)
  return value
}

/** Throws RequestError for a key of the query with the member's name: Rails prefers the query to the body. */
function refuseTwin(query: string | null, source: Extract<Source, { from: 'body' }>): void {
  if (query === null) return
  for (const { key } of queryPairs(query))
    if (isReadAs(key, source.parts))
      throw malformed(`The query has a key that some servers read as ${describeSource(source)}`)
}

/**
 * Refuses a cookie named like a query value that a check reads. In PHP's `$_REQUEST` the cookie wins, unless `request_order` excludes
 * cookies, and without a php.ini it does not.
 */
function refuseCookieTwin(request: InboundRequest, source: Extract<Source, { from: 'query' }>): void {
  const pairs = fieldValues(request, 'cookie').flatMap((value) => value.split(/[;,]/))
  if (pairs.some((pair) => isReadAs(cookieName(pair), source.parts)))
    throw malformed(`A cookie has a name that some servers read as ${describeSource(source)}`)
}

/** The cookie's name decoded once, as some servers do. `isReadAs` decodes twice more. */
function cookieName(pair: string): string {
  const equals = pair.indexOf('=')
  const name = (equals < 0 ? pair : pair.slice(0, equals)).trim()
  return /%(?![0-9A-Fa-f]{2})/.test(name) ? name : decodeQuery(name)
}

/** Throws RequestError if the two host names differ: a service may believe the one that a trusted proxy reports. */
function hostOf({ host, namedHost }: InboundRequest): string {
  if (namedHost !== null && namedHost.hostname !== host.hostname)
    throw malformed('The Host field and the forwarded host differ')
  return host.hostname
}

/** Throws RequestError for an encoded slash: the check could not tell it from one between segments. */
function decodedPath({ target }: InboundRequest): string {
  if (target.encodedSlash) throw malformed('The path has an encoded slash')
  return `/${target.segments.join('/')}`
}

/** A claim as text; integers as digits. Null, as for a missing claim: neither an id nor an exact integer. */
function claimText(value: unknown): string | null {
  if (typeof value === 'string') return isObjectId(value) ? value : null
  return Number.isSafeInteger(value) ? String(value) : null
}

function readHeader({ raw, names, connectionListed }: InboundRequest, name: string): string {
  const found: number[] = []
  for (const [at, folded] of names.entries()) if (folded === name && !connectionListed.has(folded)) found.push(at)
  const [at] = found
  const message = `There must be exactly one ${name} field`
  if (at === undefined) throw missing(message)
  if (found.length > 1) throw malformed(message)
  if (raw[2 * at]?.toLowerCase() !== name) throw malformed(`The name of the ${name} field is spelled differently`)
  const value = raw[2 * at + 1] ?? ''
  // RFC 9110 section 5.5: services decode other bytes in different ways.
  if (!/^[\t\x20-\x7e]*$/.test(value)) throw unusable(`The value of the ${name} field is not ASCII`)
  return value
}
