/** The pages that the engine asks for by itself: errors, the device page and signing out. */
import type { Client, Context, Provider } from 'oidc-provider'
import { createAttempts } from './attempts.ts'
import { errorPage, type Page } from './pages.ts'
import { deviceCodePage, deviceConfirmPage, deviceDonePage, logoutPage, signedOutPage } from './pages-device.ts'
import { PATHS, urlOf } from './paths.ts'
import { STATUS } from './status.ts'

// There are 20^8 codes and few of them live; at this rate nobody finds one by guessing (RFC 8628 section 5.1).
const WRONG_CODES = { triesMax: 100, windowMs: 60_000, keysMax: 1 }
const ANYBODY = 'anybody'

export type EnginePages = {
  /** Features `deviceFlow` and `rpInitiatedLogout`. */
  readonly features: object
  /** Keeps guessers of user codes away. */
  install(provider: Provider): void
}

export function createEnginePages({ issuer, clock }: { issuer: string; clock: () => number }): EnginePages {
  const wrongCodes = createAttempts({ ...WRONG_CODES, clock })
  const action = urlOf(issuer, PATHS.device)
  const features = {
    deviceFlow: {
      enabled: true,
      charset: 'base-20',
      mask: '****-****',
      deviceInfo: () => ({}),
      userCodeInputSource: (ctx: Context, _form: string, out: object | undefined, error: CodeError | undefined) => {
        if (error?.name === 'NotFoundError') wrongCodes.take(ANYBODY)
        const problem = codeProblem(out, error)
        send(ctx, deviceCodePage({ action, xsrf: ctx.oidc.session.state?.secret ?? '', problem }))
      },
      userCodeConfirmSource: (ctx: Context, _form: string, client: Client, _info: object, userCode: string) =>
        send(
          ctx,
          deviceConfirmPage({
            action,
            xsrf: ctx.oidc.session.state?.secret ?? '',
            userCode,
            clientName: client.clientName ?? client.clientId,
          }),
        ),
      successSource: (ctx: Context) => send(ctx, deviceDonePage()),
    },
    rpInitiatedLogout: {
      enabled: true,
      logoutSource: (ctx: Context) =>
        send(
          ctx,
          logoutPage({ action: urlOf(issuer, PATHS.logoutConfirm), xsrf: ctx.oidc.session.state?.secret ?? '' }),
        ),
      postLogoutSuccessSource: (ctx: Context) => send(ctx, signedOutPage()),
    },
  }
  return {
    features,
    install(provider) {
      provider.use(async (ctx, next) => {
        if (ctx.path !== PATHS.device || ctx.method !== 'POST') return next()
        if (!wrongCodes.take(ANYBODY)) {
          ctx.status = STATUS.tooMany
          ctx.set('retry-after', String(WRONG_CODES.windowMs / 1_000))
          return send(ctx, deviceCodePage({ action, xsrf: '', problem: 'tooMany' }))
        }
        wrongCodes.giveBack(ANYBODY)
        return next()
      })
    },
  }
}

/** Setting `renderError`. */
export function renderError(ctx: Context, out: { error: string; error_description?: string }): void {
  send(ctx, errorPage({ code: out.error, detail: out.error_description ?? '' }))
}

type CodeError = { readonly name: string; readonly userCode?: string }
type CodeProblem = 'wrong' | 'expired' | 'used' | 'stopped' | 'failed'
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

function send(ctx: Context, page: Page): void {
  for (const [name, value] of Object.entries(page.headers)) ctx.set(name, value)
  ctx.body = page.html
}
