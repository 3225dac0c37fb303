import { describe, expect, test } from 'vitest'
import { checkOfMapping, MAPPING_KEY, MappingError } from '../../../sidecar/commands/coaz.ts'
import { firstRouteFile } from '../../../sidecar/commands/init.ts'
import { readOpenApi } from '../../../sidecar/commands/openapi.ts'
import { openApiDocument } from '../../../sidecar/commands/openapi-document.ts'
import { runRouteTests } from '../../../sidecar/commands/route-report.ts'
import { loadFile } from '../support/harness.ts'

const SUBJECT = { type: 'identity', id: '$token.sub' }
const evaluation = (name: string, id: string, more: object = {}): object => ({
  evaluation: { subject: SUBJECT, action: { name }, resource: { type: 'invoice', id }, ...more },
})
const check = (mapping: unknown) => checkOfMapping(mapping, (name) => name.replaceAll('-', '_'))
const file = (routes: string) =>
  loadFile(`portcullis: v1
resource: https://api.example.com
issuers: [{issuer: https://id.example.com}]
upstream: http://127.0.0.1:3000
pdp: {address: "127.0.0.1:9090", insecure: true}
routes:
${routes}`)

describe('a mapping', () => {
  test.each([
    ['$request.path_params.id', 'viewer invoice:{id}'],
    ['$request.path_params["invoice-id"]', 'viewer invoice:{invoice_id}'],
    ['$request.query.id', 'viewer invoice:{query.id}'],
    ['$request.headers["x-invoice"]', 'viewer invoice:{header.x-invoice}'],
    ['$request.body.order.id', 'viewer invoice:{body.order.id}'],
    ['$token.org', 'viewer invoice:{claims.org}'],
    ['$token.org + "/" + request.path_params.id', 'viewer invoice:{claims.org}/{id}'],
    ['42', 'viewer invoice:42'],
    ['$$42', 'viewer invoice:$42'],
  ])('of %s is the check %s', (id, text) => expect(check(evaluation('viewer', id))).toBe(text))

  test('of evaluations is all of them, which share what stands above', () => {
    const items = [
      { action: { name: 'viewer' } },
      { action: { name: 'payer' }, resource: { type: 'account', id: '$token.org' } },
    ]
    const shared = { subject: SUBJECT, resource: { type: 'invoice', id: '$request.path_params.id' } }
    expect(check({ evaluations: { ...shared, evaluations: items } })).toEqual({
      all: ['viewer invoice:{id}', 'payer account:{claims.org}'],
    })
  })

  test.each<[string, unknown]>([
    ['null', null],
    ['a list', []],
    ['nothing', {}],
    ['two members', { ...evaluation('a', '1'), evaluations: {} }],
    ['another member', { search: {} }],
    ['no subject', { evaluation: { action: { name: 'a' }, resource: { type: 't', id: '1' } } }],
    [
      'a subject that the client names',
      {
        evaluation: { ...Object.values(evaluation('a', '1'))[0], subject: { type: 'user', id: '$request.query.user' } },
      },
    ],
    ['a context', evaluation('a', '1', { context: {} })],
    [
      'properties',
      { evaluation: { subject: SUBJECT, action: { name: 'a', properties: {} }, resource: { type: 't', id: '1' } } },
    ],
    ['an action that is an expression', evaluation('$request.method', '1')],
    ['an action that is no name', evaluation('a b', '1')],
    [
      'an id that is a number',
      { evaluation: { subject: SUBJECT, action: { name: 'a' }, resource: { type: 't', id: 1 } } },
    ],
    ['a function', evaluation('a', '$request.path.split("/")[1]')],
    ['an optional member', evaluation('a', '$request.query.?id')],
    ['a condition', evaluation('a', '$true ? token.sub : token.org')],
    ['nothing after a plus', evaluation('a', '$token.sub +')],
    ['a term without a plus', evaluation('a', '$token.sub token.org')],
    ['a part of the request that is not known', evaluation('a', '$request.cookies.id')],
    ['a member of a query member', evaluation('a', '$request.query.a.b')],
    ['a placeholder in a text', evaluation('a', '{claims.sub}')],
    ['a placeholder in a quoted text', evaluation('a', '$"{claims.sub}"')],
    ['no items', { evaluations: { subject: SUBJECT, evaluations: [] } }],
    [
      'an item with a subject',
      { evaluations: { subject: SUBJECT, evaluations: [Object.values(evaluation('a', '1'))[0]] } },
    ],
    [
      'options',
      {
        evaluations: {
          subject: SUBJECT,
          options: {},
          evaluations: [{ action: { name: 'a' }, resource: { type: 't', id: '1' } }],
        },
      },
    ],
  ])('with %s is refused', (_what, mapping) => expect(() => check(mapping)).toThrow(MappingError))
})

describe('a route file', () => {
  const ROUTES = `  GET /health: public
  GET /me: signed_in
  GET /invoices/{id}: viewer invoice:{id}
  POST /orders: editor order:{body.order.id}
  GET /a/{x}/b/{y}: reader doc:{x}/{y}
  GET /search: reader index:{query.name}
  GET /fixed: reader doc:$main
  GET /tenant: reader tenant:{claims.org}
  PUT /invoices/{id}: {all: ["editor invoice:{id}", "member team:{header.x-team}"]}
`
  const routesOf = (text: string) => loadFile(text).routes.map(({ id, check: asked }) => [id, asked])

  test('is the same after it was written as an OpenAPI document and read back', async () => {
    const { text, leftOut } = openApiDocument(file(ROUTES))
    expect(leftOut).toEqual([])
    const back = firstRouteFile(readOpenApi(text, 'api.yaml'), 'schema.json')
    expect(back.leftOut).toEqual([])
    expect(new Map(routesOf(back.text) as [string, unknown][])).toEqual(
      new Map(file(ROUTES).routes.map(({ id, check: asked }) => [id, asked])),
    )
    expect((await runRouteTests(loadFile(back.text), 'routes.yaml')).failed).toBe(0)
  })

  test('says what a document cannot', () => {
    const { leftOut } = openApiDocument(
      file(`  GET /a: {any: ["viewer a:1", "viewer a:2"]}
  GET /b: entitlement beta
  GET /c/**: signed_in
  GET other.example.com/d: signed_in
  GET /e: {check: signed_in, step_up: {max_age: 60}}
  "* /f": signed_in
  GET /g: {all: ["viewer a:1", "scope read"]}
  GET /h: permission invoices:read
  GET /i: {check: "viewer a:1", mode: shadow}
  GET /j: {check: "viewer a:1", forward_token: true}
  GET /k: {check: "viewer a:1", context: {ip: client.address}}
`),
    )
    expect(leftOut.map((line) => line.split(', because ')[0]).toSorted()).toEqual([
      '* /f',
      'GET /a',
      'GET /b',
      'GET /c/**',
      'GET /e',
      'GET /g',
      'GET /h',
      'GET /i',
      'GET /j',
      'GET /k',
      'GET other.example.com/d',
    ])
  })

  test('gets no route for an operation whose mapping it cannot say, or that is public besides', () => {
    const paths = {
      '/a': { get: { [MAPPING_KEY]: { evaluation: {} } } },
      '/b': { get: { security: [], [MAPPING_KEY]: evaluation('viewer', '1') } },
      '/c': { get: { [MAPPING_KEY]: null } },
      '/d': { get: {} },
    }
    const { text, leftOut } = firstRouteFile(
      readOpenApi(JSON.stringify({ openapi: '3.1.0', paths }), 'a.json'),
      's.json',
    )
    expect(loadFile(text).routes.map(({ id }) => id)).toEqual(['GET /d'])
    expect(leftOut.map((line) => line.split(', because ')[0])).toEqual(['GET /a', 'GET /b', 'GET /c'])
  })
})
