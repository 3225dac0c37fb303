/** What callers are told when there are more requests than can be answered in time. */
import { type ClientRequest, request } from 'node:http'
import { create } from '@bufbuild/protobuf'
import { credentials, makeClientConstructor, type ServiceError, status } from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Asker } from '../../../../../pdp/server/serve/authentication/admission.ts'
import { RequestProblem } from '../../../../../pdp/server/serve/http/status.ts'
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
const asked: Asker[] = []
let served: Served
let client: InstanceType<typeof Client>
beforeAll(async () => {
  served = await serve({
    admission: {
      waitingCount: 0,
      async run(asker) {
        asked.push(asker)
        throw new RequestProblem('overloaded', 'too many questions wait already')
      },
    },
  })
  await seedAcme(served)
  client = new Client(served.grpc.address, credentials.createInsecure())
})
afterAll(async () => {
  client.close()
  await served.close()
})

const CHECK = { relation: 'viewer', resource: 'invoice:1' }

test('over HTTP it is 429 with Retry-After, decided by the organization and the client of the token', async () => {
  const token = served.token({ organization: 'acme', clientId: 'web' })
  const {
    status: code,
    headers,
    body,
  } = await served.send('POST', '/oauth/decisions', {
    token,
    body: { permissions: [CHECK] },
  })
  expect([code, headers.get('retry-after'), body.code]).toEqual([429, '1', 'overloaded'])
  expect(asked.at(-1)).toEqual({ organization: 'acme', client: 'web' })
})

test('over gRPC it is RESOURCE_EXHAUSTED, with the time after which gRPC may retry', async () => {
  const { path, requestSerialize, responseDeserialize } = definition.decide
  const message = create(DecideRequestSchema, { token: served.token({}), permissions: [CHECK] })
  const failed = await new Promise<ServiceError>((resolve, reject) => {
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, message, (err) =>
      err === null ? reject(new Error('answered')) : resolve(err),
    )
  })
  expect([
    failed.code,
    failed.metadata.get('portcullis-problem'),
    failed.metadata.get('grpc-retry-pushback-ms'),
  ]).toEqual([status.RESOURCE_EXHAUSTED, ['overloaded'], ['1000']])
})

test('on a stream it is the error of the question alone, and the stream goes on', async () => {
  const { path, requestSerialize, responseDeserialize } = definition.decideStream
  const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
  const answers: (readonly [number, string | undefined])[] = []
  call.on('data', (message: DecideStreamResponse) => {
    for (const { id, outcome } of message.answers)
      answers.push([id, outcome.case === 'error' ? outcome.value : outcome.case])
  })
  call.on('error', () => undefined)
  const tokens = [{ handle: 1, token: served.token({}) }]
  for (const id of [1, 2]) {
    call.write(
      create(DecideStreamRequestSchema, {
        tokens,
        questions: [{ id, handle: 1, permissions: [CHECK] }],
      }),
    )
    await expect.poll(() => answers.length).toBe(id)
  }
  expect(answers).toEqual([
    [1, 'overloaded'],
    [2, 'overloaded'],
  ])
  call.cancel()
})

test('a dead token is told so, whatever the load', async () => {
  const { status: code, body } = await served.send('POST', '/oauth/decisions', {
    token: 'nobody',
    body: { permissions: [CHECK] },
  })
  expect([code, body.permissions[0].allowed]).toEqual([200, false])
})

test('the management calls of one client have a bound, and those of others go on', async () => {
  const [busy, other] = [await served.manager({ client: 'busy' }), await served.manager({ client: 'other' })]
  const open: ClientRequest[] = []
  function begin(): void {
    const call = request(`${served.url}/v1/organizations/acme/relationships:import`, {
      method: 'POST',
      headers: { authorization: `Bearer ${busy}`, 'content-type': 'application/x-ndjson' },
    })
    call.on('error', () => undefined)
    call.flushHeaders()
    open.push(call)
  }
  for (let i = 0; i < 64; i++) begin()
  const list = (token: string) => served.send('GET', '/v1/organizations', { token })
  // A look at how it stands takes a place for a moment, so that one of the calls above may have found none.
  const look = async (): Promise<number> => {
    begin()
    return (await list(busy)).status
  }
  await expect.poll(look, { timeout: 20_000 }).toBe(429)
  expect((await list(busy)).headers.get('retry-after')).toBe('1')
  expect((await list(other)).status).toBe(200)
  for (const call of open) call.destroy()
  await expect.poll(async () => (await list(busy)).status, { timeout: 20_000 }).toBe(200)
})
