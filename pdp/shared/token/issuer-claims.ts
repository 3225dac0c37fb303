/** Reads the access tokens of an issuer other than the PDP: which claims name its subject, client, organization and groups. */
import type { JsonMembers } from '../base/json-text.ts'
import { type AccessClaims, ID_CHARS_MAX, type IssuerNames, parseClaims } from './claims.ts'
import { TokenError } from './errors.ts'
import { hasType, type Jws, members } from './jws.ts'

/** The terms for an issuer, in a route file and in the PDP's trusted issuers alike, so that both read a token in the same way. */
export type IssuerTerms = {
  /** The audience that tokens must have; of several, one is enough. */
  readonly audience: string | readonly string[]
  /**
   * True: all tokens of this issuer for this audience are credentials, even without a mark of access tokens. The audience must not be a
   * client for signing in: its ID tokens would count, too.
   */
  readonly workloads?: boolean
  /** `JWT`: the header types `JWT` and none are accepted for access tokens, besides `at+jwt`. */
  readonly typ?: 'at+jwt' | 'JWT'
  readonly claims?: IssuerClaimNames
  /** The prefix for the issuer's subjects, clients and groups, so that they differ from ours and from other issuers'. */
  readonly subject_prefix: string
  /** The former name of the issuer of these people and clients. It has the same prefix while tokens of both names are in use. */
  readonly renamed_from?: string
  /** The only organizations in which the issuer's tokens count. */
  readonly organizations: readonly string[]
  /** Our organization by the value of the organization claim; without it the claim names our organization itself. */
  readonly organization_values?: { readonly [value: string]: string }
  readonly required_claims?: { readonly [claim: string]: string }
}
/** A dot leads into an object: `realm_access.roles`. */
export type IssuerClaimNames = {
  /** The claim with the audience. Default: `aud`. */
  readonly audience?: string
  readonly subject?: string
  readonly organization?: string
  readonly client?: string
  readonly groups?: string
  readonly roles?: string
}

/** The first character of external ids. No id of our own users or clients has it (ARCHITECTURE.md section 5). */
export const EXTERNAL_MARK = '~'
/** The most groups and roles of one token. */
export const ISSUER_GROUPS_MAX = 500
/** Claims about our own organizations and roles, which are ignored in tokens of other issuers. */
const OUR_CLAIMS = ['org', 'org_name', 'org_role', 'roles', 'permissions', 'ent', 'ent_ver', 'act', 'may_act']

/** Requires an access token by the issuer's terms. Throws TokenError `token_invalid`. */
export function requireAccessToken({ header, payload }: Jws, terms: IssuerTerms | null): void {
  if (hasType(header, 'at+jwt')) return
  const isWorkload = terms?.workloads === true
  if (terms?.typ !== 'JWT' && !isWorkload) throw invalid('header typ is not at+jwt')
  if (header.typ !== undefined && !hasType(header, 'jwt')) throw invalid('header typ is neither at+jwt nor JWT')
  if (isOtherToken(payload)) throw invalid('the token is an ID token or another JWT that is not an access token')
  if (isWorkload && !isMarked(payload) && (payload.auth_time !== undefined || payload.sid !== undefined))
    throw invalid('the token tells of a sign-in, so it is the ID token of a person and no credential of a workload')
  if (!isWorkload && !isMarked(payload))
    throw invalid('nothing in the token says that it is an access token, as scope or scp would')
}

/**
 * Refuses a JWT without a type of its own by the claims of other kinds. OpenID Connect Core sections 2 and 3.3.2.11, RFC 8417 section 2.2; `typ` is
 * Keycloak's name for the kind of a token, and `token_use` that of Amazon Cognito.
 */
function isOtherToken({ typ, token_use: use, ...payload }: JsonMembers): boolean {
  if (typ !== undefined && !isAccessKind(typ)) return true
  if (use !== undefined && use !== 'access') return true
  if (payload.nonce !== undefined && typ === undefined) return true
  return ['at_hash', 'c_hash', 's_hash', 'events'].some((name) => payload[name] !== undefined)
}

/** True for a token with a mark of access tokens. An ID token without a nonce is refused only because it lacks one. */
function isMarked({ typ, token_use: use, ...payload }: JsonMembers): boolean {
  if (typ !== undefined || use !== undefined) return true
  return ['scope', 'scp', 'gty', 'appidacr', 'azpacr'].some((name) => payload[name] !== undefined)
}

const isAccessKind = (typ: unknown): boolean => typeof typ === 'string' && /^(bearer|dpop)$/i.test(typ)

/**
 * The claims in our own tokens' names; subject, client and groups get the issuer's prefix. Throws TokenError `token_invalid`, which names
 * the claim.
 */
export function readIssuerClaims(payload: JsonMembers, terms: IssuerTerms, digest: string): AccessClaims {
  for (const [name, value] of Object.entries(terms.required_claims ?? {}))
    if (!namesOf(oneClaimAt(payload, name)).includes(value)) throw invalid(`claim ${name} is not ${value}`)
  const { subject = 'sub' } = terms.claims ?? {}
  // A workload is its own client, so its subject's claim also names the client.
  const { client = terms.workloads === true ? subject : 'client_id', audience = 'aud' } = terms.claims ?? {}
  const own: { [name: string]: unknown } = Object.assign(Object.create(null), payload)
  for (const name of OUR_CLAIMS) delete own[name]
  const organization = organizationOf(payload, terms)
  Object.assign(own, {
    sub: inNamespace(payload, subject, terms),
    client_id: inNamespace(payload, client, terms),
    // Some issuers give tokens no id, so the digest serves as one.
    jti: payload.jti ?? digest,
    aud: oneClaimAt(payload, audience),
    // RFC 7519 section 4.1.6 lets an issuer leave it out, as some SPIFFE issuers do.
    ...(terms.workloads === true && { iat: payload.iat ?? payload.nbf }),
    scope: scopeOf(payload.scope ?? payload.scp),
    ...(organization !== null && { org: organization }),
  })
  return parseClaims(own, digest, {
    groups: groupsOf(payload, terms),
    issuerNames: { ...namesIn(payload, subject), claims: payload },
  })
}

/** The issuer's own names. A claim that is no text is left out. `sid`: OpenID Connect Front-Channel Logout section 3. */
function namesIn(payload: JsonMembers, subject: string): Omit<IssuerNames, 'claims'> {
  const textAt = (name: string): string | null => namesOf(oneClaimAt(payload, name))[0] ?? null
  const subjects = [textAt('sub'), textAt(subject)].filter((name) => name !== null)
  return { subjects: [...new Set(subjects)], session: textAt('sid'), email: textAt('email'), jti: textAt('jti') }
}

function inNamespace(payload: JsonMembers, name: string, { subject_prefix: prefix }: IssuerTerms): string {
  const value = oneClaimAt(payload, name)
  if (typeof value !== 'string' || value === '' || !value.isWellFormed())
    throw invalid(`claim ${name} is missing, empty or no text`)
  const id = `${EXTERNAL_MARK}${prefix}${value.replace(UNFIT, encoded)}`
  if (id.length > ID_CHARS_MAX)
    throw invalid(`claim ${name} makes an id of ${id.length} characters, and an id has at most ${ID_CHARS_MAX}`)
  return id
}

/** The characters of a subject that are encoded. `%` is among them only where it looks like an encoding, so that ids stay unique. */
const UNFIT = /[^\x21\x22\x24-\x7e]|%(?=[01][0-9A-F]|2[035]|7F|[89A-F][0-9A-F])/gu

const scopeOf = (value: unknown): unknown => (Array.isArray(value) ? value.join(' ') : value)

/** The organization that the token names; without a claim for it, the only organization of the terms. */
function organizationOf(payload: JsonMembers, terms: IssuerTerms): string | null {
  const { claims, organizations, organization_values: values } = terms
  const [only, ...more] = organizations
  if (claims?.organization === undefined) return more.length === 0 ? (only ?? null) : null
  const [named, ...others] = namesOf(oneClaimAt(payload, claims.organization))
  if (named === undefined || others.length > 0) return null
  const organization = values === undefined ? named : new Map(Object.entries(values)).get(named)
  return organizations.find((known) => known === organization) ?? null
}

/** The ids of the token's groups and roles, such as `~idp:group:engineering` and `~idp:role:admin`. */
function groupsOf(payload: JsonMembers, terms: IssuerTerms): readonly string[] {
  const { groups, roles } = terms.claims ?? {}
  const ids: string[] = []
  for (const [kind, name] of [['group', groups] as const, ['role', roles] as const]) {
    if (name === undefined) continue
    for (const value of listAt(payload, name))
      ids.push(`${EXTERNAL_MARK}${terms.subject_prefix}${kind}:${encode(value)}`)
  }
  if (ids.length > ISSUER_GROUPS_MAX)
    throw invalid(`the token names more than ${ISSUER_GROUPS_MAX} groups and roles: let the issuer put fewer into it`)
  return [...new Set(ids)]
}

function listAt(payload: JsonMembers, name: string): readonly string[] {
  // OpenID Connect Core section 5.6.2: the claim is elsewhere. It cannot be ignored, since a missing group may be one that denies.
  if (payload.hasgroups === true || members(payload._claim_names)?.[name] !== undefined)
    throw invalid(`claim ${name} is not in the token, because it is too long: let the issuer put fewer groups into it`)
  const value = oneClaimAt(payload, name)
  if (value === undefined) return []
  const names = namesOf(value)
  if (Array.isArray(value) ? names.length < value.length : names.length === 0)
    throw invalid(`claim ${name} is not a list of names`)
  return names
}

/** Encodes a name: characters that ids cannot have, and `%`, are percent-encoded, so that different names have different ids. */
const encode = (name: string): string => name.replace(/[^\x21\x22\x24\x26-\x7e]/gu, encoded)

const encoded = (character: string): string =>
  [...Buffer.from(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')

const namesOf = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? value : [value]).filter(
    (item): item is string => typeof item === 'string' && item !== '' && item.isWellFormed(),
  )

/**
 * The claim of this name, where a dot leads into an object or is part of a name (`https://acme.example/roles`). Undefined where a
 * token has it in two ways: they may differ.
 */
export function claimAt(payload: JsonMembers, name: string): unknown {
  const [found, ...others] = readings(payload, name)
  return others.length === 0 ? found : undefined
}

/** Throws TokenError for a claim with two readings, since ignoring it could ignore a group that denies. */
function oneClaimAt(payload: JsonMembers, name: string): unknown {
  const [found, ...others] = readings(payload, name)
  if (others.length > 0)
    throw invalid(`claim ${name} is in the token in two ways: by this name, and as a member of an object`)
  return found
}

/** All readings of a name with dots. Only one way leads to each object, so the number of objects bounds them. */
function* readings(payload: JsonMembers, name: string): Iterable<unknown> {
  if (Object.hasOwn(payload, name)) yield payload[name]
  for (let at = name.indexOf('.'); at >= 0; at = name.indexOf('.', at + 1)) {
    const outer = name.slice(0, at)
    const inner = Object.hasOwn(payload, outer) ? members(payload[outer]) : null
    if (inner !== null) yield* readings(inner, name.slice(at + 1))
  }
}

const invalid = (message: string): TokenError => new TokenError('token_invalid', message)
