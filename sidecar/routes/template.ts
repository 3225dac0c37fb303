/** Templates such as `{org}/{id}`, and the sources of their placeholders. */
import { isObjectId } from '../../pdp/shared/domain/names.ts'
import { keyParts } from '../http/folding.ts'

export type Source =
  /** A parameter of the path, by position. `parts`: the folded parts of the name. */
  | { readonly from: 'path'; readonly name: string; readonly index: number; readonly parts: readonly string[] }
  | { readonly from: 'query'; readonly name: string; readonly parts: readonly string[] }
  /** A header field; its `name` is folded. */
  | { readonly from: 'header'; readonly name: string }
  | { readonly from: 'claims'; readonly name: string }
  | { readonly from: 'client'; readonly name: 'address' }
  /** `path` is percent-decoded once; `host` is in lower case, without port. */
  | { readonly from: 'request'; readonly name: 'method' | 'path' | 'host' }
  /** A member of an item of the answer, by its exact names from the outermost; no names: the item itself. */
  | { readonly from: 'item'; readonly path: readonly string[] }
  /** A member of the JSON body, by its names from the outermost. `parts`: the folded names. */
  | { readonly from: 'body'; readonly path: readonly string[]; readonly parts: readonly string[] }
/** Literal texts and sources alternate; two sources are never adjacent. */
export type Template = readonly (string | Source)[]

const NAME = /^[A-Za-z0-9_.-]{1,128}$/
/** Issuers name claims by URLs (`https://app.example.com/roles`) and in name spaces (`cognito:groups`). */
const CLAIM_NAME = /^[\x21-\x5a\x5c\x5e-\x7a\x7c\x7e]{1,128}$/
/** Matches keys of a query, also `filter[org]` and `$top`. */
const QUERY_NAME = /^[A-Za-z0-9_.$[\]-]{1,128}$/
const HEADER_NAME = /^[A-Za-z0-9-]{1,128}$/
const BODY_DEPTH_MAX = 8

/** The source, or an error message. `parameters`: the names in the route's path. */
export function parseSource(text: string, parameters: readonly string[]): Source | string {
  const dot = text.indexOf('.')
  const from = dot < 0 ? 'path' : text.slice(0, dot)
  const name = text.slice(dot + 1)
  if (text === 'client.address') return { from: 'client', name: 'address' }
  if (text === 'request.method') return { from: 'request', name: 'method' }
  if (text === 'request.path') return { from: 'request', name: 'path' }
  if (text === 'request.host') return { from: 'request', name: 'host' }
  if (text === 'item' && !parameters.includes(text)) return { from: 'item', path: [] }
  if (from === 'path') {
    const index = parameters.indexOf(name)
    return index < 0 ? unknownParameter(text, parameters) : { from, name, index, parts: keyParts(name) }
  }
  if (from === 'header')
    return HEADER_NAME.test(name) ? { from, name: name.toLowerCase() } : `{${text}} is not a header name`
  if (name === '') return `{${text}} has no name after the dot`
  const form = from === 'claims' ? CLAIM_NAME : from === 'query' ? QUERY_NAME : NAME
  if (!form.test(name)) return `{${text}} has a name with a character that it cannot have, or with more than 128`
  if (from === 'claims') return { from, name }
  if (from === 'query') return { from, name, parts: keyParts(name) }
  if (from !== 'body' && from !== 'item')
    return `{${text}} must be a path parameter, client.address, request.method, request.path or request.host, or start with query., header., claims., body. or, in answer, item.`
  const path = name.split('.')
  if (path.length > BODY_DEPTH_MAX || path.includes('')) return `{${text}} is not a path of member names`
  return from === 'item' ? { from, path } : { from, path, parts: keyParts(name) }
}

/** The source in the words of messages. */
export const describeSource = (source: Source): string =>
  'path' in source ? [source.from, ...source.path].join('.') : `${source.from}.${source.name}`

/** The source in the form of a route file. */
export const sourceText = (source: Source): string => (source.from === 'path' ? source.name : describeSource(source))
export const templateText = (template: Template): string =>
  template.map((part) => (typeof part === 'string' ? part : `{${sourceText(part)}}`)).join('')

/** True for a text that may be part of an id. */
const isLiteral = (text: string): boolean => text === '' || text === '*' || (isObjectId(text) && !/[{}]/.test(text))

/** The template, or an error message. */
export function parseTemplate(text: string, parameters: readonly string[]): Template | string {
  const parts: (string | Source)[] = []
  let at = 0
  while (at < text.length) {
    const open = text.indexOf('{', at)
    const literal = text.slice(at, open < 0 ? undefined : open)
    if (!isLiteral(literal)) return `${JSON.stringify(literal)} has a character that an id cannot have`
    if (literal !== '') parts.push(literal)
    if (open < 0) break
    const close = text.indexOf('}', open)
    if (close < 0) return 'has { without }'
    if (typeof parts.at(-1) === 'object')
      return 'has two adjacent placeholders, so that nobody knows where the first value ends'
    const source = parseSource(text.slice(open + 1, close), parameters)
    if (typeof source === 'string') return source
    parts.push(source)
    at = close + 1
  }
  return parts.length === 0 ? 'has no id' : parts
}

const unknownParameter = (text: string, parameters: readonly string[]): string =>
  `{${text}} is not a parameter of the path, which has ${parameters.length === 0 ? 'none' : parameters.map((name) => `{${name}}`).join(', ')}`
