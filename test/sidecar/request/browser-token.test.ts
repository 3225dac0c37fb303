/** Tokens of WebSocket and EventSource: where they count, whose pages may use a cookie, and that no service gets one. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { syntheticRequest } from '../../../sidecar/http/client-request.ts'
import { takeBrowserToken } from '../../../sidecar/request/browser-token.ts'
import { readInbound } from '../../../sidecar/request/inbound.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, loadFile, routeFile, startHarness } from '../support/harness.ts'
import { fieldOf } from '../support/upstream.ts'

const ROUTE = { tokenFrom: { subprotocol: true, cookie: 'tok' }, origins: new Set(['https://app.test']) }
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

test.each([
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
GET /shadow: {check: viewer doc:1, mode: shadow, forward_token: true, token_from: {cookie: tok}}
GET /events: {check: signed_in, token_from: {cookie: tok}}`
  beforeAll(async () => {
    h = await startHarness({ routes: ROUTES, extra: 'hosts: [127.0.0.1, app.test]', script: tuples([]) })
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

  test('a request that only shadow mode lets through has no token of a cookie either', async () => {
    const fields = ['Cookie: tok=stale', STREAM, 'Sec-Fetch-Site: cross-site']
    expect((await h.send('GET /shadow', { token: null, fields })).status).toBe(200)
    expect(fieldOf(h.upstream.reached[0], 'cookie')).toBeNull()
  })
})

test.each([
  ['{check: public, token_from: {cookie: a}}', /cannot be used on a public route/],
  ['{check: signed_in, token_from: {}}', /needs subprotocol, cookie or both/],
  ['{check: signed_in, token_from: {subprotocol: true}}', /subprotocol needs upgrade/],
  ['{check: signed_in, token_from: {subprotocol: yes please}}', /subprotocol must be true or false/],
  ['{check: signed_in, token_from: {cookie: "a b"}}', /not the name of a cookie/],
  ['{check: signed_in, token_from: {cookie: ""}}', /not the name of a cookie/],
  ['{check: signed_in, token_from: {cookie: __Host-portcullis-session}}', /a cookie of the sidecar/],
  ['{check: signed_in, token_from: {query: access_token}}', /unknown key "query"/],
  ['{check: signed_in, token_from: cookie}', /token_from must be a map/],
  ['{check: signed_in, origins: ["https://a.test"]}', /origins needs upgrade, or token_from/],
])('a route %s is refused', (route, says) => {
  expect(() => loadFile(routeFile(`GET /x: ${route}`))).toThrow(says)
})

test('a door that cannot take the cookie out of the request has no such route', () => {
  const extra = 'doors: [{profile: nginx, listen: "unix:/run/door"}]'
  const source = routeFile('GET /x: {check: signed_in, token_from: {cookie: a}}', { extra })
  const load = () => loadFile(source.replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1'))
  expect(load).toThrow(/nginx would pass the cookie on/)
})

test.each(['POST', '*'])('a route of %s has no token_from', (method) => {
  const load = () => loadFile(routeFile(`"${method} /x": {check: signed_in, token_from: {cookie: a}}`))
  expect(load).toThrow(/token_from needs the method GET/)
})
