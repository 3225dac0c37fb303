/** DPoP proofs at oidc-provider's endpoints: what a proof costs us is bounded before oidc-provider verifies it. */
import type { Provider } from 'oidc-provider'
import { readProof } from '../../token/dpop.ts'
import { TokenError } from '../../token/errors.ts'
import { STATUS } from '../oauth/status.ts'

/** oidc-provider verifies a signature by whatever key the proof brings, before it looks at anything else. */
export function installProofCheck(provider: Provider): void {
  provider.use(async (ctx, next) => {
    const proofs = ctx.req.headersDistinct.dpop
    if (proofs === undefined) return next()
    try {
      readProof(proofs)
    } catch (err) {
      if (!(err instanceof TokenError)) throw err
      ctx.status = STATUS.invalid
      ctx.set('cache-control', 'no-store')
      ctx.body = { error: 'invalid_dpop_proof', error_description: err.message }
      return
    }
    await next()
  })
}
