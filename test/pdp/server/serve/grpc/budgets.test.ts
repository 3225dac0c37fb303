/** What the streams of one caller may hold, of what there is for all. */
import { credentials, Metadata, makeClientConstructor } from '@grpc/grpc-js'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { createCallers, type GrpcCaller } from '../../../../../pdp/server/serve/authentication/grpc-callers.ts'
import { createBudgets } from '../../../../../pdp/server/serve/grpc/budgets.ts'
import { startGrpcServer } from '../../../../../pdp/server/serve/grpc/server.ts'
import { createHandles } from '../../../../../pdp/server/serve/grpc/token-handles.ts'
import { serviceDefinition } from '../../../../../pdp/shared/process/grpc/service.ts'
import { TokenError } from '../../../../../pdp/shared/token/errors.ts'
import { DecisionService } from '../../../../../proto/gen/portcullis/v1/decision_pb.ts'
import { ACTIVE } from '../active-token.ts'

const TOTALS = { streams: 8, watched: 8, tokenCharacters: 4_000, bytes: 8 }

const operators = (name: string) => ({ name, group: null })

describe('a caller', () => {
  test.each(['streams', 'watched', 'tokenCharacters', 'bytes'] as const)(
    'has a quarter of all %s and no more',
    (kind) => {
      const budgets = createBudgets(TOTALS)
      const quarter = TOTALS[kind] / 4
      const mine = budgets.of(operators('a'))
      expect(mine.take(kind, quarter)).toBe(true)
      expect(mine.take(kind, 1)).toBe(false)
      expect(budgets.of(operators('a')).take(kind, 1)).toBe(false)
      for (const other of ['b', 'c', 'd']) expect(budgets.of(operators(other)).take(kind, quarter)).toBe(true)
      expect(budgets.of(operators('e')).take(kind, 1)).toBe(false)
      mine.give(kind, 1)
      expect(budgets.of(operators('e')).take(kind, 1)).toBe(true)
    },
  )
})

describe('callers of one group', () => {
  test.each(['streams', 'watched', 'tokenCharacters', 'bytes'] as const)(
    'have half of all %s together, however many they are, and no more',
    (kind) => {
      const budgets = createBudgets(TOTALS)
      const quarter = TOTALS[kind] / 4
      const ofTenant = (name: string) => budgets.of({ name, group: 'tenant acme' })
      const [first, second, third] = [ofTenant('a'), ofTenant('b'), ofTenant('c')]
      expect([first.take(kind, quarter), first.take(kind, 1)]).toEqual([true, false])
      expect([second.take(kind, quarter), third.take(kind, 1)]).toEqual([true, false])
      // What was refused is not counted anywhere.
      first.give(kind, 1)
      expect([third.take(kind, 1), first.take(kind, 1)]).toEqual([true, false])
      const other = budgets.of({ name: 'd', group: 'tenant beta' })
      expect([other.take(kind, quarter), budgets.of(operators('e')).take(kind, quarter)]).toEqual([true, true])
      for (const holding of [first, third]) holding.give(kind, 1)
      second.give(kind, quarter)
      first.give(kind, quarter - 2)
      expect([ofTenant('f').take(kind, quarter), ofTenant('g').take(kind, quarter)]).toEqual([true, true])
    },
  )
})

describe('a caller over gRPC', () => {
  const callers = (state: Partial<typeof ACTIVE>) =>
    createCallers({
      introspect: async () => ({
        ...ACTIVE,
        subject: { type: 'service', id: 'sidecar' },
        clientId: 'sidecar',
        scopes: new Set(['decisions:ask']),
        audiences: ['https://id.example'],
        ...state,
      }),
      issuer: 'https://id.example',
      serviceAccounts: async (token) => {
        if (token !== 'account') throw new TokenError('token_invalid', 'not a token of the cluster')
        return 'shop/checkout'
      },
    })
  const call = (token: string) => ({
    metadata: Metadata.fromHttp2Headers({ authorization: `Bearer ${token}` }),
    getAuthContext: () => ({}),
  })

  test.each([
    ['a client of the environment', { organization: null }, 'token', { name: 'client sidecar', group: null }],
    ['a client of a tenant', { organization: 'acme' }, 'token', { name: 'client sidecar', group: 'tenant acme' }],
    // Else a tenant makes itself another share with each organization below its own.
    ['one of what it made', { organization: 'acme~eu~1' }, 'token', { name: 'client sidecar', group: 'tenant acme' }],
    ['a service account', {}, 'account', { name: 'service account shop/checkout', group: null }],
  ])('%s has the share that it should', async (_, state, token, expected) => {
    expect(await callers(state)(call(token))).toEqual(expected)
  })

  test('shares with all strangers until it is authenticated', async () => {
    const seen: GrpcCaller[] = []
    const budgets = createBudgets(TOTALS)
    const server = await startGrpcServer(
      {
        recognize: async () => ({ active: false }),
        answer: () => Promise.reject(new Error()),
        watched: { ask: () => () => undefined, close: async () => undefined },
        authenticate: async () => operators('nobody'),
        tls: null,
        log: pino({ level: 'silent' }),
        budgets: {
          of(caller) {
            seen.push(caller)
            return budgets.of(caller)
          },
        },
      },
      { host: '127.0.0.1', port: 0 },
    )
    const client = new (makeClientConstructor(serviceDefinition(DecisionService), 'DecisionService'))(
      server.address,
      credentials.createInsecure(),
    )
    const { path, requestSerialize, responseDeserialize } = serviceDefinition(DecisionService).decideStream
    const stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
    await expect.poll(() => seen.length).toBe(2)
    expect(seen).toEqual([
      { name: 'address 127.0.0.1', group: 'strangers' },
      { name: 'this machine', group: null },
    ])
    stream.on('error', () => undefined).cancel()
    client.close()
    await server.close()
  })
})

describe('handles', () => {
  const token = (letter: string): string => letter.repeat(400)

  test('make room for a newer token by the oldest of the same stream', () => {
    const handles = createHandles(createBudgets(TOTALS).of(operators('a')))
    for (const [i, letter] of ['a', 'b', 'c'].entries()) handles.define(i, token(letter))
    expect([0, 1, 2].map((handle) => handles.find(handle)?.[0])).toEqual([undefined, 'b', 'c'])
  })

  test('of all streams of a caller hold no more than the caller may, whatever is defined again', () => {
    const budgets = createBudgets(TOTALS)
    const streams = Array.from({ length: 12 }, () => createHandles(budgets.of(operators('a'))))
    for (let round = 0; round < 5; round++) {
      for (const [i, handles] of streams.entries()) {
        for (let handle = 0; handle < 20; handle++) handles.define(handle, token(String.fromCharCode(97 + i)))
      }
    }
    let held = 0
    for (const handles of streams) for (let i = 0; i < 20; i++) held += handles.find(i)?.length ?? 0
    expect(held).toBeLessThanOrEqual(1_000)
    expect(held).toBeGreaterThan(0)
    expect(budgets.of(operators('b')).take('tokenCharacters', 1_000)).toBe(true)
  })

  test('give everything back at the end of their stream', () => {
    const budgets = createBudgets(TOTALS)
    const handles = createHandles(budgets.of(operators('a')))
    handles.define(1, token('a'))
    handles.define(1, token('b'))
    handles.clear()
    handles.clear()
    expect(handles.find(1)).toBeUndefined()
    expect(budgets.of(operators('a')).take('tokenCharacters', 1_000)).toBe(true)
  })
})
