/** Handles the browser's return from the issuer: its code becomes a session, if this browser began the sign-in. */
import { randomBytes } from 'node:crypto'
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import type { DenialAnswer } from '../enforce/denial-response.ts'
import { RequestError } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import { awayPage, type Goal, HOME, homeFrom, landedCookie, signInUrl, waysOn } from './begin-sign-in.ts'
import { ownUrl, PATHS, type SignInContext, urlAt } from './context.ts'
import { askLine, type Frame, pageAnswer, redirect } from './pages.ts'
import { finish, hasStarts, type Returned } from './pending-sign-in.ts'
import { type Provider, SignInRefused, type Tokens } from './provider.ts'
import type { Session } from './session.ts'
import { removal } from './session-cookies.ts'
import type { OwnCookies } from './session-store.ts'
import { ownerProblem } from './token-owner.ts'

const ID_BYTES = 24
const REFUSED = 400
const FAILED = 502
const RETRY_SECONDS = '3'
const STATUSES = { cancelled: REFUSED, issuer_refused: REFUSED, tokens_refused: FAILED, too_weak: 403 } as const

type Visit = { readonly own: OwnCookies; readonly frame: Frame; readonly context: SignInContext }
type Texts = { readonly title: string; readonly text: string }

/** `name`: the provider's name, at the end of the path. Rejects with RequestError. */
export async function returned(
  request: InboundRequest,
  name: string,
  { own, frame, context }: Visit,
): Promise<DenialAnswer> {
  const query = new URLSearchParams(request.target.query ?? '')
  const [state = '', ...more] = query.getAll('state')
  const found: Returned = more.length > 0 ? { kind: 'foreign', start: null } : finish(state, own, context)
  if (found.kind !== 'ours') return unfinished(found, { own, frame, context })
  const { start, cookie, ...secrets } = found
  const provider = context.providers.get(start.provider)
  // RFC 9700 section 4.4.2.2: the answer of one issuer must not come to the address of another.
  if (provider === undefined || start.provider !== name)
    return unfinished({ kind: 'foreign', start: null }, { own, frame, context })
  const { issuer } = provider.entry
  const { returned: texts } = frame.words
  const failed = (outcome: keyof typeof STATUSES, why: Texts, reason: string, code?: string): DenialAnswer => {
    context.log.warn({ event: 'sign_in_failed', issuer, reason })
    context.count({ issuer, step: 'returned', outcome })
    const acts = waysOn(start, frame, context)
    const about = code === undefined ? [] : [[frame.words.about.reason, code] as const]
    const text = { title: why.title, paragraphs: [why.text, ...askLine(frame)], acts, about }
    return pageAnswer(frame, STATUSES[outcome], text, ['set-cookie', removal(cookie)])
  }
  try {
    const callback = new URL(`${ownUrl(context.site, PATHS.callback, name)}?${request.target.query ?? ''}`)
    const maxAgeSeconds = start.stepUp?.maxAgeSeconds ?? null
    const tokens = await provider.redeem(callback, { state, ...secrets, maxAgeSeconds })
    const session = await sessionOf(tokens, provider, context)
    if (typeof session === 'string') return failed('tokens_refused', texts.notAccepted, session)
    if (isTooWeak(tokens, start))
      return failed('too_weak', texts.weak, 'acr_values does not contain the acr claim of the ID token')
    return await land(session, { goal: start, cookie, own, frame, context })
  } catch (err) {
    if (!(err instanceof SignInRefused)) {
      if (err instanceof RequestError) throw err
      context.log.warn({ event: 'sign_in_failed', issuer, reason: messageOf(err) })
      context.count({ issuer, step: 'returned', outcome: 'issuer_unavailable' })
      return awayPage(frame, provider, waysOn(start, frame, context))
    }
    const reason = `${err.code}: ${err.message}`
    // RFC 9470 section 5: the person has no stronger way to sign in there.
    if (err.code === 'unmet_authentication_requirements') return failed('too_weak', texts.weak, reason)
    if (err.code === 'access_denied') return failed('cancelled', texts.cancelled, reason)
    return failed('issuer_refused', texts.refused, reason, err.code)
  }
}

/** The page for a sign-in that failed. Only a session leads to a redirect, so a browser without cookies ends here and not in a loop. */
async function unfinished(
  { kind, start }: Extract<Returned, { kind: 'foreign' | 'stranger' | 'late' }>,
  { own, frame, context }: Visit,
): Promise<DenialAnswer> {
  context.count({
    issuer: (start === null ? undefined : context.providers.get(start.provider))?.entry.issuer ?? '',
    step: 'returned',
    outcome: kind,
  })
  const goal: Goal = start ?? HOME
  if (start !== null && (await context.sessions.find(own)) !== null) {
    const { fields, ...rest } = redirect(303, urlAt(context.site, goal.back))
    return { ...rest, fields: [...fields, 'set-cookie', landedCookie(goal)] }
  }
  const { returned: texts } = frame.words
  // A browser with many tabs keeps only the latest starts, so this tab waits until another one has signed the person in.
  const retry = kind === 'stranger' && hasStarts(own) ? ['refresh', RETRY_SECONDS] : []
  const labels = frame.words.acts
  const acts = [{ label: labels.signIn, href: signInUrl(context, goal) }, ...homeFrom(goal.back, labels, context)]
  const text = { title: texts.unfinished, paragraphs: [texts[kind], texts.nobody], acts }
  return pageAnswer(frame, REFUSED, text, retry)
}

/** The session; a text is the reason, for the log, for which the tokens do not belong to a person whom this sidecar admits. */
async function sessionOf(tokens: Tokens, provider: Provider, context: SignInContext): Promise<Session | string> {
  const { accessToken, refreshToken, idToken, claims } = tokens
  const { issuer, name } = provider.entry
  const access = await Promise.resolve(context.tokens.verify(accessToken)).catch((err: unknown) => messageOf(err))
  if (typeof access === 'string') return access
  const subject = claims?.sub
  if (claims === null || typeof subject !== 'string') return 'there is no ID token'
  const problem = ownerProblem(access, { issuer, subject }, context)
  if (problem !== null) return problem
  const nowMs = context.clock()
  return {
    id: randomBytes(ID_BYTES).toString('base64url'),
    provider: name,
    issuer,
    subject,
    sid: typeof claims.sid === 'string' ? claims.sid : null,
    accessToken,
    tokenGotMs: nowMs,
    tokenExpiresMs: access.expiresAtMs,
    refreshToken,
    idToken,
    beganMs: nowMs,
    issuedMs: typeof claims.iat === 'number' ? claims.iat * 1_000 : null,
    seenMs: nowMs,
  }
}

/** True if the ID token's sign-in is too weak. Without acr, the PDP or the access token decides later. */
const isTooWeak = ({ claims }: Tokens, { stepUp }: Goal): boolean =>
  stepUp !== null &&
  stepUp.acrValues.length > 0 &&
  typeof claims?.acr === 'string' &&
  !stepUp.acrValues.includes(claims.acr)

/**
 * Begins a new session for each sign-in. A former session of another person ends, since an attacker may have planted it. A former one of
 * the same person continues, because other tabs may still use it.
 */
async function land(
  session: Session,
  about: Visit & { readonly goal: Goal; readonly cookie: string },
): Promise<DenialAnswer> {
  const { goal, cookie, own, frame, context } = about
  const former = await context.sessions.find(own)
  const isSame = former?.issuer === session.issuer && former.subject === session.subject
  if (former !== null && !isSame) await context.sessions.end(former)
  const kept = await context.sessions.keep(session, own)
  if (kept === null) {
    context.log.warn({ event: 'session_too_large', issuer: session.issuer })
    context.count({ issuer: session.issuer, step: 'returned', outcome: 'too_large' })
    const { title, text } = frame.words.returned.tooLarge
    return pageAnswer(frame, FAILED, {
      title,
      paragraphs: [text, ...askLine(frame)],
      acts: waysOn(goal, frame, context),
    })
  }
  context.log.info({ event: 'signed_in', issuer: session.issuer })
  context.count({ issuer: session.issuer, step: 'returned', outcome: 'done' })
  const { fields, ...rest } = redirect(303, urlAt(context.site, goal.back))
  const cookies = [...kept, removal(cookie), landedCookie(goal)]
  return { ...rest, fields: [...fields, ...cookies.flatMap((value) => ['set-cookie', value])] }
}
