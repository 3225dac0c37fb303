/** Questions about any subject, and with tuples of their own, over HTTP and gRPC: the same answers as in process. */
import { type ServiceError, status } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AskedSubject } from '../../../../../pdp/shared/domain/decision.ts'
import { put } from '../../../../support/tuples.ts'
import { type DecisionClient, decisionClient } from '../decision-client.ts'
import { CONTEXT, type Json, type Served, seedAcme, serve } from '../harness.ts'

let served: Served
let client: DecisionClient
let manager: string
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  const stored = ['Projekt:Ä#Kann_Lesen@team:x#member', 'team:x#member@robot:r', 'page:1#viewer@group:g#member']
  await served.store.write(
    'acme',
    stored.map((text) => put(text)),
    { context: CONTEXT },
  )
  manager = await served.manager({ organization: 'acme', scopes: ['decisions:read'] })
  client = decisionClient(served.grpc.address)
})
afterAll(async () => {
  client.close()
  await served.close()
})

const overGrpc: DecisionClient['decide'] = (request) => client.decide(request)
const reader = () =>
  served.token({
    subject: { type: 'service', id: 'backend' },
    clientId: 'backend',
    scopes: new Set(['decisions:read']),
  })
const tuple = (object: string, relation: string, subject: string) => ({ object, relation, subject })
const IN_GROUP = tuple('group:g', 'member', 'robot:r2')

describe('a question about any subject', () => {
  test.each<[AskedSubject, string, string, readonly ReturnType<typeof tuple>[], boolean]>([
    [{ type: 'robot', id: 'r' }, 'Kann_Lesen', 'Projekt:Ä', [], true],
    [{ type: 'team', id: 'x', relation: 'member' }, 'Kann_Lesen', 'Projekt:Ä', [], true],
    [{ type: 'team', id: 'x' }, 'Kann_Lesen', 'Projekt:Ä', [], false],
    [{ type: 'robot', id: 'r' }, 'kann_lesen', 'Projekt:Ä', [], false],
    [{ type: 'robot', id: 'r2' }, 'viewer', 'page:1', [], false],
    [{ type: 'robot', id: 'r2' }, 'viewer', 'page:1', [IN_GROUP], true],
    [{ type: 'user', id: 'nobody' }, 'viewer', 'page:1', [tuple('page:1', 'viewer', 'user:nobody')], false],
    [{ type: 'user', id: '*' }, 'viewer', 'page:1', [], false],
  ])('%j %s %s with %j is answered %s by all', async (subject, relation, resource, tuples, allowed) => {
    const permissions = [{ relation, resource }]
    const token = reader()
    const { status: code, body } = await served.send('POST', '/oauth/decisions', {
      token,
      body: { permissions, subject, contextual_tuples: tuples },
    })
    expect([code, body.subject, body.permissions]).toEqual([200, subject, [{ relation, resource, allowed }]])
    const answer = await overGrpc({ token, permissions, subject, contextualTuples: [...tuples] })
    expect(answer.permissions).toMatchObject([{ allowed }])
    expect(answer.subject).toMatchObject(subject)
    const found = await served.send('POST', '/v1/organizations/acme/list-resources', {
      token: manager,
      body: { subject, relation, type: resource.split(':')[0], contextual_tuples: tuples },
    })
    expect([found.status, found.body.items]).toEqual([200, allowed ? [resource] : []])
  })

  test('lists subjects by the tuples of the question too', async () => {
    const body = { resource: 'page:1', relation: 'viewer', type: 'robot' }
    const list = (more: object) =>
      served.send('POST', '/v1/organizations/acme/list-subjects', { token: manager, body: { ...body, ...more } })
    expect((await list({ contextual_tuples: ['group:g#member@robot:r2'] })).body.items).toEqual(['robot:r2'])
    expect((await list({})).body.items).toEqual([])
  })

  test.each<[string, object, string]>([
    ['an empty type', { subject: { type: '', id: 'x' } }, '/subject/type'],
    ['a type with a space', { subject: { type: 'te am', id: 'x' } }, '/subject/type'],
    ['an empty id', { subject: { type: 'team', id: '' } }, '/subject/id'],
    ['an id with a #', { subject: { type: 'team', id: 'x#member' } }, '/subject/id'],
    ['a relation of everybody', { subject: { type: 'team', id: '*', relation: 'member' } }, '/subject/relation'],
    ['another member', { subject: { type: 'team', id: 'x', rel: 'member' } }, '/subject/rel'],
    ['a tuple that is text of another form', { contextual_tuples: ['page:1'] }, '/contextual_tuples/0'],
    [
      'a tuple without a subject',
      { contextual_tuples: [{ object: 'a:b', relation: 'c' }] },
      '/contextual_tuples/0/subject',
    ],
    ['a membership', { contextual_tuples: ['a:b#c@d:e', 'organization:acme#owner@user:a'] }, '/contextual_tuples/1'],
    ['a right on an app', { contextual_tuples: ['app:crm#read@user:a'] }, '/contextual_tuples/0'],
    ['a tuple twice', { contextual_tuples: ['a:b#c@d:e', 'a:b#c@d:e'] }, '/contextual_tuples/1'],
    [
      'too many tuples',
      { contextual_tuples: Array.from({ length: 101 }, (_, i) => `a:b#c@d:${i}`) },
      '/contextual_tuples',
    ],
    [
      'a tuple that expires',
      { contextual_tuples: [{ ...IN_GROUP, expires_at: null }] },
      '/contextual_tuples/0/expires_at',
    ],
  ])('is refused with %s, at its place', async (_, part, place) => {
    const body = { permissions: [{ relation: 'viewer', resource: 'page:1' }], ...part }
    const answer = await served.send('POST', '/oauth/decisions', { token: reader(), body })
    expect(answer.status).toBe(400)
    expect(answer.body.errors.map(({ pointer }: Json) => pointer)).toContain(place)
  })

  test('is refused over gRPC as well', async () => {
    const asked = { token: reader(), permissions: [{ relation: 'viewer', resource: 'page:1' }] }
    for (const part of [
      { subject: { type: 'te am', id: 'x' } },
      { contextualTuples: [tuple('organization:acme', 'owner', 'user:a')] },
    ]) {
      const err = await overGrpc({ ...asked, ...part }).catch((err: ServiceError) => err)
      expect(err).toMatchObject({ code: status.INVALID_ARGUMENT })
    }
  })

  test.each([{ subject: { type: 'robot', id: 'r' } }, { contextual_tuples: ['page:1#viewer@user:alice'] }])(
    'is not for the bearer of a user’s token to ask: %j',
    async (part) => {
      const body = { permissions: [{ relation: 'viewer', resource: 'page:1' }], ...part }
      expect((await served.send('POST', '/oauth/decisions', { token: served.token({}), body })).status).toBe(403)
    },
  )
})

describe('a subject as tuples spell it', () => {
  const ask = async (subject: unknown) => {
    const permissions = [{ relation: 'Kann_Lesen', resource: 'Projekt:Ä' }]
    const decided = await served.send('POST', '/oauth/decisions', { token: reader(), body: { permissions, subject } })
    const body = { subject, relation: 'Kann_Lesen', type: 'Projekt' }
    const listed = await served.send('POST', '/v1/organizations/acme/list-resources', { token: manager, body })
    return { decided, listed }
  }
  test.each([
    ['robot:r', { type: 'robot', id: 'r' }],
    ['team:x#member', { type: 'team', id: 'x', relation: 'member' }],
    ['robot:a:b', { type: 'robot', id: 'a:b' }],
    ['user:*', { type: 'user', id: '*' }],
  ])('%s is the same as in parts, in a decision and in a list', async (text, parts) => {
    const [spelled, inParts] = [await ask(text), await ask(parts)]
    expect(spelled.decided.body).toEqual(inParts.decided.body)
    expect([spelled.decided.status, spelled.decided.body.subject]).toEqual([200, parts])
    expect([spelled.listed.status, spelled.listed.body.items]).toEqual([200, inParts.listed.body.items])
  })

  test.each(['', 'robot', 'robot:', ':r', 'team:x#', 'team:x#a#b', 'a b:c', 'x'.repeat(3_000), 7, null, ['robot:r']])(
    'is refused when it is %j',
    async (subject) => {
      const { decided, listed } = await ask(subject)
      expect([decided.status, listed.status]).toEqual([400, 400])
      expect(JSON.stringify(decided.body)).toContain('/subject')
    },
  )
})
