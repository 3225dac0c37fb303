/** DER (X.690), as far as a certificate needs it. */

const TAGS = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  objectId: 0x06,
  text: 0x0c,
  time: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const

export const sequence = (...items: readonly Buffer[]): Buffer => encode(TAGS.sequence, Buffer.concat(items))
export const set = (...items: readonly Buffer[]): Buffer => encode(TAGS.set, Buffer.concat(items))
export const octets = (content: Buffer): Buffer => encode(TAGS.octets, content)
export const text = (content: string): Buffer => encode(TAGS.text, Buffer.from(content, 'utf8'))
export const yes = (): Buffer => encode(TAGS.boolean, Buffer.of(0xff))
/** Context-specific; `constructed` when it wraps other values. */
export const tagged = (tag: number, content: Buffer, constructed: boolean): Buffer =>
  encode((constructed ? 0xa0 : 0x80) | tag, content)

/** Not negative. */
export function integer(bytes: Buffer): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0)
  const short = first < 0 ? Buffer.of(0) : bytes.subarray(first)
  return encode(TAGS.integer, (short[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.of(0), short]) : short)
}

export function bits(content: Buffer, unusedCount = 0): Buffer {
  return encode(TAGS.bits, Buffer.concat([Buffer.of(unusedCount), content]))
}

/** Dotted form. */
export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return encode(TAGS.objectId, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]))
}

/** Whole seconds. RFC 5280 section 4.1.2.5: UTCTime before 2050, GeneralizedTime from then on. */
export function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/\.\d+Z$|[-:T]/g, '')
  return new Date(ms).getUTCFullYear() < 2050
    ? encode(0x17, Buffer.from(`${digits.slice(2)}Z`, 'ascii'))
    : encode(TAGS.time, Buffer.from(`${digits}Z`, 'ascii'))
}

function base128(value: number): readonly number[] {
  const bytes = [value & 0x7f]
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) bytes.unshift((rest & 0x7f) | 0x80)
  return bytes
}

function encode(tag: number, content: Buffer): Buffer {
  const size = content.length
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff]
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}
