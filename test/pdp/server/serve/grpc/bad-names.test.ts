/** Names that are none, in questions over gRPC: refused by themselves, and of no consequence to others of the same message. */
import { create } from '@bufbuild/protobuf'
import { credentials, makeClientConstructor, type ServiceError, status } from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { serviceDefinition } from '../../../../../pdp/shared/process/grpc/service.ts'
import {
  DecideRequestSchema,
  DecideStreamRequestSchema,
  type DecideStreamResponse,
  DecisionService,
} from '../../../../../proto/gen/portcullis/v1/decision_pb.ts'
import { type Served, seedAcme, serve } from '../harness.ts'

const definition = serviceDefinition(DecisionService)
const Client = makeClientConstructor(definition, 'DecisionService')
let served: Served
let client: InstanceType<typeof Client>
let token: string
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  client = new Client(served.grpc.address, credentials.createInsecure())
  token = served.token({})
})
afterAll(async () => {
  client.close()
  await served.close()
})

const GOOD = { permissions: [{ relation: 'viewer', resource: 'invoice:1' }] }
const check = (relation: string, resource: string) => ({ permissions: [{ relation, resource }] })
const any = (resource: string) => ({ permissions: [{ relation: 'viewer', resource, any: true }] })
const BAD: readonly (readonly [what: string, question: object])[] = [
  ['a NUL in the id', check('viewer', 'invoice:\0')],
  ['a NUL after an id', check('viewer', 'invoice:1\0')],
  ['a NUL in the relation', check('view\0er', 'invoice:1')],
  ['a NUL in the type', check('viewer', 'inv\0oice:1')],
  ['a space', check('viewer', 'invoice:1 2')],
  ['the mark of a userset', check('viewer', 'invoice:1#viewer')],
  ['no id', check('viewer', 'invoice')],
  ['the wildcard', check('viewer', 'invoice:*')],
  ['a non-character', check('viewer', 'invoice:\uffff')],
  ['513 bytes', check('viewer', `invoice:${'x'.repeat(513)}`)],
  ['any of a resource', any('invoice:1')],
  ['any of the wildcard', any('invoice:*')],
  ['any of every type', any('*')],
  ['any of no type', any('')],
  ['any of a type with a NUL', any('inv\0oice')],
  ['a NUL in an entitlement', { entitlements: ['feature.\0'] }],
  ['no name of an entitlement', { entitlements: [''] }],
  ['a context that is no JSON', { ...GOOD, context: '{' }],
  ['a context that is not an object', { ...GOOD, context: '[]' }],
]

test.each(BAD)('a call of Decide with %s is INVALID_ARGUMENT', async (_what, question) => {
  const { path, requestSerialize, responseDeserialize } = definition.decide
  const message = create(DecideRequestSchema, { token, ...question })
  const err = await new Promise<ServiceError>((resolve, reject) => {
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, message, (failure, answer) =>
      failure === null ? reject(new Error(JSON.stringify(answer))) : resolve(failure),
    )
  })
  expect([err.code, err.metadata.get('portcullis-problem')]).toEqual([status.INVALID_ARGUMENT, ['request_invalid']])
})

test.each([false, true])('fails no question beside it on a stream, watched: %s', async (watched) => {
  const { path, requestSerialize, responseDeserialize } = definition.decideStream
  const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
  const answers = new Map<number, unknown>()
  call.on('data', (message: DecideStreamResponse) => {
    for (const { id, outcome } of message.answers)
      answers.set(id, outcome.case === 'error' ? outcome.value : outcome.case)
  })
  call.on('error', () => undefined)
  // Each bad one stands between two good ones, in one message.
  const questions = BAD.flatMap(([, question], at) => [
    { id: 3 * at, handle: 1, watched, ...GOOD },
    { id: 3 * at + 1, handle: 1, watched, ...question },
    { id: 3 * at + 2, handle: 1, watched, ...GOOD },
  ])
  call.write(create(DecideStreamRequestSchema, { tokens: [{ handle: 1, token }], questions }))
  await expect.poll(() => answers.size, { timeout: 20_000 }).toBe(questions.length)
  const wrong = BAD.flatMap(([what], at) => {
    const said = [answers.get(3 * at), answers.get(3 * at + 1), answers.get(3 * at + 2)]
    return said.join() === 'decision,request_invalid,decision' ? [] : [`${what}: ${said}`]
  })
  call.cancel()
  expect(wrong).toEqual([])
})

test('a token with a NUL is nobody’s', async () => {
  const { path, requestSerialize, responseDeserialize } = definition.decide
  const message = create(DecideRequestSchema, { token: 'a\0b', ...GOOD })
  const answer = await new Promise<unknown>((resolve, reject) => {
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, message, (failure, got) =>
      failure === null ? resolve(got) : reject(failure),
    )
  })
  expect(answer).toMatchObject({ active: false })
})
