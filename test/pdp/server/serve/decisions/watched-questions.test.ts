/** Standing questions over gRPC: answered again when the answer or the token changes, and only then. */
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { type ClientDuplexStream, credentials, makeClientConstructor } from '@grpc/grpc-js'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createWatchedQuestions } from '../../../../../pdp/server/serve/decisions/watched-questions.ts'
import type { Change } from '../../../../../pdp/shared/domain/change.ts'
import { PdpError } from '../../../../../pdp/shared/domain/errors.ts'
import { ENVIRONMENT, TOKENS } from '../../../../../pdp/shared/domain/journal.ts'
import { serviceDefinition } from '../../../../../pdp/shared/process/grpc/service.ts'
import {
  type DecideStreamRequest,
  DecideStreamRequestSchema,
  type DecideStreamResponse,
  DecisionService,
  type StreamAnswer,
} from '../../../../../proto/gen/portcullis/v1/decision_pb.ts'
import { drop, gate, grant, put } from '../../../../support/tuples.ts'
import { CONTEXT, type Served, seedAcme, serve } from '../harness.ts'

const { path, requestSerialize, responseDeserialize } = serviceDefinition(DecisionService).decideStream
const Client = makeClientConstructor(serviceDefinition(DecisionService), 'DecisionService')
type Stream = ClientDuplexStream<DecideStreamRequest, DecideStreamResponse>

let served: Served
let client: InstanceType<typeof Client>
let stream: Stream
let told: StreamAnswer[]
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  await served.store.write(
    ENVIRONMENT,
    [{ kind: 'organization', id: 'other', organization: { id: 'other', name: 'Other', parent: null } }],
    { context: CONTEXT },
  )
  client = new Client(served.grpc.address, credentials.createInsecure())
})
afterAll(async () => {
  client.close()
  await served.close()
})
beforeEach(() => {
  told = []
  stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
  stream.on('data', (message: DecideStreamResponse) => told.push(...message.answers)).on('error', () => undefined)
})
afterEach(() => stream.cancel())

const write = (...changes: Change[]) => served.store.write('acme', changes, { context: CONTEXT })
const send = (request: MessageInitShape<typeof DecideStreamRequestSchema>) =>
  stream.write(create(DecideStreamRequestSchema, request))
const PERMISSIONS = [{ relation: 'viewer', resource: 'invoice:1' }]
const ask = (token: string, more: object = {}) =>
  send({
    tokens: [{ handle: 1, token }],
    questions: [{ id: 1, handle: 1, permissions: PERMISSIONS, watched: true, ...more }],
  })
const until = async (count: number): Promise<readonly StreamAnswer[]> => {
  while (told.length < count) await new Promise((done) => setTimeout(done, 5))
  return told
}
/** Several looks at what moved. */
const aWhile = () => new Promise((done) => setTimeout(done, 300))
const brief = ({ id, outcome }: StreamAnswer) =>
  outcome.case === 'decision'
    ? [id, outcome.value.active, ...outcome.value.permissions.map((p) => p.allowed)]
    : [id, outcome.value]

describe('a watched question', () => {
  test('is answered at once, and again when the answer changes, and back', async () => {
    ask(served.token({}))
    expect((await until(1)).map(brief)).toEqual([[1, true, true]])
    await write(drop('invoice:1#viewer@user:alice'))
    expect((await until(2)).map(brief)[1]).toEqual([1, true, false])
    await write(put('invoice:1#viewer@user:alice'))
    expect((await until(3)).map(brief)[2]).toEqual([1, true, true])
  })

  test('is not answered again when something else changes', async () => {
    ask(served.token({}))
    await until(1)
    await write(put('invoice:99#viewer@user:bob'))
    await write(gate('feature.other', true))
    await served.store.write('other', [put('invoice:1#viewer@user:alice')], { context: CONTEXT })
    await aWhile()
    expect(told).toHaveLength(1)
  })

  test('is answered again when the token dies', async () => {
    const token = served.token({})
    ask(token)
    await until(1)
    served.setState(token, { active: false })
    await served.directory.deleteClient(await deletableClient(), CONTEXT)
    expect((await until(2)).map(brief)[1]).toEqual([1, false, false])
  })

  test('is answered again for a role, a membership, an entitlement, and a move in the tree', async () => {
    const roles = { editor: { name: 'E', permissions: ['invoices:edit'] } }
    const manifest = { app: 'app', audiences: [], permissions: { 'invoices:edit': 'x' }, roles, model: null }
    await served.store.write(ENVIRONMENT, [{ kind: 'manifest', manifest }], { context: CONTEXT })
    ask(served.token({}), {
      permissions: [{ relation: 'invoices:edit', resource: 'app:app' }],
      entitlements: ['feature.new'],
    })
    expect((await until(1)).map(brief)).toEqual([[1, true, false]])
    await write(grant('g1', 'editor', 'user:alice', 'app'))
    expect((await until(2)).map(brief)[1]).toEqual([1, true, true])
    await write({ kind: 'membership', user: 'alice', membership: { role: 'admin', status: 'suspended' } })
    expect((await until(3)).map(brief)[2]).toEqual([1, true, false])
    await write({ kind: 'membership', user: 'alice', membership: { role: 'admin', status: 'active' } })
    await until(4)
    await write(gate('feature.new', true))
    const [, , , , fifth] = await until(5)
    expect(fifth?.outcome.case === 'decision' && fifth.outcome.value.entitlements['feature.new']?.value).toEqual({
      enabled: true,
    })
    await write({
      kind: 'role_grant',
      op: 'delete',
      grant: { id: 'g1', app: 'app', role: 'editor', subject: 'user:alice' },
    })
    await until(6)
    // The parent's grant rolls down from the moment of the move.
    await served.store.write('other', [grant('g2', 'editor', 'user:alice', 'app')], { context: CONTEXT })
    await served.store.write(
      ENVIRONMENT,
      [{ kind: 'organization', id: 'acme', organization: { id: 'acme', name: 'Acme', parent: 'other' } }],
      { context: CONTEXT },
    )
    expect((await until(7)).map(brief)[6]).toEqual([1, true, true])
    await served.store.write(
      'other',
      [{ kind: 'role_grant', op: 'delete', grant: { id: 'g2', app: 'app', role: 'editor', subject: 'user:alice' } }],
      { context: CONTEXT },
    )
    expect((await until(8)).map(brief)[7]).toEqual([1, true, false])
  })

  test('is answered again at the instant at which a tuple, or the token, ends', async () => {
    const endsAtMs = Date.now() + 2_000
    await write(put('invoice:1#viewer@user:alice', endsAtMs))
    ask(served.token({}))
    expect((await until(1)).map(brief)).toEqual([[1, true, true]])
    expect((await until(2)).map(brief)[1]).toEqual([1, true, false])
    expect(Date.now()).toBeGreaterThanOrEqual(endsAtMs)
    expect(Date.now()).toBeLessThan(endsAtMs + 5_000)
    await write(put('invoice:1#viewer@user:alice'))
    const token = served.token({ expiresAtMs: Date.now() + 2_000 })
    send({
      tokens: [{ handle: 2, token }],
      questions: [{ id: 2, handle: 2, permissions: PERMISSIONS, watched: true }],
    })
    await until(4)
    served.setState(token, { active: false })
    const found = (await until(5)).map(brief)
    expect(found[4]).toEqual([2, false, false])
  })

  test('is asked again when the issuer of its token must be asked again', async () => {
    const token = served.token({ recheckAtMs: Date.now() + 2_000 })
    ask(token)
    await until(1)
    await aWhile()
    served.setState(token, { active: false })
    expect((await until(2)).map(brief)[1]).toEqual([1, false, false])
  })

  test('ends when it is cancelled, and when its id is used again', async () => {
    const token = served.token({})
    ask(token)
    await until(1)
    send({ cancel: [1, 77] })
    await aWhile()
    await write(drop('invoice:1#viewer@user:alice'))
    await aWhile()
    expect(told).toHaveLength(1)
    ask(token)
    ask(token, { permissions: [{ relation: 'viewer', resource: 'invoice:2' }] })
    await until(2)
    await write(put('invoice:1#viewer@user:alice'))
    await aWhile()
    expect(told.slice(1).map(brief)).toContainEqual([1, true, false])
    expect(told.slice(1).map(brief)).not.toContainEqual([1, true, true])
  })

  test('sees its own organization only', async () => {
    ask(served.token({ organization: 'other', subject: { type: 'user', id: 'bob' } }))
    await until(1)
    await write(put('invoice:1#viewer@user:bob'))
    await aWhile()
    expect(told.map(brief)).toEqual([[1, true, false]])
  })

  test('is refused past 4,096 on a stream, and the others stand', async () => {
    const question = (id: number) => ({ id, handle: 1, permissions: PERMISSIONS, watched: true })
    send({
      tokens: [{ handle: 1, token: served.token({}) }],
      questions: Array.from({ length: 4_097 }, (_, id) => question(id)),
    })
    const answers = new Map((await until(4_097)).map((answer) => [answer.id, brief(answer)]))
    expect([answers.get(4_095), answers.get(4_096)]).toEqual([
      [4_095, true, true],
      [4_096, 'watched_limit'],
    ])
  })

  test('with a malformed check is refused by itself', async () => {
    ask(served.token({}), { permissions: [{ relation: 'viewer', resource: 'x' }] })
    expect((await until(1)).map(brief)).toEqual([[1, 'request_invalid']])
    await aWhile()
    expect(told).toHaveLength(1)
  })
})

async function deletableClient(): Promise<string> {
  const id = `client-${Math.random()}`
  await served.directory.putClient({ id, app: null, organization: null, metadata: {} }, CONTEXT)
  return id
}

describe('while the store is away', () => {
  test('says once that the answer is in doubt, and answers again when it is back, even the same', async () => {
    let away = false
    const gone = () => Promise.reject(new PdpError('store_unavailable', 'away'))
    const said: unknown[] = []
    const watched = createWatchedQuestions({
      store: { vector: (logs) => (away ? gone() : served.store.vector(logs)) },
      pdp: served.pdp,
      recognize: async () => ({ active: false }),
      answer: async (_, question) => (away ? gone() : ANSWER(question)),
      clock: Date.now,
      log: pino({ level: 'silent' }),
      intervalMs: 10,
    })
    const question = { permissions: [], entitlements: [], subject: null, explain: false }
    const cancel = watched.ask({
      token: 'x',
      question,
      onAnswer: () => said.push('answer') > 0,
      onError: (err) => said.push((err as PdpError).code),
    })
    const wait = (count: number) => expect.poll(() => said.length).toBe(count)
    await wait(1)
    away = true
    await wait(2)
    await new Promise((done) => setTimeout(done, 60))
    away = false
    await wait(3)
    cancel()
    expect(said).toEqual(['answer', 'store_unavailable', 'answer'])
    await watched.close()
  })

  test('is answered again while its answer cannot be passed on', async () => {
    let room = false
    const passed: boolean[] = []
    const watched = createWatchedQuestions({
      store: served.store,
      pdp: served.pdp,
      recognize: async () => ({ active: false }),
      answer: async (_, question) => ANSWER(question),
      clock: Date.now,
      log: pino({ level: 'silent' }),
      intervalMs: 10,
    })
    const question = { permissions: [], entitlements: [], subject: null, explain: false }
    const onAnswer = () => {
      passed.push(room)
      return room
    }
    watched.ask({ token: 'x', question, onAnswer, onError: () => undefined })
    await expect.poll(() => passed.length).toBeGreaterThan(3)
    room = true
    await expect.poll(() => passed.at(-1)).toBe(true)
    const count = passed.length
    await new Promise((done) => setTimeout(done, 60))
    expect(passed).toHaveLength(count)
    await watched.close()
  })

  test('goes by the database’s clock when its own is ahead', async () => {
    let asked = 0
    const said: (number | null)[] = []
    const watched = createWatchedQuestions({
      store: served.store,
      pdp: served.pdp,
      recognize: async () => ({ active: false }),
      answer: async () => {
        asked += 1
        const over = asked > 4
        return { ...ANSWER(null), active: !over, validUntilMs: over ? null : Date.now() - 10 }
      },
      clock: Date.now,
      log: pino({ level: 'silent' }),
      intervalMs: 10,
    })
    const question = { permissions: [], entitlements: [], subject: null, explain: false }
    watched.ask({
      token: 'x',
      question,
      onAnswer: (answer) => said.push(answer.validUntilMs) > 0,
      onError: () => undefined,
    })
    await expect.poll(() => said.length).toBe(2)
    expect(said).toEqual([expect.any(Number), null])
    await watched.close()
  })

  test('asks one statement for all questions, whatever their number', async () => {
    let statements = 0
    const watched = createWatchedQuestions({
      store: {
        vector: (logs) => {
          statements += 1
          expect(logs).toContain(TOKENS)
          return served.store.vector(logs)
        },
      },
      pdp: served.pdp,
      recognize: async () => ({ active: false }),
      answer: async (_, question) => ANSWER(question),
      clock: Date.now,
      log: pino({ level: 'silent' }),
      intervalMs: 20,
    })
    const question = { permissions: [], entitlements: [], subject: null, explain: false }
    for (let i = 0; i < 1_000; i += 1)
      watched.ask({ token: String(i), question, onAnswer: () => true, onError: () => undefined })
    await expect.poll(() => statements).toBeGreaterThan(3)
    await watched.close()
    expect(statements).toBeLessThan(100)
  })
})

function ANSWER(_: unknown) {
  return {
    active: true,
    subject: null,
    organization: null,
    permissions: [],
    entitlements: new Map(),
    decisionId: 'd',
    revision: null,
    validUntilMs: null,
    acr: null,
    authTime: null,
    app: null,
  }
}
