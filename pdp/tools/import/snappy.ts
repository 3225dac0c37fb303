/** Undoes Snappy's raw format (google/snappy, format_description.txt), in which zed compresses its backups. */

/** How many bytes one block may have when uncompressed. */
const BYTES_MAX = 512 * 1024 * 1024

/** Throws RangeError for damaged input. */
export function uncompressed(input: Buffer): Buffer {
  let at = 0
  const byte = (): number => {
    const found = input[at++]
    if (found === undefined) throw new RangeError('it ends too early')
    return found
  }
  const littleEndian = (count: number): number => {
    let value = 0
    for (let i = 0; i < count; i++) value += byte() * 2 ** (8 * i)
    return value
  }
  const length = varint(byte)
  if (length > BYTES_MAX) throw new RangeError('a block is too large')
  const output = Buffer.alloc(length)
  let end = 0
  while (at < input.length) {
    const tag = byte()
    const kind = tag & 3
    if (kind === 0) {
      const short = tag >> 2
      const count = 1 + (short < 60 ? short : littleEndian(short - 59))
      if (at + count > input.length || end + count > length) throw new RangeError('a literal is too long')
      input.copy(output, end, at, at + count)
      at += count
      end += count
      continue
    }
    const count = kind === 1 ? 4 + ((tag >> 2) & 7) : 1 + (tag >> 2)
    const back = kind === 1 ? ((tag >> 5) << 8) + byte() : littleEndian(kind === 2 ? 2 : 4)
    if (back === 0 || back > end || end + count > length) throw new RangeError('a copy leads out of what is known')
    // Byte by byte, because the copied range may overlap with the bytes it produces.
    for (let i = 0; i < count; i++) output[end + i] = output[end + i - back] ?? 0
    end += count
  }
  if (end !== length) throw new RangeError('a block has another length')
  return output
}

function varint(byte: () => number): number {
  let value = 0
  for (let shift = 0; shift < 35; shift += 7) {
    const found = byte()
    value += (found & 0x7f) * 2 ** shift
    if (found < 0x80) return value
  }
  throw new RangeError('a number is too long')
}
