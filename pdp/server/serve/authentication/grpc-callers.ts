/** Authenticates gRPC callers by a client certificate, a service's token, or the token of a service account that the operator listed. */
import type { Metadata, ServerDuplexStream, ServerUnaryCall } from '@grpc/grpc-js'
import type { TokenState } from '../../../identity/issuer/tokens/token-state.ts'
import { tenantOf } from '../../../shared/domain/names.ts'
import { parseAuthorization } from '../../../shared/token/authorization.ts'
import { TokenError } from '../../../shared/token/errors.ts'
import { RequestProblem } from '../http/status.ts'
import type { VerifyServiceAccount } from './service-account.ts'

const SCOPE = 'decisions:ask'

/** A caller with a unique `name`. Callers of a `group` share its limits; null: the operator's caller, which shares with no other. */
export type GrpcCaller = { readonly name: string; readonly group: string | null }
/** Throws RequestProblem `token_missing`, `token_invalid`, `scope_insufficient` or `permission_denied`, and PdpError. */
export type AuthenticateCaller = (
  call: Pick<ServerUnaryCall<unknown, unknown> | ServerDuplexStream<unknown, unknown>, 'metadata' | 'getAuthContext'>,
) => Promise<GrpcCaller>

export function createCallers(deps: {
  readonly introspect: (token: string) => Promise<TokenState>
  readonly issuer: string
  readonly serviceAccounts: VerifyServiceAccount | null
}): AuthenticateCaller {
  return async (call) => {
    // grpc-js reports a certificate only if it was verified against the configured CA.
    const certificate = call.getAuthContext()?.sslPeerCertificate
    if (certificate !== undefined) return operators(`certificate ${certificate.fingerprint256}`)
    const token = bearerOf(call.metadata)
    const account = deps.serviceAccounts === null ? null : await serviceAccountOf(deps.serviceAccounts, token)
    if (account !== null) return operators(`service account ${account}`)
    const state = await deps.introspect(token)
    if (!state.active) throw new RequestProblem('token_invalid', 'the caller’s token is not active')
    if (!state.audiences.includes(deps.issuer))
      throw new RequestProblem('token_invalid', 'the caller’s token is meant for another audience')
    // RFC 9449 defines no proof for gRPC: a proof names an HTTP method and URL, which a stream does not have.
    if (state.jkt !== null) {
      throw new RequestProblem('token_invalid', 'a token that is bound to a key (DPoP) cannot be used over gRPC')
    }
    if (state.subject.type !== 'service') throw new RequestProblem('permission_denied', 'only a service may call')
    if (!state.scopes.has(SCOPE)) throw new RequestProblem('scope_insufficient', `this needs the scope ${SCOPE}`)
    const { organization, clientId } = state
    return { name: `client ${clientId}`, group: organization === null ? null : tenantGroup(tenantOf(organization)) }
  }
}

export const tenantGroup = (tenant: string): string => `tenant ${tenant}`

const operators = (name: string): GrpcCaller => ({ name, group: null })

function bearerOf(metadata: Metadata): string {
  try {
    const { scheme, token } = parseAuthorization(metadata.get('authorization').map(String))
    if (scheme === 'bearer') return token
  } catch (err) {
    if (!(err instanceof TokenError)) throw err
  }
  throw new RequestProblem(
    'token_missing',
    'call with a client certificate, or with authorization: Bearer and one token',
  )
}

async function serviceAccountOf(verify: VerifyServiceAccount, token: string): Promise<string | null> {
  try {
    return await verify(token)
  } catch (err) {
    // Not refused yet: introspection decides whether this is a token of our own issuer.
    if (err instanceof TokenError) return null
    throw err
  }
}
