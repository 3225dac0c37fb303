/** Reasons, and questions about others: the same over HTTP and gRPC, for services alone, in their organization alone. */
import { type ServiceError, status } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { PermissionResult } from '../../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { grant, member, organization, put } from '../../../../support/tuples.ts'
import { type DecisionClient, decisionClient } from '../decision-client.ts'
import { CONTEXT, type Json, type Served, seedAcme, serve } from '../harness.ts'

const options = { context: CONTEXT }
let served: Served
let client: DecisionClient
/** A service of acme that may ask about others. */
let reader: string
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  const { store, directory } = served
  const roles = { approver: { name: 'A', permissions: ['invoices:approve'] } }
  const manifest = { app: 'billing', audiences: [], permissions: { 'invoices:approve': 'x' }, roles, model: null }
  await store.write(ENVIRONMENT, [organization('other'), { kind: 'manifest', manifest }], options)
  await directory.putUser({ id: 'carol', email: null, emailVerified: false, name: null }, CONTEXT)
  await store.write(
    'acme',
    [grant('g1', 'approver', 'user:bob', 'billing'), member('carol', 'member', 'suspended')],
    options,
  )
  await store.write('acme', [put('invoice:1#viewer@user:carol')], options)
  await store.write('other', [put('secret:1#viewer@user:bob'), put('secret:1#viewer@service:reader')], options)
  await directory.putClient(
    { id: 'reader', app: null, organization: 'acme', metadata: { scope: 'decisions:read' } },
    CONTEXT,
  )
  reader = served.token({ ...SERVICE })
  client = decisionClient(served.grpc.address)
})
afterAll(async () => {
  client.close()
  await served.close()
})
const SERVICE = {
  subject: { type: 'service', id: 'reader' },
  clientId: 'reader',
  organization: 'acme',
  scopes: new Set(['decisions:read']),
  audiences: ['https://id.example.test'],
} as const
const USER = { scopes: new Set(['openid', 'decisions:read']), audiences: ['https://id.example.test'] }

type Question = Omit<Parameters<DecisionClient['decide']>[0], '$typeName' | '$unknown' | 'token'>
const overGrpc = (token: string, question: Question) => client.decide({ token, ...question })
const overHttp = async (token: string, body: object): Promise<Json> =>
  (await served.send('POST', '/oauth/decisions', { token, body })).body
const check = (relation: string, resource: string) => ({ relation, resource })
const user = (id: string) => ({ type: 'user', id }) as const

describe('a reason', () => {
  test.each([
    ['alice', check('viewer', 'invoice:1'), true, 'tuple'],
    ['bob', check('viewer', 'invoice:2'), true, 'group'],
    ['bob', check('invoices:approve', 'app:billing'), true, 'role'],
    ['alice', check('admin', 'organization:acme'), true, 'membership'],
    ['alice', check('viewer', 'invoice:2'), false, 'none'],
    ['alice', check('nonsense:x', 'app:billing'), false, 'unknown_relation'],
    ['carol', check('viewer', 'invoice:1'), false, 'membership_suspended'],
    ['nobody', check('viewer', 'invoice:3'), false, 'none'],
  ] as const)('for %s, %o is the same in process and over HTTP and gRPC', async (id, asked, allowed, code) => {
    const question = { permissions: [asked], subject: user(id), explain: true }
    const [http] = (await overHttp(reader, question)).permissions
    const [grpc] = (await overGrpc(reader, question)).permissions
    expect(http).toMatchObject({
      ...asked,
      allowed,
      reason: { code, path: expect.any(Array), missing: expect.any(Array) },
    })
    expect(grpc).toMatchObject({ ...asked, allowed, reasonCode: code, reason: { code } })
    const steps = grpc?.reason?.path.map(({ step }) => ({
      [step.case === 'roleGrant' ? 'role_grant' : (step.case ?? '')]: step.value,
    }))
    const { code: ofGrpc, message, missing, details = [] } = grpc?.reason ?? {}
    expect({ code: ofGrpc, message, path: steps, missing, details }).toEqual({ details: [], ...http.reason })
    if (id === 'nobody') return // only the transports ask whether the subject exists
    const inProcess = await served.pdp.decide({ organization: 'acme', ...question })
    expect(inProcess.permissions[0] satisfies PermissionResult | undefined).toMatchObject({
      allowed,
      reason: http.reason,
    })
  })

  test('names the chain of an allow, and what is missing for one', async () => {
    const allowed = await overHttp(reader, {
      permissions: [check('viewer', 'invoice:2')],
      subject: user('bob'),
      explain: true,
    })
    expect(JSON.stringify(allowed.permissions[0].reason.path)).toContain('invoice:2#viewer@group:accounting#member')
    expect(JSON.stringify(allowed.permissions[0].reason.path)).toContain('user:bob')
    const denied = await overHttp(reader, {
      permissions: [check('viewer', 'invoice:2')],
      subject: user('alice'),
      explain: true,
    })
    expect(denied.permissions[0].reason.missing.length).toBeGreaterThan(0)
  })

  test('is not there unless it is asked for', async () => {
    const question = { permissions: [check('viewer', 'invoice:2')], subject: user('bob') }
    expect((await overHttp(reader, question)).permissions[0]).not.toHaveProperty('reason')
    expect((await overGrpc(reader, question)).permissions[0]?.reason).toBeUndefined()
  })
})

describe('another subject, or a reason, is refused to', () => {
  test.each<[string, () => string, number, string]>([
    ['a user, even with the scope', () => served.token(USER), 403, 'permission_denied'],
    [
      'a user, even with the scope and for himself',
      () => served.token({ ...USER, subject: user('bob') }),
      403,
      'permission_denied',
    ],
    [
      'a service without the scope',
      () => served.token({ ...SERVICE, scopes: new Set(['decisions:ask']) }),
      403,
      'scope_insufficient',
    ],
    ['a token bound to a key, without a proof', () => served.token({ ...SERVICE, jkt: 'key' }), 401, 'proof_missing'],
  ])('%s', async (_, token, http, code) => {
    const codes: { [http: number]: number } = { 401: status.UNAUTHENTICATED, 403: status.PERMISSION_DENIED }
    for (const question of [{ subject: user('bob') }, { explain: true }]) {
      const answer = await served.send('POST', '/oauth/decisions', { token: token(), body: question })
      expect([answer.status, answer.body.code]).toEqual([http, code])
      const err = await overGrpc(token(), question).catch((err: ServiceError) => err)
      expect(err).toMatchObject({ code: codes[http] })
    }
    const list = await served.send('POST', '/v1/organizations/acme/list-resources', {
      token: token(),
      body: { subject: user('bob'), relation: 'viewer', type: 'invoice' },
    })
    expect([list.status, list.body.code]).toEqual([http, code])
  })
})

describe('another organization', () => {
  test('is out of reach: nothing in a question names one', async () => {
    const question = {
      permissions: [check('viewer', 'secret:1'), check('active_member', 'organization:other')],
      subject: user('bob'),
    }
    const http = await overHttp(reader, question)
    expect([http.organization, ...http.permissions.map(({ allowed }: Json) => allowed)]).toEqual(['acme', false, false])
    const grpc = await overGrpc(reader, question)
    expect([grpc.organization, ...grpc.permissions.map(({ allowed }) => allowed)]).toEqual(['acme', false, false])
    const named = await served.send('POST', '/oauth/decisions', {
      token: reader,
      body: { ...question, organization: 'other' },
    })
    expect([named.status, named.body.errors[0].pointer]).toEqual([400, '/organization'])
  })

  test('is no answer for a token without one', async () => {
    const unbound = served.token({ ...SERVICE, organization: null })
    const http = await overHttp(unbound, {
      permissions: [check('viewer', 'invoice:1')],
      subject: user('alice'),
      explain: true,
    })
    expect(http).toMatchObject({
      organization: null,
      permissions: [{ allowed: false, reason: { code: 'token_inactive' } }],
    })
  })

  test('has no lists for a bound client', async () => {
    for (const [path, body] of [
      ['list-resources', { subject: user('bob'), relation: 'viewer', type: 'secret' }],
      ['list-subjects', { resource: 'secret:1', relation: 'viewer', type: 'user' }],
    ] as const) {
      const { status: code } = await served.send('POST', `/v1/organizations/other/${path}`, { token: reader, body })
      expect(code).toBe(403)
    }
  })
})

describe('lists', () => {
  const list = async (path: string, body: object, query = '') => {
    const answer = await served.send('POST', `/v1/organizations/acme/${path}${query}`, { token: reader, body })
    return [answer.status, answer.body] as const
  }

  test('say what a subject may reach, and who may reach a resource', async () => {
    expect(await list('list-resources', { subject: user('bob'), relation: 'viewer', type: 'invoice' })).toMatchObject([
      200,
      {
        items: ['invoice:2'],
        next_page_token: null,
        complete: true,
        revision: expect.any(String),
        revision_unchanged: true,
      },
    ])
    expect(await list('list-subjects', { resource: 'invoice:2', relation: 'viewer', type: 'user' })).toMatchObject([
      200,
      { items: ['user:bob'] },
    ])
    expect(
      await list('list-subjects', {
        resource: 'invoice:2',
        relation: 'viewer',
        type: 'group',
        subject_relation: 'member',
      }),
    ).toMatchObject([200, { items: ['group:accounting#member'] }])
    expect(
      await list('list-resources', { subject: user('nobody'), relation: 'viewer', type: 'invoice' }),
    ).toMatchObject([200, { items: [] }])
  })

  test('come in pages', async () => {
    await served.store.write(
      'acme',
      [put('page:1#viewer@user:bob'), put('page:2#viewer@user:bob'), put('page:3#viewer@user:bob')],
      options,
    )
    const body = { subject: user('bob'), relation: 'viewer', type: 'page' }
    const items: string[] = []
    let token: string | null = null
    do {
      const query: string = token === null ? '?page_size=1' : `?page_size=1&page_token=${token}`
      const [, page] = await list('list-resources', body, query)
      items.push(...page.items)
      token = page.next_page_token
    } while (token !== null)
    expect(items).toEqual(['page:1', 'page:2', 'page:3'])
  })

  test.each<[string, string, object, string, readonly string[]]>([
    [
      'every mistake at once',
      'list-resources',
      { subject: { type: 2, id: '' }, relation: 1 },
      '',
      ['/relation', '/subject/id', '/subject/type', '/type'],
    ],
    [
      'a type that is none',
      'list-resources',
      { subject: user('bob'), relation: 'viewer', type: 'In voice' },
      '',
      ['/type'],
    ],
    [
      'a resource that is none',
      'list-subjects',
      { resource: 'x', relation: 'viewer', type: 'user' },
      '',
      ['/resource'],
    ],
    [
      'a userset’s relation that is none',
      'list-subjects',
      { resource: 'a:1', relation: 'viewer', type: 'group', subject_relation: '#' },
      '',
      ['/subject_relation'],
    ],
    [
      'a page size out of bounds',
      'list-subjects',
      { resource: 'a:1', relation: 'viewer', type: 'user' },
      '?page_size=1001',
      ['page_size'],
    ],
    [
      'a page token of nobody',
      'list-subjects',
      { resource: 'a:1', relation: 'viewer', type: 'user' },
      '?page_token=x',
      ['page_token'],
    ],
    [
      'an unknown member',
      'list-subjects',
      { resource: 'a:1', relation: 'viewer', type: 'user', subject: user('a') },
      '',
      ['/subject'],
    ],
  ])('are refused for %s', async (_, path, body, query, places) => {
    const [code, { errors }] = await list(path, body, query)
    expect([code, errors.map(({ pointer, parameter }: Json) => pointer ?? parameter).toSorted()]).toEqual([400, places])
  })
})
