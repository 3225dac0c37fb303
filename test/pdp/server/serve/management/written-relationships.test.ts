/** Relationships over the management API, and what the model of an app allows of them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Json, type Served, serve } from '../harness.ts'

let served: Served
let token: string
beforeAll(async () => {
  served = await serve()
  token = await served.manager()
  await served.send('PUT', '/v1/organizations/acme', { token, body: { name: 'Acme' } })
})
afterAll(() => served.close())

const send = async (method: string, path: string, body?: unknown) => {
  const answer = await served.send(method, path, { token, ...(body === undefined ? {} : { body }) })
  return [answer.status, answer.body] as const
}
const places = ([status, body]: readonly [number, Json]) => [
  status,
  ...(body.errors ?? []).map((issue: Json) => issue.pointer ?? issue.parameter),
]
const code = ([status, body]: readonly [number, Json]) => [status, body?.code]

describe('relationships', () => {
  const path = '/v1/organizations/acme/relationships'

  test('are written as text or in parts, idempotently, with a revision', async () => {
    const write = [
      'doc:1#viewer@user:ann',
      { object: 'doc:2', relation: 'viewer', subject: 'group:g#member', expires_at: '2030-01-01T00:00:00Z' },
    ]
    const [status, { revision, applied_count }] = await send('POST', path, { write })
    expect([status, applied_count]).toEqual([200, 2])
    const nothing = [200, { revision, applied_count: 0 }]
    expect(await send('POST', path, { write })).toEqual(nothing)
    expect(await send('POST', path, { delete: ['doc:9#viewer@user:ann'] })).toEqual(nothing)
    const [, { items }] = await send('GET', path)
    expect(items).toEqual([
      { object: 'doc:1', relation: 'viewer', subject: 'user:ann', expires_at: null },
      { object: 'doc:2', relation: 'viewer', subject: 'group:g#member', expires_at: '2030-01-01T00:00:00.000Z' },
    ])
    expect((await send('GET', `${path}?subject=user:ann`))[1].items).toHaveLength(1)
  })

  test('are written only when the preconditions hold', async () => {
    const tuple = 'doc:1#viewer@user:ann'
    expect(
      code(await send('POST', path, { write: ['doc:3#viewer@user:ann'], if: [{ tuple, exists: false }] })),
    ).toEqual([412, 'precondition_failed'])
    expect((await send('GET', `${path}?object=doc:3`))[1].items).toEqual([])
    expect((await send('POST', path, { write: ['doc:3#viewer@user:ann'], if: [{ tuple, exists: true }] }))[0]).toBe(200)
  })

  test('are listed in pages that say whether anything changed in between', async () => {
    const [, first] = await send('GET', `${path}?page_size=2`)
    expect([first.items.length, first.revision_unchanged]).toEqual([2, true])
    const [, second] = await send('GET', `${path}?page_size=2&page_token=${first.next_page_token}`)
    expect(second).toMatchObject({ next_page_token: null, revision: first.revision, revision_unchanged: true })
    await send('POST', path, { write: ['doc:9#viewer@user:ann'] })
    const [, late] = await send('GET', `${path}?page_size=2&page_token=${first.next_page_token}`)
    expect(late.revision_unchanged).toBe(false)
    await send('POST', path, { delete: ['doc:9#viewer@user:ann'] })
  })

  test('are refused as a whole, with every mistake and its place', async () => {
    const before = (await send('GET', path))[1].revision
    const answer = await send('POST', path, {
      write: [
        'doc:5#viewer@user:ann',
        'doc:5#viewer',
        { object: 'doc', relation: 'viewer', subject: 'user:ann' },
        'doc:5#viewer@user:ann',
      ],
      delete: ['organization:acme#owner@user:ann', 7],
      if: [{ tuple: 'x', exists: true }],
    })
    expect(places(answer)).toEqual([400, '/delete/1'])
    const again = await send('POST', path, {
      write: [
        'doc:5#viewer@user:ann',
        'doc:5#viewer',
        { object: 'doc', relation: 'viewer', subject: 'user:ann' },
        'doc:5#viewer@user:ann',
      ],
      if: [{ tuple: 'x', exists: true }],
    })
    expect(places(again)).toEqual([400, '/write/1', '/write/2', '/write/3', '/if/0/tuple'])
    const reserved = await send('POST', path, {
      write: ['doc:5#viewer@user:ann'],
      delete: ['organization:acme#owner@user:ann'],
    })
    expect(places(reserved)).toEqual([400, '/delete/0'])
    expect((await send('GET', path))[1].revision).toBe(before)
  })

  const many = (count: number) => Array.from({ length: count }, (_, i) => `many:${i}#viewer@user:ann`)
  test.each([
    ['nothing to do', {}, ['']],
    ['1,001 tuples', { write: many(1_001) }, ['/write']],
    ['1,001 tuples in two parts', { write: many(1_000), delete: ['doc:1#viewer@user:bo'] }, ['']],
    [
      'an expiry that is no instant',
      { write: [{ object: 'a:b', relation: 'c', subject: 'd:e', expires_at: 'soon' }] },
      ['/write/0/expires_at'],
    ],
    [
      'an expiry on a day that no calendar has',
      { write: [{ object: 'a:b', relation: 'c', subject: 'd:e', expires_at: '2030-02-31T00:00:00Z' }] },
      ['/write/0/expires_at'],
    ],
    [
      'a member that it does not know',
      { write: [{ object: 'a:b', relation: 'c', subject: 'd:e', x: 1 }] },
      ['/write/0/x'],
    ],
    ['a precondition without exists', { write: ['a:b#c@d:e'], if: [{ tuple: 'a:b#c@d:e' }] }, ['/if/0/exists']],
  ])('refuse %s', async (_, body, pointers) => {
    expect(places(await send('POST', path, body))).toEqual([400, ...pointers])
  })

  test('takes 1,000 tuples at once', async () => {
    expect((await send('POST', path, { write: many(1_000) }))[0]).toBe(200)
    expect((await send('POST', path, { delete: many(1_000) }))[0]).toBe(200)
  })

  test.each([
    'page_size=0',
    'page_size=1001',
    'page_size=-1',
    'page_size=x',
    'page_token=x',
    'page_token=',
    'pagesize=1',
    'page_size=1&page_size=2',
    'object=doc',
    'object=doc:1%23viewer',
    'relation=vi%20ew',
    'subject=ann',
    'subject=user:a%23',
    `page_token=${Buffer.from('["x",1]').toString('base64url')}`,
  ])('refuse a list with ?%s, naming it', async (query) => {
    expect(places(await send('GET', `${path}?${query}`))).toEqual([400, query.split('=')[0]])
  })
})

describe('type restrictions', () => {
  const path = '/v1/organizations/acme/relationships'
  const text =
    'model\n  schema 1.1\ntype file\n  relations\n    define owner: [user, user:*]\n    define reader: [group#member] or owner\n    define seen: owner\n'
  beforeAll(async () => {
    expect((await send('PUT', '/v1/apps/files/manifest', { model: text }))[0]).toBe(201)
  })

  test.each([
    ['a relation that the model lacks', 'file:1#writer@user:ann', 'type "file" has no relation "writer"'],
    ['a type of subject', 'file:1#owner@service:x', 'relation "owner" of type "file" does not allow service'],
    ['a wildcard', 'file:1#reader@user:*', 'relation "reader" of type "file" does not allow user:*'],
    ['a userset', 'file:1#owner@group:x#member', 'relation "owner" of type "file" does not allow group#member'],
    [
      'a userset’s relation',
      'file:1#reader@group:x#admin',
      'relation "reader" of type "file" does not allow group#admin',
    ],
    ['what is computed', 'file:1#seen@user:ann', 'relation "seen" of type "file" does not allow user'],
    [
      'what only roles give',
      'app:files#viewer@user:ann',
      'what is held on an app comes from roles only; grant a role of the app instead',
    ],
  ])('refuse %s, in a request and in an import, and let it be deleted', async (_, tuple, detail) => {
    const good = 'file:1#owner@user:ann'
    const [status, body] = await send('POST', path, { write: [good, tuple] })
    expect([status, body.errors]).toEqual([400, [{ pointer: '/write/1', detail }]])
    const headers = { 'content-type': 'text/plain' }
    const imported = await served.send('POST', `${path}:import`, { token, headers, raw: `${good}\n${tuple}\n` })
    expect([imported.status, imported.body.errors]).toEqual([400, [{ line: 2, detail }]])
    expect(await send('GET', `${path}?object=file:1`)).toMatchObject([200, { items: [] }])
    expect((await send('POST', path, { delete: [tuple] }))[0]).toBe(200)
  })

  test('take what the model allows, and anything of a type without a model', async () => {
    const write = ['file:2#owner@user:*', 'file:2#reader@group:x#member', 'free:1#any@file:2#reader']
    expect((await send('POST', path, { write }))[0]).toBe(200)
    expect((await send('POST', path, { delete: write }))[0]).toBe(200)
  })

  test('of everybody are refused where no model lets them count, and may be deleted', async () => {
    const [status, body] = await send('POST', path, { write: ['free:1#viewer@user:*'] })
    expect([status, body.errors[0].detail]).toEqual([
      400,
      'type "free" has no model, so user:* would never count: it needs a model that says define viewer: [user:*]',
    ])
    expect(await send('GET', `${path}?object=free:1`)).toMatchObject([200, { items: [] }])
    expect((await send('POST', path, { delete: ['free:1#viewer@user:*'] }))[0]).toBe(200)
    for (const tuple of ['group:all#member@user:*', 'group:all#owner@user:*'])
      expect((await send('POST', path, { write: [tuple] }))[0]).toBe(400)
  })
})
