/** Tokens as real clients get them: openid-client for the protocol, a small browser for the pages. */
import * as oauth from 'openid-client'
import { type Browser, createBrowser, type PageForm } from './browser.ts'

export type ClientCredentials = {
  readonly issuer: string
  readonly clientId: string
  /** None for a public client. */
  readonly clientSecret?: string
}
export type SignInRequest = ClientCredentials & {
  readonly redirectUri: string
  readonly email: string
  readonly password: string
  /** What the person's authenticator app shows. */
  readonly code?: string
  /** Default `openid`. */
  readonly scope?: string
  /** RFC 8707; default: the issuer itself. */
  readonly resource?: string
  /** Sent with the request; without it a person with several memberships is asked. */
  readonly organization?: string
  /** What the person answers when asked for an organization. */
  readonly chosenOrganization?: string
  /** Further authorization request parameters. */
  readonly parameters?: { readonly [name: string]: string }
  /** A browser that may be signed in already. */
  readonly browser?: Browser
}
export type SignIn = {
  readonly tokens: Awaited<ReturnType<typeof oauth.authorizationCodeGrant>>
  readonly browser: Browser
  /** The pages that came up, in order: `login`, `consent`. */
  readonly steps: readonly string[]
}

/** Discovery as openid-client does it; plain http is allowed for a loopback issuer only. */
export function discover(request: ClientCredentials): Promise<oauth.Configuration> {
  const isLoopback = ['127.0.0.1', '[::1]', 'localhost'].includes(new URL(request.issuer).hostname)
  return oauth.discovery(
    new URL(request.issuer),
    request.clientId,
    undefined,
    request.clientSecret === undefined ? oauth.None() : oauth.ClientSecretBasic(request.clientSecret),
    isLoopback ? { execute: [oauth.allowInsecureRequests] } : {},
  )
}

/** Drives the code flow with PKCE through the sign-in pages. Rejects with openid-client's error when it is refused. */
export async function signIn(request: SignInRequest): Promise<SignIn> {
  const config = await discover(request)
  const verifier = oauth.randomPKCECodeVerifier()
  const [state, nonce] = [oauth.randomState(), oauth.randomNonce()]
  const scope = request.scope ?? 'openid'
  const url = oauth.buildAuthorizationUrl(config, {
    redirect_uri: request.redirectUri,
    scope,
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...(scope.split(' ').includes('openid') ? { nonce } : {}),
    ...(request.resource === undefined ? {} : { resource: request.resource }),
    ...(request.organization === undefined ? {} : { organization: request.organization }),
    ...request.parameters,
  })
  const browser = request.browser ?? createBrowser(new URL(request.issuer).origin)
  const steps: string[] = []
  const callback = await browser.follow(url.href, (page) => {
    steps.push(page.step)
    return answerPage(page, request)
  })
  const tokens = await oauth.authorizationCodeGrant(config, callback, {
    pkceCodeVerifier: verifier,
    expectedState: state,
    ...(scope.split(' ').includes('openid') ? { expectedNonce: nonce } : {}),
  })
  return { tokens, browser, steps }
}

/** Fills in a sign-in page as the person of the request would. */
export function answerPage(
  page: PageForm,
  person: Pick<SignInRequest, 'email' | 'password' | 'code' | 'chosenOrganization'>,
): { readonly [field: string]: string } {
  if (page.step === 'login') return { action: 'login', email: person.email, password: person.password }
  if (page.step === 'totp') return { action: 'code', code: person.code ?? '' }
  return {
    action: 'continue',
    ...(person.chosenOrganization === undefined ? {} : { organization: person.chosenOrganization }),
  }
}

/** Opens the page of a device's sign-in (RFC 8628 section 3.3) and answers it; the text of the last page. */
export async function connectDevice(
  url: string,
  person: Pick<SignInRequest, 'email' | 'password'>,
  confirm: { readonly [field: string]: string } = { confirm: 'yes' },
): Promise<string> {
  const browser = createBrowser(new URL(url).origin)
  const answer = browser.follow(url, (page) => {
    if (page.step !== 'code') return page.step === 'confirm' ? confirm : answerPage(page, person)
    if (page.html.includes('role="alert"')) throw new Error(page.html)
    return {}
  })
  // The last page has no form, or asks for another code.
  return answer.then(String, (error: Error) => error.message)
}

/** A service's own token (client_credentials). */
export async function clientToken(
  request: ClientCredentials & { readonly scope?: string; readonly resource?: string; readonly organization?: string },
): Promise<Awaited<ReturnType<typeof oauth.clientCredentialsGrant>>> {
  const config = await discover(request)
  return oauth.clientCredentialsGrant(config, {
    ...(request.scope === undefined ? {} : { scope: request.scope }),
    ...(request.resource === undefined ? {} : { resource: request.resource }),
    ...(request.organization === undefined ? {} : { organization: request.organization }),
  })
}
