/** A gRPC server that ends while its callers go on asking. */
import { create } from '@bufbuild/protobuf'
import { Client, credentials, status } from '@grpc/grpc-js'
import { expect, test } from 'vitest'
import { startGrpcServer } from '../../../../../pdp/server/serve/grpc/server.ts'
import { serviceDefinition } from '../../../../../pdp/shared/process/grpc/service.ts'
import { createLog } from '../../../../../pdp/shared/process/log.ts'
import {
  type DecideStreamRequest,
  DecideStreamRequestSchema,
  type DecideStreamResponse,
  DecisionService,
} from '../../../../../proto/gen/portcullis/v1/decision_pb.ts'

const { path, requestSerialize, responseDeserialize } = serviceDefinition(DecisionService).decideStream
const question = (id: number): DecideStreamRequest =>
  create(DecideStreamRequestSchema, {
    tokens: [{ handle: 1, token: 'token-of-alice' }],
    questions: [{ id, handle: 1, permissions: [{ relation: 'viewer', resource: 'invoice:1' }] }],
  })

test('a stream that is asked again and again ends when what it had taken is answered', async () => {
  const asked: (() => void)[] = []
  const server = await startGrpcServer(
    {
      recognize: async () => ({ active: false }),
      answer: () => new Promise((_resolve, reject) => asked.push(() => reject(new Error('answered')))),
      watched: { ask: () => () => undefined, close: async () => undefined },
      authenticate: async () => ({ name: 'anybody', group: null }),
      tls: null,
      log: createLog({ service: 'test', level: 'silent' }),
    },
    { host: '127.0.0.1', port: 0 },
  )
  const client = new Client(server.address, credentials.createInsecure())
  const stream = client.makeBidiStreamRequest<DecideStreamRequest, DecideStreamResponse>(
    path,
    requestSerialize,
    responseDeserialize,
  )
  const answered: number[] = []
  stream.on('data', ({ answers }: DecideStreamResponse) => answered.push(...answers.map(({ id }) => id)))
  const ended = new Promise<number>((resolve) => {
    stream.on('status', ({ code }: { code: number }) => resolve(code))
    stream.on('error', () => undefined)
  })
  stream.write(question(1))
  await expect.poll(() => asked.length).toBe(1)
  const closed = server.close()
  // The second and third arrive before the first is answered: a server that took them would wait for them too.
  await new Promise<void>((written) => stream.write(question(2), () => written()))
  await new Promise<void>((written) => stream.write(question(3), () => written()))
  await new Promise((resolve) => setTimeout(resolve, 50))
  for (const answer of asked.splice(0)) answer()
  expect(await ended).toBe(status.OK)
  await closed
  expect(answered).toEqual([1])
  expect(asked).toEqual([])
  client.close()
})
