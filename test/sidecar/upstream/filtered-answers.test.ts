/** `answer` of a route, over real sockets: a list shows its reader what the reader may see, or nothing at all. */
import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { itemFilter } from '../../../sidecar/answers/item-filter.ts'
import type { AnswerRule } from '../../../sidecar/routes/answer-rule.ts'
import { LONG } from '../../support/effort.ts'
import { field } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'

const KEEP = '"viewer invoice:{item.id}"'
const ROUTES = `GET /invoices: {check: signed_in, answer: {each: "$.items[*]", keep: ${KEEP}, forget: [$.total, $.meta.count]}}
GET /counted: {check: signed_in, answer: {each: "$.items[*]", keep: ${KEEP}, removed: true}}
GET /plain: {check: signed_in, answer: {each: "$[*]", keep: "viewer invoice:{item}"}}
GET /deep: {check: signed_in, answer: {each: "$.data.rows[*]", keep: {any: ["viewer invoice:{item.of.id}", {equals: {item.state: open}}]}}}
GET /lines: {check: signed_in, answer: {each: ndjson, keep: ${KEEP}}}
GET /events: {check: signed_in, answer: {each: sse, keep: ${KEEP}}}
GET /orgs/{org}: {check: signed_in, answer: {each: "$.items[*]", keep: "viewer invoice:{org}/{item.id}"}}
GET /shadow: {check: signed_in, mode: shadow, answer: {each: "$.items[*]", keep: ${KEEP}}}
POST /search: {check: signed_in, answer: {each: "$.items[*]", keep: ${KEEP}}}`
const MAY = ['1', '3', 'a', '7'].map((id) => `alice viewer invoice:${id}`)

let world: Harness
beforeAll(async () => {
  world = await startHarness({
    routes: ROUTES,
    script: tuples(MAY),
    limits: { answerBytesMax: 200_000, answersHeldBytes: 300_000 },
  })
})
afterEach(() => {
  world.pdp.script = tuples(MAY)
})
afterAll(() => world.close())

const JSON_TYPE = { 'content-type': 'application/json' }
type Answer = {
  readonly body?: string | Buffer
  readonly head?: { readonly [name: string]: string | string[] }
  readonly status?: number
}

async function get(
  line: string,
  { body = '', head = JSON_TYPE, status = 200 }: Answer,
  fields: readonly string[] = [],
) {
  world.upstream.handle = (_, res) => void res.writeHead(status, head).end(body)
  return world.send(line, { token: await world.issuer.token(), fields })
}
const bodyOf = async (line: string, body: string): Promise<string> => (await get(line, { body })).body

describe('a JSON document', () => {
  test.each<[string, string, string, string]>([
    [
      'keeps what its reader may see, and every other byte',
      '/invoices',
      '{ "items": [ {"id": 1, "x": [1, 2]},\n {"id":2} , {"id":"3"} ], "n\\u00e9": 1 }',
      '{ "items": [ {"id": 1, "x": [1, 2]}, {"id":"3"} ], "n\\u00e9": 1 }',
    ],
    [
      'forgets the members that tell of the others',
      '/invoices',
      '{"total":3,"items":[{"id":2}],"meta":{"page":1,"count":3}}',
      '{"items":[],"meta":{"page":1}}',
    ],
    ['may be empty', '/invoices', '{"items":[]}', '{"items":[]}'],
    ['may be a list of texts', '/plain', '["1","2","a"]', '["1","a"]'],
    [
      'may have its list deeper, and a check of several alternatives',
      '/deep',
      '{"data":{"rows":[{"of":{"id":2},"state":"open"},{"of":{"id":2},"state":"shut"},{"of":{"id":1},"state":"shut"}]}}',
      '{"data":{"rows":[{"of":{"id":2},"state":"open"},{"of":{"id":1},"state":"shut"}]}}',
    ],
    [
      'reads names as they are meant',
      '/invoices',
      '{"it\\u0065ms":[{"\\u0069d":1},{"id":2}]}',
      '{"it\\u0065ms":[{"\\u0069d":1}]}',
    ],
    [
      'reads names of its list alone',
      '/invoices',
      '{"ITEMS":[{"id":2}],"items":[{"_id":9,"ID":9,"id":1}]}',
      '{"ITEMS":[{"id":2}],"items":[{"_id":9,"ID":9,"id":1}]}',
    ],
  ])('%s', async (_, path, body, expected) => {
    expect(await bodyOf(`GET ${path}`, body)).toBe(expected)
  })

  test('is judged with values of the path', async () => {
    world.pdp.script = tuples(['alice viewer invoice:acme/1'])
    expect(await bodyOf('GET /orgs/acme', '{"items":[{"id":1},{"id":2}]}')).toBe('{"items":[{"id":1}]}')
    expect((await get('GET /orgs/acme?org=b', { body: '{"items":[{"id":1}]}' })).status).toBe(502)
  })

  test('leaves without what describes other bytes, and for one reader only', async () => {
    const head = {
      ...JSON_TYPE,
      etag: '"a"',
      digest: 'sha-256=x',
      'content-digest': 'sha-256=:x:',
      'repr-digest': 'sha-256=:x:',
      'last-modified': 'Thu, 26 Nov 2026 00:00:00 GMT',
      'accept-ranges': 'bytes',
      'cache-control': 'public, max-age=60',
      'portcullis-removed': '9',
      'x-mine': 'stays',
    }
    const answer = await get('GET /invoices', { body: '{"items":[{"id":1},{"id":2}]}', head })
    expect(answer.fields.map(([name]) => name.toLowerCase()).filter((name) => name in head)).toEqual([
      'content-type',
      'x-mine',
      'cache-control',
    ])
    expect(field(answer, 'cache-control')).toBe('private, no-store')
    expect(field(answer, 'content-length')).toBe(String(answer.body.length))
  })

  test('is asked for whole and in plain text, and HEAD is refused', async () => {
    const fields = [
      'Range: bytes=0-1',
      'If-None-Match: "a"',
      'If-Modified-Since: Thu, 26 Nov 2026 00:00:00 GMT',
      'If-Range: "a"',
      'Accept-Encoding: gzip',
      'Want-Digest: sha-256',
      'X-Mine: 1',
    ]
    await get('GET /invoices', { body: '{"items":[]}' }, fields)
    const reached = world.upstream.reached.at(-1)?.rawHeaders.map((name) => name.toLowerCase()) ?? []
    expect(reached.filter((name) => fields.some((line) => line.toLowerCase().startsWith(`${name}:`)))).toEqual([
      'x-mine',
    ])
    expect((await get('HEAD /invoices', {})).status).toBe(405)
  })

  test('says how many were left out where the file asks for it', async () => {
    const answer = await get('GET /counted', { body: '{"items":[{"id":1},{"id":2},{"id":4}]}' })
    expect([field(answer, 'portcullis-removed'), answer.body]).toEqual(['2', '{"items":[{"id":1}]}'])
  })

  test('stands at one revision, is asked again once, and then 503', async () => {
    const items = Array.from({ length: 600 }, (_, id) => ({ id }))
    let count = 0
    const moving = (last: number) => (asked: Parameters<typeof world.pdp.script>[0]) => {
      const answer = tuples(MAY)(asked)
      if (typeof answer === 'string' || answer === null) return answer
      if (asked.permissions.length > 0) count += 1
      return { ...answer, revision: count <= last ? String(count) : 'same' }
    }
    world.pdp.script = moving(3)
    expect(JSON.parse(await bodyOf('GET /invoices', JSON.stringify({ items })))).toEqual({
      items: [{ id: 1 }, { id: 3 }, { id: 7 }],
    })
    count = 0
    world.pdp.script = moving(1_000)
    expect((await get('GET /invoices', { body: JSON.stringify({ items }) })).status).toBe(503)
  })

  test('is one question: three hundred checks leave in one message', async () => {
    const before = world.pdp.messages()
    await bodyOf('GET /invoices', JSON.stringify({ items: Array.from({ length: 300 }, (_, id) => ({ id })) }))
    // The one before asks about the request itself.
    expect(world.pdp.messages() - before).toBeLessThanOrEqual(3)
  })

  test('an error of the service passes as it is', async () => {
    expect(await get('GET /invoices', { body: '{"total":9}', status: 500 })).toMatchObject({
      status: 500,
      body: '{"total":9}',
    })
    expect((await get('GET /invoices', { status: 204, head: {} })).status).toBe(204)
  })
})

const ITEM = '{"id":1}'
describe('nobody gets an answer', () => {
  test.each<[string, Answer]>([
    ['without the list', { body: '{"rows":[]}' }],
    ['whose list is no list', { body: '{"items":{"0":{"id":1}}}' }],
    ['with the list twice', { body: `{"items":[],"items":[${ITEM}]}` }],
    ['with the list twice, once by an escape', { body: `{"items":[${ITEM}],"\\u0069tems":[{"id":2}]}` }],
    ['with an item without the member', { body: `{"items":[${ITEM},{"x":2}]}` }],
    ['with an item that has the member twice', { body: `{"items":[${ITEM},{"id":1,"id":2}]}` }],
    ['with an item that has the member twice, once by an escape', { body: `{"items":[{"id":2,"\\u0069d":1}]}` }],
    ['with an item that is no object', { body: `{"items":[${ITEM},7]}` }],
    ['with an item that is a list', { body: `{"items":[${ITEM},[${ITEM}]]}` }],
    ['with an id that is null', { body: '{"items":[{"id":null}]}' }],
    ['with an id that is an object', { body: '{"items":[{"id":{}}]}' }],
    ['with an id that is true', { body: '{"items":[{"id":true}]}' }],
    ['with an id that is no integer as it is written', { body: '{"items":[{"id":1.0}]}' }],
    ['with an id with an exponent', { body: '{"items":[{"id":1e0}]}' }],
    ['with an id that readers round', { body: '{"items":[{"id":9007199254740993}]}' }],
    ['with an id that no resource has', { body: '{"items":[{"id":"a#b"}]}' }],
    ['with an id that is empty', { body: '{"items":[{"id":""}]}' }],
    ['with an id of half a character', { body: '{"items":[{"id":"\\ud800"}]}' }],
    ['with an id that some servers read as another', { body: '{"items":[{"id":"\\uff41"}]}' }],
    ['that is no JSON', { body: '{"items":[{"id":1},]}' }],
    ['with a comment', { body: '{"items":[/* */{"id":1}]}' }],
    ['with NaN', { body: '{"items":[{"id":1}],"x":NaN}' }],
    ['that is cut', { body: '{"items":[{"id":1}' }],
    ['with more behind it', { body: '{"items":[]}{"items":[{"id":2}]}' }],
    ['with a byte order mark', { body: '\ufeff{"items":[]}' }],
    ['that is empty', { body: '' }],
    ['in another charset', { body: '{"items":[]}', head: { 'content-type': 'application/json; charset=utf-16' } }],
    ['whose bytes are no UTF-8', { body: Buffer.from('{"items":[],"x":"\xff"}', 'latin1') }],
    ['of another media type', { body: '{"items":[]}', head: { 'content-type': 'text/html' } }],
    ['without a media type', { body: '{"items":[]}', head: {} }],
    ['with two media types', { body: '{"items":[]}', head: { 'content-type': ['application/json', 'text/html'] } }],
    [
      'that is compressed although nobody asked for it',
      { body: gzipSync('{"items":[]}'), head: { ...JSON_TYPE, 'content-encoding': 'gzip' } },
    ],
    [
      'that is a part of one',
      { body: '{"items":[]}', status: 206, head: { ...JSON_TYPE, 'content-range': 'bytes 0-1/2' } },
    ],
    ['that is too large', { body: JSON.stringify({ items: [], x: 'x'.repeat(200_001) }) }],
    ['of lines', { body: `${ITEM}\n`, head: { 'content-type': 'application/x-ndjson' } }],
    ['of events', { body: `data: ${ITEM}\n\n`, head: { 'content-type': 'text/event-stream' } }],
  ])('%s', async (_, answer) => {
    const got = await get('GET /invoices', answer)
    expect([got.status, got.body.includes('items')]).toEqual([502, false])
  })

  test('when its token was revoked meanwhile, or the PDP cannot decide', async () => {
    const body = `{"items":[${ITEM}]}`
    world.pdp.script = (asked) => (asked.permissions.length === 0 ? tuples(MAY)(asked) : 'store_unavailable')
    expect((await get('GET /invoices', { body })).status).toBe(503)
    world.pdp.script = (asked) => {
      const answer = tuples(MAY)(asked)
      return typeof answer === 'object' && answer !== null && asked.permissions.length > 0
        ? { ...answer, active: false }
        : answer
    }
    expect((await get('GET /invoices', { body })).status).toBe(401)
  })

  test('where too many are held: 503, and the next one passes', async () => {
    const rest: ServerResponse[] = []
    world.upstream.handle = (_, res) => void rest.push(res.writeHead(200, JSON_TYPE))
    const token = await world.issuer.token()
    const waiting = [1, 2].map(() => world.send('GET /invoices', { token }))
    await until(() => rest.length === 2)
    const large = JSON.stringify({ items: [{ id: 1 }], x: 'x'.repeat(160_000) })
    for (const res of rest) res.end(large)
    expect((await Promise.all(waiting)).map(({ status }) => status).sort()).toEqual([200, 503])
    expect((await get('GET /invoices', { body: large })).status).toBe(200)
  })
})

describe('lines and events', () => {
  const LINES = { 'content-type': 'application/x-ndjson' }
  const EVENTS = { 'content-type': 'text/event-stream; charset=utf-8' }

  test.each([
    ['lines', '/lines', LINES, '{"id":1}\n{"id":2}\r\n\n {"id":"a"} \n{"id":3}', '{"id":1}\n\n {"id":"a"} \n{"id":3}'],
    [
      'events',
      '/events',
      EVENTS,
      ': hi\n\nid: 1\ndata: {"id":1}\n\nid: 2\ndata: {"id":2}\n\ndata: {"id":\rdata: 3}\r\r\ndata: {"id"',
      ': hi\n\nid: 1\ndata: {"id":1}\n\ndata: {"id":\rdata: 3}\r\r\n',
    ],
  ])('%s are kept one by one, wherever the pieces of the stream end', async (_, path, head, body, expected) => {
    const token = await world.issuer.token()
    for (let cut = 1; cut < body.length; cut += 1) {
      world.upstream.handle = (_req, res) => {
        res.writeHead(200, head).write(body.slice(0, cut))
        setImmediate(() => res.end(body.slice(cut)))
      }
      expect([cut, (await world.send(`GET ${path}`, { token })).body]).toEqual([cut, expected])
    }
  })

  test('each is asked when it comes: a grant that is taken away hides the next line', async () => {
    let writing: ServerResponse | null = null
    world.upstream.handle = (_, res) => {
      writing = res.writeHead(200, LINES)
      res.write('{"id":1}\n')
    }
    const token = await world.issuer.token()
    const before = world.pdp.asked.length
    const answer = world.send('GET /lines', { token })
    await until(() => world.pdp.asked.slice(before).some(({ permissions }) => permissions.includes('viewer invoice:1')))
    world.pdp.script = tuples([])
    const res = writing as ServerResponse | null
    res?.end('{"id":1}\n{"id":3}\n')
    expect((await answer).body).toBe('{"id":1}\n')
  })

  test.each([
    ['a line that is no JSON', '/lines', LINES, '{"id":1}\n{"id":\n{"id":1}\n'],
    ['a line without the member', '/lines', LINES, '{"id":1}\n{"x":1}\n{"id":1}\n'],
    ['a line that is too long', '/lines', LINES, `{"id":1}\n{"id":1,"x":"${'x'.repeat(200_001)}"}\n{"id":1}\n`],
    ['an event that is no JSON', '/events', EVENTS, 'data: {"id":1}\n\ndata: [DONE]\n\ndata: {"id":1}\n\n'],
    ['an event without the member', '/events', EVENTS, 'data: {"id":1}\n\ndata: {}\n\ndata: {"id":1}\n\n'],
  ])('%s ends the stream before it', async (_, path, head, body) => {
    world.upstream.handle = (_req, res) => {
      res.writeHead(200, head).write(body.slice(0, body.indexOf('\n') + (path === '/events' ? 2 : 1)))
      setTimeout(() => res.end(body.slice(body.indexOf('\n') + (path === '/events' ? 2 : 1))), 50)
    }
    const { text } = await world.send(`GET ${path}`, { token: await world.issuer.token() })
    expect(text.match(/"id":1/g)).toHaveLength(1)
  })
})

describe('shadow mode', () => {
  test('removes nothing, and counts what it would remove', async () => {
    const body = '{"items":[{"id":1},{"id":2}],"total":2}'
    const answer = await get('GET /shadow', { body, head: { ...JSON_TYPE, etag: '"a"' } })
    expect([answer.body, field(answer, 'etag')]).toEqual([body, '"a"'])
    await until(() => world.log.some((line) => 'route' in line && line.route === 'GET /shadow' && 'removed' in line))
    expect(world.log.findLast((line) => 'route' in line && line.route === 'GET /shadow')).toMatchObject({ removed: 1 })
    const metrics = await world.registry.metrics()
    expect(metrics).toMatch(/answer_items_total\{route="GET \/shadow",outcome="would_remove"\} 1/)
  })

  test.each(['{"rows":[]}', '{"items":[{"x":1}]}', 'no JSON'])('passes what it could not read: %s', async (body) => {
    expect(await get('GET /shadow', { body })).toMatchObject({ status: 200, body })
    expect((await get('HEAD /shadow', {})).status).toBe(200)
  })
})

test('the line of a request says how many items were left out', async () => {
  await get('POST /search', { body: '{"items":[{"id":1},{"id":2},{"id":4}]}' })
  await until(() => world.log.some((line) => 'route' in line && line.route === 'POST /search'))
  expect(world.log.findLast((line) => 'route' in line && line.route === 'POST /search')).toMatchObject({
    status: 200,
    removed: 2,
  })
})

test('any document shows exactly what an exhaustive check allows, and the rest byte for byte', async () => {
  const item = fc.record({ id: fc.constantFrom(1, 2, '3', 'a', 'b', 7), x: fc.jsonValue() })
  const blank = fc.constantFrom('', ' ', '\n', '\t ')
  const cases = fc.record({
    items: fc.array(item, { maxLength: 8 }),
    before: fc.jsonValue(),
    after: fc.jsonValue(),
    blank,
  })
  const mayRead = (id: unknown): boolean => MAY.includes(`alice viewer invoice:${id}`)
  const filter = itemFilter(RULE, async (texts) => texts.map((text) => mayRead(JSON.parse(text).id)), {
    ...{ bytesMax: 1, shadow: false, count: { kept: 0, removed: 0 } },
  })
  await fc.assert(
    fc.asyncProperty(cases, async ({ items, before, after, blank: gap }) => {
      const frame = (list: readonly unknown[]): string =>
        `${gap}{"before":${JSON.stringify(before)},${gap}"items":[${list.map((one) => JSON.stringify(one)).join(',')}],"after":${JSON.stringify(after)}}${gap}`
      expect(await filter.edit(frame(items))).toBe(frame(items.filter(({ id }) => mayRead(id))))
    }),
    { numRuns: LONG ? 100_000 : 2_000 },
  )
}, 120_000)

const RULE: AnswerRule = {
  each: { kind: 'document', path: ['items'] },
  keep: { kind: 'relation', relation: 'viewer', type: 'invoice', id: [{ from: 'item', path: ['id'] }] },
  forget: [],
  tellsRemoved: false,
}
