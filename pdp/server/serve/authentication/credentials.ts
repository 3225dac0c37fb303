/** The access token of a request, and the DPoP proof that its sender holds the key that the token is bound to. */
import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { TokenState } from '../../../identity/issuer/tokens/token-state.ts'
import { resourceMetadataUrl } from '../../../identity/oauth/paths.ts'
import { type Credentials, parseAuthorization } from '../../../shared/token/authorization.ts'
import { type ChallengeParameters, challenge } from '../../../shared/token/challenge.ts'
import { PROOF_ALGORITHMS, type ProofVerifier } from '../../../shared/token/dpop.ts'
import { TokenError, type TokenErrorCode } from '../../../shared/token/errors.ts'
import { RequestProblem, type RequestProblemCode } from '../http/status.ts'

export type ActiveToken = Extract<TokenState, { active: true }>
export type CredentialDeps = { readonly issuer: string; readonly verifyProof: ProofVerifier }

/** Callers are known by their tokens, so this makes one for a caller without a token. It exists in this process only. */
export function tokenOfSubject(
  subject: ActiveToken['subject'],
  { clientId, scopes }: Pick<ActiveToken, 'clientId' | 'scopes'>,
): ActiveToken {
  return {
    active: true,
    subject,
    organization: null,
    clientId,
    scopes,
    audiences: [],
    jkt: null,
    jti: '',
    grantId: null,
    issuedAtMs: 0,
    expiresAtMs: 0,
    acr: null,
    authTime: null,
    revocationKeys: [],
    actors: [],
    app: null,
  }
}

const ALGS = PROOF_ALGORITHMS.join(' ')

/** The request's token. Throws RequestProblem `token_missing`, with a challenge per scheme, unless there is exactly one. */
export function presentedToken(issuer: string, request: IncomingMessage): Credentials {
  try {
    return parseAuthorization(request.headersDistinct.authorization ?? [])
  } catch (err) {
    if (!(err instanceof TokenError)) throw err
  }
  const challenges = [challengeOf('bearer', { issuer }), challengeOf('dpop', { issuer })].join(', ')
  throw new RequestProblem('token_missing', 'send one access token as Authorization: Bearer, or as DPoP with a proof', {
    headers: { 'www-authenticate': challenges },
  })
}

/**
 * True if the sender has proven the token's key. False for a bound token sent as a bearer token, whose sender may be any resource server. A
 * proof is valid for one call. Throws RequestProblem `proof_missing`, `proof_invalid`, `proof_replayed`, `token_invalid` or
 * `replay_memory_unavailable`.
 */
export async function provesKey(
  deps: CredentialDeps,
  request: IncomingMessage,
  { scheme, token, state }: Credentials & { readonly state: ActiveToken },
): Promise<boolean> {
  if (scheme === 'bearer') return false
  if (state.jkt === null) {
    throw invalidToken(deps.issuer, 'bearer', 'the token is not bound to a key: send it as Authorization: Bearer')
  }
  const presented = {
    proofs: request.headersDistinct.dpop ?? [],
    method: request.method ?? '',
    url: urlOfRequest(deps.issuer, request.url ?? ''),
  }
  try {
    await deps.verifyProof(presented, { jkt: state.jkt, digest: hash('sha256', token, 'base64url') })
  } catch (err) {
    throw err instanceof TokenError ? refusedProof(deps.issuer, err) : err
  }
  return true
}

/** The URL of the request, made from our issuer: the Host field and what proxies add do not count. */
const urlOfRequest = (issuer: string, target: string): string =>
  issuer.replace(/\/$/, '') + (target.split('?', 1)[0] ?? '')

const PROOF_PROBLEMS: { readonly [code in TokenErrorCode]?: RequestProblemCode } = {
  proof_missing: 'proof_missing',
  proof_invalid: 'proof_invalid',
  proof_replayed: 'proof_replayed',
}

function refusedProof(issuer: string, err: TokenError): Error {
  if (err.code === 'token_invalid') return invalidToken(issuer, 'dpop', err.message)
  if (err.code === 'proof_unverifiable') {
    return new RequestProblem('replay_memory_unavailable', 'proofs cannot be checked at the moment', { cause: err })
  }
  const code = PROOF_PROBLEMS[err.code]
  if (code === undefined) return err
  return new RequestProblem(code, err.message, {
    headers: { 'www-authenticate': challengeOf('dpop', { issuer, error: 'invalid_dpop_proof' }) },
  })
}

/** RFC 9449 section 7.2: a bound token that is sent as a bearer token may be stolen. */
export function unproven(message: string): RequestProblem {
  return new RequestProblem('proof_missing', message, {
    headers: { 'www-authenticate': challenge('DPoP', { error: 'invalid_token', algs: ALGS }) },
  })
}

export function invalidToken(issuer: string, scheme: Credentials['scheme'], message: string): RequestProblem {
  return new RequestProblem('token_invalid', message, {
    headers: { 'www-authenticate': challengeOf(scheme, { issuer, error: 'invalid_token' }) },
  })
}

function challengeOf(
  scheme: Credentials['scheme'],
  { issuer, ...rest }: ChallengeParameters & { readonly issuer: string },
): string {
  const parameters = { ...rest, resource_metadata: resourceMetadataUrl(issuer) }
  return scheme === 'bearer' ? challenge('Bearer', parameters) : challenge('DPoP', { ...parameters, algs: ALGS })
}
