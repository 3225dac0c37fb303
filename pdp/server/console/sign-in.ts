/** Signs people in to the console by our own OpenID Connect: the code (with PKCE) is redeemed here, so no token reaches the browser. */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { PATHS, urlOf } from '../../identity/oauth/paths.ts'
import {
  CONSOLE_CALLBACK,
  CONSOLE_CLIENT,
  type ConsoleSession,
} from '../../identity/people/sign-in/console-sessions.ts'
import { type MasterKeys, open, seal } from '../../shared/base/encryption.ts'
import { html } from '../../shared/base/html.ts'
import { RequestProblem } from '../serve/http/status.ts'
import type { ConsoleDeps } from './visit.ts'

/** How long a sign-in may take: as long as oidc-provider's interaction. */
const PENDING_SECONDS = 900
const SEE_OTHER = 303
const PENDING = 'pending'
const PURPOSE = 'console-sign-in'

type Pending = { readonly state: string; readonly verifier: string; readonly to: string }
export type SignIn = {
  /** The session and its token for forms; null: nobody is signed in. */
  current(request: FastifyRequest): Promise<{ readonly session: ConsoleSession; readonly csrf: string } | null>
  /** Sends the browser to sign in and back to `to`. */
  begin(reply: FastifyReply, to: string): FastifyReply
  end(request: FastifyRequest, reply: FastifyReply): Promise<void>
}

export function addSignIn(
  app: FastifyInstance,
  {
    issuer,
    identity,
    masterKeys,
    token,
  }: Pick<ConsoleDeps, 'issuer' | 'identity'> & {
    readonly masterKeys: MasterKeys
    readonly token: (form: URLSearchParams) => Promise<string | null>
  },
): SignIn {
  const { names, attributes } = cookiesOf(issuer)
  const keys = () => masterKeys.derive(PURPOSE)

  async function current(request: FastifyRequest) {
    const cookie = cookieOf(request, names.session)
    const session = cookie === '' ? null : await identity.session(cookie)
    return session === null ? null : { session, csrf: csrfOf(cookie) }
  }

  app.get('/console/sign-in', async (request, reply) => {
    const query = queryOf(request)
    const pending: Pending = {
      state: randomBytes(16).toString('base64url'),
      verifier: randomBytes(32).toString('base64url'),
      to: localTarget(query.get('to') ?? ''),
    }
    const sealed = seal(keys(), PENDING, JSON.stringify(pending))
    reply.header('set-cookie', `${names.pending}=${sealed}; Max-Age=${PENDING_SECONDS}${attributes}`)
    const isAgain = query.get('again') === '1'
    const before = isAgain ? await current(request) : null
    const isStrong = before !== null && (await identity.hasSecondFactor(before.session.user))
    return reply.redirect(authorizeUrl(issuer, pending, { isAgain, isStrong }), SEE_OTHER)
  })

  app.get(CONSOLE_CALLBACK, async (request, reply) => {
    const query = queryOf(request)
    const pending = readPending(keys(), cookieOf(request, names.pending))
    if (pending === null || !isSame(pending.state, query.get('state') ?? ''))
      throw new RequestProblem('request_invalid', 'this sign-in has expired, or was begun in another browser')
    const code = query.get('code')
    if (code === null)
      throw new RequestProblem(
        'request_invalid',
        `nobody was signed in: ${query.get('error_description') ?? 'no code'}`,
      )
    const redeemed = await token(redemption(issuer, code, pending))
    const cookie = redeemed === null ? null : await identity.begin(redeemed)
    if (cookie === null) throw new RequestProblem('request_invalid', 'this sign-in was used before or has expired')
    const former = cookieOf(request, names.session)
    if (former !== '') await identity.end(former)
    reply.header('set-cookie', [`${names.session}=${cookie}${attributes}`, `${names.pending}=; Max-Age=0${attributes}`])
    return reply.redirect(new URL(pending.to, issuer).href, SEE_OTHER)
  })

  return {
    current,
    begin: (reply, to) => reply.redirect(signInUrl(issuer, to), SEE_OTHER),
    async end(request, reply) {
      await identity.end(cookieOf(request, names.session))
      reply.header('set-cookie', `${names.session}=; Max-Age=0${attributes}`)
    },
  }
}

function cookiesOf(issuer: string) {
  const isSecure = issuer.startsWith('https:')
  // RFC 6265bis section 4.1.3.2: with this prefix no other host, and nothing in plain text, can set it.
  const names = isSecure
    ? { session: '__Host-portcullis-console', pending: '__Host-portcullis-console-sign-in' }
    : { session: 'portcullis_console', pending: 'portcullis_console_sign_in' }
  return { names, attributes: `; Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}` }
}

const queryOf = ({ url }: FastifyRequest): URLSearchParams => new URLSearchParams(url.split('?')[1] ?? '')

function authorizeUrl(
  issuer: string,
  { state, verifier }: Pending,
  { isAgain, isStrong }: { readonly isAgain: boolean; readonly isStrong: boolean },
): string {
  const parameters = {
    client_id: CONSOLE_CLIENT,
    response_type: 'code',
    scope: 'openid',
    redirect_uri: urlOf(issuer, CONSOLE_CALLBACK),
    state,
    code_challenge: hash('sha256', verifier, 'base64url'),
    code_challenge_method: 'S256',
    // RFC 9470: a write needs a recent sign-in, and the second factor of people who have one.
    ...(isAgain && { prompt: 'login' }),
    ...(isStrong && { acr_values: 'mfa' }),
  }
  return `${urlOf(issuer, PATHS.authorize)}?${new URLSearchParams(parameters)}`
}

const redemption = (issuer: string, code: string, { verifier }: Pending): URLSearchParams =>
  new URLSearchParams({
    grant_type: 'authorization_code',
    client_id: CONSOLE_CLIENT,
    code,
    redirect_uri: urlOf(issuer, CONSOLE_CALLBACK),
    code_verifier: verifier,
  })

function readPending(keys: ReturnType<MasterKeys['derive']>, sealed: string): Pending | null {
  try {
    return JSON.parse(open(keys, PENDING, sealed))
  } catch {
    return null
  }
}

/** The sign-in's URL at the issuer's origin, the only one whose pages get the cookie. */
export const signInUrl = (issuer: string, to: string): string =>
  `${new URL('/console/sign-in', issuer).href}?${new URLSearchParams({ to })}`

/** The token of forms, derived from the cookie, which other sites cannot read. */
const csrfOf = (cookie: string): string => hash('sha256', `csrf ${cookie}`, 'base64url')

export function isSame(a: string, b: string): boolean {
  const [left, right] = [hash('sha256', a, 'buffer'), hash('sha256', b, 'buffer')]
  return timingSafeEqual(left, right)
}

/** The URL if it is a page of the console, else the start page: the URL comes from outside. */
export function localTarget(to: string): string {
  const url = URL.parse(to, 'http://console.invalid')
  const isOurs = url?.origin === 'http://console.invalid' && /^\/console(\/|$)/.test(url.pathname)
  return isOurs && url !== null ? url.pathname + url.search : '/console'
}

/** The cookie's value; empty if there are two: it is unknown which is ours, and a new sign-in would not end this. */
function cookieOf({ headers }: FastifyRequest, name: string): string {
  const start = `${name}=`
  const [first = start, ...others] = (headers.cookie ?? '').split(/; */).filter((pair) => pair.startsWith(start))
  if (others.some((other) => other !== first))
    throw new RequestProblem(
      'request_invalid',
      `Your browser sends the cookie ${name} more than once. Delete the cookies of this site, then sign in again.`,
    )
  return first.slice(start.length)
}

export const signedOut = html`<p>You are signed out of the console.</p>
<p><a class="button" href="/console">Sign in</a> <a href="${PATHS.logout}">Sign out of everything else too</a></p>`
