/** Tokens of WebSocket and EventSource: where they count, whose pages may use a cookie, and that no service gets one. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { syntheticRequest } from '../../../sidecar/http/client-request.ts'
import { takeBrowserToken } from '../../../sidecar/request/browser-token.ts'
import { readInbound } from '../../../sidecar/request/inbound.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { startDoors } from '../doors/door-harness.ts'
import { type Harness, loadFile, routeFile, startHarness } from '../support/harness.ts'
import { fieldOf } from '../support/upstream.ts'

const ROUTE = {
  tokenFrom: { header: ['x-key', 'x-token'], subprotocol: true, cookie: 'tok' },
  origins: new Set(['https://app.test']),
}
const ORIGIN = { address: '192.0.2.1', host: null, fault: null }
const K8S = 'base64url.bearer.authorization.k8s.io.'
const OWN = ['Origin: https://app.test']
const STREAM = 'Accept: text/event-stream'
const SAME = 'Sec-Fetch-Site: same-origin'

const taken = (lines: readonly string[], { upgrade = true, method = 'GET' } = {}) => {
  const raw = ['Host: app.test', ...lines].flatMap((line) => [
    line.slice(0, line.indexOf(':')),
    line.slice(line.indexOf(':') + 2),
  ])
  const request = readInbound(syntheticRequest({ method, target: '/x', raw }), { origin: ORIGIN, targetCharsMax: 100 })
  const { request: seen, refusal } = takeBrowserToken(request, ROUTE, upgrade)
  const others = seen.names.flatMap((name, at) =>
    name === 'cookie' || name.startsWith('sec-websocket') ? [`${name}: ${seen.raw[2 * at + 1]}`] : [],
  )
  expect(seen.names.length * 2).toBe(seen.raw.length)
  return { token: seen.authorization.join(), others, refused: refusal?.code ?? null }
}

describe('a WebSocket has its token', () => {
  test.each([
    ['bearer, t.o-k', 't.o-k', []],
    ['bearer,t', 't', []],
    ['graphql-ws, bearer, t', 't', ['sec-websocket-protocol: graphql-ws']],
    ['bearer, t, a, b', 't', ['sec-websocket-protocol: a, b']],
    [
      `${K8S}${Buffer.from('t.k').toString('base64url')}, v4.channel.k8s.io`,
      't.k',
      ['sec-websocket-protocol: v4.channel.k8s.io'],
    ],
  ])('in the subprotocols %s', (protocols, token, others) => {
    expect(taken([`Sec-WebSocket-Protocol: ${protocols}`])).toEqual({ token: `Bearer ${token}`, others, refused: null })
  })

  test.each([
    ['tok=t', []],
    ['a=1; tok=t; b=2', ['cookie: a=1; b=2']],
    ['a=1;tok = t', ['cookie: a=1']],
  ])('in the cookies %s of a page that the route names', (cookies, others) => {
    expect(taken([`Cookie: ${cookies}`, ...OWN])).toEqual({ token: 'Bearer t', others, refused: null })
  })

  test.each([
    [['Origin: https://evil.test']],
    [['Origin: null']],
    [['Origin: https://app.test.evil.test']],
    [['Origin: http://app.test']],
    [[...OWN, ...OWN]],
    [[SAME]],
    [[]],
  ])('in no cookie of another page: %j', (fields) => {
    expect(taken(['Cookie: tok=t', ...fields]).refused).toBe('origin_refused')
  })
})

describe('an EventSource has its token in a cookie', () => {
  const alone = { upgrade: false }
  test.each([[[SAME]], [OWN], [[...OWN, 'Sec-Fetch-Site: cross-site']]])('of a page with %j', (fields) => {
    expect(taken(['Cookie: tok=t', STREAM, ...fields], alone)).toEqual({ token: 'Bearer t', others: [], refused: null })
  })

  test.each([
    [[]],
    [['Sec-Fetch-Site: same-site']],
    [['Sec-Fetch-Site: cross-site']],
    [['Sec-Fetch-Site: none']],
    [[SAME, SAME]],
    [[SAME, 'Origin: https://evil.test']],
    [['Origin: https://evil.test']],
  ])('but not of one with %j', (fields) => {
    expect(taken(['Cookie: tok=t', STREAM, ...fields], alone).refused).toBe('origin_refused')
  })

  test.each([
    [[SAME], 'GET'],
    [['Accept: */*', SAME], 'GET'],
    [['Accept: text/event-stream, */*', SAME], 'GET'],
    [[STREAM, STREAM, SAME], 'GET'],
    [[STREAM, SAME], 'POST'],
  ])('and no other request has: %j %s, but the service does not get it', (fields, method) => {
    expect(taken(['Cookie: tok=t; a=1', ...fields], { upgrade: false, method })).toEqual({
      ...{ token: '', others: ['cookie: a=1'], refused: null },
    })
  })

  test('and no subprotocol counts', () => {
    expect(taken(['Sec-WebSocket-Protocol: bearer, t', STREAM, SAME], alone)).toMatchObject({ token: '', others: [] })
  })
})

describe('a field that the route names has the token', () => {
  const alone = { upgrade: false, method: 'POST' }
  test.each([
    [['X-Key: t'], 't', []],
    [['X-Key: bearer  t'], 't', []],
    [['x-TOKEN: t.o-k=='], 't.o-k==', []],
    [['X-Token:  t ', 'Cookie: a=1'], 't', ['cookie: a=1']],
    [['X-Token: t', 'Cookie: tok=u; a=1'], 't', ['cookie: a=1']],
    [['X-Tokens: t'], '', []],
    [['X_Token: t'], '', []],
  ])('%j', (fields, token, others) => {
    expect(taken(fields, alone)).toEqual({ token: token === '' ? '' : `Bearer ${token}`, others, refused: null })
  })
})

test.each([
  [['X-Key: ']],
  [['X-Key: Bearer Bearer t']],
  [['X-Key: Basic t']],
  [['X-Key: t, u']],
  [['X-Key: t\tu']],
  [['X-Key: \u00fc']],
  [['X-Key: t', 'X-Key: t']],
  [['X-Key: t', 'x-key: u']],
  [['X-Key: t', 'X-Token: t']],
  [['X-Key: t', 'Authorization: Bearer t']],
  [['X-Key: t', 'Sec-WebSocket-Protocol: bearer, t']],
  [['X-Key: t', 'Cookie: tok=t', ...OWN]],
  [['Sec-WebSocket-Protocol: bearer']],
  [['Sec-WebSocket-Protocol: bearer, ']],
  [['Sec-WebSocket-Protocol: a, bearer']],
  [['Sec-WebSocket-Protocol: bearer, a b']],
  [['Sec-WebSocket-Protocol: bearer, t, bearer, u']],
  [['Sec-WebSocket-Protocol: bearer, t', 'Sec-WebSocket-Protocol: bearer, t']],
  [[`Sec-WebSocket-Protocol: bearer, t, ${K8S}dA`]],
  [[`Sec-WebSocket-Protocol: ${K8S}`]],
  [[`Sec-WebSocket-Protocol: ${K8S}${Buffer.from('a\r\nX: y').toString('base64url')}`]],
  [[`Sec-WebSocket-Protocol: ${K8S}${Buffer.from('\u00fc').toString('base64url')}`]],
  [['Sec-WebSocket-Protocol: bearer, t', 'Authorization: Bearer t']],
  [['Sec-WebSocket-Protocol: bearer, t', 'Cookie: tok=t', ...OWN]],
  [['Cookie: tok=t', 'Authorization: Bearer t', ...OWN]],
  [['Cookie: tok=t; tok=u', ...OWN]],
  [['Cookie: tok=t', 'Cookie: tok=t', ...OWN]],
  [['Cookie: tok=', ...OWN]],
  [['Cookie: tok', ...OWN]],
  [['Cookie: TOK=t', ...OWN]],
  [['Cookie: \u00a0tok=t', ...OWN]],
  [['Cookie: tok="t"', ...OWN]],
])('is refused where two could read another one, or none: %j', (fields) => {
  expect(() => taken(fields)).toThrow(expect.objectContaining({ code: 'request_invalid' }))
})

describe('through a sidecar', () => {
  let h: Harness
  const ROUTES = `GET /ws: {check: signed_in, upgrade: [websocket], token_from: {subprotocol: true, cookie: tok}, origins: ["https://app.test"]}
GET /shadow: {check: viewer doc:2, mode: shadow, forward_token: true, token_from: {cookie: tok}}
GET /events: {check: signed_in, token_from: {cookie: tok}}
"* /api": {check: viewer doc:1, token_from: {header: [X-Key, X-Token]}}
GET /feed: {public: with_identity, token_from: {header: X-Key}}
GET /other: signed_in`
  beforeAll(async () => {
    h = await startHarness({
      routes: ROUTES,
      extra: 'hosts: [127.0.0.1, app.test]',
      script: tuples(['alice viewer doc:1']),
    })
    h.upstream.onUpgrade = (req, socket) => {
      const accept = createHash('sha1').update(
        `${req.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`,
      )
      const chosen = req.headers['sec-websocket-protocol']
      const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: websocket']
      lines.push(`Sec-WebSocket-Accept: ${accept.digest('base64')}`)
      if (chosen !== undefined) lines.push(`Sec-WebSocket-Protocol: ${chosen.split(',')[0]}`)
      socket.write(`${lines.join('\r\n')}\r\n\r\n`)
    }
  })
  afterAll(() => h.close())
  beforeEach(() => {
    h.upstream.reached.length = 0
  })

  test.each([
    [[], 'bearer'],
    [['graphql-ws'], 'graphql-ws'],
  ])('a page opens a WebSocket by a token beside %j', async (protocols, chosen) => {
    const token = await h.issuer.token()
    const socket = new WebSocket(`ws://127.0.0.1:${h.port}/ws`, ['bearer', token, ...protocols])
    await until(() => socket.readyState !== WebSocket.CONNECTING)
    expect([socket.readyState, socket.protocol]).toEqual([WebSocket.OPEN, chosen])
    expect(fieldOf(h.upstream.reached[0], 'sec-websocket-protocol')).toBe(protocols.join() || null)
    expect(h.upstream.reached[0]?.rawHeaders.join()).not.toContain(token)
    expect(fieldOf(h.upstream.reached[0], 'x-auth-subject')).toBe('alice')
    socket.close()
  })

  test('a page without a good token opens none', async () => {
    for (const protocols of [['bearer', 'a.b.c'], ['graphql-ws']]) {
      const socket = new WebSocket(`ws://127.0.0.1:${h.port}/ws`, protocols)
      await until(() => socket.readyState === WebSocket.CLOSED)
    }
    expect(h.upstream.reached).toEqual([])
  })

  test('an event stream is opened by a cookie, and the query never has a token', async () => {
    const token = await h.issuer.token()
    const ask = (fields: readonly string[], line = 'GET /events') => h.send(line, { token: null, fields })
    expect((await ask([`Cookie: tok=${token}; a=1`, STREAM, SAME])).status).toBe(200)
    expect(fieldOf(h.upstream.reached[0], 'cookie')).toBe('a=1')
    expect(fieldOf(h.upstream.reached[0], 'authorization')).toBeNull()
    expect((await ask([`Cookie: tok=${token}`, STREAM, 'Sec-Fetch-Site: cross-site'])).status).toBe(403)
    expect((await ask([`Cookie: tok=${token}`, SAME])).status).toBe(401)
    expect((await ask([STREAM, SAME], `GET /events?access_token=${token}`)).status).toBe(401)
  })

  test('a token in a field of another name is verified as one in Authorization, and the service does not get it', async () => {
    const token = await h.issuer.token()
    const reach = async (line: string, fields: readonly string[], bearer: string | null = null) => {
      h.upstream.reached.length = 0
      const { status } = await h.send(line, { token: bearer, fields })
      const [reached] = h.upstream.reached
      expect(reached?.rawHeaders.join() ?? '').not.toContain(token)
      return [status, fieldOf(reached, 'x-auth-subject')]
    }
    expect(await reach('PUT /api', [`X-Key: ${token}`])).toEqual([200, 'alice'])
    expect(await reach('GET /api', [`X-Token: ${await h.issuer.token({ sub: 'bob' })}`])).toEqual([403, null])
    expect(await reach('GET /api', ['X-Key: a.b.c'])).toEqual([401, null])
    expect(await reach('GET /api', [`X-Key: ${token}x`])).toEqual([401, null])
    expect(await reach('GET /api', [`X-Key: ${token}`], token)).toEqual([400, null])
    expect(await reach('GET /api?x-key=t', [])).toEqual([401, null])
    expect((await h.send('GET /other', { token: null, fields: [`X-Key: ${token}`] })).status).toBe(401)
  })

  test('a public route with an identity learns it from the field, and refuses nobody without one', async () => {
    const reach = async (fields: readonly string[]) => {
      h.upstream.reached.length = 0
      const { status } = await h.send('GET /feed', { token: null, fields })
      const [reached] = h.upstream.reached
      return [status, fieldOf(reached, 'x-auth-subject'), fieldOf(reached, 'x-key')]
    }
    expect(await reach([`X-Key: ${await h.issuer.token()}`])).toEqual([200, 'alice', null])
    expect(await reach(['X-Key: a.b.c'])).toEqual([200, null, null])
    expect(await reach([])).toEqual([200, null, null])
  })

  test('a request that only shadow mode lets through has no token of a cookie either', async () => {
    const fields = ['Cookie: tok=stale', STREAM, 'Sec-Fetch-Site: cross-site']
    expect((await h.send('GET /shadow', { token: null, fields })).status).toBe(200)
    expect(fieldOf(h.upstream.reached[0], 'cookie')).toBeNull()
  })
})

test.each([
  ['{check: public, token_from: {cookie: a}}', /cannot be used on a public route/],
  ['{check: signed_in, token_from: {}}', /needs header, subprotocol or cookie/],
  ['{check: signed_in, token_from: {subprotocol: true}}', /subprotocol needs upgrade/],
  ['{check: signed_in, token_from: {subprotocol: yes please}}', /subprotocol must be true or false/],
  ['{check: signed_in, token_from: {cookie: "a b"}}', /not the name of a cookie/],
  ['{check: signed_in, token_from: {cookie: ""}}', /not the name of a cookie/],
  ['{check: signed_in, token_from: {cookie: __Host-portcullis-session}}', /a cookie of the sidecar/],
  ['{check: signed_in, token_from: {query: access_token}}', /unknown key "query"/],
  ['{check: public, token_from: {header: X-Key}}', /cannot be used on a public route/],
  ['{public: with_identity, token_from: {cookie: a}}', /takes a token from header, but not from subprotocol or cookie/],
  [
    '{check: signed_in, token_from: {header: Authorization}}',
    /"Authorization" has a meaning in HTTP|is set by the sidecar/,
  ],
  ['{check: signed_in, token_from: {header: Cookie}}', /"Cookie" /],
  ['{check: signed_in, token_from: {header: DPoP}}', /"DPoP" /],
  ['{check: signed_in, token_from: {header: X-Auth-Subject}}', /is set by the sidecar/],
  ['{check: signed_in, token_from: {header: X-Forwarded-For}}', /is set by the sidecar or by a gateway/],
  ['{check: signed_in, token_from: {header: Content-Type}}', /has a meaning in HTTP/],
  ['{check: signed_in, token_from: {header: x_key}}', /is not a name of letters, digits and dashes/],
  ['{check: signed_in, token_from: {header: "a b"}}', /is not a name of letters, digits and dashes/],
  ['{check: signed_in, token_from: {header: []}}', /header must have at least one item/],
  [
    '{check: "viewer a:{header.x-key}", token_from: {header: X-Key}}',
    /header.x-key holds the token, so a check cannot use it/,
  ],
  ['{check: signed_in, token_from: cookie}', /token_from must be a map/],
  ['{check: signed_in, origins: ["https://a.test"]}', /origins needs upgrade, or token_from/],
])('a route %s is refused', (route, says) => {
  expect(() => loadFile(routeFile(`GET /x: ${route}`))).toThrow(says)
})

test.each(['cookie', 'header'])('a door that cannot take a %s out of the request has no such route', (place) => {
  const extra = 'doors: [{profile: nginx, listen: "unix:/run/door"}]'
  const source = routeFile(`GET /x: {check: signed_in, token_from: {${place}: x-a}}`, { extra })
  const load = () => loadFile(source.replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1'))
  expect(load).toThrow(/nginx would pass the token on/)
})

test('the door of Envoy takes the field out of the request', async () => {
  const routes =
    'GET /x: {check: signed_in, token_from: {header: X-Key}}\nGET /y: {check: signed_in, forward_token: true, token_from: {header: X-Key}}'
  const doors = await startDoors({ routes, profiles: ['envoy'] })
  const token = await doors.inner.issuer.token()
  const ask = (target: string, ...fields: [string, string][]) =>
    doors.ask('envoy', { target, host: 'app.test', fields })
  expect(await ask('/x', ['x-key', token])).toMatchObject({ status: 200, removed: expect.arrayContaining(['x-key']) })
  const forwarded = await ask('/y', ['x-key', token])
  expect(forwarded).toMatchObject({ status: 200, removed: expect.arrayContaining(['x-key']) })
  expect(forwarded.fields).toContainEqual(['authorization', `Bearer ${token}`])
  expect((await ask('/x', ['x-key', token], ['authorization', `Bearer ${token}`])).status).toBe(400)
  await doors.close()
})

test.each(['POST', '*'])('a route of %s has no token_from', (method) => {
  const load = () => loadFile(routeFile(`"${method} /x": {check: signed_in, token_from: {cookie: a}}`))
  expect(load).toThrow(/token_from needs the method GET/)
})
