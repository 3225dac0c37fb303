/** Bounds the records that a client can make before any sign-in: sign-ins, device codes, pushed and backchannel requests. */
import type { Provider } from 'oidc-provider'
import { errorPage } from '../html/error-page.ts'
import { type FrameOf, frameForContext } from '../html/frame.ts'
import { show } from '../html/page.ts'
import { PATHS } from '../oauth/paths.ts'
import { type Context, contextOf } from '../oauth/request.ts'
import { STATUS } from '../oauth/status.ts'
import type { ClientOf } from './limit-address.ts'
import { STARTS_WINDOW_MS, type Starts } from './starts.ts'

/** Paths whose requests store a record: the request itself, or the session of its page. */
const STARTING: ReadonlySet<string> = new Set([
  `GET ${PATHS.authorize}`,
  `GET ${PATHS.device}`,
  `GET ${PATHS.logout}`,
  `POST ${PATHS.pushed}`,
  `POST ${PATHS.deviceAuthorization}`,
  `POST ${PATHS.backchannel}`,
])
const DETAIL = 'There were too many requests. Try again in a minute.'

export function installStartLimits(
  provider: Provider,
  deps: { readonly starts: Starts; readonly clientOf: ClientOf; readonly frameOf: FrameOf },
): void {
  const { starts, clientOf, frameOf } = deps
  provider.use(async (koa, next) => {
    const ctx = contextOf(koa)
    if (!STARTING.has(`${ctx.method} ${ctx.path}`)) return next()
    const who = { address: clientOf(ctx.req), person: await personOf(provider, ctx) }
    if (!starts.take(who)) return refuse(ctx, frameOf)
    await next()
    if (ctx.status >= STATUS.invalid) starts.giveBack(who)
    else if (isAuthenticatedClient(ctx)) starts.isServer(who)
  })
}

/** The signed-in person. The database is read only for a session cookie with our signature, which oidc-provider verifies first. */
async function personOf(provider: Provider, ctx: Context): Promise<string | null> {
  const isKnown = ctx.req.headers.cookie?.includes(`${provider.cookieName('session')}=`) === true
  if (ctx.method !== 'GET' || !isKnown) return null
  const session = await provider.Session.get(provider.createContext(ctx.req, ctx.res))
  return session.accountId ?? null
}

function isAuthenticatedClient(ctx: Context): boolean {
  const client = ctx.oidc?.client
  return ctx.method === 'POST' && client !== undefined && client.clientAuthMethod !== 'none'
}

function refuse(ctx: Context, frameOf: FrameOf): void {
  ctx.status = STATUS.tooMany
  ctx.set('retry-after', String(STARTS_WINDOW_MS / 1_000))
  ctx.set('cache-control', 'no-store')
  if (ctx.method === 'POST') {
    ctx.body = { error: 'temporarily_unavailable', error_description: DETAIL }
    return
  }
  show(ctx, errorPage(frameForContext(frameOf, ctx), { trouble: 'tooMany', code: 'temporarily_unavailable' }))
}
