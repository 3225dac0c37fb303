/** What the decision log says of a request: what was asked for, what came of it, and what it leaves out. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Ajv } from 'ajv'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { sendRaw } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'

const ROUTES = `GET /invoices/{id}: viewer invoice:{id}
GET /mine: {all: ["viewer user:{claims.sub}", entitlement feature.x]}
GET /open: public
GET /both: {all: ["viewer invoice:42", "viewer invoice:427"]}
GET /feed: signed_in`
const schema = JSON.parse(
  readFileSync(fileURLToPath(new URL('../../../sidecar/enforce/decision-log.schema.json', import.meta.url)), 'utf8'),
)
const isValid = new Ajv({
  strict: true,
  strictTypes: false,
  validateFormats: false,
  formats: { 'date-time': true },
}).compile(schema)

let h: Harness
beforeAll(async () => {
  h = await startHarness({ routes: ROUTES })
})
afterAll(() => h.close())
beforeEach(() => {
  h.pdp.script = tuples(['alice viewer invoice:42', 'alice viewer user:alice'], ['feature.x'])
  h.upstream.handle = (_req, res) => void res.writeHead(203).end('12345')
  h.log.length = 0
})

type Line = { readonly [name: string]: unknown }
const lines = (): Line[] => h.log.filter((entry): entry is Line => 'event' in entry && entry.event === 'decision')
async function lineOf(line: string, options: Parameters<Harness['send']>[1] = {}): Promise<Line> {
  await h.send(line, options)
  await until(() => lines().length === 1)
  const [found = {}] = lines()
  expect(isValid(found), JSON.stringify(isValid.errors)).toBe(true)
  return found
}

test('the line of an allowed request has its checks as asked, host, path, status, bytes and user agent', async () => {
  expect(await lineOf('GET /invoices/42?page=1', { fields: ['User-Agent: curl/8'] })).toMatchObject({
    host: 'app.test',
    path: '/invoices/42',
    asks: ['viewer invoice:42'],
    status: 203,
    bytes: 5,
    user_agent: 'curl/8',
    decision: 'allow',
  })
})

test('the line of a denied request says which path had no route, and what was asked', async () => {
  expect(await lineOf('GET /nope?token=secret')).toMatchObject({ path: '/nope', host: 'app.test', status: 404 })
  h.log.length = 0
  const denied = await lineOf('GET /invoices/7')
  expect(denied).toMatchObject({
    asks: ['viewer invoice:7'],
    status: 403,
    detail: expect.stringMatching(/^viewer invoice:7/),
  })
})

test.each([
  ['GET /a?token=secret', '/a'],
  ['GET http://user:pass@app.test/a?b', '/a'],
  ['GET /a%0Ab', '/a%0Ab'],
  ['GET /a//b?c', '/a//b'],
])('%s has the path %s in its line, however it is refused', async (line, path) => {
  expect(await lineOf(line)).toMatchObject({ path })
})

test('the query is there only where the file wants it', async () => {
  h.apply(ROUTES, 'log: {path: full}')
  expect(await lineOf('GET /open?q=1')).toMatchObject({ path: '/open?q=1' })
  h.log.length = 0
  h.apply(ROUTES, 'log: {path: without_query}')
  expect(await lineOf('GET /open?q=1')).toMatchObject({ path: '/open' })
})

test('a file that omits paths omits ids, too', async () => {
  h.apply(ROUTES, 'log: {path: omitted}')
  const allowed = await lineOf('GET /invoices/42')
  expect(allowed).toMatchObject({ asks: ['viewer invoice'], route: 'GET /invoices/{id}' })
  h.log.length = 0
  const denied = await lineOf('GET /invoices/secret-7')
  expect(denied).toMatchObject({ detail: 'viewer invoice' })
  expect(JSON.stringify([allowed, denied])).not.toMatch(/invoice:|invoices.42|secret-7|"path"/)
})

test('a file that omits paths omits an id wholly that begins with another one', async () => {
  h.apply(ROUTES, 'log: {path: omitted}')
  expect(await lineOf('GET /both')).toMatchObject({ decision: 'deny', detail: 'viewer invoice' })
})

test.each(['hashed', 'omitted'])(
  'a file that has subjects %s has no ids in questions, which may name them',
  async (how) => {
    h.apply(ROUTES, `log: {subject: ${how}}`)
    const line = await lineOf('GET /mine')
    expect(line).toMatchObject({ asks: ['viewer user', 'entitlement feature.x'] })
    expect(JSON.stringify(line)).not.toContain('alice')
  },
)

test('a client cannot make lines longer than their bounds', async () => {
  const line = await lineOf(`GET /${'a'.repeat(5_000)}`, { fields: [`User-Agent: ${'u'.repeat(5_000)}`] })
  expect(JSON.stringify(line).length).toBeLessThan(3_000)
})

test('the line of a service that does not answer has the status that the client got', async () => {
  h.upstream.handle = (req) => void req.socket.destroy()
  expect(await lineOf('GET /open')).toMatchObject({ decision: 'allow', status: 502 })
})

test('the line of an answer that lasts is there when it begins', async () => {
  h.upstream.handle = (_req, res) =>
    void res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
  const token = await h.issuer.token()
  const asking = sendRaw(h.port, `GET /feed HTTP/1.1\r\nHost: app.test\r\nAuthorization: Bearer ${token}\r\n\r\n`, {
    timeoutMs: 1_500,
  })
  await until(() => lines().length === 1)
  const [line] = lines()
  expect(line).toMatchObject({ status: 200 })
  expect(line).not.toHaveProperty('bytes')
  await asking
})

test('the line of a request whose client leaves is written once', async () => {
  h.upstream.handle = (_req, res) => void res.writeHead(200, { 'content-length': '100' }).write('1234')
  const head = 'GET /open HTTP/1.1\r\nHost: app.test\r\n\r\n'
  await sendRaw(h.port, head, { timeoutMs: 500 })
  await until(() => lines().length === 1)
  expect(lines()).toMatchObject([{ status: 200, bytes: 4 }])
})
