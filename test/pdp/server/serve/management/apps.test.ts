/** Manifests: what they may say, what a dry run tells, and which changes are refused for what is stored. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { put as write } from '../../../../support/tuples.ts'
import { CONTEXT, type Json, type Served, seedAcme, serve } from '../harness.ts'

let served: Served
let token: string
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  token = await served.manager()
  for (const [id, parent] of [['child', 'acme'] as const, ['far', undefined] as const])
    await send('PUT', `/v1/organizations/${id}`, { name: id, parent })
  await put('billing', BILLING)
  await send('PUT', '/v1/roles/auditor', { name: 'Auditor', permissions: ['invoices:read'] })
})
afterAll(() => served.close())

const send = async (method: string, path: string, body?: unknown) => {
  const answer = await served.send(method, path, { token, ...(body === undefined ? {} : { body }) })
  return [answer.status, answer.body] as const
}
const put = (app: string, body: unknown, query = '') => send('PUT', `/v1/apps/${app}/manifest${query}`, body)
const dryRun = (app: string, body: unknown) => put(app, body, '?dry_run=true')
const yaml = async (text: string) => {
  const headers = { 'content-type': 'application/yaml' }
  const { status, body } = await served.send('PUT', '/v1/apps/yaml/manifest', { token, raw: text, headers })
  return [status, body] as const
}
const issues = ([status, body]: readonly [number, Json]) => [
  status,
  ...(body.errors ?? []).map(({ pointer, line, column }: Json) => pointer ?? [line, column]),
]
const grant = (organization: string, body: object) =>
  send('POST', `/v1/organizations/${organization}/role-grants`, body)
const model = (...lines: string[]) => ['model', '  schema 1.1', 'type user', ...lines, ''].join('\n')
const DOC = model(
  'type doc',
  '  relations',
  '    define viewer: [user, user:*, group#member]',
  '    define editor: [user]',
)
const role = (...permissions: string[]) => ({ name: 'A role', permissions })
const BILLING = {
  audiences: ['https://billing.example'],
  permissions: { 'invoices:read': 'Read', 'invoices:approve': 'Approve' },
  roles: { reader: role('invoices:read'), approver: role('invoices:read', 'invoices:approve') },
}

describe('a manifest', () => {
  test('is versioned, read, and listed by app', async () => {
    const other = { permissions: { 'a:b': 'x' } }
    expect(await put('zebra', other)).toMatchObject([201, { app: 'zebra', version: 1, audiences: [], model: null }])
    expect(await put('zebra', other)).toMatchObject([200, { version: 1 }])
    expect(await put('zebra', { ...other, app: 'zebra', model: DOC.replace('doc', 'page') })).toMatchObject([
      200,
      { version: 2 },
    ])
    expect(await send('GET', '/v1/apps/zebra/manifest')).toMatchObject([
      200,
      { version: 2, permissions: { 'a:b': 'x' } },
    ])
    const [, first] = await send('GET', '/v1/apps?page_size=1')
    const [, rest] = await send('GET', `/v1/apps?page_token=${first.next_page_token}`)
    expect([...first.items, ...rest.items].map(({ app }: Json) => app)).toEqual(['billing', 'zebra'])
  })

  test('may be YAML', async () => {
    const text =
      'audiences: ["https://yaml.example"]\npermissions:\n  a:b: Do it\nroles:\n  doer: {name: Doer, permissions: ["a:b"]}\n'
    expect(await yaml(text)).toMatchObject([201, { app: 'yaml', roles: { doer: { permissions: ['a:b'] } } }])
  })

  test.each<[string, string, unknown[]]>([
    ['bad indentation', 'permissions:\n  a: b\n c: d\n', [400, [3, 1]]],
    ['a key twice', 'permissions: {}\npermissions: {}\n', [400, [2, 1]]],
    ['an unclosed quote', 'model: "abc\n', [400, [2, 1]]],
    ['an unknown tag', 'model: !!js/function x\n', [400, [1, 8]]],
    ['an unknown member', 'modle: x\n', [400, '/modle']],
    ['a list', '- a\n', [400, '']],
  ])('in YAML is refused for %s, with the place', async (_, text, wanted) => {
    expect(issues(await yaml(text))).toEqual(wanted)
  })

  test('in YAML may not multiply itself', async () => {
    const bomb = `a: &a [x,x,x,x,x,x,x,x,x,x]\n${'bcdefgh'.replace(/./g, (c) => `${c}: &${c} [${Array(10).fill(`*${String.fromCharCode(c.charCodeAt(0) - 1)}`)}]\n`)}`
    expect((await yaml(bomb))[0]).toBe(400)
  })

  test.each([
    ['YAML where only JSON is taken', '/v1/users/x', 'application/yaml'],
    ['lines', '/v1/apps/x/manifest', 'application/x-ndjson'],
    ['a form', '/v1/apps/x/manifest', 'application/x-www-form-urlencoded'],
  ])('is refused as %s', async (_, path, type) => {
    const answer = await served.send('PUT', path, { token, raw: 'name: x', headers: { 'content-type': type } })
    expect([answer.status, answer.body.code]).toEqual([415, 'media_type_unsupported'])
  })

  test.each<[string, object, unknown[]]>([
    [
      'every mistake in audiences, permissions, roles and unknown members',
      { audiences: ['x', 'https://a#b', 'https://ok.example'], roles: { r: role('a:b') } },
      ['/audiences/0', '/audiences/1', '/roles/r/permissions/0'],
    ],
    [
      'keys that are none',
      { permissions: { 'A b': 'x' }, roles: { '': role() }, mdel: 1 },
      ['/mdel', '/permissions/A b', '/roles/'],
    ],
    ['another app’s name', { app: 'other' }, ['/app']],
    [
      'a model that does not parse',
      { model: 'model\n  schema 1.1\ntype user\ntype doc\n  relations\n    define x: [' },
      ['/model'],
    ],
    ['a model with an unknown relation', { model: model('type doc', '  relations', '    define a: b') }, ['/model']],
    [
      'a relation that depends on its own absence',
      { model: model('type doc', '  relations', '    define a: [user] but not a') },
      ['/model'],
    ],
    [
      'a role that no token could carry',
      { permissions: MANY(500), roles: { all: role(...Object.keys(MANY(500))) } },
      ['/roles/all'],
    ],
  ])('is refused for %s', async (_, body, pointers) => {
    const answer = await put('bad', body)
    expect([answer[0], ...new Set(issues(answer).slice(1).toSorted())]).toEqual([400, ...pointers])
    expect((await send('GET', '/v1/apps/bad/manifest'))[0]).toBe(404)
  })

  test('names the condition that it cannot evaluate', async () => {
    const conditional = model(
      'type doc',
      '  relations',
      '    define a: [user with workday]',
      'condition workday(d: string) {',
      '  d.unheardOf()',
      '}',
    )
    const [status, body] = await put('bad', { model: conditional })
    expect([status, body.errors[0].detail]).toEqual([400, expect.stringContaining('workday')])
  })

  test('keeps audiences and types with the app that first declared them', async () => {
    expect((await put('thief', { audiences: ['https://billing.example'] }))[0]).toBe(409)
    expect((await dryRun('thief', { audiences: ['https://billing.example'] }))[0]).toBe(409)
    expect((await put('thief', { model: DOC.replace('doc', 'page') }))[0]).toBe(409)
    expect(issues(await dryRun('thief', { model: DOC.replace('doc', 'page') }))).toEqual([409, '/model'])
  })

  test('needs a client of the environment', async () => {
    const bound = await served.manager({ client: 'bound', organization: 'acme' })
    for (const [method, path] of [
      ['PUT', '/v1/apps/x/manifest'],
      ['GET', '/v1/apps'],
      ['GET', '/v1/apps/billing/manifest'],
    ] as const)
      expect(
        (await served.send(method, path, { token: bound, ...(method === 'PUT' ? { body: {} } : {}) })).status,
      ).toBe(403)
  })
})

function MANY(count: number): { [key: string]: string } {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`thing-${i}:do`, 'Do it']))
}

describe('a dry run', () => {
  test('says who gains and who loses what, and changes nothing', async () => {
    await grant('acme', { app: 'billing', role: 'reader', subject: 'user:alice' })
    await grant('far', { app: 'billing', role: 'approver', subject: 'group:bosses' })
    await send('POST', '/v1/role-grants', { app: 'billing', role: 'approver', subject: 'user:bob' })
    const before = await send('GET', '/v1/apps/billing/manifest')
    const roles = { reader: role('invoices:read', 'invoices:approve'), approver: role('invoices:approve') }
    expect(await dryRun('billing', { ...BILLING, roles })).toEqual([
      200,
      {
        dry_run: true,
        version: 2,
        gains: [{ permission: 'invoices:approve', subject: 'user:alice', organization: 'acme' }],
        loses: [
          { permission: 'invoices:read', subject: 'user:bob', organization: null },
          { permission: 'invoices:read', subject: 'group:bosses', organization: 'far' },
        ],
        complete: true,
      },
    ])
    expect(await send('GET', '/v1/apps/billing/manifest')).toEqual(before)
  })

  test('does not count what is held by way of another grant', async () => {
    await grant('child', { app: 'billing', role: 'approver', subject: 'user:alice' })
    await send('POST', '/v1/organizations/far/role-grants', { role: 'auditor', subject: 'group:bosses' })
    const roles = { ...BILLING.roles, approver: role('invoices:approve') }
    const [, { gains, loses }] = await dryRun('billing', { ...BILLING, roles })
    expect(gains).toEqual([])
    expect(loses).toEqual([{ permission: 'invoices:read', subject: 'user:bob', organization: null }])
  })

  test('says that everybody loses what a removed role gave', async () => {
    const [, { loses }] = await dryRun('billing', { ...BILLING, roles: {} })
    expect(loses).toContainEqual({ permission: 'invoices:approve', subject: 'user:alice', organization: 'child' })
  })

  test.each(['yes', '', 'TRUE'])('is not asked for by %j', async (value) => {
    expect(issues(await put('billing', BILLING, `?dry_run=${value}`))[0]).toBe(400)
  })
})

describe('a manifest is refused', () => {
  test('when its model would orphan stored tuples, and says which', async () => {
    expect((await put('docs', { model: DOC }))[0]).toBe(201)
    const write = [
      'doc:1#viewer@user:alice',
      'doc:2#viewer@user:bob',
      'doc:1#viewer@group:x#member',
      'doc:1#editor@user:alice',
    ]
    await send('POST', '/v1/organizations/acme/relationships', { write })
    const narrow = model('type doc', '  relations', '    define viewer: [group#member]')
    const [status, body] = await put('docs', { model: narrow })
    expect([status, body.errors]).toEqual([
      409,
      [
        {
          pointer: '/model',
          detail:
            'would leave 1 stored tuples doc#editor@user without a meaning, such as doc:1#editor@user:alice of organization acme; delete them first',
        },
        {
          pointer: '/model',
          detail: expect.stringMatching(
            /^would leave 2 stored tuples doc#viewer@user without a meaning, such as doc:[12]#viewer@user:(alice|bob)/,
          ),
        },
      ],
    ])
    expect((await dryRun('docs', { model: narrow }))[0]).toBe(409)
    await send('POST', '/v1/organizations/acme/relationships', { delete: [write[0], write[1], write[3]] })
    expect((await put('docs', { model: narrow }))[0]).toBe(200)
  })

  test('not for tuples that did not count before either, nor for a type that it no longer models', async () => {
    expect((await put('docs', { model: DOC }))[0]).toBe(200)
    await served.store.write('acme', [write('doc:9#owner@user:alice')], { context: CONTEXT })
    expect((await put('docs', { model: `${DOC}\n` }))[0]).toBe(200)
    expect((await put('docs', { model: null }))[0]).toBe(200)
    // Now it counts, so a model that does not know it would orphan it.
    expect(issues(await put('docs', { model: DOC }))).toEqual([409, '/model'])
  })

  test('not for the members of groups, when it only names the type', async () => {
    const stored = await served.store.tuples('acme', { object: 'group:accounting' }, { after: null, countMax: 1 })
    expect(stored).toHaveLength(1)
    const named = model('type group', 'type cage', '  relations', '    define keeper: [user, group]')
    expect((await put('zoo', { model: named }))[0]).toBe(201)
  })

  test('when somebody’s token would grow too large', async () => {
    const keys = Object.keys(MANY(200))
    const roles = { first: role(...keys.slice(0, 100)), second: role(...keys.slice(100, 150)) }
    expect((await put('large', { permissions: MANY(500), roles }))[0]).toBe(201)
    await grant('acme', { app: 'large', role: 'first', subject: 'user:alice' })
    await grant('far', { app: 'large', role: 'second', subject: 'user:alice' })
    const [status, body] = await put('large', {
      permissions: MANY(500),
      roles: { ...roles, second: role(...Object.keys(MANY(500)).slice(100, 300)) },
    })
    expect([status, body.errors[0].pointer]).toEqual([409, '/roles'])
    expect(body.errors[0].detail).toMatch(/more than 4400, for a subject that holds large\/first, large\/second$/)
  })
})
