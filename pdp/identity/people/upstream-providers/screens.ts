/** Pages for sign-in at another provider: leaving, coming back, proving an account, and disconnecting. */

import type { View } from '../../html/page.ts'
import { PATHS } from '../../oauth/paths.ts'
import type { Screen } from '../account/account.ts'
import type { AccountParts } from '../account/deps.ts'
import { PAGE, signInFirst } from '../account/own-sign-in.ts'
import { refused } from '../account/page-parts.ts'
import { type AccountVisit, isOwnForm, personOf } from '../account/visit.ts'
import type { Elsewhere, SignedIn } from '../sign-in/sign-in.ts'
import { comeBack, leave } from './come-back.ts'
import type { UpstreamDeps, UpstreamParts } from './deps.ts'
import { goOn, makeLink, mayUse, takeCode } from './enter.ts'
import { disconnect, linkToLinks, showLinks } from './own-links.ts'
import { problemPage, proofPage, providerButtons } from './pages.ts'
import type { Stranger } from './sealed.ts'
import { askForSecond, PROOF, takeSecond } from './second-factor-proof.ts'

export function upstreamScreens(deps: UpstreamDeps): (path: string) => Screen | undefined {
  const at = (account: AccountParts): UpstreamParts => ({ ...deps, account })
  const own: Screen = {
    async show(account, visit) {
      const person = await personOf(account, visit)
      return person === null
        ? signInFirst(account, visit, PATHS.accountProviders)
        : showLinks(at(account), visit, person)
    },
    act: (account, visit, form) => act(at(account), visit, form),
  }
  const proof: Screen = {
    show: (account, visit) => showProof(at(account), visit),
    act: (account, visit, form) => prove(at(account), visit, form),
  }
  const returnTo = (id: string): Screen => ({ show: (account, visit) => comeBack(at(account), visit, id) })
  const returning = `${PATHS.accountProviders}/`
  return (path) => {
    if (path === PATHS.accountProviders) return own
    if (path === PATHS.accountProof) return proof
    return path.startsWith(returning) ? returnTo(path.slice(returning.length)) : undefined
  }
}

export const createElsewhere = ({ providers, sealed }: Pick<UpstreamDeps, 'providers' | 'sealed'>): Elsewhere => ({
  async buttons(frame, target, organization) {
    const offered = await providers.offered(organization)
    return providerButtons(frame, offered, { target: sealed.sealTarget(target) }, (words) => words.upstream.signInWith)
  },
  link: async (frame) => linkToLinks(frame, (await providers.list()).length > 0),
  handedOver: sealed.handedOver,
})

async function act(parts: UpstreamParts, visit: AccountVisit, form: URLSearchParams): Promise<View | null> {
  const { account, sealed } = parts
  const person = await personOf(account, visit)
  const id = form.get('provider') ?? ''
  const action = form.get('action')
  if (action === null) {
    const target = sealed.openTarget(form.get('target') ?? '')
    return target === null ? refused(visit, 'oldForm') : leave(parts, visit, { id, target, person, connects: false })
  }
  if (person === null || !person.isFresh) return signInFirst(account, visit, PATHS.accountProviders)
  if (!isOwnForm(account, person, form)) return refused(visit, 'oldForm')
  if (action === 'disconnect') return disconnect(parts, visit, { person, form })
  return leave(parts, visit, { id, target: { path: PATHS.accountProviders }, person, connects: true })
}

async function showProof(parts: UpstreamParts, visit: AccountVisit): Promise<View> {
  const halfway = parts.sealed.halfway.of(visit.req)
  if (halfway !== null) return askForSecond(parts, visit, { waiting: halfway, hidden: {} })
  const found = await strangerOf(parts, visit)
  if (found === null) return problemPage(visit.frame, 'lost')
  const { stranger, provider } = found
  const { person, target } = stranger
  return proofPage(visit.frame, { provider: provider.name, person, target, email: person.email ?? '', problem: null })
}

/** Reads the provider again: meanwhile it may be deleted, or restricted to others. */
async function strangerOf({ sealed, providers }: UpstreamParts, { req }: AccountVisit) {
  const stranger = sealed.stranger.of(req)
  const provider = stranger === null ? null : await providers.find(stranger.provider)
  if (stranger === null || provider === null || provider.issuer !== stranger.person.issuer) return null
  return { stranger, provider }
}

async function prove(parts: UpstreamParts, visit: AccountVisit, form: URLSearchParams): Promise<View | null> {
  const { account, sealed } = parts
  const halfway = sealed.halfway.of(visit.req)
  if (halfway !== null) return takeCode(parts, visit, { form, halfway })
  const found = await strangerOf(parts, visit)
  if (found === null) return problemPage(visit.frame, 'lost')
  const { stranger, provider } = found
  const theirs = { person: stranger.person, target: stranger.target }
  const accepted = form.get('password_accepted') ?? ''
  const waiting = account.signIn.open(accepted, PROOF)
  if (waiting !== null) {
    const hidden = { password_accepted: accepted }
    const taken = await takeSecond(parts, visit, { form, waiting, hidden })
    return 'signedIn' in taken ? proven(parts, visit, { stranger, signedIn: taken.signedIn }) : taken
  }
  const email = form.get('email') ?? ''
  const password = form.get('password') ?? ''
  const source = account.devices.source(visit.req)
  const outcome = await account.signIn.password({ email, password, client: PAGE, source })
  if ('problem' in outcome)
    return proofPage(visit.frame, { provider: provider.name, ...theirs, email, problem: outcome.problem })
  if (!('waiting' in outcome)) return proven(parts, visit, { stranger, signedIn: outcome })
  const hidden = { password_accepted: account.signIn.seal(outcome.waiting, PROOF) }
  return askForSecond(parts, visit, { waiting: outcome.waiting, hidden })
}

/** Links person and account, after a proof with all factors that the account demands. */
async function proven(
  parts: UpstreamParts,
  visit: AccountVisit,
  { stranger, signedIn }: { readonly stranger: Stranger; readonly signedIn: SignedIn },
): Promise<View | null> {
  const { providers, sealed } = parts
  const { person, target } = stranger
  const user = signedIn.accountId
  const provider = await providers.find(stranger.provider)
  if (provider === null) return problemPage(visit.frame, 'removed', { target })
  if (!(await mayUse(parts, provider, user)))
    return problemPage(visit.frame, 'notMember', { provider: provider.name, target })
  sealed.stranger.drop(visit.res)
  const problem = await makeLink(parts, { visit, provider, person }, { user, by: signedIn })
  return problem ?? goOn(parts, visit, { signedIn, target })
}
