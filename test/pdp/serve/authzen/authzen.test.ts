import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CONTEXT, ISSUER, type Json, type Served, seedAcme, serve } from '../harness.ts'

const MODEL = `model
  schema 1.1
type user
type record
  relations
    define read: [user, user:*, group#member]
    define write: [user]
    define delete: [user]
type route
  relations
    define get: [user]
    define post: [user]
`
const TUPLES = [
  'record:record-1#read@user:alice',
  'record:record-1#write@user:alice',
  'record:record-1#read@user:bob',
  'record:record-2#write@user:bob',
  'record:record-2#read@group:staff#member',
  'group:staff#member@user:alice',
  'route:/todos/{id}#get@user:alice',
]
let served: Served
let pep = ''
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  const manager = await served.manager()
  const body = { audiences: [], permissions: { 'records:audit': 'Audit' }, roles: {}, model: MODEL }
  expect((await served.send('PUT', '/v1/apps/records/manifest', { token: manager, body })).status).toBe(201)
  const tuples = TUPLES.map((tuple) => {
    const [, object = '', relation = '', subject = ''] = /^([^#]+)#([^@]+)@(.*)$/.exec(tuple) ?? []
    return { kind: 'tuple', op: 'write', tuple: { object, relation, subject, expiresAtMs: null } } as const
  })
  await served.store.write('acme', tuples, { context: CONTEXT })
  pep = await served.manager({ client: 'pep', organization: 'acme', scopes: ['decisions:read'] })
})
afterAll(() => served.close())

type Options = Parameters<Served['send']>[2]
const post = (path: string, body: unknown, options: Options = {}) =>
  served.send('POST', `/access/v1/${path}`, { token: pep, body, ...options })
const user = (id: string) => ({ type: 'user', id })
const record = (id: string) => ({ type: 'record', id })
const question = (subject: string, action: string, resource: string): Json => ({
  subject: user(subject),
  action: { name: action },
  resource: record(resource),
})
const decisions = ({ body }: { body: Json }): readonly boolean[] => body.evaluations.map((one: Json) => one.decision)

describe('an evaluation', () => {
  test.each([
    ['c-2-2-1: a grant', question('alice', 'read', 'record-1'), true],
    ['c-2-2-2: no grant', question('bob', 'write', 'record-1'), false],
    ['c-2-2-3: with a context', { ...question('alice', 'read', 'record-1'), context: { ip: '192.0.2.1' } }, true],
    [
      'c-2-2-8: with properties everywhere',
      {
        subject: { ...user('alice'), properties: { role: 'admin' } },
        action: { name: 'read', properties: { soft: true } },
        resource: { ...record('record-1'), properties: null },
      },
      true,
    ],
    ['c-2-2-9: with unknown members', { ...question('alice', 'read', 'record-1'), mood: 'good', options: 7 }, true],
    ['through a group', question('alice', 'read', 'record-2'), true],
    ['of an unknown subject', question('nobody', 'read', 'record-1'), false],
    [
      'of an unknown type of subject',
      { ...question('x', 'read', 'record-1'), subject: { type: 'ship', id: 'x' } },
      false,
    ],
    ['of an unknown action', question('alice', 'Frobnicate it', 'record-1'), false],
    ['of names that no grant can have', question('a b#c', 'read', 're:cord 1#x'), false],
    [
      'of an HTTP method on a route',
      { ...question('alice', 'GET', ''), resource: { type: 'route', id: '/todos/{id}' } },
      true,
    ],
    [
      'of the bearer by whatever type',
      { ...question('alice', 'read', 'record-1'), subject: { type: 'identity', id: 'alice' } },
      true,
    ],
    [
      'of an entitlement of the organization',
      { ...question('alice', 'use', ''), resource: { type: 'entitlement', id: 'feature.invoicing' } },
      true,
    ],
    [
      'of an entitlement that it lacks',
      { ...question('alice', 'use', ''), resource: { type: 'entitlement', id: 'feature.export' } },
      false,
    ],
  ])('%s', async (_name, body, decision) => {
    const { status, headers, body: answer } = await post('evaluation', body)
    expect([status, answer.decision]).toEqual([200, decision])
    expect(typeof answer.context).toBe('object')
    expect(headers.get('content-type')).toMatch(/^application\/json/)
    expect(headers.get('cache-control')).toBe('no-store')
  })

  test('carries the value of an entitlement', async () => {
    const body = { ...question('alice', 'use', ''), resource: { type: 'entitlement', id: 'feature.invoicing' } }
    expect((await post('evaluation', body)).body.context).toMatchObject({
      entitlement: { value: { enabled: true }, version: expect.any(Number) },
    })
  })

  test('sees a revoked grant on the very next call (c-2-6: and is otherwise the same)', async () => {
    const body = question('alice', 'delete', 'record-1')
    const tuple = { object: 'record:record-1', relation: 'delete', subject: 'user:alice', expiresAtMs: null }
    for (const op of ['write', 'delete'] as const) {
      await served.store.write('acme', [{ kind: 'tuple', op, tuple }], { context: CONTEXT })
      for (let i = 0; i < 2; i += 1) expect((await post('evaluation', body)).body.decision).toBe(op === 'write')
    }
  })

  test.each(['a', '~odd id!', 'x'.repeat(128)])('gives back the X-Request-ID %s (c-2-5)', async (id) => {
    const trimmed = id.replace(' ', '_')
    for (const body of [question('alice', 'read', 'record-1'), {}]) {
      const { headers } = await post('evaluation', body, { headers: { 'x-request-id': trimmed } })
      expect(headers.get('x-request-id')).toBe(trimmed)
    }
  })

  const { subject, action, resource } = question('alice', 'read', 'record-1')
  test.each<[string, Json, RegExp]>([
    ['no subject (c-2-4-1)', { action, resource }, /subject is missing/],
    ['no action', { subject, resource }, /action is missing/],
    ['no resource', { subject, action }, /resource is missing/],
    ['no type of the subject (c-2-4-2)', { subject: { id: 'alice' }, action, resource }, /subject\/type is missing/],
    ['no id of the subject', { subject: { type: 'user' }, action, resource }, /subject\/id is missing/],
    ['no name of the action', { subject, action: {}, resource }, /action\/name is missing/],
    ['no type of the resource', { subject, action, resource: { id: '1' } }, /resource\/type is missing/],
    ['no id of the resource', { subject, action, resource: { type: 'record' } }, /resource\/id is missing/],
    ['a text for a subject (c-2-4-6)', { subject: 'alice', action, resource }, /subject must be an object/],
    ['a number for a name', { subject, action: { name: 123 }, resource }, /name must be a string/],
    ['a list of properties', { subject: { ...subject, properties: [] }, action, resource }, /properties must be/],
    ['a list for a context', { subject, action, resource, context: [] }, /context must be an object/],
    ['a list', [], /body must be an object/],
    ['null', null, /body is missing/],
    ['a text', 'x', /body must be an object/],
  ])('of %s is refused', async (_name, body, message) => {
    const { status, body: problem } = await post('evaluation', body)
    expect([status, problem.code]).toEqual([400, 'request_invalid'])
    expect(problem.detail).toMatch(message)
  })

  test.each([
    ['another content type (c-2-4-3)', { raw: '{}', headers: { 'content-type': 'text/plain' } }],
    ['broken JSON (c-2-4-4)', { raw: '{"subject":' }],
    ['an empty body (c-2-4-5)', { raw: '', headers: { 'content-type': 'application/json' } }],
    ['a member that is there twice', { raw: '{"subject":{},"subject":{}}' }],
    ['half of a surrogate pair', { raw: '{"subject":{"type":"user","id":"\\ud800"}}' }],
  ])('in %s is refused', async (_name, options) => {
    const { status, body } = await served.send('POST', '/access/v1/evaluation', { token: pep, ...options })
    expect([status, body.code]).toEqual([400, 'request_invalid'])
  })

  test('takes a media type with parameters, in any case', async () => {
    const headers = { 'content-type': 'Application/JSON; charset=utf-8' }
    expect((await post('evaluation', question('alice', 'read', 'record-1'), { headers })).status).toBe(200)
  })

  test.each(['GET', 'PUT'])('is not to be had with %s', async (method) => {
    expect((await served.send(method, '/access/v1/evaluation', { token: pep })).status).toBe(405)
  })
})

describe('who asks', () => {
  const about = (id: string) => question(id, 'read', 'record-1')

  test('a person may ask about themselves', async () => {
    const { status, body } = await post('evaluation', about('alice'), { token: served.token({}) })
    expect([status, body.decision]).toEqual([200, true])
  })

  test.each<[string, () => Promise<string> | string | undefined, number, string]>([
    ['nobody', () => undefined, 401, 'token_missing'],
    ['a token that never was', () => 'never', 401, 'token_invalid'],
    ['a person about somebody else', () => served.token({}), 403, 'permission_denied'],
    [
      'a service without the scope',
      () => served.manager({ client: 'plain', organization: 'acme', scopes: [] }),
      403,
      'scope_insufficient',
    ],
  ])('%s may not', async (_name, token, status, code) => {
    const given = await token()
    const options = { token: given as string }
    const answer = await served.send('POST', '/access/v1/evaluation', {
      ...(given === undefined ? {} : options),
      body: about('bob'),
    })
    expect([answer.status, answer.body.code]).toEqual([status, code])
    if (status === 401) expect(answer.headers.get('www-authenticate')).toBeTruthy()
  })

  test('a service that is bound may not name another organization, and one that is not may', async () => {
    const elsewhere = { ...about('bob'), context: { organization: 'globex' } }
    expect((await post('evaluation', elsewhere)).status).toBe(403)
    expect((await post('evaluation', { ...elsewhere, context: { organization: 7 } })).status).toBe(400)
    const token = await served.manager({ client: 'anywhere' })
    expect((await post('evaluation', elsewhere, { token })).body.decision).toBe(false)
    const here = { ...about('bob'), context: { organization: 'acme' } }
    expect((await post('evaluation', here, { token })).body.decision).toBe(true)
    expect((await post('evaluation', about('bob'), { token })).body.decision).toBe(false)
  })
})

describe('evaluations', () => {
  const alice = { subject: user('alice'), action: { name: 'read' } }
  const one = record('record-1')
  const two = record('record-2')

  test.each<[string, Json, readonly boolean[]]>([
    ['c-3-2-1: resources', { ...alice, evaluations: [{ resource: one }, { resource: two }] }, [true, true]],
    [
      'c-3-2-2: actions',
      {
        subject: user('bob'),
        resource: one,
        evaluations: [{ action: { name: 'read' } }, { action: { name: 'write' } }],
      },
      [true, false],
    ],
    [
      'c-3-2-4: subjects',
      { action: { name: 'write' }, resource: two, evaluations: [{ subject: user('alice') }, { subject: user('bob') }] },
      [false, true],
    ],
    [
      'c-3-2-5: no defaults',
      { evaluations: [question('alice', 'read', 'record-1'), question('bob', 'write', 'record-1')] },
      [true, false],
    ],
    [
      'c-3-2-6: a context of its own',
      { ...alice, context: { a: 1 }, evaluations: [{ resource: one, context: { b: 2 } }] },
      [true],
    ],
    [
      'c-3-2-7: an empty item inherits all',
      { ...alice, resource: one, evaluations: [{}, { subject: user('nobody') }] },
      [true, false],
    ],
    ['c-3-4-1: an item that lacks an entity', { ...alice, evaluations: [{ resource: one }, {}] }, [true, false]],
    [
      'an item that is no object',
      { ...alice, resource: one, evaluations: [{}, 'x', null, []] },
      [true, false, false, false],
    ],
    [
      'an entity is replaced whole',
      { ...alice, resource: one, evaluations: [{ resource: { id: 'record-1' } }] },
      [false],
    ],
  ])('%s', async (_name, body, expected) => {
    const answer = await post('evaluations', body)
    expect([answer.status, decisions(answer)]).toEqual([200, expected])
    expect(answer.body.decision).toBeUndefined()
  })

  test('say in the item what it lacks', async () => {
    const { body } = await post('evaluations', { ...alice, evaluations: [{}] })
    expect(body.evaluations[0].context.error).toEqual({
      status: 400,
      message: expect.stringContaining('/evaluations/0/resource is missing'),
    })
  })

  const vector = (names: readonly string[], semantic: unknown): Json => ({
    ...{ subject: user('bob'), resource: one, options: { evaluations_semantic: semantic, other: 1 } },
    evaluations: names.map((name) => ({ action: { name } })),
  })
  test.each([
    ['execute_all', ['read', 'write', 'read'], [true, false, true]],
    ['deny_on_first_deny', ['read', 'write', 'read'], [true, false]],
    ['deny_on_first_deny', ['read', 'read'], [true, true]],
    ['permit_on_first_permit', ['write', 'read', 'write'], [false, true]],
    ['permit_on_first_permit', ['write'], [false]],
  ])('under %s %j is %j', async (semantic, names, expected) => {
    expect(decisions(await post('evaluations', vector(names, semantic)))).toEqual(expected)
  })

  test('end with an item that failed under deny_on_first_deny', async () => {
    const items = [{ resource: one }, {}, { resource: one }]
    const body = { ...alice, options: { evaluations_semantic: 'deny_on_first_deny' }, evaluations: items }
    expect(decisions(await post('evaluations', body))).toEqual([true, false])
  })

  test.each([[{}], [{ evaluations: [] }], [{ evaluations: null }]])(
    'with %j is one evaluation (c-3-4-2)',
    async (more) => {
      const { status, body } = await post('evaluations', { ...question('alice', 'read', 'record-1'), ...more })
      expect([status, body.decision, body.evaluations]).toEqual([200, true, undefined])
    },
  )

  test.each<[string, Json]>([
    ['an unknown semantic', vector(['read'], 'whatever')],
    ['a semantic that is no text', vector(['read'], 7)],
    ['options that are no object', { ...alice, options: [], evaluations: [{}] }],
    ['items that are no list', { ...alice, evaluations: {} }],
    ['257 items', { ...alice, resource: one, evaluations: Array.from({ length: 257 }, () => ({})) }],
    ['a default of a wrong type', { subject: 'alice', evaluations: [question('alice', 'read', 'record-1')] }],
    ['no items and no subject', { action: { name: 'read' }, resource: one }],
  ])('with %s are refused', async (_name, body) => {
    expect((await post('evaluations', body)).status).toBe(400)
  })

  test('of a person are denied where they are about somebody else', async () => {
    const body = {
      action: { name: 'read' },
      resource: one,
      evaluations: ['alice', 'bob'].map((id) => ({ subject: user(id) })),
    }
    const answer = await post('evaluations', body, { token: served.token({}) })
    expect(decisions(answer)).toEqual([true, false])
    expect(answer.body.evaluations[1].context.error.status).toBe(403)
  })
})

describe('a search', () => {
  const subjects = (resource: string): Json => ({
    ...{ subject: { type: 'user' }, action: { name: 'read' }, resource: record(resource) },
  })
  const resources: Json = { subject: user('alice'), action: { name: 'read' }, resource: { type: 'record' } }
  const actions: Json = { subject: user('alice'), resource: record('record-1') }
  const found = async (path: string, body: Json, options: Options = {}) => {
    const answer = await post(`search/${path}`, body, options)
    expect([answer.status, Object.keys(answer.body)[0]]).toEqual([200, 'page'])
    return answer.body.results
  }

  test('for subjects lists who may, through groups, and nothing besides type and id (c-4-2-1)', async () => {
    expect(await found('subject', subjects('record-1'))).toEqual([user('alice'), user('bob')])
    expect(await found('subject', subjects('record-2'))).toEqual([user('alice')])
    const withId = { ...subjects('record-1'), subject: { type: 'user', id: 'alice' }, context: { a: 1 } }
    expect(await found('subject', withId)).toEqual([user('alice'), user('bob')])
  })

  test('for resources lists where the subject may (c-4-3-1)', async () => {
    const expected = [record('record-1'), record('record-2')]
    expect(await found('resource', resources)).toEqual(expected)
    expect(await found('resource', { ...resources, resource: { type: 'record', id: 'x' } })).toEqual(expected)
  })

  test('for actions lists what the subject may (c-4-4-1)', async () => {
    expect(await found('action', actions)).toEqual([{ name: 'read' }, { name: 'write' }])
  })

  test('says of everybody that it is public, and lists nobody who has no name', async () => {
    const tuple = { object: 'record:open', relation: 'read', subject: 'user:*', expiresAtMs: null }
    await served.store.write('acme', [{ kind: 'tuple', op: 'write', tuple }], { context: CONTEXT })
    const { body } = await post('search/subject', subjects('open'))
    expect(body.context).toMatchObject({ public: true })
    expect(body.results.map(({ id }: Json) => id)).not.toContain('*')
    await served.store.write('acme', [{ kind: 'tuple', op: 'delete', tuple }], { context: CONTEXT })
  })

  test.each<[string, Json]>([
    ['subject', { ...subjects('record-1'), subject: { type: 'spaceship' } }],
    ['subject', { ...subjects('record-1'), action: { name: 'un known' } }],
    ['subject', { ...subjects('none such#') }],
    ['resource', { ...resources, subject: user('nonexistent-user') }],
    ['resource', { ...resources, resource: { type: 'Space ship' } }],
    ['action', { ...actions, subject: user('nonexistent-user') }],
    ['action', { ...actions, subject: { type: 'ship', id: '1' } }],
    ['action', { ...actions, resource: { type: 'ship', id: '1' } }],
  ])('for %s of what is unknown finds nothing: %j (c-4-6)', async (path, body) => {
    expect(await found(path, body)).toEqual([])
  })

  test.each<[string, Json, Json[]]>([
    ['subject', subjects('record-1'), [user('alice'), user('bob')]],
    ['resource', resources, [record('record-1'), record('record-2')]],
    ['action', actions, [{ name: 'read' }, { name: 'write' }]],
  ])('for %s leads from page to page, without a limit beside the token (c-4-5)', async (path, body, expected) => {
    const all: Json[] = []
    let token = ''
    for (let pages = 0; pages === 0 || token !== ''; pages += 1) {
      const page = pages === 0 ? { limit: 1 } : { token }
      const answer = await post(`search/${path}`, { ...body, page })
      expect(answer.body.results.length).toBeLessThanOrEqual(1)
      all.push(...answer.body.results)
      token = answer.body.page.next_token
      expect(pages).toBeLessThan(10)
    }
    expect(all).toEqual(expected)
  })

  test('with a limit of 0 finds nothing yet, and leads on', async () => {
    const { body } = await post('search/subject', { ...subjects('record-1'), page: { limit: 0 } })
    expect(body.results).toEqual([])
    const next = await post('search/subject', { ...subjects('record-1'), page: { token: body.page.next_token } })
    expect(next.body.results).toEqual([user('alice'), user('bob')])
  })

  test.each([
    ['of another question', () => ({ ...subjects('record-2') })],
    ['with another context', () => ({ ...subjects('record-1'), context: { x: 1 } })],
  ])('refuses the token %s', async (_name, other) => {
    const { body } = await post('search/subject', { ...subjects('record-1'), page: { limit: 1 } })
    const page = { token: body.page.next_token }
    const answer = await post('search/subject', { ...other(), page })
    expect([answer.status, answer.body.code]).toEqual([400, 'request_invalid'])
  })

  test.each<[string, Json]>([
    ['subject', { ...subjects('record-1'), page: { token: 'x' } }],
    ['subject', { ...subjects('record-1'), page: { token: 7 } }],
    ['subject', { ...subjects('record-1'), page: { limit: -1 } }],
    ['subject', { ...subjects('record-1'), page: { limit: 1.5 } }],
    ['subject', { ...subjects('record-1'), page: [] }],
    ['subject', { ...subjects('record-1'), action: null }],
    ['subject', { ...subjects('record-1'), resource: { type: 'record' } }],
    ['subject', { action: { name: 'read' }, resource: record('record-1') }],
    ['resource', { ...resources, subject: { type: 'user' } }],
    ['resource', { ...resources, resource: {} }],
    ['action', { subject: user('alice') }],
    ['action', { resource: record('record-1') }],
    ['action', []],
  ])('for %s of %j is refused (c-4-7)', async (path, body) => {
    expect((await post(`search/${path}`, body)).status).toBe(400)
  })

  test('is for services, and for people about themselves', async () => {
    const token = served.token({})
    expect((await post('search/subject', subjects('record-1'), { token })).status).toBe(403)
    expect((await post('search/resource', { ...resources, subject: user('bob') }, { token })).status).toBe(403)
    expect(await found('resource', resources, { token })).toEqual([record('record-1'), record('record-2')])
    expect(await found('action', actions, { token })).toEqual([{ name: 'read' }, { name: 'write' }])
    expect((await post('search/action', actions, { token: 'never' })).status).toBe(401)
    const plain = await served.manager({ client: 'searcher', organization: 'acme', scopes: [] })
    expect((await post('search/action', actions, { token: plain })).status).toBe(403)
  })

  test('finds exactly what evaluations allow', async () => {
    const ids = ['alice', 'bob', 'nobody']
    const names = ['read', 'write', 'delete']
    for (const id of ids) {
      for (const name of names) {
        const listed = (await found('resource', { ...resources, subject: user(id), action: { name } })).map(
          (r: Json) => r.id,
        )
        for (const resource of ['record-1', 'record-2']) {
          const { decision } = (await post('evaluation', question(id, name, resource))).body
          expect([id, name, resource, listed.includes(resource)]).toEqual([id, name, resource, decision])
          const allowed = await found('action', { subject: user(id), resource: record(resource) })
          expect(allowed.some((one: Json) => one.name === name)).toBe(decision)
        }
      }
    }
  })
})

describe('the configuration', () => {
  test('names the issuer’s own addresses, whatever the Host field says, and signs them (c-6)', async () => {
    const { status, headers, body } = await served.send('GET', '/.well-known/authzen-configuration', {
      headers: { host: 'evil.example' },
    })
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('public, max-age=300')
    const { signed_metadata: signed, ...plain } = body
    expect(plain).toEqual({
      policy_decision_point: ISSUER,
      access_evaluation_endpoint: `${ISSUER}/access/v1/evaluation`,
      access_evaluations_endpoint: `${ISSUER}/access/v1/evaluations`,
      search_subject_endpoint: `${ISSUER}/access/v1/search/subject`,
      search_resource_endpoint: `${ISSUER}/access/v1/search/resource`,
      search_action_endpoint: `${ISSUER}/access/v1/search/action`,
    })
    expect(decodeJwt(signed)).toEqual({ iss: ISSUER, ...plain })
  })
})
