/** Rules over claims: nested ones, lists, numbers, true and false. */
import { describe, expect, test } from 'vitest'
import type { InboundRequest } from '../../../sidecar/request/inbound.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { buildQuestions, describeQuestions } from '../../../sidecar/routes/checks.ts'
import { requestValues } from '../../../sidecar/routes/values.ts'
import { routeFile } from '../support/harness.ts'
import { loadRoutes } from '../support/judge.ts'

const PUBLIC = {
  active: true,
  subjectType: 'user',
  permissions: [],
  reasons: [],
  entitlements: new Map(),
  revision: '',
  signIn: { acr: null, authTime: null },
} as const

function decide(check: string, claims: object): { readonly asks: readonly string[]; readonly denied: boolean } {
  const [route] = loadRoutes(`GET /a: ${check}`).routes
  if (route === undefined || route.check === null) throw new TypeError('no check')
  const all = Object.assign(Object.create(null), claims)
  const values = requestValues({
    request: { target: { query: null } } as InboundRequest,
    parameters: [],
    keepQuery: false,
    claims: { all, scopes: new Set<string>(), organization: null },
    body: null,
  })
  const questions = buildQuestions({ check: route.check, context: [] }, values)
  return { asks: describeQuestions(questions), denied: questions.evaluate(PUBLIC) !== null }
}

describe('a comparison with a claim', () => {
  test.each<[string, object]>([
    ['{equals: {claims.groups: admin}}', { groups: ['staff', 'admin'] }],
    ['{equals: {claims.groups: Team A}}', { groups: ['Team A'] }],
    ['{equals: {claims.team: Team A}}', { team: 'Team A' }],
    ['{equals: {claims.email_verified: true}}', { email_verified: true }],
    ['{equals: {claims.email_verified: "false"}}', { email_verified: false }],
    ['{equals: {claims.level: 3}}', { level: 3 }],
    ['{equals: {claims.level: 1.5}}', { level: 1.5 }],
    ['{equals: {claims.levels: 3}}', { levels: [1, 3] }],
    ['{equals: {claims.act.sub: bob}}', { act: { sub: 'bob' } }],
    ['{equals: {claims.realm_access.roles: admin}}', { realm_access: { roles: ['admin'] } }],
    ['{equals: {claims.a.b.c: x}}', { a: { b: { c: 'x' } } }],
    ['{equals: {claims.a.b.c: x}}', { 'a.b': { c: 'x' } }],
    ['{equals: {claims.example.com: x}}', { 'example.com': 'x' }],
  ])('holds: %s', (check, claims) => {
    expect(decide(check, claims).denied).toBe(false)
  })

  test.each<[string, object]>([
    ['{equals: {claims.groups: admin}}', {}],
    ['{equals: {claims.groups: admin}}', { groups: [] }],
    ['{equals: {claims.a.b.c: x}}', { 'a.b': { c: 'x' }, a: { b: { c: 'x' } } }],
    ['{equals: {claims.groups: admin}}', { groups: ['administrators', ['admin'], { name: 'admin' }] }],
    ['{equals: {claims.groups: admin}}', { groups: { admin: true } }],
    ['{equals: {claims.groups: admin}}', { groups: 'admin,staff' }],
    ['{equals: {claims.email_verified: true}}', { email_verified: false }],
    ['{equals: {claims.email_verified: true}}', { email_verified: 1 }],
    ['{equals: {claims.email_verified: "null"}}', { email_verified: null }],
    ['{equals: {claims.level: "9007199254740992"}}', { level: 2 ** 53 }],
    ['{equals: {claims.act.sub: bob}}', { act: 'bob' }],
    ['{equals: {claims.act.sub: bob}}', { act: [{ sub: 'bob' }] }],
    ['{equals: {claims.act.sub: bob}}', { act: { act: { sub: 'bob' } } }],
    ['{equals: {claims.act.sub: bob}}', { 'act.sub': 'bob', act: { sub: 'eve' } }],
    ['{equals: {claims.groups.length: "1"}}', { groups: ['a'] }],
    ['{equals: {claims.act.constructor: x}}', { act: {} }],
  ])('does not hold: %s of %j', (check, claims) => {
    expect(decide(check, claims).denied).toBe(true)
  })

  test('fills a template with a nested claim, and not with a list or an object', () => {
    expect(decide('viewer org:{claims.act.sub}', { act: { sub: 'bob' } }).asks).toEqual(['viewer org:bob'])
    for (const act of [{ sub: ['bob'] }, { sub: {} }, { sub: true }, {}, null, 'bob'])
      expect(decide('viewer org:{claims.act.sub}', { act })).toEqual({ asks: [], denied: true })
  })

  test.each([
    ['{equals: {query.a: true}}', 'the value for query.a must be a string'],
    ['{equals: {header.x-a: 1}}', 'the value for header.x-a must be a string'],
    ['{equals: {claims.a: null}}', 'the value for claims.a must be a string'],
    ['{equals: {claims.a: [x]}}', 'the value for claims.a must be a string'],
  ])('with another value is refused: %s', (check, message) => {
    const { issues } = parseRouteFile(routeFile(`GET /a: ${check}`))
    expect(issues.map((issue) => issue.message).join()).toContain(message)
  })
})
