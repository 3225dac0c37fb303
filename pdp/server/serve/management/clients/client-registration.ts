/** Validates a client registration: the RFC 7591 metadata that this version supports. Reports every issue. */

import {
  CLIENT_AUTH_METHODS,
  CONFIDENTIAL_GRANTS,
  GRANT_TYPES,
  redirectIssue,
} from '../../../../identity/provider/client-metadata.ts'
import type { ValidationIssue } from '../../../../shared/domain/errors.ts'
import { type JsonObject, pointer } from '../../../../shared/domain/json.ts'
import { ID, type JsonSchema, LABEL, object, SECRET, text, whole } from '../../http/schemas.ts'
import { keySetIssues } from './client-keys.ts'

export type ClientBody = {
  readonly app?: string
  readonly organization?: string
  readonly client_secret?: string
  readonly client_name?: string
  readonly scope?: string
  readonly grant_types?: readonly string[]
  readonly token_endpoint_auth_method?: string
  readonly redirect_uris?: readonly string[]
  readonly exchange_clients?: readonly string[]
  readonly post_logout_redirect_uris?: readonly string[]
  readonly jwks?: { readonly keys: readonly JsonObject[] }
  readonly jwks_uri?: string
}

const URI = { type: 'string', maxLength: 2_048 }
const WEB_URI = { ...URI, ...text('^https?://[^\\s]+$', 'an http or https URL') }
const METADATA: { readonly [name: string]: JsonSchema } = {
  client_name: LABEL,
  scope: {
    // The form of scopes (RFC 6749 section 3.3).
    ...text('^[\\x21\\x23-\\x5b\\x5d-\\x7e]+( [\\x21\\x23-\\x5b\\x5d-\\x7e]+)*$', 'scopes with one space between them'),
    maxLength: 4_096,
    description: 'Scopes that the client may request, separated by spaces.',
  },
  grant_types: { type: 'array', maxItems: 10, uniqueItems: true, items: { type: 'string', enum: GRANT_TYPES } },
  token_endpoint_auth_method: { type: 'string', enum: CLIENT_AUTH_METHODS },
  redirect_uris: { type: 'array', maxItems: 50, uniqueItems: true, items: URI },
  post_logout_redirect_uris: { type: 'array', maxItems: 50, uniqueItems: true, items: URI },
  backchannel_logout_uri: {
    ...URI,
    description: 'Gets a logout token when a session ends (OpenID Connect Back-Channel Logout 1.0).',
  },
  backchannel_logout_session_required: {
    type: 'boolean',
    description:
      'ID tokens and logout tokens name the session as sid; else all sessions of the person end. Default: false.',
  },
  exchange_clients: {
    type: 'array',
    maxItems: 50,
    uniqueItems: true,
    items: ID,
    description:
      'Clients whose tokens this client may exchange (RFC 8693), in addition to its own tokens and those for its app. A client of an organization names clients of it, or of one below it, that exist.',
  },
  exchange_resources: {
    type: 'array',
    maxItems: 50,
    uniqueItems: true,
    items: URI,
    description: 'Resources that an exchanged token may be for, in addition to the audience of the original token.',
  },
  jwks: {
    ...whole({ keys: { type: 'array', minItems: 1, maxItems: 20, items: { type: 'object' } } }),
    description: 'Public keys for private_key_jwt.',
  },
  jwks_uri: { ...URI, description: 'In place of jwks: where the keys are published, so that they may change there.' },
  application_type: { type: 'string', enum: ['web', 'native'] },
  contacts: { type: 'array', maxItems: 10, items: LABEL },
  client_uri: WEB_URI,
  logo_uri: WEB_URI,
  policy_uri: WEB_URI,
  tos_uri: WEB_URI,
  default_max_age: { type: 'integer', minimum: 0 },
  require_auth_time: { type: 'boolean' },
  dpop_bound_access_tokens: { type: 'boolean' },
  require_pushed_authorization_requests: { type: 'boolean' },
  require_second_factor: {
    type: 'boolean',
    description: 'A sign-in to it needs a second factor; people without one add it first. Default: false.',
  },
}
export const CLIENT_BODY = object({
  ...METADATA,
  app: { ...ID, description: 'The app whose roles apply to tokens without a resource.' },
  organization: {
    ...ID,
    description: 'The organization that the client belongs to and acts in; absent: the whole environment.',
  },
  client_secret: {
    ...SECRET,
    writeOnly: true,
    description:
      'If absent, a confidential client keeps its secret, or gets a new one, which is returned only in this answer.',
  },
})
export const CLIENT: JsonSchema = object(
  {
    client_id: ID,
    app: { ...ID, type: ['string', 'null'] },
    organization: { ...ID, type: ['string', 'null'] },
    ...METADATA,
    response_types: { type: 'array', items: { type: 'string' }, description: 'Derived from grant_types.' },
    client_secret: { type: 'string', description: 'Only in the answer that creates the secret.' },
  },
  ['client_id', 'app', 'organization'],
)

/** The metadata to store: without secrets and without members that are not metadata. */
export function metadataOf(body: ClientBody): JsonObject {
  const { app: _app, organization: _organization, client_secret: _secret, ...metadata } = body
  return metadata
}

/** True if the client authenticates with private_key_jwt (RFC 7523). */
export const hasKey = (body: { readonly token_endpoint_auth_method?: unknown }): boolean =>
  body.token_endpoint_auth_method === 'private_key_jwt'
export const isPublic = (body: { readonly token_endpoint_auth_method?: unknown }): boolean =>
  body.token_endpoint_auth_method === 'none'

/** Checks that the schema cannot express. */
export function registrationIssues(body: ClientBody): readonly ValidationIssue[] {
  const issues: ValidationIssue[] = []
  const grants = body.grant_types ?? ['authorization_code'] // RFC 7591 section 2
  for (const grant of isPublic(body) ? grants.filter((name) => CONFIDENTIAL_GRANTS.has(name)) : [])
    issues.push({ place: '/grant_types', message: `holds ${grant}, which a client without a secret cannot have` })
  if (isPublic(body) && body.client_secret !== undefined) {
    issues.push({ place: '/client_secret', message: 'is set for a client that does not authenticate' })
  }
  issues.push(...keyIssues(body))
  if (grants.includes('authorization_code') && (body.redirect_uris ?? []).length === 0) {
    issues.push({ place: '/redirect_uris', message: 'is needed for grant type authorization_code' })
  }
  for (const name of ['redirect_uris', 'post_logout_redirect_uris'] as const) {
    for (const [i, uri] of (body[name] ?? []).entries()) {
      const message = redirectIssue(uri)
      if (message !== null) issues.push({ place: pointer('', name, i), message })
    }
  }
  return issues
}

function keyIssues(body: ClientBody): readonly ValidationIssue[] {
  const given = (['jwks', 'jwks_uri'] as const).filter((name) => body[name] !== undefined)
  if (!hasKey(body)) return given.map((name) => ({ place: `/${name}`, message: 'is for private_key_jwt only' }))
  const issues: ValidationIssue[] = []
  if (given.length === 0) issues.push({ place: '/jwks', message: 'or jwks_uri is needed for private_key_jwt' })
  if (given.length === 2) issues.push({ place: '/jwks_uri', message: 'is beside jwks: one of them is enough' })
  if (body.client_secret !== undefined) {
    issues.push({ place: '/client_secret', message: 'is set for a client that authenticates with its key' })
  }
  issues.push(...keySetIssues(body.jwks?.keys ?? []))
  return issues
}
