/** The transmitter of security events (SSF) in a trusted issuer's registration, and the state of its stream. */
import type { ValidationIssue } from '../../../../shared/domain/errors.ts'
import type { SignalsDocument } from '../../../../signals/receiver/registration.ts'
import { ID, type JsonSchema, object, SECRET, text, whole } from '../../http/schemas.ts'

const URL_TEXT = { type: 'string', minLength: 1, maxLength: 2_048 }
const NAME = text('^[\\x20-\\x7e]{1,256}$', '1 to 256 ASCII characters')

export const SIGNALS: JsonSchema = {
  ...object(
    {
      issuer: { ...URL_TEXT, description: '`iss` of its security events. Default: the issuer of the tokens.' },
      metadata_uri: {
        ...URL_TEXT,
        description: 'Its metadata. Default: `/.well-known/ssf-configuration` of `issuer`, with the path behind it.',
      },
      delivery: {
        type: 'string',
        enum: ['push', 'poll'],
        description:
          '`push`: it sends to a URL of ours (RFC 8935). `poll`: it is asked, and needs no way to us (RFC 8936).',
      },
      authorization: {
        ...object({
          token: SECRET,
          token_endpoint: URL_TEXT,
          client_id: NAME,
          client_secret: SECRET,
          scope: text(
            '^[\\x21\\x23-\\x5b\\x5d-\\x7e]+( [\\x21\\x23-\\x5b\\x5d-\\x7e]+)*$',
            'scopes with a space between them',
          ),
          resource: URL_TEXT,
        }),
        description:
          'For its API: a bearer token as `token`, or `token_endpoint`, `client_id` and `client_secret` of a client that gets tokens by client_credentials (with `scope`, by default `ssf.manage`, and for `resource`). The secret is stored encrypted and never shown; left out, the stored one stays while the transmitter and the client do.',
      },
      audience: { ...URL_TEXT, description: '`aud` of its security events. Default: what it gives the stream.' },
      events: {
        type: 'array',
        minItems: 1,
        maxItems: 64,
        uniqueItems: true,
        items: URL_TEXT,
        description:
          'URIs of the events that it is asked for. Default: all that end tokens: session-revoked and credential-change of CAEP; account-disabled, account-purged, sessions-revoked and credential-compromise of RISC.',
      },
      on_silence: {
        type: 'string',
        enum: ['accept', 'refuse'],
        description:
          'While the transmitter shows no sign of life: `accept` takes tokens as before, and metrics and readiness tell; `refuse` answers 503 to each token of the issuer. Default: `accept`.',
      },
    },
    ['delivery', 'authorization'],
  ),
  description:
    'The SSF transmitter of the issuer: what it says about ended sessions, credentials and accounts ends tokens at once. Tokens that were issued more than 24 hours ago are then refused.',
}

const INSTANT: JsonSchema = { type: ['string', 'null'], format: 'date-time' }
export const STREAM_STATE: JsonSchema = whole({
  issuer: ID,
  delivery: { type: 'string', enum: ['push', 'poll'] },
  stream_id: { type: ['string', 'null'], description: 'Null: the transmitter has not made it yet.' },
  status: { type: 'string', enum: ['enabled', 'paused', 'disabled'] },
  silent: { type: 'boolean', description: 'It missed three signs of life.' },
  made_at: { type: 'string', format: 'date-time' },
  received_at: { ...INSTANT, description: 'When the latest event came.' },
  heard_at: { ...INSTANT, description: 'When the latest sign of life came.' },
  error: { type: ['string', 'null'], description: 'What went wrong latest; null: it works.' },
  failed_at: INSTANT,
})

/** Issues that a schema cannot express. */
export function signalsIssues(ssf: SignalsDocument): readonly ValidationIssue[] {
  const { issuer, metadata_uri: metadata, authorization } = ssf
  const { token, token_endpoint: endpoint, client_id: client, client_secret: secret, scope, resource } = authorization
  const issues: ValidationIssue[] = []
  for (const [place, url] of [
    ['/ssf/issuer', issuer],
    ['/ssf/metadata_uri', metadata],
    ['/ssf/authorization/token_endpoint', endpoint],
  ] as const)
    if (url !== undefined && !isWebUrl(url))
      issues.push({ place, message: `${place.slice(5)} must be an http or https URL without a user or a fragment` })
  if (endpoint !== undefined && client === undefined)
    issues.push({ place: '/ssf/authorization/client_id', message: 'token_endpoint needs client_id' })
  if (endpoint !== undefined && token !== undefined)
    issues.push({ place: '/ssf/authorization/token', message: 'either token or token_endpoint is needed, not both' })
  if (endpoint === undefined && [client, secret, scope, resource].some((given) => given !== undefined))
    issues.push({
      place: '/ssf/authorization/token_endpoint',
      message: 'client_id, client_secret, scope and resource need token_endpoint',
    })
  return issues
}

function isWebUrl(text: string): boolean {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '' || url.hash !== '') return false
  return url.protocol === 'https:' || url.protocol === 'http:'
}
