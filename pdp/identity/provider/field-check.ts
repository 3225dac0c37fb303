/**
 * Bounds what requests to oidc-provider cost before they are read: a single Authorization field, few query parameters, and a DPoP proof
 * that is worth verifying.
 */
import type { Provider } from 'oidc-provider'
import { readProof } from '../../shared/token/dpop.ts'
import { TokenError } from '../../shared/token/errors.ts'
import { STATUS } from '../oauth/status.ts'

/** RFC 6749 section 2.3: a request has one method of authentication. Node.js silently drops a second Authorization field. */
const AUTHORIZED_TWICE: OAuthError = {
  error: 'invalid_request',
  error_description: 'the request has more than one Authorization field',
}
/** The most parameters of a query: Koa searches all of them for each one. Ordinary requests have a dozen. */
const PARAMETERS_MAX = 100
const TOO_MANY: OAuthError = {
  error: 'invalid_request',
  error_description: `the query has more than ${PARAMETERS_MAX} parameters`,
}
type OAuthError = { readonly error: string; readonly error_description: string }

/** Refuses costly requests first: oidc-provider would verify a proof's signature, with the key in it, before anything else. */
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

/** The error for an unusable proof; null: oidc-provider may read it. */
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
