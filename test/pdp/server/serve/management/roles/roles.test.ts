/** Organization-wide roles and role grants, and what the very next decision makes of them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Json, type Served, seedAcme, serve } from '../../harness.ts'

let served: Served
let token: string
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  token = await served.manager()
  await send('PUT', '/v1/organizations/child', { name: 'Child', parent: 'acme' })
  await send('PUT', '/v1/organizations/far', { name: 'Far' })
  const roles = {
    approver: { name: 'Approver', permissions: ['invoices:approve'] },
    reader: { name: 'Reader', permissions: ['invoices:read'] },
  }
  const permissions = { 'invoices:approve': 'Approve', 'invoices:read': 'Read' }
  await send('PUT', '/v1/apps/billing/manifest', { permissions, roles })
})
afterAll(() => served.close())

const send = async (method: string, path: string, body?: unknown, as = token) => {
  const answer = await served.send(method, path, { token: as, ...(body === undefined ? {} : { body }) })
  return [answer.status, answer.body] as const
}
const code = ([status, body]: readonly [number, Json]) => [status, body?.code]
const pointers = ([status, body]: readonly [number, Json]) => [
  status,
  ...(body?.errors ?? []).map(({ pointer, parameter }: Json) => pointer ?? parameter),
]
const may = async (user: string, organization: string, permission = 'invoices:approve') => {
  const bearer = served.token({ subject: { type: 'user', id: user }, organization })
  const body = { permissions: [{ relation: permission, resource: 'app:billing' }] }
  return (await served.send('POST', '/oauth/decisions', { token: bearer, body })).body.permissions[0].allowed
}
const ACME = '/v1/organizations/acme/role-grants'
const GRANT = { app: 'billing', role: 'approver', subject: 'user:alice' }

describe('organization-wide roles', () => {
  test('are declared, changed, listed and deleted', async () => {
    const role = { name: 'Auditor', permissions: ['invoices:read'] }
    expect(await send('PUT', '/v1/roles/auditor', role)).toEqual([201, { key: 'auditor', ...role }])
    expect(await send('PUT', '/v1/roles/auditor', { ...role, name: 'Au' })).toMatchObject([200, { name: 'Au' }])
    expect(await send('GET', '/v1/roles/auditor')).toMatchObject([200, { name: 'Au' }])
    await send('PUT', '/v1/roles/zoo', { name: 'Z', permissions: [] })
    expect(await send('GET', '/v1/roles?page_size=1')).toMatchObject([200, { items: [{ key: 'auditor' }] }])
    expect(await send('DELETE', '/v1/roles/zoo')).toEqual([204, null])
    expect(code(await send('DELETE', '/v1/roles/zoo'))).toEqual([404, 'not_found'])
    expect(code(await send('GET', '/v1/roles/zoo'))).toEqual([404, 'not_found'])
  })

  test('are not deleted while somebody is granted them', async () => {
    await send('PUT', '/v1/roles/held', { name: 'Held', permissions: ['a:b'] })
    const [, { id }] = await send('POST', ACME, { role: 'held', subject: 'user:alice' })
    const [status, body] = await send('DELETE', '/v1/roles/held')
    expect([status, body.detail]).toEqual([409, expect.stringContaining('user:alice in organization acme')])
    await send('DELETE', `${ACME}/${id}`)
    expect((await send('DELETE', '/v1/roles/held'))[0]).toBe(204)
  })

  test.each<[string, string, object, unknown[]]>([
    ['a key that is none', 'A', { name: 'x', permissions: [] }, ['key']],
    [
      'a permission that is none, a name that is none',
      'x',
      { name: '', permissions: ['A'] },
      ['/name', '/permissions/0'],
    ],
    ['a permission twice', 'x', { name: 'x', permissions: ['a', 'a'] }, ['/permissions']],
    ['nothing at all', 'x', {}, ['/name', '/permissions']],
    [
      'more than a token can carry',
      'x',
      { name: 'x', permissions: Array.from({ length: 500 }, (_, i) => `thing:${i}-do`) },
      ['/permissions'],
    ],
  ])('are refused for %s', async (_, key, body, wanted) => {
    expect(pointers(await send('PUT', `/v1/roles/${key}`, body))).toEqual([400, ...wanted])
  })

  test('are refused when somebody’s token would grow too large', async () => {
    const many = (from: number) => Array.from({ length: 140 }, (_, i) => `thing:${from + i}-do-it-all`)
    await send('PUT', '/v1/roles/one', { name: 'x', permissions: many(0) })
    await send('PUT', '/v1/roles/two', { name: 'x', permissions: [] })
    for (const role of ['one', 'two'])
      await send('POST', '/v1/organizations/far/role-grants', { role, subject: 'user:bob' })
    expect(pointers(await send('PUT', '/v1/roles/two', { name: 'x', permissions: many(200) }))).toEqual([
      409,
      '/permissions',
    ])
    // The same for a grant.
    await send('PUT', '/v1/roles/three', { name: 'x', permissions: many(400) })
    expect(pointers(await send('POST', ACME, { role: 'three', subject: 'user:bob' }))).toEqual([409, '/role'])
    expect((await send('POST', ACME, { role: 'three', subject: 'user:alice' }))[0]).toBe(200)
  })
})

describe('role grants', () => {
  test('count on the very next decision, and so does their end', async () => {
    expect(await may('alice', 'acme')).toBe(false)
    const [status, grant] = await send('POST', ACME, GRANT)
    expect([status, grant]).toEqual([200, { id: expect.any(String), ...GRANT }])
    expect([await may('alice', 'acme'), await may('alice', 'child'), await may('alice', 'far')]).toEqual([
      true,
      true,
      false,
    ])
    expect(await send('POST', ACME, GRANT)).toEqual([200, grant])
    expect(await send('GET', `${ACME}?subject=user:alice`)).toMatchObject([
      200,
      { items: expect.arrayContaining([grant]) },
    ])
    expect(await send('DELETE', `${ACME}/${grant.id}`)).toEqual([204, null])
    expect(await may('alice', 'acme')).toBe(false)
    expect(code(await send('DELETE', `${ACME}/${grant.id}`))).toEqual([404, 'not_found'])
  })

  test('go to groups of the organization, and to everywhere', async () => {
    const [, inGroup] = await send('POST', ACME, { ...GRANT, subject: 'group:accounting' })
    expect([await may('bob', 'acme'), await may('bob', 'far')]).toEqual([true, false])
    await send('DELETE', `${ACME}/${inGroup.id}`)
    const [, everywhere] = await send('POST', '/v1/role-grants', { ...GRANT, subject: 'user:bob' })
    expect([await may('bob', 'acme'), await may('bob', 'far')]).toEqual([true, true])
    expect(await send('GET', '/v1/role-grants')).toMatchObject([200, { items: [everywhere] }])
    expect(code(await send('DELETE', `${ACME}/${everywhere.id}`))).toEqual([404, 'not_found'])
    expect((await send('DELETE', `/v1/role-grants/${everywhere.id}`))[0]).toBe(204)
    expect(await may('bob', 'far')).toBe(false)
  })

  test('to a group with one member are refused while it has others', async () => {
    const write = (expires_at: string | null) =>
      send('POST', '/v1/organizations/far/relationships', {
        write: ['user:ann', 'user:bea'].map((subject) => ({
          object: 'group:one',
          relation: 'member',
          subject,
          expires_at,
        })),
      })
    const give = (only_member: string) =>
      send('POST', '/v1/organizations/far/role-grants', { ...GRANT, subject: 'group:one', only_member })
    for (const end of [null, new Date(Date.now() + 60_000).toISOString()]) {
      expect((await write(end))[0]).toBe(200)
      expect(code(await give('user:ann'))).toEqual([409, 'conflict'])
    }
    expect((await send('GET', '/v1/organizations/far/role-grants?subject=group:one'))[1].items).toEqual([])
    const was = (subject: string) => ({ object: 'group:one', relation: 'member', subject })
    await send('POST', '/v1/organizations/far/relationships', { delete: [was('user:bea')] })
    expect(code(await give('user:bea'))).toEqual([409, 'conflict'])
    expect((await give('user:ann'))[0]).toBe(200)
    const toPerson = await send('POST', ACME, { ...GRANT, only_member: 'user:alice' })
    expect(code(toPerson)).toEqual([400, 'request_invalid'])
  })

  test('are listed in pages', async () => {
    const subjects = ['group:a', 'group:b', 'group:c']
    for (const subject of subjects) await send('POST', '/v1/organizations/child/role-grants', { ...GRANT, subject })
    const path = '/v1/organizations/child/role-grants?page_size=2'
    const [, first] = await send('GET', path)
    const [, second] = await send('GET', `${path}&page_token=${first.next_page_token}`)
    expect([first.items.length, second.items.length, second.next_page_token]).toEqual([2, 1, null])
    expect([...first.items, ...second.items].map(({ subject }: Json) => subject).toSorted()).toEqual(subjects)
  })

  test.each<[string, string, object, readonly unknown[]]>([
    ['an unknown role', ACME, { ...GRANT, role: 'nobody' }, [400, '/role']],
    ['an unknown app', ACME, { ...GRANT, app: 'nothing' }, [400, '/app']],
    ['a role of an app, named without it', ACME, { role: 'approver', subject: 'user:alice' }, [400, '/role']],
    ['a subject of another type', ACME, { ...GRANT, subject: 'invoice:1' }, [400, '/subject']],
    ['a subject without an id', ACME, { ...GRANT, subject: 'user:' }, [400, '/subject']],
    ['a userset', ACME, { ...GRANT, subject: 'group:x#member' }, [400, '/subject']],
    ['a wildcard', ACME, { ...GRANT, subject: 'user:*' }, [400, '/subject']],
    ['a group, everywhere', '/v1/role-grants', { ...GRANT, subject: 'group:x' }, [400, '/subject']],
    ['a user who does not exist', ACME, { ...GRANT, subject: 'user:nobody' }, [404]],
    ['a service that does not exist', ACME, { ...GRANT, subject: 'service:nobody' }, [404]],
    ['nothing', ACME, {}, [400, '/role', '/subject']],
    ['an unknown member', ACME, { ...GRANT, id: 'x' }, [400, '/id']],
    ['an unknown organization', '/v1/organizations/nowhere/role-grants', GRANT, [404]],
  ])('are refused for %s', async (_, path, body, wanted) => {
    expect(pointers(await send('POST', path, body))).toEqual(wanted)
  })

  test('by a bound client give only what it holds itself, only where it manages', async () => {
    const bound = await served.manager({ client: 'acme-admin', organization: 'acme' })
    expect(code(await send('POST', ACME, GRANT, bound))).toEqual([403, 'permission_denied'])
    await send('POST', ACME, { ...GRANT, subject: 'service:acme-admin' })
    expect((await send('POST', ACME, GRANT, bound))[0]).toBe(200)
    expect((await send('POST', '/v1/organizations/child/role-grants', GRANT, bound))[0]).toBe(200)
    expect(code(await send('POST', ACME, { ...GRANT, role: 'reader' }, bound))).toEqual([403, 'permission_denied'])
    expect(code(await send('POST', '/v1/organizations/far/role-grants', GRANT, bound))).toEqual([
      403,
      'permission_denied',
    ])
    for (const [method, path] of [
      ['POST', '/v1/role-grants'],
      ['GET', '/v1/role-grants'],
      ['GET', '/v1/roles'],
      ['DELETE', '/v1/roles/x'],
    ] as const)
      expect(code(await send(method, path, method === 'POST' ? GRANT : undefined, bound))).toEqual([
        403,
        'permission_denied',
      ])
  })
})
