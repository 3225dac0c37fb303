/** The stream to the PDP as bytes: what is asked reads as it was written, and an answer says no more than it says. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeStreamRequest } from '../../../../pdp/server/serve/grpc/questions.ts'
import { decodeAnswers, encodeQuestions, type StreamAnswer } from '../../../../pdp/shared/client/codec.ts'
import {
  DecideResponseSchema,
  DecideStreamRequestSchema,
  DecideStreamResponseSchema,
  EntitlementResultSchema,
  PermissionResultSchema,
  StreamAnswerSchema,
  SubjectSchema,
} from '../../../../proto/gen/portcullis/v1/decision_pb.ts'
import { effort } from '../../../support/effort.ts'
import { anyNumber, anyStreamRequest, anyText } from '../../../support/stream-requests.ts'

describe('questions', () => {
  test('are read by the generated code and by the PDP as they were asked', () => {
    fc.assert(
      fc.property(anyStreamRequest, (asked) => {
        const bytes = encodeQuestions(asked)
        expect(decodeStreamRequest(bytes)).toEqual(asked)
        const read = fromBinary(DecideStreamRequestSchema, bytes)
        expect(read).toEqual(create(DecideStreamRequestSchema, structuredClone(asked) as object))
      }),
    )
  })

  test('of one message are not changed by the next', () => {
    const ask = (token: string): Buffer =>
      encodeQuestions({ tokens: [{ handle: 1, token }], questions: [], cancel: [] })
    const first = ask('first')
    const before = Buffer.from(first)
    ask('other')
    expect(first.equals(before)).toBe(true)
  })

  const NO_TEXTS = { context: '', requestId: '', traceparent: '', clientAddress: '', route: '', guest: '' }
  const BARE = { handle: 1, permissions: [], entitlements: [], ...NO_TEXTS }

  test.each([-1, 1.5, 2 ** 32, Number.NaN])('with the id %d are refused, and leave nothing to the next', (id) => {
    const token = { handle: 1, token: 'of the refused' }
    const question = { ...BARE, id, watched: false }
    expect(() => encodeQuestions({ tokens: [token], questions: [question], cancel: [] })).toThrow()
    expect(decodeStreamRequest(encodeQuestions({ tokens: [], questions: [], cancel: [5] }))).toEqual({
      tokens: [],
      questions: [],
      cancel: [5],
    })
  })
})

const decision = fc.record({
  active: fc.boolean(),
  subject: fc.option(fc.record({ type: anyText, id: anyText }), { nil: undefined }),
  organization: anyText,
  permissions: fc.array(
    fc.record({
      relation: anyText,
      resource: anyText,
      allowed: fc.boolean(),
      error: anyText,
      reasonCode: anyText,
      missingContext: fc.array(anyText, { maxLength: 2 }),
    }),
    { maxLength: 3 },
  ),
  entitlements: fc.dictionary(
    anyText,
    fc.option(
      fc.oneof(
        fc.record({ enabled: fc.jsonValue() }),
        fc.record({ enabled: fc.boolean() }),
        fc.constant({ Enabled: true }),
      ),
    ),
    { maxKeys: 3 },
  ),
  decisionId: anyText,
  revision: anyText,
  validUntilMs: fc.double({ noNaN: true }),
  acr: anyText,
  authTime: anyNumber,
})
const answer = fc.record({
  id: anyNumber,
  outcome: fc.oneof(
    decision.map((value) => ({ case: 'decision' as const, value })),
    anyText.map((value) => ({ case: 'error' as const, value })),
    fc.constant({ case: undefined }),
  ),
})
const answers = fc.array(answer, { maxLength: 3 })
type Given = typeof answers extends fc.Arbitrary<infer T> ? T : never

const encode = (given: Given): Uint8Array =>
  toBinary(
    DecideStreamResponseSchema,
    create(DecideStreamResponseSchema, { answers: given.map(({ id, outcome }) => messageOf(id, outcome)) }),
  )

function messageOf(id: number, outcome: Given[number]['outcome']) {
  if (outcome.case !== 'decision') return create(StreamAnswerSchema, { id, outcome })
  const { subject, entitlements, permissions, ...rest } = outcome.value
  const held = Object.entries(entitlements).map(([key, value]) => [
    key,
    create(EntitlementResultSchema, value === null ? {} : { value: JSON.parse(JSON.stringify(value)), version: 1n }),
  ])
  const value = create(DecideResponseSchema, {
    ...rest,
    permissions: permissions.map((result) => create(PermissionResultSchema, result)),
    entitlements: Object.fromEntries(held),
    ...(subject && { subject: create(SubjectSchema, subject) }),
  })
  return create(StreamAnswerSchema, { id, outcome: { case: 'decision', value } })
}

/** What the generated code reads; null when it refuses. */
function generated(bytes: Uint8Array): StreamAnswer[] | null {
  try {
    return fromBinary(DecideStreamResponseSchema, bytes).answers.map(({ id, outcome }) => {
      if (outcome.case !== 'decision') return { id, decision: null, error: outcome.value || 'no outcome' }
      const { active, subject, organization, permissions, entitlements, revision, acr, authTime } = outcome.value
      return {
        id,
        decision: {
          active,
          subjectType: subject?.type ?? '',
          subjectId: subject?.id ?? '',
          organization,
          permissions: permissions.map(({ $typeName: _, $unknown: __, reason: ___, ...result }) => result),
          entitlements: new Map(Object.entries(entitlements)),
          revision,
          acr,
          authTime,
        },
        error: '',
      }
    })
  } catch {
    return null
  }
}
function ours(bytes: Uint8Array): StreamAnswer[] | null {
  try {
    return decodeAnswers(bytes)
  } catch {
    return null
  }
}

const ALLOWED: Given = [
  {
    id: 7,
    outcome: {
      case: 'decision',
      value: {
        active: true,
        subject: { type: 'user', id: 'alice' },
        organization: 'acme',
        permissions: [
          { relation: 'viewer', resource: 'doc:ü', allowed: true, error: '', reasonCode: 'tuple', missingContext: [] },
        ],
        entitlements: { gate: { enabled: true }, none: null },
        decisionId: 'd',
        revision: 'r',
        validUntilMs: 1,
        acr: 'gold',
        authTime: 1,
      },
    },
  },
]
const long = (to: BinaryWriter, field: number): BinaryWriter => to.tag(field, WireType.LengthDelimited).fork()

describe('answers', () => {
  test('are read as the generated code writes them', () => {
    fc.assert(
      fc.property(answers, (given) => {
        const bytes = encode(given)
        expect(decodeAnswers(bytes)).toEqual(generated(bytes))
      }),
    )
  })

  test('are refused wherever they are cut off, unless what is left is an answer', () => {
    const whole = encode(ALLOWED)
    expect(decodeAnswers(whole)).toHaveLength(1)
    for (let length = 1; length < whole.length; length += 1)
      expect(ours(whole.subarray(0, length)), `${length} bytes`).toBeNull()
    fc.assert(
      fc.property(answers, fc.nat(), (given, cut) => {
        const bytes = encode(given)
        const part = bytes.subarray(0, cut % (bytes.length + 1))
        expect(ours(part)).toEqual(generated(part))
      }),
    )
  })

  test('do not allow more with a byte changed than the generated code reads', () => {
    const whole = encode(ALLOWED)
    const allows = (all: StreamAnswer[] | null): boolean =>
      all?.some(({ decision: made }) => made?.active && made.permissions.some(({ allowed }) => allowed)) === true
    const more: string[] = []
    for (let at = 0; at < whole.length; at += 1) {
      for (let byte = 0; byte < 256; byte += 1) {
        const bytes = Uint8Array.from(whole)
        bytes[at] = byte
        // What that one refuses is a field of another kind, which it takes for the one of its number.
        const other = allows(ours(bytes)) ? generated(bytes) : null
        if (other !== null && !allows(other)) more.push(`byte ${at} is ${byte}`)
      }
    }
    expect([allows(ours(whole)), more]).toEqual([true, []])
  })

  test('never come with a decision beside an error, in either order, also when the error is empty', () => {
    const made = toBinary(StreamAnswerSchema, messageOf(7, ALLOWED[0]?.outcome ?? { case: undefined }))
    for (const error of ['', 'store_unavailable']) {
      const said = new BinaryWriter().tag(3, WireType.LengthDelimited).string(error).finish()
      for (const both of [
        [made, said],
        [said, made],
      ]) {
        const bytes = long(new BinaryWriter(), 1).raw(Buffer.concat(both)).join().finish()
        expect(decodeAnswers(bytes)).toEqual([{ id: 7, decision: null, error: error || 'no outcome' }])
      }
    }
  })

  test('that say nothing are errors', () => {
    const bytes = long(new BinaryWriter(), 1).tag(1, WireType.Varint).uint32(7).join().finish()
    expect(decodeAnswers(bytes)).toEqual([{ id: 7, decision: null, error: 'no outcome' }])
    expect(decodeAnswers(new Uint8Array())).toEqual([])
  })

  test('with two decisions count as the last, of which nothing is added to the other', () => {
    const first = toBinary(StreamAnswerSchema, messageOf(7, ALLOWED[0]?.outcome ?? { case: undefined }))
    const second = long(new BinaryWriter(), 2).tag(3, WireType.LengthDelimited).string('acme').join().finish()
    const bytes = long(new BinaryWriter(), 1)
      .raw(Buffer.concat([first, second]))
      .join()
      .finish()
    expect(decodeAnswers(bytes)[0]?.decision).toMatchObject({ active: false, subjectId: '', permissions: [] })
  })

  test('take the last of a field that came twice', () => {
    const to = long(long(new BinaryWriter().tag(9, WireType.Varint).uint32(1), 1), 2)
    to.tag(1, WireType.Varint).bool(true).tag(1, WireType.Varint).bool(false)
    long(to, 2).tag(2, WireType.LengthDelimited).string('alice').join()
    long(to, 2).tag(1, WireType.LengthDelimited).string('user').tag(2, WireType.LengthDelimited).string('bob').join()
    long(to, 4).tag(3, WireType.Varint).bool(true).tag(3, WireType.Varint).bool(false).join()
    const bytes = to.join().tag(1, WireType.Varint).uint32(3).tag(1, WireType.Varint).uint32(4).join().finish()
    expect(decodeAnswers(bytes)).toEqual(generated(bytes))
    expect(decodeAnswers(bytes)).toMatchObject([
      { id: 4, decision: { active: false, subjectType: 'user', subjectId: 'bob', permissions: [{ allowed: false }] } },
    ])
  })

  test('may hold fields of a later protocol, at any level', () => {
    const later = (to: BinaryWriter): BinaryWriter =>
      to
        .tag(99, WireType.LengthDelimited)
        .string('x')
        .tag(98, WireType.Bit64)
        .double(1)
        .tag(97, WireType.Bit32)
        .float(1)
        .tag(96, WireType.StartGroup)
        .tag(96, WireType.EndGroup)
        .tag(95, WireType.Varint)
        .uint64(2n ** 63n)
    const to = later(long(later(long(later(new BinaryWriter()), 1)), 2))
    later(to.tag(1, WireType.Varint).bool(true))
    const bytes = later(to.join().tag(1, WireType.Varint).uint32(5)).join().finish()
    expect(decodeAnswers(bytes)).toEqual(generated(bytes))
    expect(decodeAnswers(bytes)).toMatchObject([{ id: 5, decision: { active: true } }])
  })

  test('do not take a field of another kind for the one of its number', () => {
    const to = long(long(new BinaryWriter(), 1), 2)
    to.tag(1, WireType.LengthDelimited)
      .string('\u0001')
      .tag(1, WireType.Bit32)
      .float(1)
      .tag(3, WireType.Varint)
      .uint32(1)
    long(to, 4).tag(3, WireType.LengthDelimited).string('\u0001').tag(3, WireType.Bit64).double(1).join()
    expect(decodeAnswers(to.join().join().finish())).toMatchObject([
      { decision: { active: false, organization: '', permissions: [{ allowed: false }] } },
    ])
  })

  test('have an entitlement only for `enabled` that is boolean true, of its own value', () => {
    const values = [{ enabled: true }, { enabled: 'true' }, { enabled: 1 }, { enabled: null }, {}, { Enabled: true }]
    const held = JSON.parse('{"__proto__": {"enabled": true}}')
    const keys = ['yes', 'text', 'number', 'null', 'empty', 'other', 'inherited', 'absent']
    const all = [...values, held].map((value) => create(EntitlementResultSchema, { value, version: 1n }))
    const entitlements = Object.fromEntries(keys.map((key, at) => [key, all[at] ?? create(EntitlementResultSchema)]))
    const outcome = { case: 'decision', value: create(DecideResponseSchema, { active: true, entitlements }) } as const
    const message = create(DecideStreamResponseSchema, { answers: [create(StreamAnswerSchema, { id: 1, outcome })] })
    const read = decodeAnswers(toBinary(DecideStreamResponseSchema, message))[0]?.decision?.entitlements
    expect([...(read ?? [])].filter(([, { value }]) => value?.enabled === true).map(([key]) => key)).toEqual(['yes'])
    expect([...(read?.keys() ?? [])].toSorted()).toEqual(keys.toSorted())
  })

  test.each<[string, number[]]>([
    ['a text that is not UTF-8', [0x0a, 0x03, 0x1a, 0x01, 0xff]],
    ['a field number 0', [0x00, 0x01]],
    ['a kind of field that there is not', [0x0f]],
    ['the end of a group that never began', [0x0c]],
    ['a group that never ends', [0x7b, 0x08, 0x01]],
    ['groups in groups in groups', Array(5_000).fill(0x7b)],
    ['a length beyond its end', [0x0a, 0x7f, 0x08, 0x01]],
    ['a length of 4 GiB', [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x08, 0x01]],
    ['a length of more than 64 bits', [0x0a, ...Array(11).fill(0xff)]],
    ['a decision longer than its answer', [0x0a, 0x02, 0x12, 0x03, 0x08, 0x01, 0x00]],
    ['a text longer than its answer', [0x0a, 0x02, 0x1a, 0x04, 0x61, 0x61, 0x61, 0x61]],
    ['a number that goes on after its answer', [0x0a, 0x02, 0x08, 0x80, 0x01]],
    ['a number without an end', [0x0a, 0x0c, 0x08, ...Array(11).fill(0xff)]],
    ['a tag of more than 32 bits', [0x8a, 0x80, 0x80, 0x80, 0x10, 0x02, 0x08, 0x01]],
    ['a tag cut off', [0x8a]],
    ['an entitlement that is no message', [0x0a, 0x08, 0x12, 0x06, 0x2a, 0x04, 0x12, 0x02, 0x0a, 0x05]],
  ])('are refused with %s', (_, bytes) => {
    expect(() => decodeAnswers(new Uint8Array(bytes))).toThrow()
  })

  test('never hang, and are never made up of what is no text, number or boolean', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        for (const { id, decision: made, error } of ours(bytes) ?? []) {
          expect([Number.isInteger(id), typeof error, error === '']).toEqual([true, 'string', made !== null])
          for (const { resource, allowed } of made?.permissions ?? [])
            expect([typeof resource, typeof allowed]).toEqual(['string', 'boolean'])
        }
      }),
      { numRuns: effort({ short: 250, long: 2_000 }) },
    )
  })

  // A field that is added to the protocol has to be added to the decoder, or be of no interest here.
  test('have no fields but those that are known here', () => {
    const schemas = [DecideStreamResponseSchema, StreamAnswerSchema, DecideResponseSchema, PermissionResultSchema]
    expect(schemas.map(({ fields }) => fields.length)).toEqual([1, 3, 10, 7])
  })
})
