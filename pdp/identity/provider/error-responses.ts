/** Corrects answers of oidc-provider: hides the reasons of our failures, and uses the error codes of the RFCs. */
import type { EventEmitter } from 'node:events'
import { errors, type Provider } from 'oidc-provider'
import { PdpError } from '../../shared/domain/errors.ts'
import type { Log } from '../../shared/process/log.ts'
import { errorPage, troubleOf } from '../html/error-page.ts'
import { type FrameOf, frameForContext } from '../html/frame.ts'
import { show } from '../html/page.ts'
import { BusyError } from '../limits/attempts.ts'
import { PATHS } from '../oauth/paths.ts'
import { type Context, contextOf } from '../oauth/request.ts'
import { STATUS } from '../oauth/status.ts'

const NOT_STORED: ReadonlySet<string> = new Set([PATHS.introspect, PATHS.revoke])

// Errors for which oidc-provider has other codes than RFC 6749 sections 2.3 and 5.2, RFC 7662 section 2.3 and RFC 9449 section 5.
const CORRECTED: { readonly [reason: string]: { readonly error: string; readonly status?: number } | undefined } = {
  'requested grant type is not allowed for this client': { error: 'unauthorized_client' },
  'no client authentication mechanism provided': { error: 'invalid_client', status: STATUS.unauthenticated },
  'DPoP proof JWT not provided': { error: 'invalid_dpop_proof' },
  'unsupported response_mode requested': { error: 'invalid_request' },
  'DPoP proof JWT Replay detected': { error: 'invalid_dpop_proof' },
}

// The code is replaced, because no RFC defines it and so no client knows it.
const UNKNOWN_MODE = 'error=unsupported_response_mode'
// Fields for oidc-provider's own pages, whose form is sent by a script with an added hash. Our pages have stricter fields.
const PROVIDER_PAGE_HEADERS = {
  'content-security-policy': "default-src 'none'; script-src; frame-ancestors 'none'; base-uri 'none'",
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
}

/** The page for the time when the store is unavailable. */
export const UNAVAILABLE = { trouble: 'unavailable', code: 'temporarily_unavailable' } as const

/** The error text for OAuth clients while the store is unavailable. */
export const DATABASE_AWAY = 'the database of this server does not answer; try again later'

/** Logs the reason of an error but leaves it out of the answer, which tells only whether a later attempt may succeed. */
export function installErrorResponses(
  provider: Provider,
  { log, frameOf }: { readonly log: Log; readonly frameOf: FrameOf },
): void {
  provider.on('server_error', (ctx: Context, error: unknown) => {
    ctx.state.failure = error
    log.error({ event: 'identity_failed', request_id: frameOf(ctx.req).requestId, path: ctx.path, err: error })
  })
  // The client gets a general error; the reason only goes to the log.
  provider.on('grant.error', (ctx: Context, error: unknown) => {
    ctx.state.failure = error
  })
  // The cast is needed, since the types list only oidc-provider's own events.
  const events: EventEmitter = provider
  events.on('error', (error: unknown) => log.error({ event: 'identity_failed', err: error }))
  provider.use(async (ctx, next) => {
    for (const [name, value] of Object.entries(PROVIDER_PAGE_HEADERS)) ctx.set(name, value)
    try {
      await next()
    } catch (err) {
      answerUncaught(contextOf(ctx), err, { log, frameOf })
    }
    if (isBusy(ctx.state.failure)) ctx.set('retry-after', '1')
    if (isUnavailable(ctx.state.failure)) {
      if (isErrorBody(ctx.body)) {
        ctx.status = STATUS.unavailable
        ctx.body = { error: 'temporarily_unavailable', error_description: unavailability(ctx.state.failure) }
      } else if (ctx.status === STATUS.failed) {
        ctx.status = STATUS.unavailable
        show(contextOf(ctx), errorPage(frameForContext(frameOf, contextOf(ctx)), { ...UNAVAILABLE, again: ctx.url }))
      }
    }
    if (isErrorBody(ctx.body)) {
      const corrected = CORRECTED[ctx.body.error_description ?? ''] ?? CORRECTED[detailOf(ctx.state.failure)]
      if (corrected?.status !== undefined) ctx.status = corrected.status
      if (corrected !== undefined) ctx.body = { ...ctx.body, error: corrected.error }
    }
    const location = ctx.response.get('location')
    if (location?.includes(UNKNOWN_MODE)) ctx.set('location', location.replace(UNKNOWN_MODE, 'error=invalid_request'))
    if (NOT_STORED.has(ctx.path)) ctx.set('cache-control', 'no-store')
  })
}

/** Answers an error from outside oidc-provider's own handler, for example when the session of a page cannot be read or stored. */
function answerUncaught(
  ctx: Context,
  error: unknown,
  { log, frameOf }: { readonly log: Log; readonly frameOf: FrameOf },
): void {
  ctx.state.failure = error
  const isTheirs = error instanceof errors.OIDCProviderError && error.statusCode < STATUS.failed
  if (!isTheirs && !isBusy(error))
    log.error({ event: 'identity_failed', request_id: frameOf(ctx.req).requestId, path: ctx.path, err: error })
  ctx.status = isTheirs ? error.statusCode : STATUS.failed
  const answer = isTheirs
    ? { error: error.error, error_description: error.error_description ?? '' }
    : { error: 'server_error', error_description: 'an unexpected error occurred' }
  if (ctx.req.headers.accept === 'application/json') ctx.body = answer
  else {
    const view = { trouble: troubleOf(answer.error), code: answer.error, detail: answer.error_description }
    show(ctx, errorPage(frameForContext(frameOf, ctx), view))
  }
}

const isBusy = (failure: unknown): boolean => failure instanceof BusyError

const unavailability = (failure: unknown): string =>
  isBusy(failure) ? 'this server has too many checks under way; try again later' : DATABASE_AWAY

const isUnavailable = (failure: unknown): boolean =>
  (failure instanceof PdpError && failure.code === 'store_unavailable') || isBusy(failure)

const detailOf = (failure: unknown): string =>
  failure instanceof Error && 'error_detail' in failure && typeof failure.error_detail === 'string'
    ? failure.error_detail
    : ''

function isErrorBody(body: unknown): body is { readonly error: string; readonly error_description?: string } {
  return typeof body === 'object' && body !== null && 'error' in body && typeof body.error === 'string'
}
