/** UserInfo (OpenID Connect Core section 5.3): current claims about the person, for a token of ours with scope `openid`. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Directory } from '../../../engine/store/directory.ts'
import { mediaTypeOf } from '../../../shared/base/media-type.ts'
import { PROBLEM_MEDIA_TYPE, type ProblemCode, problem } from '../../../shared/base/problems.ts'
import { type Credentials, parseAuthorization } from '../../../shared/token/authorization.ts'
import { type ChallengeError, challenge } from '../../../shared/token/challenge.ts'
import { PROOF_ALGORITHMS, type ProofVerifier } from '../../../shared/token/dpop.ts'
import { TokenError } from '../../../shared/token/errors.ts'
import { readForm } from '../../oauth/forms.ts'
import { PATHS, resourceMetadataUrl, urlOf } from '../../oauth/paths.ts'
import { STATUS, type StatusName } from '../../oauth/status.ts'
import type { ReadClaimSources } from './claim-sources.ts'
import { userInfoClaims } from './claims.ts'
import type { Introspection } from './introspection.ts'
import type { TokenRecord } from './token-state.ts'

const FORM = 'application/x-www-form-urlencoded'
const FORM_BYTES_MAX = 32_768
// Pages of any origin may call: access takes a token, never a cookie.
const CORS = {
  'access-control-allow-origin': '*',
  'access-control-allow-headers': 'Authorization, DPoP, Content-Type',
  'access-control-allow-methods': 'GET, POST',
  'access-control-expose-headers': 'WWW-Authenticate',
}

export type UserinfoDeps = {
  readonly issuer: string
  readonly introspection: Introspection
  readonly verifyProof: ProofVerifier
  readonly readClaimSources: ReadClaimSources
  readonly directory: Pick<Directory, 'user' | 'activeMemberships'>
}

/** A refusal by UserInfo. `scheme`: the authentication scheme that the caller used. */
class Refused extends Error {
  readonly outcome: StatusName
  readonly code: ProblemCode
  readonly error: ChallengeError | null
  readonly scheme: 'bearer' | 'dpop' | null
  constructor(kind: keyof typeof ERRORS, scheme: Refused['scheme'], detail: string) {
    super(detail)
    const { outcome, code, error } = ERRORS[kind]
    this.outcome = outcome
    this.code = code
    this.error = error
    this.scheme = scheme
  }
}
const ERRORS = {
  missing: { outcome: 'unauthenticated', code: 'token_missing', error: null },
  malformed: { outcome: 'invalid', code: 'request_invalid', error: 'invalid_request' },
  token: { outcome: 'unauthenticated', code: 'token_invalid', error: 'invalid_token' },
  proof: { outcome: 'unauthenticated', code: 'proof_invalid', error: 'invalid_dpop_proof' },
  scope: { outcome: 'forbidden', code: 'scope_insufficient', error: 'insufficient_scope' },
} as const satisfies { [kind: string]: { outcome: StatusName; code: ProblemCode; error: ChallengeError | null } }

/** Answers GET and POST, and a preflight. Throws PdpError `store_unavailable`. */
export async function answerUserinfo(deps: UserinfoDeps, req: IncomingMessage, res: ServerResponse): Promise<void> {
  if (req.method === 'OPTIONS') {
    res.writeHead(STATUS.empty, CORS).end()
    return
  }
  try {
    const presented = await presentedToken(req)
    const token = await authorize(deps, req, presented)
    const claims = await claimsOf(deps, token)
    if (claims === null) throw new Refused('token', presented.scheme, 'the person is gone')
    res.writeHead(STATUS.shown, { ...CORS, 'content-type': 'application/json', 'cache-control': 'no-store' })
    res.end(JSON.stringify(claims))
  } catch (err) {
    if (!(err instanceof Refused)) throw err
    refuse(deps.issuer, res, err)
  }
}

/** RFC 6750 section 2: the token is in exactly one of header and form body, never in the query. */
async function presentedToken(req: IncomingMessage): Promise<Credentials> {
  const query = new URLSearchParams((req.url ?? '').split('?')[1])
  if (query.has('access_token')) throw new Refused('malformed', null, 'a token must not be sent in the query')
  const inForm = await formToken(req)
  const fields = req.headersDistinct.authorization ?? []
  if (inForm !== null && fields.length > 0) throw new Refused('malformed', null, 'the token was sent in two ways')
  if (inForm !== null) return { scheme: 'bearer', token: inForm }
  try {
    return parseAuthorization(fields)
  } catch (err) {
    if (!(err instanceof TokenError)) throw err
    throw new Refused(err.code === 'token_missing' ? 'missing' : 'malformed', null, err.message)
  }
}

async function formToken(req: IncomingMessage): Promise<string | null> {
  if (req.method !== 'POST' || mediaTypeOf(req.headers['content-type']) !== FORM) return null
  const form = await readForm(req, FORM_BYTES_MAX)
  if (form === null) throw new Refused('malformed', null, 'the form is too large')
  const tokens = form.getAll('access_token')
  if (tokens.length > 1) throw new Refused('malformed', null, 'access_token was sent more than once')
  return tokens[0] ?? null
}

async function authorize(deps: UserinfoDeps, req: IncomingMessage, presented: Credentials): Promise<TokenRecord> {
  const { scheme } = presented
  const record = await deps.introspection.record(presented.token)
  // The token's audience does not matter: the scope `openid` gives access (OpenID Connect Core section 5.3).
  if (record === null) throw new Refused('token', scheme, 'the token is not active')
  // RFC 9449 section 7.2: a token that is bound to a key may be stolen if it comes as a bearer token.
  if ((record.jkt === null) !== (scheme === 'bearer')) {
    throw new Refused('token', record.jkt === null ? 'bearer' : 'dpop', 'the token needs the other scheme')
  }
  if (record.jkt !== null) await prove(deps, req, { ...record, jkt: record.jkt })
  if (await deps.introspection.isRevoked(record)) throw new Refused('token', scheme, 'the token is not active')
  if (record.userId === null || !record.scopes.has('openid')) {
    throw new Refused('scope', scheme, 'the token needs the scope openid')
  }
  return record
}

async function prove(deps: UserinfoDeps, req: IncomingMessage, token: TokenRecord & { jkt: string }): Promise<void> {
  const request = {
    proofs: req.headersDistinct.dpop ?? [],
    method: req.method ?? '',
    url: urlOf(deps.issuer, PATHS.userinfo),
  }
  try {
    await deps.verifyProof(request, token)
  } catch (err) {
    if (!(err instanceof TokenError) || err.code === 'proof_unverifiable') throw err
    throw new Refused(err.code === 'token_invalid' ? 'token' : 'proof', 'dpop', err.message)
  }
}

async function claimsOf(deps: UserinfoDeps, token: TokenRecord): Promise<object | null> {
  const { subject } = token
  const [user, app] = await Promise.all([deps.directory.user(subject.id), deps.introspection.appOf(token)])
  if (user === null) return null
  const [sources, memberships] = await Promise.all([
    deps.readClaimSources({ subject, organization: token.organization, app }),
    token.scopes.has('organizations') ? deps.directory.activeMemberships(subject.id) : [],
  ])
  const organizations = memberships.map(({ organization: { id, name }, role }) => ({ id, name, role }))
  return userInfoClaims(sources, { ...user, organizations }, token.scopes)
}

function refuse(issuer: string, res: ServerResponse, refused: Refused): void {
  const { error, scheme } = refused
  // RFC 6750 section 3.1: without a token, the challenge has no error code.
  const parameters = {
    ...(error === null ? {} : { error, error_description: refused.message }),
    ...(error === 'insufficient_scope' ? { scope: 'openid' } : {}),
    resource_metadata: resourceMetadataUrl(issuer),
  }
  const algs = PROOF_ALGORITHMS.join(' ')
  const challenges = [
    ...(scheme === 'dpop' ? [] : [challenge('Bearer', parameters)]),
    ...(scheme === 'bearer' ? [] : [challenge('DPoP', { ...parameters, algs })]),
  ]
  const status = STATUS[refused.outcome]
  res.writeHead(status, {
    ...CORS,
    'www-authenticate': challenges,
    'content-type': PROBLEM_MEDIA_TYPE,
    'cache-control': 'no-store',
  })
  res.end(JSON.stringify({ ...problem(refused.code, { detail: refused.message }), status }))
}
