/** Sends a browser to another provider, and receives the same browser back. */

import { randomBytes } from 'node:crypto'
import { lowerAscii } from '../../../shared/base/blanks.ts'
import { messageOf } from '../../../shared/base/error-message.ts'
import { inOneLine } from '../../../shared/token/provider-failure.ts'
import type { View } from '../../html/page.ts'
import { PATHS, urlOf } from '../../oauth/paths.ts'
import { goTo } from '../account/page-parts.ts'
import { type AccountVisit, type Person, personOf } from '../account/visit.ts'
import type { Target } from '../sign-in/sign-in.ts'
import { type UpstreamPerson, UpstreamRefused } from './client.ts'
import type { Come, UpstreamParts } from './deps.ts'
import { enter, FRESH_SECONDS, makeLink, mayUse } from './enter.ts'
import { connectedPage } from './own-links.ts'
import { problemPage } from './pages.ts'
import type { IdentityProvider, ProviderWithSecret } from './providers.ts'
import type { Way } from './sealed.ts'

/** Pages that need a recent sign-in before they show anything. */
const FRESH_PAGES: ReadonlySet<string> = new Set([PATHS.accountAuthenticator, PATHS.accountPasskeys])
const FIELD_CHARACTERS_MAX = 2_048

/** The provider's own redirect URI, so that no provider can answer for another (RFC 9700 section 4.4). */
const returnUrl = (issuer: string, id: string): string => urlOf(issuer, `${PATHS.accountProviders}/${id}`)

/** `person`: the person who is signed in here. `connects`: to connect the provider; else to sign in. `again`: sign in again there. */
export async function leave(
  { providers, client, sealed, account }: UpstreamParts,
  visit: AccountVisit,
  wanted: {
    readonly id: string
    readonly target: Target
    readonly person: Person | null
    readonly connects: boolean
    readonly again?: true
  },
): Promise<View | null> {
  const { id, target, person, connects } = wanted
  const provider = await providers.find(id)
  if (provider === null) return problemPage(visit.frame, 'removed', { target })
  const random = (): string => randomBytes(32).toString('base64url')
  const asked = { state: random(), nonce: random(), verifier: random() }
  // A person who is signed in already came for something that needs a recent sign-in.
  const fresh = !connects && (wanted.again === true || person !== null || needsFresh(target))
  const way: Way = {
    provider: id,
    issuer: provider.issuer,
    clientId: provider.client_id,
    fresh,
    target,
    nonce: asked.nonce,
    verifier: asked.verifier,
    at: Math.floor(account.clock() / 1_000),
    connects: connects && person !== null ? { user: person.user.id, session: person.session.uid } : null,
  }
  try {
    const redirectUri = returnUrl(account.issuer, id)
    const url = await client.authorizationUrl(provider, { ...asked, redirectUri, fresh })
    sealed.way.keep(visit.res, way, asked.state)
    goTo(visit.res, url)
    return null
  } catch (err) {
    return failed(account, visit, { provider, target, err })
  }
}

const needsFresh = (target: Target): boolean =>
  'path' in target ? FRESH_PAGES.has(target.path.split('?', 1)[0] ?? '') : target.fresh

export async function comeBack(parts: UpstreamParts, visit: AccountVisit, id: string): Promise<View | null> {
  const { account, sealed, providers, returns } = parts
  const query = (visit.req.url ?? '').split('?')[1] ?? ''
  const parameters = new URLSearchParams(query)
  const state = parameters.get('state') ?? ''
  const way = state === '' || query.length > FIELD_CHARACTERS_MAX * 2 ? null : sealed.way.of(visit.req, state)
  // Checked before anything else counts: another browser, another state, or too late.
  if (way === null || way.provider !== id) return problemPage(visit.frame, 'lost')
  sealed.way.drop(visit.res)
  sealed.halfway.drop(visit.res)
  sealed.stranger.drop(visit.res)
  const { target } = way
  if (!(await returns.take(`return ${state}`, 1))) return problemPage(visit.frame, 'lost', { target })
  const provider = await providers.find(id)
  if (provider === null || provider.issuer !== way.issuer || provider.client_id !== way.clientId)
    return problemPage(visit.frame, 'removed', { target })
  if (parameters.get('error') === 'access_denied') {
    // Providers also answer this about a person who may not use our client.
    const described = inOneLine(parameters.get('error_description') ?? '')
    const reason = ['access_denied', described].filter((words) => words !== '').join(': ')
    account.log.warn({ event: 'foreign_sign_in_refused', provider: id, reason })
    return problemPage(visit.frame, 'cancelled', { provider: provider.name, target })
  }
  const callback = new URL(`${returnUrl(account.issuer, id)}?${query}`)
  let person: UpstreamPerson
  try {
    person = await parts.client.redeem(provider, callback, { ...way, state })
  } catch (err) {
    return failed(account, visit, { provider, target, err })
  }
  const problem = problemOf(parts, provider, { person, way })
  if (problem !== null) {
    const reason = problem === 'domain' ? addressProblem(person) : problem
    account.log.warn({ event: 'foreign_sign_in_refused', provider: id, reason })
    return problemPage(visit.frame, problem, { provider: provider.name, target })
  }
  const come = { visit, provider, person, fresh: way.fresh }
  if (way.connects !== null) return connect(parts, come, way.connects)
  const entered = await enter(parts, come, target)
  if (entered !== 'again') return entered
  return leave(parts, visit, { id, target, person: null, connects: false, again: true })
}

function problemOf(
  { account }: UpstreamParts,
  { email_domains: domains }: IdentityProvider,
  { person, way }: { readonly person: UpstreamPerson; readonly way: Way },
): 'notFresh' | 'domain' | null {
  const { signedInAt, email, emailVerified } = person
  if (way.fresh && signedInAt !== null && account.clock() / 1_000 - signedInAt > FRESH_SECONDS) return 'notFresh'
  if (domains === undefined) return null
  // RFC 5321 section 4.1.2: a quoted name before the last @ may contain more of them.
  const domain = lowerAscii((email ?? '').slice((email ?? '').lastIndexOf('@') + 1))
  return emailVerified && domains.includes(domain) ? null : 'domain'
}

/** The reason for the log. The page does not tell which addresses would be accepted. */
function addressProblem({ email, emailVerified }: UpstreamPerson): string {
  if (email === null) return 'domain: the provider gives no address'
  return emailVerified ? 'domain: the address is of another one' : 'domain: the provider does not say email_verified'
}

/** Connects the provider, if the person is still signed in, in the same session as when they left. */
async function connect(
  parts: UpstreamParts,
  { visit, provider, person }: Come,
  by: { readonly user: string; readonly session: string },
): Promise<View> {
  const present = await personOf(parts.account, visit)
  if (present === null || !present.isFresh || present.user.id !== by.user || present.session.uid !== by.session)
    return problemPage(visit.frame, 'otherPerson')
  if (!(await mayUse(parts, provider, by.user)))
    return problemPage(visit.frame, 'notMember', { provider: provider.name })
  const problem = await makeLink(parts, { visit, provider, person }, { user: by.user, by })
  return problem ?? connectedPage(visit.frame, provider.name, person)
}

function failed(
  { log }: UpstreamParts['account'],
  { frame }: AccountVisit,
  { provider, target, err }: { readonly provider: ProviderWithSecret; readonly target: Target; readonly err: unknown },
): View {
  const isTheirs = err instanceof UpstreamRefused
  const reason = messageOf(err)
  log.warn({ event: 'foreign_sign_in_failed', provider: provider.id, issuer: provider.issuer, reason })
  return problemPage(frame, isTheirs ? 'refused' : 'unreachable', { provider: provider.name, target })
}
