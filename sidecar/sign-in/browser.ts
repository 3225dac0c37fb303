/** Makes the Browser of a request: opens its session, and answers people with pages. */
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'
import { type DenialAnswer, denialStatus } from '../enforce/denial-response.ts'
import type { Browser } from '../enforce/enforce.ts'
import type { ClientRequest } from '../http/client-request.ts'
import { removals, separateCookies } from '../http/cookies.ts'
import { malformed, RequestError } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import { readWhole } from '../routes/json-body.ts'
import { type Goal, homeFrom, isLoop, lead, otherAccount, sendTo, signInUrl } from './begin-sign-in.ts'
import { contextOfRequest, OWN_PATHS, ownUrl, PATHS, type SignInContext, urlAt } from './context.ts'
import { denialPage, isRefusal } from './denial-pages.ts'
import { frameFor, type Reader, readerOf, requireOwnPage } from './navigation.ts'
import { answerOwn } from './own-pages.ts'
import type { Act, Frame } from './pages.ts'
import { SignInRefused, type Tokens } from './provider.ts'
import type { Session } from './session.ts'
import { SESSION_COOKIE } from './session-cookies.ts'
import type { OwnCookies } from './session-store.ts'
import { ownerProblem } from './token-owner.ts'

const FORM = { bytesMax: 16_384, timeoutMs: 10_000 }
/** How often the cookie or record is written again within the time that a session may be idle. */
const TOUCHES = 4
/** Denials after which the person is asked to sign in. */
const NOT_SIGNED_IN = new Set(['token_missing', 'token_invalid', 'token_expired'])

export function createBrowser(arrived: ClientRequest, context: SignInContext, idleMaxMs: number): Browser {
  const { site, sessions } = context
  const { raw, own, readings, planted } = separateCookies(arrived.raw)
  const client = raw === arrived.raw ? arrived : { ...arrived, raw }
  let seen: InboundRequest | null = null
  let session: Session | null = null
  let cookies: readonly string[] = []

  /** True at the host for which sessions exist. On another host, the cookie was not set by us. */
  const isHere = ({ host }: InboundRequest): boolean => host.hostname === site.hostname

  /** Fields, names and values alternating, that remove cookies which another page set: these could hide a session, or fill requests. */
  function cleaning(): string[] {
    if (planted.length === 0 || seen === null || !isHere(seen)) return []
    const path = site.base + seen.target.path
    return removals(planted, { hostname: site.hostname, path }).flatMap((value) => ['set-cookie', value])
  }

  return {
    client,
    hasSession: () => session !== null,
    isEnded: async () => session !== null && sessions.isEnded(session),
    fields() {
      const set = [...cleaning(), ...cookies.flatMap((value) => ['set-cookie', value])]
      return set.length === 0 ? set : [...set, 'cache-control', 'no-store']
    },
    takes(request) {
      seen = request
      return isHere(request) && request.target.path.startsWith(OWN_PATHS)
    },
    async authorize(request, { upgrade, renews }) {
      if (!own.has(SESSION_COOKIE) || !isHere(request)) return request
      // The request has two identities: sidecar and service could each mean another one.
      if (request.authorization.length > 0) throw malformed('A request has either credentials or a session, not both')
      requireOwnPage(request, { origin: site.origin, upgrade })
      const opened = await openSession(own, context, renews ? idleMaxMs : null)
      if (opened === null) return request
      if (!renews) return withToken(request, opened.session)
      session = opened.session
      cookies = opened.cookies
      return withToken(request, session)
    },
    async answer(denial, requestId) {
      const { code, route, members } = denial
      if (seen === null || route?.signIn === false) return null
      const reader = readerOf(seen)
      if (reader === 'program') return null
      const back = seen.method === 'GET' || seen.method === 'HEAD' ? seen.target.raw : '/'
      const isCured = NOT_SIGNED_IN.has(code) || (code === 'step_up_required' && session !== null)
      if (isCured && isHere(seen)) {
        const goal = { back, stepUp: code === 'step_up_required' ? (members.stepUp ?? null) : null }
        return answerBySignIn({ denial, requestId, reader, goal }, { seen, session, own }, context)
      }
      const frame = frameFor(seen, context.theme)
      const acts = isHere(seen) ? actsFor(code, { seen, back, isSignedIn: session !== null, frame }, context) : []
      return denialPage(frame, denial, { requestId, path: seen.target.path, acts })
    },
    async page(request, requestId) {
      try {
        const readForm = (): Promise<Buffer> => readWhole(client, request, FORM)
        const answer = await answerOwn({ request, own, readings, readForm }, contextOfRequest(context, requestId))
        // The fields that the page itself sets come last, so that they win.
        return { ...answer, fields: [...cleaning(), ...answer.fields, 'x-request-id', requestId] }
      } catch (err) {
        return failedPage(err, { request, requestId, context })
      }
    },
  }
}

/** Sends a document request to an issuer. Other requests, and those in a loop, get a page with a link to the sign-in. */
async function answerBySignIn(
  about: {
    readonly denial: Parameters<Browser['answer']>[0]
    readonly requestId: string
    readonly reader: Reader
    readonly goal: Goal
  },
  { seen, session, own }: { readonly seen: InboundRequest; readonly session: Session | null; readonly own: OwnCookies },
  shared: SignInContext,
): Promise<DenialAnswer> {
  const { denial, requestId, reader, goal } = about
  const context = contextOfRequest(shared, requestId)
  const frame = frameFor(seen, context.theme)
  if (reader === 'document' && !isLoop(goal, own)) {
    const provider = goal.stepUp === null ? undefined : context.providers.get(session?.provider ?? '')
    const asker = { own, address: seen.clientAddress, frame }
    // The cookie of the ended session is not removed: in another tab the browser may already have a new one of this name.
    return provider === undefined ? lead(goal, asker, context) : sendTo(provider, goal, asker, context)
  }
  const { acts: labels } = frame.words
  const acts: readonly Act[] = [
    { label: labels.signIn, href: signInUrl(context, goal) },
    // The person's session lacks a permission that another account may have.
    ...(session === null ? [] : [otherAccount(goal, labels, context)]),
    ...homeFrom(seen.target.path, labels, context),
  ]
  return denialPage(frame, denial, { requestId, path: seen.target.path, acts })
}

const SERVER_ERRORS = 500

/** Links for a person after a denial that signing in again does not resolve. */
function actsFor(
  code: ProblemCode,
  about: {
    readonly seen: InboundRequest
    readonly back: string
    readonly isSignedIn: boolean
    readonly frame: Frame
  },
  context: SignInContext,
): readonly Act[] {
  const { seen, back, isSignedIn, frame } = about
  const { acts: labels } = frame.words
  const { site } = context
  const goal = { back, stepUp: null, asksWho: true } as const
  const may = [
    isSignedIn && isRefusal(code) && { label: labels.otherAccount, href: signInUrl(context, goal) },
    // Only for GET: a link would send a form again without its content.
    denialStatus(code) >= SERVER_ERRORS && seen.method === 'GET' && { label: labels.again, href: urlAt(site, back) },
    seen.target.path !== '/' && { label: labels.home, href: urlAt(site, '/'), plain: true as const },
    isSignedIn && { label: labels.signOut, href: ownUrl(site, PATHS.signOut), plain: true as const },
  ]
  return may.filter((act) => act !== false)
}

function failedPage(
  err: unknown,
  about: { readonly request: InboundRequest; readonly requestId: string; readonly context: SignInContext },
): DenialAnswer {
  const { request, requestId, context } = about
  const { path } = request.target
  const frame = frameFor(request, context.theme)
  const acts: Act[] = [{ label: frame.words.acts.home, href: urlAt(context.site, '/'), plain: true }]
  const known = err instanceof RequestError ? { code: err.code, members: { detail: err.message } } : null
  if (known === null) context.log.warn({ event: 'sign_in_failed', request_id: requestId, reason: messageOf(err) })
  const denial = known ?? { code: 'issuer_unavailable' as const, members: {} }
  return denialPage(frame, { ...denial, subject: null }, { requestId, path, acts })
}

/** `cookies`: values that keep the session. `idleMaxMs` null: the session is not extended. Null: the browser has no session. */
async function openSession(
  own: OwnCookies,
  context: SignInContext,
  idleMaxMs: number | null,
): Promise<{ readonly session: Session; readonly cookies: readonly string[] } | null> {
  const { sessions, clock } = context
  const found = await sessions.find(own)
  const provider = found === null ? undefined : context.providers.get(found.provider)
  if (found === null || provider?.entry.issuer !== found.issuer) return null
  if (idleMaxMs === null) return { session: found, cookies: [] }
  const renewed = await context.refresher.renew(found, {
    reread: sessions.reread,
    refresh: async (former) => {
      const next = await counted(former, context, async () =>
        renewedBy(former, await provider.refresh(former.refreshToken ?? ''), context),
      )
      if (context.memory.isShared) await sessions.keep(next, own)
      return next
    },
  })
  if (renewed === null) return null
  const isIdle = clock() - renewed.seenMs >= idleMaxMs / TOUCHES
  if (renewed === found && !isIdle) return { session: found, cookies: [] }
  const session = { ...renewed, seenMs: clock() }
  // If the session has become too large for cookies, it continues with its former tokens.
  return { session, cookies: (await sessions.keep(session, own)) ?? [] }
}

function withToken(request: InboundRequest, { accessToken }: Session): InboundRequest {
  const credentials = `Bearer ${accessToken}`
  return {
    ...request,
    authorization: [credentials],
    raw: [...request.raw, 'authorization', credentials],
    names: [...request.names, 'authorization'],
  }
}

async function counted({ issuer }: Session, { count }: SignInContext, renew: () => Promise<Session>): Promise<Session> {
  try {
    const next = await renew()
    count({ issuer, step: 'renewed', outcome: 'done' })
    return next
  } catch (err) {
    const isEnded = err instanceof SignInRefused && err.code === 'invalid_grant'
    count({ issuer, step: 'renewed', outcome: isEnded ? 'ended_by_issuer' : 'failed' })
    throw err
  }
}

/** Rejects with TokenError for tokens that this sidecar would refuse. */
async function renewedBy(former: Session, tokens: Tokens, context: SignInContext): Promise<Session> {
  const { clock } = context
  const claims = await context.tokens.verify(tokens.accessToken)
  const problem = ownerProblem(claims, former, context)
  if (problem !== null) throw new Error(problem)
  // The refreshed ID token must be about the same subject (OpenID Connect Core section 12.2).
  if (tokens.claims !== null && tokens.claims.sub !== former.subject)
    throw new Error('the ID token names somebody else')
  return {
    ...former,
    accessToken: tokens.accessToken,
    tokenGotMs: clock(),
    tokenExpiresMs: claims.expiresAtMs,
    // RFC 6749 section 6: without a new one, the old one stays.
    refreshToken: tokens.refreshToken ?? former.refreshToken,
    idToken: tokens.idToken ?? former.idToken,
    seenMs: clock(),
  }
}
