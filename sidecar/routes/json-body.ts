/** Reads JSON bodies of a limited size, and takes single members from them. A repeated key is refused. */
import { readAtMost } from '../../pdp/process/http-json.ts'
import { endOfString, stringAt } from '../../pdp/process/json-text.ts'
import type { ClientRequest } from '../http/client.ts'
import { keyParts, nestsAlike } from '../http/folding.ts'
import { malformed, RequestError } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import type { ValueType } from './context.ts'
import type { Source } from './template.ts'

/** Throws RequestError for another media type, coding or charset, for too many bytes, or if the body is late or incomplete. */
export async function readBody(
  client: ClientRequest,
  request: InboundRequest,
  { bytesMax, timeoutMs }: { readonly bytesMax: number; readonly timeoutMs: number },
): Promise<Buffer> {
  if (request.bodyBytes === 0) throw malformed('This route needs a body')
  checkMedia(request)
  return readWhole(client, request, { bytesMax, timeoutMs })
}

/** Of any media type. Throws RequestError for too many bytes, or if the body is late or incomplete. */
export async function readWhole(
  client: ClientRequest,
  request: InboundRequest,
  { bytesMax, timeoutMs }: { readonly bytesMax: number; readonly timeoutMs: number },
): Promise<Buffer> {
  if ((request.bodyBytes ?? 0) > bytesMax) throw tooLarge(bytesMax)
  const late = new RequestError('request_timeout', 'The body took too long to arrive')
  const { promise: timeout, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(late), timeoutMs)
  try {
    return await Promise.race([collect(), timeout])
  } catch (err) {
    throw err instanceof RequestError ? err : incomplete()
  } finally {
    clearTimeout(timer)
  }

  async function collect(): Promise<Buffer> {
    const body = await readAtMost(client.body.iterator({ destroyOnReturn: false }), bytesMax)
    if (body === null) throw tooLarge(bytesMax)
    if (!client.complete()) throw incomplete()
    return body
  }
}

const incomplete = (): RequestError => malformed('The body did not arrive completely')

const tooLarge = (bytesMax: number): RequestError =>
  new RequestError('request_too_large', `This route reads the body, which may have at most ${bytesMax} bytes`)

const JSON_MEDIA = /^application\/(?:[a-z0-9.!#$&^_-]+\+)?json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i

/** Refuses bodies that another reader could decode differently: a content coding, another charset or another media type. */
function checkMedia({ raw, names }: InboundRequest): void {
  const values = (name: string): string[] =>
    names.flatMap((folded, at) => (folded === name ? [raw[2 * at + 1] ?? ''] : []))
  const types = values('content-type')
  if (types.length !== 1 || !JSON_MEDIA.test(types[0] ?? ''))
    throw new RequestError(
      'media_type_unsupported',
      'This route reads the body, which must be application/json in UTF-8',
    )
  if (values('content-encoding').some((coding) => coding.toLowerCase() !== 'identity'))
    throw new RequestError('media_type_unsupported', 'This route reads the body, which must not be compressed')
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The text, or the digits of an exact integer, at a path of member names; for another `type` the number or boolean as it is
 * written. Throws RequestError.
 */
export function readMember(
  body: Buffer | null,
  { path, parts }: Extract<Source, { from: 'body' }>,
  type: ValueType = 'string',
): string {
  const name = `body.${path.join('.')}`
  const text = parseText(body)
  let at = 0
  for (const [depth, member] of path.entries()) at = findMember(text, at, { member, parts: parts.slice(depth), name })
  const value = text.slice(at, endOfValue(text, at)).trim()
  if (value.startsWith('"')) return stringAt(value, 0, value.length)
  if (/^(?:0|-?[1-9]\d{0,14})$/.test(value)) return value
  if ((type === 'double' && /^[-\d]/.test(value)) || (type === 'bool' && /^[tf]/.test(value))) return value
  throw malformed(`${name} is neither a string nor an integer`)
}

function parseText(body: Buffer | null): string {
  try {
    const text = UTF8.decode(body ?? Buffer.alloc(0))
    JSON.parse(text)
    return text
  } catch {
    throw malformed('The body is not JSON in UTF-8')
  }
}

type Member = {
  readonly member: string
  /** The folded names of the member and of its wanted descendants. */
  readonly parts: readonly string[]
  /** For messages. */
  readonly name: string
}

/** The index of the value of `member` in the object at `at`. The text must be valid JSON. */
function findMember(text: string, at: number, { member, parts, name }: Member): number {
  let place = skipSpace(text, at)
  if (text[place] !== '{') throw malformed(`${name} is missing`)
  const found: number[] = []
  place = skipSpace(text, place + 1)
  while (text[place] === '"') {
    const end = endOfString(text, place)
    const key = stringAt(text, place, end)
    const value = skipSpace(text, skipSpace(text, end) + 1)
    if (key === member) found.push(value)
    else if (isAlike(key, parts)) throw malformed(`The body has a key that some readers read as ${name}`)
    place = skipSpace(text, endOfValue(text, value))
    if (text[place] === ',') place = skipSpace(text, place + 1)
  }
  const [value] = found
  if (value === undefined || found.length > 1) throw malformed(`${name} must occur exactly once`)
  return value
}

/** Some readers end a string at NUL, others at half of a surrogate pair. */
const isAlike = (key: string, parts: readonly string[]): boolean =>
  key.includes('\0') || !key.isWellFormed() || nestsAlike(keyParts(key), parts)

function endOfValue(text: string, at: number): number {
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

function skipSpace(text: string, at: number): number {
  let place = at
  while (place < text.length && ' \t\r\n'.includes(text.charAt(place))) place += 1
  return place
}
