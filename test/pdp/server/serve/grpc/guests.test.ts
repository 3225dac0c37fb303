/** Questions of a stream about guests: only what a model lets `user:*` hold allows them. */
import { EventEmitter } from 'node:events'
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { type ClientDuplexStream, credentials, makeClientConstructor } from '@grpc/grpc-js'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { StreamAnswer as Sent } from '../../../../../pdp/server/serve/grpc/answer-codec.ts'
import type { StreamCall } from '../../../../../pdp/server/serve/grpc/answer-sender.ts'
import type { StreamQuestion } from '../../../../../pdp/server/serve/grpc/questions.ts'
import { serveStream } from '../../../../../pdp/server/serve/grpc/stream.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { serviceDefinition } from '../../../../../pdp/shared/process/grpc/service.ts'
import {
  type DecideStreamRequest,
  DecideStreamRequestSchema,
  type DecideStreamResponse,
  DecisionService,
  type StreamAnswer,
} from '../../../../../proto/gen/portcullis/v1/decision_pb.ts'
import { given, grant, put } from '../../../../support/tuples.ts'
import { CONTEXT, type Served, seedAcme, serve } from '../harness.ts'
import { answerOf, counting } from './in-flight.ts'

const MODEL = `model
  schema 1.1
type user
type page
  relations
    define banned: [user]
    define owner: [user]
    define viewer: [user, user:*, user:* with on_weekdays] or owner
    define reader: viewer but not banned
condition on_weekdays(day: string) {
  day == "monday"
}`
const TUPLES = [
  'page:open#viewer@user:*',
  'page:open#banned@user:eve',
  'page:own#owner@user:alice',
  'page:org#viewer@organization:acme#member',
  'free:1#viewer@user:alice',
  'group:g#member@user:alice',
]
let served: Served
let client: InstanceType<ReturnType<typeof makeClientConstructor>>
let stream: ClientDuplexStream<DecideStreamRequest, DecideStreamResponse>
let messages: DecideStreamResponse[]
const definition = serviceDefinition(DecisionService)
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  const permissions = { 'docs:read': 'Read' }
  const manifest = {
    app: 'docs',
    audiences: [],
    permissions,
    roles: { all: { name: 'All', permissions: ['docs:read'] } },
  }
  await given(served.store, ENVIRONMENT, { kind: 'manifest', manifest: { ...manifest, model: MODEL } })
  await given(served.store, 'acme', ...TUPLES.map((text) => put(text)), grant('1', 'all', 'user:alice', 'docs'))
  client = new (makeClientConstructor(definition, 'DecisionService'))(served.grpc.address, credentials.createInsecure())
})
afterAll(async () => {
  client.close()
  await served.close()
})
beforeEach(() => {
  const { path, requestSerialize, responseDeserialize } = definition.decideStream
  messages = []
  stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
  stream.on('data', (message) => messages.push(message)).on('error', () => undefined)
})
afterEach(() => stream.cancel())

async function answersOf(request: MessageInitShape<typeof DecideStreamRequestSchema>, count = 1) {
  stream.write(create(DecideStreamRequestSchema, request))
  for (;;) {
    const found = messages.flatMap((message) => message.answers)
    if (found.length >= count) return found.map(({ outcome }) => outcome)
    await new Promise((done) => stream.once('data', done))
  }
}
const asked = (relation: string, resource: string) => ({ relation, resource })
const any = (relation: string, type: string) => ({ ...asked(relation, type), any: true })
const allowed = (outcome: StreamAnswer['outcome'] | undefined) =>
  outcome?.case === 'decision' ? outcome.value.permissions.map((p) => p.allowed) : outcome?.value

describe('a guest', () => {
  test('holds what a model lets a tuple give to everybody, and is named as nobody', async () => {
    const permissions = [asked('viewer', 'page:open'), asked('reader', 'page:open')]
    const [outcome] = await answersOf({ questions: [{ id: 1, guest: 'acme', permissions }] })
    expect(allowed(outcome)).toEqual([true, true])
    expect(outcome).toMatchObject({
      value: { active: true, subject: { type: 'user', id: '*' }, organization: 'acme', acr: '', authTime: 0 },
    })
    expect(served.logged.at(-1)).toMatchObject({ subject: 'user:*', client_id: null, organization: 'acme' })
  })

  test.each([
    ['what one person holds', asked('viewer', 'page:own')],
    ['what members hold', asked('viewer', 'page:org')],
    ['what has no model', asked('viewer', 'free:1')],
    ['membership of a group', asked('member', 'group:g')],
    ['a tier of the organization', asked('member', 'organization:acme')],
    ['membership of the organization', asked('active_member', 'organization:acme')],
    ['a permission in the organization', asked('docs:read', 'organization:acme')],
    ['a permission of an app', asked('docs:read', 'app:docs')],
    ['any of what one person holds', any('owner', 'page')],
    ['any of what has no model', any('viewer', 'free')],
    ['a tier of any organization', any('member', 'organization')],
    ['a permission of any app', any('docs:read', 'app')],
  ])('does not hold %s', async (_, check) => {
    const [outcome] = await answersOf({ questions: [{ id: 1, guest: 'acme', permissions: [check] }] })
    expect(allowed(outcome)).toEqual([false])
  })

  test('holds any resource of a type where it holds one', async () => {
    const permissions = [any('viewer', 'page'), any('reader', 'page'), asked('viewer', 'page:open')]
    const [outcome] = await answersOf({ questions: [{ id: 1, guest: 'acme', permissions }] })
    expect(allowed(outcome)).toEqual([true, true, true])
    expect(served.logged.at(-1)).toMatchObject({ permissions: [{ resource: 'page' }, {}, { resource: 'page:open' }] })
  })

  test('holds nothing in an organization that does not exist', async () => {
    const permissions = [asked('viewer', 'page:open')]
    const [outcome] = await answersOf({ questions: [{ id: 1, guest: 'nowhere', permissions }] })
    expect(allowed(outcome)).toEqual([false])
  })

  test('is watched until nothing is open to everybody any more', async () => {
    await given(served.store, 'acme', put('page:soon#viewer@user:*'))
    const question = { id: 1, guest: 'acme', watched: true, permissions: [asked('viewer', 'page:soon')] }
    expect((await answersOf({ questions: [question] })).map(allowed)).toEqual([[true]])
    const tuple = { object: 'page:soon', relation: 'viewer', subject: 'user:*', expiresAtMs: null }
    await served.store.write('acme', [{ kind: 'tuple', op: 'delete', tuple }], { context: CONTEXT })
    expect((await answersOf({}, 2)).map(allowed)).toEqual([[true], [false]])
  })

  test.each<[string, Partial<Pick<StreamQuestion, 'handle' | 'guest'>> & { entitlements?: string[] }, string]>([
    ['with a token', { handle: 1 }, 'permission_denied'],
    ['for a capability', { entitlements: ['feature.invoicing'] }, 'permission_denied'],
    ['in an organization whose name cannot be', { guest: 'a b' }, 'request_invalid'],
  ])('is not asked about %s', async (_, more, code) => {
    const tokens = [{ handle: 1, token: served.token({}) }]
    const question = { id: 1, guest: 'acme', permissions: [asked('viewer', 'page:open')], ...more }
    expect((await answersOf({ tokens, questions: [question] })).map(allowed)).toEqual([code])
  })
})

test.each<[string | null, string, boolean]>([
  [null, 'acme', true],
  ['tenant acme', 'acme', true],
  ['tenant acme', 'acme~shop', true],
  ['tenant acme', 'umbrella', false],
  ['tenant acme', 'acm', false],
  ['strangers', 'acme', false],
])('a caller of the group %j asks about guests in %s: %j', async (group, guest, isAnswered) => {
  const sent: Sent[] = []
  const call = Object.assign(new EventEmitter(), {
    writable: true,
    write: (answers: Sent[]) => sent.push(...answers),
    pause: () => undefined,
    resume: () => undefined,
    end: () => undefined,
  }) as unknown as StreamCall & EventEmitter
  serveStream(call, {
    recognize: async () => ({ active: false }),
    answer: async () => answerOf(0),
    watched: { ask: () => () => undefined, close: async () => undefined },
    group,
    holding: counting().budgets.of({ name: 'caller', group }),
    problemCode: String,
  })
  const rest = { permissions: [], entitlements: [], context: '', watched: false, requestId: '', clientAddress: '' }
  call.emit('data', { tokens: [], cancel: [], questions: [{ id: 1, handle: 0, guest, route: '', ...rest }] })
  await new Promise((done) => setImmediate(() => setImmediate(done)))
  const code = sent.map(({ outcome }) => ('error' in outcome ? outcome.error : 'answer'))
  expect(code).toEqual([isAnswered ? 'answer' : 'permission_denied'])
})
