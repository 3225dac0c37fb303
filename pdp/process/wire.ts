/** Protocol Buffers read and written byte by byte, for the messages of which there are the most: building generated ones costs more. */
import { type BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire'

/** For field numbers of up to 25 bits. */
const TAG_BYTES_MAX = 4

/**
 * Reads the fields of the message of `length` bytes that starts where the reader is. `read` returns false for a tag that it
 * does not know, whose field is skipped: a later version of the protocol may have more. Throws Error for what is no message.
 */
export function readFields(from: BinaryReader, length: number, read: (tag: number) => boolean): void {
  const end = endOf(from, length)
  while (from.pos < end) {
    const start = from.pos
    const tag = from.uint32()
    // Of a longer one only some bits were read: it would pass for another.
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

/** Its memory is used again for every message, so it writes one at a time. */
export function createMessageWriter(): (write: (to: BinaryWriter) => void) => Buffer {
  let writer = new BinaryWriter()
  return (write) => {
    try {
      write(writer)
      const bytes = writer.finish()
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    } catch (err) {
      writer = new BinaryWriter() // half a message stands in the old one
      throw err
    }
  }
}
