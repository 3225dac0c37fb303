/** The frame guard sees the same frames however TCP cuts them. */
import { describe, expect, test } from 'vitest'
import { FrameGuard } from '../../../sidecar/listener/http2-frame-guard.ts'
import { pick, type Random, seeded } from '../fuzz/targets.ts'

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const FIELD = Buffer.from([0, 1, 0x61, 1, 0x62])
const [DATA, HEADERS, PING, CONTINUATION] = [0, 1, 6, 9]

type Content = { readonly stream?: number; readonly payload?: Buffer; readonly length?: number }

function frame(type: number, flags: number, { stream = 1, payload = Buffer.alloc(0), length }: Content = {}): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(length ?? payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

const fields = (count: number): Buffer => Buffer.concat(Array.from({ length: count }, () => FIELD))

/** Requests of one to eighty fields, in one frame or two, with bodies and pings between. */
function conversation(random: Random): { readonly bytes: Buffer; readonly counts: readonly number[] } {
  const counts = Array.from({ length: 8 }, () => 1 + Math.floor(random() * 80))
  const frames = counts.flatMap((count, at) => {
    const stream = 2 * at + 1
    const cut = Math.floor(random() * count)
    return [
      frame(HEADERS, 0, { stream, payload: fields(cut) }),
      frame(CONTINUATION, 4, { stream, payload: fields(count - cut) }),
      pick(random, [
        frame(DATA, 1, { stream, payload: Buffer.alloc(Math.floor(random() * 40)) }),
        frame(PING, 0, { stream: 0, payload: Buffer.alloc(8) }),
      ]),
    ]
  })
  return { bytes: Buffer.concat([PREFACE, ...frames]), counts }
}

function counted(bytes: Buffer, sizeOf: () => number): readonly (number | null)[] {
  const guard = new FrameGuard({ emptyFramesMax: 1_000, nowMs: () => 0 })
  for (let at = 0; at < bytes.length; ) {
    const end = at + Math.max(1, sizeOf())
    expect(guard.inspect(Buffer.from(bytes.subarray(at, end)))).toBe(true)
    at = end
  }
  return Array.from({ length: 8 }, (_, at) => guard.takeFieldCount(2 * at + 1))
}

describe('the frame guard', () => {
  test.each(Array.from({ length: 30 }, (_, seed) => seed))(
    'counts the same fields however the bytes are cut, seed %i',
    (seed) => {
      const random = seeded(seed)
      const { bytes, counts } = conversation(random)
      expect(counted(bytes, () => bytes.length)).toEqual(counts)
      expect(counted(bytes, () => 1)).toEqual(counts)
      for (const most of [3, 12, 200]) expect(counted(bytes, () => Math.floor(random() * most))).toEqual(counts)
    },
  )

  test.each([1, 5, 9, 10, 11])(
    'refuses a frame that is too long as soon as its length is there, cut after %i bytes',
    (size) => {
      const guard = new FrameGuard({ emptyFramesMax: 1_000, nowMs: () => 0 })
      const bytes = Buffer.concat([PREFACE, frame(HEADERS, 4, { length: 16_385, payload: fields(1) })])
      const answers: boolean[] = []
      for (let at = 0; at < bytes.length; at += size) answers.push(guard.inspect(bytes.subarray(at, at + size)))
      expect(answers).toContain(false)
    },
  )

  test('refuses frames without content beyond their budget, byte by byte', () => {
    const guard = new FrameGuard({ emptyFramesMax: 10, nowMs: () => 0 })
    const bytes = Buffer.concat([
      PREFACE,
      ...Array.from({ length: 11 }, () => frame(PING, 0, { stream: 0, payload: Buffer.alloc(8) })),
    ])
    expect([...bytes].map((byte) => guard.inspect(Buffer.from([byte]))).lastIndexOf(false)).toBe(bytes.length - 1)
  })
})
