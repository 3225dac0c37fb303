/** Reads single members from JSON bodies of a limited size. A repeated key is refused: two parsers could read different values. */

import { endOfString, stringAt } from '../../pdp/shared/base/json-text.ts'
import { namesOtherCharset } from '../../pdp/shared/base/media-type.ts'
import type { ClientRequest } from '../http/client-request.ts'
import { keyParts, nestsAlike } from '../http/folding.ts'
import { malformed, missing, RequestError, unusable, ValueError } from '../request/errors.ts'
import { fieldValues, type InboundRequest } from '../request/inbound.ts'
import type { ReadType } from './context.ts'
import type { Source } from './template.ts'

/** `value`: a check takes a value from the body. `absence`: no check does, but the body must not have one that a service would prefer. */
export type BodyNeed = 'value' | 'absence'
/** Throws RequestError. `bytesMax`: null where the route has no limit of its own. */
export type ReadBody = (request: InboundRequest, need: BodyNeed, bytesMax: number | null) => Promise<Buffer>

export type LimitedBody = { readonly need: BodyNeed; readonly bytesMax: number; readonly timeoutMs: number }

/** Throws RequestError for another media type, coding or charset, for too many bytes, or if the body is late or incomplete. */
export async function readBody(
  client: ClientRequest,
  request: InboundRequest,
  { need, ...limits }: LimitedBody,
): Promise<Buffer> {
  if (need === 'value' && request.bodyBytes === 0) return NO_BODY
  // An HTTP/2 request may seem to have a body because its stream is open; whether it has one is known only after reading.
  const mayBeNone = need === 'absence' && isUntyped(request)
  if (!mayBeNone) checkMedia(request, need)
  const body = await readWhole(client, request, limits)
  if (mayBeNone && body.length > 0) checkMedia(request, need)
  return body
}

const NO_BODY = Buffer.alloc(0)

/** True without Content-Type: then the request may have no body. */
export const isUntyped = ({ names }: InboundRequest): boolean => !names.includes('content-type')

/**
 * Reads a body of any media type. Rejects with RequestError for too many bytes, or if the body is late or incomplete; what was
 * read is then put back, since in shadow mode the service still gets it.
 */
export async function readWhole(
  { body, complete }: Pick<ClientRequest, 'body' | 'complete'>,
  request: InboundRequest,
  { bytesMax, timeoutMs }: { readonly bytesMax: number; readonly timeoutMs: number },
): Promise<Buffer> {
  if ((request.bodyBytes ?? 0) > bytesMax) throw tooLarge(bytesMax)
  const chunks: Buffer[] = []
  let bytes = 0
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const timer = setTimeout(() => refuse(new RequestError('request_timeout', LATE)), timeoutMs)
  body.on('readable', onReadable).on('end', onEnd).on('error', onCut).on('close', onCut)
  if (body.readableEnded) onEnd()
  else if (body.destroyed) onCut(body.errored ?? undefined)
  return promise

  function onReadable(): void {
    for (let chunk = body.read(); chunk !== null; chunk = body.read()) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > bytesMax) {
        refuse(tooLarge(bytesMax))
        return
      }
    }
  }
  function onEnd(): void {
    stop()
    if (complete()) resolve(Buffer.concat(chunks))
    else reject(incomplete())
  }
  function onCut(err?: Error): void {
    refuse(err instanceof RequestError ? err : incomplete())
  }
  function refuse(err: RequestError): void {
    stop()
    if (bytes > 0 && !body.destroyed && !body.readableEnded) body.unshift(Buffer.concat(chunks))
    reject(err)
  }
  function stop(): void {
    clearTimeout(timer)
    body.off('readable', onReadable).off('end', onEnd).off('error', onCut).off('close', onCut)
  }
}

const LATE = 'The body took too long to arrive'

const incomplete = (): RequestError => malformed('The body did not arrive completely')

const tooLarge = (bytesMax: number): RequestError =>
  new RequestError('request_too_large', `This route reads the body, which may have at most ${bytesMax} bytes`)

const JSON_MEDIA = /^application\/(?:[a-z0-9.!#$&^_-]+\+)?json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i

/** Media types that some service reads as JSON. */
export const JSON_TYPE = /json/i

/** Refuses bodies that another reader could decode differently: a content coding, another charset or another media type. */
export function checkMedia(request: InboundRequest, need: BodyNeed): void {
  const types = fieldValues(request, 'content-type')
  const [type = ''] = types
  const isJson = need === 'value' ? JSON_MEDIA.test(type) : JSON_TYPE.test(type) && !namesOtherCharset(type)
  if (types.length !== 1 || !isJson)
    throw new RequestError(
      'media_type_unsupported',
      'This route reads the body, which must be application/json in UTF-8',
    )
  if (fieldValues(request, 'content-encoding').some((coding) => coding.toLowerCase() !== 'identity'))
    throw new RequestError('media_type_unsupported', 'This route reads the body, which must not be compressed')
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The text, or the digits of an exact integer, at a path of member names; with another `type` the number or boolean as it is
 * written. Throws RequestError.
 */
export function readMember(
  text: string,
  { path, parts }: Extract<Source, { from: 'body' }>,
  type: ReadType = 'string',
): string {
  const name = `body.${path.join('.')}`
  let at = 0
  for (const [depth, member] of path.entries()) at = findMember(text, at, { member, parts: parts.slice(depth), name })
  return valueText(text.slice(at, endOfValue(text, at)).trim(), name, type)
}

/** The text or exact integer that the JSON text `value` stands for, as `readMember` returns it. Throws RequestError. */
export function valueText(value: string, name: string, type: ReadType = 'string'): string {
  const isFlag = value === 'true' || value === 'false'
  if (type === 'flag' && isFlag) return value
  if (type === 'flag' && value !== 'null') throw unusable(`${name} is neither true nor false`)
  if (value.startsWith('"')) return stringAt(value, 0, value.length)
  if (/^(?:0|-?[1-9]\d{0,14})$/.test(value)) return value
  if ((type === 'double' && /^[-\d]/.test(value)) || (type === 'bool' && /^[tf]/.test(value))) return value
  // Null counts as missing, because JSON serializers write it for a missing member.
  if (value === 'null') throw missing(`${name} is missing`)
  throw unusable(`${name} is neither a string nor an integer`)
}

/** The index of the value under a path of member names; null: there is no such member. Throws RequestError as `readMember` does. */
export function findValue(text: string, path: readonly string[]): number | null {
  const parts = path.map((member) => keyParts(member).join(''))
  const name = `body.${path.join('.')}`
  let at = 0
  try {
    for (const [depth, member] of path.entries()) at = findMember(text, at, { member, parts: parts.slice(depth), name })
  } catch (err) {
    if (err instanceof ValueError && err.isMissing) return null
    throw err
  }
  return at
}

/** The index of the value under a path of exact names; null: there is no such member. Throws RequestError for a repeated name. */
export function exactPlace(text: string, path: readonly string[], from = 0): number | null {
  let at = from
  for (const member of path) {
    let found: number | null = null
    eachMember(text, at, (key, value) => {
      if (key !== member) return
      if (found !== null) throw malformed(`${member} occurs twice`)
      found = value
    })
    if (found === null) return null
    at = found
  }
  return skipSpace(text, at)
}

/** Removes the member under a path of exact names, with its comma. Throws RequestError for a repeated name. */
export function withoutMember(text: string, path: readonly string[]): string {
  const parent = exactPlace(text, path.slice(0, -1))
  const value = parent === null ? null : exactPlace(text, path.slice(-1), parent)
  if (parent === null || value === null) return text
  const end = endOfValue(text, value)
  let start = value
  eachMember(text, parent, (_, at, name) => {
    if (at === value) start = name
  })
  const before = text.slice(0, start)
  // The last member has no comma after it, so the comma before it is removed.
  return text[end] === ','
    ? before + text.slice(skipSpace(text, end + 1))
    : before.replace(/,[ \t\r\n]*$/, '') + text.slice(end)
}

/** The JSON text of the value that begins at `at`. */
export const writtenAt = (text: string, at: number): string => text.slice(at, endOfValue(text, at)).trim()

/** The index range of each item of the array at `at`. The text must be valid JSON. */
export function itemsAt(text: string, at: number): readonly { readonly start: number; readonly end: number }[] {
  const items: { start: number; end: number }[] = []
  let start = skipSpace(text, at + 1)
  while (start < text.length && text[start] !== ']') {
    const end = endOfValue(text, start)
    items.push({ start, end })
    start = text[end] === ',' ? skipSpace(text, end + 1) : end
  }
  return items
}

/** The text without the items of an array that are not kept. All other bytes stay, except commas between items. */
export function withoutItems(
  text: string,
  items: readonly { readonly start: number; readonly end: number }[],
  kept: readonly boolean[],
): string {
  const parts: string[] = []
  let done = 0
  let isFirst = true
  for (const [at, { start, end }] of items.entries()) {
    if (kept[at] === true) {
      const before = text.slice(done, start)
      parts.push(isFirst && at > 0 ? before.replace(',', '') : before, text.slice(start, end))
      isFirst = false
    } else if (at === 0) parts.push(text.slice(done, start))
    done = end
  }
  return [...parts, text.slice(done)].join('')
}

/** The text in which member `name` of the object at `at` has this value; it is added if absent. The text must be valid JSON. */
export function setMember(text: string, at: number, name: string, value: string): string {
  const places: { start: number; end: number }[] = []
  let isEmpty = true
  eachMember(text, at, (key, start) => {
    isEmpty = false
    if (key === name) places.push({ start, end: endOfValue(text, start) })
  })
  if (places.length === 0) {
    const open = skipSpace(text, at) + 1
    return `${text.slice(0, open)}${JSON.stringify(name)}:${value}${isEmpty ? '' : ','}${text.slice(open)}`
  }
  let edited = text
  for (const { start, end } of places.reverse()) edited = `${edited.slice(0, start)}${value}${edited.slice(end)}`
  return edited
}

const DEPTH_MAX = 128

/** Throws RequestError where an object has two members of one name: parsers differ in which one they take. The text must be valid JSON. */
export function refuseRepeated(text: string): void {
  const open: (Set<string> | null)[] = []
  for (let at = 0; at < text.length; at += 1) {
    const mark = text.charAt(at)
    if (mark === '{' || mark === '[') {
      open.push(mark === '{' ? new Set() : null)
      if (open.length > DEPTH_MAX) throw malformed(`The body has more than ${DEPTH_MAX} levels`)
    } else if (mark === '}' || mark === ']') open.pop()
    else if (mark === '"') {
      const end = endOfString(text, at)
      const names = open.at(-1)
      if (names && text[skipSpace(text, end)] === ':') {
        const key = stringAt(text, at, end)
        if (isUnclear(key)) throw malformed('The body has a key that readers take for different ones')
        if (names.has(key)) throw malformed('The body has a key twice in one object')
        names.add(key)
      }
      at = end - 1
    }
  }
}

/** The text of a valid body. Throws RequestError. */
export function readJson(body: Buffer): string {
  try {
    const text = UTF8.decode(body)
    JSON.parse(text)
    return text
  } catch {
    throw malformed('The body is not JSON in UTF-8')
  }
}

/** The index of the value of `member` in the object at `at`. The text must be valid JSON. */
function findMember(
  text: string,
  at: number,
  options: {
    readonly member: string
    /** The folded names of the member and of its wanted descendants. */
    readonly parts: readonly string[]
    /** The name that messages give the member. */
    readonly name: string
  },
): number {
  const { member, parts, name } = options
  if (text[skipSpace(text, at)] !== '{') throw missing(`${name} is missing`)
  const found: number[] = []
  eachMember(text, at, (key, value) => {
    if (key === member) found.push(value)
    else if (isUnclear(key) || nestsAlike(keyParts(key), parts))
      throw malformed(`The body has a key that some readers read as ${name}`)
  })
  const [value] = found
  const message = `${name} must occur exactly once`
  if (value === undefined) throw missing(message)
  if (found.length > 1) throw malformed(message)
  return value
}

/** Calls `visit` with each member of the object at `at`, and the index of its value. Other values have no members. Needs valid JSON. */
export function eachMember(text: string, at: number, visit: (key: string, value: number, start: number) => void): void {
  let place = skipSpace(text, at)
  if (text[place] !== '{') return
  place = skipSpace(text, place + 1)
  while (text[place] === '"') {
    const end = endOfString(text, place)
    const value = skipSpace(text, skipSpace(text, end) + 1)
    visit(stringAt(text, place, end), value, place)
    place = skipSpace(text, endOfValue(text, value))
    if (text[place] === ',') place = skipSpace(text, place + 1)
  }
}

/** Calls `visit` with each member of the body and the JSON text of its value. Throws RequestError for a key that some parsers cut short. */
export function eachTopMember(text: string, visit: (key: string, value: string) => void): void {
  eachMember(text, 0, (key, at) => {
    if (isUnclear(key)) throw malformed('The body has a key that readers take for different ones')
    visit(key, text.slice(at, endOfValue(text, at)).trim())
  })
}

/** Some parsers end a string at NUL, others at half of a surrogate pair. */
const isUnclear = (key: string): boolean => key.includes('\0') || !key.isWellFormed()

export function endOfValue(text: string, at: number): number {
  let place = skipSpace(text, at)
  let depth = 0
  for (; place < text.length; place += 1) {
    const mark = text.charAt(place)
    if (mark === '"') place = endOfString(text, place) - 1
    else if (mark === '{' || mark === '[') depth += 1
    else if ((mark === '}' || mark === ']' || mark === ',') && depth === 0) return place
    else if (mark === '}' || mark === ']') depth -= 1
  }
  return place
}

export function skipSpace(text: string, at: number): number {
  let place = at
  while (place < text.length && ' \t\r\n'.includes(text.charAt(place))) place += 1
  return place
}
