import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CONTEXT, type Json, type SendOptions } from '../harness.ts'
import { openRecords, question, record, user, type World } from './records.ts'

let world: World
beforeAll(async () => {
  world = await openRecords()
})
afterAll(() => world.close())

describe('a search', () => {
  const subjects = (resource: string): Json => ({
    ...{ subject: { type: 'user' }, action: { name: 'read' }, resource: record(resource) },
  })
  const resources: Json = { subject: user('alice'), action: { name: 'read' }, resource: { type: 'record' } }
  const actions: Json = { subject: user('alice'), resource: record('record-1') }
  const found = async (path: string, body: Json, options: SendOptions = {}) => {
    const answer = await world.post(`search/${path}`, body, options)
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
    const expected = [record('a:b'), record('record-1'), record('record-2')]
    expect(await found('resource', resources)).toEqual(expected)
    expect(await found('resource', { ...resources, resource: { type: 'record', id: 'x' } })).toEqual(expected)
  })

  test('of routes knows HTTP methods as an evaluation does, in upper case', async () => {
    const route = { type: 'route', id: '/todos/{id}' }
    const action = { name: 'GET' }
    expect((await world.post('evaluation', { subject: user('alice'), action, resource: route })).body.decision).toBe(
      true,
    )
    expect(await found('subject', { subject: { type: 'user' }, action, resource: route })).toEqual([user('alice')])
    expect(await found('resource', { subject: user('alice'), action, resource: { type: 'route' } })).toEqual([route])
  })

  test('for actions lists what the subject may (c-4-4-1)', async () => {
    expect(await found('action', actions)).toEqual([{ name: 'read' }, { name: 'write' }])
  })

  test('says of everybody that it is public, and lists nobody who has no name', async () => {
    const tuple = { object: 'record:open', relation: 'read', subject: 'user:*', expiresAtMs: null }
    await world.store.write('acme', [{ kind: 'tuple', op: 'write', tuple }], { context: CONTEXT })
    const { body } = await world.post('search/subject', subjects('open'))
    expect(body.context).toMatchObject({ public: true })
    expect(body.results.map(({ id }: Json) => id)).not.toContain('*')
    await world.store.write('acme', [{ kind: 'tuple', op: 'delete', tuple }], { context: CONTEXT })
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
    ['resource', resources, [record('a:b'), record('record-1'), record('record-2')]],
    ['action', actions, [{ name: 'read' }, { name: 'write' }]],
  ])('for %s leads from page to page, without a limit beside the token (c-4-5)', async (path, body, expected) => {
    const all: Json[] = []
    let token = ''
    for (let pages = 0; pages === 0 || token !== ''; pages += 1) {
      const page = pages === 0 ? { limit: 1 } : { token }
      const answer = await world.post(`search/${path}`, { ...body, page })
      expect(answer.body.results.length).toBeLessThanOrEqual(1)
      all.push(...answer.body.results)
      token = answer.body.page.next_token
      expect(pages).toBeLessThan(10)
    }
    expect(all).toEqual(expected)
  })

  const SEARCHES: [string, Json][] = [
    ['subject', subjects('record-1')],
    ['resource', resources],
    ['action', actions],
  ]
  test.each(SEARCHES)('for %s says at which revision it was read', async (path, body) => {
    const { context } = (await world.post(`search/${path}`, body)).body
    expect(context).toEqual({ revision: expect.stringMatching(/^[\w-]+$/), consistent: true })
    expect((await world.post(`search/${path}`, body)).body.context).toEqual(context)
  })

  test.each(SEARCHES)(
    'for %s says when the data changed between two pages, and on every page after',
    async (path, body) => {
      const first = (await world.post(`search/${path}`, { ...body, page: { limit: 1 } })).body
      const tuple = { object: 'record:later', relation: 'read', subject: 'user:someone', expiresAtMs: null }
      await world.store.write('acme', [{ kind: 'tuple', op: 'write', tuple }], { context: CONTEXT })
      const page = { token: first.page.next_token, limit: 1 }
      const second = (await world.post(`search/${path}`, { ...body, page })).body
      expect([first.context.consistent, second.context.consistent]).toEqual([true, false])
      expect(second.context.revision).not.toBe(first.context.revision)
      if (second.page.next_token !== '') {
        const third = await world.post(`search/${path}`, { ...body, page: { token: second.page.next_token } })
        expect(third.body.context.consistent).toBe(false)
      }
      await world.store.write('acme', [{ kind: 'tuple', op: 'delete', tuple }], { context: CONTEXT })
    },
  )

  test.each(SEARCHES)('for %s is not disturbed by a revoked token between two pages', async (path, body) => {
    const first = (await world.post(`search/${path}`, { ...body, page: { limit: 1 } })).body
    await world.sessions.endToken(path, CONTEXT)
    const second = await world.post(`search/${path}`, { ...body, page: { token: first.page.next_token } })
    expect(second.body.context).toEqual(first.context)
  })

  test.each(SEARCHES)('for %s takes another limit beside the token, and keeps it', async (path, body) => {
    const page = async (value: Json) => (await world.post(`search/${path}`, { ...body, page: value })).body
    const first = await page({ limit: 1 })
    const token = first.page.next_token
    const none = await page({ token, limit: 0 })
    expect([none.results, none.page.count]).toEqual([[], 0])
    expect((await page({ token: none.page.next_token })).results).toEqual((await page({ token })).results)
    const rest = await page({ token, limit: 1_000 })
    expect([...first.results, ...rest.results]).toEqual((await page({})).results)
    expect(rest.page.next_token).toBe('')
  })

  test.each(SEARCHES)('for %s refuses a token that another search gave', async (path, body) => {
    for (const [other, question] of SEARCHES) {
      if (other === path) continue
      const { page } = (await world.post(`search/${other}`, { ...question, page: { limit: 1 } })).body
      expect((await world.post(`search/${path}`, { ...body, page: { token: page.next_token } })).status).toBe(400)
    }
    const { page } = (await world.post(`search/${path}`, { ...body, page: { limit: 1 } })).body
    const [, limit, digest] = JSON.parse(Buffer.from(page.next_token, 'base64url').toString())
    const forged = Buffer.from(JSON.stringify(['read', limit, digest])).toString('base64url')
    expect((await world.post(`search/${path}`, { ...body, page: { token: forged } })).status).toBe(400)
  })

  test('with a limit of 0 finds nothing yet, and leads on', async () => {
    const { body } = await world.post('search/subject', { ...subjects('record-1'), page: { limit: 0 } })
    expect(body.results).toEqual([])
    const next = await world.post('search/subject', { ...subjects('record-1'), page: { token: body.page.next_token } })
    expect(next.body.results).toEqual([user('alice'), user('bob')])
  })

  test.each([
    ['of another question', () => ({ ...subjects('record-2') })],
    ['with another context', () => ({ ...subjects('record-1'), context: { x: 1 } })],
  ])('refuses the token %s', async (_name, other) => {
    const { body } = await world.post('search/subject', { ...subjects('record-1'), page: { limit: 1 } })
    const page = { token: body.page.next_token }
    const answer = await world.post('search/subject', { ...other(), page })
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
    expect((await world.post(`search/${path}`, body)).status).toBe(400)
  })

  test('is for services, and for people about themselves', async () => {
    const token = world.token({})
    expect((await world.post('search/subject', subjects('record-1'), { token })).status).toBe(403)
    expect((await world.post('search/resource', { ...resources, subject: user('bob') }, { token })).status).toBe(403)
    expect(await found('resource', resources, { token })).toEqual([
      record('a:b'),
      record('record-1'),
      record('record-2'),
    ])
    expect(await found('action', actions, { token })).toEqual([{ name: 'read' }, { name: 'write' }])
    expect((await world.post('search/action', actions, { token: 'never' })).status).toBe(401)
    const plain = await world.manager({ client: 'searcher', organization: 'acme', scopes: [] })
    expect((await world.post('search/action', actions, { token: plain })).status).toBe(403)
  })

  test('by a token that names groups counts them as an evaluation does, also in “but not”', async () => {
    const id = '~corp~eve'
    const memberships = { groups: ['~corp~group:staff', '~corp~group:trainees'], organizations: ['acme'] }
    const token = world.token({ subject: { type: 'user', id }, memberships })
    for (const [resource, expected] of [
      ['record-1', [{ name: 'review' }]],
      ['record-2', [{ name: 'blocked' }]],
    ] as const) {
      expect(await found('action', { subject: user(id), resource: record(resource) }, { token })).toEqual(expected)
      const { decision } = (await world.post('evaluation', question(id, 'review', resource), { token })).body
      expect(decision).toBe(resource === 'record-1')
    }
    const all = { subject: user(id), action: { name: 'review' }, resource: { type: 'record' } }
    const refused = await world.post('search/resource', all, { token })
    expect([refused.status, refused.body.code]).toEqual([403, 'permission_denied'])
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
          const { decision } = (await world.post('evaluation', question(id, name, resource))).body
          expect([id, name, resource, listed.includes(resource)]).toEqual([id, name, resource, decision])
          const allowed = await found('action', { subject: user(id), resource: record(resource) })
          expect(allowed.some((one: Json) => one.name === name)).toBe(decision)
        }
      }
    }
  })
})
