/**
 * Inspects a client's frames before the HTTP/2 library does (RFC 9113 section 4). It counts the fields of each header
 * block, because the library silently drops malformed fields, and limits frames that carry no content.
 */

const PREFACE_BYTES = 24
const HEADER_BYTES = 9
/** The default maximum frame size (section 6.5.2). */
const FRAME_BYTES_MAX = 16_384
const BLOCK_BYTES_MAX = 65_536
/** How many header blocks may wait for the library's report. The library itself keeps fewer streams. */
const BLOCKS_MAX = 1_000

const DATA = 0x0
const HEADERS = 0x1
const WINDOW_UPDATE = 0x8
const CONTINUATION = 0x9
const END_STREAM = 0x1
const END_HEADERS = 0x4
const PADDED = 0x8
const PRIORITY = 0x20

/** The size from which a write counts as content that the client asked for. */
const CONTENT_BYTES_MIN = 64

type Frame = { readonly type: number; readonly flags: number; readonly streamId: number; readonly payload: Buffer }

export class FrameGuard {
  readonly #emptyFramesMax: number
  readonly #nowMs: () => number
  readonly #blocks: { readonly streamId: number; readonly count: number | null }[] = []
  #prefaceLeft = PREFACE_BYTES
  /** The first `#restBytes` are the beginning of an incomplete frame, which a client may send byte by byte. */
  #rest: Buffer = Buffer.alloc(0)
  #restBytes = 0
  /** How many bytes of the frame the next step needs. */
  #neededBytes = 0
  /** How many bytes of a DATA frame are still to come; they are not inspected. */
  #skipped = 0
  #block: Buffer[] = []
  #blockBytes = 0
  #budget: number
  #countedMs: number

  /** `emptyFramesMax`: how many frames without request or body may come at once; later, a tenth of that number per second. */
  constructor({ emptyFramesMax, nowMs }: { readonly emptyFramesMax: number; readonly nowMs: () => number }) {
    this.#emptyFramesMax = emptyFramesMax
    this.#nowMs = nowMs
    this.#budget = emptyFramesMax
    this.#countedMs = nowMs()
  }

  /** Takes the next bytes of the connection, including its preface. False: a flood; the connection must end. */
  inspect(given: Buffer): boolean {
    let chunk = given
    let at = Math.min(this.#prefaceLeft, chunk.length)
    this.#prefaceLeft -= at
    if (this.#restBytes > 0) {
      if (!this.#completes(chunk)) return true
      chunk = Buffer.concat([this.#rest.subarray(0, this.#restBytes), chunk])
    }
    while (at < chunk.length) {
      if (this.#skipped > 0) {
        const bytes = Math.min(this.#skipped, chunk.length - at)
        this.#skipped -= bytes
        at += bytes
        continue
      }
      this.#neededBytes = HEADER_BYTES
      if (chunk.length - at < this.#neededBytes) break
      const length = chunk.readUIntBE(at, 3)
      const type = chunk[at + 3] ?? 0
      const flags = chunk[at + 4] ?? 0
      if (length > FRAME_BYTES_MAX) return false
      if (type === DATA) {
        if (length === 0 && (flags & END_STREAM) === 0 && !this.#spend()) return false
        this.#skipped = length
        at += HEADER_BYTES
        continue
      }
      this.#neededBytes = HEADER_BYTES + length
      const end = at + this.#neededBytes
      if (end > chunk.length) break
      const streamId = chunk.readUInt32BE(at + 5) & 0x7fffffff
      if (!this.#take({ type, flags, streamId, payload: chunk.subarray(at + HEADER_BYTES, end) })) return false
      at = end
    }
    this.#rest = Buffer.from(chunk.subarray(at))
    this.#restBytes = this.#rest.length
    return true
  }

  /** Must be called when a stream was reset because of the client's frames: it counts as a frame without content. False: a flood. */
  resetStream(): boolean {
    return this.#spend()
  }

  /** Must be called for bytes sent to the client, which may answer them with frames without content. */
  sent(bytes: number): void {
    // gRPC clients send a PING for each message that they get, to measure bandwidth.
    if (bytes >= CONTENT_BYTES_MIN) this.#budget = Math.min(this.#emptyFramesMax, this.#budget + 1)
  }

  /** The number of fields in the next header block of this stream; null: no block, or unknown. */
  takeFieldCount(streamId: number): number | null {
    // The library reports blocks in order, so blocks before this one were rejected without a report.
    for (let next = this.#blocks.shift(); next !== undefined; next = this.#blocks.shift())
      if (next.streamId === streamId) return next.count
    return null
  }

  /** Adds the bytes to the incomplete frame. False: the next step needs more. */
  #completes(chunk: Buffer): boolean {
    if (this.#restBytes + chunk.length >= this.#neededBytes) return true
    if (this.#rest.length < this.#neededBytes)
      this.#rest = Buffer.concat([this.#rest.subarray(0, this.#restBytes)], this.#neededBytes)
    chunk.copy(this.#rest, this.#restBytes)
    this.#restBytes += chunk.length
    return false
  }

  #spend(): boolean {
    if (this.#budget < 1) {
      const now = this.#nowMs()
      const gained = ((now - this.#countedMs) / 1_000) * (this.#emptyFramesMax / 10)
      this.#budget = Math.min(this.#emptyFramesMax, this.#budget + gained)
      this.#countedMs = now
    }
    this.#budget -= 1
    return this.#budget >= 0
  }

  #take({ type, flags, streamId, payload }: Frame): boolean {
    if (type !== HEADERS && type !== CONTINUATION) return type === WINDOW_UPDATE || this.#spend()
    // A header block may be split into many small frames, so each frame after its first costs.
    if (type === CONTINUATION && !this.#spend()) return false
    this.#block.push(type === HEADERS ? fragmentOf(payload, flags) : payload)
    this.#blockBytes += payload.length
    if (this.#blockBytes > BLOCK_BYTES_MAX) return false
    if ((flags & END_HEADERS) === 0) return true
    this.#blocks.push({ streamId, count: countFields(Buffer.concat(this.#block)) })
    this.#block = []
    this.#blockBytes = 0
    return this.#blocks.length <= BLOCKS_MAX
  }
}

/** The header block in a HEADERS frame, without padding and priority (section 6.2). */
function fragmentOf(payload: Buffer, flags: number): Buffer {
  const padding = flags & PADDED ? (payload[0] ?? 0) : 0
  const start = (flags & PADDED ? 1 : 0) + (flags & PRIORITY ? 5 : 0)
  return payload.subarray(start, Math.max(start, payload.length - padding))
}

/** The number of fields in the block, without decoding them (RFC 7541 section 6). Null: the block is not valid. */
export function countFields(block: Buffer): number | null {
  let at = 0
  let count = 0

  /** Reads an integer with a prefix of `bits` bits (section 5.1). An unterminated integer sets `at` to NaN. */
  function readInteger(bits: number): number {
    const limit = 2 ** bits - 1
    let value = (block[at] ?? 0) & limit
    at += 1
    if (value < limit) return value
    for (let shift = 1; shift <= 2 ** 21; shift *= 128) {
      const byte = block[at]
      if (byte === undefined) break
      at += 1
      value += (byte & 0x7f) * shift
      if ((byte & 0x80) === 0) return value
    }
    at = Number.NaN
    return 0
  }

  function skipString(): void {
    const length = readInteger(7)
    at += length
  }

  while (at < block.length) {
    const first = block[at] ?? 0
    const isUpdate = (first & 0xe0) === 0x20
    const isIndexed = (first & 0x80) !== 0
    const index = readInteger(isIndexed ? 7 : isUpdate ? 5 : first & 0x40 ? 6 : 4)
    if (!isIndexed && !isUpdate) {
      if (index === 0) skipString()
      skipString()
    }
    if (!isUpdate) count += 1
    // Written with `!`, so that NaN in `at` also counts as outside the block.
    if (!(at <= block.length)) return null
  }
  return count
}
