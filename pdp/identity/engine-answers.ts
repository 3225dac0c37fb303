/** What the engine answers, corrected: failures without their reason, and the error codes that the RFCs name otherwise. */
import type { Context, Provider } from 'oidc-provider'
import { PdpError } from '../errors.ts'
import type { Log } from '../process/log.ts'
import { errorPage } from './pages.ts'
import { PATHS } from './paths.ts'
import { STATUS } from './status.ts'

/** How long others may hold our key set and metadata; a new key is published for longer before it signs. */
export const PUBLIC_CACHE_SECONDS = 300
const CACHED_PATHS: ReadonlySet<string> = new Set([PATHS.jwks, PATHS.openidConfiguration, PATHS.serverMetadata])
const NOT_STORED: ReadonlySet<string> = new Set([PATHS.introspect, PATHS.revoke])

// RFC 6749 section 5.2 and 2.3, RFC 7662 section 2.3, RFC 9449 section 5 name these otherwise than the engine does.
const CORRECTED: { readonly [reason: string]: { readonly error: string; readonly status?: number } | undefined } = {
  'requested grant type is not allowed for this client': { error: 'unauthorized_client' },
  'no client authentication mechanism provided': { error: 'invalid_client', status: STATUS.unauthenticated },
  'DPoP proof JWT not provided': { error: 'invalid_dpop_proof' },
  'DPoP proof JWT Replay detected': { error: 'invalid_dpop_proof' },
}

/** What a person is told while the store is away. */
export const UNAVAILABLE = { code: 'temporarily_unavailable', detail: 'The service cannot answer right now.' }

/** What failed is logged, and said without its reason; what may succeed later is said to be so. */
export function answerFailures(provider: Provider, log: Log): void {
  provider.on('server_error', (ctx: Context, error: unknown) => {
    ctx.state.failure = error
    log.error({ event: 'identity_failed', path: ctx.path, err: error })
  })
  // What a client is told is general; the reason stays here.
  provider.on('grant.error', (ctx: Context, error: unknown) => {
    ctx.state.failure = error
  })
  provider.on('error', (error: unknown) => log.error({ event: 'identity_failed', err: error }))
  provider.use(async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      // Thrown before the engine's own handler, as when the session of a page cannot be read.
      if (!isUnavailable(error)) throw error
      ctx.state.failure = error
      ctx.status = STATUS.failed
      log.error({ event: 'identity_failed', path: ctx.path, err: error })
    }
    if (isUnavailable(ctx.state.failure)) {
      if (isErrorBody(ctx.body)) {
        ctx.status = STATUS.unavailable
        ctx.body = { error: 'temporarily_unavailable', error_description: 'try again later' }
      } else if (ctx.status === STATUS.failed) {
        const page = errorPage(UNAVAILABLE)
        ctx.status = STATUS.unavailable
        for (const [name, value] of Object.entries(page.headers)) ctx.set(name, value)
        ctx.body = page.html
      }
    }
    if (isErrorBody(ctx.body)) {
      const corrected = CORRECTED[ctx.body.error_description ?? ''] ?? CORRECTED[detailOf(ctx.state.failure)]
      if (corrected?.status !== undefined) ctx.status = corrected.status
      if (corrected !== undefined) ctx.body = { ...ctx.body, error: corrected.error }
    }
    if (CACHED_PATHS.has(ctx.path) && ctx.status === STATUS.shown) {
      ctx.set('cache-control', `public, max-age=${PUBLIC_CACHE_SECONDS}`)
    }
    if (NOT_STORED.has(ctx.path)) ctx.set('cache-control', 'no-store')
  })
}

const isUnavailable = (failure: unknown): boolean =>
  (failure instanceof PdpError && failure.code === 'store_unavailable') ||
  (failure instanceof Error && failure.name === 'BusyError')

const detailOf = (failure: unknown): string =>
  failure instanceof Error && 'error_detail' in failure && typeof failure.error_detail === 'string'
    ? failure.error_detail
    : ''

function isErrorBody(body: unknown): body is { readonly error: string; readonly error_description?: string } {
  return typeof body === 'object' && body !== null && 'error' in body && typeof body.error === 'string'
}
