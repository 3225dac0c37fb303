/** Questions from bytes: as the generated code reads them, and refused where it refuses. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeStreamRequest, type StreamRequest } from '../../../../../pdp/server/serve/grpc/questions.ts'
import { DecideStreamRequestSchema, StreamQuestionSchema } from '../../../../../proto/gen/portcullis/v1/decision_pb.ts'
import { effort } from '../../../../support/effort.ts'
import { anyStreamRequest } from '../../../../support/stream-requests.ts'

const encode = (of: StreamRequest): Uint8Array =>
  toBinary(DecideStreamRequestSchema, create(DecideStreamRequestSchema, structuredClone(of) as object))

/** What the generated code reads, without what it adds; null when it refuses. */
function generated(bytes: Uint8Array): StreamRequest | null {
  try {
    const { tokens, questions, cancel } = fromBinary(DecideStreamRequestSchema, bytes)
    return {
      tokens: tokens.map(({ handle, token }) => ({ handle, token })),
      questions: questions.map(
        ({
          id,
          handle,
          permissions,
          entitlements,
          context,
          watched,
          requestId,
          traceparent,
          clientAddress,
          route,
          guest,
        }) => ({
          id,
          handle,
          permissions: permissions.map(({ relation, resource, any }) => ({ relation, resource, any })),
          entitlements,
          context,
          watched,
          requestId,
          traceparent,
          clientAddress,
          route,
          guest,
        }),
      ),
      cancel,
    }
  } catch {
    return null
  }
}
function ours(bytes: Uint8Array): StreamRequest | null {
  try {
    return decodeStreamRequest(bytes)
  } catch {
    return null
  }
}
const QUESTION = encode({
  tokens: [{ handle: 1, token: 't' }],
  questions: [
    {
      id: 1,
      handle: 1,
      permissions: [{ relation: 'viewer', resource: 'doc:ü', any: true }],
      entitlements: ['a'],
      context: '{"a":1}',
      watched: true,
      requestId: 'request-1',
      traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
      clientAddress: '203.0.113.7',
      route: 'GET /docs/{id}',
      guest: 'acme',
    },
  ],
  cancel: [7, 300],
})

describe('a request of a stream', () => {
  test('is read as the generated code writes it', () => {
    fc.assert(
      fc.property(anyStreamRequest, (of) => {
        expect(decodeStreamRequest(encode(of))).toEqual(of)
      }),
    )
  })

  test('is refused wherever it is cut off, unless what is left is a request', () => {
    fc.assert(
      fc.property(anyStreamRequest, fc.nat(), (of, cut) => {
        const bytes = encode(of)
        const part = bytes.subarray(0, cut % (bytes.length + 1))
        expect(ours(part)).toEqual(generated(part))
      }),
    )
    for (let length = 0; length <= QUESTION.length; length++) {
      const part = QUESTION.subarray(0, length)
      expect(ours(part), `${length} bytes`).toEqual(generated(part))
    }
  })

  test('is read in whatever order and however often its fields come, the last of a single one counting', () => {
    const twice = new Uint8Array([...QUESTION, ...QUESTION])
    expect(decodeStreamRequest(twice)).toEqual(generated(twice))
    const of = new BinaryWriter().tag(2, WireType.LengthDelimited).fork()
    of.tag(5, WireType.Varint).bool(true).tag(1, WireType.Varint).uint32(3).tag(1, WireType.Varint).uint32(4).join()
    const bytes = of.tag(3, WireType.Varint).uint32(9).finish()
    expect(decodeStreamRequest(bytes)).toEqual(generated(bytes))
    expect(decodeStreamRequest(bytes)).toMatchObject({ questions: [{ id: 4, watched: true }], cancel: [9] })
  })

  test('may hold fields of a later protocol, at any level', () => {
    const later = (to: BinaryWriter): BinaryWriter =>
      to
        .tag(99, WireType.LengthDelimited)
        .string('x')
        .tag(98, WireType.Bit64)
        .double(1)
        .tag(97, WireType.Varint)
        .uint32(1)
    const of = later(new BinaryWriter()).tag(2, WireType.LengthDelimited).fork()
    const bytes = later(of.tag(1, WireType.Varint).uint32(5)).join().finish()
    expect(decodeStreamRequest(bytes)).toMatchObject({ questions: [{ id: 5, handle: 0 }], tokens: [] })
  })

  test.each([
    ['a text that is not UTF-8', [0x0a, 0x03, 0x12, 0x01, 0xff]],
    ['a field number 0', [0x00, 0x01]],
    ['a kind of field that there is not', [0x0f]],
    ['a length beyond its end', [0x12, 0x7f, 0x08, 0x01]],
    ['a length beyond its message', [0x12, 0x02, 0x22, 0x05, 0x61, 0x61, 0x61, 0x61, 0x61]],
    ['numbers that outgrow their list', [0x1a, 0x01, 0x80, 0x01]],
    ['a tag of more than 32 bits', [0x92, 0x80, 0x80, 0x80, 0x10, 0x00]],
    ['a number without an end', [0x18, ...Array(11).fill(0xff)]],
  ])('is refused with %s', (_, bytes) => {
    expect(() => decodeStreamRequest(new Uint8Array(bytes))).toThrow()
  })

  test('never hangs and never makes up what is no text or number', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        for (const { id, permissions } of ours(bytes)?.questions ?? []) {
          expect(Number.isInteger(id)).toBe(true)
          for (const { resource } of permissions) expect(typeof resource).toBe('string')
        }
      }),
      { numRuns: effort({ short: 250, long: 2_000 }) },
    )
  })

  // A field that is added to the protocol has to be added to the decoder.
  test('has no fields but those that are read', () => {
    expect([DecideStreamRequestSchema.fields.length, StreamQuestionSchema.fields.length]).toEqual([3, 11])
  })
})
