/** The parts of WebSocket framing that a relay needs (RFC 6455 section 5.2): frame boundaries and close frames. */
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'

const HEADER_MAX = 14

/** Tracks frame boundaries without reading payloads. */
export function createFrameFollower() {
  const header = Buffer.alloc(HEADER_MAX)
  let headerBytes = 0
  let payloadLeft = 0

  /** The length of the frame header; null: more bytes are needed. */
  function headerLength(): number | null {
    if (headerBytes < 2) return null
    const second = header[1] ?? 0
    const length = second & 0x7f
    return 2 + (length === 126 ? 2 : length === 127 ? 8 : 0) + (second & 0x80 ? 4 : 0)
  }

  function payloadLength(): number {
    const length = (header[1] ?? 0) & 0x7f
    if (length === 126) return header.readUInt16BE(2)
    // A length beyond 2^53 becomes inexact, which does no harm: such a frame never ends in practice.
    return length === 127 ? Number(header.readBigUInt64BE(2)) : length
  }

  const atEnd = (): boolean => headerBytes === 0 && payloadLeft === 0

  return {
    /** True when the next byte starts a frame. */
    atEnd,
    /** Takes the next bytes. Returns how many of them complete the current frame; 0 at a frame boundary. */
    push(chunk: Buffer): number {
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

/** RFC 6455 section 7.4: 4000-4999 are for private use; ours are 4000 plus the HTTP status that a request would get. */
const CLOSE_CODES: { readonly [code in ProblemCode]?: number } = {
  token_expired: 4401,
  token_invalid: 4401,
  permission_denied: 4403,
  scope_insufficient: 4403,
  entitlement_required: 4403,
  pdp_unavailable: 1013,
  condition_failed: 4503,
  evaluation_limit: 4503,
  draining: 1001,
}
const POLICY_VIOLATION = 1008

/** A close frame of a server, which is not masked (section 5.1), with the problem code as its reason. */
export function closeFrame(code: ProblemCode): Buffer {
  const reason = Buffer.from(code)
  const frame = Buffer.alloc(4 + reason.length)
  frame[0] = 0x88
  frame[1] = 2 + reason.length
  frame.writeUInt16BE(CLOSE_CODES[code] ?? POLICY_VIOLATION, 2)
  reason.copy(frame, 4)
  return frame
}
