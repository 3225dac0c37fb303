/** Questions over gRPC that name what another tenant has: answered like names that nobody has. */
import { create, type DescField, type DescMessage, toJson } from '@bufbuild/protobuf'
import { credentials, makeClientConstructor } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { serviceDefinition } from '../../../../../pdp/shared/process/grpc/service.ts'
import {
  DecideRequestSchema,
  DecideResponseSchema,
  DecideStreamRequestSchema,
  type DecideStreamResponse,
  DecisionService,
  StreamAnswerSchema,
} from '../../../../../proto/gen/portcullis/v1/decision_pb.ts'
import { RouteService } from '../../../../../proto/gen/portcullis/v1/routes_pb.ts'
import { type DecisionClient, decisionClient } from '../decision-client.ts'
import { type ForeignWorld, type Names, NOBODYS, named, openForeign, THEIRS, without } from '../foreign-world.ts'

const definition = serviceDefinition(DecisionService)
const Client = makeClientConstructor(definition, 'DecisionService')
let world: ForeignWorld
let asking: DecisionClient
let client: InstanceType<typeof Client>
beforeAll(async () => {
  world = await openForeign()
  asking = decisionClient(world.grpc.address)
  client = new Client(world.grpc.address, credentials.createInsecure())
})
afterAll(async () => {
  asking.close()
  client.close()
  await world.close()
})

const CHECKS = [{ relation: 'viewer', resource: 'invoice:own' }]
const TUPLE = { object: 'invoice:own', relation: 'viewer', subject: 'user:dora' }
const RESOURCES = ['{invoice}', 'group:{group}', 'organization:{organization}', 'user:{user}']
const SUBJECTS = ['user:{user}', 'service:{client}', 'group:{group}#member', 'organization:{organization}#member']
/** What each text of a question may name of another tenant. Empty: names that belong to the environment, or to no one. */
const NAMED: { readonly [text: string]: readonly object[] } = {
  token: [],
  // A caller that is bound to a tenant may name its own alone; others may name any.
  guest: [],
  'permissions.relation': [],
  'permissions.resource': RESOURCES.map((resource) => ({ permissions: [{ relation: 'viewer', resource }] })),
  entitlements: [{ entitlements: ['{entitlement}'] }],
  'subject.type': [],
  'subject.id': [{ subject: { type: 'group', id: '{group}' } }, { subject: { type: 'invoice', id: '{user}' } }],
  'subject.relation': [{ subject: { type: 'group', id: '{group}', relation: 'member' } }],
  'contextualTuples.object': RESOURCES.map((object) => ({
    contextualTuples: [{ ...TUPLE, object, relation: 'parent' }],
  })),
  'contextualTuples.relation': [],
  'contextualTuples.subject': SUBJECTS.map((subject) => ({ contextualTuples: [{ ...TUPLE, subject }] })),
  'contextualTuples.condition': [],
  'contextualTuples.conditionContext': [],
  context: [],
  requestId: [{ requestId: '{user}' }],
  traceparent: [],
  clientAddress: [],
  route: [{ route: '{organization}' }],
}

/** The texts that a message may hold, by the fields that lead to them. */
function textsIn(message: DescMessage, at = ''): readonly string[] {
  return message.fields.flatMap((field) => {
    const name = at === '' ? field.localName : `${at}.${field.localName}`
    const below = messageOf(field)
    if (below !== undefined) return textsIn(below, name)
    return isText(field) ? [name] : []
  })
}
const messageOf = (field: DescField): DescMessage | undefined =>
  field.fieldKind === 'message' || field.fieldKind === 'list' ? field.message : undefined
// ScalarType.STRING
const isText = (field: DescField): boolean =>
  (field.fieldKind === 'scalar' || field.fieldKind === 'list') && field.scalar === 9

/** Of each method that answers, the questions that it takes. */
const QUESTIONS = {
  decide: DecideRequestSchema,
  decideStream: DecideStreamRequestSchema.field.questions.message,
} as const
const partsOf = (method: keyof typeof QUESTIONS): readonly object[] => {
  const texts = textsIn(QUESTIONS[method] as DescMessage)
  expect(texts.length).toBeGreaterThan(4)
  expect(texts.filter((text) => !(text in NAMED))).toEqual([])
  return texts.flatMap((text) => NAMED[text] ?? [])
}

/** Every answer of a stream on which this is said, until there are as many. */
async function overStream(said: readonly object[], count: number): Promise<readonly object[]> {
  const { path, requestSerialize, responseDeserialize } = definition.decideStream
  const stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
  const answers: object[] = []
  const ended = Promise.withResolvers<void>()
  stream.on('error', ended.reject)
  stream.on('data', (response: DecideStreamResponse) => {
    answers.push(...response.answers.map((answer) => toJson(StreamAnswerSchema, answer) as object))
    if (answers.length >= count) ended.resolve()
  })
  for (const message of said) stream.write(create(DecideStreamRequestSchema, message))
  await ended.promise
  stream.on('error', () => undefined).cancel()
  return answers
}

describe('a question over gRPC says no more about another tenant than about nobody', () => {
  test('by every method that answers', () => {
    expect(DecisionService.methods.map(({ localName }) => localName)).toEqual(Object.keys(QUESTIONS))
    // It answers nothing: the PDP asks there.
    expect(RouteService.methods.map(({ localName }) => localName)).toEqual(['report'])
  })

  test.each([false, true])('by Decide, explained: %s', async (explain) => {
    const told = async (part: object, names: Names): Promise<string> => {
      const question = named({ permissions: CHECKS, entitlements: ['feature.own'], explain, ...part }, names)
      const answer = await asking.decide({ token: world.stranger, ...question })
      return without(names, JSON.stringify(toJson(DecideResponseSchema, answer)))
    }
    for (const part of partsOf('decide')) {
      const theirs = await told(part, THEIRS)
      expect([part, theirs]).toEqual([part, await told(part, NOBODYS)])
      expect(theirs).toContain('"organization":"beta"')
    }
  })

  test.each([false, true])('by DecideStream, watched: %s', async (watched) => {
    const parts = partsOf('decideStream')
    const told = async (names: Names): Promise<string> => {
      const questions = parts.map((part, id) => ({
        id,
        handle: 1,
        permissions: CHECKS,
        watched,
        ...named(part, names),
      }))
      const answers = await overStream([{ tokens: [{ handle: 1, token: world.stranger }], questions }], parts.length)
      return without(names, JSON.stringify(answers.toSorted((a, b) => idOf(a) - idOf(b))))
    }
    const theirs = await told(THEIRS)
    expect(theirs).toBe(await told(NOBODYS))
    expect(theirs.match(/"organization":"beta"/g)).toHaveLength(parts.length)
  })
})

const idOf = (answer: object): number => ('id' in answer ? Number(answer.id) : 0)

describe('a stream knows nothing of another', () => {
  const question = { id: 7, handle: 3, permissions: [{ relation: 'viewer', resource: THEIRS.invoice }] }
  const token = (): string => world.token({ organization: 'acme' })

  test('a handle that somebody else’s stream defined is unknown, like one that none did', async () => {
    const { path, requestSerialize, responseDeserialize } = definition.decideStream
    const theirs = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
    const seen: DecideStreamResponse[] = []
    theirs.on('data', (response: DecideStreamResponse) => seen.push(response)).on('error', () => undefined)
    theirs.write(
      create(DecideStreamRequestSchema, {
        tokens: [{ handle: 3, token: token() }],
        questions: [{ ...question, watched: true }],
      }),
    )
    await expect.poll(() => seen.length).toBe(1)
    const cancelled = { cancel: [question.id] }
    const [answer] = await overStream([cancelled, { questions: [question] }], 1)
    expect(answer).toEqual({ id: 7, error: 'handle_unknown' })
    expect(await overStream([{ questions: [{ ...question, handle: 99 }] }], 1)).toEqual([answer])
    // What a stranger cancelled under the same number is still watched.
    await world.store.write(
      'acme',
      [
        {
          kind: 'tuple',
          op: 'delete',
          tuple: { object: THEIRS.invoice, relation: 'viewer', subject: 'user:alice', expiresAtMs: null },
        },
      ],
      { context: { actor: 'test', requestId: 'test' } },
    )
    await expect.poll(() => seen.length).toBe(2)
    theirs.cancel()
  })
})
