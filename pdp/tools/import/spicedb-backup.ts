/**
 * Reads the output of `zed backup create`: an Avro object container file (Avro 1.11, section "Object Container Files"). Its first
 * record is the schema; each other record is a relationship.
 */
import { inflateRawSync } from 'node:zlib'
import { fromBinary, toJson } from '@bufbuild/protobuf'
import { StructSchema } from '@bufbuild/protobuf/wkt'
import { messageOf } from '../../shared/base/error-message.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { isJsonObject } from '../../shared/domain/json.ts'
import { refused } from './mapping.ts'
import { uncompressed } from './snappy.ts'

const MAGIC = Buffer.from('Obj\u0001', 'latin1')
const SYNC_BYTES = 16

export const isBackup = (bytes: Uint8Array): boolean => MAGIC.equals(bytes.subarray(0, MAGIC.length))

/** Reads a backup. Throws PdpError `request_invalid` for a damaged one, or one in another form. */
export function readBackup(bytes: Uint8Array): { readonly schema: string; readonly relationships: string } {
  try {
    return recordsOf(bytes)
  } catch (err) {
    if (err instanceof PdpError) throw err
    throw refused(`the backup is damaged: ${messageOf(err)}`)
  }
}

function recordsOf(bytes: Uint8Array): { readonly schema: string; readonly relationships: string } {
  const header = new AvroReader(bytes.subarray(MAGIC.length))
  const metadata = header.map()
  const records = recordTypes(metadata.get('avro.schema') ?? '')
  const codec = metadata.get('avro.codec') ?? 'null'
  const sync = header.take(SYNC_BYTES)
  let schema: string | null = null
  const lines: string[] = []
  while (!header.isAtEnd) {
    const count = header.long()
    const block = new AvroReader(decoded(header.take(header.long()), codec))
    if (!sync.equals(header.take(SYNC_BYTES))) throw new RangeError('a block does not end where it should')
    for (let i = 0; i < count; i++) {
      const fields = records[block.long()]
      if (fields === undefined) throw new RangeError('a record of an unknown kind')
      const record = new Map(fields.map((field) => [field.name, block.value(field.type)]))
      const text = record.get('schema_text')
      if (text === undefined) lines.push(lineOf(record))
      else schema = text.toString('utf8')
    }
  }
  if (schema === null) throw refused('the backup has no schema')
  return { schema, relationships: lines.join('\n') }
}

function decoded(block: Buffer, codec: string): Buffer {
  if (codec === 'null') return block
  if (codec === 'deflate') return inflateRawSync(block)
  // The last four bytes are a checksum of the uncompressed data.
  if (codec === 'snappy') return uncompressed(block.subarray(0, -4))
  throw refused(`the backup is compressed by ${codec}, which is not known here`)
}

type Field = { readonly name: string; readonly type: 'string' | 'bytes' | 'long' }

/** The fields of each record, in the order of the union. */
function recordTypes(json: string): readonly (readonly Field[])[] {
  const schema: unknown = JSON.parse(json)
  if (!Array.isArray(schema)) throw refused('the backup is not one of zed: its schema is no union')
  return schema.map((record: unknown) => {
    const fields = isJsonObject(record) ? record.fields : null
    if (!Array.isArray(fields)) throw refused('the backup is not one of zed: it has something else than records')
    return fields.map(({ name, type }) => {
      const kind = isJsonObject(type) ? type.type : type
      if (kind !== 'string' && kind !== 'bytes' && kind !== 'long')
        throw refused(`the backup is not one of zed: field ${name} has type ${JSON.stringify(type)}`)
      return { name: String(name), type: kind }
    })
  })
}

/** The relationship in the form of `zed`. */
function lineOf(record: ReadonlyMap<string, Buffer>): string {
  const text = (name: string): string => record.get(name)?.toString('utf8') ?? ''
  const set = text('subject_relation') === '' ? '' : `#${text('subject_relation')}`
  const subject = `${text('subject_object_type')}:${text('subject_object_id')}${set}`
  const context = record.get('caveat_context')
  const values = context === undefined ? {} : toJson(StructSchema, fromBinary(StructSchema, context))
  const caveat = text('caveat_name') === '' ? '' : `[${text('caveat_name')}:${JSON.stringify(values)}]`
  const expiresAtMs = record.get('expiration')?.readBigInt64BE() ?? 0n
  // Go writes the year 1 for a missing time.
  const expiry = expiresAtMs <= 0n ? '' : `[expiration:${new Date(Number(expiresAtMs)).toISOString()}]`
  return `${text('object_type')}:${text('object_id')}#${text('relation')}@${subject}${caveat}${expiry}`
}

class AvroReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  take(count: number): Buffer {
    if (count < 0 || this.#at + count > this.#bytes.length) throw new RangeError('it ends too early')
    this.#at += count
    return this.#bytes.subarray(this.#at - count, this.#at)
  }

  #long(): bigint {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.take(1)[0] ?? 0
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return (value >> 1n) ^ -(value & 1n)
    }
    throw new RangeError('a number is too long')
  }

  long(): number {
    return Number(this.#long())
  }

  /** The bytes of a value; a number has eight bytes. */
  value(type: Field['type']): Buffer {
    if (type !== 'long') return this.take(this.long())
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64BE(BigInt.asIntN(64, this.#long()))
    return bytes
  }

  map(): ReadonlyMap<string, string> {
    const found = new Map<string, string>()
    for (let count = this.long(); count !== 0; count = this.long()) {
      // A negative count is followed by the block's size in bytes, which is skipped.
      if (count < 0) this.long()
      for (let i = 0; i < Math.abs(count); i++)
        found.set(this.value('string').toString('utf8'), this.value('bytes').toString('utf8'))
    }
    return found
  }
}
