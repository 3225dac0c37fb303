import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { CHECK_GRANTS, CHECK_ROUTES } from '../support/routes.ts'

let h: Harness
beforeAll(async () => {
  h = await startHarness({ routes: CHECK_ROUTES })
})
afterAll(() => h.close())
beforeEach(() => {
  h.pdp.script = tuples(CHECK_GRANTS, ['feature.invoicing'])
  h.upstream.reached.length = 0
  h.upstream.handle = null
  h.pdp.asked.length = 0
})

describe('what a check takes from a request', () => {
  test.each([
    ['GET /reports', 'no query'],
    ['GET /reports?other=1', 'the key is missing'],
    ['GET /reports?org=', 'it is empty'],
    ['GET /reports?org=acme&org=acme', 'it is there twice'],
    ['GET /reports?org=acme&ORG=evil', 'another case of it is there'],
    ['GET /reports?org[]=evil&org=acme', 'an array of it is there'],
    ['GET /reports?org=acme&%6Frg=evil', 'an encoded copy of it is there'],
    ['GET /reports?org=acme&[org]=evil', 'Rack 2 and qs read it without brackets'],
    ['GET /reports?org=acme&org]=evil', 'Rack 2 ends a key at a bracket'],
    ['GET /reports?org=acme&%5Borg%5D=evil', 'the brackets are encoded'],
    ['GET /reports?org=acme&org:int=evil', 'Zope converts it'],
    ['GET /reports?org=acme&org%3Alist=evil', 'Zope makes a list of it'],
    ['GET /reports?org=acme&[[org]]=evil', 'there are more brackets'],
    ['GET /reports?org=acme&[][org]=evil', 'an array of hashes has it'],
    ['GET /reports?org=acme&org[]=evil', 'an array of it is there'],
    ['GET /reports?org=acme&org[a][b]=evil', 'a hash of it is there'],
    ['GET /reports?org=acme&org.name=evil', 'readers with dots nest'],
    ['GET /reports?org=acme&.org=evil', 'readers with dots nest from the start'],
    ['GET /reports?org=acme&+org=evil', 'PHP trims the start'],
    ['GET /reports?org=acme&%20org=evil', 'PHP trims the start, encoded'],
    ['GET /reports?org=acme&?org=evil', 'URLSearchParams drops a question mark'],
    ['GET /reports?org=acme&%256Frg=evil', 'it is encoded twice'],
    ['GET /reports?org=acme&$org=evil', 'OData has it with a dollar sign'],
    ['GET /reports?org=acme&_org=evil', 'Spring takes it for a marker'],
    ['GET /reports?org=acme&%EF%BD%8Frg=evil', 'a letter of it is full-width'],
    ['GET /reports?org=acme&%C3%B6rg=evil', 'a letter of it has an accent'],
    ['GET /reports?org=acme&org', 'it is there again without a value'],
    [`GET /reports?${'a&'.repeat(500)}org=acme`, 'readers that stop counting never see it'],
    ['GET /reports?org=a+b', 'it has a plus'],
    ['GET /reports?org=acme;x=1', 'there is a semicolon'],
    ['GET /reports?org=%c0%af', 'it is not UTF-8'],
    ['GET /reports?org=acme%00', 'it has a NUL'],
    ['GET /reports?org=%', 'a triplet is broken'],
    ['GET /reports?org=a%23member', 'it has the mark of a userset'],
    ['GET /reports?org=*', 'it is the wildcard'],
    ['GET /invoices/1%23viewer', 'a parameter has the mark of a userset'],
    ['GET /invoices/%2A', 'a parameter is the wildcard'],
    ['GET /invoices/cafe%CC%81', 'an accent of a parameter stands by itself'],
    ['GET /invoices/%EF%BC%94%EF%BC%92', 'digits of a parameter are full-width'],
    ['GET /reports?org=%C5%BF', 'a long s is an s to some'],
    ['GET /invoices/a%C2%A0b', 'a parameter has a space'],
    [`GET /invoices/${'%E7%B5%84'.repeat(171)}`, 'a parameter has more than 512 bytes'],
    ['GET /by-role', 'the header is missing'],
  ])('%s is 400: %s', async (line) => {
    expect((await h.send(line)).status).toBe(400)
    expect(h.pdp.asked).toEqual([])
    expect(h.upstream.reached).toEqual([])
  })

  test.each([
    ['org=evil', 400],
    ['a=1; org=evil', 400],
    ['a=1,org=evil', 400],
    ['a=1;  ORG =evil', 400],
    ['%6Frg=evil', 400],
    ['org[]=evil', 400],
    ['org', 400],
    ['a=org; orgs=1; b=%zz', 200],
    ['organization=1; a=org=1', 200],
  ])(
    'the cookie %s beside a key that a check reads is %i, because PHP takes it for the key',
    async (cookie, status) => {
      expect((await h.send('GET /reports?org=acme', { fields: [`Cookie: ${cookie}`] })).status).toBe(status)
    },
  )

  test('a cookie is of no interest where no check reads the query', async () => {
    expect((await h.send('GET /invoices/1', { fields: ['Cookie: org=other'] })).status).toBe(200)
  })

  test.each([
    'a[org]=x',
    'orgs=x',
    'org_id=x',
    'x.org=x',
    '_=1',
    '[]=x',
    '=x',
    '&&',
    'o=1&r=2&g=3',
    '%E7%B5%84=x',
    'a&'.repeat(400),
  ])('is not disturbed by %s', async (pairs) => {
    expect((await h.send(`GET /reports?${pairs}&org=acme`)).status).toBe(200)
    expect(h.pdp.asked).toMatchObject([{ permissions: ['member organization:acme'] }])
  })

  test.each([
    ['my_org=acme&my.org=evil', 400],
    ['my_org=acme&my[org=evil', 400],
    ['my_org=acme&my%20org=evil', 400],
    ['my_org=acme&myOrg=evil', 400],
    ['my_org=acme&my-org=evil', 400],
    ['my_org=acme&my[org]=evil', 400],
    ['my_org=acme&my=evil', 200],
    ['my_org=acme&org=evil', 200],
  ])('a name with a mark is one name with its like: %s is %i', async (query, status) => {
    expect((await h.send(`GET /marked?${query}`)).status).toBe(status)
  })

  test.each([
    ['GET /invoices/caf%C3%A9', 'viewer invoice:café'],
    ['GET /reports?org=%E7%B5%84', 'member organization:組'],
    [`GET /invoices/${'%E7%B5%84'.repeat(170)}`, `viewer invoice:${'組'.repeat(170)}`],
  ])('%s asks about the id in its own script', async (line, asked) => {
    expect((await h.send(line)).status).toBe(403)
    expect(h.pdp.asked).toMatchObject([{ permissions: [asked] }])
  })

  test('is the one value of the query', async () => {
    expect((await h.send('GET /reports?x=1&org=acme&y=a+b')).status).toBe(200)
    expect(h.pdp.asked).toMatchObject([{ permissions: ['member organization:acme'] }])
  })

  test.each([
    [['X-Role: admin'], 200],
    [['X-Role: user,admin'], 403],
    [['X-Role: Admin'], 403],
    [['X-Role: admin', 'X-Role: admin'], 400],
    [['X-Role: user', 'x-role: admin'], 400],
    [['X_Role: admin'], 400],
    [['X-Role: admin', 'X_Role: user'], 400],
    [['X-Role: admin', 'Connection: x-role'], 400],
    [['X-Role: \u00e4dmin'], 400],
  ])('header fields %j are %i', async (fields, status) => {
    expect((await h.send('GET /by-role', { fields })).status).toBe(status)
  })

  test.each([
    ['{"org":"acme","org":"evil"}', 400],
    ['{"org":"acme","ORG":"evil"}', 400],
    ['{"\\u006frg":"evil","org":"acme"}', 400],
    ['{"x":{"org":"acme"}}', 400],
    ['{"org":["acme"]}', 400],
    ['{"org":null}', 400],
    ['{"org":1.5}', 400],
    ['{"org":"*"}', 400],
    ['["org"]', 400],
    ['{"org":"acme"', 400],
    ['\ufeff{"org":"acme"}', 400],
    ['', 400],
    ['{"org":"acme","\\u00f6rg":"evil"}', 400],
    ['{"org":"acme","\uff4frg":"evil"}', 400],
    ['{"org":"acme","org\\u0000":"evil"}', 400],
    ['{"org":"acme","org\\ud800":"evil"}', 400],
    ['{"org":"acme","o\u200drg":"evil"}', 400],
    ['{"org":"acme"," org":"evil"}', 400],
    ['{"org":"acme","_org":"evil"}', 400],
    ['{"org":"acme","org.id":"evil"}', 400],
    ['{"org":"acme","org[id]":"evil"}', 400],
    ['{"org":"acme","\u7d44":"x","organ":1,"or":2,"":3,"_":4}', 200],
    ['{"org":"other"}', 403],
    ['{"a":"\\"org\\":\\"evil\\",{[","org":"acme"}', 200],
  ])('body %s is %i', async (body, status) => {
    const answer = await h.send('POST /invoices', { body, fields: ['Content-Type: application/json'] })
    expect(answer.status).toBe(status)
    expect(h.upstream.reached.length).toBe(status === 200 ? 1 : 0)
  })

  test.each([
    // Go's encoding/json takes U+017F for s and U+212A for k.
    ['{"project_status":"a","task":{"id":"1"},"project_\u017ftatus":"evil"}', 400],
    ['{"project_status":"a","task":{"id":"1"},"project_\\u017Ftatus":"evil"}', 400],
    ['{"project_status":"a","task":{"id":"1"},"ta\u017f\u212a":{"id":"evil"}}', 400],
    // Protocol buffers have two names for a field, and Go's json/v2 leaves marks out.
    ['{"project_status":"a","task":{"id":"1"},"projectStatus":"evil"}', 400],
    ['{"project_status":"a","task":{"id":"1"},"project-status":"evil"}', 400],
    // Stores that take dots for nesting.
    ['{"project_status":"a","task":{"id":"1"},"task.id":"evil"}', 400],
    ['{"project_status":"a","task":{"id":"1","ID":"evil"}}', 400],
    ['{"project_status":"a","task":{"id":"1","id.x":"evil"}}', 400],
    ['{"project_status":"a","task":{"id":"1"},"id":"evil","taskId":"2","x.id":"3"}', 200],
    ['{"project_status":"a","task":{"id":"1","task":"x"},"status":"evil"}', 200],
  ])('a body with names like those of a check, %s, is %i', async (body, status) => {
    h.pdp.script = tuples(['alice viewer task:a/1'])
    const answer = await h.send('POST /tasks', { body, fields: ['Content-Type: application/json'] })
    expect(answer.status).toBe(status)
  })

  test.each([
    [['Content-Type: text/plain'], 415],
    [[], 415],
    [['Content-Type: application/json; charset=utf-16'], 415],
    [['Content-Type: application/json', 'Content-Encoding: gzip'], 415],
    [['Content-Type: application/json', 'Content-Type: application/json'], 415],
    [['Content-Type: application/merge-patch+json; charset=UTF-8'], 200],
  ])('a body with %j is %i', async (fields, status) => {
    expect((await h.send('POST /invoices', { body: '{"org":"acme"}', fields })).status).toBe(status)
  })

  test('is not read from a body over the bound', async () => {
    const within = `{"org":"acme","pad":"${'x'.repeat(65_536 - 23)}"}`
    expect(within.length).toBe(65_536)
    const fields = ['Content-Type: application/json']
    expect((await h.send('POST /invoices', { body: within, fields })).status).toBe(200)
    expect((await h.send('POST /invoices', { body: `${within} `, fields })).status).toBe(413)
  })
})
