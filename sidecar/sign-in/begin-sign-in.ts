/** Sends a person to sign in: to the only provider, to the one that they chose, or to the page to choose on. */

import { clientOf } from '../../pdp/shared/base/addresses.ts'
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import type { DenialAnswer } from '../enforce/denial-response.ts'
import { OWN_COOKIES, ownCookie } from '../http/cookies.ts'
import type { StepUp } from '../routes/step-up.ts'
import { ownUrl, PATHS, type SignInContext } from './context.ts'
import { chooserPage, pageAnswer, redirect } from './pages.ts'
import { begin, shortened } from './pending-sign-in.ts'
import type { Provider } from './provider.ts'
import { parseJson } from './session.ts'
import type { OwnCookies } from './session-store.ts'

/** Path and query where the person goes on, and how strong the sign-in must be. */
export type Goal = { readonly back: string; readonly stepUp: StepUp | null }
export const HOME: Goal = { back: '/', stepUp: null }

/** A browser that begins a sign-in: its cookies and its address. */
export type Asker = { readonly own: OwnCookies; readonly address: string }

const LANDED_COOKIE = `${OWN_COOKIES}landed`
/** A second sign-in within this time would be a loop that no person can leave. */
const LANDED_SECONDS = 20
const NOT_ANSWERING = 503
const TOO_MANY = 429

const landedFor = ({ stepUp }: Goal): string => (stepUp === null ? 'in' : 'up')

/** For Set-Cookie: the browser came back from a sign-in for this. */
export const landedCookie = (goal: Goal): string => ownCookie(LANDED_COOKIE, landedFor(goal), LANDED_SECONDS)

/** True when the browser came back from such a sign-in just now, and it has not helped. */
export const isLoop = (goal: Goal, own: OwnCookies): boolean => own.get(LANDED_COOKIE) === landedFor(goal)

/** The address of the page that leads to a sign-in; its goal is sealed, so nobody else can make one. */
export const signInUrl = ({ site, sealing }: SignInContext, { back, stepUp }: Goal, name = ''): string =>
  `${ownUrl(site, PATHS.signIn, name)}?goal=${sealing.seal('back', JSON.stringify({ back: shortened(back), stepUp }))}`

/** The start for an address that was not sealed here. */
export function goalOf(query: string | null, { sealing }: SignInContext): Goal {
  const [sealed = '', ...more] = new URLSearchParams(query ?? '').getAll('goal')
  const text = more.length > 0 ? null : sealing.open('back', sealed)
  return text === null ? HOME : ((parseJson(text) ?? HOME) as Goal)
}

/** To the provider, or to the page where the person chooses one. */
export async function lead(goal: Goal, asker: Asker, context: SignInContext): Promise<DenialAnswer> {
  const [only, ...others] = [...context.providers.values()]
  if (only !== undefined && others.length === 0) return sendTo(only, goal, asker, context)
  return redirect(302, signInUrl(context, goal))
}

export function choose(goal: Goal, context: SignInContext): DenialAnswer {
  const choices = [...context.providers.values()].map(({ entry }) => ({
    label: entry.label,
    href: signInUrl(context, goal, entry.name),
  }))
  return chooserPage(new URL(context.site.origin).host, choices)
}

export async function sendTo(
  provider: Provider,
  goal: Goal,
  { own, address }: Asker,
  context: SignInContext,
): Promise<DenialAnswer> {
  const { entry } = provider
  if (!context.starts.take(clientOf(address))) {
    context.count({ issuer: entry.issuer, step: 'sent', outcome: 'too_many' })
    const text = 'Too many sign-ins began at your address. Try again in a minute.'
    const acts = [{ label: 'Try again', href: signInUrl(context, goal, entry.name) }]
    return pageAnswer(TOO_MANY, { title: 'Too much is going on', paragraphs: [text], acts }, ['retry-after', '60'])
  }
  const begun = begin({ provider: entry.name, ...goal }, own, context)
  try {
    const url = await provider.authorizationUrl({
      ...begun,
      redirectUri: ownUrl(context.site, PATHS.callback, entry.name),
      acrValues: goal.stepUp?.acrValues ?? [],
      maxAgeSeconds: goal.stepUp?.maxAgeSeconds ?? null,
    })
    context.count({ issuer: entry.issuer, step: 'sent', outcome: 'done' })
    const { fields, ...rest } = redirect(302, url)
    return { ...rest, fields: [...fields, ...begun.cookies.flatMap((value) => ['set-cookie', value])] }
  } catch (err) {
    const reason = messageOf(err)
    context.log.warn({ event: 'sign_in_failed', issuer: entry.issuer, reason })
    context.count({ issuer: entry.issuer, step: 'sent', outcome: 'issuer_unavailable' })
    return pageAnswer(NOT_ANSWERING, {
      title: 'Signing in does not work at the moment',
      paragraphs: [`${entry.label} does not answer, or did not take the request. Try again in a moment.`],
      acts: [{ label: 'Try again', href: signInUrl(context, goal, entry.name) }],
    })
  }
}
