/** What is known of a token that is active, unless a test says otherwise. */
import type { TokenState } from '../../../../pdp/identity/issuer/tokens/token-state.ts'

export const ACTIVE: Extract<TokenState, { active: true }> = {
  active: true,
  subject: { type: 'user', id: 'alice' },
  organization: 'acme',
  clientId: 'web',
  app: null,
  revocationKeys: [],
  actors: [],
  scopes: new Set(['openid']),
  audiences: ['https://api.example.test'],
  jkt: null,
  jti: 'jti',
  grantId: 'grant',
  issuedAtMs: 1_000,
  expiresAtMs: 4_102_444_800_000,
  acr: null,
  authTime: null,
}
