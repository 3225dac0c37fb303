/**
 * Fields of a request at oidc-provider's endpoints, before it reads them: one Authorization field, and a bound on what a DPoP proof
 * costs us.
 */
import type { Provider } from 'oidc-provider'
import { readProof } from '../../shared/token/dpop.ts'
import { TokenError } from '../../shared/token/errors.ts'
import { STATUS } from '../oauth/status.ts'

/** RFC 6749 section 2.3: one method of authentication in each request. Node drops a second field without a word. */
const AUTHORIZED_TWICE: OAuthError = {
  error: 'invalid_request',
  error_description: 'the request has more than one Authorization field',
}
type OAuthError = { readonly error: string; readonly error_description: string }

/** oidc-provider verifies a signature by whatever key the proof brings, before it looks at anything else. */
export function installFieldCheck(provider: Provider): void {
  provider.use(async (ctx, next) => {
    const { authorization = [], dpop: proofs } = ctx.req.headersDistinct
    const refusal = authorization.length > 1 ? AUTHORIZED_TWICE : refusalOf(proofs)
    if (refusal === null) return next()
    ctx.status = STATUS.invalid
    ctx.set('cache-control', 'no-store')
    ctx.body = refusal
  })
}

/** Null: oidc-provider may look at it. */
function refusalOf(proofs: readonly string[] | undefined): OAuthError | null {
  if (proofs === undefined) return null
  try {
    readProof(proofs)
    return null
  } catch (err) {
    if (!(err instanceof TokenError)) throw err
    return { error: 'invalid_dpop_proof', error_description: err.message }
  }
}
