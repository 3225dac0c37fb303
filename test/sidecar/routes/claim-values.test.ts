/** Rules over claims: nested ones, lists, numbers, true and false. */
import { describe, expect, test } from 'vitest'
import type { InboundRequest } from '../../../sidecar/request/inbound.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { fileWarnings } from '../../../sidecar/route-file/warnings.ts'
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
    ['{ends_with: {claims.email: "@example.com"}}', { email: 'ann@example.com' }],
    ['{starts_with: {claims.sub: "repo:acme/"}}', { sub: 'repo:acme/app:ref:refs/heads/main' }],
    ['{starts_with: {claims.groups: "/eng/"}}', { groups: ['/ops/a', '/eng/b'] }],
    ['{starts_with: {claims.act.sub: b}}', { act: { sub: 'bob' } }],
    ['{ends_with: {claims.a: x}}', { a: 'x' }],
    ['{starts_with: {claims.a: "a*"}}', { a: 'a*b' }],
    ['{starts_with: {claims.a: é, claims.b: "1"}}', { a: 'été', b: '12' }],
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
    ['{ends_with: {claims.email: "@example.com"}}', { email: 'ann@example.com.evil.test' }],
    ['{ends_with: {claims.email: "@example.com"}}', { email: 'ann@EXAMPLE.COM' }],
    ['{ends_with: {claims.email: "@example.com"}}', { email: 'example.com' }],
    ['{ends_with: {claims.email: "@example.com"}}', {}],
    ['{starts_with: {claims.sub: "repo:acme/"}}', { sub: 'repo:acme-evil/app' }],
    ['{starts_with: {claims.sub: "repo:acme/"}}', { sub: ' repo:acme/app' }],
    ['{starts_with: {claims.sub: "repo:acme/"}}', { sub: ['x', ['repo:acme/app'], { a: 'repo:acme/app' }] }],
    ['{starts_with: {claims.sub: "repo:acme/"}}', { sub: { name: 'repo:acme/app' } }],
    ['{starts_with: {claims.level: "1"}}', { level: 12 }],
    ['{starts_with: {claims.flag: t}}', { flag: true }],
    ['{starts_with: {claims.flag: n}}', { flag: null }],
    ['{starts_with: {claims.a: "a*"}}', { a: 'ab' }],
    ['{starts_with: {claims.a: "a."}}', { a: 'ab' }],
    ['{starts_with: {claims.a: é}}', { a: 'e\u0301' }],
    ['{starts_with: {claims.a: a, claims.b: b}}', { a: 'ab', b: 'ab' }],
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
    ['{equals: {claims.a: [x]}}', 'equals compares claims.a with one value'],
    ['{starts_with: {claims.a: 1}}', 'the value for claims.a must be a string'],
    ['{ends_with: {claims.a: true}}', 'the value for claims.a must be a string'],
    ['{starts_with: {claims.a: ""}}', 'starts_with needs a text'],
    ['{starts_with: {}}', 'starts_with must compare at least one value'],
    ['{starts_with: a}', 'starts_with must be a map'],
    ['{starts_with: {query.a: b}}', 'starts_with compares claims only: what a client adds to query.a'],
    ['{ends_with: {header.x-a: b}}', 'what a client adds to header.x-a'],
    ['{starts_with: {body.path: /public/}}', 'what a client adds to body.path'],
    ['{starts_with: {client.address: "10."}}', 'what a client adds to client.address'],
    ['{starts_with: {request.path: /docs}}', 'a route says how paths and hosts begin and end'],
    ['{ends_with: {request.host: .test}}', 'a route says how paths and hosts begin and end'],
    ['{contains: {claims.a: b}}', 'unknown key "contains"'],
    [
      '{starts_with: {claims.a: b}, equals: {claims.a: b}}',
      'exactly one of all, any, equals, starts_with and ends_with',
    ],
  ])('with another value is refused: %s', (check, message) => {
    const { issues } = parseRouteFile(routeFile(`GET /a: ${check}`))
    expect(issues.map((issue) => issue.message).join()).toContain(message)
  })
})

test.each([
  [
    '{ends_with: {claims.email: example.com}}',
    ['GET /a: a claims.email that ends_with example.com may be of evilexample.com: begin the text with @ or a dot'],
  ],
  ['{any: [{ends_with: {claims.hd: a.test}}, scope b]}', [expect.stringContaining('evila.test')]],
  ['{ends_with: {claims.email: "@example.com"}}', []],
  ['{ends_with: {claims.hd: ".example.com"}}', []],
  ['{ends_with: {claims.groups: -admins}}', []],
  [
    '{starts_with: {claims.sub: "https://ci.test"}}',
    [expect.stringContaining('https://ci.test.evil.example: end the text with a slash')],
  ],
  ['{starts_with: {claims.sub: "https://ci.test/"}}', []],
])('check warns of a text that another name has, too: %s', (check, warnings) => {
  expect(fileWarnings(loadRoutes(`GET /a: ${check}`))).toEqual(warnings)
})
