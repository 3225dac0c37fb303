import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, createAnswerQuestion } from '../../../../../pdp/server/serve/decisions/answer.ts'
import { logDecisions } from '../../../../../pdp/server/serve/decisions/decision-log.ts'
import { observeAnswers } from '../../../../../pdp/server/serve/decisions/observed-answers.ts'
import { createLog } from '../../../../../pdp/shared/process/log.ts'
import { type Served, seedAcme, serve } from '../harness.ts'
import { QUESTION, readerToken } from './reader.ts'

let served: Served
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
})
afterAll(() => served.close())

const decide = (options: Parameters<Served['send']>[2]) => served.send('POST', '/oauth/decisions', options)
const reader = (state: Parameters<Served['token']>[0] = {}) => readerToken(served, state)

describe('the decision log', () => {
  const schema: object = JSON.parse(readFileSync('pdp/server/serve/decisions/decision-log.schema.json', 'utf8'))
  const validate = new Ajv({ strict: true, allowUnionTypes: true, formats: { 'date-time': true } }).compile(schema)

  test('fits its schema, whoever asked and however it was answered', async () => {
    const before = served.logged.length
    await decide({ token: served.token({}), body: QUESTION })
    await decide({ token: reader(), body: { ...QUESTION, subject: { type: 'user', id: 'bob' }, explain: true } })
    await decide({ token: served.token({ organization: null }), body: QUESTION })
    const lines = served.logged.slice(before).filter(({ event }) => event === 'decision')
    expect(lines).toHaveLength(3)
    for (const { pid, hostname, level, time, ...line } of lines)
      expect(validate(line), JSON.stringify([line, validate.errors])).toBe(true)
    expect(lines.every(({ request_id }) => typeof request_id === 'string')).toBe(true)
  })

  test.each([
    ['nobody between', {}, '127.0.0.1'],
    ['a trusted proxy between', { 'x-forwarded-for': '198.51.100.1, 2001:db8:0::7' }, '2001:db8::7'],
    ['a trusted proxy that says what is no address', { 'x-forwarded-for': 'alice' }, '127.0.0.1'],
  ] as const)('names the client over HTTP, with %s', async (_, headers, address) => {
    const before = served.logged.length
    await decide({ token: served.token({}), body: QUESTION, headers })
    await served.send('POST', '/access/v1/evaluation', {
      token: reader(),
      headers,
      body: {
        subject: { type: 'user', id: 'alice' },
        action: { name: 'viewer' },
        resource: { type: 'invoice', id: '1' },
      },
    })
    const lines = served.logged.slice(before).filter(({ event }) => event === 'decision')
    expect(lines.map((line) => line.client_address)).toEqual([address, address])
  })

  test.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['', null],
    ['alice', null],
    ['203.0.113.7, 10.0.0.1', null],
    ['1'.repeat(100_000), null],
    [undefined, null],
  ])('takes the word of a caller of gRPC for %j as %j', async (clientAddress, address) => {
    const lines: string[] = []
    const log = createLog({ service: 'test', level: 'info', destination: { write: (line) => void lines.push(line) } })
    const pdp = { decide: async () => ({ ...DECIDED, permissions: [] }) } as never
    const directory = { exists: async () => true }
    const ask = createAnswerQuestion({ pdp, directory, randomId: () => 'one' })
    const answer = observeAnswers(ask, [logDecisions(log)], CLOCKS)
    const question = { permissions: [], entitlements: [], subject: null, explain: false }
    await answer(TOKEN as never, { ...question, ...(clientAddress !== undefined && { clientAddress }) })
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ client_address: address })
  })

  test('is the only line of an answered question; one that is refused has the line of a request', async () => {
    const before = served.logged.length
    const good = await decide({ token: served.token({}), body: QUESTION })
    const bad = await decide({ token: served.token({}), body: { permissions: 'all' } })
    const lines = served.logged.slice(before).map(({ event, request_id: id }) => [event, id])
    expect(lines).toContainEqual(['decision', good.headers.get('x-request-id')])
    expect(lines).toContainEqual(['request', bad.headers.get('x-request-id')])
    expect(lines).not.toContainEqual(['request', good.headers.get('x-request-id')])
  })

  test('has every denial when allowed ones are sampled', async () => {
    const lines: string[] = []
    const log = createLog({ service: 'test', level: 'info', destination: { write: (line) => void lines.push(line) } })
    const result = (allowed: boolean) => [
      { ...CHECK, allowed, reasonCode: allowed ? ('tuple' as const) : ('none' as const) },
    ]
    const answerWith = (allowed: boolean): Promise<Answer> =>
      observeAnswers(
        createAnswerQuestion({
          pdp: { decide: async () => ({ ...DECIDED, permissions: result(allowed) }) } as never,
          directory: { exists: async () => true },
          randomId: () => 'one',
        }),
        [logDecisions(log, () => false)],
        CLOCKS,
      )(TOKEN as never, { permissions: [CHECK], entitlements: [], subject: null, explain: false })
    await answerWith(true)
    expect(lines).toEqual([])
    await answerWith(false)
    expect(lines).toHaveLength(1)
  })
})

const CLOCKS = { clock: () => 0, monotonic: () => 0 }
const CHECK = { relation: 'viewer', resource: 'invoice:1' }
const TOKEN = {
  active: true,
  subject: { type: 'user', id: 'alice' },
  organization: 'acme',
  clientId: 'app',
  app: null,
  scopes: new Set<string>(),
  audiences: [],
  actors: [],
}
const DECIDED = { tokenRevoked: false, entitlements: new Map(), revision: null, validUntilMs: null }
