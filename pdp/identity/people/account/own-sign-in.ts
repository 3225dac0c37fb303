/** Signing in to these pages, and signing in again before a change. */
import { html } from '../../../shared/base/html.ts'
import type { View } from '../../html/page.ts'
import { PATHS, urlOf } from '../../oauth/paths.ts'
import { startSession } from '../sign-in/approval-sign-in.ts'
import { isSecond, type Turn } from '../sign-in/passkey-steps.ts'
import type { SignedIn, Waiting } from '../sign-in/sign-in.ts'
import { loginPage, outcomeOf, type PageProblem, recoveryUsedPage, waitingSignIn } from '../sign-in/sign-in-pages.ts'
import { requestIn } from './delegations.ts'
import type { AccountParts } from './deps.ts'
import { goTo, shown } from './page-parts.ts'
import { type AccountVisit, personOf } from './visit.ts'

/** The name of these pages in the log and in sealed fields. */
export const PAGE = 'account'
const PURPOSE = { kind: 'account' } as const
const UNSENT_PURPOSE = { kind: 'unsent' } as const
const NOBODY = { email: '', problem: null } as const
const TARGETS: readonly string[] = [
  ...[PATHS.account, PATHS.accountPassword, PATHS.accountVerification, PATHS.accountAuthenticator],
  ...[PATHS.accountPasskeys, PATHS.accountInvitation, PATHS.accountProviders],
  ...[PATHS.accountDelegations, PATHS.accountAccess],
]
/** Pages that keep the question of their URL while the person signs in. */
const KEEPING: readonly string[] = [PATHS.accountDelegations, PATHS.accountAccess]

/** The parameter that says that a form led to the sign-in page and has changed nothing. */
const UNSENT = 'unsent'

/** Sends the browser to sign in and then to this page. */
export function signInFirst({ issuer }: AccountParts, { req, res }: AccountVisit, to: string): null {
  const waiting = waitingSignIn(req)
  const kept = KEEPING.includes(to) ? requestIn(req.url) : []
  const unsent: [string, string][] = req.method === 'POST' ? [[UNSENT, 'yes']] : []
  const query = `${new URLSearchParams([['to', to], ...unsent, ...kept])}${waiting === null ? '' : `&${waiting.query}`}`
  goTo(res, `${urlOf(issuer, PATHS.accountSignIn)}?${query}`, 'same-origin')
  return null
}

export async function askWho(parts: AccountParts, visit: AccountVisit): Promise<View> {
  const person = await personOf(parts, visit)
  const isLost = person === null && cameFromHere(parts, visit)
  return login(parts, visit, { email: person?.user.email ?? '', problem: isLost ? 'noCookies' : null })
}

/** True if this page has sent the browser on and it came back: then the browser keeps no cookies. */
function cameFromHere({ issuer }: AccountParts, { req }: AccountVisit): boolean {
  const from = URL.parse(req.headers.referer ?? '')
  return from !== null && from.origin + from.pathname === urlOf(issuer, PATHS.accountSignIn)
}

export async function takeWho(parts: AccountParts, visit: AccountVisit, form: URLSearchParams): Promise<View | null> {
  const { signIn, devices } = parts
  const source = devices.source(visit.req)
  const action = form.get('action') ?? ''
  if (action === 'switch') return login(parts, visit, NOBODY)
  if (PASSKEY_ACTIONS.has(action)) return passkey(parts, visit, form)
  if (action === 'code') {
    const { waiting, turn } = turnIn(parts, visit, form)
    if (waiting === null) return login(parts, visit, NOBODY)
    const outcome = await signIn.code({ waiting, code: form.get('code') ?? '', client: PAGE, source })
    if ('problem' in outcome) return parts.passkeySteps.askForSecond({ ...turn, waiting }, outcome.problem)
    if (outcome.left === undefined) return finish(parts, visit, outcome)
    parts.notices.send(outcome.accountId, 'codeUsed', { words: visit.frame.words, left: outcome.left })
    await begin(parts, visit, outcome)
    const view = { left: outcome.left, to: urlOf(parts.issuer, targetOf(visit)) }
    return { outcome: 'shown', page: recoveryUsedPage(visit.frame, view) }
  }
  const email = form.get('email') ?? ''
  const outcome = await signIn.password({ email, password: form.get('password') ?? '', client: PAGE, source })
  if ('problem' in outcome) return login(parts, visit, { email, problem: outcome.problem })
  if (!('waiting' in outcome)) return finish(parts, visit, outcome)
  const { waiting } = outcome
  return parts.passkeySteps.askForSecond(turnOf(parts, visit, { waiting, sealed: signIn.seal(waiting, PAGE) }), null)
}

const PASSKEY_ACTIONS: ReadonlySet<string> = new Set(['app', 'passkey', 'passkey_answer'])

/** Handles the step with a passkey: it is asked for, answered, or refused by the person. */
async function passkey(parts: AccountParts, visit: AccountVisit, form: URLSearchParams): Promise<View | null> {
  const { waiting, turn } = turnIn(parts, visit, form)
  if (isSecond(form) && waiting === null) return login(parts, visit, NOBODY)
  if (form.get('action') === 'app')
    return waiting === null ? login(parts, visit, NOBODY) : parts.passkeySteps.askForSecond({ ...turn, waiting }, null)
  if (form.get('action') === 'passkey') return parts.passkeySteps.ask(turn)
  const taken = await parts.passkeySteps.take({ ...turn, answer: form.get('credential') ?? '' })
  return 'signedIn' in taken ? finish(parts, visit, taken.signedIn) : taken
}

/** The turn of the person whose password was right, from a field of the form. */
function turnIn(parts: AccountParts, visit: AccountVisit, form: URLSearchParams) {
  const sealed = form.get('password_accepted')
  const waiting = sealed === null ? null : parts.signIn.open(sealed, PAGE)
  return { waiting, turn: turnOf(parts, visit, { waiting, sealed }) }
}

function turnOf<Who extends Waiting | null>(
  { devices }: AccountParts,
  { req, res, frame }: AccountVisit,
  { waiting, sealed }: { readonly waiting: Who; readonly sealed: string | null },
) {
  const hidden: Turn['hidden'] = sealed === null ? {} : { password_accepted: sealed }
  return { req, res, frame, waiting, hidden, purpose: PURPOSE, at: PAGE, client: PAGE, source: devices.source(req) }
}

async function finish(parts: AccountParts, visit: AccountVisit, signedIn: SignedIn): Promise<null> {
  await begin(parts, visit, signedIn)
  goTo(visit.res, urlOf(parts.issuer, targetOf(visit)), 'same-origin')
  return null
}

/** Begins a session of a person who has signed in. */
export async function begin(parts: AccountParts, visit: AccountVisit, signedIn: SignedIn): Promise<void> {
  const provider = parts.provider()
  const session = await provider.Session.get(provider.createContext(visit.req, visit.res))
  await startSession(parts, { ...visit, session }, signedIn)
}

function targetOf({ req }: AccountVisit): string {
  const to = new URLSearchParams(req.url?.split('?')[1] ?? '').get('to') ?? ''
  const path = TARGETS.includes(to) ? to : PATHS.account
  if (KEEPING.includes(path)) return `${path}?${requestIn(req.url)}`
  const waiting = waitingSignIn(req)
  return waiting === null ? path : `${path}?${waiting.query}`
}

/** The page after a change that ended all sessions without a sign-in: a new session would claim that the person just signed in. */
export function signedOutPage({ req, frame }: AccountVisit, { title, text }: { title: string; text: string }): View {
  const to = `${frame.mount}${waitingSignIn(req)?.path ?? PATHS.account}`
  const link = html`<p><a class="act" href="${to}">${frame.words.common.signIn}</a></p>`
  return shown(frame, title, html`<p role="status">${text}</p>${link}`)
}

async function login(
  parts: AccountParts,
  visit: AccountVisit,
  view: { readonly email: string; readonly problem: PageProblem | null },
): Promise<View> {
  const { frame, req } = visit
  const query = new URLSearchParams(req.url?.split('?')[1] ?? '')
  const organization = query.get('organization')
  const purpose = query.has(UNSENT) ? UNSENT_PURPOSE : PURPOSE
  const buttons = await parts.elsewhere.buttons(frame, { path: targetOf(visit) }, organization)
  const passkeys = await parts.passkeySteps.offer(turnOf(parts, visit, { waiting: null, sealed: null }))
  const page = loginPage(frame, { purpose, ...view, elsewhere: buttons, passkeys })
  return { outcome: outcomeOf(view.problem), page }
}
