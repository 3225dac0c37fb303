/** Each authorization stands alone, and gets what it asked for or is told why not. */
import * as oauth from 'openid-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Browser, createBrowser } from '../../../support/browser.ts'
import { answerPage, discover, signIn } from '../../../support/sign-in.ts'
import { openWorld, PASSWORD, parseObject, postToken, REDIRECT, SECRET, type World } from '../harness.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world.close())

const PERSON = { email: 'eve@x.example', password: PASSWORD, chosenOrganization: 'acme' }
const authorize = async (browser: Browser, scope: string, parameters: { [name: string]: string } = {}) => {
  const client = { issuer: world.issuer, clientId: 'flows', clientSecret: SECRET, redirectUri: REDIRECT }
  return (await signIn({ ...client, ...PERSON, organization: 'acme', scope, browser, parameters })).tokens
}
const at = async (path: 'introspect' | 'revoke', token: string) => {
  const authorization = `Basic ${Buffer.from(`flows:${SECRET}`).toString('base64')}`
  const init = { method: 'POST', headers: { authorization }, body: new URLSearchParams({ token }) }
  const response = await fetch(`${world.issuer}/oauth/${path}`, init)
  return { status: response.status, text: await response.text() }
}
const isActive = async (token: string) => parseObject((await at('introspect', token)).text).active

describe('two authorizations of one browser for one client', () => {
  test('end one by one: a token of the first is revoked with its refresh token, and the second goes on', async () => {
    const browser = createBrowser(new URL(world.issuer).origin)
    const first = await authorize(browser, 'openid offline_access')
    const second = await authorize(browser, 'openid offline_access')
    expect((await at('revoke', first.access_token)).status).toBe(200)
    expect(await Promise.all([first, second].map((tokens) => isActive(tokens.access_token)))).toEqual([false, true])
    const refresh = (token = '') =>
      postToken(world, { grant_type: 'refresh_token', refresh_token: token }, { id: 'flows' })
    expect((await refresh(first.refresh_token)).status).toBe(400)
    expect((await refresh(second.refresh_token)).status).toBe(200)
  })

  test('end together with their session', async () => {
    const browser = createBrowser(new URL(world.issuer).origin)
    const tokens = [await authorize(browser, 'openid'), await authorize(browser, 'openid', { prompt: 'none' })]
    const session = (await world.identity.record(tokens[0]?.access_token ?? ''))?.sessionUid ?? ''
    await world.identity.sessions.revokeSession(session, { actor: 'test', requestId: 'test' })
    for (const { access_token: token } of tokens) expect(await isActive(token)).toBe(false)
  })
})

describe('offline_access', () => {
  test('is granted without prompt=consent to a client that its operators registered', async () => {
    const browser = createBrowser(new URL(world.issuer).origin)
    expect(await authorize(browser, 'openid offline_access')).toHaveProperty('refresh_token')
    expect(await authorize(browser, 'openid offline_access', { prompt: 'none' })).toHaveProperty('refresh_token')
    expect(await authorize(browser, 'openid')).not.toHaveProperty('refresh_token')
  })

  test('is granted in a pushed request as well', async () => {
    const config = await discover({ issuer: world.issuer, clientId: 'flows', clientSecret: SECRET })
    const verifier = oauth.randomPKCECodeVerifier()
    const url = await oauth.buildAuthorizationUrlWithPAR(config, {
      redirect_uri: REDIRECT,
      scope: 'openid offline_access',
      organization: 'acme',
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    })
    const browser = createBrowser(new URL(world.issuer).origin)
    const callback = await browser.follow(url.href, (page) => answerPage(page, PERSON))
    expect(await oauth.authorizationCodeGrant(config, callback, { pkceCodeVerifier: verifier })).toHaveProperty(
      'refresh_token',
    )
  })

  test('is refused, and not dropped, for a client that cannot use a refresh token', async () => {
    await world.putClient({
      id: 'no-refresh',
      metadata: {
        redirect_uris: [REDIRECT],
        scope: 'openid offline_access',
        grant_types: ['authorization_code'],
        token_endpoint_auth_method: 'none',
      },
    })
    const client = { issuer: world.issuer, clientId: 'no-refresh', redirectUri: REDIRECT }
    const browser = createBrowser(new URL(world.issuer).origin)
    const asked = signIn({ ...client, ...PERSON, scope: 'openid offline_access', browser })
    await expect(asked).rejects.toMatchObject({ error: 'invalid_scope' })
  })
})

test('names in claims_supported every claim that tokens and UserInfo have', async () => {
  const discovery = parseObject(await (await fetch(`${world.issuer}/.well-known/openid-configuration`)).text())
  const named = ['iss', 'sub', 'aud', 'exp', 'iat', 'nonce', 'auth_time', 'amr', 'acr', 'at_hash', 'sid']
  const ours = ['org', 'org_name', 'org_role', 'roles', 'permissions', 'groups', 'organizations']
  const person = ['email', 'email_verified', 'name']
  expect(new Set(discovery.claims_supported as string[])).toEqual(new Set([...named, ...ours, ...person]))
})
