/** Tokens by every grant, as openid-client gets them, with or without DPoP; the person's part by the small browser. */
import * as oauth from 'openid-client'
import { type Browser, createBrowser } from '../../support/browser.ts'
import { answerPage, discover } from '../../support/sign-in.ts'
import { PASSWORD, REDIRECT, SECRET, type World } from './harness.ts'

export const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'
export const CIBA = 'urn:openid:params:grant-type:ciba'
export const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
export const USER_GRANTS = ['code', 'refresh', 'device', 'ciba', 'exchange'] as const
export type UserGrant = (typeof USER_GRANTS)[number]
/** Everything that a person can grant, with a refresh token. */
export const EVERYTHING = 'openid profile email groups organizations offline_access orders:read'

export type FlowRequest = {
  readonly person: string
  readonly client?: string
  /** Null: not asked for by the client; the person chooses the first when asked. */
  readonly organization?: string | null
  readonly scope?: string
  readonly dpop?: boolean
  readonly resource?: string
  readonly browser?: Browser
  /** Runs when everything is agreed, just before the token request. */
  readonly beforeMint?: () => Promise<void>
}
export type Tokens = Awaited<ReturnType<typeof oauth.refreshTokenGrant>>
export type Obtained = {
  readonly tokens: Tokens
  readonly config: oauth.Configuration
  readonly options: oauth.DPoPOptions
}

export function createFlows(world: Pick<World, 'issuer'>) {
  const { issuer } = world
  // A person signs in once; a test about sessions brings a browser of its own.
  const browsers = new Map<string, Browser>()
  function browserOf(person: string): Browser {
    const browser = browsers.get(person) ?? createBrowser(new URL(issuer).origin)
    browsers.set(person, browser)
    return browser
  }

  async function setUp(request: FlowRequest) {
    const clientId = request.client ?? 'flows'
    const isPublic = clientId.startsWith('public')
    const config = await discover({ issuer, clientId, ...(isPublic ? {} : { clientSecret: SECRET }) })
    const keys = request.dpop ? await oauth.randomDPoPKeyPair('ES256') : null
    const options: oauth.DPoPOptions = keys === null ? {} : { DPoP: oauth.getDPoPHandle(config, keys) }
    const parameters: Record<string, string> = { scope: request.scope ?? EVERYTHING }
    if (request.organization != null) parameters.organization = request.organization
    if (request.resource !== undefined) parameters.resource = request.resource
    const browser = request.browser ?? browserOf(request.person)
    return { config, options, parameters, browser }
  }

  const person = ({ person, organization }: FlowRequest) => ({
    email: `${person}@x.example`,
    password: PASSWORD,
    ...(organization == null ? {} : { chosenOrganization: organization }),
  })

  async function code(request: FlowRequest): Promise<Obtained> {
    const { config, options, parameters, browser } = await setUp(request)
    const verifier = oauth.randomPKCECodeVerifier()
    const [state, nonce] = [oauth.randomState(), oauth.randomNonce()]
    const withNonce = (parameters.scope ?? '').includes('openid')
    const url = await oauth.buildAuthorizationUrlWithPAR(
      config,
      {
        ...parameters,
        redirect_uri: REDIRECT,
        state,
        ...(withNonce ? { nonce } : {}),
        prompt: 'consent',
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      },
      options,
    )
    const callback = await browser.follow(url.href, (page) => answerPage(page, person(request)))
    await request.beforeMint?.()
    const checks = { pkceCodeVerifier: verifier, expectedState: state, ...(withNonce ? { expectedNonce: nonce } : {}) }
    return { config, options, tokens: await oauth.authorizationCodeGrant(config, callback, checks, undefined, options) }
  }

  async function refresh(request: FlowRequest): Promise<Obtained> {
    const { beforeMint, ...agreed } = request
    const first = await code(agreed)
    await beforeMint?.()
    return refreshed(first)
  }
  async function refreshed(from: Obtained, parameters: Record<string, string> = {}): Promise<Obtained> {
    const { config, options } = from
    const tokens = await oauth.refreshTokenGrant(config, from.tokens.refresh_token ?? '', parameters, options)
    return { config, options, tokens }
  }

  /** Device code and page, up to the person's answer; polling is left to the caller. */
  async function startDevice(request: FlowRequest) {
    const { config, options, parameters, browser } = await setUp(request)
    const started = await oauth.initiateDeviceAuthorization(config, parameters)
    return { config, options, browser, started }
  }
  async function answerDevice(browser: Browser, uri: string, request: FlowRequest, code: string): Promise<string> {
    try {
      await browser.follow(uri, (page) => {
        if (page.step === 'code') return { user_code: code }
        if (page.step === 'confirm') return { confirm: 'yes' }
        return answerPage(page, person(request))
      })
    } catch (err) {
      return err instanceof Error ? err.message : ''
    }
    return ''
  }
  async function device(request: FlowRequest): Promise<Obtained> {
    const { config, options, browser, started } = await startDevice(request)
    const end = await answerDevice(browser, started.verification_uri, request, started.user_code)
    if (!end.includes('is connected')) throw new Error(end)
    await request.beforeMint?.()
    const tokens = await oauth.pollDeviceAuthorizationGrant(config, { ...started, interval: 0.01 }, undefined, options)
    return { config, options, tokens }
  }

  async function startCiba(request: FlowRequest, more: Record<string, string> = {}) {
    const { config, options, parameters, browser } = await setUp(request)
    const started = await oauth.initiateBackchannelAuthentication(config, {
      ...parameters,
      login_hint: `${request.person}@x.example`,
      binding_message: 'W4SCT',
      ...more,
    })
    return { config, options, browser, started }
  }
  /** Signs in on the page for requests and answers the first one; the last page. */
  async function answerCiba(browser: Browser, request: FlowRequest, action = 'approve'): Promise<string> {
    const url = '/oauth/approve'
    const { email, password, chosenOrganization } = person(request)
    const listed = await (await browser.send(url, { form: { action: 'login', email, password } })).text()
    const hidden = Object.fromEntries(
      [...listed.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g)].map(([, n = '', v = '']) => [n, v]),
    )
    const answer = chosenOrganization === undefined ? {} : { organization: chosenOrganization }
    return (await browser.send(url, { form: { ...hidden, ...answer, action } })).text()
  }
  async function ciba(request: FlowRequest): Promise<Obtained> {
    const { config, options, browser, started } = await startCiba(request)
    const page = await answerCiba(browser, request)
    if (!page.includes('You approved')) throw new Error(page)
    await request.beforeMint?.()
    const polled = { ...started, interval: 0.01 }
    return {
      config,
      options,
      tokens: await oauth.pollBackchannelAuthenticationGrant(config, polled, undefined, options),
    }
  }

  async function exchange(request: FlowRequest, more: Record<string, string> = {}): Promise<Obtained> {
    const { beforeMint, ...agreed } = request
    const subject = await code({ ...agreed, dpop: false })
    await beforeMint?.()
    return exchangeOf(subject.tokens.access_token, { ...request, client: 'flows' }, more)
  }
  async function exchangeOf(token: string, request: FlowRequest, more: Record<string, string> = {}): Promise<Obtained> {
    const { config, options } = await setUp(request)
    const parameters = { subject_token: token, subject_token_type: ACCESS_TOKEN, ...more }
    const tokens = await oauth.genericGrantRequest(config, EXCHANGE, parameters, options)
    return { config, options, tokens }
  }

  const byGrant = { code, refresh, device, ciba, exchange } satisfies Record<
    UserGrant,
    (request: FlowRequest) => Promise<Obtained>
  >
  return {
    obtain: (grant: UserGrant, request: FlowRequest) => byGrant[grant](request),
    ...{ code, refreshed, startDevice, answerDevice, startCiba, answerCiba, exchangeOf },
  }
}
