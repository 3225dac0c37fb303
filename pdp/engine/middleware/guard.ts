/** Verifies a request's access token and DPoP proof and asks the embedded PDP; all frameworks' middleware calls it. */
import { decodeProtectedHeader } from 'jose'
import type { ProblemCode } from '../../shared/base/problems.ts'
import type { Subject } from '../../shared/domain/decision.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { isObject } from '../../shared/domain/names.ts'
import type { CheckArguments, RelationModel } from '../../shared/domain/relation-types.ts'
import { revocationKey } from '../../shared/domain/revocation.ts'
import { parseAuthorization } from '../../shared/token/authorization.ts'
import { type AccessClaims, actorsIn } from '../../shared/token/claims.ts'
import { createProofVerifier, type ProofVerifier } from '../../shared/token/dpop.ts'
import { TOKEN_PROBLEMS, TokenError } from '../../shared/token/errors.ts'
import { isSafeKeyUrl, remoteKeys } from '../../shared/token/remote-keys.ts'
import { processReplayMemory, type ReplayMemory } from '../../shared/token/replay.ts'
import { createTokenVerifier, type TokenVerifier } from '../../shared/token/verify.ts'
import type { EmbeddedPdp } from '../decision-point/embedded.ts'
import { type DenialAnswer, denial } from './denial.ts'

/** How many proofs of a minute a process remembers, with 100 bytes each. */
const PROOFS_MAX = 100_000
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'] as const

/**
 * Settings of a guard: whose tokens are accepted, for what, and who decides.
 *
 * @example
 * ```ts
 * const options: GuardOptions = {
 *   pdp,
 *   issuer: 'https://id.example.com',
 *   resource: 'https://app.example.com',
 * }
 * ```
 */
export type GuardOptions<M extends RelationModel = RelationModel> = {
  readonly pdp: Pick<EmbeddedPdp<M>, 'decide' | 'isRevoked' | 'tokenKeys'>
  /** `iss` of the tokens; its metadata names the key set. */
  readonly issuer: string
  /** `aud` of the tokens (RFC 8707). */
  readonly resource: string
  /** The origin that clients call, which DPoP proofs name. Default: that of `resource`. */
  readonly publicUrl?: string
  /** The memory of used proofs. Default: this process; processes behind one address need a shared Redis. */
  readonly replay?: ReplayMemory
  /** The organization of the question. Default: the claim `org`. Null refuses the request. */
  readonly organization?: (claims: AccessClaims) => string | null
}

/**
 * The sender of a request that was allowed.
 *
 * @example
 * ```ts
 * const describe = ({ subject, organization }: Caller) => `${subject.type}:${subject.id} of ${organization}`
 * ```
 */
export type Caller = {
  readonly subject: Subject
  /** The organization; null only if no more than a valid token was needed. */
  readonly organization: string | null
  readonly claims: AccessClaims
}

/** A request as it was sent: `path` is percent-encoded and has no query. */
export type GuardRequest = {
  readonly method: string
  readonly path: string
  /** All Authorization fields of the request. */
  readonly authorization: readonly string[]
  readonly proofs: readonly string[]
  /** Decoded path parameters, for `{name}` in a resource. */
  readonly parameters: unknown
}
/** The arguments of a guard; without any, each valid token is allowed. */
export type GuardArguments<M extends RelationModel> = CheckArguments<M> | []

/** Throws TypeError for an invalid issuer or URL. */
export function createGuard<M extends RelationModel>(
  options: GuardOptions<M>,
): (
  request: GuardRequest,
  check: readonly string[],
) => Promise<{ readonly caller: Caller } | { readonly denial: DenialAnswer }> {
  const deps = guardDeps(options)
  return async (request, check) => {
    try {
      return { caller: await admit(request, check, deps) }
    } catch (err) {
      const code = codeOf(err)
      if (code === null) throw err
      return { denial: denial(code, request.authorization) }
    }
  }
}

type Deps = {
  readonly tokens: TokenVerifier
  readonly verifyProof: ProofVerifier
  readonly origin: string
  readonly organizationOf: (claims: AccessClaims) => string | null
  readonly pdp: Pick<EmbeddedPdp, 'decide' | 'isRevoked'>
  readonly keysOf: (token: string, claims: AccessClaims) => Promise<readonly string[]>
}

function guardDeps<M extends RelationModel>(options: GuardOptions<M>): Deps {
  const { issuer, resource, publicUrl = resource, organization = (claims) => claims.organization } = options
  if (!isSafeKeyUrl(issuer)) throw new TypeError('issuer is not an https URL')
  if (!isHttpUrl(publicUrl))
    throw new TypeError('publicUrl must be an http or https URL; it is needed where resource is no such URL')
  const clock = Date.now
  const pdp = options.pdp as Pick<EmbeddedPdp, 'decide' | 'isRevoked' | 'tokenKeys'>
  const { replay = processReplayMemory({ clock, entriesMax: PROOFS_MAX }) } = options
  return {
    tokens: createTokenVerifier({
      issuers: [{ issuer, keys: remoteKeys({ issuer, fetch: globalThis.fetch, clock }), algorithms: ALGORITHMS }],
      audience: resource,
      clock,
    }),
    verifyProof: createProofVerifier({ clock, replay }),
    origin: new URL(publicUrl).origin,
    organizationOf: organization,
    pdp,
    keysOf: createKeysOf(pdp),
  }
}

/** The denial of a request, with the code for the client. */
class Refused extends Error {
  readonly code: ProblemCode
  constructor(code: ProblemCode) {
    super(code)
    this.code = code
  }
}

async function admit(request: GuardRequest, check: readonly string[], deps: Deps): Promise<Caller> {
  const { scheme, token } = parseAuthorization(request.authorization)
  const claims = await deps.tokens.verify(token)
  // RFC 9449 section 7.2: a bound token sent as a bearer token is refused, or else a thief could use it without its key.
  if ((claims.jkt === null) !== (scheme === 'bearer')) throw new Refused('token_invalid')
  if (claims.jkt !== null) {
    const url = `${deps.origin}${request.path}`
    await deps.verifyProof({ proofs: request.proofs, method: request.method, url }, { ...claims, jkt: claims.jkt })
  }
  const type = claims.subject === claims.clientId ? 'service' : 'user'
  const caller = { subject: { type, id: claims.subject }, organization: deps.organizationOf(claims), claims } as const
  const revocationKeys = await deps.keysOf(token, claims)
  await ask(caller, { check, parameters: request.parameters, revocationKeys }, deps)
  return caller
}

async function ask(
  { subject, organization, claims }: Caller,
  asked: {
    readonly check: readonly string[]
    readonly parameters: unknown
    readonly revocationKeys: readonly string[]
  },
  { pdp }: Deps,
): Promise<void> {
  const { check, parameters, revocationKeys } = asked
  const [relation, template] = check
  const revocation = { revocationKeys, issuedAtMs: claims.issuedAtMs }
  const actors = actorsIn(claims.all.act)
  const acting = actors.length === 0 ? {} : { actors, scopes: [...claims.scopes] }
  const question = { subject, audiences: claims.audiences, ...acting, ...revocation }
  if (relation === undefined || template === undefined) {
    // A token for a client that acts for a person ends with the delegation, which only a decision reads.
    const asksMore = organization !== null && actors.length > 0
    const isOver = asksMore ? (await pdp.decide({ organization, ...question })).tokenRevoked : pdp.isRevoked(revocation)
    if (await isOver) throw new Refused('token_invalid')
    return
  }
  if (organization === null) throw new Refused('permission_denied')
  const resource = fill(template, parameters)
  const permissions = [{ relation, resource }]
  const decision = await pdp.decide({ organization, permissions, ...question })
  if (decision.tokenRevoked) throw new Refused('token_invalid')
  const [answer] = decision.permissions
  if (answer?.error !== undefined) throw new Refused(answer.error)
  if (answer?.allowed !== true) throw new Refused('permission_denied')
}

/** The keys that revoke a token, read once and kept together with its claims: its origin never changes, and a revocation is final. */
function createKeysOf(pdp: Pick<EmbeddedPdp, 'tokenKeys'>): Deps['keysOf'] {
  const known = new WeakMap<AccessClaims, readonly string[] | null>()
  return async (token, claims) => {
    let keys = known.get(claims)
    if (keys === undefined) {
      const { jti, clientId, subject } = claims
      const origin = await pdp.tokenKeys({ jti, keyId: decodeProtectedHeader(token).kid ?? null })
      const person = subject === clientId ? [] : [revocationKey('user', subject)]
      const own = [revocationKey('jti', jti), revocationKey('client', clientId), ...person]
      keys = origin === null ? null : [...new Set([...own, ...origin])]
      known.set(claims, keys)
    }
    if (keys === null) throw new Refused('token_invalid')
    return keys
  }
}

/** True for http and https, whose URLs have an origin that proofs can name. */
const isHttpUrl = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)

/**
 * Throws Refused `request_invalid` for values that make no resource, TypeError for a parameter that the route lacks and for two
 * placeholders side by side.
 */
function fill(template: string, parameters: unknown): string {
  const given = typeof parameters === 'object' && parameters !== null ? new Map(Object.entries(parameters)) : new Map()
  if (template.includes('}{'))
    throw new TypeError('two placeholders side by side do not tell where the first value ends')
  const resource = template.replace(/\{([^{}]*)\}([^{]?)/g, (_, name: string, end: string) => {
    const value: unknown = given.get(name)
    if (typeof value !== 'string') throw new TypeError(`the route has no single path parameter {${name}}`)
    // A value must not contain the character that ends it: in `{a}/{b}`, two different pairs of values could give the same id.
    if (end !== '' && value.includes(end)) throw new Refused('request_invalid')
    return value + end
  })
  if (!isObject(resource)) throw new Refused('request_invalid')
  return resource
}

/** Codes of PdpErrors without a decision; all others are faults of the program. */
const PDP_CODES = ['store_unavailable', 'overloaded', 'evaluation_limit'] as const

/** The code for the client; null for an error that the client must not see. */
function codeOf(error: unknown): ProblemCode | null {
  if (error instanceof Refused) return error.code
  if (error instanceof TokenError) return TOKEN_PROBLEMS[error.code]
  return (error instanceof PdpError && PDP_CODES.find((code) => code === error.code)) || null
}
