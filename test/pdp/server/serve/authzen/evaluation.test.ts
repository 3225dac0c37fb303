import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CONTEXT, type Json } from '../harness.ts'
import { openRecords, question, record, user, type World } from './records.ts'

let world: World
beforeAll(async () => {
  world = await openRecords()
})
afterAll(() => world.close())

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
    [
      'of a type with a colon, which would name another record',
      { ...question('alice', 'read', ''), resource: { type: 'record:a', id: 'b' } },
      false,
    ],
    ['of an id with a colon', question('alice', 'read', 'a:b'), true],
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
    const { status, headers, body: answer } = await world.post('evaluation', body)
    expect([status, answer.decision]).toEqual([200, decision])
    expect(typeof answer.context).toBe('object')
    expect(headers.get('content-type')).toMatch(/^application\/json/)
    expect(headers.get('cache-control')).toBe('no-store')
  })

  test('carries the value of an entitlement', async () => {
    const body = { ...question('alice', 'use', ''), resource: { type: 'entitlement', id: 'feature.invoicing' } }
    expect((await world.post('evaluation', body)).body.context).toMatchObject({
      entitlement: { value: { enabled: true }, version: expect.any(Number) },
    })
  })

  test('sees a revoked grant on the very next call (c-2-6: and is otherwise the same)', async () => {
    const body = question('bob', 'write', 'record-1')
    const tuple = { object: 'record:record-1', relation: 'write', subject: 'user:bob', expiresAtMs: null }
    for (const op of ['write', 'delete'] as const) {
      await world.store.write('acme', [{ kind: 'tuple', op, tuple }], { context: CONTEXT })
      for (let i = 0; i < 2; i += 1) expect((await world.post('evaluation', body)).body.decision).toBe(op === 'write')
    }
  })

  const deleting = (action: Json, context: Json = {}): Json => ({
    ...{ subject: user('alice'), resource: record('record-1') },
    action: { name: 'delete', ...action },
    context,
  })
  test.each<[string, Json, boolean]>([
    ['c-2-2-6: a property of the action is a parameter', deleting({ properties: { soft: true } }), true],
    ['c-2-2-7: which may be false', deleting({ properties: { soft: false } }), false],
    ['the context wins over the property', deleting({ properties: { soft: true } }, { action_soft: false }), false],
    ['the context alone', deleting({}, { action_soft: true }), true],
    ['without the parameter', deleting({}), false],
    ['with one of another type', deleting({}, { action_soft: 'yes' }), false],
  ])('of a condition, %s', async (_name, body, decision) => {
    const { status, body: answer } = await world.post('evaluation', body)
    expect([status, answer.decision]).toEqual([200, decision])
    const { evaluations } = (await world.post('evaluations', { evaluations: [body, deleting({}), body] })).body
    expect(evaluations.map((one: Json) => one.decision)).toEqual([decision, false, decision])
  })

  test('names the parameters that a condition lacks', async () => {
    const { body } = await world.post('evaluation', deleting({}))
    expect(body.context).toMatchObject({ reason_code: 'condition_failed', missing_context: ['action_soft'] })
  })

  test('takes no parameters from a person', async () => {
    const token = world.token({})
    const { body } = await world.post('evaluation', deleting({}, { action_soft: true }), { token })
    expect(body.decision).toBe(false)
  })

  test.each(['a', '~odd id!', 'x'.repeat(128)])('gives back the X-Request-ID %s (c-2-5)', async (id) => {
    const trimmed = id.replace(' ', '_')
    for (const body of [question('alice', 'read', 'record-1'), {}]) {
      const { headers } = await world.post('evaluation', body, { headers: { 'x-request-id': trimmed } })
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
    const { status, body: problem } = await world.post('evaluation', body)
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
    const { status, body } = await world.send('POST', '/access/v1/evaluation', { token: world.pep, ...options })
    expect([status, body.code]).toEqual([400, 'request_invalid'])
  })

  test('takes a media type with parameters, in any case', async () => {
    const headers = { 'content-type': 'Application/JSON; charset=utf-8' }
    expect((await world.post('evaluation', question('alice', 'read', 'record-1'), { headers })).status).toBe(200)
  })

  test.each(['GET', 'PUT'])('is not to be had with %s', async (method) => {
    expect((await world.send(method, '/access/v1/evaluation', { token: world.pep })).status).toBe(405)
  })
})
