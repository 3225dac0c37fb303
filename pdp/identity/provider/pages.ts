/** The pages that oidc-provider leaves to us: errors, the device page and sign-out. */
import { type Client, type Configuration, type ErrorOut, errors, type Provider, type Session } from 'oidc-provider'
import { confirm as confirmed } from 'oidc-provider/lib/actions/end_session.js'
import type { Directory } from '../../engine/store/directory.ts'
import { createAttempts } from '../../shared/base/attempts.ts'
import { unescapeHtml } from '../../shared/base/html.ts'
import { errorPage, type Trouble, troubleOf } from '../html/error-page.ts'
import { type Frame, type FrameOf, frameForContext, nameOf } from '../html/frame.ts'
import { type Page, show } from '../html/page.ts'
import type { ClientOf } from '../limits/limit-address.ts'
import { PATHS, urlOf } from '../oauth/paths.ts'
import { type Context, contextOf, type Params, paramsOf, requireSession, xsrfOf } from '../oauth/request.ts'
import { splitScope } from '../oauth/scopes.ts'
import { STATUS } from '../oauth/status.ts'
import {
  type CodeProblem,
  deviceCodePage,
  deviceConfirmPage,
  deviceDonePage,
  formPostPage,
  handOverPage,
  logoutPage,
  signedOutPage,
} from './device-pages.ts'

// The limit of wrong device codes: at this rate, guessing is hopeless among 20^8 codes (RFC 8628 section 5.1).
const WRONG_CODES = { triesMax: 100, windowMs: 60_000, keysMax: 10_000 }
// Marks oidc-provider's form with a script that sends it: at a sign-out without a session, and when another person signs in.
const SELF_SENDING = '<title>Submitting Callback</title>'
// Parts of that form. No value holds a quotation mark or an angle bracket.
const ITS_ACTION = /<form method="post" action="([^"]*)">/
const ITS_FIELDS = /<input type="hidden" name="([^"]*)" value="([^"]*)"\/>/g

/**
 * True if the person need not confirm a sign-out: the ID token of this session shows that the application asks for it (OpenID Connect
 * RP-Initiated Logout section 2). oidc-provider has verified the token.
 */
function isHintOfSession({ oidc }: Context): boolean {
  const { IdTokenHint: hint, Client: client } = oidc.entities
  const session = requireSession(oidc)
  if (hint === undefined || client === undefined || session.accountId === undefined) return false
  const { sub, sid } = hint.payload
  return sub === session.accountId && (sid === undefined || sid === session.sidFor(client.clientId))
}

const xsrfIn = ({ oidc }: Context): string => xsrfOf(requireSession(oidc))

/** Ends the session as the form of the sign-out page does. */
async function endSession(ctx: Context): Promise<void> {
  Object.assign(paramsOf(ctx.oidc), { logout: 'yes' })
  await confirmed.at(-1)?.(ctx)
}

export type ProviderPages = {
  readonly features: Pick<NonNullable<Configuration['features']>, 'deviceFlow' | 'rpInitiatedLogout'>
  readonly renderError: (ctx: Context, out: ErrorOut, error: Error) => void
  /** Limits how many user codes a guesser can try. */
  install(provider: Provider): void
}

type PagesDeps = {
  readonly issuer: string
  readonly clientOf: ClientOf
  readonly frameOf: FrameOf
  readonly directory: Pick<Directory, 'activeMemberships'>
  readonly clock: () => number
}

export function createProviderPages(deps: PagesDeps): ProviderPages {
  const { frameOf } = deps
  const device = createDevicePages(deps)
  const logout = createLogoutPages(deps)
  return {
    features: { deviceFlow: device.feature, rpInitiatedLogout: logout.feature },
    renderError(ctx, { error: code, error_description: detail = '' }, error) {
      const usual = error instanceof errors.SessionNotFound ? 'expired' : troubleOf(code)
      const { [ctx.path]: more = {} } = usual === 'application' ? ON_SIGN_OUT : {}
      show(ctx, errorPage(frameForContext(frameOf, ctx), { trouble: usual, code, detail, ...more }))
    },
    install(provider) {
      device.install(provider)
      logout.install(provider)
    },
  }
}

function createDevicePages({ issuer, clientOf, frameOf, directory, clock }: PagesDeps) {
  const action = urlOf(issuer, PATHS.device)
  const wrongCodes = createAttempts({ ...WRONG_CODES, clock })
  /** The key for counting tries: the signed-in person, else the address, so that other people are not affected. */
  const guesserOf = ({ req }: Pick<Context, 'req'>, { accountId }: Pick<Session, 'accountId'>): string =>
    accountId === undefined ? `address ${clientOf(req)}` : `person ${accountId}`

  function askForCode(ctx: Context, problem: CodeProblem | null): void {
    show(ctx, deviceCodePage(frameForContext(frameOf, ctx), { action, xsrf: xsrfIn(ctx), problem }))
  }
  async function confirmCode(
    ctx: Context,
    { client, userCode, params }: { client: Client; userCode: string; params: Params },
  ): Promise<void> {
    const session = requireSession(ctx.oidc)
    const view = {
      ...{ action, xsrf: xsrfOf(session), userCode, clientName: nameOf(client) },
      scopes: commonScopes(client.portcullis_scope, params.scope),
      organization: await shownName(directory, session, params.organization ?? client.portcullis_organization),
    }
    const uiLocales = paramsOf(ctx.oidc).ui_locales ?? params.ui_locales
    show(ctx, deviceConfirmPage(frameOf(ctx.req, { client, uiLocales }), view))
  }
  /** Asks to confirm a code from the URL (RFC 8628 section 3.3.1), where oidc-provider would send it on by a script. */
  async function confirmAtOnce(provider: Provider, ctx: Context, userCode: string): Promise<void> {
    const normalized = userCode.toUpperCase().replace(/\W/g, '')
    const code = await provider.DeviceCode.findByUserCode(normalized, { ignoreExpiration: true })
    const client = code?.clientId === undefined ? undefined : await provider.Client.find(code.clientId)
    if (code === undefined || client === undefined) {
      wrongCodes.take(guesserOf(ctx, requireSession(ctx.oidc)))
      return askForCode(ctx, 'wrong')
    }
    const isUsed = code.error !== undefined || code.accountId !== undefined || code.inFlight === true
    if (code.isExpired || isUsed) return askForCode(ctx, code.isExpired ? 'expired' : 'used')
    return confirmCode(ctx, { client, userCode: normalized.replace(/^.{4}/, '$&-'), params: paramsOf(code) })
  }

  const feature: ProviderPages['features']['deviceFlow'] = {
    enabled: true,
    charset: 'base-20',
    mask: '****-****',
    deviceInfo: () => ({}),
    userCodeInputSource: (ctx: Context, _form: string, out: object | undefined, error: CodeError | undefined) => {
      if (error?.name === 'NotFoundError') wrongCodes.take(guesserOf(ctx, requireSession(ctx.oidc)))
      askForCode(ctx, codeProblem(out, error))
    },
    userCodeConfirmSource: (ctx: Context, _form: string, client: Client, _info: object, userCode: string) =>
      confirmCode(ctx, { client, userCode, params: paramsOf(ctx.oidc.entities.DeviceCode ?? {}) }),
    successSource: (ctx: Context) => show(ctx, deviceDonePage(frameForContext(frameOf, ctx))),
  }
  return {
    feature,
    install: (provider: Provider) =>
      provider.use(async (koa, next) => {
        const ctx = contextOf(koa)
        if (ctx.path !== PATHS.device) return next()
        const given = ctx.method === 'POST' ? null : ctx.query.user_code
        if (given === undefined) return next()
        const session = await provider.Session.get(provider.createContext(ctx.req, ctx.res))
        const guesser = guesserOf(ctx, session)
        if (!wrongCodes.take(guesser)) return refuseGuess(ctx, frameForContext(frameOf, ctx), action)
        wrongCodes.giveBack(guesser)
        // The session that showed the form has ended if it has no state.
        if (given === null) return session.state === undefined ? restart(ctx, action) : next()
        ctx.query = {}
        await next()
        if (ctx.status === STATUS.shown) await confirmAtOnce(provider, ctx, String(given))
      }),
  }
}

function commonScopes(of: string | undefined, asked: string | undefined): readonly string[] {
  const also = splitScope(asked)
  return splitScope(of).filter((scope) => also.includes(scope))
}

function refuseGuess(ctx: Context, frame: Frame, action: string): void {
  ctx.status = STATUS.tooMany
  ctx.set('retry-after', String(WRONG_CODES.windowMs / 1_000))
  show(ctx, deviceCodePage(frame, { action, xsrf: '', problem: 'tooMany' }))
}

function restart(ctx: Context, action: string): void {
  ctx.status = STATUS.seeOther
  ctx.set('location', action)
  ctx.set('cache-control', 'no-store')
}

/** The organization's name for members; others see the id that the device sent. */
async function shownName(
  directory: PagesDeps['directory'],
  { accountId }: Session,
  id: string | null,
): Promise<string | null> {
  if (id === null || accountId === undefined) return id
  const theirs = await directory.activeMemberships(accountId)
  return theirs.find(({ organization }) => organization.id === id)?.organization.name ?? id
}

function createLogoutPages({ issuer, frameOf }: PagesDeps) {
  const frame = (ctx: Context) => frameForContext(frameOf, ctx)
  const confirm = urlOf(issuer, PATHS.logoutConfirm)
  // A form that goes elsewhere is an authorization response by form_post.
  const toOurselves = `action="${confirm}"`
  const feature: ProviderPages['features']['rpInitiatedLogout'] = {
    enabled: true,
    logoutSource: async (ctx: Context) => {
      if (isHintOfSession(ctx)) return endSession(ctx)
      show(ctx, logoutPage(frame(ctx), { action: confirm, xsrf: xsrfIn(ctx) }))
    },
    postLogoutSuccessSource: (ctx: Context) => show(ctx, signedOutPage(frame(ctx))),
  }

  function formPost(ctx: Context, made: string): Page {
    const { client } = ctx.oidc
    const fields = [...made.matchAll(ITS_FIELDS)].map(([, name = '', value = '']): [string, string] => [
      name,
      unescapeHtml(value),
    ])
    const target = unescapeHtml(ITS_ACTION.exec(made)?.[1] ?? '')
    const uiLocales = paramsOf(ctx.oidc).ui_locales
    return formPostPage(frameOf(ctx.req, { client, uiLocales }), { action: target, fields })
  }

  return {
    feature,
    install: (provider: Provider) =>
      provider.use(async (koa, next) => {
        const ctx = contextOf(koa)
        await next()
        if (typeof ctx.body !== 'string' || !ctx.body.includes(SELF_SENDING)) return
        if (!ctx.body.includes(toOurselves)) return show(ctx, formPost(ctx, ctx.body))
        const xsrf = xsrfIn(ctx)
        const isHandOver = ctx.path !== PATHS.logout
        show(ctx, handOverPage(frame(ctx), { action: confirm, xsrf, isHandOver }))
      }),
  }
}

/** Errors at sign-out: a form that was sent before or belongs to a sign-in that ended, and a wrong hint or redirect URI. */
const ON_SIGN_OUT: { readonly [path: string]: { readonly trouble: Trouble; readonly again?: string } | undefined } = {
  [PATHS.logoutConfirm]: { trouble: 'oldForm', again: PATHS.logout },
  [PATHS.logout]: { trouble: 'signOut' },
}

type CodeError = { readonly name: string; readonly userCode?: string }
const PROBLEMS: { readonly [name: string]: CodeProblem } = {
  NoCodeError: 'wrong',
  NotFoundError: 'wrong',
  ExpiredError: 'expired',
  AlreadyUsedError: 'used',
  AbortedError: 'stopped',
}

function codeProblem(out: object | undefined, error: CodeError | undefined): CodeProblem | null {
  if (error !== undefined) return PROBLEMS[error.name] ?? 'failed'
  return out === undefined ? null : 'failed'
}
