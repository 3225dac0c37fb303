/** Rules that depend on the kind of the request: alternatives are tried one by one. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createExplainer } from '../../../sidecar/enforce/explain.ts'
import { fileWarnings } from '../../../sidecar/route-file/warnings.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { loadRoutes } from '../support/judge.ts'

const RPC = `
POST /rpc: {any: [{all: [{equals: {body.method: list}}, signed_in]}, {all: [{equals: {body.method: read}}, "viewer doc:{body.params.id}"]}, {all: [{equals: {body.method: copy}}, "viewer doc:{body.params.from}", "editor doc:{body.params.to}"]}]}
GET /doc: {any: [{all: [{equals: {query.op: list}}, signed_in]}, {all: [{equals: {query.op: read}}, "viewer doc:{query.id}"]}]}
GET /field: {any: [{all: [{equals: {header.x-op: list}}, signed_in]}, {all: [{equals: {header.x-op: read}}, "viewer doc:{header.x-id}"]}]}
GET /claim: {any: [{equals: {claims.role: admin}}, "viewer doc:{query.id}"]}
"* /mixed": {any: [{equals: {request.method: GET}}, "viewer doc:{body.id}"]}
POST /graphql: {any: [{all: [{equals: {body.operationName: Docs}}, signed_in]}, {all: [{equals: {body.operationName: Doc}}, "viewer doc:{body.variables.id}"]}]}
POST /context: {check: {any: [{equals: {body.method: list}}, "viewer doc:1"]}, context: {n: {body.n: int}}}
POST /all: {all: [{equals: {body.a: x, body.b: y}}, "viewer doc:{body.id}"]}
POST /small: {check: "viewer doc:{body.id}", body_bytes_max: 20}
`.trim()

const JSON_TYPE = [['content-type', 'application/json']] as const
function explain(line: string, body: unknown = null, headers: readonly (readonly [string, string])[] = []): string {
  const [method = '', target = ''] = line.split(' ')
  const text = typeof body === 'string' ? body : body === null ? null : JSON.stringify(body)
  const sent = { headers: text === null ? headers : [...JSON_TYPE, ...headers], body: text }
  const { asks, denial } = createExplainer(loadRoutes(RPC))({ method, target, as: { sub: 'alice' }, ...sent })
  return denial === null ? asks.join(', ') : `${denial.status} ${denial.detail}`
}

describe('a rule with alternatives', () => {
  test.each<[string, unknown, string]>([
    ['the first, which needs no value', { method: 'list' }, ''],
    ['the first beside a value of others', { method: 'list', params: { id: 7 } }, ''],
    ['the first beside another form of such a value', { method: 'list', params: [{}] }, ''],
    ['the second', { method: 'read', params: { id: 7 } }, 'viewer doc:7'],
    ['the third', { method: 'copy', params: { from: 1, to: 2 } }, 'viewer doc:1, editor doc:2'],
    ['none, since the kind is another', { method: 'drop', params: { id: 7 } }, ''],
    ['none, since the second lacks its value', { method: 'read' }, ''],
  ])('asks what the alternative asks: %s', (_, body, asks) => {
    expect(explain('POST /rpc', body)).toBe(asks)
  })

  test.each<[string, unknown, string]>([
    ['no kind at all', { id: 7 }, '400 body.method must occur exactly once'],
    ['a kind that is null', { method: null }, '400 body.method is missing'],
    ['a batch', [{ method: 'list' }], '400 body.method is missing'],
    ['a kind that is no text', { method: ['list'] }, '400 body.method is neither a string nor an integer'],
    ['a text as its body', '"list"', '400 body.method is missing'],
    ['a kind twice', '{"method":"list","method":"read"}', '400 body.method must occur exactly once'],
    [
      'another spelling of the kind',
      '{"method":"list","Method":"read"}',
      '400 The body has a key that some readers read as body.method',
    ],
    [
      'a value twice that no alternative needs',
      '{"method":"list","params":{"id":1,"id":2}}',
      '400 body.params.id must occur exactly once',
    ],
    [
      'a value that no id can be',
      { method: 'read', params: { id: 'a b' } },
      '400 The value of body.params.id cannot be part of a resource id',
    ],
    ['no body', null, '400 This route needs a body'],
  ])('is 400 for %s', (_, body, detail) => {
    expect(explain('POST /rpc', body)).toBe(detail)
  })

  test('takes values of the query, of fields and of claims in the same way', () => {
    expect(explain('GET /doc?op=list')).toBe('')
    expect(explain('GET /doc?op=read&id=7')).toBe('viewer doc:7')
    expect(explain('GET /doc?id=7')).toBe('400 The query must have op exactly once')
    expect(explain('GET /doc?op=list&op=read')).toBe('400 The query must have op exactly once')
    expect(explain('GET /doc?op=list&id=1&id=2')).toBe('400 The query must have id exactly once')
    expect(explain('GET /field', null, [['x-op', 'list']])).toBe('')
    expect(
      explain('GET /field', null, [
        ['x-op', 'read'],
        ['x-id', '7'],
      ]),
    ).toBe('viewer doc:7')
    expect(explain('GET /field', null, [['x-id', '7']])).toBe('400 There must be exactly one x-op field')
    expect(
      explain('GET /field', null, [
        ['x-op', 'list'],
        ['x-id', '1'],
        ['x-id', '2'],
      ]),
    ).toBe('400 There must be exactly one x-id field')
    expect(explain('GET /claim')).toBe('')
    expect(explain('GET /claim?id=7')).toBe('viewer doc:7')
  })

  test('needs a body only where an alternative does that is left', () => {
    expect(explain('GET /mixed')).toBe('')
    expect(explain('POST /mixed', { id: 7 })).toBe('viewer doc:7')
    expect(explain('POST /mixed', 'no JSON')).toBe('400 The body is not JSON in UTF-8')
  })

  test('tells operations of GraphQL apart by their name', () => {
    expect(explain('POST /graphql', { operationName: 'Docs', query: 'query Docs { docs }' })).toBe('')
    expect(explain('POST /graphql', { operationName: 'Doc', variables: { id: 7 } })).toBe('viewer doc:7')
    expect(explain('POST /graphql', { operationName: null, query: '{ docs }' })).toBe(
      '400 body.operationName is missing',
    )
  })

  test('needs the values of its context only where it asks', () => {
    expect(explain('POST /context', { method: 'list' })).toBe('')
    expect(explain('POST /context', { method: 'read', n: 1 })).toBe('viewer doc:1')
  })

  test('a comparison that does not hold ends what must hold together', () => {
    expect(explain('POST /all', { a: 'x', b: 'z' })).toBe('')
    expect(explain('POST /all', { a: 'x', b: 'y' })).toBe('400 body.id must occur exactly once')
    expect(explain('POST /all', '{"a":"z","b":"y","id":1,"id":2}')).toBe('400 body.id must occur exactly once')
  })

  test('over calls of MCP gets a warning that names their own kind of route', () => {
    const warned = fileWarnings(
      loadRoutes('POST /mcp: {any: [{all: [{equals: {body.method: tools/call}}, signed_in]}, scope a]}'),
    )
    expect(warned.join()).toContain('kind MCP')
    expect(fileWarnings(loadRoutes(RPC)).join()).not.toContain('kind MCP')
  })
})

describe('a rule with alternatives, in front of a service', () => {
  let h: Harness
  beforeAll(async () => {
    h = await startHarness({ routes: RPC, script: tuples(['alice viewer doc:7', 'alice viewer doc:1']) })
  })
  afterAll(() => h.close())
  const status = async (line: string, body: string): Promise<number> =>
    (await h.send(line, { fields: ['Content-Type: application/json'], body })).status

  test('passes what one alternative allows, and nothing else', async () => {
    expect(await status('POST /rpc', '{"method":"list"}')).toBe(200)
    expect(await status('POST /rpc', '{"method":"read","params":{"id":7}}')).toBe(200)
    expect(await status('POST /rpc', '{"method":"read","params":{"id":8}}')).toBe(403)
    expect(await status('POST /rpc', '{"method":"copy","params":{"from":7,"to":7}}')).toBe(403)
    expect(await status('POST /rpc', '{"method":"copy","params":{"from":7}}')).toBe(403)
    expect(await status('POST /rpc', '{"method":"drop"}')).toBe(403)
    expect(await status('POST /rpc', '{}')).toBe(400)
    expect((await h.send('GET /mixed', {})).status).toBe(200)
    expect((await h.send('POST /mixed', {})).status).toBe(403)
  })

  test('reads as many bytes of a body as the route says', async () => {
    expect(await status('POST /small', '{"id":7,    "a":1  }')).toBe(200)
    expect(await status('POST /small', '{"id":7,    "a":1   }')).toBe(413)
    expect(await status('POST /rpc', `{"method":"list","a":"${'x'.repeat(60_000)}"}`)).toBe(200)
  })
})
