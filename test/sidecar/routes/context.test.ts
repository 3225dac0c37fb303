/** The context that a route's questions bring: what it is made of, what is refused, and that the PDP is told nothing else. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, startHarness } from '../support/harness.ts'

const ROUTES = `
GET /docs/{id}: {check: "viewer doc:{id}", context: {ip: {client.address}, doc: {id}, at: {request.path}, verb: {request.method}}}
GET /typed/{n}: {check: "viewer doc:1", context: {n: {n: int}, ratio: {query.ratio: double}, dry: {query.dry: bool}}}
GET /constants: {check: "viewer doc:1", context: {text: a b, number: 1.5, flag: true, list: [a, 1], region: eu}}
GET /claims: {check: "viewer doc:1", context: {level: {claims.level: int}, groups: {claims.groups: list}, vip: {claims.vip: bool}, name: {claims.name}}}
GET /header: {check: "viewer doc:1", context: {agent: {header.x-agent}}}
GET /query: {check: "viewer doc:1", context: {q: {query.q}}}
POST /body: {check: "viewer doc:1", context: {amount: {body.amount: double}, urgent: {body.urgent: bool}, note: {body.note}}}
GET /plain: viewer doc:1
GET /either: {check: {any: [scope wide, "viewer doc:1"]}, context: {level: {claims.level: int}}}
GET /scoped: scope wide
GET /paid: entitlement feature.docs
`.trim()
let h: Harness
beforeAll(async () => {
  h = await startHarness({ routes: ROUTES, extra: 'context: {region: us}\ntrusted_proxies: [127.0.0.1]' })
})
afterAll(() => h.close())
beforeEach(() => {
  h.pdp.script = tuples(['alice viewer doc:1'], ['feature.docs'])
  h.pdp.asked.length = 0
  h.upstream.reached.length = 0
})
const contexts = (): unknown[] => h.pdp.asked.map(({ context }) => (context === '' ? null : JSON.parse(context)))
const json = ['Content-Type: application/json']

describe('the context of a question', () => {
  test('has the address of the client as the trusted proxy tells it, and the decoded path', async () => {
    await h.send('GET /docs/a%20b', { fields: ['X-Forwarded-For: 203.0.113.7'] })
    expect((await h.send('GET /docs/caf%C3%A9?x=1', { fields: ['X-Forwarded-For: 203.0.113.7'] })).status).toBe(403)
    const own = { region: 'us', ip: '203.0.113.7', doc: 'café', at: '/docs/café', verb: 'GET' }
    expect(contexts()).toEqual([own])
  })

  test('has the address of the connection without a word of the proxy, and HEAD as such', async () => {
    expect((await h.send('HEAD /docs/1')).status).toBe(200)
    expect(contexts()).toEqual([{ region: 'us', ip: '127.0.0.1', doc: '1', at: '/docs/1', verb: 'HEAD' }])
  })

  test('has numbers and booleans where the route says so', async () => {
    expect((await h.send('GET /typed/-7?ratio=-0.25&dry=true')).status).toBe(200)
    expect(contexts()).toEqual([{ region: 'us', n: -7, ratio: -0.25, dry: true }])
  })

  test('has constants, of which the route’s own win over those of the file', async () => {
    expect((await h.send('GET /constants')).status).toBe(200)
    expect(contexts()).toEqual([{ text: 'a b', number: 1.5, flag: true, list: ['a', 1], region: 'eu' }])
  })

  test('has claims of each type', async () => {
    const token = await h.issuer.token({ level: 3, groups: ['a', 'b'], vip: false, name: 'Ännchen' })
    expect((await h.send('GET /claims', { token })).status).toBe(200)
    expect(contexts()).toEqual([{ region: 'us', level: 3, groups: ['a', 'b'], vip: false, name: 'Ännchen' }])
  })

  test('has values of a header field and of a body, which is forwarded as it came', async () => {
    expect((await h.send('GET /header', { fields: ['X-Agent: curl 8'] })).status).toBe(200)
    const body = '{"amount": 12.50, "urgent": true, "note": "a\\u00e9b"}'
    expect((await h.send('POST /body', { body, fields: json })).status).toBe(200)
    expect(contexts()).toEqual([
      { region: 'us', agent: 'curl 8' },
      { region: 'us', amount: 12.5, urgent: true, note: 'aéb' },
    ])
  })

  test.each(['GET /scoped', 'GET /paid'])('is not there for %s, which asks for no relation', async (line) => {
    const token = await h.issuer.token({ scope: 'wide' })
    expect((await h.send(line, { token })).status).toBe(200)
    expect(contexts()).toEqual([null])
  })

  test.each<[object]>([
    [{}],
    [{ level: 3, groups: ['a'], vip: true }],
    [{ level: 3, groups: 'a', vip: true, name: 'x' }],
    [{ level: 3, groups: ['a', 1], vip: true, name: 'x' }],
    [{ level: 3.5, groups: ['a'], vip: true, name: 'x' }],
    [{ level: true, groups: ['a'], vip: true, name: 'x' }],
    [{ level: 3, groups: ['a'], vip: 'true', name: 'x' }],
    [{ level: 3, groups: ['a'], vip: true, name: null }],
    [{ level: 3, groups: ['a'], vip: true, name: 'x'.repeat(4_097) }],
  ])('of a token with %j denies what would be asked with it', async (claims) => {
    const token = await h.issuer.token({ ...claims })
    expect((await h.send('GET /claims', { token })).status).toBe(403)
    expect(contexts()).toEqual([null])
    expect(h.upstream.reached).toEqual([])
  })

  test('that lacks a claim leaves the checks that need none', async () => {
    const wide = await h.issuer.token({ scope: 'wide' })
    expect((await h.send('GET /either', { token: wide })).status).toBe(200)
    expect((await h.send('GET /either')).status).toBe(403)
    expect((await h.send('GET /either', { token: await h.issuer.token({ level: 1 }) })).status).toBe(200)
    expect(contexts()).toEqual([null, null, { region: 'us', level: 1 }])
  })

  test.each([
    ['GET /typed/x?ratio=1&dry=true', 'n is not an integer'],
    ['GET /typed/01?ratio=1&dry=true', 'n has a zero in front'],
    ['GET /typed/1e3?ratio=1&dry=true', 'n has an exponent'],
    ['GET /typed/1234567890123456?ratio=1&dry=true', 'n is too large'],
    ['GET /typed/%D9%A1?ratio=1&dry=true', 'n is an Arabic digit'],
    ['GET /typed/1?ratio=NaN&dry=true', 'ratio is not a number'],
    ['GET /typed/1?ratio=1,5&dry=true', 'ratio has a comma'],
    ['GET /typed/1?ratio=&dry=true', 'ratio is empty'],
    ['GET /typed/1?ratio=1&dry=yes', 'dry is neither true nor false'],
    ['GET /typed/1?ratio=1&dry=TRUE', 'dry is in capitals'],
    ['GET /typed/1?ratio=1', 'dry is missing'],
    ['GET /typed/1?ratio=1&dry=true&dry=true', 'dry is there twice'],
    ['GET /typed/1?ratio=1&dry=true&DRY=false', 'another case of dry is there'],
    ['GET /query', 'q is missing'],
    ['GET /query?q=a+b', 'q has a plus'],
    ['GET /query?q=a%0Ab', 'q has a line break'],
    ['GET /query?q=%EF%BC%94', 'q has a full-width digit'],
    ['GET /query?q=e%CC%81', 'an accent of q stands by itself'],
    [`GET /query?q=${'x'.repeat(4_097)}`, 'q is too long'],
    ['GET /header', 'the field is missing'],
  ])('%s is 400, because %s', async (line) => {
    expect((await h.send(line)).status).toBe(400)
    expect(h.pdp.asked).toEqual([])
    expect(h.upstream.reached).toEqual([])
  })

  test.each([
    [['X-Agent: a', 'X-Agent: a']],
    [['X-Agent: a', 'X_Agent: b']],
    [['X-Agent: \u00e4']],
    [['X-Agent: a', 'Connection: x-agent']],
  ])('is 400 with the fields %j', async (fields) => {
    expect((await h.send('GET /header', { fields })).status).toBe(400)
    expect(h.pdp.asked).toEqual([])
  })

  test.each([
    '{"amount": "x", "urgent": true, "note": "a"}',
    '{"amount": 1e3, "urgent": true, "note": "a"}',
    '{"amount": 1, "amount": 2, "urgent": true, "note": "a"}',
    '{"amount": 1, "urgent": 1, "note": "a"}',
    '{"amount": 1, "urgent": null, "note": "a"}',
    '{"amount": 1, "urgent": true, "note": {}}',
    '{"amount": 1, "urgent": true, "note": "\\ud800"}',
    '{"amount": 1, "urgent": true, "note": "\\u0000"}',
    '{"amount": 1, "urgent": true}',
  ])('is 400 with the body %s', async (body) => {
    expect((await h.send('POST /body', { body, fields: json })).status).toBe(400)
    expect(h.pdp.asked).toEqual([])
  })
})
