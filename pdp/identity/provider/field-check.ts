/**
 * Bounds what a request at oidc-provider's endpoints costs us, before it is read: one Authorization field, few parameters in the
 * query, and a DPoP proof that is worth its signature.
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
/** Koa looks for each parameter among all of them; requests have a dozen. */
const PARAMETERS_MAX = 100
const TOO_MANY: OAuthError = {
  error: 'invalid_request',
  error_description: `the query has more than ${PARAMETERS_MAX} parameters`,
}
type OAuthError = { readonly error: string; readonly error_description: string }

/** oidc-provider verifies a signature by whatever key the proof brings, before it looks at anything else. */
export function installFieldCheck(provider: Provider): void {
  provider.use(async (ctx, next) => {
    const { authorization = [], dpop: proofs } = ctx.req.headersDistinct
    const isLong = ctx.querystring.split('&', PARAMETERS_MAX + 1).length > PARAMETERS_MAX
    const refusal = isLong ? TOO_MANY : authorization.length > 1 ? AUTHORIZED_TWICE : refusalOf(proofs)
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
