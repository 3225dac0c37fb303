/** The words of `answer` in a route file: what is refused and why, tests, warnings, and how explain and init say it. */
import { describe, expect, test } from 'vitest'
import { firstRouteFile } from '../../../sidecar/commands/init.ts'
import { readOpenApi } from '../../../sidecar/commands/openapi.ts'
import { describeReport, runRouteTests } from '../../../sidecar/commands/route-report.ts'
import { openLists } from '../../../sidecar/route-file/open-lists.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { loadFile, routeFile } from '../support/harness.ts'

const source = (routes: string, extra = ''): string =>
  routeFile(routes, { extra }).replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1')
const issues = (routes: string, extra = ''): string[] =>
  parseRouteFile(source(routes, extra)).issues.map(({ message }) => message)
const withAnswer = (answer: string, more = 'check: signed_in'): string => `GET /a/{org}: {${more}, answer: ${answer}}`
const KEEP = 'keep: "viewer doc:{item.id}"'

describe('answer', () => {
  test.each([
    `{each: "$.items[*]", ${KEEP}}`,
    `{each: "$[*]", keep: "viewer doc:{item}"}`,
    `{each: "$.a.b-c.d_e[*]", ${KEEP}, forget: [$.total, $.a.count], removed: true}`,
    `{each: ndjson, ${KEEP}}`,
    `{each: sse, keep: {any: ["viewer doc:{org}/{item.of.id}", {equals: {item.public: "yes"}}]}}`,
  ])('may be %s', (answer) => {
    expect(issues(withAnswer(answer))).toEqual([])
  })

  test.each<[string, RegExp]>([
    [withAnswer(`{${KEEP}}`), /each/],
    [withAnswer('{each: ndjson}'), /keep/],
    [withAnswer(`{each: "$.items", ${KEEP}}`), /each must be ndjson, sse, or the path of one list/],
    [withAnswer(`{each: "items[*]", ${KEEP}}`), /each must be/],
    [withAnswer(`{each: "$.a[*].b[*]", ${KEEP}}`), /each must be/],
    [withAnswer(`{each: "$..items[*]", ${KEEP}}`), /each must be/],
    [withAnswer(`{each: "$.items[0]", ${KEEP}}`), /each must be/],
    [withAnswer('{each: ndjson, keep: "viewer doc:1"}'), /keep reads nothing of the item/],
    [withAnswer('{each: ndjson, keep: signed_in}'), /keep reads nothing of the item/],
    [withAnswer('{each: ndjson, keep: public}'), /public must be the only check of a route/],
    [withAnswer('{each: ndjson, keep: "viewer doc:{item.a}{item.b}"}'), /two adjacent placeholders/],
    [withAnswer('{each: ndjson, keep: "viewer doc:{item..a}"}'), /not a path of member names/],
    [
      withAnswer('{each: ndjson, keep: {all: ["viewer doc:{item.id}", "viewer doc:{query.x}"]}}'),
      /keep cannot read query.x/,
    ],
    [
      withAnswer('{each: ndjson, keep: {all: ["viewer doc:{item.id}", "viewer doc:{body.x}"]}}'),
      /keep cannot read body.x/,
    ],
    [withAnswer(`{each: ndjson, ${KEEP}, forget: [$.total]}`), /forget is for documents/],
    [withAnswer(`{each: sse, ${KEEP}, removed: true}`), /removed is for documents/],
    [withAnswer(`{each: "$.a.items[*]", ${KEEP}, forget: [$.a]}`), /forget names the list itself/],
    [withAnswer(`{each: "$.items[*]", ${KEEP}, forget: [total]}`), /forget must be the path of a member/],
    [withAnswer(`{each: "$.items[*]", ${KEEP}, keeps: x}`), /keeps/],
    [withAnswer(`{each: ndjson, ${KEEP}}`, 'check: public'), /answer needs a check/],
    [withAnswer(`{each: ndjson, ${KEEP}}`, 'public: with_identity'), /answer needs a check/],
    [
      withAnswer(`{each: ndjson, ${KEEP}}`, 'check: signed_in, upgrade: [websocket]'),
      /answer cannot be used with upgrade/,
    ],
    [`DELETE /a: {check: signed_in, answer: {each: ndjson, ${KEEP}}}`, /answer needs the method GET, POST or QUERY/],
    ['GET /a: viewer doc:{item.id}', /item.id can be read by keep of answer only/],
    [
      'GET /a: {check: signed_in, context: {x: {item.id}}}',
      /item.id can be read by keep of answer only|context has no effect/,
    ],
  ])('is refused: %s', (routes, message) => {
    expect(issues(routes)).toContainEqual(expect.stringMatching(message))
  })

  test('cannot be held by a door', () => {
    const doors = 'hosts: [a.test]\ndoors: [{profile: envoy, listen: "unix:/tmp/door"}]'
    expect(issues(withAnswer(`{each: ndjson, ${KEEP}}`), doors)).toContainEqual(
      expect.stringMatching(/GET \/a\/\{org\} filters its answers, which a gateway cannot/),
    )
  })
})

describe('a test of a route file', () => {
  const ROUTES = `GET /a: {check: signed_in, answer: {each: "$.items[*]", ${KEEP}, forget: [$.total]}}
GET /b: signed_in
GET /c: {check: signed_in, answer: {each: ndjson, ${KEEP}}}`
  const ANSWER = `answer: '{"items":[{"id":1},{"id":2}],"total":2}', allowed: ["viewer doc:2"]`
  const run = async (one: string): Promise<readonly string[]> =>
    describeReport(await runRouteTests(loadFile(source(ROUTES, `tests: [${one}]`)), 'f')).filter(
      (line) => !line.startsWith('no test'),
    )

  test.each([
    `{request: GET /a, as: {sub: a}, ${ANSWER}, expect: {answer: '{"items":[{"id":2}]}'}}`,
    `{request: GET /c, as: {sub: a}, answer: "{\\"id\\":1}\\n{\\"id\\":2}\\n", allowed: ["viewer doc:1"], expect: {answer: "{\\"id\\":1}\\n"}}`,
    `{request: GET /a, as: {sub: a}, answer: '{"items":[]}', expect: {answer: '{"items":[]}'}}`,
  ])('shows what the client gets: %s', async (one) => {
    expect(await run(one)).toEqual(['1 passed, 0 failed'])
  })

  test.each<[string, RegExp]>([
    [
      `{request: GET /a, as: {sub: a}, ${ANSWER}, expect: {answer: '{}'}}`,
      /showed \{"items":\[\{"id":2\}\]\}, not \{\}/,
    ],
    [
      `{request: GET /a, as: {sub: a}, answer: '{"rows":[]}', expect: {answer: '{}'}}`,
      /lost the whole answer: the answer has no list/,
    ],
    [
      `{request: GET /a, as: {sub: a}, answer: '{"items":[{}]}', expect: {answer: '{}'}}`,
      /lost the whole answer: an item .* item.id is missing/,
    ],
    [
      `{request: GET /b, as: {sub: a}, ${ANSWER}, expect: {answer: '{}'}}`,
      /took the route GET \/b, which filters no answers/,
    ],
    [`{request: GET /a, ${ANSWER}, expect: {answer: '{}'}}`, /was refused/],
  ])('fails: %s', async (one, message) => {
    expect(await run(one)).toEqual([expect.stringMatching(message), '0 passed, 1 failed'])
  })

  test.each<[string, RegExp]>([
    [`{request: GET /a, ${ANSWER}, expect: {status: 401}}`, /answer needs expect.answer/],
    [`{request: GET /a, expect: {answer: '{}'}}`, /expect.answer needs answer/],
    [`{request: GET /a, allowed: [x], expect: {status: 401}}`, /allowed needs answer/],
  ])('is refused: %s', (one, message) => {
    expect(issues(ROUTES, `tests: [${one}]`)).toContainEqual(expect.stringMatching(message))
  })
})

describe('a list that shows everything', () => {
  test('is named with the answer that would keep the items of its reader', () => {
    const { routes } = loadFile(
      source(`GET /invoices: signed_in
GET /invoices/{id}: viewer invoice:{id}
GET /orgs/{org}/docs: member organization:{org}
GET /orgs/{org}/docs/{doc}: {all: ["member organization:{org}", "viewer doc:{doc}"]}
GET /done: {check: signed_in, answer: {each: ndjson, ${KEEP}}}
GET /done/{id}: viewer doc:{id}
GET /open: public
GET /open/{id}: viewer doc:{id}
GET /free: signed_in
GET /free/{id}: signed_in`),
    )
    expect(openLists({ routes })).toEqual([
      expect.stringMatching(
        /^GET \/invoices shows all .* answer: \{each: "\$\.items\[\*\]", keep: "viewer invoice:\{item\.id\}"\}/,
      ),
      expect.stringMatching(/^GET \/orgs\/\{org\}\/docs shows all .* keep: "viewer doc:\{item\.doc\}"\}/),
    ])
  })

  test('is proposed for an OpenAPI document, at the place that it names', () => {
    const list = {
      type: 'object',
      properties: { rows: { $ref: '#/components/schemas/Rows' }, next: { type: 'string' } },
    }
    const mapping = (id: string) => ({
      'x-authzen-mapping': undefined,
      responses: { 200: { content: { 'application/json': { schema: list } } } },
      operationId: id,
    })
    const document = {
      openapi: '3.1.0',
      components: { schemas: { Rows: { type: 'array', items: {} } } },
      paths: { '/docs': { get: mapping('list') }, '/docs/{id}': { get: {} } },
    }
    expect(readOpenApi(JSON.stringify(document), 'a.json').operations[0]).toMatchObject({ list: '$.rows[*]' })
    expect(firstRouteFile(readOpenApi(JSON.stringify(document), 'a.json'), 's').text).not.toContain('shows all')
  })
})
