/** The context of a question over HTTP and gRPC: who may set it, and what comes of it. */
import { type ServiceError, status } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { putIf } from '../../../../support/tuples.ts'
import { type DecisionClient, decisionClient } from '../decision-client.ts'
import { CONTEXT, type Json, type Served, seedAcme, serve } from '../harness.ts'

const MODEL = `model
  schema 1.1
type sheet
  relations
    define viewer: [user with low]
condition low(level: int) {
  level < 5
}
`
let served: Served
let client: DecisionClient
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  const manifest = { app: 'sheets', audiences: [], permissions: {}, roles: {}, model: MODEL }
  await served.store.write(ENVIRONMENT, [{ kind: 'manifest', manifest }], { context: CONTEXT })
  await served.store.write('acme', [putIf('sheet:1#viewer@user:alice', 'low')], { context: CONTEXT })
  client = decisionClient(served.grpc.address)
})
afterAll(async () => {
  client.close()
  await served.close()
})

const overGrpc: DecisionClient['decide'] = (request) => client.decide(request)
const own = () => served.token({ subject: { type: 'user', id: 'alice' } })
const reader = () =>
  served.token({
    subject: { type: 'service', id: 'backend' },
    clientId: 'backend',
    scopes: new Set(['decisions:read']),
  })
const permissions = [{ relation: 'viewer', resource: 'sheet:1' }]
const subject = { type: 'user', id: 'alice' }
const ask = (token: string, more: object) =>
  served.send('POST', '/oauth/decisions', { token, body: { permissions, ...more } })

describe('the context of a question', () => {
  test('is not for the bearer of a token to set, who would state his own clearance', async () => {
    const { status: code, body } = await ask(own(), { context: { level: 1 } })
    expect([code, body.code]).toEqual([403, 'permission_denied'])
    expect((await ask(own(), { context: {} })).status).toBe(403)
  })

  test.each<[object, object]>([
    [{ context: { level: 1 } }, { allowed: true }],
    [{ context: { level: 9 } }, { allowed: false }],
    [{}, { allowed: false, error: 'condition_failed', missing_context: ['level'] }],
    [{ context: { level: 'x' } }, { allowed: false, error: 'condition_failed', missing_context: [] }],
  ])('%j of a reader gives %j over HTTP', async (more, expected) => {
    const { status: code, body } = await ask(reader(), { subject, ...more })
    expect([code, body.permissions]).toEqual([200, [{ ...permissions[0], ...expected }]])
  })

  test.each<Json[]>([[[]], ['x'], [1], [{ x: 'x'.repeat(33_000) }]])('cannot be %j over HTTP', async (context) => {
    expect((await ask(reader(), { subject, context })).status).toBe(400)
  })

  test.each([
    ['{"level": 1}', true, ''],
    ['{"level": 9}', false, ''],
    ['', false, 'condition_failed'],
  ])('%s of a caller over gRPC is taken for any token: allowed %s, error %s', async (context, allowed, error) => {
    const { permissions: found } = await overGrpc({ token: own(), permissions, context })
    expect(found).toMatchObject([{ allowed, error, missingContext: error === '' ? [] : ['level'] }])
  })

  test.each(['[]', '{', '"x"', '{"level": 1, "level": 9}'])('cannot be %s over gRPC', async (context) => {
    await expect(overGrpc({ token: own(), permissions, context })).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
    } satisfies Partial<ServiceError>)
  })

  test('decides the questions that it can, and names what each of the others lacks', async () => {
    const both = [...permissions, { relation: 'viewer', resource: 'sheet:2' }]
    const answer = await served.send('POST', '/oauth/decisions', {
      token: await reader(),
      body: { permissions: both, subject },
    })
    expect(answer.body.permissions).toEqual([
      { ...both[0], allowed: false, error: 'condition_failed', missing_context: ['level'] },
      { ...both[1], allowed: false },
    ])
    const { permissions: found } = await overGrpc({ token: own(), permissions: both })
    expect(found.map(({ error, missingContext }) => [error, missingContext])).toEqual([
      ['condition_failed', ['level']],
      ['', []],
    ])
  })

  test.each<[number | undefined, number | undefined, object]>([
    [1, undefined, { allowed: true }],
    [9, 1, { allowed: false }],
    [undefined, 1, { allowed: true }],
    [undefined, undefined, { allowed: false, error: 'condition_failed' }],
  ])('%s in a contextual tuple wins over %s in the question, over HTTP and gRPC', async (stored, asked, expected) => {
    const condition = { name: 'low', ...(stored !== undefined && { context: { level: stored } }) }
    const tuple = { object: 'sheet:9', relation: 'viewer', subject: 'user:alice' }
    const context = asked === undefined ? {} : { context: { level: asked } }
    const about = [{ relation: 'viewer', resource: 'sheet:9' }]
    const body = { permissions: about, subject, contextual_tuples: [{ ...tuple, condition }], ...context }
    const overHttp = await served.send('POST', '/oauth/decisions', { token: await reader(), body })
    expect(overHttp.body.permissions).toMatchObject([expected])
    const answer = await overGrpc({
      token: reader(),
      permissions: about,
      subject,
      context: asked === undefined ? '' : JSON.stringify({ level: asked }),
      contextualTuples: [
        { ...tuple, condition: 'low', conditionContext: stored === undefined ? '' : JSON.stringify({ level: stored }) },
      ],
    })
    expect(answer.permissions).toMatchObject([expected])
  })

  test.each<[object]>([
    [{ condition: 'low' }],
    [{ condition: { context: {} } }],
    [{ condition: { name: 'low', context: [] } }],
    [{ condition: { name: 'low', more: 1 } }],
    [{ condition: { name: 'high' } }],
    [{ condition: { name: 'low', context: { level: 'x' } } }],
  ])('cannot come with a contextual tuple with %j over HTTP', async (more) => {
    const contextual_tuples = [{ object: 'sheet:9', relation: 'viewer', subject: 'user:alice', ...more }]
    expect((await ask(await reader(), { subject, contextual_tuples })).status).toBe(400)
  })

  test.each([
    { condition: '', conditionContext: '{}' },
    { condition: 'low', conditionContext: '[]' },
    { condition: 'low', conditionContext: '{"level": 1, "level": 2}' },
    { condition: 'high', conditionContext: '' },
  ])('cannot come with a contextual tuple with %j over gRPC', async (more) => {
    const contextualTuples = [{ object: 'sheet:9', relation: 'viewer', subject: 'user:alice', ...more }]
    await expect(overGrpc({ token: reader(), permissions, subject, contextualTuples })).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
    } satisfies Partial<ServiceError>)
  })

  test('explains a condition that is false in the same words over HTTP and gRPC', async () => {
    const reason = {
      code: 'none',
      message: 'nothing grants it',
      details: ['sheet:1#viewer@user:alice does not count: condition "low" is false for level = 9'],
    }
    const overHttp = await ask(await reader(), { subject, context: { level: 9 }, explain: true })
    expect(overHttp.body.permissions).toMatchObject([{ allowed: false, reason }])
    const answer = await overGrpc({ token: reader(), permissions, subject, context: '{"level": 9}', explain: true })
    expect(answer.permissions).toMatchObject([{ allowed: false, reason }])
  })

  test('counts in lists, which name what they cannot tell and what is missing', async () => {
    const token = await served.manager({ organization: 'acme', scopes: ['decisions:read'] })
    const list = (more: object) =>
      served.send('POST', '/v1/organizations/acme/list-resources', {
        token,
        body: { subject, relation: 'viewer', type: 'sheet', ...more },
      })
    expect((await list({ context: { level: 1 } })).body).toMatchObject({ items: ['sheet:1'], complete: true })
    expect((await list({ context: { level: 9 } })).body).toMatchObject({ items: [], complete: true, undecided: [] })
    const undecided = [{ item: 'sheet:1', missing_context: ['level'] }]
    expect((await list({})).body).toMatchObject({ items: [], complete: false, undecided })
  })
})
