/** Writes HTTP/2 frames by hand, as no client library would, and reads what comes back. */
import { connect } from 'node:net'

export type Pair = readonly [name: string, value: string]
export type RawHttp2 = {
  /** Of the first stream; 0: no answer. */
  readonly status: number
  /** Status of each stream that was answered. */
  readonly statuses: ReadonlyMap<number, number>
  /** Error code of RST_STREAM by stream. */
  readonly resets: ReadonlyMap<number, number>
  /** Error code of GOAWAY; null: none came. */
  readonly goaway: number | null
  /** The other end closed the connection. */
  readonly closed: boolean
  readonly body: string
}

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
export const TYPES = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goaway: 7,
  window: 8,
  continuation: 9,
} as const
export const FLAGS = { none: 0, endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 32 } as const
export const ERRORS = { protocol: 1, flowControl: 3, streamClosed: 5, compression: 9, calm: 11 } as const

/** RFC 9113 section 4.1. */
export function frame(type: number, flags: number, streamId: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(streamId, 5)
  return Buffer.concat([head, payload])
}

export const settings = (): Buffer => frame(TYPES.settings, FLAGS.none, 0)

/** Literal fields without indexing and without Huffman coding (RFC 7541 section 6.2.2). */
export function block(pairs: readonly Pair[]): Buffer {
  const parts = pairs.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)])
  return Buffer.concat(parts)
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1')
  return Buffer.concat([integer(bytes.length), bytes])
}

function integer(value: number): Buffer {
  if (value < 127) return Buffer.from([value])
  const bytes = [127]
  let left = value - 127
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128)
  return Buffer.from([...bytes, left])
}

export function headers(streamId: number, pairs: readonly Pair[], { end = true }: { end?: boolean } = {}): Buffer {
  return frame(TYPES.headers, FLAGS.endHeaders | (end ? FLAGS.endStream : 0), streamId, block(pairs))
}

/** The pseudo-header fields of a request; null leaves one out. */
export function pseudo(
  method: string | null,
  path: string | null,
  { authority = 'app.test', scheme = 'http' }: { authority?: string | null; scheme?: string | null } = {},
): Pair[] {
  const all = [
    [':method', method],
    [':scheme', scheme],
    [':authority', authority],
    [':path', path],
  ] as const
  return all.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]))
}

/**
 * Sends the preface, SETTINGS and these bytes. Resolves when the connection ended, `endCount` streams ended and a moment
 * passed, or all was quiet for long.
 */
export function sendFrames(
  port: number,
  bytes: Buffer | readonly Buffer[],
  {
    quietMs = 15_000,
    endCount = 1,
    preface = Buffer.concat([PREFACE, settings()]),
  }: { quietMs?: number; endCount?: number; preface?: Buffer } = {},
): Promise<RawHttp2> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const seen = { statuses: new Map<number, number>(), resets: new Map<number, number>() }
    let goaway: number | null = null
    let body = ''
    let ended = 0
    let rest: Buffer = Buffer.alloc(0)
    let timer = setTimeout(() => finish(false), quietMs)
    function finish(closed: boolean): void {
      clearTimeout(timer)
      socket.destroy()
      resolve({ ...seen, status: seen.statuses.get(1) ?? 0, goaway, body, closed })
    }
    function take({ type, flags, streamId, payload }: Frame): void {
      const isLast = type === TYPES.reset || (type <= TYPES.headers && (flags & FLAGS.endStream) !== 0)
      if (isLast) ended += 1
      clearTimeout(timer)
      timer = setTimeout(() => finish(false), ended >= endCount ? SETTLED_MS : quietMs)
      const status = type === TYPES.headers ? statusOf(payload) : null
      if (status !== null && status >= 200) seen.statuses.set(streamId, status)
      if (type === TYPES.reset) seen.resets.set(streamId, payload.readUInt32BE(0))
      if (type === TYPES.goaway) goaway = payload.readUInt32BE(4)
      if (type === TYPES.data) body += payload.toString('latin1')
    }
    socket.on('connect', () => {
      socket.write(preface)
      for (const part of Array.isArray(bytes) ? bytes : [bytes]) if (!socket.destroyed) socket.write(part)
    })
    socket.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk])
      while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
        const end = 9 + rest.readUIntBE(0, 3)
        const [type = 0, flags = 0] = rest.subarray(3, 5)
        take({ type, flags, streamId: rest.readUInt32BE(5) & 0x7fffffff, payload: rest.subarray(9, end) })
        rest = rest.subarray(end)
      }
    })
    socket.on('error', () => undefined)
    socket.on('close', () => finish(true))
  })
}

/** For what may follow the end of a stream. */
const SETTLED_MS = 40

type Frame = {
  readonly type: number
  readonly flags: number
  readonly streamId: number
  readonly payload: Buffer
}
const INDEXED_STATUS = [200, 204, 206, 304, 400, 404, 500]
/** RFC 7541 appendix B, of digits. */
const HUFFMAN_DIGITS = ['00000', '00001', '00010', '011001', '011010', '011011', '011100', '011101', '011110', '011111']

/** The status that an answer's header block begins with; null: it is trailers. */
function statusOf(payload: Buffer): number | null {
  const first = payload[0] ?? 0
  if (first >= 0x88 && first <= 0x8e) return INDEXED_STATUS[first - 0x88] ?? null
  // A dynamic table size update may come before.
  if ((first & 0xe0) === 0x20) return statusOf(payload.subarray(1))
  if (first !== 0x08 && first !== 0x48) return null
  const length = (payload[1] ?? 0) & 0x7f
  const value = payload.subarray(2, 2 + length)
  if (((payload[1] ?? 0) & 0x80) === 0) return Number(value.toString('latin1'))
  let bits = [...value].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  let digits = ''
  while (digits.length < 3) {
    const digit = HUFFMAN_DIGITS.findIndex((code) => bits.startsWith(code))
    digits += digit
    bits = bits.slice(HUFFMAN_DIGITS[digit]?.length ?? bits.length)
  }
  return Number(digits)
}
