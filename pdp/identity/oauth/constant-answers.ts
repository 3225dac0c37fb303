/** Makes the key set and the metadata once for a provider: they are the same for everybody until the signing keys change. */
import type { Provider } from 'oidc-provider'
import { type ConstantAnswer, constantAnswer, isKnown } from '../../shared/process/http/constant-answer.ts'
import { PUBLIC_CACHE_SECONDS } from './durations.ts'
import { PATHS } from './paths.ts'
import { STATUS } from './status.ts'

const CONSTANT: ReadonlySet<string> = new Set([PATHS.jwks, PATHS.openidConfiguration, PATHS.serverMetadata])

export function installConstantAnswers(provider: Provider): void {
  const made = new Map<string, { readonly type: string; readonly answer: ConstantAnswer }>()
  provider.use(async (ctx, next) => {
    if (!CONSTANT.has(ctx.path) || (ctx.method !== 'GET' && ctx.method !== 'HEAD')) return next()
    let found = made.get(ctx.path)
    if (found === undefined) {
      await next()
      if (ctx.status !== STATUS.shown || typeof ctx.body !== 'object' || ctx.body === null) return
      found = { type: ctx.response.get('content-type'), answer: constantAnswer(ctx.body) }
      made.set(ctx.path, found)
    }
    // Removes what belongs only to the first request, since the answer's fields are kept for later ones.
    ctx.remove('vary')
    ctx.set({
      'content-type': found.type,
      'cache-control': `public, max-age=${PUBLIC_CACHE_SECONDS}`,
      'access-control-allow-origin': '*',
      etag: found.answer.tag,
    })
    if (isKnown(found.answer, ctx.get('if-none-match'))) ctx.status = STATUS.unmodified
    else ctx.body = found.answer.bytes
  })
}
