/** How often a device or a CIBA client may ask whether the person has answered (RFC 8628 section 3.5, CIBA section 7.3). */
import { createHash } from 'node:crypto'
import type { Provider } from 'oidc-provider'
import { BoundedMap } from '../../shared/base/bounded-map.ts'
import { PATHS } from '../oauth/paths.ts'
import { paramsOf } from '../oauth/request.ts'

/** The interval, in seconds, that clients are told when their wait starts. */
export const INTERVAL_SECONDS = 5
// Due to the network, a client that waits the interval may seem faster by this much.
const TOLERANCE_MS = 500
const KEYS_MAX = 50_000

/** Counts per process, so that with several nodes a fast client is told less often. */
export function installPolling(provider: Provider, clock: () => number): void {
  const polls = new BoundedMap<string, { atMs: number; intervalMs: number }>(KEYS_MAX)

  /** RFC 8628 section 3.5: each time that a client is too fast, it has to wait five seconds longer from then on. */
  function isTooFast(key: string): boolean {
    const last = polls.get(key)
    const interval = last?.intervalMs ?? INTERVAL_SECONDS * 1_000
    const tooFast = last !== undefined && clock() - last.atMs < interval - TOLERANCE_MS
    polls.set(key, { atMs: clock(), intervalMs: interval + (tooFast ? INTERVAL_SECONDS * 1_000 : 0) })
    return tooFast
  }

  provider.use(async (ctx, next) => {
    await next()
    const { body } = ctx
    if (typeof body !== 'object' || body === null) return
    if (ctx.path === PATHS.token && 'error' in body && body.error === 'authorization_pending') {
      const { device_code: device, auth_req_id: request } = paramsOf(ctx.oidc)
      const key = createHash('sha256')
        .update(`${device ?? ''} ${request ?? ''}`)
        .digest('base64url')
      if (isTooFast(key)) ctx.body = { error: 'slow_down', error_description: 'wait longer between two requests' }
    }
    const starts = ctx.path === PATHS.deviceAuthorization || ctx.path === PATHS.backchannel
    if (starts && 'expires_in' in body) ctx.body = { ...body, interval: INTERVAL_SECONDS }
  })
}
