/** Signing in on our own page for the requests of CIBA clients, where oidc-provider does not manage the session. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Provider, Session } from 'oidc-provider'
import type { Frame } from '../../html/frame.ts'
import type { View } from '../../html/page.ts'
import type { Devices } from '../../limits/devices.ts'
import { SESSION_SECONDS } from '../../oauth/durations.ts'
import { PATHS } from '../../oauth/paths.ts'
import { seenFrom } from '../../oauth/seen.ts'
import { isSecond, type PasskeySteps, type Turn } from './passkey-steps.ts'
import type { RecoveryUsed, SignedIn, SignIn, Waiting } from './sign-in.ts'
import { type LoginProblem, loginPage, outcomeOf, type Purpose, recoveryUsedPage } from './sign-in-pages.ts'

/** The step that the person must still do: the request needs more than the present sign-in. */
export type MissingStep = 'session' | 'fresh' | 'code'
export type ApprovalVisit = {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly session: Session
  readonly frame: Frame
}
/** A page to show, or the session that the person has now. */
export type Step = View | { readonly session: Session }

const PAGE = 'approval'
const PURPOSES: { readonly [missing in MissingStep]: Purpose } = {
  session: { kind: 'requests' },
  fresh: { kind: 'again' },
  code: { kind: 'withCode' },
}

export type ApprovalSignInDeps = {
  readonly provider: () => Provider
  readonly signIn: SignIn
  readonly devices: Devices
  readonly recoveryUsed: RecoveryUsed
  readonly passkeySteps: PasskeySteps
}

export async function askToSignIn(
  { passkeySteps, devices }: ApprovalSignInDeps,
  { req, res, frame }: ApprovalVisit,
  missing: MissingStep,
  view: { email?: string; problem?: LoginProblem } = {},
): Promise<Step> {
  const { email = '', problem = null } = view
  const passkeys = await passkeySteps.offer({ req, res, at: PAGE, source: devices.source(req) })
  const page = loginPage(frame, { purpose: PURPOSES[missing], email, problem, passkeys })
  return { outcome: outcomeOf(problem), page }
}

/** `hidden`: the sealed password step, or the signature of the session to which the second factor is added. */
export function askForSecond(
  deps: ApprovalSignInDeps,
  visit: ApprovalVisit,
  of: { readonly waiting: Waiting; readonly hidden: Turn['hidden']; readonly problem?: LoginProblem },
): Promise<Step> {
  return deps.passkeySteps.askForSecond({ ...turnOf(deps, visit, of), waiting: of.waiting }, of.problem ?? null)
}

function turnOf(
  { devices }: ApprovalSignInDeps,
  { req, res, frame }: ApprovalVisit,
  { waiting, hidden }: Pick<Turn, 'waiting' | 'hidden'>,
): Turn {
  const missing = hidden.xsrf === undefined ? 'session' : 'code'
  const source = devices.source(req)
  return { req, res, frame, waiting, hidden, source, purpose: PURPOSES[missing], at: PAGE, client: PAGE }
}

/** Handles the answer of a passkey. `waiting`: as for takeCode. */
export async function takePasskey(
  deps: ApprovalSignInDeps,
  visit: ApprovalVisit,
  { form, waiting }: { form: URLSearchParams; waiting: Waiting | null },
): Promise<Step> {
  const whose = isSecond(form) ? (waiting ?? deps.signIn.open(form.get('password_accepted') ?? '', PAGE)) : null
  if (isSecond(form) && whose === null) return askToSignIn(deps, visit, 'session')
  const turn = turnOf(deps, visit, { waiting: whose, hidden: whose === null ? {} : hiddenOf(form, waiting) })
  if (form.get('action') === 'app' && whose !== null)
    return deps.passkeySteps.askForSecond({ ...turn, waiting: whose }, null)
  if (form.get('action') === 'passkey') return deps.passkeySteps.ask(turn)
  const taken = await deps.passkeySteps.take({ ...turn, answer: form.get('credential') ?? '' })
  return 'signedIn' in taken ? { session: await startSession(deps, visit, taken.signedIn) } : taken
}

const hiddenOf = (form: URLSearchParams, waiting: Waiting | null): Turn['hidden'] =>
  waiting === null ? { password_accepted: form.get('password_accepted') ?? '' } : { xsrf: form.get('xsrf') ?? '' }

export async function takePassword(
  deps: ApprovalSignInDeps,
  visit: ApprovalVisit,
  form: URLSearchParams,
): Promise<Step> {
  const email = form.get('email') ?? ''
  const source = deps.devices.source(visit.req)
  const outcome = await deps.signIn.password({ email, password: form.get('password') ?? '', client: PAGE, source })
  if ('problem' in outcome) return askToSignIn(deps, visit, 'session', { email, problem: outcome.problem })
  if ('waiting' in outcome) {
    const { waiting } = outcome
    return askForSecond(deps, visit, { waiting, hidden: { password_accepted: deps.signIn.seal(waiting, PAGE) } })
  }
  return { session: await startSession(deps, visit, outcome) }
}

/** Handles a code. `waiting`: the person whose session lacks only the code; null: the person has just given the password. */
export async function takeCode(
  deps: ApprovalSignInDeps,
  visit: ApprovalVisit,
  { form, waiting }: { form: URLSearchParams; waiting: Waiting | null },
): Promise<Step> {
  const sealed = form.get('password_accepted') ?? ''
  const whose = waiting ?? deps.signIn.open(sealed, PAGE)
  if (whose === null) return askToSignIn(deps, visit, 'session')
  const source = deps.devices.source(visit.req)
  const outcome = await deps.signIn.code({ waiting: whose, code: form.get('code') ?? '', client: PAGE, source })
  if (!('problem' in outcome)) {
    const session = await startSession(deps, visit, outcome)
    if (outcome.left === undefined) return { session }
    deps.recoveryUsed(outcome.accountId, { left: outcome.left, words: visit.frame.words })
    const view = { left: outcome.left, to: `${visit.frame.mount}${PATHS.approve}` }
    return { outcome: 'shown', page: recoveryUsedPage(visit.frame, view) }
  }
  return askForSecond(deps, visit, { waiting: whose, hidden: hiddenOf(form, waiting), problem: outcome.problem })
}

/** Starts a session in oidc-provider's way: its identifier is new at each sign-in, and another person's session ends first. */
export async function startSession(
  deps: Pick<ApprovalSignInDeps, 'provider' | 'devices'>,
  visit: ApprovalVisit,
  signedIn: SignedIn,
): Promise<Session> {
  const provider = deps.provider()
  deps.devices.remember(visit.res, signedIn.accountId)
  let { session } = visit
  if (session.accountId !== undefined && session.accountId !== signedIn.accountId) {
    await session.destroy()
    session = new provider.Session()
  } else session.resetIdentifier()
  const { accountId, acr, amr, ts } = signedIn
  session.loginAccount({ accountId, acr, amr: [...amr], loginTs: ts })
  session.seen = seenFrom(visit.req, deps.devices.source(visit.req).address)
  await session.save(SESSION_SECONDS)
  const context = provider.createContext(visit.req, visit.res)
  context.cookies.secure = context.secure
  context.cookies.set(provider.cookieName('session'), session.jti, {
    httpOnly: true,
    sameSite: 'lax',
    maxAge: SESSION_SECONDS * 1_000,
    overwrite: true,
  })
  return session
}
