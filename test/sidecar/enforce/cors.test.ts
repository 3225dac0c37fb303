/** Pages of other origins: what they may read, and what their preflights are answered with. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { fileWarnings } from '../../../sidecar/route-file/warnings.ts'
import { field, type RawAnswer, sendRaw } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, loadFile, routeFile, type SendOptions, startHarness } from '../support/harness.ts'
import { fieldOf } from '../support/upstream.ts'

const PAGE = 'https://spa.example.com'
const ROUTES = `GET /api/x: viewer doc:1
POST /api/x: {equals: {body.a: b}}
"* /all": signed_in
"* /open": public
GET /files/{id}: {check: "viewer doc:{id}", cors: {origins: ["https://files.example.com"], preflight: pass}}
"* /files/{id}/raw": {check: signed_in, cors: {origins: ["*"], preflight: pass}}
GET /own: signed_in
OPTIONS /own: public
GET /guarded-options: signed_in
OPTIONS /guarded-options: signed_in`
const CORS = `cors:
  origins: [${PAGE}, "https://other.example.com"]
  credentials: true
  allow_headers: [authorization, content-type]
  expose_headers: [X-Total-Count]
  max_age: 600`

let h: Harness
beforeAll(async () => {
  h = await startHarness({ routes: ROUTES, extra: CORS })
})
afterAll(() => h.close())
beforeEach(() => {
  h.apply(ROUTES)
  h.pdp.script = tuples(['alice viewer doc:1', 'alice viewer doc:7'])
  h.upstream.reached.length = 0
  h.upstream.handle = null
})

const from = (line: string, { fields = [], ...options }: SendOptions = {}, page = PAGE): Promise<RawAnswer> =>
  h.send(line, { token: null, ...options, fields: [`Origin: ${page}`, ...fields] })
const preflight = (target: string, method = 'GET', page = PAGE, fields: readonly string[] = []): Promise<RawAnswer> =>
  from(`OPTIONS ${target}`, { fields: [`Access-Control-Request-Method: ${method}`, ...fields] }, page)

describe('an answer of the sidecar itself', () => {
  test.each<[status: number, line: string, options: SendOptions]>([
    [401, 'GET /api/x', {}],
    [403, 'GET /files/2', {}],
    [404, 'GET /nothing', {}],
    [405, 'DELETE /api/x', {}],
    [400, 'GET /a//b', {}],
    [413, 'POST /api/x', { body: 'x'.repeat(70_000), fields: ['Content-Type: application/json'] }],
    [415, 'POST /api/x', { body: 'x', fields: ['Content-Type: text/plain'] }],
    [421, 'GET /api/x', { host: 'other.test' }],
    [431, 'GET /api/x', { fields: Array.from({ length: 101 }, (_, n) => `X-${n}: 1`) }],
  ])('with status %i can be read by a page that is named', async (status, line, options) => {
    const page = line.includes('/files/') ? 'https://files.example.com' : PAGE
    const token = status === 401 ? {} : { token: await h.issuer.token() }
    const answer = await from(line, { ...token, ...options }, page)
    expect(answer.status).toBe(status)
    expect(field(answer, 'access-control-allow-origin')).toBe(page)
    expect(field(answer, 'access-control-expose-headers')).toContain('WWW-Authenticate')
    expect(field(answer, 'vary')).toBe('Origin')
    expect(JSON.parse(answer.body)).toHaveProperty('code')
  })

  test('to a header section that is too long to be a request can be read, too', async () => {
    const head = `GET /api/x HTTP/1.1\r\nHost: app.test\r\nOrigin: ${PAGE}\r\nAuthorization: Bearer ${'a'.repeat(70_000)}\r\n\r\n`
    const answer = await sendRaw(h.port, head)
    expect(answer.status).toBe(431)
    expect(field(answer, 'access-control-allow-origin')).toBe(PAGE)
  })

  test('to two Origin fields, also in a header section that is too long, is for nobody', async () => {
    const twice = await from('GET /api/x', { fields: [`Origin: ${PAGE}`] })
    expect(field(twice, 'access-control-allow-origin')).toBeNull()
    const head = `GET / HTTP/1.1\r\nHost: app.test\r\nOrigin: ${PAGE}\r\norigin: ${PAGE}\r\nX: ${'a'.repeat(70_000)}\r\n\r\n`
    expect(field(await sendRaw(h.port, head), 'access-control-allow-origin')).toBeNull()
  })

  test.each([
    'https://evil.example.com',
    'http://spa.example.com',
    'https://spa.example.com:8443',
    'https://spa.example.com.evil.test',
    'null',
    'HTTPS://SPA.EXAMPLE.COM',
  ])('to a page of %s cannot be read, and caches are told', async (page) => {
    const answer = await from('GET /api/x', {}, page)
    expect(answer.status).toBe(401)
    expect(field(answer, 'access-control-allow-origin')).toBeNull()
    expect(field(answer, 'access-control-allow-credentials')).toBeNull()
    expect(field(answer, 'vary')).toBe('Origin')
  })

  test('has no such fields without cors', async () => {
    h.apply('GET /api/x: signed_in', '')
    const answer = await from('GET /api/x')
    expect(answer.status).toBe(401)
    expect(answer.fields.some(([name]) => /^(access-control|vary)/i.test(name))).toBe(false)
  })
})

describe('an answer of the service', () => {
  test('can be read where the sidecar answers preflights', async () => {
    const answer = await from('GET /api/x', { token: await h.issuer.token() })
    expect(answer.status).toBe(200)
    expect(field(answer, 'access-control-allow-origin')).toBe(PAGE)
    expect(field(answer, 'access-control-allow-credentials')).toBe('true')
    expect(field(answer, 'access-control-expose-headers')).toContain('X-Total-Count')
  })

  test('keeps the fields by which the service shares it, and gets no second ones', async () => {
    h.upstream.handle = (_req, res) => void res.writeHead(200, { 'Access-Control-Allow-Origin': '*' }).end()
    const answer = await from('GET /api/x', { token: await h.issuer.token() })
    expect(field(answer, 'access-control-allow-origin')).toBe('*')
    expect(field(answer, 'access-control-allow-credentials')).toBeNull()
  })

  test('shares cookies only as the file says, whatever a service adds that names no page', async () => {
    h.upstream.handle = (_req, res) => void res.writeHead(200, { 'Access-Control-Allow-Credentials': 'true' }).end()
    const values = (answer: RawAnswer): string[] =>
      answer.fields.flatMap(([name, value]) => (/^access-control-allow-credentials$/i.test(name) ? [value] : []))
    expect(values(await from('GET /api/x', { token: await h.issuer.token() }))).toEqual(['true'])
    h.apply(ROUTES, `cors: {origins: [${PAGE}]}`)
    const answer = await from('GET /api/x', { token: await h.issuer.token() })
    expect([field(answer, 'access-control-allow-origin'), values(answer)]).toEqual([PAGE, []])
  })

  test('is not touched where the service answers preflights', async () => {
    const answer = await from('GET /files/7', { token: await h.issuer.token() }, 'https://files.example.com')
    expect(answer.status).toBe(200)
    expect(field(answer, 'access-control-allow-origin')).toBeNull()
  })
})

describe('a preflight', () => {
  test('is answered without a token, with what the file allows', async () => {
    const answer = await preflight('/api/x', 'POST', PAGE, ['Access-Control-Request-Headers: x-evil'])
    expect(answer.status).toBe(204)
    expect(field(answer, 'access-control-allow-origin')).toBe(PAGE)
    expect(field(answer, 'access-control-allow-methods')).toBe('POST')
    expect(field(answer, 'access-control-allow-headers')).toBe('authorization, content-type')
    expect(field(answer, 'access-control-max-age')).toBe('600')
    expect(h.upstream.reached).toEqual([])
  })

  test('for a method that the path lacks names those that it has', async () => {
    const answer = await preflight('/api/x', 'DELETE')
    expect(field(answer, 'access-control-allow-methods')).not.toContain('DELETE')
  })

  test('for a path without a route lets the page read the 404 that follows', async () => {
    expect(field(await preflight('/nothing'), 'access-control-allow-origin')).toBe(PAGE)
  })

  test.each([['/all'], ['/guarded-options']])(
    'of %s, whose OPTIONS needs a token, is not asked for one',
    async (target) => {
      expect((await preflight(target)).status).toBe(204)
      h.apply(ROUTES, '')
      const plain = await preflight(target)
      expect([plain.status, field(plain, 'access-control-allow-origin')]).toEqual([204, null])
      expect(h.upstream.reached).toEqual([])
    },
  )

  test.each<[why: string, fields: readonly string[], token?: true]>([
    ['without Access-Control-Request-Method', []],
    ['with two of them', ['Access-Control-Request-Method: GET', 'Access-Control-Request-Method: GET']],
    ['with one that is no method', ['Access-Control-Request-Method: G ET']],
  ])('%s is an ordinary request, which needs a token', async (_, fields) => {
    expect((await from('OPTIONS /all', { fields })).status).toBe(401)
    expect((await from('OPTIONS /files/7/raw', { fields })).status).toBe(401)
    expect(h.upstream.reached).toEqual([])
  })

  test('of a page that is not named gets an answer that allows nothing', async () => {
    const answer = await preflight('/api/x', 'GET', 'https://evil.example.com')
    expect(answer.status).toBe(204)
    expect(answer.fields.filter(([name]) => /^access-control/i.test(name))).toEqual([])
  })

  test('reaches the service by a public route of its own for OPTIONS', async () => {
    expect((await preflight('/own')).status).toBe(200)
    expect(h.upstream.reached[0]?.method).toBe('OPTIONS')
  })

  test('goes to the service by one word, without identity and cookies', async () => {
    const fields = ['Cookie: session=1', 'X-Auth-Subject: root']
    const answer = await preflight('/files/7', 'GET', 'https://files.example.com', fields)
    expect(answer.status).toBe(200)
    const [reached] = h.upstream.reached
    expect(reached?.method).toBe('OPTIONS')
    expect(fieldOf(reached, 'access-control-request-method')).toBe('GET')
    expect([fieldOf(reached, 'cookie'), fieldOf(reached, 'x-auth-subject')]).toEqual([null, null])
  })

  test('that goes to the service has no body', async () => {
    const answer = await from('OPTIONS /files/7/raw', {
      fields: ['Access-Control-Request-Method: GET'],
      body: '{"a":1}',
    })
    expect(answer.status).toBe(400)
    expect(h.upstream.reached).toEqual([])
  })

  test('for a method or path without a route does not go to the service', async () => {
    await preflight('/files/7', 'DELETE', 'https://files.example.com')
    await preflight('/files/7/%2e%2e/x', 'GET', 'https://files.example.com')
    expect(h.upstream.reached).toEqual([])
  })

  test('with a token is an ordinary request', async () => {
    const token = await h.issuer.token()
    const answer = await from('OPTIONS /all', { token, fields: ['Access-Control-Request-Method: GET'] })
    expect(answer.status).toBe(200)
    expect(fieldOf(h.upstream.reached[0], 'x-auth-subject')).toBe('alice')
  })
})

describe('the metadata of the resource', () => {
  const METADATA = '/.well-known/oauth-protected-resource'
  test('can be read by every page, as clients in browsers begin with it', async () => {
    h.apply('GET /mcp: signed_in', '')
    expect(field(await from(`GET ${METADATA}`), 'access-control-allow-origin')).toBe('*')
    const asked = [
      'Access-Control-Request-Headers: mcp-protocol-version, "x',
      'Access-Control-Request-Private-Network: true',
    ]
    const answer = await preflight(METADATA, 'GET', 'https://anywhere.example.com', asked)
    expect(answer.status).toBe(204)
    expect(field(answer, 'access-control-allow-origin')).toBe('*')
    expect(field(answer, 'access-control-allow-headers')).toBe('mcp-protocol-version')
    expect(field(answer, 'access-control-allow-credentials')).toBeNull()
  })
})

describe('a route file', () => {
  const load = (extra: string, routes = 'GET /x: public') =>
    loadFile(routeFile(routes, { extra }).replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1'))

  test.each<[cors: string, says: RegExp]>([
    ['{origins: []}', /at least one item/],
    ['{credentials: true}', /needs origins/],
    ['{origins: ["*"], credentials: true}', /name the origins/],
    ['{origins: ["*", "https://a.test"]}', /only origin/],
    ['{origins: ["https://a.test/"]}', /not an origin/],
    ['{origins: ["https://A.test"]}', /not an origin/],
    ['{origins: ["a.test"]}', /not an origin/],
    ['{origins: ["null"]}', /not an origin/],
    ['{origins: ["https://*.test"]}', /not an origin/],
    ['{origins: ["https://a.test"], max_age: 100000}', /whole number/],
    ['{origins: ["https://a.test"], expose_headers: ["a b"]}', /not a header name/],
    ['{origins: ["https://a.test"], allow_headers: ["*"]}', /not a header name/],
    ['{origins: ["https://a.test"], preflight: forward}', /answer or pass/],
  ])('with cors: %s is refused', (cors, says) => {
    expect(() => load(`cors: ${cors}`)).toThrow(says)
    expect(() => load('', `GET /x: {check: public, cors: ${cors}}`)).toThrow(says)
  })

  test('whose line for OPTIONS does not match preflights of other routes is warned about', () => {
    const routes = 'GET /api/x: signed_in\nOPTIONS /**: public'
    expect(fileWarnings(load('', routes)).join()).toMatch(/OPTIONS \/\*\* does not match preflights for GET \/api\/x/)
    expect(fileWarnings(load(CORS, routes)).join()).not.toMatch(/preflights/)
    expect(fileWarnings(load('', 'GET /**: public\nOPTIONS /**: public')).join()).not.toMatch(/preflights/)
  })
})
