import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createExplainer } from '../../../sidecar/enforce/explain.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { ask, openSession } from '../support/http2-client.ts'

const ROUTES = `
GET /orgs/{org}/reports: member organization:{org}
POST /orgs/{org}/reports: member organization:{org}
GET /kept/{org}: {check: "member organization:{org}", query: keep}
POST /judged/{org}: {check: "member organization:{org}", body: judge}
GET /either/{org}: {any: ["member organization:{org}", scope reading]}
GET /equal/{org}: {equals: {org: acme}}
GET /context/{org}: {check: "member organization:acme", context: {org: {org}}}
GET /signed/{org}: signed_in
GET /public/{org}: public
POST /notes/{org}: {all: ["member organization:{org}", "editor note:{body.id}"]}
POST /loose/{org}: {check: {all: ["member organization:{org}", "editor note:{body.id}"]}, body: keep}
POST /owned/{org}: member organization:{org}
DELETE /owned/{org}: owner organization:{org}
GET /names/{orgId}: member organization:{orgId}
`.trim()

let h: Harness
beforeAll(async () => {
  const grants = ['member organization:acme', 'member organization:a+b', 'member organization:ö', 'editor note:1']
  h = await startHarness({ routes: ROUTES, script: tuples(grants.map((grant) => `alice ${grant}`)) })
})
afterAll(() => h.close())
beforeEach(() => {
  h.upstream.reached.length = 0
})

const JSON_TYPE = ['Content-Type: application/json']
const FORM = ['Content-Type: application/x-www-form-urlencoded']
const outcome = async (line: string, fields: readonly string[] = [], body?: string): Promise<number> => {
  const { status } = await h.send(line, { fields, ...(body !== undefined && { body }) })
  expect(h.upstream.reached.length).toBe(status === 200 ? 1 : 0)
  return status
}

describe('a key of the query with the name of a checked parameter of the path, and another value,', () => {
  test.each([
    ['GET /orgs/acme/reports?org=victim', 'PHP and Laravel may prefer it'],
    ['POST /orgs/acme/reports?org=victim', 'for POST, too'],
    ['GET /orgs/acme/reports?a=1&org=victim&b=2', 'it stands among others'],
    ['GET /orgs/acme/reports?org=acme&org=victim', 'one of two differs'],
    ['GET /orgs/acme/reports?org=victim&org=acme', 'the first of two differs'],
    ['GET /orgs/acme/reports?org', 'it is empty'],
    ['GET /orgs/acme/reports?org=', 'it is empty'],
    ['GET /orgs/acme/reports?ORG=victim', 'the key is in capitals'],
    ['GET /orgs/acme/reports?%6Frg=victim', 'the key is encoded'],
    ['GET /orgs/acme/reports?%256Frg=victim', 'the key is encoded twice'],
    ['GET /orgs/acme/reports?org[]=victim', 'the key names a list'],
    ['GET /orgs/acme/reports?org[$ne]=x', 'the key names a member'],
    ['GET /orgs/acme/reports?[org]=victim', 'Rack reads it as org'],
    ['GET /orgs/acme/reports?+org=victim', 'PHP drops the space'],
    ['GET /orgs/acme/reports?org%00x=victim', 'some readers end a key at NUL'],
    ['GET /orgs/acme/reports?o%ffrg=victim', 'some readers drop bytes that are not UTF-8'],
    ['GET /orgs/acme/reports?a=1;org=victim', 'a semicolon may separate pairs'],
    ['GET /orgs/acme/reports?org=acme;victim', 'a semicolon may be part of the value'],
    ['GET /orgs/acme/reports?org=Acme', 'it differs in case'],
    ['GET /orgs/acme/reports?org[$ne]=acme', 'the key has an operator in brackets'],
    ['GET /orgs/acme/reports?org%5Bnot%5D=acme', 'the key has a child'],
    ['GET /orgs/acme/reports?org.$ne=acme', 'the key has an operator after a dot'],
    ['GET /orgs/acme/reports?org!=acme', 'the key has an operator at its end'],
    ['GET /orgs/acme/reports?org=%61cme%20', 'it differs by a blank'],
    ['GET /orgs/a+b/reports?org=a+b', 'a plus sign in a query is a space'],
    ['GET /orgs/acme/reports?org=%ff', 'the value is not UTF-8'],
    [`GET /orgs/acme/reports?${'a&'.repeat(600)}org=victim`, 'it stands after many others'],
    ['GET /either/acme?org=victim', 'one of several checks takes the parameter'],
    ['GET /equal/acme?org=victim', 'it is compared'],
    ['GET /context/acme?org=victim', 'a condition takes the parameter'],
    ['GET /names/acme?org_id=victim', 'some parsers write such names otherwise'],
  ])('is 400: %s, as %s', async (line) => {
    expect(await outcome(line)).toBe(400)
  })

  test('is 400 over HTTP/2', async () => {
    const session = openSession(h.port)
    const headers = { authorization: `Bearer ${await h.issuer.token()}` }
    expect((await ask(session, 'GET /orgs/acme/reports?org=victim', { headers })).status).toBe(400)
    session.destroy()
  })

  test.each([
    'GET /orgs/acme/reports?org=acme',
    'GET /orgs/acme/reports?org=%61cme',
    'GET /orgs/%C3%B6/reports?org=%c3%b6',
    'GET /orgs/a+b/reports?org=a%2bb',
    'GET /orgs/acme/reports?org=acme&page=2',
    'GET /orgs/acme/reports?org[]=acme&ORG=acme',
    'GET /orgs/acme/reports?organization=x&org_id=7&my_org=x&filter[org]=x',
    'GET /orgs/acme/reports?q=a;b&x=%ff&%ff=1',
    `GET /orgs/acme/reports?${'a&'.repeat(600)}`,
    'GET /kept/acme?org=victim',
    'GET /signed/acme?org=victim',
    'GET /public/acme?org=victim',
  ])('does not keep an equal value, another key, or a route that says otherwise, from passing: %s', async (line) => {
    expect(await outcome(line)).toBe(200)
  })
})

describe('a top-level key of a JSON body with the name of a checked parameter of the path, and another value,', () => {
  test.each([
    ['POST /judged/acme', '{"org":"victim"}'],
    ['POST /judged/acme', '{"org":"acme","org":"victim"}'],
    ['POST /judged/acme', '{"Org":"victim"}'],
    ['POST /judged/acme', '{"org":["acme"]}'],
    ['POST /judged/acme', '{"org":null}'],
    ['POST /judged/acme', '{"org[]":"victim"}'],
    ['POST /judged/acme', '{"org.$ne":"acme"}'],
    ['POST /judged/acme', '{"org[$ne]":"acme"}'],
    ['POST /judged/acme', '{"org":"acme"'],
    ['POST /notes/acme', '{"id":"1","org":"victim"}'],
    ['POST /owned/acme', '{"org":"victim"}'],
  ])('is 400 where the body is read: %s with %s', async (line, body) => {
    expect(await outcome(line, JSON_TYPE, body)).toBe(400)
  })

  test.each([
    ['POST /judged/acme', '{"org":"acme"}'],
    ['POST /judged/acme', '{"deep":{"org":"victim"}}'],
    ['POST /judged/acme', '["org"]'],
    ['POST /notes/acme', '{"id":"1","org":"acme"}'],
    ['POST /loose/acme', '{"id":"1","org":"victim"}'],
    ['POST /owned/acme', '{"org":"acme"}'],
    ['POST /orgs/acme/reports', '{"org":"victim"}'],
  ])('passes when it is equal, or where nobody reads the body: %s with %s', async (line, body) => {
    expect(await outcome(line, JSON_TYPE, body)).toBe(200)
  })
})

test('a form is 415 where body: judge asks for a look at bodies, and passes elsewhere', async () => {
  expect(await outcome('POST /judged/acme', FORM, 'org=victim')).toBe(415)
  expect(await outcome('POST /orgs/acme/reports', FORM, 'org=victim')).toBe(200)
})

test('explain names the parameter and what allows the key', () => {
  const explain = createExplainer(h.file())
  const { denial } = explain({ method: 'GET', target: '/orgs/acme/reports?org=victim', as: { sub: 'alice' } })
  expect(denial).toMatchObject({ status: 400 })
  expect(denial?.detail).toMatch(/path\.org.*set query: keep/)
})
