/** Pages at `/account`, on which people manage their own accounts. They need no JavaScript. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { send, type View } from '../../html/page.ts'
import { readScripts } from '../../html/page-scripts.ts'
import { createSharedAttempts } from '../../limits/shared-attempts.ts'
import { isCrossSite, readForm } from '../../oauth/forms.ts'
import { PATHS, urlOf } from '../../oauth/paths.ts'
import { STATUS } from '../../oauth/status.ts'
import { createMailedTokens, type MailedKind } from '../mail/mailed-tokens.ts'
import { createNotices, type Notices } from '../mail/notices.ts'
import { createPasswords } from '../passwords/new-password.ts'
import { createPasswordRules } from '../passwords/password-rules.ts'
import { showAccess } from './access.ts'
import { changeAuthenticator, showAuthenticator } from './authenticator.ts'
import { createBrowserCookies } from './browser-cookies.ts'
import { askToDelegate, delegate } from './delegations.ts'
import type { AccountDeps, AccountParts } from './deps.ts'
import { askForLink, askForNew, sendLink, takeNew } from './forgotten.ts'
import { endOne, showHome } from './home.ts'
import { askWho, signInFirst, takeWho } from './own-sign-in.ts'
import { goTo, refused } from './page-parts.ts'
import { changePasskeys, showPasskeys } from './passkeys.ts'
import { showChange, takeChange } from './password-change.ts'
import { askToConfirm, verify } from './verification.ts'
import { type AccountVisit, type Change, isOwnForm, type Person, personOf } from './visit.ts'

const ATTEMPTS_WINDOW_MS = 3_600_000

export type Account = {
  /** Answers a path below `/account`. Throws PdpError `store_unavailable`. */
  answer(req: IncomingMessage, res: ServerResponse, path: string): Promise<void>
  readonly notices: Notices
  /** Resolves when no mail is being sent. */
  idle(): Promise<void>
  close(): Promise<void>
}

export type Screen = {
  /** The page to show; null: it was answered already. */
  show(parts: AccountParts, visit: AccountVisit): Promise<View | null> | View
  act?(parts: AccountParts, visit: AccountVisit, form: URLSearchParams): Promise<View | null>
  /** The kind of mailed link that leads to this screen. */
  readonly link?: MailedKind
}
type OwnScreen = {
  show(parts: AccountParts, visit: AccountVisit, person: Person): Promise<View>
  act(parts: AccountParts, visit: AccountVisit, by: Change): Promise<View>
}

/** Shows a page to a person who is signed in. */
const ownPage =
  (path: string, show: OwnScreen['show']): Screen['show'] =>
  async (parts, visit) => {
    const person = await personOf(parts, visit)
    return person === null ? signInFirst(parts, visit, path) : show(parts, visit, person)
  }

/** A screen for a person who is signed in. A change needs a recent sign-in, and a form that was made for this session. */
const own = (path: string, screen: OwnScreen): Screen => ({
  show: ownPage(path, screen.show),
  async act(parts, visit, form) {
    const person = await personOf(parts, visit)
    if (person === null || !person.isFresh) return signInFirst(parts, visit, path)
    return isOwnForm(parts, person, form) ? screen.act(parts, visit, { person, form }) : refused(visit, 'oldForm')
  },
})

/** A screen that needs a recent sign-in already to be shown. */
const fresh = (path: string, screen: OwnScreen): Screen => ({
  ...own(path, screen),
  async show(parts, visit) {
    const person = await personOf(parts, visit)
    return person?.isFresh === true ? screen.show(parts, visit, person) : signInFirst(parts, visit, path)
  },
})

const SCREENS: ReadonlyMap<string, Screen> = new Map<string, Screen>([
  [PATHS.account, own(PATHS.account, { show: showHome, act: endOne })],
  [PATHS.accountSignIn, { show: askWho, act: takeWho }],
  [PATHS.accountForgotten, { show: askForLink, act: sendLink }],
  [PATHS.accountReset, { show: askForNew, act: takeNew, link: 'reset' }],
  [PATHS.accountDelegations, own(PATHS.accountDelegations, { show: askToDelegate, act: delegate })],
  [PATHS.accountAccess, { show: ownPage(PATHS.accountAccess, showAccess) }],
  [PATHS.accountPassword, own(PATHS.accountPassword, { show: showChange, act: takeChange })],
  [
    PATHS.accountAuthenticator,
    fresh(PATHS.accountAuthenticator, { show: showAuthenticator, act: changeAuthenticator }),
  ],
  [PATHS.accountPasskeys, fresh(PATHS.accountPasskeys, { show: showPasskeys, act: changePasskeys })],
  [
    PATHS.accountVerification,
    { ...own(PATHS.accountVerification, { show: askToConfirm, act: verify }), link: 'verification' },
  ],
])
export const ACCOUNT_PATHS: readonly string[] = [...SCREENS.keys(), PATHS.passkeyScript, PATHS.pageScript]

/** `more`: screens that other folders add. */
export function createAccount(deps: AccountDeps, more: (path: string) => Screen | undefined): Account {
  const { knownPasswords: list, ...rest } = deps
  const { deliveries, sql, clock, issuer, directory, mailer, log, appendEvents, revocations } = deps
  const tokens = createMailedTokens(deps)
  const scripts = readScripts()
  const attempts = createSharedAttempts({ sql, clock, windowMs: ATTEMPTS_WINDOW_MS })
  const notices = createNotices({ issuer, directory, mailer, log, deliveries, attempts })
  const parts: AccountParts = {
    ...rest,
    tokens,
    attempts,
    notices,
    cookies: createBrowserCookies(deps),
    rules: createPasswordRules({ list }),
    passwords: createPasswords({ sql, appendEvents, revocations, tokens }),
  }
  return {
    async answer(req, res, path) {
      const script = scripts.get(path)
      if (script !== undefined) return void res.writeHead(STATUS.shown, script.headers).end(script.text)
      const screen = SCREENS.get(path) ?? more(path)
      if (screen === undefined) throw new TypeError(`${path} is not a page of the account`)
      const frame = parts.frameOf(req)
      const logged = { ...parts, log: log.child({ request_id: frame.requestId }) }
      const view = await answerScreen(logged, screen, { req, res, path, frame })
      if (view !== null) send(res, view)
    },
    notices,
    idle: deliveries.idle,
    close: deliveries.close,
  }
}

async function answerScreen(
  parts: AccountParts,
  screen: Screen,
  { path, ...visit }: AccountVisit & { readonly path: string },
): Promise<View | null> {
  const { req, res } = visit
  if (req.method !== 'POST') {
    const token = new URLSearchParams(req.url?.split('?')[1] ?? '').get('token')
    if (token === null || screen.link === undefined) return screen.show(parts, visit)
    // Programs that check mails open links too, so opening one does not use up its token; the next URL has no token. Any site can
    // lead to a link that is not valid, which must not displace a valid one.
    if ((await parts.tokens.find(parts.sql, screen.link, token)) !== null) parts.cookies.keep(res, screen.link, token)
    goTo(res, urlOf(parts.issuer, path))
    return null
  }
  if (screen.act === undefined) return screen.show(parts, visit)
  if (isCrossSite(req, parts.issuer)) return refused(visit, 'crossSiteForm')
  const form = await readForm(req)
  return form === null ? refused(visit, 'largeForm') : screen.act(parts, visit, form)
}
