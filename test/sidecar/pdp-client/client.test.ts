import { connect, createServer, type Socket } from 'node:net'
import { credentials } from '@grpc/grpc-js'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createPdpClient, type PdpClient } from '../../../sidecar/pdp-client/client.ts'
import type { PdpQuestion } from '../../../sidecar/pdp-client/question.ts'
import { PdpUnavailable } from '../../../sidecar/request/errors.ts'
import { type Script, type ScriptedPdp, startScriptedPdp, tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'

const token = (sub: string): string =>
  `x.${Buffer.from(JSON.stringify({ sub, org: 'acme', client_id: 'c1' })).toString('base64url')}.x`
const question = (over: Partial<PdpQuestion> = {}): PdpQuestion => ({
  token: token('alice'),
  digest: 'alice',
  subject: 'alice',
  organization: 'acme',
  permissions: [{ relation: 'viewer', resource: 'invoice:1' }],
  entitlements: [],
  context: '',
  requestId: '',
  ...over,
})
const ALLOW = tuples(['alice viewer invoice:1'], ['gate'])

const closers: (() => unknown)[] = []
let pdp: ScriptedPdp
let client: PdpClient
let opened = 0
beforeEach(async () => {
  pdp = await startScriptedPdp(ALLOW)
  client = open([pdp.address])
  await until(() => opened > 0)
})
afterEach(async () => {
  client.close()
  await pdp.stop()
  for (const close of closers.splice(0)) await close()
})

const TIMEOUT_MS = 2_000
/** Far beyond the deadline, on a machine that has more to do, and far below what waiting in line would take. */
const SOON_MS = TIMEOUT_MS + 8_000

function open(addresses: readonly string[], timeoutMs = TIMEOUT_MS): PdpClient {
  opened = 0
  return createPdpClient({
    addresses,
    credentials: credentials.createInsecure(),
    random: () => 0.5,
    clock: Date.now,
    timeoutMs,
    onConnectionChange(change) {
      if (change.open) opened += 1
    },
  })
}

test('asks what one turn asks in one message, and sends a token once', async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => client.ask(question())))
  expect(answers.every(({ permissions }) => permissions[0] === 'allowed')).toBe(true)
  expect([pdp.messages(), pdp.tokens()]).toEqual([1, 1])
  await client.ask(question())
  expect([pdp.messages(), pdp.tokens()]).toEqual([2, 1])
})

test('names more tokens than there are handles by taking the oldest again', async () => {
  for (let at = 0; at < 2_100; at += 300) {
    const asks = Array.from({ length: 300 }, (_, i) =>
      client.ask(question({ token: token(`u${at + i}`), digest: `u${at + i}`, subject: `u${at + i}` })),
    )
    await Promise.all(asks)
  }
  await expect(client.ask(question({ token: token('u0'), digest: 'u0', subject: 'u0' }))).resolves.toBeDefined()
  expect(pdp.tokens()).toBe(2_101)
})

test('sends a token again when the PDP has forgotten its handle', async () => {
  let forgot = false
  pdp.script = (asked) => {
    if (forgot) return ALLOW(asked)
    forgot = true
    return 'handle_unknown'
  }
  expect((await client.ask(question())).permissions).toEqual(['allowed'])
  expect(pdp.tokens()).toBe(2)
})

describe('an answer is not believed', () => {
  const spoiled =
    (members: object): Script =>
    (asked) => {
      const decision = ALLOW(asked)
      return decision === null || typeof decision === 'string' ? decision : { ...decision, ...members }
    }
  const result = {
    relation: 'viewer',
    resource: 'invoice:1',
    allowed: true,
    error: '',
    reasonCode: 'tuple',
    missingContext: [],
  }
  const spoilers: { readonly [why: string]: Script } = {
    'about another subject': spoiled({ subject: { $typeName: 'portcullis.v1.Subject', type: 'user', id: 'root' } }),
    'about no subject': spoiled({ subject: undefined }),
    'about a subject of no known type': spoiled({
      subject: { $typeName: 'portcullis.v1.Subject', type: 'admin', id: 'alice' },
    }),
    'about another organization': spoiled({ organization: 'evil' }),
    'with too few results': spoiled({ permissions: [] }),
    'with too many results': spoiled({
      permissions: [result, result].map((one) => ({ $typeName: 'portcullis.v1.PermissionResult', ...one })),
    }),
    'about another relation': spoiled({
      permissions: [{ $typeName: 'portcullis.v1.PermissionResult', ...result, relation: 'any' }],
    }),
    'about another resource': spoiled({
      permissions: [{ $typeName: 'portcullis.v1.PermissionResult', ...result, resource: 'invoice:2' }],
    }),
    'without a gate that was asked for': spoiled({ entitlements: {} }),
    'that is an error': () => 'store_unavailable',
    'that forgets the handle for ever': () => 'handle_unknown',
    'that never comes': () => null,
  }
  test.each(Object.entries(spoilers))('%s', async (_why, script) => {
    pdp.script = script
    const startedMs = performance.now()
    await expect(client.ask(question({ entitlements: ['gate'] }))).rejects.toBeInstanceOf(PdpUnavailable)
    expect(performance.now() - startedMs).toBeLessThan(SOON_MS)
  })

  test('when an item could not be decided, whatever else it says', async () => {
    pdp.script = spoiled({
      permissions: [{ $typeName: 'portcullis.v1.PermissionResult', ...result, error: 'evaluation_limit' }],
    })
    expect((await client.ask(question())).permissions).toEqual(['evaluation_limit'])
  })

  test('when a gate is anything but enabled: true', async () => {
    for (const value of [{ enabled: 'true' }, { enabled: 1 }, {}, undefined]) {
      pdp.script = spoiled({
        entitlements: { gate: { $typeName: 'portcullis.v1.EntitlementResult', value, version: 1n } },
      })
      expect((await client.ask(question({ entitlements: ['gate'] }))).entitlements.get('gate')).toBe(false)
    }
  })
})

describe('without an answer', () => {
  test('a question waits for its deadline and no longer, and many do not wait for each other', async () => {
    pdp.script = () => null
    const startedMs = performance.now()
    const asks = await Promise.allSettled(Array.from({ length: 500 }, () => client.ask(question())))
    expect(asks.every(({ status }) => status === 'rejected')).toBe(true)
    expect(performance.now() - startedMs).toBeLessThan(SOON_MS)
  })

  test('a question is asked once more when the connection broke', async () => {
    let asks = 0
    pdp.script = (asked) => {
      asks += 1
      if (asks > 1) return ALLOW(asked)
      setImmediate(() => pdp.cut())
      return null
    }
    expect((await client.ask(question())).permissions).toEqual(['allowed'])
    expect(asks).toBe(2)
  })

  test('the PDP is asked again as soon as it is back', async () => {
    await pdp.stop()
    await expect(client.ask(question())).rejects.toBeInstanceOf(PdpUnavailable)
    await pdp.start()
    await until(async () => (await client.ask(question()).catch(() => null)) !== null)
  })

  test('from one address the other is asked within the deadline', async () => {
    const second = await startScriptedPdp(ALLOW)
    closers.push(() => second.stop())
    pdp.script = () => null
    const both = open([pdp.address, second.address])
    closers.push(() => both.close())
    await until(() => opened === 2)
    for (let at = 0; at < 4; at += 1) expect((await both.ask(question())).permissions).toEqual(['allowed'])
  })

  test('from a dead address the other is asked', async () => {
    const both = open(['127.0.0.1:1', pdp.address])
    closers.push(() => both.close())
    await until(() => opened === 1)
    for (let at = 0; at < 4; at += 1) expect((await both.ask(question())).permissions).toEqual(['allowed'])
  })

  test('from what is no gRPC server nothing is allowed', async () => {
    const sockets = new Set<Socket>()
    const server = createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"allowed":true}')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : 0
    const rubbish = open([`127.0.0.1:${port}`])
    closers.push(() => {
      rubbish.close()
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    await expect(rubbish.ask(question())).rejects.toBeInstanceOf(PdpUnavailable)
  })

  test('over a connection that nobody answers on nothing is allowed', async () => {
    const server = createServer((socket) => void socket.on('error', () => undefined))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0
    const silent = open([`127.0.0.1:${port}`], 200)
    closers.push(() => {
      silent.close()
      server.close()
    })
    await expect(silent.ask(question())).rejects.toBeInstanceOf(PdpUnavailable)
    connect(port, '127.0.0.1').destroy()
  })
})

test('over the bound of open questions nothing is asked', async () => {
  pdp.script = () => null
  const bounded = createPdpClient({
    addresses: [pdp.address],
    credentials: credentials.createInsecure(),
    random: () => 0.5,
    clock: Date.now,
    timeoutMs: 100,
    questionsMax: 2,
  })
  closers.push(() => bounded.close())
  const asks = [1, 2, 3].map(() => bounded.ask(question()).catch((err: Error) => err.message))
  expect((await Promise.all(asks)).at(-1)).toBe('this sidecar has too many open questions to the PDP')
})
