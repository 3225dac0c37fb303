import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { field } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { CHECK_GRANTS, CHECK_ROUTES } from '../support/routes.ts'
import { fieldOf } from '../support/upstream.ts'

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

describe('an allowed request', () => {
  test('reaches the upstream with the same target and says who asks', async () => {
    const answer = await h.send('GET /invoices/1?x=%2F..%2F&y=%25', { fields: ['Accept: text/plain'] })
    expect(answer.status).toBe(200)
    const [reached] = h.upstream.reached
    expect(reached?.target).toBe('/invoices/1?x=%2F..%2F&y=%25')
    expect(fieldOf(reached, 'x-auth-subject')).toBe('alice')
    expect(fieldOf(reached, 'x-auth-subject-type')).toBe('user')
    expect(fieldOf(reached, 'x-auth-organization')).toBe('acme')
    expect(fieldOf(reached, 'x-auth-client')).toBe('c1')
    expect(fieldOf(reached, 'x-auth-scope')).toBe('invoices:read')
    expect(fieldOf(reached, 'accept')).toBe('text/plain')
    expect(fieldOf(reached, 'host')).toBe('app.test')
    expect(fieldOf(reached, 'x-forwarded-host')).toBe('app.test')
    expect(fieldOf(reached, 'x-forwarded-proto')).toBe('http')
    expect(fieldOf(reached, 'x-forwarded-for')).toBe('127.0.0.1')
    expect(fieldOf(reached, 'authorization')).toBeNull()
  })

  test('asks exactly what its route says', async () => {
    await h.send('GET /orgs/acme/invoices/1')
    expect(h.pdp.asked).toMatchObject([
      { permissions: ['active_member organization:acme', 'viewer invoice:1'], entitlements: [] },
    ])
  })

  test('may be HEAD on a GET route', async () => {
    expect((await h.send('HEAD /invoices/1')).status).toBe(200)
    expect(h.upstream.reached[0]?.method).toBe('HEAD')
  })

  test('carries a body that a check has read, byte for byte', async () => {
    const body = '{ "org" : "acme", "lines": [1,2,{"org":"evil"}] }'
    const answer = await h.send('POST /invoices', { body, fields: ['Content-Type: application/json'] })
    expect(answer.status).toBe(200)
    expect(h.upstream.reached[0]?.body).toBe(body)
  })

  test('names a client that asks for itself as a service', async () => {
    h.pdp.script = tuples(['c1 viewer invoice:1'])
    await h.send('GET /invoices/1', { token: await h.issuer.token({ sub: 'c1' }) })
    expect(fieldOf(h.upstream.reached[0], 'x-auth-subject-type')).toBe('service')
  })

  test('is let through by a permission key of the token’s organization', async () => {
    expect((await h.send('POST /approve', { body: 'x' })).status).toBe(200)
    expect(h.pdp.asked).toMatchObject([{ permissions: ['invoices:approve organization:acme'] }])
  })
})

describe('a denied request', () => {
  test('without a token is challenged without an error code, and nobody is asked', async () => {
    const answer = await h.send('GET /invoices/1', { token: null })
    expect(answer.status).toBe(401)
    expect(field(answer, 'www-authenticate')).toContain('Bearer resource_metadata="https://app.test/.well-known/')
    expect(field(answer, 'www-authenticate')).not.toContain('error=')
    expect(h.pdp.asked).toEqual([])
  })

  test('for somebody else’s resource is 403 with a problem document that says nothing of policy', async () => {
    const answer = await h.send('GET /invoices/2', { fields: ['X-Request-Id: abc-1'] })
    expect(answer.status).toBe(403)
    expect(field(answer, 'content-type')).toBe('application/problem+json')
    expect(field(answer, 'x-request-id')).toBe('abc-1')
    expect(JSON.parse(answer.body)).toEqual({
      type: 'urn:portcullis:problem:permission_denied',
      title: 'The subject does not have this permission',
      code: 'permission_denied',
      status: 403,
      instance: 'urn:portcullis:request:abc-1',
    })
    expect(h.upstream.reached).toEqual([])
  })

  test('names the gate that the organization lacks', async () => {
    h.pdp.script = tuples(CHECK_GRANTS, [])
    const answer = await h.send('POST /invoices', {
      body: '{"org":"acme"}',
      fields: ['Content-Type: application/json'],
    })
    expect(answer.status).toBe(403)
    expect(JSON.parse(answer.body)).toMatchObject({ code: 'entitlement_required', entitlement: 'feature.invoicing' })
  })

  test('names the scope that the token lacks', async () => {
    const answer = await h.send('GET /scoped', { token: await h.issuer.token({ scope: 'invoices:administrator' }) })
    expect(answer.status).toBe(403)
    expect(field(answer, 'www-authenticate')).toContain('Bearer error="insufficient_scope", scope="invoices:admin"')
  })

  test('is 401 when the PDP says that the token is dead', async () => {
    h.pdp.script = (asked) => {
      const decision = tuples(CHECK_GRANTS)(asked)
      return decision !== null && typeof decision !== 'string' ? { ...decision, active: false } : decision
    }
    const answer = await h.send('GET /invoices/1')
    expect(answer.status).toBe(401)
    expect(field(answer, 'www-authenticate')).toContain('error="invalid_token"')
  })

  test('is 403 when its token is of no organization', async () => {
    const answer = await h.send('GET /invoices/1', { token: await h.issuer.token({ org: undefined }) })
    expect(answer.status).toBe(403)
  })

  test('is 403 when a check needs a claim that the token does not have', async () => {
    expect((await h.send('GET /mine', { token: await h.issuer.token({ org: undefined }) })).status).toBe(403)
  })

  test.each([
    ['GET /nothing', 404],
    ['DELETE /invoices/1', 405],
    ['TRACE /invoices/1', 405],
    ['GET /invoices/1/', 404],
    ['GET /Invoices/1', 404],
    ['GET /invoices', 405],
  ])('%s is %i without asking or reaching anybody', async (line, status) => {
    expect((await h.send(line)).status).toBe(status)
    expect(h.pdp.asked).toEqual([])
    expect(h.upstream.reached).toEqual([])
  })

  test('with a method that the path lacks is told which there are', async () => {
    expect(field(await h.send('DELETE /invoices/1'), 'allow')).toBe('GET, HEAD, OPTIONS, PUT')
  })

  test('for a host that is not served is 421', async () => {
    expect((await h.send('GET /public/x', { host: 'other.test' })).status).toBe(421)
  })

  test('for a host that is not served names the served hosts to the operator, and not to the client', async () => {
    const answer = await h.send('GET /public/x', { host: 'other.test' })
    expect(answer.body).not.toContain('app.test')
    expect(h.log.at(-1)).toMatchObject({
      reason: 'host_unknown',
      detail:
        'the host other.test is not served; served hosts: app.test; to serve it, add it to hosts in the route file',
    })
  })

  test('closes the connection when its body has not arrived', async () => {
    const answer = await h.send('PUT /invoices/2', { fields: ['Content-Length: 1000000'] })
    expect(answer.status).toBe(403)
    expect(field(answer, 'connection')).toBe('close')
  })
})

describe('what reaches the upstream', () => {
  test.each([
    'X-Auth-Subject: root',
    'x-auth-scope: admin',
    'X_Auth_Subject: root',
    'X-Auth_Subject: root',
    'X.Auth.Subject: root',
    'X-Forwarded-For: 10.0.0.1',
    'X_Forwarded_Proto: https',
    'X-Forwarded-Prefix: //evil.test',
    'Forwarded: for=10.0.0.1',
    'X-Original-URL: /admin',
    'X-Rewrite-URL: /admin',
    'X-HTTP-Method-Override: DELETE',
    'X-HTTP-Method: DELETE',
    'X-Method-Override: DELETE',
    'X-Middleware-Subrequest: middleware',
    'X-Real-IP: 10.0.0.1',
    'True-Client-IP: 10.0.0.1',
    'Remote-User: root',
    'Proxy: http://evil.test',
    'Content_Length: 5',
    'Transfer_Encoding: chunked',
    'X-Pdp-Decision: allow',
    'TE: trailers',
    'Upgrade: h2c',
    'Authorization_: x',
  ])('has nothing of %s, on a public route neither', async (line) => {
    const value = line.slice(line.indexOf(':') + 2)
    const name = line.slice(0, line.indexOf(':')).toLowerCase()
    for (const target of ['/public/x', '/invoices/1']) {
      h.upstream.reached.length = 0
      expect((await h.send(`GET ${target}`, { fields: [line] })).status).toBe(200)
      if (name !== 'authorization_') expect(fieldOf(h.upstream.reached[0], name) ?? '').not.toContain(value)
    }
  })

  test('has identity only from a verified token', async () => {
    await h.send('GET /public/x', { fields: ['X-Auth-Subject: root'] })
    expect(fieldOf(h.upstream.reached[0], 'x-auth-subject')).toBeNull()
    expect(fieldOf(h.upstream.reached[0], 'authorization')).toBeNull()
  })

  test('keeps ours although the client lists their names in Connection', async () => {
    const fields = ['Connection: close, X-Auth-Subject, x-forwarded-host, X-Custom', 'X-Custom: 1', 'X-Other: 2']
    expect((await h.send('GET /invoices/1', { fields })).status).toBe(200)
    const [reached] = h.upstream.reached
    expect(fieldOf(reached, 'x-auth-subject')).toBe('alice')
    expect(fieldOf(reached, 'x-forwarded-host')).toBe('app.test')
    expect(fieldOf(reached, 'x-custom')).toBeNull()
    expect(fieldOf(reached, 'x-other')).toBe('2')
  })

  test.each(['Host', 'Content-Length', 'transfer-encoding'])('is nothing when Connection lists %s', async (name) => {
    expect((await h.send('GET /public/x', { fields: [`Connection: ${name}`] })).status).toBe(400)
  })
})

test('OPTIONS without a route of its own is answered here', async () => {
  const answer = await h.send('OPTIONS /invoices/1', { token: null, fields: ['Origin: https://evil.test'] })
  expect([answer.status, field(answer, 'allow')]).toEqual([204, 'GET, HEAD, OPTIONS, PUT'])
  expect(h.upstream.reached).toEqual([])
})

test('the metadata of the resource names its issuers', async () => {
  const answer = await h.send('GET /.well-known/oauth-protected-resource', { token: null })
  expect(JSON.parse(answer.body)).toMatchObject({
    resource: 'https://app.test',
    authorization_servers: ['https://as.test'],
  })
  expect(h.upstream.reached).toEqual([])
})

test('every decision is one log entry without a token in it', async () => {
  h.log.length = 0
  const token = await h.issuer.token()
  await h.send('GET /invoices/2', { token, fields: ['User-Agent: x" decision=allow'] })
  expect(h.log).toMatchObject([
    {
      event: 'decision',
      method: 'GET',
      route: 'GET /invoices/{id}',
      subject: 'alice',
      decision: 'deny',
      reason: 'permission_denied',
    },
  ])
  expect(JSON.stringify(h.log)).not.toContain(token.slice(-20))
})
