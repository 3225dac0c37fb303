/** `enforce()` with a fake token verifier, proof verifier and PDP, and a table of the requests that it denies. */
import { type AccessClaims, parseClaims } from '../../../pdp/shared/token/claims.ts'
import { TokenError, type TokenErrorCode } from '../../../pdp/shared/token/errors.ts'
import { NO_ADMISSION } from '../../../sidecar/enforce/admission.ts'
import { type Arrival, type EnforceDeps, enforce, type Outcome, type Permit } from '../../../sidecar/enforce/enforce.ts'
import { syntheticRequest } from '../../../sidecar/http/client-request.ts'
import { createSessionSeal } from '../../../sidecar/mcp/sessions.ts'
import type { PdpAnswer, PdpQuestion } from '../../../sidecar/pdp-client/question.ts'
import { PdpUnavailable, RequestError } from '../../../sidecar/request/errors.ts'
import { createRouting } from '../../../sidecar/routes/route-request.ts'
import { loadFile, routeFile } from './harness.ts'

export const NOW_MS = Date.parse('2026-01-01T00:00:00Z')
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
export const JKT = 'a'.repeat(43)
export const ALLOW: PdpAnswer = {
  active: true,
  subjectType: 'user',
  permissions: ['allowed'],
  reasons: [],
  entitlements: new Map([['feature.docs', true]]),
  revision: '',
  signIn: { acr: 'strong', authTime: NOW_MS / 1_000 },
}
const SOCKET = ['Sec-WebSocket-Version', '13', 'Sec-WebSocket-Key', Buffer.alloc(16).toString('base64')]

function claimsOf(claims: { readonly [name: string]: unknown } = {}): AccessClaims {
  const base = { iss: 'https://as.test', aud: 'https://app.test', sub: 'alice', client_id: 'c1', org: 'acme' }
  const times = { jti: 'j', iat: NOW_MS / 1_000, exp: NOW_MS / 1_000 + 300 }
  return parseClaims(Object.assign(Object.create(null), { scope: 'docs:read', ...base, ...times, ...claims }), 'digest')
}

export type Case = {
  readonly line?: string
  readonly fields?: readonly string[]
  readonly authorization?: string | null
  readonly host?: string
  readonly claims?: { readonly [name: string]: unknown }
  readonly token?: Error
  /** Verifies tokens in earnest. */
  readonly tokens?: EnforceDeps['tokens']
  readonly proof?: Error
  readonly pdp?: Partial<PdpAnswer> | Error
  readonly body?: string | Error
  readonly upgrade?: boolean
  /** The issuer of the token is an external one. */
  readonly external?: boolean
  readonly shadow?: boolean
  readonly origin?: Partial<Arrival['origin']>
  readonly arrive?: Error
  readonly enter?: Error
  readonly turn?: Error
  /** `arrive`, `enter` and `turn` reject instead of throwing. */
  readonly later?: boolean
  readonly clockHint?: string
  readonly routes?: string
  readonly extra?: string
  /** What former rules permitted. */
  readonly former?: Permit
}
export type Run = {
  readonly outcome: Outcome
  readonly asked: readonly PdpQuestion[]
  /** URLs that proofs were verified for. */
  readonly proofs: readonly string[]
  /** Turns at the PDP that have ended. */
  readonly endedTurns: number
  deps: EnforceDeps
}

export function depsFor(
  one: Case,
  asked: PdpQuestion[] = [],
  onProof: (url: string) => void = () => undefined,
): EnforceDeps {
  const routes = one.routes ?? (one.shadow === true ? SHADOWED_ROUTES : ROUTES)
  const source = routeFile(routes, { extra: `hosts: [app.test]\n${one.extra ?? ''}` })
  const file = loadFile(source.replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1'))
  return {
    ...createRouting(file),
    tokens: one.tokens ?? {
      verify: () => (one.token === undefined ? claimsOf(one.claims) : Promise.reject(one.token)),
    },
    async verifyProof({ url }) {
      onProof(url)
      if (one.proof !== undefined) throw one.proof
    },
    publicUrl: 'https://app.test',
    cors: file.cors,
    probePaths: new Set(),
    servesKeys: false,
    externalIssuers: new Set(one.external === true ? ['https://as.test'] : []),
    clock: () => NOW_MS,
    metadataPath: '/.well-known/oauth-protected-resource',
    targetCharsMax: 8_192,
    shadowRoute: file.shadowRoute,
    clockHint: () => one.clockHint ?? null,
    answerBytesMax: 1_000_000,
    mcpSessions: createSessionSeal([Buffer.alloc(32)]),
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

export async function run(one: Case): Promise<Run> {
  const asked: PdpQuestion[] = []
  const proofs: string[] = []
  let endedTurns = 0
  const deps = depsFor(one, asked, (url) => void proofs.push(url))
  const [method = '', target = ''] = (one.line ?? 'GET /docs/1').split(' ')
  const authorization = one.authorization === undefined ? 'Bearer t' : one.authorization
  const raw = ['Host', one.host ?? 'app.test', ...(one.fields ?? [])]
  if (authorization !== null) raw.push('Authorization', authorization)
  const outcome = await enforce(
    {
      client: syntheticRequest({ method, target, raw }),
      requestId: 'request-1',
      origin: { address: '192.0.2.1', scheme: 'https', host: null, fault: null, ...one.origin },
      admission: {
        ...NO_ADMISSION,
        arrive: () => fail(one.arrive, one.later),
        enter: () => fail(one.enter, one.later),
        turn: () => fail(one.turn, one.later),
        answered() {
          endedTurns += 1
        },
      },
      async readBody() {
        if (one.body instanceof Error) throw one.body
        return Buffer.from(one.body ?? '')
      },
      keptBody: async () => (typeof one.body === 'string' ? Buffer.from(one.body) : null),
      upgrade: one.upgrade ?? false,
      browser: null,
      span: null,
      lateMs: null,
      former: one.former ?? null,
    },
    deps,
  )
  return { outcome, asked, proofs, endedTurns, deps }
}

function fail(err: Error | undefined, later = false): Promise<void> | null {
  if (err === undefined) return null
  if (later) return Promise.reject(err)
  throw err
}

export const tokenError = (code: TokenErrorCode): TokenError => new TokenError(code, `it is ${code}`)
export const busy = new RequestError('busy', 'too many')
export const BOUND = { claims: { cnf: { jkt: JKT } }, authorization: 'DPoP t' }

/** Name, request, code, and how far it got: `[route is known, subject is known, the PDP was asked]`. */
export type Denied = readonly [name: string, one: Case, code: string, reached: readonly [boolean, boolean, boolean]]
const ARRIVED = [false, false, false] as const
const ROUTED = [true, false, false] as const
const VERIFIED = [true, true, false] as const
const ASKED = [true, true, true] as const
export const DENIED: readonly Denied[] = [
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
  ['a value that is missing', { pdp: { permissions: ['condition_failed'] } }, 'condition_failed', ASKED],
  ['a check that is too large', { pdp: { permissions: ['evaluation_limit'] } }, 'evaluation_limit', ASKED],
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
