/** Whether a relation holds on any resource of a type, over gRPC: by one call, and watched on a stream. */
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { credentials, makeClientConstructor } from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseTuple } from '../../../../../pdp/shared/domain/names.ts'
import { serviceDefinition } from '../../../../../pdp/shared/process/grpc/service.ts'
import {
  DecideRequestSchema,
  type DecideResponse,
  DecideStreamRequestSchema,
  type DecideStreamResponse,
  DecisionService,
} from '../../../../../proto/gen/portcullis/v1/decision_pb.ts'
import { given, put } from '../../../../support/tuples.ts'
import { CONTEXT, type Served, seedAcme, serve } from '../harness.ts'

const definition = serviceDefinition(DecisionService)
const Client = makeClientConstructor(definition, 'DecisionService')
let served: Served
let client: InstanceType<typeof Client>
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  client = new Client(served.grpc.address, credentials.createInsecure())
})
afterAll(async () => {
  client.close()
  await served.close()
})

const any = (relation: string, resource: string) => ({ relation, resource, any: true })
const drop = (text: string) =>
  served.store.write('acme', [{ kind: 'tuple', op: 'delete', tuple: { ...parseTuple(text), expiresAtMs: null } }], {
    context: CONTEXT,
  })

test('is answered by one call, with the type in place of the resource', async () => {
  await given(served.store, 'acme', put('ledger:1#keeper@user:alice'))
  const permissions = [any('keeper', 'ledger'), any('reader', 'ledger'), any('keeper', 'book')]
  const { path, requestSerialize, responseDeserialize } = definition.decide
  const answer = await new Promise<DecideResponse>((resolve, reject) => {
    const message = create(DecideRequestSchema, { token: served.token({}), permissions })
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, message, (failure, got) =>
      failure === null && got !== undefined ? resolve(got) : reject(failure),
    )
  })
  expect(answer.permissions.map(({ relation, resource, allowed }) => [relation, resource, allowed])).toEqual([
    ['keeper', 'ledger', true],
    ['reader', 'ledger', false],
    ['keeper', 'book', false],
  ])
})

test('is watched from the first resource to the last', async () => {
  const { path, requestSerialize, responseDeserialize } = definition.decideStream
  const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
  const said: (boolean | string | undefined)[] = []
  call.on('data', ({ answers }: DecideStreamResponse) => {
    for (const { outcome } of answers)
      said.push(outcome.case === 'decision' ? outcome.value.permissions[0]?.allowed : outcome.value)
  })
  call.on('error', () => undefined)
  const asked: MessageInitShape<typeof DecideStreamRequestSchema> = {
    tokens: [{ handle: 1, token: served.token({}) }],
    questions: [{ id: 1, handle: 1, watched: true, permissions: [any('signer', 'deed')] }],
  }
  call.write(create(DecideStreamRequestSchema, asked))
  await expect.poll(() => said).toEqual([false])
  await given(served.store, 'acme', put('deed:1#signer@user:alice'))
  await expect.poll(() => said).toEqual([false, true])
  await given(served.store, 'acme', put('deed:2#signer@user:alice'))
  await drop('deed:1#signer@user:alice')
  await drop('deed:2#signer@user:alice')
  await expect.poll(() => said).toEqual([false, true, false])
  call.cancel()
})
