/** Tables of `enforce()` with fake token verifier, proof verifier and PDP: which outcome each stage of a request can have. */
import { describe, expect, test } from 'vitest'
import { type AccessClaims, parseClaims } from '../../../pdp/token/claims.ts'
import { TOKEN_ERROR_CODES, TokenError, type TokenErrorCode } from '../../../pdp/token/errors.ts'
import { NO_ADMISSION } from '../../../sidecar/enforce/admission.ts'
import { denialStatus, isShadowed } from '../../../sidecar/enforce/denial-response.ts'
import { type Arrival, type EnforceDeps, enforce, type Outcome, reevaluate } from '../../../sidecar/enforce/enforce.ts'
import { syntheticRequest } from '../../../sidecar/http/client.ts'
import type { PdpAnswer, PdpQuestion } from '../../../sidecar/pdp-client/question.ts'
import { PdpUnavailable, RequestError } from '../../../sidecar/request/errors.ts'
import { createRouting } from '../../../sidecar/routes/route-request.ts'
import { loadFile, routeFile } from '../support/harness.ts'

const NOW_MS = Date.parse('2026-01-01T00:00:00Z')
const ROUTES = `GET /public: public
GET /docs/{id}: viewer doc:{id}
POST /docs: editor doc:{body.id}
GET /scoped: scope docs:read
GET /paid: entitlement feature.docs
GET /strong: {check: "viewer doc:1", step_up: {acr_values: [strong]}}
GET /socket: {check: "viewer doc:1", upgrade: [websocket]}
GET /open-socket: {check: public, upgrade: [websocket]}`
const SHADOWED_ROUTES = ROUTES.replaceAll(/^(\w+ \S+): (.*)$/gm, (line, route: string, check: string) =>
  check === 'public' || check.startsWith('{check: public')
    ? line
    : check.startsWith('{')
      ? `${route}: ${check.replace('{', '{mode: shadow, ')}`
      : `${route}: {check: "${check}", mode: shadow}`,
)
const JKT = 'a'.repeat(43)
const ALLOW: PdpAnswer = {
  active: true,
  subjectType: 'user',
  permissions: ['allowed'],
  entitlements: new Map([['feature.docs', true]]),
  signIn: { acr: 'strong', authTime: NOW_MS / 1_000 },
}
const SOCKET = ['Sec-WebSocket-Version', '13', 'Sec-WebSocket-Key', Buffer.alloc(16).toString('base64')]

function claimsOf(claims: { readonly [name: string]: unknown } = {}): AccessClaims {
  const base = { iss: 'https://as.test', aud: 'https://app.test', sub: 'alice', client_id: 'c1', org: 'acme' }
  const times = { jti: 'j', iat: NOW_MS / 1_000, exp: NOW_MS / 1_000 + 300 }
  return parseClaims(Object.assign(Object.create(null), { scope: 'docs:read', ...base, ...times, ...claims }), 'digest')
}

type Case = {
  readonly line?: string
  readonly fields?: readonly string[]
  readonly authorization?: string | null
  readonly host?: string
  readonly claims?: { readonly [name: string]: unknown }
  readonly token?: Error
  readonly proof?: Error
  readonly pdp?: Partial<PdpAnswer> | Error
  readonly body?: string | Error
  readonly upgrade?: boolean
  readonly shadow?: boolean
  readonly origin?: Partial<Arrival['origin']>
  readonly arrive?: Error
  readonly enter?: Error
  readonly clockHint?: string
  readonly routes?: string
}
type Run = {
  readonly outcome: Outcome
  readonly asked: readonly PdpQuestion[]
  readonly proofs: number
  deps: EnforceDeps
}

function depsFor(one: Case, asked: PdpQuestion[] = [], onProof: () => void = () => undefined): EnforceDeps {
  const routes = one.routes ?? (one.shadow === true ? SHADOWED_ROUTES : ROUTES)
  const source = routeFile(routes, { extra: 'hosts: [app.test]' })
  const file = loadFile(source.replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1'))
  return {
    ...createRouting(file),
    tokens: { verify: () => (one.token === undefined ? claimsOf(one.claims) : Promise.reject(one.token)) },
    async verifyProof() {
      onProof()
      if (one.proof !== undefined) throw one.proof
    },
    publicUrl: 'https://app.test',
    externalIssuers: new Set(),
    clock: () => NOW_MS,
    metadataPath: '/.well-known/oauth-protected-resource',
    clockHint: () => one.clockHint ?? null,
    pdp: {
      async ask(question) {
        asked.push(question)
        if (one.pdp instanceof Error) throw one.pdp
        return { ...ALLOW, ...one.pdp }
      },
      watch: () => () => undefined,
    },
  }
}

async function run(one: Case): Promise<Run> {
  const asked: PdpQuestion[] = []
  let proofs = 0
  const deps = depsFor(one, asked, () => {
    proofs += 1
  })
  const [method = '', target = ''] = (one.line ?? 'GET /docs/1').split(' ')
  const authorization = one.authorization === undefined ? 'Bearer t' : one.authorization
  const raw = ['Host', one.host ?? 'app.test', ...(one.fields ?? [])]
  if (authorization !== null) raw.push('Authorization', authorization)
  const outcome = await enforce(
    {
      client: syntheticRequest({ method, target, raw }),
      origin: { address: '192.0.2.1', scheme: 'https', host: null, fault: null, ...one.origin },
      admission: { ...NO_ADMISSION, arrive: () => fail(one.arrive), enter: () => fail(one.enter) },
      async readBody() {
        if (one.body instanceof Error) throw one.body
        return Buffer.from(one.body ?? '')
      },
      upgrade: one.upgrade ?? false,
    },
    deps,
  )
  return { outcome, asked, proofs, deps }
}

function fail(err: Error | undefined): null {
  if (err !== undefined) throw err
  return null
}

const tokenError = (code: TokenErrorCode): TokenError => new TokenError(code, `it is ${code}`)
const busy = new RequestError('busy', 'too many')
const BOUND = { claims: { cnf: { jkt: JKT } }, authorization: 'DPoP t' }

/** Name, request, code, and how far it got: `[route is known, subject is known, the PDP was asked]`. */
type Denied = readonly [name: string, one: Case, code: string, reached: readonly [boolean, boolean, boolean]]
const ARRIVED = [false, false, false] as const
const ROUTED = [true, false, false] as const
const VERIFIED = [true, true, false] as const
const ASKED = [true, true, true] as const
const DENIED: readonly Denied[] = [
  ['too many requests of the client', { arrive: busy }, 'busy', ARRIVED],
  ['a proxy that sends nonsense', { origin: { fault: 'nonsense' } }, 'request_invalid', ARRIVED],
  ['a path with dots', { line: 'GET /docs/../public' }, 'request_invalid', ARRIVED],
  ['two Host fields', { fields: ['Host', 'app.test'] }, 'request_invalid', ARRIVED],
  ['CONNECT', { line: 'CONNECT /docs/1' }, 'method_unsupported', ARRIVED],
  ['101 fields', { fields: Array.from({ length: 101 }, () => ['X-A', '1']).flat() }, 'headers_too_large', ARRIVED],
  ['another host', { host: 'other.test' }, 'host_unknown', ARRIVED],
  ['another forwarded host', { origin: { host: { hostname: 'other.test', port: null } } }, 'host_unknown', ARRIVED],
  ['a path without a route', { line: 'GET /nothing' }, 'route_unknown', ARRIVED],
  ['a write to the metadata', { line: 'POST /.well-known/oauth-protected-resource' }, 'route_unknown', ARRIVED],
  ['a method without a route', { line: 'DELETE /docs/1' }, 'method_unsupported', ARRIVED],
  ['an encoded slash', { line: 'GET /docs/a%2fb' }, 'request_invalid', ARRIVED],
  ['a WebSocket where none is taken', { upgrade: true, fields: SOCKET }, 'route_unknown', ROUTED],
  ['a WebSocket without a key', { line: 'GET /socket', upgrade: true }, 'request_invalid', ROUTED],
  [
    'a WebSocket of another origin',
    { line: 'GET /open-socket', upgrade: true, fields: [...SOCKET, 'Origin', 'https://evil.test'] },
    'origin_refused',
    ROUTED,
  ],
  ['too many requests of a public route', { line: 'GET /public', enter: busy }, 'busy', ROUTED],
  ['no token', { authorization: null }, 'token_missing', ROUTED],
  ['another scheme', { authorization: 'Basic YTpi' }, 'token_missing', ROUTED],
  ['a scheme without a token', { authorization: 'Bearer ' }, 'request_invalid', ROUTED],
  ['a token that is not a token68', { authorization: 'Bearer a b' }, 'token_invalid', ROUTED],
  ['an invalid token', { token: tokenError('token_invalid') }, 'token_invalid', ROUTED],
  ['an expired token', { token: tokenError('token_expired') }, 'token_expired', ROUTED],
  ['no keys of the issuer', { token: tokenError('keys_unavailable') }, 'keys_unavailable', ROUTED],
  ['no answer of the issuer', { token: tokenError('issuer_unavailable') }, 'issuer_unavailable', ROUTED],
  ['a fault of the verifier', { token: new Error('a bug') }, 'internal', ROUTED],
  ['a bound token as a bearer token', { ...BOUND, authorization: 'Bearer t' }, 'token_invalid', VERIFIED],
  ['an unbound token with DPoP', { authorization: 'DPoP t' }, 'token_invalid', VERIFIED],
  ['no proof', { ...BOUND, proof: tokenError('proof_missing') }, 'proof_missing', VERIFIED],
  ['an invalid proof', { ...BOUND, proof: tokenError('proof_invalid') }, 'proof_invalid', VERIFIED],
  ['a proof used before', { ...BOUND, proof: tokenError('proof_replayed') }, 'proof_replayed', VERIFIED],
  ['a proof without nonce', { ...BOUND, proof: tokenError('proof_nonce_required') }, 'proof_nonce_required', VERIFIED],
  [
    'a proof that cannot be remembered',
    { ...BOUND, proof: tokenError('proof_unverifiable') },
    'replay_memory_unavailable',
    VERIFIED,
  ],
  [
    'a body that is late',
    { line: 'POST /docs', body: new RequestError('request_timeout', 'late') },
    'request_timeout',
    VERIFIED,
  ],
  ['a body without the value', { line: 'POST /docs', body: '{}' }, 'request_invalid', VERIFIED],
  ['too many requests of the subject', { enter: busy }, 'busy', VERIFIED],
  ['no PDP', { pdp: new PdpUnavailable('none answers') }, 'pdp_unavailable', ASKED],
  ['too many questions', { pdp: new PdpUnavailable('too many', 'overloaded') }, 'overloaded', ASKED],
  ['a fault of the client of the PDP', { pdp: new TypeError('a bug') }, 'internal', ASKED],
  ['a denial', { pdp: { permissions: ['denied'] } }, 'permission_denied', ASKED],
  ['an undecided check', { pdp: { permissions: ['undecided'] } }, 'pdp_unavailable', ASKED],
  ['an answer with no permission', { pdp: { permissions: [] } }, 'pdp_unavailable', ASKED],
  ['a revoked token', { pdp: { active: false } }, 'token_invalid', ASKED],
  [
    'a token of no organization',
    { claims: { org: undefined }, pdp: { permissions: ['denied'] } },
    'permission_denied',
    ASKED,
  ],
  ['a token without the scope', { line: 'GET /scoped', claims: { scope: 'other' } }, 'scope_insufficient', ASKED],
  [
    'an organization without the capability',
    { line: 'GET /paid', pdp: { entitlements: new Map() } },
    'entitlement_required',
    ASKED,
  ],
  ['a weak sign-in', { line: 'GET /strong', pdp: { signIn: { acr: 'weak', authTime: 1 } } }, 'step_up_required', ASKED],
]

describe('enforce() denies', () => {
  test.each(DENIED)('%s', async (_name, one, code, reached) => {
    const { outcome, asked } = await run(one)
    expect(outcome).toMatchObject({ kind: 'denial', code })
    if (outcome.kind !== 'denial') return
    expect([outcome.route !== null, outcome.subject === 'alice', asked.length === 1]).toEqual(reached)
  })

  test('with each code of a token error', () => {
    const errors = DENIED.flatMap(([, { token, proof }]) => [token, proof]).filter((err) => err instanceof TokenError)
    const others: TokenErrorCode[] = ['token_missing', 'authorization_invalid']
    expect(new Set([...errors.map(({ code }) => code), ...others])).toEqual(new Set(TOKEN_ERROR_CODES))
  })

  test.each([
    ['Bearer', {}, 'token_invalid'],
    ['DPoP', { authorization: 'DPoP t' }, 'token_invalid'],
  ])('with a %s challenge when the token is not verified', async (scheme, one, code) => {
    const { outcome } = await run({ ...one, token: tokenError('token_invalid') })
    expect(outcome).toMatchObject({ code, members: { scheme } })
  })

  test('with a DPoP challenge a bound token that was sent as a bearer token', async () => {
    const { outcome } = await run({ ...BOUND, authorization: 'Bearer t' })
    expect(outcome).toMatchObject({ members: { scheme: 'DPoP' } })
  })

  test('with the hint of a wrong clock only where times are compared', async () => {
    const clockHint = 'this clock is behind'
    const timed = await run({ token: tokenError('token_expired'), clockHint })
    expect(timed.outcome).toMatchObject({ members: { detail: clockHint } })
    const other = await run({ token: tokenError('keys_unavailable'), clockHint })
    expect(JSON.stringify(other.outcome)).not.toContain(clockHint)
  })
})

describe('enforce() permits', () => {
  test('a public route without a token and without identity', async () => {
    const { outcome, asked } = await run({ line: 'GET /public', token: tokenError('token_invalid') })
    expect(outcome).toMatchObject({ kind: 'permit', identity: null, basis: null, body: null, shadowed: null })
    expect(asked).toEqual([])
  })

  test.each([
    ['a bearer token', {}, 0],
    ['a bound token with its proof', BOUND, 1],
  ])('%s', async (_name, one, proofs) => {
    const permitted = await run({ ...one, pdp: { subjectType: 'service' } })
    const identity = { subject: 'alice', subjectType: 'service', organization: 'acme', client: 'c1' }
    expect(permitted.outcome).toMatchObject({ kind: 'permit', identity, shadowed: null })
    expect(permitted.proofs).toBe(proofs)
    expect(permitted.asked).toMatchObject([
      { token: 't', digest: 'digest', subject: 'alice', organization: 'acme', permissions: [{ resource: 'doc:1' }] },
    ])
  })

  test('a body that was read, and keeps it', async () => {
    const { outcome } = await run({ line: 'POST /docs', body: '{"id":"7"}' })
    expect(outcome).toMatchObject({ kind: 'permit', body: Buffer.from('{"id":"7"}') })
  })
})

test.each([
  ['OPTIONS /docs/1', { kind: 'options', allow: ['GET', 'HEAD', 'OPTIONS'] }],
  ['GET /.well-known/oauth-protected-resource', { kind: 'metadata' }],
])('enforce() answers %s by itself, without a token', async (line, outcome) => {
  expect((await run({ line, authorization: null })).outcome).toEqual(outcome)
})

describe('on a route in shadow mode, enforce()', () => {
  const REPLACED = new Set([401, 403, 503])
  test('replaces denials of 401, 403 and 503, except for load and draining', () => {
    for (const [, , code] of DENIED as readonly (readonly [string, Case, Parameters<typeof isShadowed>[0], unknown])[])
      expect([code, isShadowed(code)]).toEqual([code, REPLACED.has(denialStatus(code)) && code !== 'busy'])
    expect([isShadowed('busy'), isShadowed('draining'), isShadowed('internal')]).toEqual([false, false, false])
  })

  test.each(DENIED.filter(([, one, , [routed]]) => routed && !/public|open-socket/.test(one.line ?? '')))(
    'forwards or denies by the table: %s',
    async (_name, one, code) => {
      const { outcome } = await run({ ...one, shadow: true })
      if (isShadowed(code as Parameters<typeof isShadowed>[0]))
        expect(outcome).toMatchObject({ kind: 'permit', basis: null, shadowed: { kind: 'denial', code } })
      else expect(outcome).toMatchObject({ kind: 'denial', code })
    },
  )

  test.each<[string, Case, string | null]>([
    ['no identity without a token', { authorization: null }, null],
    ['no identity of a token that is not verified', { token: tokenError('token_invalid') }, null],
    ['no identity without a proof', { ...BOUND, proof: tokenError('proof_missing') }, null],
    ['no identity of a revoked token', { pdp: { active: false } }, null],
    ['the identity of a denied sender', { pdp: { permissions: ['denied'] } }, 'alice'],
    ['the identity while no PDP answers', { pdp: new PdpUnavailable('none') }, 'alice'],
    ['the identity of an allowed sender', {}, 'alice'],
  ])('forwards %s', async (_name, one, subject) => {
    const { outcome } = await run({ ...one, shadow: true })
    expect(outcome.kind === 'permit' && (outcome.identity?.subject ?? null)).toBe(subject)
    expect(outcome).toMatchObject({ basis: null })
  })

  test('keeps the body that it has read, also when the request is denied', async () => {
    const one = { line: 'POST /docs', body: '{"id":"7"}', pdp: { permissions: ['denied'] }, shadow: true } as const
    expect((await run(one)).outcome).toMatchObject({ kind: 'permit', body: Buffer.from('{"id":"7"}') })
  })
})

describe('by changed rules, an open exchange', () => {
  async function changed(next: Case, first: Case = {}, upgrade = false) {
    const { outcome } = await run(first)
    if (outcome.kind !== 'permit') throw new Error('the first rules must permit')
    let proofs = 0
    const deps = depsFor(next, [], () => {
      proofs += 1
    })
    return { result: await reevaluate(outcome, { upgrade }, deps), proofs }
  }
  const VIEWER = 'GET /docs/{id}: viewer doc:{id}'
  test.each<[string, string, Case, Case, boolean]>([
    ['without its route', 'route_unknown', { routes: 'GET /x: public' }, {}, false],
    ['without its method', 'method_unsupported', { routes: 'PUT /docs/{id}: public' }, {}, false],
    ['that takes no WebSocket', 'route_unknown', { routes: VIEWER }, {}, true],
    ['whose token is not trusted now', 'token_invalid', { token: tokenError('token_invalid') }, {}, false],
    ['whose body was not kept', 'request_invalid', { routes: 'GET /docs/{id}: viewer doc:{body.id}' }, {}, false],
    [
      'that was public, without a proof',
      'proof_missing',
      { ...BOUND, proof: tokenError('proof_missing'), routes: 'GET /public: viewer doc:1' },
      { ...BOUND, line: 'GET /public' },
      false,
    ],
  ])('is denied %s: %s', async (_name, code, next, first, upgrade) => {
    expect((await changed(next, first, upgrade)).result).toEqual({ kind: 'denied', code })
  })

  test('does not need its proof a second time', async () => {
    const { result, proofs } = await changed({ ...BOUND, proof: tokenError('proof_replayed') }, BOUND)
    expect(result).toMatchObject({ kind: 'permitted', basis: { question: { subject: 'alice' } } })
    expect(proofs).toBe(0)
  })

  test.each([
    ['public', { routes: 'GET /docs/{id}: public' }],
    ['shadowed', { shadow: true }],
    ['shadowed, and the token not trusted now', { shadow: true, token: tokenError('token_invalid') }],
  ])('rests on nothing when its route is now %s', async (_name, next) => {
    expect((await changed(next)).result).toEqual({ kind: 'permitted', basis: null })
  })
})

test('an imagined request takes no place', () => {
  expect([NO_ADMISSION.arrive(), NO_ADMISSION.enter('r', null)]).toEqual([null, null])
})
