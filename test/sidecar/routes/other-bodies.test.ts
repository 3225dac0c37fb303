/** Where a check reads the query, no body but JSON passes, because some services read all of them. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createExplainer } from '../../../sidecar/enforce/explain.ts'
import { sendRaw } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { ask, openSession } from '../support/http2-client.ts'

const ROUTES = `
"* /any-method": member organization:{query.org}
POST /context: {check: "member organization:acme", context: {region: {query.region}}}
POST /both: {any: ["member organization:{query.org}", "member organization:{claims.org}"]}
POST /equal: {equals: {query.org: acme}}
POST /bodies-too: {all: ["member organization:{query.org}", "editor note:{body.id}"]}
"* /judged/{org}": {check: "member organization:{org}", body: judge}
POST /plain: member organization:acme
`.trim()

let h: Harness
beforeAll(async () => {
  h = await startHarness({ routes: ROUTES, script: tuples(['alice member organization:acme']) })
})
afterAll(() => h.close())
beforeEach(() => {
  h.upstream.reached.length = 0
  h.pdp.asked.length = 0
})

const outcome = async (line: string, fields: readonly string[], body: string): Promise<number> => {
  const { status } = await h.send(line, { fields, body })
  expect(h.upstream.reached.length).toBe(status === 200 ? 1 : 0)
  return status
}

describe('a body of another type, which some services read as a form or bind to what the check read in the query,', () => {
  const OTHERS = [
    'text/plain',
    'application/octet-stream',
    'application/xml',
    'application/yaml',
    'application/toml',
    'application/msgpack',
    'application/x-protobuf',
    'application/grpc',
    'image/png',
    'a/b',
    'text/csv; header=present',
  ]
  test.each(OTHERS)('%s, is 415 for each method, and nobody is asked', async (type) => {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY']) {
      const line = `${method} /any-method?org=acme`
      expect([line, await outcome(line, [`Content-Type: ${type}`], 'org=victim')]).toEqual([line, 415])
    }
    expect(h.pdp.asked).toEqual([])
  })

  test.each(['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'])('is 415 without a type too: %s', async (method) => {
    expect(await outcome(`${method} /any-method?org=acme`, [], 'org=victim')).toBe(415)
    expect(h.pdp.asked).toEqual([])
  })

  test.each([
    ['POST /context?region=eu', 'Content-Type: text/plain', 'the context reads the query'],
    ['POST /both?org=acme', 'Content-Type: text/plain', 'one of several checks reads the query'],
    ['POST /equal?org=acme', 'Content-Type: text/plain', 'the check compares a value of the query'],
    ['POST /judged/acme', 'Content-Type: text/plain', 'the route judges bodies, and the check reads the path'],
    ['GET /judged/acme', 'X-A: 1', 'the same without a type'],
    ['POST /bodies-too?org=acme', 'Content-Type: text/plain', 'another check reads the body'],
  ])('is 415: %s with %s, as %s', async (line, field) => {
    expect(await outcome(line, [field], 'org=victim')).toBe(415)
    expect(h.pdp.asked).toEqual([])
  })

  test.each(['text/plain', null])('is 415 in chunks and over HTTP/2, where no length comes first: %s', async (type) => {
    const token = await h.issuer.token()
    for (const method of ['GET', 'HEAD', 'POST', 'DELETE']) {
      const typed = type === null ? '' : `Content-Type: ${type}\r\n`
      const head = `Host: app.test\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n${typed}`
      const line = `${method} /any-method?org=acme`
      const chunked = `${line} HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\na\r\norg=victim\r\n0\r\n\r\n`
      expect([line, (await sendRaw(h.port, chunked)).status]).toEqual([line, 415])
      const session = openSession(h.port)
      const headers = { authorization: `Bearer ${token}`, ...(type !== null && { 'content-type': type }) }
      const { status } = await ask(session, line, { headers, body: 'org=victim' })
      session.destroy()
      expect([line, status]).toEqual([line, 415])
    }
    expect([h.upstream.reached, h.pdp.asked]).toEqual([[], []])
  })

  test('is not there in chunks that hold nothing', async () => {
    const head = `Host: app.test\r\nAuthorization: Bearer ${await h.issuer.token()}\r\nConnection: close\r\n`
    const chunked = `GET /any-method?org=acme HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`
    expect((await sendRaw(h.port, chunked)).status).toBe(200)
  })
})

describe('a JSON body in which a reader of forms finds the value that was checked,', () => {
  const JSON_TYPE = ['Content-Type: application/json']
  test.each([
    ['POST /any-method?org=acme', '{"a":"&org=victim&"}', 'Bottle and CGI of Ruby read JSON as a form'],
    ['GET /any-method?org=acme', '["&org=victim&"]', 'for GET, too'],
    ['POST /any-method?org=acme', '"x;org=victim;"', 'a semicolon may separate pairs'],
    ['POST /any-method?org=acme', '{"&ORG[]":{"a":"=victim"}}', 'another spelling is within a key'],
    ['POST /any-method?org=acme', '{"a":"&%6frg=victim"}', 'its key is encoded'],
    ['POST /any-method?org=acme', '{"a":"& org&"}', 'it has no value'],
    ['POST /judged/acme', '{"a":"&org=victim&"}', 'the route judges bodies'],
  ])('is 400: %s with %s, as %s', async (line, body) => {
    expect(await outcome(line, JSON_TYPE, body)).toBe(400)
    expect(h.pdp.asked).toEqual([])
  })

  test.each([
    ['POST /any-method?org=acme', '{"a":"x & y; http://a/?b=1&organ=2","b":"org=1"}'],
    ['POST /plain?org=acme', '{"a":"&org=victim&"}'],
  ])('passes with other texts, or where no check reads the query: %s with %s', async (line, body) => {
    expect(await outcome(line, JSON_TYPE, body)).toBe(200)
  })
})

test('explain says why a body of another type is refused, and what allows it', () => {
  const explain = createExplainer(h.file())
  const explained = (headers: readonly (readonly [string, string])[], body: string | null) =>
    explain({ method: 'POST', target: '/any-method?org=acme', as: { sub: 'alice' }, headers, body }).denial
  const denial = explained([['Content-Type', 'text/plain']], 'org=victim')
  expect(denial).toMatchObject({ status: 415 })
  expect(denial?.detail).toContain('takes no body but JSON: a check takes a value of the query')
  expect(denial?.detail).toContain('set body: keep')
  expect(explained([['Content-Type', 'text/plain']], null)).toBeNull()
})
