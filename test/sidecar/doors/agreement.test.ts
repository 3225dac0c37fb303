/** One request gets one verdict for one reason: at the data port, and at the door of every gateway. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { DOOR_PROFILES, HTTP_PROFILES, isHttpProfile } from '../../../sidecar/http/door-fields.ts'
import { ecKeys, proof, thumbprint } from '../../support/peers/issuer.ts'
import { field } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type AskedRequest, type DoorAnswer, type DoorHarness, startDoors, valuesOf } from './door-harness.ts'

const ROUTES = `GET /public: public
GET /docs/{id}: viewer doc:{id}
POST /docs/{id}: viewer doc:{id}
GET /shelf: viewer doc:{header.x-doc}
GET /search: viewer doc:{query.doc}
GET /scoped: scope docs:write
GET /strong: {check: "viewer doc:1", step_up: {acr_values: [strong]}}
GET admin.test/docs/{id}: owner doc:{id}
GET /files/{name}: {check: "viewer file:{name}", encoded_slash: keep}`

let doors: DoorHarness
beforeAll(async () => {
  doors = await startDoors({
    routes: ROUTES,
    extra: 'hosts: [app.test]',
    script: tuples(['alice viewer doc:1', 'alice viewer file:a/b']),
  })
})
afterAll(() => doors.close())

type Case = readonly [what: string, request: AskedRequest]
const TOKEN = 'TOKEN'
const BEARER = ['authorization', TOKEN] as const
const with_ = (target: string, ...fields: readonly (readonly [string, string])[]): AskedRequest => ({ target, fields })

const CASES: readonly Case[] = [
  ['a public route', with_('/public')],
  ['a permitted request', with_('/docs/1', BEARER)],
  ['a permitted request of another method', { method: 'POST', target: '/docs/1', fields: [BEARER] }],
  ['a host in capitals', { target: '/docs/1', host: 'APP.Test', fields: [BEARER] }],
  ['a host of other rules in capitals', { target: '/docs/1', host: 'ADMIN.test', fields: [BEARER] }],
  ['a host with a port', { target: '/docs/1', host: 'app.test:443', fields: [BEARER] }],
  ['an encoded slash where it is kept', with_('/files/a%2Fb', BEARER)],
  ['an encoded slash where it is not', with_('/docs/1%2f2', BEARER)],
  ['no token', with_('/docs/1')],
  ['a token that is none', with_('/docs/1', ['authorization', 'Bearer nonsense'])],
  ['an unsigned token', with_('/docs/1', ['authorization', 'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9.'])],
  ['two tokens', with_('/docs/1', BEARER, ['authorization', 'Bearer other'])],
  ['a token and its alias', with_('/docs/1', ['authorization', TOKEN], ['DPoP', 'x'])],
  ['a resource of somebody else', with_('/docs/2', BEARER)],
  ['a scope that the token lacks', with_('/scoped', BEARER)],
  ['a sign-in that is too weak', with_('/strong', BEARER)],
  ['an unknown path', with_('/nothing', BEARER)],
  ['an unknown method', { method: 'DELETE', target: '/docs/1', fields: [BEARER] }],
  ['a method that no parser knows', { method: 'get', target: '/docs/1', fields: [BEARER] }],
  ['an unknown host', { target: '/docs/1', host: 'other.test', fields: [BEARER] }],
  ['no host', { target: '/docs/1', host: '', fields: [BEARER] }],
  ['a dot segment', with_('/public/../docs/1', BEARER)],
  ['an encoded dot segment', with_('/public/%2e%2e/docs/1', BEARER)],
  ['an empty segment at the start', with_('//app.test/docs/1', BEARER)],
  ['an empty segment', with_('/docs//1', BEARER)],
  ['a backslash', with_('/docs\\1', BEARER)],
  ['an encoded backslash', with_('/docs/%5c1', BEARER)],
  ['a semicolon', with_('/docs/1;a', BEARER)],
  ['an encoded NUL', with_('/docs/1%00', BEARER)],
  ['an encoded question mark in a name', with_('/docs/1%3fa=b', BEARER)],
  ['a fragment', with_('/docs/1#/../2', BEARER)],
  ['a query that looks like a public path', with_('/docs/1?/public', BEARER)],
  ['a doubly encoded path', with_('/docs/%2531', BEARER)],
  ['a bad triplet', with_('/docs/%zz', BEARER)],
  ['a value of the query twice', with_('/search?doc=1&doc=2', BEARER)],
  ['a value of the query', with_('/search?doc=1', BEARER)],
  ['a header field that is read', with_('/shelf', BEARER, ['X-Doc', '1'])],
  ['a header field that is read, twice', with_('/shelf', BEARER, ['X-Doc', '1'], ['X-Doc', '2'])],
  ['a header field that is read, and its alias', with_('/shelf', BEARER, ['X-Doc', '1'], ['X_Doc', '2'])],
  ['a forged identity', with_('/docs/1', BEARER, ['X-Auth-Subject', 'root'])],
  ['an alias of an identity field', with_('/docs/1', BEARER, ['X_Auth_Subject', 'root'])],
  ['a forged identity of another product', with_('/docs/1', BEARER, ['Remote-User', 'root'])],
  ['an override of the path', with_('/docs/1', BEARER, ['X-Rewrite-URL', '/docs/2'])],
  ['an override of the method', with_('/docs/1', BEARER, ['X-HTTP-Method-Override', 'DELETE'])],
  ['a health checker by its own word', with_('/docs/2', ['User-Agent', 'kube-probe/1.33'])],
]

async function inline({ method = 'GET', target = '/', host = 'app.test', fields = [] }: AskedRequest) {
  const lines = fields.map(([name, value]) => `${name}: ${value}`)
  const answer = await doors.inner.send(`${method} ${target}`, { token: null, fields: lines, host })
  const isProblem = field(answer, 'content-type') === 'application/problem+json'
  return { status: answer.status, code: isProblem ? String(JSON.parse(answer.body).code) : null, answer }
}

const withToken = async (request: AskedRequest): Promise<AskedRequest> => {
  const bearer = `Bearer ${await doors.inner.issuer.token()}`
  return { ...request, fields: request.fields?.map(([name, value]) => [name, value === TOKEN ? bearer : value]) ?? [] }
}

test.each(CASES)('gives %s the verdict of the data port at every door, or a stricter one', async (_what, given) => {
  const request = await withToken(given)
  const own = await inline(request)
  for (const profile of DOOR_PROFILES) {
    const got = await doors.ask(profile, request)
    if (got.status === 200) expect({ profile, status: got.status }).toEqual({ profile, status: own.status })
    // What a gateway cannot remove is refused instead.
    else if (own.status === 200) expect({ profile, code: got.code }).toEqual({ profile, code: 'request_invalid' })
    // A parser refuses it before there is a question, with its own number.
    else if (own.code !== null && got.status !== 503)
      expect({ profile, status: got.status, code: got.code }).toEqual({ profile, status: own.status, code: own.code })
  }
})

test('lets the plain requests of the table pass every door', async () => {
  for (const [what, given] of CASES.slice(0, 4)) {
    const request = await withToken(given)
    for (const profile of DOOR_PROFILES)
      expect({ what, profile, status: (await doors.ask(profile, request)).status }).toEqual({
        what,
        profile,
        status: 200,
      })
  }
})

test('names every identity field when it allows: set, removed, or empty where the gateway would keep the client’s own', async () => {
  const IDENTITY = ['subject', 'subject-type', 'client', 'issuer', 'organization', 'scope'].map(
    (one) => `x-auth-${one}`,
  )
  const anonymous = { target: '/public', fields: IDENTITY.map((name) => [name, 'root'] as const) }
  for (const profile of DOOR_PROFILES) {
    const answer = await doors.ask(profile, anonymous)
    expect({ profile, status: answer.status }).toEqual({ profile, status: 200 })
    for (const name of IDENTITY) {
      if (isHttpProfile(profile))
        expect({ profile, name, value: valuesOf(answer, name) }).toEqual({ profile, name, value: [''] })
      else expect(answer.removed).toContain(name)
    }
    const known = await doors.ask(profile, await withToken(with_('/docs/1', BEARER)))
    expect({ profile, subject: valuesOf(known, 'x-auth-subject') }).toEqual({ profile, subject: ['alice'] })
    expect({ profile, organization: valuesOf(known, 'x-auth-organization') }).toEqual({
      profile,
      organization: ['acme'],
    })
  }
})

test('has Envoy remove each spelling of a field that a sidecar would remove, and the credentials', async () => {
  const request = await withToken(
    with_(
      '/docs/1',
      BEARER,
      ['x_auth_subject', 'root'],
      ['x.auth.subject', 'root'],
      ['remote-user', 'root'],
      ['accept', 'a'],
    ),
  )
  const { removed, fields } = await doors.ask('envoy', request)
  expect(removed).toEqual(expect.arrayContaining(['x_auth_subject', 'x.auth.subject', 'remote-user', 'authorization']))
  expect(removed).not.toContain('accept')
  expect(removed.filter((name) => fields.some(([set]) => set === name))).toEqual([])
})

test('refuses at the doors of nginx, Traefik and Caddy what these gateways could not remove', async () => {
  const LEFT = {
    nginx: ['X_Auth_Subject', 'X.Auth.Subject', 'X-Forwarded-Anything', 'X-Webauth-Anything'],
    traefik: ['X-Forwarded-Anything'],
    caddy: [
      'HTTP2-Settings',
      'X_Auth_Subject',
      'Remote-User',
      'X-Forwarded-User',
      'X-Original-URL',
      'X-Webauth-User',
      'Forwarded',
    ],
  }
  for (const profile of HTTP_PROFILES)
    for (const name of LEFT[profile]) {
      const { status, code } = await doors.ask(profile, await withToken(with_('/docs/1', BEARER, [name, 'root'])))
      expect({ name, profile, status, code }).toEqual({ name, profile, status: 400, code: 'request_invalid' })
    }
})

test('challenges, asks for a stronger sign-in and sends problems at every door as at the data port', async () => {
  for (const request of [with_('/docs/1'), with_('/strong', BEARER), with_('/scoped', BEARER)]) {
    const asked = await withToken(request)
    const { answer } = await inline(asked)
    const wanted = answer.fields.filter(([name]) => name === 'www-authenticate').map(([, value]) => value)
    for (const profile of DOOR_PROFILES) {
      const got: DoorAnswer = await doors.ask(profile, asked)
      expect({ profile, challenges: valuesOf(got, 'www-authenticate') }).toEqual({ profile, challenges: wanted })
      expect(valuesOf(got, 'content-type')).toEqual(['application/problem+json'])
    }
  }
})

test('takes a DPoP proof for the judged method and path, and for no other', async () => {
  const keys = ecKeys()
  const token = await doors.inner.issuer.token({ cnf: { jkt: await thumbprint(keys.publicKey) } })
  const proven = (method: string, path: string): Promise<string> =>
    proof({ keys, method, url: `https://app.test${path}`, token, clock: Date.now })
  for (const profile of DOOR_PROFILES) {
    const ask = async (dpop: string) =>
      doors.ask(profile, with_('/docs/1', ['authorization', `DPoP ${token}`], ['dpop', dpop]))
    const good = await proven('GET', '/docs/1')
    expect({ profile, status: (await ask(good)).status }).toEqual({ profile, status: 200 })
    expect({ profile, code: (await ask(good)).code }).toEqual({ profile, code: 'proof_replayed' })
    expect({ profile, code: (await ask(await proven('POST', '/docs/1'))).code }).toEqual({
      profile,
      code: 'proof_invalid',
    })
    expect({ profile, code: (await ask(await proven('GET', '/authorize'))).code }).toEqual({
      profile,
      code: 'proof_invalid',
    })
  }
})

test('says in log and metrics at which door a request was judged', async () => {
  await doors.ask('envoy', with_('/public'))
  await doors.ask('caddy', with_('/public'))
  expect(doors.inner.log).toContainEqual(
    expect.objectContaining({ event: 'decision', door: 'envoy', route: 'GET /public' }),
  )
  expect(doors.inner.log).toContainEqual(
    expect.objectContaining({ event: 'decision', door: 'caddy', client_address: '203.0.113.9' }),
  )
  const text = await doors.inner.registry.metrics()
  expect(text).toMatch(
    /portcullis_sidecar_requests_total\{route="GET \/public",decision="allow",outcome="permitted",door="envoy"\}/,
  )
})
