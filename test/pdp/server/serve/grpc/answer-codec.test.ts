/** Answers as bytes: what the generated code reads from them is what was decided, and nothing is left out. */
import { create, type DescMessage, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Answer } from '../../../../../pdp/server/serve/decisions/answer.ts'
import { type AnswerOrError, createAnswerEncoder } from '../../../../../pdp/server/serve/grpc/answer-codec.ts'
import type { PermissionResult, ReasonStep } from '../../../../../pdp/shared/domain/decision.ts'
import type { JsonObject } from '../../../../../pdp/shared/domain/json.ts'
import { REASONS, type ReasonCode } from '../../../../../pdp/shared/domain/reasons.ts'
import {
  DecideResponseSchema,
  DecideStreamResponseSchema,
  PermissionResultSchema,
  StreamAnswerSchema,
} from '../../../../../proto/gen/portcullis/v1/decision_pb.ts'

const text = fc.string({ unit: 'binary', maxLength: 200 }).map((s) => s.toWellFormed())
const step: fc.Arbitrary<ReasonStep> = fc.oneof(
  fc.record({ tuple: text }),
  fc.record({ member: text }),
  fc.record({ rule: text }),
  fc.record({ role_grant: text }),
)
const code = fc.constantFrom(...(Object.keys(REASONS) as ReasonCode[]))
const result: fc.Arbitrary<PermissionResult> = fc.record(
  {
    relation: text,
    resource: text,
    allowed: fc.boolean(),
    reasonCode: code,
    error: fc.constant('evaluation_limit' as const),
    reason: fc.record({
      code,
      message: text,
      path: fc.array(step, { maxLength: 3 }),
      missing: fc.array(text, { maxLength: 3 }),
    }),
  },
  { requiredKeys: ['relation', 'resource', 'allowed', 'reasonCode'] },
)
const gate = fc.record({
  value: fc
    .dictionary(text, fc.jsonValue({ maxDepth: 2 }))
    .map((value) => JSON.parse(JSON.stringify(value)) as JsonObject),
  version: fc.nat(),
  boolean: fc.constant(() => false),
})
const answer: fc.Arbitrary<Answer> = fc.record({
  active: fc.boolean(),
  subject: fc.option(fc.record({ type: fc.constantFrom('user' as const, 'service' as const), id: text })),
  organization: fc.option(text),
  permissions: fc.array(result, { maxLength: 5 }),
  entitlements: fc.array(fc.tuple(text, fc.option(gate)), { maxLength: 3 }).map((entries) => new Map(entries)),
  decisionId: text,
  revision: fc.option(text),
  validUntilMs: fc.option(fc.double({ noNaN: true })),
  acr: fc.option(text),
  authTime: fc.option(fc.integer({ min: 0, max: 2 ** 32 - 1 })),
  app: fc.option(text),
})
const outcome: fc.Arbitrary<AnswerOrError> = fc.oneof(fc.record({ answer }), fc.record({ error: text }))

/** What the generated code makes of an answer, written out field by field. */
function messageOf(of: Answer): MessageShape<typeof DecideResponseSchema> {
  return create(DecideResponseSchema, {
    active: of.active,
    ...(of.subject === null ? {} : { subject: of.subject }),
    organization: of.organization ?? '',
    permissions: of.permissions.map(({ relation, resource, allowed, reasonCode, error = '', reason }) => ({
      relation,
      resource,
      allowed,
      reasonCode,
      error,
      ...(reason === undefined
        ? {}
        : {
            reason: {
              code: reason.code,
              message: reason.message,
              path: reason.path.map(stepOf),
              missing: [...reason.missing],
            },
          }),
    })),
    entitlements: Object.fromEntries(
      [...of.entitlements].map(([key, found]) => [
        key,
        found === null
          ? {}
          : { value: structuredClone(found.value) as { [key: string]: string }, version: BigInt(found.version) },
      ]),
    ),
    decisionId: of.decisionId,
    revision: of.revision ?? '',
    validUntilMs: of.validUntilMs ?? 0,
    acr: of.acr ?? '',
    authTime: of.authTime ?? 0,
  })
}

function stepOf(of: ReasonStep) {
  if ('tuple' in of) return { step: { case: 'tuple' as const, value: of.tuple } }
  if ('member' in of) return { step: { case: 'member' as const, value: of.member } }
  if ('rule' in of) return { step: { case: 'rule' as const, value: of.rule } }
  return { step: { case: 'roleGrant' as const, value: of.role_grant } }
}

/** Through bytes, so that what cannot be told apart on the wire is equal (an absent text and an empty one). */
const plain = <Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): MessageShape<Desc> =>
  fromBinary(schema, toBinary(schema, message))

describe('an encoded answer', () => {
  test('is read by the generated code as what was decided, one message after another', () => {
    const encoder = createAnswerEncoder()
    fc.assert(
      fc.property(answer, (of) => {
        expect(fromBinary(DecideResponseSchema, encoder.one(of))).toEqual(plain(DecideResponseSchema, messageOf(of)))
      }),
    )
  })

  test('keeps its id among all that leave in one message, and problems their codes', () => {
    const encoder = createAnswerEncoder()
    const id = fc.integer({ min: 0, max: 2 ** 32 - 1 })
    fc.assert(
      fc.property(fc.array(fc.record({ id, outcome }), { maxLength: 5 }), (answers) => {
        const expected = create(DecideStreamResponseSchema, {
          answers: answers.map(({ id, outcome }) => ({
            id,
            outcome:
              'error' in outcome
                ? { case: 'error' as const, value: outcome.error }
                : { case: 'decision' as const, value: messageOf(outcome.answer) },
          })),
        })
        const read = fromBinary(DecideStreamResponseSchema, encoder.all(answers))
        expect(read).toEqual(plain(DecideStreamResponseSchema, expected))
      }),
    )
  })

  test('is not touched by the next one', () => {
    const encoder = createAnswerEncoder()
    const [first, second] = fc.sample(
      answer.filter(({ permissions }) => permissions.length > 0),
      2,
    )
    if (first === undefined || second === undefined) throw new Error('no sample')
    const bytes = encoder.one(first)
    encoder.one(second)
    expect(fromBinary(DecideResponseSchema, bytes)).toEqual(plain(DecideResponseSchema, messageOf(first)))
  })

  test('is whole after one that could not be written', () => {
    const encoder = createAnswerEncoder()
    const [good] = fc.sample(answer, 1)
    if (good === undefined) throw new Error('no sample')
    expect(() => encoder.one({ ...good, authTime: -1 })).toThrow(/uint32/)
    expect(() => encoder.all([{ id: -1, outcome: { error: 'internal' } }])).toThrow(/uint32/)
    expect(fromBinary(DecideResponseSchema, encoder.one(good))).toEqual(plain(DecideResponseSchema, messageOf(good)))
  })

  // A field that is added to the protocol has to be added to the encoder.
  test.each([
    [DecideResponseSchema, 10],
    [PermissionResultSchema, 7],
    [StreamAnswerSchema, 3],
    [DecideStreamResponseSchema, 1],
  ] as const)('has every field of %o', (schema: DescMessage, count: number) => {
    expect(schema.fields).toHaveLength(count)
  })
})
