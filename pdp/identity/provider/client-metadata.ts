/** Converts OAuth clients of the directory to oidc-provider's form: supported metadata of RFC 7591, and members of our own. */
import type { ClientMetadata, JWKS } from 'oidc-provider'
import type { Client } from '../../engine/store/directory.ts'
import type { JsonObject, JsonValue } from '../../shared/domain/json.ts'
import { isLoopback, urlHost } from '../../shared/process/listen.ts'
import { isOpenidScope, isPlatformScope, splitScope } from '../oauth/scopes.ts'

export const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'
export const CIBA = 'urn:openid:params:grant-type:ciba'
export const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
/** Grants that this version has; a registration may name others, which then cannot be used. */
export const GRANT_TYPES = [
  'authorization_code',
  'refresh_token',
  'client_credentials',
  DEVICE_CODE,
  CIBA,
  TOKEN_EXCHANGE,
  JWT_BEARER,
] as const
// Grants for authenticated clients only: RFC 6749 section 4.4, CIBA section 4, RFC 8693 section 5; for RFC 7523 it is our own demand.
export const CONFIDENTIAL_GRANTS: ReadonlySet<string> = new Set([
  'client_credentials',
  CIBA,
  TOKEN_EXCHANGE,
  JWT_BEARER,
])
export const CLIENT_AUTH_METHODS = ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'] as const
/** Algorithms of client assertions and of DPoP proofs at oidc-provider's endpoints. */
export const CLIENT_SIGNING_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA', 'Ed25519'] as const
/** Our own members of oidc-provider's client. */
export const OWN_MEMBERS = [
  'portcullis_app',
  'portcullis_document',
  'portcullis_organization',
  'portcullis_scope',
  'portcullis_second_factor',
  'portcullis_token_epoch',
  'portcullis_exchange_clients',
  'portcullis_exchange_resources',
] as const

// Anything that would make oidc-provider fetch a URL (sector_identifier_uri) is not passed on; client-keys.ts fetches a jwks_uri.
const PASSED_ON = [
  'application_type',
  'backchannel_logout_session_required',
  'backchannel_logout_uri',
  'client_name',
  'client_uri',
  'contacts',
  'default_max_age',
  'dpop_bound_access_tokens',
  'jwks',
  'logo_uri',
  'policy_uri',
  'post_logout_redirect_uris',
  'redirect_uris',
  'require_auth_time',
  'require_pushed_authorization_requests',
  'token_endpoint_auth_method',
  'tos_uri',
] as const

/** Our member in the metadata of a client with a document: when the document was read, in seconds since the epoch. */
export const READ_AT = 'document_read_at'
export const isFromDocument = (metadata: JsonObject): boolean => metadata[READ_AT] !== undefined

/** The URL of the client's keys; null: it is missing or not used. */
export const jwksUriOf = ({ token_endpoint_auth_method: method, jwks_uri: uri }: JsonObject): string | null =>
  method === 'private_key_jwt' && typeof uri === 'string' ? uri : null

/**
 * The client for oidc-provider. It has the stored hash as its secret, and our Client.compareClientSecret compares with that. `jwks`: the
 * keys at the client's jwks_uri.
 */
export function providerMetadata(
  client: Client & { readonly secretHash: string | null; readonly tokenEpoch?: number },
  jwks: JWKS = { keys: [] },
): ClientMetadata {
  const { metadata } = client
  const metadataScope = typeof metadata.scope === 'string' ? metadata.scope : ''
  const platformScope = splitScope(metadataScope)
    .filter((s) => isPlatformScope(s) || isOpenidScope(s))
    .join(' ')
  const isPublic = metadata.token_endpoint_auth_method === 'none'
  const hasSecret = !isPublic && metadata.token_endpoint_auth_method !== 'private_key_jwt'
  const grantTypes = grantTypesOf(metadata.grant_types, isPublic)
  return {
    redirect_uris: [],
    ...Object.fromEntries(PASSED_ON.flatMap((name) => (metadata[name] === undefined ? [] : [[name, metadata[name]]]))),
    ...(jwksUriOf(metadata) !== null && { jwks }),
    client_id: client.id,
    grant_types: grantTypes,
    response_types: grantTypes.includes('authorization_code') ? ['code'] : [],
    ...(grantTypes.includes(CIBA) ? { backchannel_token_delivery_mode: 'poll' } : {}),
    ...(hasSecret && client.secretHash !== null ? { client_secret: client.secretHash } : {}),
    ...(platformScope === '' ? {} : { scope: platformScope }),
    portcullis_app: client.app,
    portcullis_document: isFromDocument(metadata),
    portcullis_organization: client.organization,
    portcullis_scope: metadataScope,
    portcullis_token_epoch: client.tokenEpoch ?? 0,
    portcullis_second_factor: metadata.require_second_factor === true,
    portcullis_exchange_clients: metadata.exchange_clients ?? [],
    portcullis_exchange_resources: metadata.exchange_resources ?? [],
  }
}

function grantTypesOf(registered: JsonValue | undefined, isPublic: boolean): readonly string[] {
  const asked = Array.isArray(registered) ? registered : ['authorization_code'] // RFC 7591 section 2
  return GRANT_TYPES.filter((name) => asked.includes(name) && !(isPublic && CONFIDENTIAL_GRANTS.has(name)))
}

/** The reason to refuse a redirect URI; null for https, loopback http and a reversed domain name (RFC 6749 3.1.2, RFC 8252 section 7). */
export function redirectIssue(uri: string): string | null {
  const url = URL.parse(uri)
  if (url === null || /[^\x21-\x7e]/.test(uri)) return 'is not an absolute URI'
  if (uri.includes('#')) return 'has a fragment'
  if (url.username !== '' || url.password !== '') return 'has a user name'
  if (url.protocol === 'https:') return null
  if (url.protocol === 'http:') {
    return isLoopback(urlHost(url)) ? null : 'uses http for a host that is not loopback'
  }
  return url.protocol.includes('.') ? null : 'has a scheme that is neither https nor a reversed domain name'
}
