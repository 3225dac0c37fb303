import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CONTEXT, type Json, type Served, seedAcme, serve } from '../harness.ts'
import { QUESTION, readerToken } from './reader.ts'

let served: Served
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
})
afterAll(() => served.close())

const decide = (options: Parameters<Served['send']>[2]) => served.send('POST', '/oauth/decisions', options)
const reader = (state: Parameters<Served['token']>[0] = {}) => readerToken(served, state)

describe('POST /oauth/decisions', () => {
  test('answers permissions and entitlements of the bearer in one response', async () => {
    const { status, headers, body } = await decide({ token: served.token({}), body: QUESTION })
    expect(status).toBe(200)
    expect(body).toEqual({
      subject: { type: 'user', id: 'alice' },
      organization: 'acme',
      permissions: [
        { relation: 'viewer', resource: 'invoice:1', allowed: true },
        { relation: 'viewer', resource: 'invoice:2', allowed: false },
      ],
      entitlements: { 'feature.invoicing': { value: { enabled: true }, version: 1 }, 'feature.export': null },
    })
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('portcullis-decision-id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(headers.get('portcullis-revision')).toBeTruthy()
    expect(served.logged).toContainEqual(
      expect.objectContaining({
        event: 'decision',
        decision_id: headers.get('portcullis-decision-id'),
        subject: 'user:alice',
      }),
    )
  })

  test('answers a client_credentials token for the service itself', async () => {
    const { body } = await decide({ token: reader({ scopes: new Set() }), body: {} })
    expect(body).toEqual({
      subject: { type: 'service', id: 'backend' },
      organization: 'acme',
      permissions: [],
      entitlements: {},
    })
  })

  test('lets a service with decisions:read ask about another subject of its organization', async () => {
    const { status, body } = await decide({
      token: reader(),
      body: { ...QUESTION, subject: { type: 'user', id: 'bob' } },
    })
    expect(status).toBe(200)
    expect(body.subject).toEqual({ type: 'user', id: 'bob' })
    expect(body.permissions.map(({ allowed }: Json) => allowed)).toEqual([false, true])
  })

  test('denies a subject that does not exist even what a tuple grants', async () => {
    const permissions = [{ relation: 'viewer', resource: 'invoice:3' }]
    const ask = async (id: string) =>
      (await decide({ token: reader(), body: { permissions, subject: { type: 'user', id } } })).body
    expect((await ask('nobody')).permissions[0]?.allowed).toBe(false)
    await served.directory.putUser({ id: 'nobody', email: null, emailVerified: false, name: null }, CONTEXT)
    expect((await ask('nobody')).permissions[0]?.allowed).toBe(true)
  })

  test('sees a write on the very next call', async () => {
    const token = served.token({})
    const tuple = { object: 'invoice:9', relation: 'viewer', subject: 'user:alice', expiresAtMs: null }
    const ask = async () => {
      const { body } = await decide({ token, body: { permissions: [{ relation: 'viewer', resource: 'invoice:9' }] } })
      return body.permissions[0]?.allowed
    }
    for (const op of ['write', 'delete', 'write'] as const) {
      await served.store.write('acme', [{ kind: 'tuple', op, tuple }], {
        context: { actor: 'test', requestId: 'test' },
      })
      expect(await ask()).toBe(op === 'write')
    }
  })

  test.each(['read', 'another'])('asks about the state of the token anew on call %s', async () => {
    const token = served.token({})
    expect((await decide({ token, body: QUESTION })).body.permissions[0]?.allowed).toBe(true)
    served.setState(token, { active: false })
    expect((await decide({ token, body: QUESTION })).body.permissions[0]?.allowed).toBe(false)
  })

  test('denies everything to an inactive token, without an error', async () => {
    const { status, body } = await decide({ token: 'unknown', body: { ...QUESTION, explain: true } })
    expect(status).toBe(200)
    expect(body).toMatchObject({ subject: null, organization: null, entitlements: { 'feature.invoicing': null } })
    expect(body.permissions.map(({ allowed }: Json) => allowed)).toEqual([false, false])
  })

  test('denies everything to a token without an organization', async () => {
    const { status, body } = await decide({ token: served.token({ organization: null }), body: QUESTION })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      subject: { type: 'user', id: 'alice' },
      organization: null,
      entitlements: { 'feature.invoicing': null },
    })
    expect(body.permissions.map(({ allowed }: Json) => allowed)).toEqual([false, false])
  })

  test('answers a DPoP-bound token shown as Bearer for its own subject', async () => {
    const { status, body } = await decide({ token: served.token({ jkt: 'thumbprint' }), body: QUESTION })
    expect(status).toBe(200)
    expect(body.permissions[0]?.allowed).toBe(true)
  })
})

describe('POST /oauth/decisions refuses', () => {
  const about = { subject: { type: 'user', id: 'bob' } }

  test.each([
    [
      'a user token that names a subject',
      () => served.token({ scopes: new Set(['decisions:read']) }),
      about,
      403,
      'permission_denied',
    ],
    ['a user token that asks for reasons', () => served.token({}), { explain: true }, 403, 'permission_denied'],
    [
      'a service without the scope that names a subject',
      () => reader({ scopes: new Set() }),
      about,
      403,
      'scope_insufficient',
    ],
    [
      'a service without the scope that asks for reasons',
      () => reader({ scopes: new Set() }),
      { explain: true },
      403,
      'scope_insufficient',
    ],
    [
      'a DPoP-bound token without a proof that names a subject',
      () => reader({ jkt: 'x' }),
      about,
      401,
      'proof_missing',
    ],
  ] as const)('%s', async (_, token, body, status, code) => {
    const answer = await decide({ token: token(), body })
    expect([answer.status, answer.body.code]).toEqual([status, code])
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/)
  })

  test.each([
    ['no Authorization', {}],
    ['another scheme', { authorization: 'Basic YTpi' }],
    ['DPoP without a token', { authorization: 'DPoP' }],
    ['no token', { authorization: 'Bearer' }],
    ['a token of forbidden characters', { authorization: 'Bearer a"b' }],
    ['two tokens', { authorization: 'Bearer a b' }],
  ])('%s with a challenge, before it reads the body', async (_, headers) => {
    const answer = await decide({ headers, raw: '{' })
    expect([answer.status, answer.body.code]).toEqual([401, 'token_missing'])
    expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/)
  })

  const many = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ relation: 'viewer', resource: `invoice:${i}` }))

  test.each([
    ['a member it does not know', { permissions: [], extra: 1 }, '/extra'],
    [
      'a member of a check that it does not know',
      { permissions: [{ relation: 'a', resource: 'b:c', 'x/y': 1 }] },
      '/permissions/0/x~1y',
    ],
    ['a wrong type', { permissions: 'viewer' }, '/permissions'],
    ['a check without a resource', { permissions: [{ relation: 'viewer' }] }, '/permissions/0/resource'],
    ['a relation that is not text', { permissions: [{ relation: 7, resource: 'a:b' }] }, '/permissions/0/relation'],
    ['an entitlement that is not text', { entitlements: ['a', null] }, '/entitlements/1'],
    ['a subject whose type is a number', { subject: { type: 1, id: 'x' } }, '/subject/type'],
    ['a subject without an id', { subject: { type: 'user' } }, '/subject/id'],
    ['explain that is not a boolean', { explain: 'true' }, '/explain'],
    ['257 checks', { permissions: many(257) }, '/permissions'],
    ['257 entitlements', { entitlements: many(257).map(({ resource }) => resource) }, '/entitlements'],
    ['an array', [], ''],
    ['null', null, ''],
  ])('%s, naming the place', async (_, body, pointer) => {
    const answer = await decide({ token: served.token({}), body })
    expect(answer.status).toBe(400)
    expect(answer.body).toMatchObject({ type: 'urn:portcullis:problem:request_invalid', status: 400 })
    expect(answer.body.errors.map((issue: Json) => issue.pointer)).toContain(pointer)
  })

  test('lists all mistakes of a body', async () => {
    const answer = await decide({
      token: served.token({}),
      body: { permissions: [{ relation: 1 }], entitlements: 2, foo: 3 },
    })
    const places = answer.body.errors.map((issue: Json) => issue.pointer)
    expect(places.toSorted()).toEqual(['/entitlements', '/foo', '/permissions/0/relation', '/permissions/0/resource'])
  })

  test('answers 256 checks, the most there may be', async () => {
    const { status, body } = await decide({ token: served.token({}), body: { permissions: many(256) } })
    expect(status).toBe(200)
    expect(body.permissions).toHaveLength(256)
  })

  test('a malformed resource of an active token', async () => {
    const answer = await decide({
      token: served.token({}),
      body: { permissions: [{ relation: 'viewer', resource: 'invoice' }] },
    })
    expect([answer.status, answer.body.code]).toEqual([400, 'request_invalid'])
  })
})
