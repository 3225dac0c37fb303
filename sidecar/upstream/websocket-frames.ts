/** WebSocket framing (RFC 6455 section 5.2), as far as a relay needs it: where frames end, and how to say why it closes. */
import type { ProblemCode } from '../../pdp/process/problems.ts'

/** Follows a stream of frames without looking into them. */
export type FrameFollower = {
  /** Takes the next bytes. Returns how many of them belong to the frame that was under way; 0 at a frame's end. */
  push(chunk: Buffer): number
  /** True when the next byte starts a frame. */
  atEnd(): boolean
}

const HEADER_MAX = 14

export function createFrameFollower(): FrameFollower {
  const header = Buffer.alloc(HEADER_MAX)
  let headerBytes = 0
  let payloadLeft = 0

  /** Bytes of the header that starts the frame; null: more of it must be seen first. */
  function headerLength(): number | null {
    if (headerBytes < 2) return null
    const second = header[1] ?? 0
    const length = second & 0x7f
    return 2 + (length === 126 ? 2 : length === 127 ? 8 : 0) + (second & 0x80 ? 4 : 0)
  }

  function payloadLength(): number {
    const length = (header[1] ?? 0) & 0x7f
    if (length === 126) return header.readUInt16BE(2)
    // Beyond 2^53 a frame never ends, which is what the relay needs to know.
    return length === 127 ? Number(header.readBigUInt64BE(2)) : length
  }

  const atEnd = (): boolean => headerBytes === 0 && payloadLeft === 0

  return {
    atEnd,
    push(chunk) {
      let at = 0
      let firstEnd = atEnd() ? 0 : chunk.length
      let ended = atEnd()
      while (at < chunk.length) {
        if (payloadLeft > 0) {
          const taken = Math.min(payloadLeft, chunk.length - at)
          payloadLeft -= taken
          at += taken
        } else {
          header[headerBytes] = chunk[at] ?? 0
          headerBytes += 1
          at += 1
          if (headerBytes !== headerLength()) continue
          payloadLeft = payloadLength()
          headerBytes = 0
        }
        if (!ended && atEnd()) {
          ended = true
          firstEnd = at
        }
      }
      return firstEnd
    },
  }
}

/** RFC 6455 section 7.4: 4000-4999 are for private use; ours are the status that a request would have got. */
const CLOSE_CODES: { readonly [code in ProblemCode]?: number } = {
  token_expired: 4401,
  token_invalid: 4401,
  permission_denied: 4403,
  scope_insufficient: 4403,
  entitlement_required: 4403,
  pdp_unavailable: 1013,
  draining: 1001,
}
const POLICY_VIOLATION = 1008

/** A close frame of a server: not masked (section 5.1), with the problem code as its reason. */
export function closeFrame(code: ProblemCode): Buffer {
  const reason = Buffer.from(code)
  const frame = Buffer.alloc(4 + reason.length)
  frame[0] = 0x88
  frame[1] = 2 + reason.length
  frame.writeUInt16BE(CLOSE_CODES[code] ?? POLICY_VIOLATION, 2)
  reason.copy(frame, 4)
  return frame
}
