/** The browser comes back from the issuer: its code becomes a session, if this browser began the sign-in. */
import { randomBytes } from 'node:crypto'
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import type { DenialAnswer } from '../enforce/denial-response.ts'
import { RequestError } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import { type Goal, HOME, landedCookie, signInUrl } from './begin-sign-in.ts'
import { ownUrl, PATHS, type SignInContext, urlAt } from './context.ts'
import { type PageText, pageAnswer, redirect } from './pages.ts'
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

/** `name`: of the provider, at the end of the path. Rejects with RequestError. */
export async function returned(
  request: InboundRequest,
  name: string,
  { own, context }: { readonly own: OwnCookies; readonly context: SignInContext },
): Promise<DenialAnswer> {
  const query = new URLSearchParams(request.target.query ?? '')
  const [state = '', ...more] = query.getAll('state')
  const found: Returned = more.length > 0 ? { kind: 'foreign', start: null } : finish(state, own, context)
  if (found.kind !== 'ours') return unfinished(found, { own, context })
  const { start, cookie, ...secrets } = found
  const provider = context.providers.get(start.provider)
  // RFC 9700 section 4.4.2.2: the answer of one issuer must not come to the address of another.
  if (provider === undefined || start.provider !== name)
    return unfinished({ kind: 'foreign', start: null }, { own, context })
  const { issuer } = provider.entry
  const failed = (outcome: keyof typeof STATUSES, text: PageText, reason: string): DenialAnswer => {
    context.log.warn({ event: 'sign_in_failed', issuer, reason })
    context.count({ issuer, step: 'returned', outcome })
    const acts = [{ label: 'Try again', href: signInUrl(context, start) }]
    return pageAnswer(STATUSES[outcome], { acts, ...text }, ['set-cookie', removal(cookie)])
  }
  try {
    const callback = new URL(`${ownUrl(context.site, PATHS.callback, name)}?${request.target.query ?? ''}`)
    const maxAgeSeconds = start.stepUp?.maxAgeSeconds ?? null
    const tokens = await provider.redeem(callback, { state, ...secrets, maxAgeSeconds })
    const session = await sessionOf(tokens, provider, context)
    if (typeof session === 'string') return failed('tokens_refused', NOT_ACCEPTED, session)
    if (isTooWeak(tokens, start))
      return failed('too_weak', WEAK, 'acr_values does not contain the acr claim of the ID token')
    return await land(session, { goal: start, cookie, own, context })
  } catch (err) {
    if (!(err instanceof SignInRefused)) {
      if (!(err instanceof RequestError)) context.count({ issuer, step: 'returned', outcome: 'issuer_unavailable' })
      throw err
    }
    const outcome = err.code === 'access_denied' ? 'cancelled' : 'issuer_refused'
    return failed(outcome, refusedBy(err), `${err.code}: ${err.message}`)
  }
}

const NOT_ACCEPTED: PageText = {
  title: 'This sign-in is not accepted here',
  paragraphs: [
    'You signed in, but what the identity provider sent is not meant for this service. Its operator can see why in the log.',
  ],
}
const WEAK: PageText = {
  title: 'A stronger sign-in is needed',
  paragraphs: [
    'The page that you wanted needs a stronger sign-in, such as a second factor, and the identity provider did not ask you for it.',
  ],
}

function refusedBy({ code }: SignInRefused): PageText {
  if (code === 'access_denied')
    return {
      title: 'You did not sign in',
      paragraphs: ['The identity provider says that the sign-in was cancelled or refused.'],
    }
  return {
    title: 'Signing in did not work',
    paragraphs: ['The identity provider refused the sign-in, or its answer was not valid. Nobody is signed in.'],
    about: [['Reason', code]],
  }
}

/** Redirects only with a session, so that a browser without cookies ends here and not in a loop. */
async function unfinished(
  { kind, start }: Extract<Returned, { kind: 'foreign' | 'stranger' | 'late' }>,
  { own, context }: { readonly own: OwnCookies; readonly context: SignInContext },
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
  const why = {
    foreign: 'This address is not the end of a sign-in that began here.',
    late: 'The sign-in took too long.',
    stranger:
      'This sign-in was finished before, or began in another browser, or your browser does not keep cookies of this site.',
  }[kind]
  // A browser with many tabs keeps the latest starts: this one waits for another to sign the person in.
  const retry = kind === 'stranger' && hasStarts(own) ? ['refresh', RETRY_SECONDS] : []
  return pageAnswer(
    REFUSED,
    {
      title: 'Signing in did not work',
      paragraphs: [
        why,
        'Nobody was signed in by it. You can begin again; for that, cookies of this site must be allowed.',
      ],
      acts: [{ label: 'Sign in', href: signInUrl(context, goal) }],
    },
    retry,
  )
}

/** A sentence for the log when the tokens do not belong to a person whom this sidecar admits. */
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

/** An ID token without acr leaves it to the PDP, or to the access token. */
const isTooWeak = ({ claims }: Tokens, { stepUp }: Goal): boolean =>
  stepUp !== null &&
  stepUp.acrValues.length > 0 &&
  typeof claims?.acr === 'string' &&
  !stepUp.acrValues.includes(claims.acr)

/**
 * Each sign-in gets a new session. That of somebody else ends, because an attacker may have planted it. One of the same person
 * goes on: other tabs may have requests under way with it.
 */
async function land(
  session: Session,
  about: { readonly goal: Goal; readonly cookie: string; readonly own: OwnCookies; readonly context: SignInContext },
): Promise<DenialAnswer> {
  const { goal, cookie, own, context } = about
  const former = await context.sessions.find(own)
  const isSame = former?.issuer === session.issuer && former.subject === session.subject
  if (former !== null && !isSame) await context.sessions.end(former)
  const kept = await context.sessions.keep(session, own)
  if (kept === null) {
    context.log.warn({ event: 'session_too_large', issuer: session.issuer })
    context.count({ issuer: session.issuer, step: 'returned', outcome: 'too_large' })
    const text = 'Its tokens are too large for cookies. The operator of this service can keep sessions in Redis.'
    return pageAnswer(FAILED, { title: 'The session is too large', paragraphs: [text] })
  }
  context.log.info({ event: 'signed_in', issuer: session.issuer })
  context.count({ issuer: session.issuer, step: 'returned', outcome: 'done' })
  const { fields, ...rest } = redirect(303, urlAt(context.site, goal.back))
  const cookies = [...kept, removal(cookie), landedCookie(goal)]
  return { ...rest, fields: [...fields, ...cookies.flatMap((value) => ['set-cookie', value])] }
}
