import { describe, expect, test } from 'vitest'
import { closeFrame, createFrameFollower } from '../../../sidecar/upstream/websocket-frames.ts'

describe('the frame follower', () => {
  const frame = (length: number): Buffer => {
    if (length < 126) return Buffer.concat([Buffer.from([0x82, length]), Buffer.alloc(length, 1)])
    const header = Buffer.alloc(4)
    header.set([0x82, 126])
    header.writeUInt16BE(length, 2)
    return Buffer.concat([header, Buffer.alloc(length, 1)])
  }

  test('knows where a frame ends, however the bytes are cut', () => {
    const bytes = Buffer.concat([frame(0), frame(5), frame(300), closeFrame('token_expired')])
    const ends = [0, 2, 9, 313, bytes.length]
    for (let at = 1; at < bytes.length; at += 1) {
      const follower = createFrameFollower()
      follower.push(bytes.subarray(0, at))
      expect(follower.atEnd()).toBe(ends.includes(at))
      const rest = follower.push(bytes.subarray(at))
      const next = ends.find((end) => end > at) ?? 0
      expect(rest).toBe(ends.includes(at) ? 0 : next - at)
      expect(follower.atEnd()).toBe(true)
    }
  })
})
