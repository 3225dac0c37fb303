/** Reads and writes Protocol Buffers directly, for the most frequent messages, because generated message objects cost more. */
import { type BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire'

/** The longest tag in bytes, enough for field numbers of up to 25 bits. */
const TAG_BYTES_MAX = 4

/**
 * Reads the fields of a message of `length` bytes at the reader's position. `read` returns false for an unknown tag, whose field is then
 * skipped: a later version of the protocol may add fields. Throws Error for invalid bytes.
 */
export function readFields(from: BinaryReader, length: number, read: (tag: number) => boolean): void {
  const end = endOf(from, length)
  while (from.pos < end) {
    const start = from.pos
    const tag = from.uint32()
    // A longer tag was read only in part, so it could look like another tag.
    if (from.pos - start > TAG_BYTES_MAX) throw new RangeError('a field number is too large')
    if (read(tag)) continue
    from.pos = start
    const [number, type] = from.tag()
    from.skip(type, number)
  }
  requireAt(from, end)
}

/** Throws RangeError when there are fewer bytes. */
export function endOf(from: BinaryReader, length: number): number {
  const end = from.pos + length
  if (end > from.len) throw new RangeError('a message is cut off')
  return end
}

export function requireAt(from: BinaryReader, end: number): void {
  if (from.pos !== end) throw new RangeError('a field is longer than its message')
}

/** Reuses its memory, so it writes one message at a time. */
export function createMessageWriter(): (write: (to: BinaryWriter) => void) => Buffer {
  let writer = new BinaryWriter()
  return (write) => {
    try {
      write(writer)
      const bytes = writer.finish()
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    } catch (err) {
      writer = new BinaryWriter() // the old writer holds a partial message
      throw err
    }
  }
}
