/** Takes the values for a route's checks from the request. Each must occur exactly once (folding.ts says which names are equal). */
import { type AccessClaims, ID } from '../../pdp/token/claims.ts'
import { keyParts, readsAlike } from '../http/folding.ts'
import { malformed } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import type { CheckValues } from './checks.ts'
import { readMember } from './json-body.ts'
import type { Source, Template } from './template.ts'

export type ValueOptions = {
  readonly request: InboundRequest
  readonly parameters: readonly string[]
  readonly claims: Pick<AccessClaims, 'all' | 'scopes' | 'organization'>
  /** The whole body; null if no check of the route needs it. */
  readonly body: Buffer | null
}

/** `fill` and `read` throw RequestError. */
export function requestValues({ request, parameters, claims, body }: ValueOptions): CheckValues {
  function read(source: Source): string | null {
    switch (source.from) {
      case 'path':
        return parameters[source.index] ?? null
      case 'query':
        return readQuery(request.target.query, source)
      case 'header':
        return readHeader(request, source.name)
      case 'claims':
        return claimText(claims.all[source.name])
      case 'body':
        return readMember(body, source)
    }
  }

  function fill(template: Template): string | null {
    let id = ''
    for (const [at, part] of template.entries()) {
      if (typeof part === 'string') {
        id += part
        continue
      }
      const value = read(part)
      if (value === null) return null
      const next = template[at + 1]
      // Otherwise two different pairs of values could give the same id for `{a}/{b}`.
      if (typeof next === 'string' && template.length > 2 && value.includes(next.charAt(0)))
        throw malformed(`The value of ${describe(part)} contains the character that ends it`)
      id += checkPart(value, part)
    }
    if (!ID.test(id)) throw malformed('The values do not make a resource id')
    return id
  }

  return { read, fill, scopes: claims.scopes, organization: claims.organization }
}

function checkPart(value: string, source: Source): string {
  if (!ID.test(value)) throw malformed(`The value of ${describe(source)} cannot be part of a resource id`)
  return value
}

const describe = (source: Source): string =>
  source.from === 'body' ? `body.${source.path.join('.')}` : `${source.from}.${source.name}`

/** Integers as their digits. Anything but a string or an exact integer counts as missing. */
function claimText(value: unknown): string | null {
  if (typeof value === 'string') return ID.test(value) ? value : null
  return Number.isSafeInteger(value) ? String(value) : null
}

function readHeader({ raw, names, connectionListed }: InboundRequest, name: string): string {
  const found: number[] = []
  for (const [at, folded] of names.entries()) if (folded === name && !connectionListed.has(folded)) found.push(at)
  const [at] = found
  if (at === undefined || found.length > 1) throw malformed(`There must be exactly one ${name} field`)
  if (raw[2 * at]?.toLowerCase() !== name) throw malformed(`The name of the ${name} field is spelled differently`)
  return raw[2 * at + 1] ?? ''
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Parsers stop after some number of pairs (qs and PHP after 1,000), so a check must not depend on a later pair. */
const PAIRS_MAX = 500

/** `;` separates pairs for some servers, and `+` is a space for most, so neither may be in a value that a check needs. */
export function readQuery(query: string | null, { name, parts }: Extract<Source, { from: 'query' }>): string {
  if (query?.includes(';')) throw malformed('The query has a semicolon')
  const pairs = query?.split('&') ?? []
  if (pairs.length > PAIRS_MAX) throw malformed(`The query has more than ${PAIRS_MAX} keys`)
  const values: string[] = []
  for (const pair of pairs) {
    const equals = pair.indexOf('=')
    const key = decodeQuery(equals < 0 ? pair : pair.slice(0, equals))
    if (key !== name) {
      if (readsAlike(keyParts(decodeAgain(key)), parts))
        throw malformed(`The query has a key that some servers read as ${name}`)
      continue
    }
    const value = equals < 0 ? '' : pair.slice(equals + 1)
    if (value.includes('+')) throw malformed(`The value of query.${name} has a plus sign`)
    values.push(decodeQuery(value))
  }
  const [value] = values
  if (value === undefined || values.length > 1) throw malformed(`The query must have ${name} exactly once`)
  return value
}

const TRIPLET = /%([0-9A-Fa-f]{2})/g

/** Decodes a key twice, as a server behind another server does. */
const decodeAgain = (key: string): string =>
  key.includes('%') ? decodeOnce(decodeOnce(key)).replaceAll('\0', ' ') : key
const decodeOnce = (key: string): string =>
  key.replace(TRIPLET, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))

/** target.ts has checked that the percent-encoding is well formed. */
function decodeQuery(text: string): string {
  if (!text.includes('%')) return text
  const bytes = text.replace(/%(..)/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
  try {
    return UTF8.decode(Buffer.from(bytes, 'latin1'))
  } catch {
    throw malformed('The query is not UTF-8')
  }
}
