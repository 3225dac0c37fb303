/** Reads request bodies: the media types that a route takes, and the time that it waits for them. */

import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { parseAside } from '../../../engine/worker/worker.ts'
import { lowerAscii } from '../../../shared/base/blanks.ts'
import { mediaTypeOf, namesOtherCharset } from '../../../shared/base/media-type.ts'
import { parseJson, parseUtf8 } from './json.ts'
import { sendProblem } from './problem-response.ts'
import { RequestProblem } from './status.ts'
import { guardBody } from './text-guard.ts'

/** A kind of request body. A route takes `json` only, by default. `lines` reach the handler as a stream. */
export type BodyKind = 'json' | 'merge' | 'yaml' | 'lines' | 'scim'
declare module 'fastify' {
  interface FastifyContextConfig {
    readonly bodies?: readonly BodyKind[]
  }
}

const LINES_TYPES = ['application/x-ndjson', 'text/plain']
/** How long a caller that still sends may read the answer before the connection is closed. */
const LINGER_MS = 1_000
/** YAML up to this length is parsed within milliseconds, whatever it contains. */
const YAML_CHARACTERS_LIGHT = 4_096
const JSON_DEFAULT: readonly BodyKind[] = ['json']
export const BODY_TYPES: { readonly [kind in BodyKind]: readonly string[] } = {
  json: ['application/json'],
  // The media type of a merge patch (RFC 7396 section 4).
  merge: ['application/merge-patch+json'],
  yaml: ['application/yaml', 'application/x-yaml', 'text/yaml'],
  lines: LINES_TYPES,
  scim: ['application/scim+json'],
}
const KNOWN_TYPES: ReadonlySet<string> = new Set(Object.values(BODY_TYPES).flat())

/** Adds strict parsers for each kind of body, and answers 415 to a kind that the route does not take. */
export function addBodyParsers(app: FastifyInstance): void {
  app.removeContentTypeParser(['text/plain', 'application/json'])
  const parsers = [
    [BODY_TYPES.json, parseJsonBody],
    [BODY_TYPES.merge, parseJsonBody],
    [BODY_TYPES.yaml, parseYamlBody],
    [BODY_TYPES.scim, parseJsonBody],
  ] as const
  for (const [types, parse] of parsers) {
    // A callback, because a promise per question takes as long as reading it.
    app.addContentTypeParser([...types], { parseAs: 'buffer' }, (_request: unknown, bytes: Buffer, done) => {
      // Directories that use SCIM send its media type with a DELETE that has no body.
      if (bytes.length === 0 && types === BODY_TYPES.scim) return done(null, undefined)
      if (bytes.length === 0) return done(new RequestProblem('request_invalid', 'the body is empty'))
      parse(bytes, done)
    })
  }
  app.addContentTypeParser(LINES_TYPES, (_request, payload, done) => done(null, payload))
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    if (request.method === 'GET' || request.method === 'HEAD') return done()
    const { 'content-type': field = '', 'content-encoding': coding } = request.headers
    const type = mediaTypeOf(field)
    if (!KNOWN_TYPES.has(type)) return done()
    // A gateway in front could decode the body and read another text than we do.
    if (coding !== undefined && lowerAscii(coding) !== 'identity')
      return done(new RequestProblem('media_type_unsupported', 'send the body without Content-Encoding'))
    if (namesOtherCharset(field)) return done(new RequestProblem('media_type_unsupported', 'send the body in UTF-8'))
    const kinds = request.routeOptions.config.bodies ?? JSON_DEFAULT
    if (kinds.some((kind) => BODY_TYPES[kind].includes(type))) return done()
    const taken = kinds.flatMap((kind) => BODY_TYPES[kind])
    done(new RequestProblem('media_type_unsupported', `send the body as ${taken.join(' or ')}`))
  })
}

/** Reads JSON in UTF-8. Text that cannot be stored can only be written as an escape, so only then the body is searched for it. */
function parseJsonBody(bytes: Buffer, done: (err: Error | null, body?: unknown) => void): void {
  let body: unknown
  try {
    const text = parseUtf8(bytes)
    body = parseJson(text)
    if (text.includes('\\u')) guardBody(body)
  } catch (err) {
    done(err instanceof Error ? err : new Error(String(err)))
    return
  }
  done(null, body)
}

function parseYamlBody(bytes: Buffer, done: (err: Error | null, body?: unknown) => void): void {
  readYaml(bytes).then((body) => done(null, body), done)
}

/** Parses a short text at once, a long one in a worker thread. Throws PdpError with each issue's line:column, and RequestProblem. */
async function readYaml(bytes: Buffer): Promise<unknown> {
  const text = parseUtf8(bytes)
  // The parser is loaded when the first YAML arrives.
  const parse =
    text.length <= YAML_CHARACTERS_LIGHT ? (await import('../../../engine/worker/yaml.ts')).parseYaml : parseAside
  const body = await parse(text)
  guardBody(body)
  return body
}

/** True for a body of kind `lines`. */
export function isStream(body: unknown): body is Readable {
  return typeof body === 'object' && body !== null && 'pipe' in body && Symbol.asyncIterator in body
}

/** Answers 408 if a body is not complete in time. Node's timeout cannot differ by route. */
export function addBodyTimeout(app: FastifyInstance, timeoutMs: number): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = request
    if (request.routeOptions.config.bodies?.includes('lines') === true) {
      // The reader of a stream limits the wait for each piece. After the answer, the rest is not read.
      reply.raw.once('close', () => {
        if (!raw.complete) setTimeout(() => raw.destroy(), LINGER_MS).unref()
      })
      return done()
    }
    const timer = setTimeout(() => refuseLate(request, reply), timeoutMs)
    timer.unref()
    const stop = (): void => clearTimeout(timer)
    raw.once('end', stop)
    raw.once('close', stop)
    done()
  })
}

function refuseLate(request: FastifyRequest, reply: FastifyReply): void {
  // The rest of the body is not read: the request is already answered, or the identity service reads it.
  if (reply.sent || reply.raw.headersSent) {
    request.raw.destroy()
    return
  }
  reply.header('connection', 'close')
  sendProblem(request, reply, new RequestProblem('request_timeout', 'the request did not arrive in time'))
}

/** The pieces of a streamed body. Throws RequestProblem `request_timeout` if the next piece is late. */
export async function* piecesOf(body: Readable, timeoutMs: number): AsyncGenerator<Buffer> {
  const pieces = body[Symbol.asyncIterator]()
  for (;;) {
    const { promise: late, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(
      () => reject(new RequestProblem('request_timeout', 'the next line did not arrive in time')),
      timeoutMs,
    )
    try {
      const { done, value } = await Promise.race([pieces.next(), late])
      if (done === true) return
      yield Buffer.isBuffer(value) ? value : Buffer.from(String(value))
    } finally {
      clearTimeout(timer)
    }
  }
}
