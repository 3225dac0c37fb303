/** Signing in to these pages, also once more before a change. */
import { PATHS, urlOf } from '../oauth/paths.ts'
import { startSession } from '../sign-in/approval-sign-in.ts'
import type { SignedIn } from '../sign-in/sign-in.ts'
import { codePage, type LoginProblem, loginPage, outcomeOf, recoveryUsedPage } from '../sign-in/sign-in-pages.ts'
import { goTo, type View } from './pages.ts'
import type { AccountParts } from './parts.ts'
import { type Person, personOf, type Visit } from './visit.ts'

/** As the log and the sealed fields name these pages. */
export const PAGE = 'account'
const PURPOSE = { kind: 'account' } as const
const TARGETS: readonly string[] = [
  ...[PATHS.account, PATHS.accountPassword, PATHS.accountVerification, PATHS.accountAuthenticator],
  PATHS.accountInvitation,
]

/** Sends the browser to sign in and then to this page. */
export function signInFirst({ issuer }: AccountParts, { res }: Visit, to: string): null {
  goTo(res, `${urlOf(issuer, PATHS.accountSignIn)}?${new URLSearchParams({ to })}`)
  return null
}

export async function askWho(parts: AccountParts, visit: Visit): Promise<View> {
  const person = await personOf(parts, visit)
  return login(visit, person?.user.email ?? '', null)
}

export async function takeWho(parts: AccountParts, visit: Visit, form: URLSearchParams): Promise<View | null> {
  const { signIn, devices } = parts
  const source = devices.source(visit.req)
  if (form.get('action') === 'code') {
    const sealed = form.get('password_accepted') ?? ''
    const waiting = signIn.open(sealed, PAGE)
    if (waiting === null) return login(visit, '', null)
    const outcome = await signIn.code({ waiting, code: form.get('code') ?? '', client: PAGE, source })
    if ('problem' in outcome) return code(visit, sealed, outcome.problem)
    if (outcome.left === undefined) return finish(parts, visit, outcome)
    parts.notices.send(outcome.accountId, 'codeUsed', { words: visit.frame.words, left: outcome.left })
    await begin(parts, visit, outcome)
    const view = { left: outcome.left, to: urlOf(parts.issuer, targetOf(visit)) }
    return { outcome: 'shown', page: recoveryUsedPage(visit.frame, view) }
  }
  const email = form.get('email') ?? ''
  const outcome = await signIn.password({ email, password: form.get('password') ?? '', client: PAGE, source })
  if ('problem' in outcome) return login(visit, email, outcome.problem)
  if ('waiting' in outcome) return code(visit, signIn.seal(outcome.waiting, PAGE), null)
  return finish(parts, visit, outcome)
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
  return TARGETS.includes(to) ? to : PATHS.account
}

/** For who has just ended all sessions, this one too: they go on in a new one, as strongly signed in as `acr` says. */
export async function signInAnew(
  parts: AccountParts,
  visit: Visit,
  { person, by }: { readonly person: Person; readonly by: Pick<SignedIn, 'acr' | 'amr'> },
): Promise<void> {
  const { Session } = parts.provider()
  const ts = Math.floor(parts.clock() / 1_000)
  await startSession(parts, { ...visit, session: new Session() }, { accountId: person.user.id, ts, ...by })
}

const login = ({ frame }: Visit, email: string, problem: LoginProblem | null): View => ({
  outcome: outcomeOf(problem),
  page: loginPage(frame, { purpose: PURPOSE, email, problem }),
})
const code = ({ frame }: Visit, sealed: string, problem: LoginProblem | null): View => ({
  outcome: outcomeOf(problem),
  page: codePage(frame, { purpose: PURPOSE, hidden: { password_accepted: sealed }, problem }),
})
