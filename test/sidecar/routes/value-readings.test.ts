import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createExplainer } from '../../../sidecar/enforce/explain.ts'
import { sendRaw } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { ask, openSession } from '../support/http2-client.ts'

const ROUTES = `
GET /reports: member organization:{query.org}
POST /reports: member organization:{query.org}
PUT /reports: member organization:{query.org}
POST /kept: {check: "member organization:{query.org}", body: keep}
POST /context: {check: "member organization:acme", context: {region: {query.region}}}
POST /plain: member organization:acme
POST /both: {any: ["member organization:{query.org}", "member organization:{claims.org}"]}
POST /bodies: member organization:{body.org}
GET /invoices/{id}: viewer invoice:{id}
POST /invoices/{id}: editor invoice:{id}
DELETE /invoices/{id}: owner invoice:{id}
POST /notes/{id}: editor note:{id}
PATCH /notes/{id}: editor note:{id}
GET /drop: scope reading
POST /drop: public
POST /inbox: public
"* /any": scope reading
POST /bodies-too: {all: ["member organization:{query.org}", "editor note:{body.id}"]}
POST /kept-invoices/{id}: {check: "editor invoice:{id}", body: keep}
DELETE /kept-invoices/{id}: owner invoice:{id}
GET /pages: viewer page:all
POST /pages: editor page:all
`.trim()
const GRANTS = ['member organization:acme', 'editor invoice:1', 'editor note:1', 'editor page:all'].map(
  (grant) => `alice ${grant}`,
)

let h: Harness
beforeAll(async () => {
  h = await startHarness({ routes: ROUTES, script: tuples(GRANTS) })
})
afterAll(() => h.close())
beforeEach(() => {
  h.upstream.reached.length = 0
  h.pdp.asked.length = 0
})

const FORM = ['Content-Type: application/x-www-form-urlencoded']
const JSON_TYPE = ['Content-Type: application/json']
const outcome = async (line: string, fields: readonly string[], body: string | undefined): Promise<number> => {
  const { status } = await h.send(line, { fields, ...(body !== undefined && { body }) })
  expect(h.upstream.reached.length).toBe(status === 200 ? 1 : 0)
  return status
}

describe('a form on a route whose check reads the query, where a service could take the value of the form,', () => {
  test.each([
    ['POST /reports?org=acme', FORM],
    ['PUT /reports?org=acme', FORM],
    ['POST /both?org=acme', FORM],
    ['POST /context?region=eu', FORM],
    ['POST /reports?org=acme', ['Content-Type: Application/X-WWW-Form-Urlencoded; charset=utf-8']],
    ['POST /reports?org=acme', ['content-type: multipart/form-data; boundary=x']],
    ['POST /reports?org=acme', ['Content-Type: multipart/related; boundary=x']],
    ['POST /reports?org=acme', ['Content-Type: text/plain, application/x-www-form-urlencoded']],
    ['POST /reports?org=acme', ['Content-Type: text/plain; a=application/x-www-form-urlencoded']],
    ['POST /reports?org=acme', [...JSON_TYPE, ...FORM]],
    ['POST /reports?org=acme', [...JSON_TYPE, 'Content_Type: application/x-www-form-urlencoded']],
    ['POST /reports?org=acme', ['Content-Type: form']],
    ['POST /reports?org=acme', ['Content-Type:']],
    ['POST /reports?org=acme', []],
  ])('%s with %j is 415, and nobody is asked', async (line, fields) => {
    expect(await outcome(line, fields, 'org=victim')).toBe(415)
    expect(h.pdp.asked).toEqual([])
  })

  test('is 415 too when only its type tells, as at a gateway that says no length', async () => {
    expect(await outcome('POST /reports?org=acme', FORM, undefined)).toBe(415)
  })

  test('is 415 in chunks and over HTTP/2', async () => {
    const token = await h.issuer.token()
    const head = `Host: app.test\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n`
    const chunked = `POST /reports?org=acme HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\na\r\norg=victim\r\n0\r\n\r\n`
    expect((await sendRaw(h.port, chunked)).status).toBe(415)
    const session = openSession(h.port)
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/x-www-form-urlencoded' }
    expect((await ask(session, 'POST /reports?org=acme', { headers, body: 'org=victim' })).status).toBe(415)
    session.destroy()
    expect(h.upstream.reached).toEqual([])
  })

  test('does not keep a GET from passing that HTTP/2 has left open', async () => {
    const session = openSession(h.port)
    const headers = { authorization: `Bearer ${await h.issuer.token()}` }
    expect((await ask(session, 'GET /reports?org=acme', { headers, body: '' })).status).toBe(200)
    session.destroy()
  })

  test.each([
    ['POST /reports?org=acme', JSON_TYPE, '{}'],
    ['POST /reports?org=acme', ['Content-Type: text/csv'], undefined],
    ['GET /reports?org=acme', ['Content-Type: application/xml'], undefined],
    ['POST /plain?org=acme', ['Content-Type: text/plain'], 'org=victim'],
    ['PATCH /notes/1', [], 'org=victim'],
    ['POST /kept?org=acme', ['Content-Type: application/octet-stream'], 'org=victim'],
    ['POST /reports?org=acme', ['Content-Length: 0'], undefined],
    ['POST /reports?org=acme', [], undefined],
    ['POST /kept?org=acme', FORM, 'org=acme'],
    ['POST /plain', FORM, 'org=victim'],
    ['POST /plain?org=x', [], 'org=victim'],
    ['POST /inbox', FORM, 'a=b'],
  ])('does not keep %s with %j from passing', async (line, fields, body) => {
    expect(await outcome(line, fields, body)).toBe(200)
  })
})

describe('a POST that frameworks would run as another method', () => {
  test.each([
    ['POST /invoices/1?_method=DELETE', JSON_TYPE, 'another check protects that method'],
    ['POST /invoices/1?_method=delete', JSON_TYPE, 'it is written in small letters'],
    ['POST /invoices/1?%5Fmethod=DELETE', JSON_TYPE, 'its key is encoded'],
    ['POST /invoices/1?%255Fmethod=DELETE', JSON_TYPE, 'its key is encoded twice'],
    ['POST /invoices/1?.method=DELETE', JSON_TYPE, 'PHP reads a dot as an underscore'],
    ['POST /invoices/1?[method=DELETE', JSON_TYPE, 'PHP reads a lone bracket as an underscore'],
    ['POST /invoices/1?a=1;_method=DELETE', JSON_TYPE, 'a semicolon may separate pairs'],
    ['POST /invoices/1?X-HTTP-Method-Override=DELETE', JSON_TYPE, 'it is named like the header field'],
    ['POST /invoices/1?_METHOD=GET', JSON_TYPE, 'reading has another check'],
    ['POST /invoices/1?$method=DELETE', JSON_TYPE, "Google's APIs know this key"],
    ['POST /notes/1?_method=DELETE', JSON_TYPE, 'the path has no route for that method'],
    ['POST /notes/1?_method=', JSON_TYPE, 'nobody knows what an empty method leads to'],
    ['POST /notes/1?_method=PATCH&_method=DELETE', JSON_TYPE, 'one of two keys leads elsewhere'],
    ['POST /drop?_method=GET', JSON_TYPE, 'everybody may POST, and not everybody may read'],
    ['POST /inbox?_method=PUT', [], 'the public route is for POST alone'],
  ])('by its query, %s, is 400: %s', async (line, fields) => {
    expect((await h.send(line, { fields, body: '{}' })).status).toBe(400)
    expect(h.upstream.reached).toEqual([])
    expect(h.pdp.asked).toEqual([])
  })

  test.each([
    ['POST /invoices/1', FORM],
    ['POST /invoices/1', ['Content-Type: multipart/form-data; boundary=x']],
    ['POST /invoices/1', []],
    ['POST /drop', FORM],
  ])('by a field of its form, %s with %j, is 415', async (line, fields) => {
    expect(await outcome(line, fields, '_method=DELETE')).toBe(415)
  })

  test.each([
    ['POST /notes/1?_method=PATCH', JSON_TYPE],
    ['POST /notes/1', FORM],
    ['POST /any?_method=DELETE', FORM],
    ['DELETE /any?_method=GET', JSON_TYPE],
    ['POST /pages', FORM],
    ['POST /invoices/1?method=DELETE', JSON_TYPE],
    ['POST /invoices/1?payment_method=card', JSON_TYPE],
    ['POST /invoices/1?x=%ff', JSON_TYPE],
    [`POST /invoices/1?m=1&${'a&'.repeat(600)}`, JSON_TYPE],
  ])('to where the same check holds passes, and so does another key: %s with %j', async (line, fields) => {
    const token = await h.issuer.token({ scope: 'reading' })
    expect((await h.send(line, { fields, body: '1', token })).status).toBe(200)
  })
})

describe('a JSON body that some services merge into the query, and prefer,', () => {
  test.each([
    ['POST /reports?org=acme', '{"org":"victim"}', 'it has the key'],
    ['PUT /reports?org=acme', '{"x":{},"org":"victim"}', 'for PUT, too'],
    ['GET /reports?org=acme', '{"org":"victim"}', 'Laravel reads it for GET, too'],
    ['POST /reports?org=acme', '{"org":"acme"}', 'also with the same value'],
    ['POST /reports?org=acme', '{"ORG":"victim"}', 'the key is in capitals'],
    ['POST /reports?org=acme', '{"\\u006frg":"victim"}', 'the key is escaped'],
    ['POST /reports?org=acme', '{"org[]":["victim"]}', 'the key names a list'],
    ['POST /reports?org=acme', '{"org\\u0000x":"victim"}', 'some readers end a key at NUL'],
    ['POST /reports?org=acme', '{"org":"victim"', 'it is cut off, and some readers read on'],
    ['POST /reports?org=acme', "{'org':'victim'}", 'it is JSON for some readers only'],
    ['POST /reports?org=acme', '{"a":1}{"org":"victim"}', 'it is two texts'],
    ['POST /context?region=eu', '{"region":"us"}', 'the context reads the query'],
    ['POST /both?org=acme', '{"org":"victim"}', 'one of several checks reads the query'],
    ['POST /bodies-too?org=acme', '{"id":"1","org":"victim"}', 'another check reads the body'],
  ])('is 400: %s with %s, as %s', async (line, body) => {
    expect(await outcome(line, JSON_TYPE, body)).toBe(400)
    expect(h.pdp.asked).toEqual([])
  })

  test.each([
    ['Content-Type: application/vnd.acme+json'],
    ['Content-Type: Application/JSON; odata=verbose'],
    ['Content-Type: text/json'],
    ['Content-Type: application/json; charset=utf-8'],
  ])('is 400 for %s', async (field) => {
    expect(await outcome('POST /reports?org=acme', [field], '{"org":"victim"}')).toBe(400)
  })

  test.each([
    ['Content-Type: application/json; charset=utf-16'],
    ['Content-Type: application/json; charset=utf-8; charset=utf-16'],
    ['Content-Encoding: gzip'],
  ])('is 415 when it cannot be read: %s', async (field) => {
    const fields = field.startsWith('Content-Type') ? [field] : [...JSON_TYPE, field]
    expect(await outcome('POST /reports?org=acme', fields, '{}')).toBe(415)
  })

  test('is 413 when it is too long to be read', async () => {
    expect(await outcome('POST /reports?org=acme', JSON_TYPE, `"${'x'.repeat(65_536)}"`)).toBe(413)
  })

  test('is 400 in chunks and over HTTP/2', async () => {
    const token = await h.issuer.token()
    const head = `Host: app.test\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n${JSON_TYPE[0]}\r\n`
    const chunked = `POST /reports?org=acme HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n10\r\n{"org":"victim"}\r\n0\r\n\r\n`
    expect((await sendRaw(h.port, chunked)).status).toBe(400)
    const session = openSession(h.port)
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    expect((await ask(session, 'GET /reports?org=acme', { headers, body: '{"org":"victim"}' })).status).toBe(400)
    session.destroy()
    expect(h.upstream.reached).toEqual([])
  })

  test.each([
    ['POST /reports?org=acme', '{"name":"x","deep":{"org":"victim"}}'],
    ['POST /reports?org=acme', '[{"org":"victim"}]'],
    ['POST /reports?org=acme', 'null'],
    ['GET /reports?org=acme', undefined],
    ['POST /bodies-too?org=acme', '{"id":"1"}'],
    ['POST /kept?org=acme', '{"org":"acme"}'],
    ['POST /kept?org=acme', 'nonsense'],
    ['POST /plain?org=acme', '{"org":"victim"}'],
  ])('passes unchanged without such a key, or where nobody looks: %s with %s', async (line, body) => {
    expect(await outcome(line, JSON_TYPE, body)).toBe(200)
    expect(h.upstream.reached[0]?.body.toString()).toBe(body ?? '')
  })

  test('without a permission is 403, as any other body', async () => {
    expect(await outcome('POST /reports?org=victim', JSON_TYPE, '{}')).toBe(403)
  })
})

describe('a JSON body that names another method for a POST', () => {
  test.each([
    ['POST /invoices/1', '{"_method":"DELETE"}', 'another check protects that method'],
    ['POST /invoices/1', '{"_METHOD":" delete"}', 'both are written otherwise'],
    ['POST /invoices/1', '{"_method":"POST","_method":"DELETE"}', 'one of two keys leads elsewhere'],
    ['POST /invoices/1', '{"_method":["DELETE"]}', 'nobody knows what a list leads to'],
    ['POST /invoices/1', '{"X-HTTP-Method-Override":"DELETE"}', 'it is named like the header field'],
    ['POST /drop', '{"_method":"GET"}', 'everybody may POST, and not everybody may read'],
    ['POST /drop', '{"_method":"GET"', 'some readers read what is cut off'],
  ])('is 400: %s with %s, as %s', async (line, body) => {
    expect(await outcome(line, JSON_TYPE, body)).toBe(400)
    expect(h.pdp.asked).toEqual([])
  })

  test.each([
    ['POST /invoices/1', '{"_method":"POST"}'],
    ['POST /invoices/1', '{"method":"DELETE","httpMethod":"DELETE","payment_method":"card"}'],
    ['POST /invoices/1', '{"deep":{"_method":"DELETE"}}'],
    ['POST /pages', '{"_method":"GET"}'],
    ['POST /drop', '{"a":1}'],
    ['POST /kept-invoices/1', '{"_method":"DELETE"}'],
  ])('passes where the same check holds, where none looks, or without such a key: %s with %s', async (line, body) => {
    expect(await outcome(line, JSON_TYPE, body)).toBe(200)
    expect(h.upstream.reached[0]?.body.toString()).toBe(body)
  })
})

describe('a check that reads the body', () => {
  test.each(['?org=victim', '?ORG=victim', '?[org]=victim', '?%6Frg=victim', '?x=1&org[]=victim'])(
    'is not satisfied beside a query that some frameworks prefer: %s is 400',
    async (query) => {
      expect((await h.send(`POST /bodies${query}`, { fields: JSON_TYPE, body: '{"org":"acme"}' })).status).toBe(400)
      expect(h.upstream.reached).toEqual([])
    },
  )

  test('may stand beside other keys of the query', async () => {
    expect(await outcome('POST /bodies?page=2&sort=org', JSON_TYPE, '{"org":"acme"}')).toBe(200)
  })
})

test('explain refuses a JSON body as the sidecar does', () => {
  const explain = createExplainer(h.file())
  const explained = (target: string, body: string) =>
    explain({ method: 'POST', target, as: { sub: 'alice' }, body }).denial
  expect(explained('/reports?org=acme', '{"org":"victim"}')).toMatchObject({ status: 400 })
  expect(explained('/reports?org=acme', '{"org":"victim"}')?.detail).toContain('set body: keep')
  expect(explained('/drop', '{"_method":"GET"}')).toMatchObject({ status: 400 })
  expect(explained('/drop', '{}')).toBeNull()
  expect(explained('/reports?org=acme', '{}')).toBeNull()
})

test('explain says which route a form could lead to, and what allows it', () => {
  const explain = createExplainer(h.file())
  const { denial } = explain({
    method: 'POST',
    target: '/invoices/1',
    as: { sub: 'alice' },
    headers: [['Content-Type', 'multipart/form-data; boundary=x']],
  })
  expect(denial).toMatchObject({ status: 415 })
  expect(denial?.detail).toContain('DELETE /invoices/{id}, which has other rules; to allow it, set body: keep')
})
