/** The part of the route file's format that is about signing browsers in. */
import { PAGES } from './words/pages.ts'
import { count, listOf, type Members, mapOf, optional, required, TEXT, textLike } from './words/schema.ts'

export const PROVIDER_NAME = /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/
/** Parameters of the authorization request that the sidecar sets itself. */
export const OWN_PARAMETERS = [
  'response_type',
  'response_mode',
  'client_id',
  'redirect_uri',
  'scope',
  'state',
  'nonce',
  'code_challenge',
  'code_challenge_method',
  'request',
  'request_uri',
  'acr_values',
  'max_age',
] as const
export const SESSION_SECONDS = { min: 60, max: 2_592_000, default: 43_200 }
export const IDLE_SECONDS = { min: 60, max: 2_592_000, default: 3_600 }
export const PROVIDERS_MAX = 16

export const PROVIDER = {
  issuer: required(TEXT, 'One of issuers, which must describe itself at /.well-known/openid-configuration.'),
  client_id: required(TEXT, 'The client that the sidecar is at this issuer.'),
  client_secret_file: optional(TEXT, 'File with its secret. Default: a public client.'),
  client_key_file: optional(
    TEXT,
    'File with its private key, in place of a secret (private_key_jwt, RFC 7523): a JWK with alg and kid, whose public part the issuer has.',
  ),
  name: optional(
    textLike(PROVIDER_NAME),
    'Ends the path of the callback: /.portcullis/callback/<name>. Required when there are several providers.',
  ),
  label: optional(TEXT, 'What the page that offers several providers calls it. Default: the host of the issuer.'),
  scope: optional(TEXT, 'Scopes to ask for; openid is one of them. Default: openid.'),
  parameters: optional(
    { type: 'object', minProperties: 1, additionalProperties: { type: 'string' } },
    'Further parameters of the authorization request, such as audience for Auth0 or organization for our own issuer.',
  ),
} as const satisfies Members

export const SIGN_IN = {
  keys_file: required(
    TEXT,
    'File with the keys that seal sessions, one a line, each of at least 32 characters: the first one seals, all of them open. All replicas need the same.',
  ),
  providers: required(listOf(mapOf(PROVIDER)), 'Where people sign in. With several, a page lets them choose.'),
  session_max: optional(
    count(SESSION_SECONDS, { default: SESSION_SECONDS.default }),
    'Seconds after which a session ends.',
  ),
  idle_max: optional(
    count(IDLE_SECONDS, { default: IDLE_SECONDS.default }),
    'Seconds without a request after which a session ends.',
  ),
  pages: optional(
    mapOf(PAGES),
    'How the pages of the sidecar look, and whom they name to ask: ask, and the members of PORTCULLIS_BRANDING of the PDP. Their language is that of the reader.',
  ),
} as const satisfies Members
