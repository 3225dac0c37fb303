/** Requests without a token where guests may ask, and public routes that learn who sends a valid one. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { reevaluate } from '../../../sidecar/enforce/reevaluate.ts'
import { firstValue } from '../../../sidecar/http/fields.ts'
import { PdpUnavailable } from '../../../sidecar/request/errors.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { field } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { ALLOW, BOUND, busy, type Case, run, tokenError } from '../support/enforcing.ts'
import { type Harness, routeFile, startHarness } from '../support/harness.ts'

const GUESTS = `GET /pages/{id}: {check: "viewer page:{id}", guests: true}
GET /near: {check: {equals: {client.address: 192.0.2.0/24}}, guests: true}
GET /far: {check: {equals: {client.address: 198.51.100.7}}, guests: true}
GET /six: {check: {equals: {client.address: "2001:DB8:0::/32"}}, guests: true}
GET /either: {check: {any: [{equals: {client.address: 192.0.2.0/24}}, signed_in, "scope docs:read", "entitlement feature.docs", {equals: {claims.team: a}}, "permission docs:read"]}, guests: true}
GET /far-or/{id}: {check: {any: [{equals: {client.address: 10.0.0.0/8}}, signed_in, "scope docs:read", "entitlement feature.docs", "permission docs:read"]}, guests: true}
GET /tenants/{id}: {check: {any: ["viewer page:{id}", "viewer tenant:{claims.tenant}"]}, guests: true}`
const guest = (line: string, more: Partial<Case> = {}): Case => ({
  routes: GUESTS,
  extra: 'guest_organization: acme',
  authorization: null,
  line,
  ...more,
})

describe('a request without a token, where guests may ask,', () => {
  test('is asked about as everybody in the organization of guests, and names nobody to the service', async () => {
    const { outcome, asked, endedTurns } = await run(guest('GET /pages/1'))
    expect(asked).toMatchObject([
      { guest: 'acme', subject: '*', organization: 'acme', token: '', digest: '', entitlements: [] },
    ])
    expect(asked[0]?.permissions).toEqual([{ relation: 'viewer', resource: 'page:1' }])
    expect(outcome).toMatchObject({ kind: 'permit', identity: null, basis: { expiresAtMs: Number.POSITIVE_INFINITY } })
    expect(endedTurns).toBe(1)
  })

  test('is 401, so that a browser is sent to sign in, where everybody may not', async () => {
    const { outcome } = await run(guest('GET /pages/1', { pdp: { permissions: ['denied'] } }))
    expect(outcome).toMatchObject({ code: 'token_missing', subject: null, reason: 'for a guest: viewer page:1' })
  })

  test.each<[string, Partial<Case>, string]>([
    ['no PDP answers', { pdp: new PdpUnavailable('none') }, 'pdp_unavailable'],
    ['nothing is decided', { pdp: { permissions: ['undecided'] } }, 'pdp_unavailable'],
    ['the PDP lacks a value', { pdp: { permissions: ['condition_failed'] } }, 'condition_failed'],
    ['the PDP says that nobody is active', { pdp: { active: false } }, 'token_invalid'],
    ['the answer has no permission', { pdp: { permissions: [] } }, 'pdp_unavailable'],
    ['the route is full', { enter: busy }, 'busy'],
    ['its turn does not come', { turn: busy }, 'busy'],
  ])('is refused when %s', async (_, more, code) => {
    expect((await run(guest('GET /pages/1', more))).outcome).toMatchObject({ kind: 'denial', code })
  })

  test.each<[string, Partial<Case>, string]>([
    [
      'with a token that is not valid',
      { authorization: 'Bearer t', token: tokenError('token_expired') },
      'token_expired',
    ],
    ['with another scheme', { authorization: 'Basic YTpi' }, 'token_missing'],
    ['with a revoked token', { authorization: 'Bearer t', pdp: { active: false } }, 'token_invalid'],
    ['with a token that may not', { authorization: 'Bearer t', pdp: { permissions: ['denied'] } }, 'permission_denied'],
  ])('is no guest’s %s', async (_, more, code) => {
    const { outcome, asked } = await run(guest('GET /pages/1', more))
    expect(outcome).toMatchObject({ kind: 'denial', code })
    for (const question of asked) expect(question.guest).toBeUndefined()
  })

  test.each([
    ['GET /near', true],
    ['GET /either', true],
    ['GET /far', false],
    ['GET /six', false],
    ['GET /far-or/1', false],
  ])('%s is decided by the address alone: %s', async (line, allowed) => {
    const { outcome, asked } = await run(guest(line))
    expect(outcome).toMatchObject(allowed ? { kind: 'permit', basis: null } : { code: 'token_missing' })
    expect(asked).toEqual([])
  })

  test('is compared with networks of IPv6 in any spelling', async () => {
    const origin = { address: '2001:db8::7' }
    expect((await run(guest('GET /six', { origin }))).outcome).toMatchObject({ kind: 'permit' })
  })

  test('has no value of a claim, and the alternatives without one still count', async () => {
    const { outcome, asked } = await run(guest('GET /tenants/1'))
    expect(asked[0]?.permissions).toEqual([{ relation: 'viewer', resource: 'page:1' }])
    expect(outcome).toMatchObject({ kind: 'permit' })
  })

  test('is evaluated again as a guest’s while it is open', async () => {
    const { outcome, deps } = await run(guest('GET /pages/1'))
    if (outcome.kind !== 'permit') throw new Error('denied')
    const origin = { address: '192.0.2.1', scheme: 'https' as const, host: null, fault: null }
    const again = await reevaluate(outcome, { upgrade: false, origin }, deps)
    expect(again).toMatchObject({ kind: 'permitted', basis: { question: { guest: 'acme' } } })
    const basis = again.kind === 'permitted' ? again.basis : null
    expect(basis?.evaluate({ ...ALLOW, permissions: ['denied'] })).toBe('token_missing')
    expect(basis?.evaluate({ ...ALLOW, permissions: ['undecided'] })).toBe('pdp_unavailable')
    const near = await run(guest('GET /near'))
    if (near.outcome.kind !== 'permit') throw new Error('denied')
    const moved = { ...origin, address: '203.0.113.1' }
    expect(await reevaluate(near.outcome, { upgrade: false, origin }, deps)).toEqual({ kind: 'permitted', basis: null })
    expect(await reevaluate(near.outcome, { upgrade: false, origin: moved }, deps)).toMatchObject({ kind: 'denied' })
  })
})

describe('a public route with identity', () => {
  const ROUTES = 'GET /feed: {public: with_identity}'
  const feed = (more: Case = {}): Case => ({ routes: ROUTES, line: 'GET /feed', ...more })

  test('passes the identity of a valid token that the PDP confirms', async () => {
    const { outcome, asked } = await run(feed())
    expect(outcome).toMatchObject({ kind: 'permit', identity: { subject: 'alice' }, unidentified: null, basis: null })
    expect(asked).toMatchObject([{ subject: 'alice', permissions: [], entitlements: [] }])
  })

  test('asks nothing without a token', async () => {
    const { outcome, asked } = await run(feed({ authorization: null }))
    expect(outcome).toMatchObject({ kind: 'permit', identity: null, unidentified: null })
    expect(asked).toEqual([])
  })

  test.each<[string, Case, RegExp]>([
    ['an expired token', { token: tokenError('token_expired') }, /token_expired/],
    ['another scheme', { authorization: 'Basic YTpi' }, /./],
    ['a malformed field', { authorization: 'Bearer ' }, /./],
    ['a bound token without its proof', { ...BOUND, proof: tokenError('proof_missing') }, /proof_missing/],
    ['a bound token as a bearer token', { ...BOUND, authorization: 'Bearer t' }, /bound/],
    ['a revoked token', { pdp: { active: false } }, /not active/],
    ['no answer of the PDP', { pdp: new PdpUnavailable('nobody answers') }, /nobody answers/],
    ['keys that cannot be fetched', { token: tokenError('keys_unavailable') }, /keys_unavailable/],
  ])('passes none for %s, and says why in the log', async (_, one, reason) => {
    const { outcome } = await run(feed(one))
    expect(outcome).toMatchObject({ kind: 'permit', identity: null, unidentified: expect.stringMatching(reason) })
  })

  test.each<[string, Case, string]>([
    ['its places are taken', { enter: busy }, 'busy'],
    ['the verifier has a fault', { token: new Error('a bug') }, 'internal'],
  ])('still refuses when %s', async (_, one, code) => {
    expect((await run(feed(one))).outcome).toMatchObject({ kind: 'denial', code })
  })
})

describe('over sockets', () => {
  let gate: Harness
  beforeAll(async () => {
    gate = await startHarness({
      routes: `GET /feed: {public: with_identity}\nGET /pages/{id}: {check: "viewer page:{id}", guests: true}`,
      extra: 'guest_organization: acme',
      script: tuples(['* viewer page:1', 'alice viewer page:2']),
    })
  })
  afterAll(() => gate.close())
  const subject = () => firstValue(gate.upstream.reached.at(-1)?.rawHeaders ?? [], 'x-auth-subject')
  const FORGED = ['X-Auth-Subject: mallory']

  test('a guest reads what everybody may, and a forged identity never arrives', async () => {
    expect((await gate.send('GET /pages/1', { token: null, fields: FORGED })).status).toBe(200)
    expect(subject()).toBeNull()
    const refused = await gate.send('GET /pages/2', { token: null })
    expect([refused.status, field(refused, 'www-authenticate')]).toEqual([401, expect.stringContaining('Bearer')])
    expect((await gate.send('GET /pages/2')).status).toBe(200)
  })

  test('a public route has the identity of a valid token alone', async () => {
    expect((await gate.send('GET /feed', { fields: FORGED })).status).toBe(200)
    expect(subject()).toBe('alice')
    expect((await gate.send('GET /feed', { token: 'a.b.c', fields: FORGED })).status).toBe(200)
    expect(subject()).toBeNull()
    expect(gate.log).toContainEqual(
      expect.objectContaining({
        decision: 'allow',
        subject: null,
        detail: expect.stringContaining('without identity: '),
      }),
    )
  })
})

test.each([
  ['GET /a: {public: with_identity, check: signed_in}', 'a route needs exactly one of check and public'],
  ['GET /a: {mode: shadow}', 'a route needs exactly one of check and public'],
  ['GET /a: {public: true}', 'public must be a string'],
  ['GET /a: {public: anonymous}', 'public must be with_identity'],
  ['GET /a: {check: public, guests: true}', 'guests has no effect on a public route, which everybody may call'],
  ['GET /a: {check: signed_in, guests: true}', 'guests has no effect, because this check needs a token'],
  ['GET /a: {check: {all: ["viewer a:1", "scope x"]}, guests: true}', 'guests has no effect, because'],
  ['GET /a: {check: {equals: {claims.a: b}}, guests: true}', 'guests has no effect, because'],
  ['GET /a: {check: "viewer a:{claims.x}", guests: true}', 'guests has no effect, because'],
  ['GET /a: {check: "viewer a:1", guests: true}', 'guests needs guest_organization in the file'],
  ['GET /a: {check: "viewer a:1", guests: true, step_up: {max_age: 1}}', 'guests cannot be used with step_up'],
  ['GET /a: {public: with_identity, step_up: {max_age: 1}}', 'step_up cannot be used on a public route'],
  ['GET /a: {check: {equals: {client.address: 10.0.0.0/33}}, guests: true}', 'has a prefix of more than 32 bits'],
  ['GET /a: {check: {equals: {client.address: 10.0.0.1/8}}, guests: true}', 'has bits set behind its prefix'],
  ['GET /a: {check: {equals: {client.address: localhost}}, guests: true}', 'is no IP address and no CIDR block'],
])('%s is refused with a reason', (route, message) => {
  const { issues } = parseRouteFile(routeFile(route).replace('UPSTREAM', 'http://a.test').replace('PDP', '127.0.0.1:1'))
  expect(issues.map((issue) => issue.message).join('\n')).toContain(message)
})
