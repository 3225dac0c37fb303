/** The part of the route file's format that is about token issuers. */
import { ALGORITHM_NAMES } from '../../pdp/shared/token/algorithms.ts'
import { ID } from '../../pdp/shared/token/claims.ts'
import {
  definition,
  FLAG,
  listOf,
  type Members,
  mapOf,
  oneOf,
  oneOrMore,
  optional,
  required,
  TEXT,
  textLike,
} from './words/schema.ts'

export const SUBJECT_PREFIX = /^[\x21\x22\x24-\x7e]{1,64}$/
export const CLAIM_NAME = /^[\x21-\x7e]{1,128}$/
export const TOKEN_TYPES = ['at+jwt', 'JWT'] as const

const NAMED_TEXTS = { type: 'object', minProperties: 1, additionalProperties: { type: 'string' } }

export const CLAIMS = {
  audience: optional(
    textLike(CLAIM_NAME),
    'Names the audience: client_id (Cognito, whose access tokens have no aud). Default: aud.',
  ),
  subject: optional(
    textLike(CLAIM_NAME),
    'Names the subject. Default: sub. It must be a claim whose value the issuer never gives to another person.',
  ),
  client: optional(
    textLike(CLAIM_NAME),
    'Names the client: azp (Keycloak, Auth0, Entra v2), appid (Entra v1), cid (Okta). Default: client_id; with workloads, the subject.',
  ),
  organization: optional(textLike(CLAIM_NAME), 'Names the organization. Default: none.'),
  groups: optional(
    textLike(CLAIM_NAME),
    'Lists groups. While the token lives, its subject is a member of group:~<subject_prefix>group:<name>.',
  ),
  roles: optional(
    textLike(CLAIM_NAME),
    'Lists roles. While the token lives, its subject is a member of group:~<subject_prefix>role:<name>.',
  ),
} as const satisfies Members

export const EXTERNAL = {
  subject_prefix: required(
    textLike(SUBJECT_PREFIX),
    'Goes before each subject, client and group of the issuer, after a ~: with idp:, the subject alice is user:~idp:alice. No prefix may begin with that of another issuer.',
  ),
  renamed_from: optional(
    TEXT,
    'The former name of the issuer, for the days in which tokens of both names are in use: another entry of issuers, with the same subject_prefix, whose subjects are the same people.',
  ),
  organizations: required(
    listOf(textLike(ID)),
    'The organizations that tokens of the issuer may be bound to. If there is only one and claims.organization is not set, all tokens are bound to it.',
  ),
  organization_values: optional(
    NAMED_TEXTS,
    'Our organization for each value of the organization claim. Default: the value is the organization.',
  ),
  audience: optional(oneOrMore(TEXT), 'The aud claim must contain it, or one of a list. Default: resource.'),
  workloads: optional(
    FLAG,
    'Every token of this issuer for this audience is a credential, also without scope: of ServiceAccounts, SPIFFE, CI systems, service accounts. The audience must not be a client at which people sign in. Default: false: what nothing marks as an access token is refused.',
  ),
  typ: optional(
    oneOf(TOKEN_TYPES),
    'JWT: access tokens whose header has typ JWT, or no typ, are accepted too. ID tokens are refused. Default: at+jwt.',
  ),
  claims: optional(mapOf(CLAIMS), 'Names of claims. A dot leads into an object: realm_access.roles.'),
  required_claims: optional(NAMED_TEXTS, 'Values that these claims of every token must have or contain.'),
} as const satisfies Members

export const INTROSPECTION = {
  endpoint: required(textLike(/^https?:\/\//), 'URL of the introspection endpoint.'),
  client_id: required(TEXT, 'The client that asks. It authenticates with HTTP Basic.'),
  client_secret_file: required(TEXT, 'File with its secret, read for each question.'),
} as const satisfies Members

export const ISSUER = {
  issuer: required(TEXT, 'The iss claim must be equal to it, byte for byte.'),
  jwks_uri: optional(TEXT, 'URL of the key set. Default: the one that the metadata of the issuer names.'),
  algorithms: optional(listOf(oneOf(ALGORITHM_NAMES)), 'Accepted signature algorithms. Default: RS256.'),
  external: optional(
    definition('external'),
    'The issuer is not the PDP: how its tokens are read. The PDP must have the same under this issuer (PUT /v1/trusted-issuers/{issuer}).',
  ),
  introspection: optional(
    mapOf(INTROSPECTION),
    'Asks an external issuer about its tokens, which may be opaque (RFC 7662), instead of using its keys. At most one issuer may have it. An answer counts for 10 seconds; a revoked token can pass for that long.',
  ),
} as const satisfies Members
