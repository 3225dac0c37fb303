/** Signing in to these pages, also once more before a change. */
import { PATHS, urlOf } from '../oauth/paths.ts'
import { type Assurance, BY_PASSWORD } from '../sign-in/acr.ts'
import { startSession } from '../sign-in/approval-sign-in.ts'
import { isSecond, type Turn } from '../sign-in/passkey-steps.ts'
import type { SignedIn, Waiting } from '../sign-in/sign-in.ts'
import { type LoginProblem, loginPage, outcomeOf, recoveryUsedPage, waitingSignIn } from '../sign-in/sign-in-pages.ts'
import { goTo, type View } from './pages.ts'
import type { AccountParts } from './parts.ts'
import { type Person, personOf, type Visit, xsrfOf } from './visit.ts'

/** As the log and the sealed fields name these pages. */
export const PAGE = 'account'
const PURPOSE = { kind: 'account' } as const
const NOBODY = { email: '', problem: null } as const
const TARGETS: readonly string[] = [
  ...[PATHS.account, PATHS.accountPassword, PATHS.accountVerification, PATHS.accountAuthenticator],
  ...[PATHS.accountPasskeys, PATHS.accountInvitation, PATHS.accountProviders],
]

/** Sends the browser to sign in and then to this page. */
export function signInFirst({ issuer }: AccountParts, { req, res }: Visit, to: string): null {
  const waiting = waitingSignIn(req)
  const query = `${new URLSearchParams({ to })}${waiting === null ? '' : `&${waiting.query}`}`
  goTo(res, `${urlOf(issuer, PATHS.accountSignIn)}?${query}`)
  return null
}

export async function askWho(parts: AccountParts, visit: Visit): Promise<View> {
  const person = await personOf(parts, visit)
  return login(parts, visit, { email: person?.user.email ?? '', problem: null })
}

export async function takeWho(parts: AccountParts, visit: Visit, form: URLSearchParams): Promise<View | null> {
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

/** Asked for, given, or not wanted. */
async function passkey(parts: AccountParts, visit: Visit, form: URLSearchParams): Promise<View | null> {
  const { waiting, turn } = turnIn(parts, visit, form)
  if (isSecond(form) && waiting === null) return login(parts, visit, NOBODY)
  if (form.get('action') === 'app')
    return waiting === null ? login(parts, visit, NOBODY) : parts.passkeySteps.askForSecond({ ...turn, waiting }, null)
  if (form.get('action') === 'passkey') return parts.passkeySteps.ask(turn)
  const taken = await parts.passkeySteps.take({ ...turn, answer: form.get('credential') ?? '' })
  return 'signedIn' in taken ? finish(parts, visit, taken.signedIn) : taken
}

/** Whose password was right, as the form says. */
function turnIn(parts: AccountParts, visit: Visit, form: URLSearchParams) {
  const sealed = form.get('password_accepted')
  const waiting = sealed === null ? null : parts.signIn.open(sealed, PAGE)
  return { waiting, turn: turnOf(parts, visit, { waiting, sealed }) }
}

function turnOf<Who extends Waiting | null>(
  { devices }: AccountParts,
  { req, res, frame }: Visit,
  { waiting, sealed }: { readonly waiting: Who; readonly sealed: string | null },
) {
  const hidden: Turn['hidden'] = sealed === null ? {} : { password_accepted: sealed }
  return { req, res, frame, waiting, hidden, purpose: PURPOSE, at: PAGE, client: PAGE, source: devices.source(req) }
}

async function finish(parts: AccountParts, visit: Visit, signedIn: SignedIn): Promise<null> {
  await begin(parts, visit, signedIn)
  goTo(visit.res, urlOf(parts.issuer, targetOf(visit)))
  return null
}

async function begin(parts: AccountParts, visit: Visit, signedIn: SignedIn): Promise<void> {
  const provider = parts.provider()
  const session = await provider.Session.get(provider.createContext(visit.req, visit.res))
  await startSession(parts, { ...visit, session }, signedIn)
}

function targetOf({ req }: Visit): string {
  const to = new URLSearchParams(req.url?.split('?')[1] ?? '').get('to') ?? ''
  const path = TARGETS.includes(to) ? to : PATHS.account
  const waiting = waitingSignIn(req)
  return waiting === null ? path : `${path}?${waiting.query}`
}

/** For who has just ended all sessions, this one too: they go on in a new one, as strongly signed in as `acr` says. */
export async function signInAnew(
  parts: AccountParts,
  visit: Visit,
  { person, by }: { readonly person: Person; readonly by: Pick<SignedIn, 'acr' | 'amr'> },
): Promise<Pick<Person, 'session' | 'xsrf'>> {
  const { Session } = parts.provider()
  const ts = Math.floor(parts.clock() / 1_000)
  const session = await startSession(
    parts,
    { ...visit, session: new Session() },
    { accountId: person.user.id, ts, ...by },
  )
  return { session, xsrf: xsrfOf(parts, session) }
}

/** As their present sign-in was; by the password alone for who has nothing else any longer. */
export function remainingAssurance({ hasCode, session }: Pick<Person, 'hasCode' | 'session'>): Assurance {
  const { acr, amr } = session
  return hasCode && acr !== undefined && amr !== undefined ? { acr, amr } : BY_PASSWORD
}

async function login(
  { elsewhere }: AccountParts,
  visit: Visit,
  view: { readonly email: string; readonly problem: LoginProblem | null },
): Promise<View> {
  const { frame, req } = visit
  const organization = new URLSearchParams(req.url?.split('?')[1] ?? '').get('organization')
  const buttons = await elsewhere.buttons(frame, { path: targetOf(visit) }, organization)
  const page = loginPage(frame, { purpose: PURPOSE, ...view, elsewhere: buttons })
  return { outcome: outcomeOf(view.problem), page }
}
