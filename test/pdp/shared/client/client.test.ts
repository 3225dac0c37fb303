/** `portcullis/client` before PDPs whose answers a test scripts, and before the real one. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { create } from '@bufbuild/protobuf'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { loadTls } from '../../../../pdp/server/serve/grpc/tls.ts'
import {
  connectPdp,
  DecisionError,
  type RemotePdp,
  type RemotePdpOptions,
} from '../../../../pdp/shared/client/client.ts'
import { DecideResponseSchema } from '../../../../proto/gen/portcullis/v1/decision_pb.ts'
import { type Script, type ScriptedPdp, startScriptedPdp, tuples } from '../../../support/peers/scripted-pdp.ts'
import { until } from '../../../support/until.ts'
import { type Served, seedAcme, serve } from '../../server/serve/harness.ts'

const TOKEN = `x.${Buffer.from(JSON.stringify({ sub: 'alice', org: 'acme', client_id: 'c1' })).toString('base64url')}.x`
const VIEWER = { relation: 'viewer', resource: 'invoice:1' }
const ALLOW = tuples(['alice viewer invoice:1'], ['gate'])
const PATIENT_MS = 20_000

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function connect(options: RemotePdpOptions): RemotePdp {
  const client = connectPdp({ deadlineMs: PATIENT_MS, ...options })
  closers.push(() => client.close())
  return client
}
async function start(script: Script, options: Partial<RemotePdpOptions> = {}) {
  const pdp: ScriptedPdp = await startScriptedPdp(script)
  closers.push(() => pdp.stop())
  const client = connect({ address: pdp.address, tls: null, ...options })
  await until(() => client.isConnected())
  return { pdp, client }
}
const failure = (promise: Promise<unknown>): Promise<unknown> => promise.catch((err: unknown) => err)

describe('a client', () => {
  test('allows what the PDP allows, and nothing else', async () => {
    const { client } = await start(ALLOW)
    expect(await client.can(TOKEN, 'viewer', 'invoice:1')).toBe(true)
    expect(await client.can(TOKEN, 'editor', 'invoice:1')).toBe(false)
    const decision = await client.decide(TOKEN, { permissions: [VIEWER], entitlements: ['gate', 'none'] })
    expect(decision).toMatchObject({ active: true, subject: { type: 'user', id: 'alice' }, organization: 'acme' })
    expect(decision.permissions).toEqual([{ ...VIEWER, allowed: true, error: null }])
    expect(decision.entitlements.get('gate')).toMatchObject({ value: { enabled: true }, version: 1 })
    expect(decision.entitlements.get('gate')?.boolean()).toBe(true)
    expect(decision.entitlements.get('none')).toBeNull()
  })

  test('asks what one turn asks in one message, and sends a token once', async () => {
    const { pdp, client } = await start(ALLOW)
    const answers = await Promise.all(Array.from({ length: 50 }, () => client.can(TOKEN, 'viewer', 'invoice:1')))
    expect(answers.every(Boolean)).toBe(true)
    expect([pdp.messages(), pdp.tokens()]).toEqual([1, 1])
  })

  test('says the context and the id of the request', async () => {
    const { pdp, client } = await start(ALLOW)
    await client.decide(TOKEN, { permissions: [VIEWER], context: { ip: '192.0.2.1' }, requestId: 'request-1' })
    expect(pdp.asked[0]?.context).toBe('{"ip":"192.0.2.1"}')
  })

  test('denies everything to a token that is not active', async () => {
    const { client } = await start(() => create(DecideResponseSchema, { active: false }))
    const decision = await client.decide(TOKEN, { permissions: [VIEWER], entitlements: ['gate'] })
    expect(decision).toMatchObject({ active: false, subject: null, permissions: [{ allowed: false }] })
    expect(decision.entitlements.get('gate')).toBeNull()
    expect(await client.can(TOKEN, 'viewer', 'invoice:1')).toBe(false)
  })

  const answered = (permissions: readonly object[]): Script => {
    return () => create(DecideResponseSchema, { active: true, permissions: [...permissions] })
  }
  test.each<[string, Script, string]>([
    ['an error', () => 'store_unavailable', 'pdp_unavailable'],
    ['too much to do', () => 'overloaded', 'overloaded'],
    ['a question that it refuses', () => 'request_invalid', 'request_invalid'],
    ['no result', answered([]), 'pdp_unavailable'],
    ['one result too many', answered([{ ...VIEWER, allowed: true }, VIEWER]), 'pdp_unavailable'],
    ['another resource', answered([{ ...VIEWER, resource: 'invoice:2', allowed: true }]), 'pdp_unavailable'],
    ['another relation', answered([{ ...VIEWER, relation: 'owner', allowed: true }]), 'pdp_unavailable'],
    ['an item undecided', answered([{ ...VIEWER, allowed: true, error: 'condition_failed' }]), 'condition_failed'],
  ])('fails when the PDP answers %s', async (_, script, code) => {
    const { client } = await start(script)
    const error = await failure(client.can(TOKEN, 'viewer', 'invoice:1'))
    expect(error).toBeInstanceOf(DecisionError)
    expect(error).toMatchObject({ code })
  })

  test('fails at the deadline of the question when nobody answers', async () => {
    const { client } = await start(() => null)
    const error = await failure(client.decide(TOKEN, { permissions: [VIEWER], deadlineMs: 50 }))
    expect(error).toMatchObject({ name: 'DecisionError', message: expect.stringMatching(/in time/) })
  })

  test('fails while the PDP is gone, and is answered as soon as it is back', async () => {
    const { pdp, client } = await start(ALLOW)
    await pdp.stop()
    await until(() => !client.isConnected())
    const error = await failure(client.decide(TOKEN, { permissions: [VIEWER], deadlineMs: 200 }))
    expect(error).toMatchObject({
      code: 'pdp_unavailable',
      message: expect.stringMatching(/the last connection ended: /),
    })
    await pdp.start()
    await until(() => client.isConnected())
    expect(await client.can(TOKEN, 'viewer', 'invoice:1')).toBe(true)
  })

  test('asks another PDP when one is killed', async () => {
    const [first, second] = [await startScriptedPdp(ALLOW), await startScriptedPdp(ALLOW)]
    closers.push(() => second.stop())
    const client = connect({ address: [first.address, second.address], tls: null })
    await until(async () => {
      await client.can(TOKEN, 'viewer', 'invoice:1')
      return first.asked.length > 0 && second.asked.length > 0
    })
    await first.stop()
    expect(await client.can(TOKEN, 'viewer', 'invoice:1')).toBe(true)
  })

  test('refuses more questions than it was told to keep', async () => {
    const { client } = await start(() => null, { openMax: 1 })
    const first = failure(client.decide(TOKEN, { permissions: [VIEWER], deadlineMs: 300 }))
    expect(await failure(client.can(TOKEN, 'viewer', 'invoice:1'))).toMatchObject({ code: 'overloaded' })
    expect(await first).toMatchObject({ code: expect.stringMatching(/^(pdp_unavailable|overloaded)$/) })
  })

  test('asks nobody once it is closed', async () => {
    const { pdp, client } = await start(ALLOW)
    client.close()
    expect(await failure(client.can(TOKEN, 'viewer', 'invoice:1'))).toMatchObject({ code: 'pdp_unavailable' })
    expect([client.isConnected(), pdp.asked]).toEqual([false, []])
  })

  test.each<[string, Partial<RemotePdpOptions>]>([
    ['no address', { address: [] }],
    ['an address without a port', { address: 'localhost' }],
    ['an address that is a URL path', { address: 'http://localhost/pdp' }],
    ['a deadline of nothing', { deadlineMs: 0 }],
    ['a deadline that is no number', { deadlineMs: Number.NaN }],
    ['a deadline beyond what timers can wait', { deadlineMs: 2 ** 31 }],
  ])('is not made with %s', (_, options) => {
    expect(() => connect({ address: '127.0.0.1:1', tls: null, ...options })).toThrow(TypeError)
  })

  test.each(['', undefined, null, 5])('takes %j for no token', async (token) => {
    const { pdp, client } = await start(ALLOW)
    expect(await failure(client.can(token as string, 'viewer', 'invoice:1'))).toBeInstanceOf(TypeError)
    expect(pdp.asked).toEqual([])
  })
})

describe('before the real PDP with TLS', () => {
  const PEMS = join(import.meta.dirname, '../../../support/certificates')
  const silent = pino({ level: 'silent' })
  let served: Served
  let options: RemotePdpOptions
  beforeAll(async () => {
    const files = { certFile: join(PEMS, 'server-1.pem'), keyFile: join(PEMS, 'server-1.key'), clientCaFile: null }
    served = await serve({ grpcHost: '::', tls: await loadTls(files, { log: silent, reloadIntervalMs: 60_000 }) })
    await seedAcme(served)
    const ca = await readFile(join(PEMS, 'ca.pem'), 'utf8')
    options = { address: served.grpc.address.replace('[::]', 'localhost'), tls: { ca } }
  })
  afterAll(() => served.close())

  test('a caller with its token is answered', async () => {
    const own = await served.manager({ client: 'remote-caller', scopes: ['decisions:ask'] })
    const client = connect({ ...options, token: () => own })
    const token = served.token({})
    expect(await client.can(token, 'viewer', 'invoice:1')).toBe(true)
    expect(await client.can(token, 'viewer', 'invoice:of-nobody')).toBe(false)
  })

  test('a caller without the scope gets no answer, and is told why', async () => {
    const own = await served.manager({ client: 'other-caller', scopes: ['decisions:read'] })
    const client = connect({ ...options, token: () => own })
    expect(await failure(client.can(served.token({}), 'viewer', 'invoice:1'))).toMatchObject({
      code: 'pdp_unavailable',
      message: expect.stringMatching(/decisions:ask/),
    })
  })

  test('a PDP whose certificate nobody trusts is asked nothing', async () => {
    const client = connect({ ...options, tls: {} })
    const error = await failure(client.decide(served.token({}), { permissions: [VIEWER], deadlineMs: 300 }))
    expect(error).toMatchObject({ name: 'DecisionError' })
  })
})
