/** Attack cases whose raw bytes begin with `{{h2}}`: one request in HTTP/2 frames, `name=value` by `name=value`. */

import { block, FLAGS, frame, headers, type Pair, pseudo, sendFrames, TYPES } from '../sidecar/support/raw-http2.ts'
import { type RawAnswer, sendRaw } from '../support/peers/raw-http.ts'
import type { AttackCase } from './case-format.ts'

const PSEUDO = [':method', ':scheme', ':authority', ':path'] as const

/** What is not named is as the case says beside; escapes such as `\r` are the bytes that they stand for. */
export async function sendHttp2(
  port: number,
  text: string,
  { method, target, headers: fields }: AttackCase['request'],
): Promise<RawAnswer & { readonly firstByteMs: number }> {
  const startedMs = performance.now()
  const listed = readPairs(text)
  const host = fields.find(([name]) => name.toLowerCase() === 'host')?.[1] ?? 'app.test'
  const usual: readonly Pair[] = [
    [':method', method],
    [':scheme', 'http'],
    [':authority', host],
    [':path', target],
  ]
  const named = (name: string): boolean => listed.some(([one]) => one === name)
  const isPseudo = ([name]: Pair): boolean => PSEUDO.some((one) => one === name)
  const first = [...listed.filter(isPseudo), ...usual.filter(([name]) => !named(name))]
  const bytes = headers(1, [...first, ...listed.filter((pair) => !isPseudo(pair))])
  const { status, resets, goaway, body } = await sendFrames(port, bytes)
  // RFC 9113 section 8.1.1: a malformed request is a stream error, which the status of an answer may come before.
  const refused = resets.get(1) === PROTOCOL_ERROR || goaway === PROTOCOL_ERROR ? MALFORMED : 0
  return { status: status || refused, fields: [], body, text: body, firstByteMs: performance.now() - startedMs }
}

const PROTOCOL_ERROR = 1
const MALFORMED = 400

/** A value goes on until the next ` name=`. */
function readPairs(text: string): Pair[] {
  const pairs: Pair[] = []
  for (const match of text.matchAll(/(?:^|\s)(:?[\w-]+)=((?:(?!\s:?[\w-]+=).)*)/gs))
    pairs.push([match[1] ?? '', unescaped(match[2] ?? '')])
  return pairs
}

const ESCAPES: { readonly [letter: string]: string } = { r: '\r', n: '\n', t: '\t', 0: '\0' }
const unescaped = (text: string): string => text.replace(/\\([rnt0])/g, (_, letter: string) => ESCAPES[letter] ?? '')

/** The frames of a flood that a note describes; null: it describes none. */
export function floodOf(note: string): Buffer | null {
  const request = pseudo('GET', '/public/x')
  if (/RST_STREAM/.test(note)) {
    const reset = Buffer.from([0, 0, 0, CANCEL])
    const stream = (id: number): Buffer =>
      Buffer.concat([headers(id, request), frame(TYPES.reset, FLAGS.none, id, reset)])
    return Buffer.concat(Array.from({ length: FLOOD_FRAMES }, (_, at) => stream(2 * at + 1)))
  }
  if (!/CONTINUATION/.test(note)) return null
  const more = frame(TYPES.continuation, FLAGS.none, 1, block([['x', 'y'.repeat(1_000)]]))
  return Buffer.concat([frame(TYPES.headers, FLAGS.none, 1, block(request)), ...Array<Buffer>(FLOOD_FRAMES).fill(more)])
}

const FLOOD_FRAMES = 10_000
const CANCEL = 8
/** Far below what was sent, above what may be under way when the flood is noticed. */
const REACHED_MAX = 1_000

/** The connection is ended, little comes through, and others are served as before. */
export async function judgeFlood(
  flood: Buffer,
  { port, upstream }: { readonly port: number; readonly upstream: { readonly reached: readonly unknown[] } },
): Promise<string[]> {
  const { closed, goaway } = await sendFrames(port, flood)
  const count = upstream.reached.length
  const after = await sendRaw(port, 'GET /public/x HTTP/1.1\r\nHost: app.test\r\n\r\n')
  return [
    ...(closed || goaway !== null ? [] : ['the connection was not ended']),
    ...(count <= REACHED_MAX ? [] : [`the upstream was reached ${count} times`]),
    ...(after.status === 200 ? [] : [`the next client was answered with ${after.status}`]),
  ]
}
