/** Signs in a person of another provider: to the connected account, to a new one, or after a proof of an existing one. */
import { randomUUID } from 'node:crypto'
import { PdpError } from '../../../shared/domain/errors.ts'
import type { View } from '../../html/page.ts'
import { PATHS, urlOf } from '../../oauth/paths.ts'
import { begin } from '../account/own-sign-in.ts'
import { goTo } from '../account/page-parts.ts'
import type { AccountVisit } from '../account/visit.ts'
import { contextOf } from '../passwords/new-password.ts'
import { type Assurance, BY_PASSWORD, BY_PASSWORD_AND_CODE } from '../sign-in/acr.ts'
import type { SignedIn, Target } from '../sign-in/sign-in.ts'
import type { UpstreamPerson } from './client.ts'
import type { Come, UpstreamParts } from './deps.ts'
import type { Links } from './links.ts'
import { problemPage } from './pages.ts'
import type { IdentityProvider } from './providers.ts'
import type { Halfway } from './sealed.ts'
import { takeSecond } from './second-factor-proof.ts'

/** How long a sign-in counts as recent: as long as for changes of the account. */
export const FRESH_SECONDS = 900
/** How far the clocks of the two servers may differ. */
const CLOCKS_APART_SECONDS = 60
/** The strength of another provider's sign-in with one factor. */
export const BY_PROVIDER = { acr: BY_PASSWORD.acr, amr: ['fed'] } as const satisfies Assurance
/** The strength of a sign-in with two factors, if the provider is trusted to say so. */
const BY_TRUSTED_PROVIDER: Assurance = { acr: BY_PASSWORD_AND_CODE.acr, amr: ['fed', 'mfa'] }

/** `again`: the person must sign in again at the provider. */
export async function enter(parts: UpstreamParts, come: Come, target: Target): Promise<View | null | 'again'> {
  const { links } = parts
  const known = await links.userOf(come.person)
  const user = known ?? (await created(parts, come.provider, come.person)) ?? (await links.userOf(come.person))
  if (user !== null) return enterAs(parts, come, { user, target })
  // An account with the same address is not used: the person must prove which account is theirs.
  const { visit, provider, person } = come
  parts.sealed.stranger.keep(visit.res, { provider: provider.id, person, target, at: secondsOf(parts) })
  goTo(visit.res, urlOf(parts.account.issuer, PATHS.accountProof))
  return null
}

const secondsOf = ({ account }: UpstreamParts): number => Math.floor(account.clock() / 1_000)

/** A new account; null: the provider may create none, the address is unverified, or an account has it. */
async function created(
  parts: UpstreamParts,
  provider: IdentityProvider,
  person: UpstreamPerson,
): Promise<string | null> {
  const { email, emailVerified, name } = person
  if (provider.creates_accounts !== true || email === null || !emailVerified) return null
  const { directory, log } = parts.account
  if ((await directory.userByEmail(email)) !== null) return null
  const id = randomUUID()
  const user = { id, email, emailVerified: true, name, passwordHash: null }
  try {
    await directory.putUser(user, contextOf(id), async (tx) => {
      if (!(await parts.links.insert(tx, person, id))) throw new PdpError('conflict', 'this identity has an account')
    })
  } catch (err) {
    // Another first sign-in with this identity or this address was faster.
    if (err instanceof PdpError && err.code === 'conflict') return null
    throw err
  }
  log.info({ event: 'account_created', user: id, provider: provider.id })
  return id
}

async function enterAs(
  parts: UpstreamParts,
  come: Come,
  { user, target }: { readonly user: string; readonly target: Target },
): Promise<View | null | 'again'> {
  const { account, sealed } = parts
  const { visit, provider, person } = come
  if (!(await mayUse(parts, provider, user)))
    return problemPage(visit.frame, 'notMember', { provider: provider.name, target })
  const waiting = { accountId: user, ts: signedInAt(parts, come) }
  if (!(await account.isSignedIn(user, secondsOf(parts)))) return problemPage(visit.frame, 'blocked', { target })
  // The person was signed out here after that sign-in: the provider's older session must not sign in again.
  if (!(await account.isSignedIn(user, waiting.ts)))
    return come.fresh ? problemPage(visit.frame, 'notFresh', { provider: provider.name, target }) : 'again'
  const isTrusted = person.acr !== null && provider.trusted_acr?.includes(person.acr) === true
  if (!isTrusted && (await account.secondFactor.has(user))) {
    account.log.info({ event: 'foreign_sign_in_waits', user, provider: provider.id })
    sealed.halfway.keep(visit.res, { ...waiting, at: secondsOf(parts), provider: provider.id, target })
    goTo(visit.res, urlOf(account.issuer, PATHS.accountProof))
    return null
  }
  account.log.info({ event: 'foreign_sign_in', user, provider: provider.id })
  return goOn(parts, visit, { signedIn: { ...waiting, ...(isTrusted ? BY_TRUSTED_PROVIDER : BY_PROVIDER) }, target })
}

/**
 * The time of the provider's sign-in: a long session there is not a recent sign-in. Without a time, a sign-in counts as new only if we
 * asked for a new one.
 */
function signedInAt(parts: UpstreamParts, { person, fresh }: Come): number {
  const now = secondsOf(parts)
  // A time in the future does not count: some providers write milliseconds.
  const isSaid = person.signedInAt !== null && person.signedInAt <= now + CLOCKS_APART_SECONDS
  const there = isSaid ? person.signedInAt : fresh ? now : now - FRESH_SECONDS - 1
  return there > now - CLOCKS_APART_SECONDS ? now : Math.floor(there)
}

/**
 * True if the person may use the provider: everybody, or active members of its organizations. Managers of an organization's own provider
 * could sign in as any of its people, so these must have nothing elsewhere.
 */
export async function mayUse(
  { account, isOnlyIn }: UpstreamParts,
  { organization, organizations }: IdentityProvider,
  user: string,
): Promise<boolean> {
  if (organization !== undefined && !(await isOnlyIn(user, organization))) return false
  if (organizations === undefined) return true
  const memberships = await account.directory.activeMemberships(user)
  return memberships.some(({ organization: { id } }) => organizations.includes(id))
}

/** Links the provider's person with the account here. Returns the page with the reason why not; null: linked. */
export async function makeLink(
  { account, links }: UpstreamParts,
  { visit, provider, person }: Pick<Come, 'visit' | 'provider' | 'person'>,
  to: Parameters<Links['add']>[1],
): Promise<View | null> {
  const { user } = to
  if ((await links.userOf(person)) !== user && !(await links.add(person, to, contextOf(user))))
    return problemPage(visit.frame, 'taken', { provider: provider.name })
  account.log.info({ event: 'foreign_identity_connected', user, provider: provider.id })
  account.notices.send(user, 'serviceConnected', visit.frame)
  return null
}

/** Asks for the person's second factor here, after the provider's sign-in. */
export async function takeCode(
  parts: UpstreamParts,
  visit: AccountVisit,
  { form, halfway }: { readonly form: URLSearchParams; readonly halfway: Halfway },
): Promise<View | null> {
  const { account, providers, sealed } = parts
  const provider = await providers.find(halfway.provider)
  const { accountId, ts, target } = halfway
  if (provider === null) return problemPage(visit.frame, 'removed', { target })
  const taken = await takeSecond(parts, visit, { form, waiting: { accountId, ts }, hidden: {} })
  if (!('signedIn' in taken)) return taken
  sealed.halfway.drop(visit.res)
  const { signedIn } = taken
  account.log.info({ event: 'foreign_sign_in', user: accountId, provider: provider.id })
  const amr = ['fed', ...signedIn.amr.filter((method) => method !== 'pwd')]
  return goOn(parts, visit, { signedIn: { ...signedIn, amr }, target })
}

/** Continues to the page that the person wanted. */
export async function goOn(
  { account, sealed }: UpstreamParts,
  visit: AccountVisit,
  { signedIn, target }: { readonly signedIn: SignedIn; readonly target: Target },
): Promise<null> {
  const { issuer } = account
  if ('path' in target) {
    await begin(account, visit, signedIn)
    goTo(visit.res, urlOf(issuer, target.path))
    return null
  }
  account.devices.remember(visit.res, signedIn.accountId)
  sealed.handOver(visit.res, target.interaction, signedIn)
  goTo(visit.res, urlOf(issuer, `${PATHS.interaction}/${target.interaction}`))
  return null
}
