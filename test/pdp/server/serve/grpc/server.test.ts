import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { type ClientDuplexStream, credentials, makeClientConstructor, type ServiceError, status } from '@grpc/grpc-js'
import { service as healthService } from 'grpc-health-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type GrpcDeps, startGrpcServer } from '../../../../../pdp/server/serve/grpc/server.ts'
import { serviceDefinition } from '../../../../../pdp/shared/process/grpc/service.ts'
import {
  type DecideRequest,
  DecideRequestSchema,
  type DecideResponse,
  type DecideStreamRequest,
  DecideStreamRequestSchema,
  type DecideStreamResponse,
  DecisionService,
  type StreamAnswer,
} from '../../../../../proto/gen/portcullis/v1/decision_pb.ts'
import { type Json, type Served, seedAcme, serve } from '../harness.ts'

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

function decide(request: MessageInitShape<typeof DecideRequestSchema>): Promise<DecideResponse> {
  const { path, requestSerialize, responseDeserialize } = definition.decide
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest<DecideRequest, DecideResponse>(
      path,
      requestSerialize,
      responseDeserialize,
      create(DecideRequestSchema, request),
      (err, value) => (err === null && value !== undefined ? resolve(value) : reject(err)),
    )
  })
}
const problemOf = (err: ServiceError) => [err.code, err.metadata.get('portcullis-problem')[0]]
const CHECKS = [
  { relation: 'viewer', resource: 'invoice:1' },
  { relation: 'viewer', resource: 'invoice:2' },
]

describe('Decide', () => {
  test('gives the answer that HTTP gives', async () => {
    const token = served.token({ acr: 'mfa', authTime: 1_700_000_000 })
    const answer = await decide({ token, permissions: CHECKS, entitlements: ['feature.invoicing', 'feature.export'] })
    expect(answer).toMatchObject({
      active: true,
      subject: { type: 'user', id: 'alice' },
      organization: 'acme',
      permissions: [
        { ...CHECKS[0], allowed: true, reasonCode: 'tuple', error: '' },
        { ...CHECKS[1], allowed: false, reasonCode: 'none', error: '' },
      ],
      entitlements: { 'feature.invoicing': { value: { enabled: true }, version: 1n } },
      acr: 'mfa',
      authTime: 1_700_000_000,
    })
    expect(answer.entitlements['feature.export']?.value).toBeUndefined()
    expect(answer.entitlements).toHaveProperty(['feature.export'])
    expect([answer.decisionId, answer.revision]).not.toContain('')
    const body = { permissions: CHECKS, entitlements: ['feature.invoicing'] }
    const http = await served.send('POST', '/oauth/decisions', { token, body })
    expect(http.body.permissions.map(({ allowed }: Json) => allowed)).toEqual(
      answer.permissions.map(({ allowed }) => allowed),
    )
  })

  test('denies everything to an inactive token', async () => {
    const answer = await decide({ token: 'unknown', permissions: CHECKS, entitlements: ['feature.invoicing'] })
    expect(answer).toMatchObject({
      active: false,
      organization: '',
      permissions: [{ allowed: false, reasonCode: 'token_inactive' }, { allowed: false }],
    })
    expect(answer.subject).toBeUndefined()
  })

  test.each([
    ['an empty token', { token: '' }, status.INVALID_ARGUMENT, 'request_invalid'],
    [
      'a malformed resource',
      { permissions: [{ relation: 'viewer', resource: 'x' }] },
      status.INVALID_ARGUMENT,
      'request_invalid',
    ],
    ['257 checks', { permissions: Array(257).fill(CHECKS[0]) }, status.INVALID_ARGUMENT, 'request_invalid'],
    [
      'tuples of the question, asked by a user',
      { contextualTuples: [{ object: 'invoice:2', relation: 'viewer', subject: 'user:alice' }] },
      status.PERMISSION_DENIED,
      'permission_denied',
    ],
    [
      'another subject, asked by a user',
      { subject: { type: 'user', id: 'bob' } },
      status.PERMISSION_DENIED,
      'permission_denied',
    ],
    ['reasons, asked by a user', { explain: true }, status.PERMISSION_DENIED, 'permission_denied'],
  ])('refuses %s', async (_, request, code, problem) => {
    const err = await decide({ token: served.token({}), ...request }).catch((err: ServiceError) => err)
    expect(problemOf(err as ServiceError)).toEqual([code, problem])
  })
})

describe('DecideStream', () => {
  let stream: ClientDuplexStream<DecideStreamRequest, DecideStreamResponse>
  let messages: DecideStreamResponse[]
  const open = () => {
    const { path, requestSerialize, responseDeserialize } = definition.decideStream
    messages = []
    stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
    stream.on('data', (message) => messages.push(message)).on('error', () => undefined)
  }
  const write = (request: MessageInitShape<typeof DecideStreamRequestSchema>) =>
    stream.write(create(DecideStreamRequestSchema, request))
  const answers = async (count: number): Promise<Map<number, StreamAnswer['outcome']>> => {
    for (;;) {
      const found = messages.flatMap((message) => message.answers)
      if (found.length >= count) return new Map(found.map(({ id, outcome }) => [id, outcome]))
      await new Promise((done) => stream.once('data', done))
    }
  }
  const error = (value: string) => ({ case: 'error', value })
  const allowed = (outcome: StreamAnswer['outcome'] | undefined) =>
    outcome?.case === 'decision' && outcome.value.permissions.map((p) => p.allowed)
  afterEach(() => stream.cancel())

  test('answers many questions about several tokens by id, and asks about each token once for a message', async () => {
    open()
    const bob = served.token({ subject: { type: 'user', id: 'bob' } })
    const tokens = [
      { handle: 1, token: served.token({}) },
      { handle: 2, token: bob },
    ]
    const before = served.asked.length
    write({ tokens, questions: [1, 2, 3, 4].map((id) => ({ id, handle: 1 + (id % 2), permissions: CHECKS })) })
    const found = await answers(4)
    expect([1, 2, 3, 4].map((id) => allowed(found.get(id)))).toEqual([
      [false, true],
      [true, false],
      [false, true],
      [true, false],
    ])
    expect(served.asked.length - before).toBe(2)
  })

  test('looks at the token anew for every message', async () => {
    open()
    const token = served.token({})
    write({ tokens: [{ handle: 7, token }], questions: [{ id: 1, handle: 7, permissions: CHECKS }] })
    expect(allowed((await answers(1)).get(1))).toEqual([true, false])
    served.setState(token, { active: false })
    write({ questions: [{ id: 2, handle: 7, permissions: CHECKS }] })
    expect((await answers(2)).get(2)).toMatchObject({
      case: 'decision',
      value: { active: false, permissions: [{ allowed: false }, { allowed: false }] },
    })
  })

  test('joins the answers of a tick in one message', async () => {
    open()
    write({ questions: [1, 2, 3].map((id) => ({ id, handle: 99 })) })
    await answers(3)
    expect(messages).toHaveLength(1)
  })

  test('answers each question by itself when some cannot be answered', async () => {
    open()
    write({
      tokens: [{ handle: 1, token: served.token({}) }],
      questions: [
        { id: 1, handle: 2, permissions: CHECKS },
        { id: 2, handle: 2, permissions: CHECKS, watched: true },
        { id: 3, handle: 1, permissions: [{ relation: 'viewer', resource: 'x' }] },
        { id: 4, handle: 1, permissions: CHECKS },
      ],
    })
    const found = await answers(4)
    expect([1, 2, 3].map((id) => found.get(id))).toMatchObject(
      ['handle_unknown', 'handle_unknown', 'request_invalid'].map(error),
    )
    expect(allowed(found.get(4))).toEqual([true, false])
  })

  test('lets a handle be defined again', async () => {
    open()
    write({
      tokens: [
        { handle: 1, token: 'unknown' },
        { handle: 1, token: served.token({}) },
      ],
      questions: [{ id: 1, handle: 1, permissions: CHECKS }],
    })
    expect(allowed((await answers(1)).get(1))).toEqual([true, false])
  })

  test('remembers 10,000 tokens and forgets the oldest first', async () => {
    open()
    const token = served.token({})
    write({
      tokens: Array.from({ length: 10_001 }, (_, handle) => ({ handle, token })),
      questions: [0, 1, 10_000].map((id) => ({ id, handle: id })),
    })
    const found = await answers(3)
    expect(found.get(0)).toMatchObject(error('handle_unknown'))
    expect([found.get(1)?.case, found.get(10_000)?.case]).toEqual(['decision', 'decision'])
  })

  test('answers everything that was asked before the caller ended its side', async () => {
    open()
    write({
      tokens: [{ handle: 1, token: served.token({}) }],
      questions: Array.from({ length: 3_000 }, (_, id) => ({ id, handle: 1 })),
    })
    stream.end()
    expect((await answers(3_000)).size).toBe(3_000)
    await new Promise((done) => stream.once('end', done))
  })
})

const DEPS: GrpcDeps = {
  recognize: async () => ({ active: false }),
  answer: () => Promise.reject(new Error()),
  watched: { ask: () => () => undefined, close: async () => undefined },
  authenticate: async () => ({ name: 'anybody', group: null }),
  tls: null,
  log: undefined as never,
}

describe('the gRPC server', () => {
  test.each(['0.0.0.0', '::', '10.1.2.3', 'pdp.example'])('refuses to listen on %s without TLS', async (host) => {
    const start = startGrpcServer(DEPS, { host, port: 0 })
    await expect(start).rejects.toThrow(/plain text is for loopback/)
  })

  test('says in one line that the port is taken', async () => {
    const port = Number(served.grpc.address.split(':')[1])
    await expect(startGrpcServer(DEPS, { host: '127.0.0.1', port })).rejects.toThrow(
      `The gRPC listener cannot listen on 127.0.0.1:${port}: another process uses this port`,
    )
  })

  test('answers health checks', async () => {
    const Health = makeClientConstructor(healthService, 'Health')
    const health = new Health(served.grpc.address, credentials.createInsecure())
    const check = (service: string) =>
      new Promise((resolve) =>
        health.check?.({ service }, (err: ServiceError | null, value: { status: string }) =>
          resolve(err?.code ?? value.status),
        ),
      )
    expect(await check('')).toBe('SERVING')
    expect(await check('portcullis.v1.DecisionService')).toBe('SERVING')
    expect(await check('other')).toBe(status.NOT_FOUND)
    health.close()
  })

  test('ends open streams when it closes, and answers what was asked', async () => {
    const own = await serve()
    const { path, requestSerialize, responseDeserialize } = definition.decideStream
    const to = new Client(own.grpc.address, credentials.createInsecure())
    const stream = to.makeBidiStreamRequest<DecideStreamRequest, DecideStreamResponse>(
      path,
      requestSerialize,
      responseDeserialize,
    )
    const got: DecideStreamResponse[] = []
    stream.on('data', (message) => got.push(message))
    stream.write(create(DecideStreamRequestSchema, { questions: [{ id: 1, handle: 1 }] }))
    await new Promise((done) => stream.once('data', done))
    const ended = new Promise((done) => stream.once('end', done))
    const startedMs = Date.now()
    await own.close()
    await ended
    // Of the five seconds that it would wait for a stream that goes on.
    expect(Date.now() - startedMs).toBeLessThan(4_000)
    expect(got).toHaveLength(1)
    to.close()
  })
})
