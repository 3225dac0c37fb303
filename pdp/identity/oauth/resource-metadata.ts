/** Protected resource metadata (RFC 9728) of the issuer's own APIs: UserInfo, decisions and management. */
import type { ServerResponse } from 'node:http'
import { PROOF_ALGORITHMS } from '../../shared/token/dpop.ts'
import { PUBLIC_CACHE_SECONDS } from './durations.ts'
import { PATHS, urlOf } from './paths.ts'
import { IDENTITY_SCOPES, SERVICE_SCOPES } from './scopes.ts'
import { STATUS } from './status.ts'

export function answerResourceMetadata(issuer: string, res: ServerResponse): void {
  const document = {
    resource: issuer,
    authorization_servers: [issuer],
    jwks_uri: urlOf(issuer, PATHS.jwks),
    scopes_supported: [...IDENTITY_SCOPES, ...SERVICE_SCOPES],
    bearer_methods_supported: ['header', 'body'],
    dpop_signing_alg_values_supported: PROOF_ALGORITHMS,
  }
  res.writeHead(STATUS.shown, {
    'content-type': 'application/json',
    'cache-control': `public, max-age=${PUBLIC_CACHE_SECONDS}`,
    'access-control-allow-origin': '*',
  })
  res.end(JSON.stringify(document))
}
