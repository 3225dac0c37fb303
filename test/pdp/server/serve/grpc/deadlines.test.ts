/** A store that hangs keeps no caller of gRPC longer than the PDP's own deadline, or than the caller's. */
import { create } from '@bufbuild/protobuf'
import { credentials, makeClientConstructor, type ServiceError, status } from '@grpc/grpc-js'
import { afterEach, expect, test } from 'vitest'
import type { EntitlementSource, Store } from '../../../../../pdp/engine/store/contract.ts'
import { storeEntitlements } from '../../../../../pdp/engine/store/entitlements/store-source.ts'
import { createAdmission } from '../../../../../pdp/server/serve/authentication/admission.ts'
import { serviceDefinition } from '../../../../../pdp/shared/process/grpc/service.ts'
import {
  DecideRequestSchema,
  DecideStreamRequestSchema,
  type DecideStreamResponse,
  DecisionService,
} from '../../../../../proto/gen/portcullis/v1/decision_pb.ts'
import { type Served, seedAcme, serve } from '../harness.ts'

const NEVER = new Promise<never>(() => undefined)
const KEY = 'feature.invoicing'
const definition = serviceDefinition(DecisionService)
const Client = makeClientConstructor(definition, 'DecisionService')
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function start(options: Parameters<typeof serve>[0]): Promise<Served & { client: InstanceType<typeof Client> }> {
  const served = await serve(options)
  await seedAcme(served)
  const client = new Client(served.grpc.address, credentials.createInsecure())
  closers.push(
    () => served.close(),
    () => client.close(),
  )
  return { ...served, client }
}

/** How a call of Decide about an entitlement fails: its status and problem codes. */
function refusal({ client, token }: Awaited<ReturnType<typeof start>>, deadlineMs?: number): Promise<unknown[]> {
  const { path, requestSerialize, responseDeserialize } = definition.decide
  const message = create(DecideRequestSchema, { token: token({}), entitlements: [KEY] })
  const options = deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs }
  return new Promise((resolve, reject) => {
    const answered = (err: ServiceError | null): void =>
      err === null ? reject(new Error('answered')) : resolve([err.code, ...err.metadata.get('portcullis-problem')])
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, message, options, answered)
  })
}

const hanging = (store: Store): EntitlementSource => ({ ...storeEntitlements(store), read: () => NEVER })
const admission = (deadlineMs: number) => createAdmission({ clock: () => performance.now(), deadlineMs })

test('a call of Decide whose answer hangs is UNAVAILABLE at the deadline of a decision', async () => {
  const served = await start({ admission: admission(200), entitlements: hanging })
  expect(await refusal(served)).toEqual([status.UNAVAILABLE, 'store_unavailable'])
})

test('a call of Decide that hangs before its turn, at its token, is UNAVAILABLE at the same deadline', async () => {
  const served = await start({ grpcDeadlineMs: 200, recognize: () => NEVER })
  expect(await refusal(served)).toEqual([status.UNAVAILABLE, 'store_unavailable'])
})

test('a caller with a shorter deadline is let go at its own, and the next one is answered', async () => {
  const gate = Promise.withResolvers<void>()
  const read = (store: Store): EntitlementSource => {
    const source = storeEntitlements(store)
    return { ...source, read: (...asked) => gate.promise.then(() => source.read(...asked)) }
  }
  const served = await start({ entitlements: read })
  expect(await refusal(served, 300)).toEqual([status.DEADLINE_EXCEEDED])
  gate.resolve()
  await expect(refusal(served)).rejects.toThrow('answered')
})

test('a question of a stream that hangs is store_unavailable by itself, and the others are answered', async () => {
  const served = await start({ admission: admission(300), entitlements: hanging })
  const { path, requestSerialize, responseDeserialize } = definition.decideStream
  const call = served.client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
  closers.push(() => call.cancel())
  const answers = new Map<number, string | undefined>()
  call.on('data', (message: DecideStreamResponse) => {
    for (const { id, outcome } of message.answers)
      answers.set(id, outcome.case === 'error' ? outcome.value : outcome.case)
  })
  call.on('error', () => undefined)
  const questions = [
    { id: 1, handle: 1, entitlements: [KEY] },
    { id: 2, handle: 1, permissions: [{ relation: 'viewer', resource: 'invoice:1' }] },
  ]
  call.write(create(DecideStreamRequestSchema, { tokens: [{ handle: 1, token: served.token({}) }], questions }))
  await expect.poll(() => answers.size, { timeout: 20_000 }).toBe(2)
  expect([answers.get(1), answers.get(2)]).toEqual(['store_unavailable', 'decision'])
})

test('a stream ends at the deadline that its caller set', async () => {
  const served = await start({})
  const { path, requestSerialize, responseDeserialize } = definition.decideStream
  const deadline = Date.now() + 300
  const call = served.client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, { deadline })
  const ended = new Promise<ServiceError>((resolve) => call.on('error', resolve))
  expect((await ended).code).toBe(status.DEADLINE_EXCEEDED)
})
