/** Names that are none, wherever a request can say one: refused with their place, and of no consequence to anybody else. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Json, type Served, seedAcme, serve } from '../harness.ts'

let served: Served
let tokens: { readonly [who: string]: string }
let operations: readonly { readonly method: string; readonly path: string; readonly names: readonly string[] }[]
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  tokens = {
    admin: await served.manager(),
    bound: await served.manager({ client: 'acme-admin', organization: 'acme' }),
  }
  const { body } = await served.send('GET', '/openapi.json')
  operations = Object.entries<Json>(body.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({
      method: method.toUpperCase(),
      path,
      names: [...path.matchAll(/\{([a-z_]+)\}/g)].map(([, name = '']) => name),
    })),
  )
})
afterAll(() => served.close())

const NAMES = ['%00', 'a%00b', '%20', 'acme%20bigcorp', 'a%23b', '*', '%C3%BC', 'x'.repeat(257)]

/** The path with one of its names replaced; the others are right. */
const pathWith = (path: string, name: string, value: string): string =>
  path
    .replace(`{${name}}`, value)
    .replace('{org}', 'acme')
    .replaceAll(/\{[a-z_]+\}/g, 'x')

describe('a name of the path that is none', () => {
  test.each(NAMES)('is refused with its place by every operation: %s', async (value) => {
    const wrong: string[] = []
    for (const { method, path, names } of operations) {
      for (const name of names) {
        const body = method === 'GET' || method === 'DELETE' ? {} : { body: {} }
        const answer = await served.send(method, pathWith(path, name, value), { token: tokens.admin ?? '', ...body })
        const said = [answer.status, answer.body?.code, answer.body?.errors?.[0]?.parameter]
        if (said.join() !== [400, 'request_invalid', name].join()) wrong.push(`${method} ${path} ${name}: ${said}`)
      }
    }
    expect(operations.filter(({ names }) => names.length > 0).length).toBeGreaterThan(20)
    expect(wrong).toEqual([])
  })

  test('fails no decision of another organization, however often it is sent by a bound client', async () => {
    const asker = served.token({})
    const decide = () =>
      served.send('POST', '/oauth/decisions', {
        token: asker,
        body: { permissions: [{ relation: 'viewer', resource: 'invoice:1' }] },
      })
    const poison = () => served.send('GET', '/v1/organizations/%00/relationships', { token: tokens.bound ?? '' })
    const rounds = await Promise.all(Array.from({ length: 100 }, () => Promise.all([poison(), decide()])))
    expect(new Set(rounds.map(([bad]) => bad.body.code))).toEqual(new Set(['request_invalid']))
    expect(new Set(rounds.map(([, good]) => good.body?.permissions?.[0]?.allowed))).toEqual(new Set([true]))
  })
})

const evaluation = (other: object): object => ({
  subject: { type: 'user', id: 'alice' },
  action: { name: 'viewer' },
  resource: { type: 'invoice', id: '1' },
  ...other,
})

describe('a text with U+0000', () => {
  test.each([
    ['GET', '/v1/role-grants?subject=%00', undefined],
    ['GET', '/v1/organizations/acme/role-grants?subject=%00', undefined],
    ['GET', '/v1/organizations/acme/relationships?object=%00', undefined],
    ['GET', `/v1/users?page_token=${Buffer.from('["\\u0000",null]').toString('base64url')}`, undefined],
    ['PUT', '/v1/users/zoe', { email: 'a\0@b.test' }],
    ['PUT', '/v1/organizations/zoe', { name: 'a\0' }],
    [
      'POST',
      '/v1/organizations/acme/list-resources',
      { subject: { type: 'user', id: '\0' }, relation: 'v', type: 'd' },
    ],
    [
      'POST',
      '/v1/organizations/acme/list-resources',
      { subject: { type: 'user', id: 'a' }, relation: 'v', type: '\0' },
    ],
    ['POST', '/access/v1/evaluation', evaluation({ subject: { type: 'user', id: '\0' } })],
    ['POST', '/access/v1/evaluation', evaluation({ resource: { type: 'invoice', id: '\0' } })],
    ['POST', '/access/v1/evaluation', evaluation({ action: { name: 'view\0er' } })],
    ['POST', '/access/v1/evaluation', evaluation({ context: { a: '\0' } })],
    ['POST', '/access/v1/evaluations', { ...evaluation({}), evaluations: [{ resource: { type: '\0', id: '1' } }] }],
    ['POST', '/access/v1/search/resource', evaluation({ resource: { type: '\0' } })],
    ['POST', '/access/v1/search/subject', evaluation({ subject: { type: '\0' } })],
    ['POST', '/oauth/decisions', { permissions: [{ relation: 'viewer', resource: 'invoice:\0' }] }],
    ['POST', '/oauth/decisions', { entitlements: ['\0'] }],
    ['POST', '/v1/organizations/acme/relationships', { write: ['invoice:\0#viewer@user:a'] }],
    ['POST', '/v1/organizations/acme/role-grants', { role: '\0', subject: 'user:alice' }],
    ['PUT', '/v1/apps/zoe/manifest', { 'na\0me': 'x' }],
    ['GET', '/v1/events?after=%00', undefined],
    ['GET', '/v1/organizations/acme/changes?after=%00', undefined],
  ])('is refused as malformed: %s %s %j', async (method, path, body) => {
    const answer = await served.send(method, path, { token: tokens.admin ?? '', ...(body && { body }) })
    expect([answer.status, answer.body.code]).toEqual([400, 'request_invalid'])
  })

  test('of a subject that a decision names is refused, and fails nobody else’s', async () => {
    const reader = await served.manager({ client: 'reader', organization: 'acme', scopes: ['decisions:read'] })
    const permissions = [{ relation: 'viewer', resource: 'invoice:1' }]
    const ask = (id: string) =>
      served.send('POST', '/oauth/decisions', {
        token: reader,
        body: { permissions, subject: { type: 'user', id } },
      })
    const rounds = await Promise.all(Array.from({ length: 50 }, () => Promise.all([ask('\0'), ask('alice')])))
    expect(new Set(rounds.map(([bad]) => bad.status))).toEqual(new Set([400]))
    expect(new Set(rounds.map(([, good]) => good.body?.permissions?.[0]?.allowed))).toEqual(new Set([true]))
  })
})
