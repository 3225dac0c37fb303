/** The parts of the identity service that the HTTP server calls. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Client } from '../../../engine/store/directory.ts'
import type { PublicPages } from '../../../identity/html/public-pages.ts'
import type { TokenState } from '../../../identity/issuer/tokens/token-state.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import type { ProofVerifier } from '../../../shared/token/dpop.ts'

export type IdentityHandler = {
  /** Returns true if it answered the request. */
  handle(req: IncomingMessage, res: ServerResponse, deadlineMs: number): Promise<boolean>
  introspect(token: string): Promise<TokenState>
  recognize(token: string): Promise<TokenState>
  readonly verifyProof: ProofVerifier
  readonly publicPages: PublicPages
  signStatement(claims: JsonObject): Promise<string>
  /** Throws PdpError `request_invalid` for a registration that could never be used. */
  validateClient(client: Client & { readonly secretHash: string | null }): Promise<void>
}
