/** What gRPC calls hold over a real connection until they are over. */
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { credentials, makeClientConstructor, type ServiceError } from '@grpc/grpc-js'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Answer } from '../../../../../pdp/server/serve/decisions/answer.ts'
import { type GrpcServer, startGrpcServer } from '../../../../../pdp/server/serve/grpc/server.ts'
import { serviceDefinition } from '../../../../../pdp/shared/process/grpc/service.ts'
import {
  type DecideRequest,
  DecideRequestSchema,
  type DecideResponse,
  type DecideStreamRequest,
  DecideStreamRequestSchema,
  type DecideStreamResponse,
  DecisionService,
} from '../../../../../proto/gen/portcullis/v1/decision_pb.ts'
import { answerOf, counting, LARGE, LARGE_WEIGHT, MIB, TOTALS } from './in-flight.ts'

describe('over a connection', () => {
  const definition = serviceDefinition(DecisionService)
  const Client = makeClientConstructor(definition, 'DecisionService')
  let server: GrpcServer
  let client: InstanceType<typeof Client>
  let counted: ReturnType<typeof counting>
  let answered: ((answer: Answer) => void)[]
  beforeEach(async ({ task }) => {
    counted = counting(task.name.includes('is not read') ? { ...TOTALS, bytes: 64 * MIB } : TOTALS)
    answered = []
    server = await startGrpcServer(
      {
        recognize: async () => ({ active: false }),
        answer: () => new Promise((resolve) => answered.push(resolve)),
        watched: { ask: () => () => undefined, close: async () => undefined },
        authenticate: async () => ({ name: 'nobody', group: null }),
        tls: null,
        log: pino({ level: 'silent' }),
        budgets: counted.budgets,
      },
      { host: '127.0.0.1', port: 0 },
    )
    client = new Client(server.address, credentials.createInsecure())
  })
  afterEach(async () => {
    client.close()
    for (const answer of answered) answer(answerOf(0))
    await server.close()
  })
  const LOCAL = 'this machine'
  function decide(request: MessageInitShape<typeof DecideRequestSchema>) {
    const { path, requestSerialize, responseDeserialize } = definition.decide
    const ended = Promise.withResolvers<DecideResponse | ServiceError | undefined>()
    const call = client.makeUnaryRequest<DecideRequest, DecideResponse>(
      path,
      requestSerialize,
      responseDeserialize,
      create(DecideRequestSchema, request),
      (err, value) => ended.resolve(err ?? value),
    )
    return { ended: ended.promise, cancel: () => call.cancel() }
  }

  test('calls of Decide hold bytes until each is answered, refused or cancelled', async () => {
    const calls = Array.from({ length: 30 }, () => decide({ token: 't', permissions: LARGE }))
    const countMax = Math.floor(MIB / (LARGE_WEIGHT + 1))
    await expect.poll(() => answered.length).toBe(countMax)
    let refusedCount = 0
    for (const { ended } of calls) void ended.then(() => (refusedCount += 1))
    await expect.poll(() => refusedCount).toBe(calls.length - countMax)
    const refused = await Promise.race(calls.map(({ ended }) => ended))
    expect(refused).toMatchObject({ code: 8 })
    expect((refused as ServiceError).metadata.get('portcullis-problem')).toEqual(['overloaded'])
    expect(counted.mostOf(LOCAL)).toBeLessThanOrEqual(MIB)
    answered[0]?.(answerOf(1))
    await expect.poll(() => counted.heldBy(LOCAL)).toBe((countMax - 1) * (LARGE_WEIGHT + 1))
    for (const { cancel } of calls) cancel()
    await expect.poll(() => counted.heldBy(LOCAL)).toBe(0)
    expect(counted.heldBy('address 127.0.0.1')).toBe(0)
  })

  test('an answer that is larger than its caller may hold is refused', async () => {
    const { ended } = decide({ token: 't' })
    await expect.poll(() => answered.length).toBe(1)
    answered[0]?.(answerOf(0, { text: 'v'.repeat(MIB) }))
    expect(await ended).toMatchObject({ code: 8 })
    await expect.poll(() => counted.heldBy(LOCAL)).toBe(0)
  })

  test('a stream that is not read takes one more message from the transport', async () => {
    const { path, requestSerialize, responseDeserialize } = definition.decideStream
    const stream = client.makeBidiStreamRequest<DecideStreamRequest, DecideStreamResponse>(
      path,
      requestSerialize,
      responseDeserialize,
    )
    stream.on('error', () => undefined).on('data', () => undefined)
    const permissions = LARGE.slice(0, 1)
    const message = (from: number) =>
      create(DecideStreamRequestSchema, {
        tokens: [{ handle: 1, token: 't' }],
        questions: Array.from({ length: 2_048 }, (_, i) => ({ id: from + i, handle: 1, permissions })),
      })
    let sentCount = 0
    const count = (): void => {
      sentCount += 1
    }
    for (let i = 0; i < 12; i += 1) stream.write(message(i * 2_048), count)
    await expect.poll(() => answered.length).toBe(2_048)
    for (let before = -1; before !== sentCount; await new Promise((done) => setTimeout(done, 200))) before = sentCount
    expect(answered).toHaveLength(2_048)
    expect(sentCount).toBeLessThan(6)
    stream.cancel()
    await expect
      .poll(() => {
        for (const answer of answered) answer(answerOf(0))
        return counted.heldBy(LOCAL)
      })
      .toBe(0)
  })
})
