/** Sends a person to sign in: to the only provider, to the chosen one, or to the page for choosing. */

import { clientOf } from '../../pdp/shared/base/addresses.ts'
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import { fill } from '../../pdp/shared/pages/words.ts'
import type { DenialAnswer } from '../enforce/denial-response.ts'
import { OWN_COOKIES, ownCookie } from '../http/cookies.ts'
import { ownUrl, PATHS, type SignInContext, urlAt } from './context.ts'
import { type Act, askLine, chooserPage, type Frame, pageAnswer, redirect, shownStrong } from './pages.ts'
import { begin, type Start, shortened } from './pending-sign-in.ts'
import type { Provider } from './provider.ts'
import { parseJson } from './session.ts'
import type { OwnCookies } from './session-store.ts'

/** The path and query to which the person returns, and how strong the sign-in must be. */
export type Goal = Omit<Start, 'provider'>
export const HOME: Goal = { back: '/', stepUp: null }

/** A browser that begins a sign-in: its cookies, its address, and how its pages look. */
export type Asker = { readonly own: OwnCookies; readonly address: string; readonly frame: Frame }

const LANDED_COOKIE = `${OWN_COOKIES}landed`
/** A second sign-in within this time counts as a loop, which no person could leave. */
const LANDED_SECONDS = 20
const NOT_ANSWERING = 503
const TOO_MANY = 429

const landedFor = ({ stepUp }: Goal): string => (stepUp === null ? 'in' : 'up')

/** A value for Set-Cookie: the browser has just returned from a sign-in for this goal. */
export const landedCookie = (goal: Goal): string => ownCookie(LANDED_COOKIE, landedFor(goal), LANDED_SECONDS)

/** True when the browser has just come back from a sign-in of the same kind, so that another one would not help. */
export const isLoop = (goal: Goal, own: OwnCookies): boolean => own.get(LANDED_COOKIE) === landedFor(goal)

/** The address of the page that leads to a sign-in. Its goal is sealed: only the sidecar can make such addresses. */
export const signInUrl = ({ site, sealing }: SignInContext, goal: Goal, name = ''): string =>
  `${ownUrl(site, PATHS.signIn, name)}?goal=${sealing.seal('back', JSON.stringify({ ...goal, back: shortened(goal.back) }))}`

/** The goal in the address; the start page for one that was not sealed here. */
export function goalOf(query: string | null, { sealing }: SignInContext): Goal {
  const [sealed = '', ...more] = new URLSearchParams(query ?? '').getAll('goal')
  const text = more.length > 0 ? null : sealing.open('back', sealed)
  return text === null ? HOME : ((parseJson(text) ?? HOME) as Goal)
}

/** Sends the browser to the only provider, or to the page where the person chooses one. */
export async function lead(goal: Goal, asker: Asker, context: SignInContext): Promise<DenialAnswer> {
  const [only, ...others] = [...context.providers.values()]
  if (only !== undefined && others.length === 0) return sendTo(only, goal, asker, context)
  return redirect(302, signInUrl(context, goal))
}

export function choose(goal: Goal, frame: Frame, context: SignInContext): DenialAnswer {
  const choices = [...context.providers.values()].map(({ entry }) => ({
    label: entry.label,
    href: signInUrl(context, goal, entry.name),
  }))
  return chooserPage(frame, choices)
}

/** Ways on from a sign-in that did not work: the same again, another account, and the start page. */
export function waysOn(goal: Goal, { words: { acts: labels } }: Frame, context: SignInContext): readonly Act[] {
  const again = { label: labels.again, href: signInUrl(context, goal) }
  const others = goal.asksWho === true ? [] : [otherAccount(goal, labels, context)]
  return [again, ...others, ...homeFrom(goal.back, labels, context)]
}

/** The link to sign in with another account: the issuer must ask which one, even if it has a session. */
export const otherAccount = (goal: Goal, labels: Frame['words']['acts'], context: SignInContext): Act => ({
  label: labels.otherAccount,
  href: signInUrl(context, { ...goal, asksWho: true }),
  plain: true,
})

/** The link to the start page, for a person who comes from another page. */
export const homeFrom = (back: string, labels: Frame['words']['acts'], { site }: SignInContext): readonly Act[] =>
  back === '/' ? [] : [{ label: labels.home, href: urlAt(site, '/'), plain: true }]

/** The page while the issuer does not answer. */
export const awayPage = (frame: Frame, { entry }: Provider, acts: readonly Act[]): DenialAnswer =>
  pageAnswer(
    frame,
    NOT_ANSWERING,
    {
      title: frame.words.away.title,
      paragraphs: [fill(frame.words.away.text, { issuer: shownStrong(entry.label) }), ...askLine(frame)],
      acts,
    },
    ['retry-after', '1'],
  )

export async function sendTo(
  provider: Provider,
  goal: Goal,
  { own, address, frame }: Asker,
  context: SignInContext,
): Promise<DenialAnswer> {
  const { entry } = provider
  const { acts: labels, denials, tooMany } = frame.words
  const again = { label: labels.again, href: signInUrl(context, goal, entry.name) }
  // Only this issuer fails, so the page also offers the others.
  const chooser = { label: labels.otherAccount, href: signInUrl(context, goal), plain: true } as const
  const others = context.providers.size > 1 ? [chooser] : []
  const acts = [again, ...others, ...homeFrom(goal.back, labels, context)]
  if (!context.starts.take(clientOf(address))) {
    context.count({ issuer: entry.issuer, step: 'sent', outcome: 'too_many' })
    const text = { title: denials.busy.title, paragraphs: [tooMany.text], acts }
    return pageAnswer(frame, TOO_MANY, text, ['retry-after', '60'])
  }
  const begun = begin({ provider: entry.name, ...goal }, own, context)
  try {
    const url = await provider.authorizationUrl({
      ...begun,
      redirectUri: ownUrl(context.site, PATHS.callback, entry.name),
      acrValues: goal.stepUp?.acrValues ?? [],
      maxAgeSeconds: goal.stepUp?.maxAgeSeconds ?? null,
      asksWho: goal.asksWho === true,
    })
    context.count({ issuer: entry.issuer, step: 'sent', outcome: 'done' })
    const { fields, ...rest } = redirect(302, url)
    return { ...rest, fields: [...fields, ...begun.cookies.flatMap((value) => ['set-cookie', value])] }
  } catch (err) {
    const reason = messageOf(err)
    context.log.warn({ event: 'sign_in_failed', issuer: entry.issuer, reason })
    context.count({ issuer: entry.issuer, step: 'sent', outcome: 'issuer_unavailable' })
    return awayPage(frame, provider, acts)
  }
}
