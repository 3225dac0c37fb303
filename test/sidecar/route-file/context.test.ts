/** The context in a route file: what is read, and what is refused with its place. */
import { describe, expect, test } from 'vitest'
import { describeReport, runRouteTests } from '../../../sidecar/commands/route-report.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { loadFile, routeFile } from '../support/harness.ts'

const source = (routes: string, extra = ''): string =>
  routeFile(routes, { extra }).replace('UPSTREAM', 'http://127.0.0.1:8080').replace('PDP', '127.0.0.1:9090')
const issues = (text: string): string[] => parseRouteFile(text).issues.map(({ message }) => message)
const route = (context: string, more = ''): string =>
  `GET /a/{id}: {check: "viewer doc:{id}", context: ${context}${more}}`

describe('context', () => {
  test('is a map of constants and values of the request, also when it is written over several lines', () => {
    const { routes } = loadFile(
      source(`GET /a/{id}:
    check: viewer doc:{id}
    context:
      ip: {client.address}
      id: {id}
      limit: {query.limit: int}
      region: eu
      codes: [1, b]`),
    )
    expect(routes[0]?.context).toMatchObject([
      { name: 'ip', source: { from: 'client', name: 'address' }, type: 'string' },
      { name: 'id', source: { from: 'path', index: 0 } },
      { name: 'limit', source: { from: 'query', name: 'limit' }, type: 'int' },
      { name: 'region', constant: 'eu' },
      { name: 'codes', constant: [1, 'b'] },
    ])
  })

  test.each<[string, RegExp]>([
    [route('{}'), /^context must have at least one value$/],
    [route('x'), /^context must be a map$/],
    [route('[a]'), /^context must be a map$/],
    [route('{ip: {client.adress}}'), /^\{client\.adress\} must be a path parameter, client\.address,/],
    [route('{ip: "{client.address}"}'), /^ip is text with braces; write \{client\.address\} without quotes$/],
    [route('{ip: {client.address, request.path}}'), /^ip must be one value of the request/],
    [route('{ip: {}}'), /^ip must be one value of the request/],
    [route('{ip: {nope}}'), /^\{nope\} is not a parameter of the path/],
    [route('{ip: {id: ip}}'), /^the type of \{id\} must be one of string, int, double, bool, list$/],
    [route('{ip: {id: [int]}}'), /^the type of \{id\} must be a string$/],
    [route('{ip: {query.x: list}}'), /^\{query\.x\} cannot be a list: only a claim can$/],
    [route('{ip: null}'), /^ip is neither text, a number, true, false nor a list of these$/],
    [route('{ip: [[a]]}'), /^ip has an item that is neither/],
    [route('{ip: 12345678901234567890}'), /^ip is a number that cannot be kept exactly; write it in quotes$/],
    [route('{ip: .inf}'), /^ip is a number that cannot be kept exactly/],
    [route(`{ip: ${'x'.repeat(4_097)}}`), /^ip has more than 4096 characters$/],
    [route(`{ip: [${'a, '.repeat(100)}a]}`), /^ip has more than 100 items$/],
    [route('{"a-b": 1}'), /^"a-b" is not the name of a parameter of a condition$/],
    [route('{__proto__: 1}'), /^"__proto__" is not the name/],
    [route('{now: {header.date}}'), /^now is the clock of the PDP, which a route cannot set$/],
    [route('{ip: {header.x-real-ip}}'), /^header\.x-real-ip is removed from every request, so a check cannot use it$/],
    [route(`{${Array.from({ length: 33 }, (_, i) => `p${i}: 1`).join(', ')}}`), /^context has more than 32 values$/],
    [route('{at: {request.path}}', ', encoded_slash: keep'), /^request\.path cannot be used with encoded_slash: keep/],
    ['GET /a: {check: public, context: {a: 1}}', /^context has no effect, because no check of this route/],
    ['GET /a: {check: signed_in, context: {a: 1}}', /^context has no effect/],
    ['GET /a: {check: {all: [scope x, entitlement y]}, context: {a: 1}}', /^context has no effect/],
  ])('%s is refused', (text, message) => {
    expect(issues(source(text))).toEqual([expect.stringMatching(message)])
  })

  test.each<[string, RegExp]>([
    ['context: {id: {id}}', /^\{id\} is not a parameter of the path, which has none$/],
    ['context: {a: {body.a}}', /^a value of the body can be in the context of a route only$/],
    ['context: {a: {header.x-real-ip}}', /is removed from every request/],
  ])('of the whole file is refused: %s', (extra, message) => {
    expect(issues(source('GET /a/{id}: viewer doc:{id}', extra))).toEqual([expect.stringMatching(message)])
  })
})

describe('a test of a route file', () => {
  const ROUTES = `GET /a/{id}: {check: "viewer doc:{id}", context: {ip: {client.address}, agent: {header.x-agent}}}
POST /b: {check: "editor doc:{body.id}", context: {groups: {claims.groups: list}}}`
  const run = async (tests: string) => {
    const file = loadFile(source(ROUTES, `tests:\n${tests}`))
    return describeReport(await runRouteTests(file, 'f'))
  }

  test('says what the context must be, from an address, with header fields, a body and claims', async () => {
    expect(
      await run(`  - {request: GET /a/1, as: {sub: a}, from: 203.0.113.7, headers: {X-Agent: c}, expect: {context: {agent: c, ip: 203.0.113.7}}}
  - {request: POST /b, as: {groups: [x, y]}, body: '{"id": "7"}', expect: {asks: ["editor doc:7"], context: {groups: [x, y]}}}
  - {request: POST /b, as: {sub: a}, body: '{"id": "7"}', expect: {asks: [], context: {}}}
  - {request: GET /a/1, as: {sub: a}, headers: {X-Agent: c}, expect: {status: 400}}`),
    ).toEqual(['4 passed, 0 failed'])
  })

  test('fails when it is another one', async () => {
    expect(
      await run(`  - {request: GET /a/1, as: {sub: a}, from: 203.0.113.7, headers: {X-Agent: c}, expect: {context: {ip: 203.0.113.8}}}
  - {request: POST /b, expect: {status: 401}}`),
    ).toEqual([
      expect.stringContaining('had the context {"agent":"c","ip":"203.0.113.7"}, not {"ip":"203.0.113.8"}'),
      '1 passed, 1 failed',
    ])
  })

  test.each<[string, RegExp]>([
    ['{request: GET /a/1, from: here, expect: {status: 401}}', /^from must be an IP address$/],
    ['{request: GET /a/1, headers: {"a b": c}, expect: {status: 401}}', /^"a b" is not a header name$/],
    ['{request: GET /a/1, as: {groups: {a: b}}, expect: {status: 401}}', /^groups is neither text/],
    ['{request: GET /a/1, expect: {context: [a]}}', /^context must be a map$/],
  ])('is refused: %s', (text, message) => {
    expect(issues(source(ROUTES, `tests:\n  - ${text}`))).toEqual([expect.stringMatching(message)])
  })
})

describe('names in checks', () => {
  test.each([
    'Can_View Doc:1',
    'CAN-VIEW doc:1',
    'viewer Résumé:1',
    'viewer doc:é{id}',
    'darf_ändern doc:{id}',
    `${'r'.repeat(64)} doc:1`,
  ])('%s is read, as the PDP has it', (check) => {
    expect(issues(source(`"GET /a/{id}": "${check}"`))).toEqual([])
  })

  test.each<[string, RegExp]>([
    [`${'R'.repeat(65)} doc:1`, /is not a valid relation name$/],
    ['a#b doc:1', /^a#b is not a valid relation name$/],
    ['view* doc:1', /is not a valid relation name$/],
    ['viewer d@c:1', /is not a valid resource type$/],
    ['viewer doc:a#b', /has a character that an id cannot have$/],
    ['viewer doc:a}b', /has a character that an id cannot have$/],
    [`viewer doc:${'é'.repeat(257)}`, /has a character that an id cannot have$/],
    ['permission Big:Key', /is not a valid permission key$/],
    ['entitlement Big', /is not a valid entitlement key$/],
  ])('%s is refused', (check, message) => {
    expect(issues(source(`"GET /a/{id}": "${check}"`))).toEqual([expect.stringMatching(message)])
  })
})
