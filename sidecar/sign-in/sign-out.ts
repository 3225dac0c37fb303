/** Ends sessions: by the person, on our own page, and by the issuer (OpenID Connect Back-Channel Logout 1.0). */

import { messageOf } from '../../pdp/shared/base/error-message.ts'
import { TokenError } from '../../pdp/shared/token/errors.ts'
import { type LogoutMemory, takeLogoutToken } from '../../pdp/shared/token/logout-token.ts'
import type { DenialAnswer } from '../enforce/denial-response.ts'
import { RequestError } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import { HOME, signInUrl } from './begin-sign-in.ts'
import { ownUrl, PATHS, type SignInContext, urlAt } from './context.ts'
import { requireOwnPage } from './navigation.ts'
import { type Frame, pageAnswer, redirect, signOutPage } from './pages.ts'
import type { Provider } from './provider.ts'
import type { Session } from './session.ts'
import { removal } from './session-cookies.ts'
import type { OwnCookies } from './session-store.ts'

export const askToSignOut = (frame: Frame, { site }: SignInContext): DenialAnswer =>
  signOutPage(frame, { action: ownUrl(site, PATHS.signOut), home: urlAt(site, '/') })

/**
 * `readings`: all ways to read the cookies; the session of each ends. Rejects with RequestError for the request of another site's page,
 * and when the end of the session cannot be stored.
 */
export async function signOut(
  request: InboundRequest,
  { readings, context }: { readonly readings: readonly OwnCookies[]; readonly context: SignInContext },
): Promise<DenialAnswer> {
  const { site, sessions, providers, log } = context
  requireOwnPage(request, { origin: site.origin, upgrade: false })
  const after = ownUrl(site, PATHS.signedOut)
  let next = after
  for (const own of readings) {
    const session = await sessions.find(own)
    if (session === null) continue
    await sessions.end(session)
    log.info({ event: 'signed_out', issuer: session.issuer, by: 'person' })
    context.count({ issuer: session.issuer, step: 'signed_out', outcome: 'by_person' })
    const provider = providers.get(session.provider)
    if (provider !== undefined) next = (await endAtIssuer(session, provider, { after, context })) ?? next
  }
  const { fields, ...rest } = redirect(303, next)
  const names = [...(readings[0]?.keys() ?? [])]
  return { ...rest, fields: [...fields, ...names.flatMap((name) => ['set-cookie', removal(name)])] }
}

/** Revokes the tokens, of which copies of the cookie may remain. Returns the issuer's sign-out address, or null. */
async function endAtIssuer(
  session: Session,
  provider: Provider,
  { after, context }: { readonly after: string; readonly context: SignInContext },
): Promise<string | null> {
  const failed = (err: unknown): null => {
    const reason = messageOf(err)
    context.log.warn({ event: 'sign_out_incomplete', issuer: session.issuer, reason })
    return null
  }
  await provider.revoke(session.refreshToken ?? session.accessToken).catch((err: unknown) => {
    context.count({ issuer: session.issuer, step: 'signed_out', outcome: 'tokens_not_revoked' })
    return failed(err)
  })
  return provider.endSessionUrl({ idToken: session.idToken, returnTo: after }).catch(failed)
}

export function signedOut(frame: Frame, context: SignInContext): DenialAnswer {
  const { acts, signedOut: texts } = frame.words
  const again = { label: acts.signInAgain, href: signInUrl(context, HOME) }
  return pageAnswer(frame, DONE, { title: texts.title, paragraphs: [texts.text], acts: [again] })
}

const DONE = 200
const REFUSED = 400

/** `form`: the body of the request. Rejects with RequestError when the end of the session cannot be stored. */
export async function signedOutByIssuer(
  form: Buffer,
  provider: Provider,
  context: SignInContext,
): Promise<DenialAnswer> {
  const { issuer, clientId } = provider.entry
  const trusted = context.issuers.get(issuer)
  const [token = '', ...more] = new URLSearchParams(form.toString('latin1')).getAll('logout_token')
  const count = (outcome: 'by_issuer' | 'logout_token_refused'): void =>
    context.count({ issuer, step: 'signed_out', outcome })
  if (trusted === undefined || token === '' || more.length > 0) return refusal('there must be one logout_token')
  try {
    const { sessions, clock } = context
    const memory: LogoutMemory = {
      has: async (key) => (await context.memory.get([key]))[0] !== null,
      keep: (key, forMs) => context.memory.put(key, '', forMs),
    }
    await takeLogoutToken(token, { issuer, clientId, ...trusted }, { memory, clock }, (loggedOut) =>
      sessions.endAt({ issuer, ...loggedOut }),
    )
  } catch (err) {
    if (!(err instanceof TokenError)) throw err
    context.log.warn({ event: 'logout_token_refused', issuer, reason: err.message })
    count('logout_token_refused')
    if (err.code !== 'token_invalid') throw new RequestError('keys_unavailable', 'The keys of the issuer are missing')
    return refusal('the logout_token is refused')
  }
  context.log.info({ event: 'signed_out', issuer, by: 'issuer' })
  count('by_issuer')
  if (!context.memory.isShared)
    context.log.warn({
      event: 'signed_out_here_only',
      issuer,
      reason: 'without REDIS_URL other replicas do not learn of it',
    })
  return { status: DONE, fields: ['cache-control', 'no-store', 'content-length', '0'], body: '' }
}

/** The answer to a refused logout token (section 2.8). */
function refusal(description: string): DenialAnswer {
  const body = JSON.stringify({ error: 'invalid_request', error_description: description })
  const length = String(Buffer.byteLength(body))
  const fields = ['content-type', 'application/json', 'cache-control', 'no-store', 'content-length', length]
  return { status: REFUSED, fields, body }
}
