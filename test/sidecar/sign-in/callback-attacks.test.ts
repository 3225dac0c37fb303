/** Attacks on the way to an issuer and back, after RFC 9700 (OAuth 2.0 Security Best Current Practice). */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { field } from '../../support/peers/raw-http.ts'
import { callbackOf, expectRefused } from './steps.ts'
import { locationOf, NAVIGATE, openWorld, SESSION, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld({ providers: 2 })
})
afterAll(() => world.close())
beforeEach(() => {
  for (const { url, behave } of world.issuers)
    Object.assign(behave, { idClaims: {}, accessClaims: {}, iss: url, error: null, padding: 0, refreshTokens: true })
})

const pathOf = (url: string): string => url.slice(world.origin.length)
const edited = (path: string, edit: (query: URLSearchParams) => void): string => {
  const url = new URL(path, world.origin)
  edit(url.searchParams)
  return url.pathname + url.search
}

describe('a callback is refused', () => {
  test('login CSRF (RFC 9700 section 4.7): the callback of an attacker opened in the browser of the victim', async () => {
    const callback = await callbackOf(world, world.browser())
    expectRefused(await world.browser().visit(callback))
  })

  test('state of another browser (section 4.7.1): the own code with the state of somebody else', async () => {
    const [victim, attacker] = [world.browser(), world.browser()]
    const [mine, theirs] = [await callbackOf(world, attacker), await callbackOf(world, victim)]
    const state = new URL(theirs, world.origin).searchParams.get('state') ?? ''
    expectRefused(await attacker.visit(edited(mine, (query) => query.set('state', state))))
  })

  test('code injection (section 4.5): a stolen code in a sign-in of one’s own fails at PKCE', async () => {
    const [victim, attacker] = [world.browser(), world.browser()]
    const [stolen, mine] = [await callbackOf(world, victim), await callbackOf(world, attacker)]
    const code = new URL(stolen, world.origin).searchParams.get('code') ?? ''
    expectRefused(await attacker.visit(edited(mine, (query) => query.set('code', code))))
  })

  test('a nonce of another sign-in: an ID token that was made for somebody else', async () => {
    const browser = world.browser()
    const callback = await callbackOf(world, browser)
    world.issuers[0].behave.idClaims = { nonce: 'of another sign-in' }
    expectRefused(await browser.visit(callback))
  })

  test('mix-up (section 4.4): another issuer in iss', async () => {
    const browser = world.browser()
    const callback = await callbackOf(world, browser)
    const [, other] = world.issuers
    const before = world.issuers[0].grants.length
    expectRefused(await browser.visit(edited(callback, (query) => query.set('iss', other?.url ?? ''))))
    expectRefused(await browser.visit(edited(callback, (query) => query.delete('iss'))))
    expect(world.issuers[0].grants).toHaveLength(before)
  })

  test('mix-up (section 4.4.2.2): the answer of one issuer at the address of another', async () => {
    const browser = world.browser()
    const callback = await callbackOf(world, browser)
    expectRefused(await browser.visit(callback.replace('/idp0', '/idp1')))
    expectRefused(await browser.visit(callback.replace('/idp0', '')), 400)
  })

  test('a replayed callback: the same address a second time', async () => {
    const browser = world.browser()
    const callback = await callbackOf(world, browser)
    expect((await browser.visit(callback)).status).toBe(303)
    const session = browser.jar.get(SESSION)
    const again = await browser.visit(callback)
    expect([again.status, locationOf(again)]).toEqual([303, `${world.origin}/docs/1`])
    expect([browser.jar.get(SESSION), field(again, 'referrer-policy')]).toEqual([session, 'no-referrer'])
    browser.jar.clear()
    const stranger = await browser.visit(callback)
    expectRefused(stranger)
    expect([field(stranger, 'referrer-policy'), field(stranger, 'refresh')]).toEqual(['no-referrer', null])
  })

  test('a replayed callback with its cookie: the code counts once', async () => {
    const browser = world.browser()
    const callback = await callbackOf(world, browser)
    const jar = new Map(browser.jar)
    expect((await browser.visit(callback)).status).toBe(303)
    const thief = world.browser()
    for (const [name, value] of jar) thief.jar.set(name, value)
    expectRefused(await thief.visit(callback))
  })

  test.each<[string, (query: URLSearchParams) => void]>([
    ['without a state', (query) => query.delete('state')],
    ['with two states', (query) => query.append('state', query.get('state') ?? '')],
    ['with an empty state', (query) => query.set('state', '')],
    ['with a state that was changed', (query) => query.set('state', `${query.get('state')}A`)],
    [
      'with a state in another spelling',
      (query) => query.set('state', (query.get('state') ?? '').replace(/.$/, '$&=')),
    ],
    ['with two codes', (query) => query.append('code', 'x')],
    ['without a code', (query) => query.delete('code')],
    ['with two issuers', (query) => query.append('iss', 'https://evil.test')],
  ])('a callback %s', async (_, edit) => {
    const browser = world.browser()
    expectRefused(await browser.visit(edited(await callbackOf(world, browser), edit)))
  })

  test('an error of the issuer, whose words do not reach the page as markup', async () => {
    const browser = world.browser()
    world.issuers[0].behave.error = 'access_denied'
    const refused = await browser.visit(await callbackOf(world, browser))
    expectRefused(refused)
    expect(refused.body).toContain('cancelled or refused')
    world.issuers[0].behave.error = '<script>alert(1)</script>'
    const hostile = await browser.visit(await callbackOf(world, browser))
    expectRefused(hostile)
    expect(hostile.body).not.toContain('<script')
  })

  test.each<[string, object, object]>([
    ['an access token for another service', {}, { aud: 'https://other.test' }],
    ['an access token of another person than the ID token', {}, { sub: 'mallory', client_id: 'web' }],
    ['an access token that is bound to a key', {}, { cnf: { jkt: 'a'.repeat(43) } }],
    ['an access token that has expired', {}, { exp: 1, iat: 0 }],
  ])('%s', async (_, idClaims, accessClaims) => {
    const browser = world.browser()
    const callback = await callbackOf(world, browser)
    Object.assign(world.issuers[0].behave, { idClaims, accessClaims })
    expectRefused(await browser.visit(callback), 502)
  })

  test.each<[string, object]>([
    ['an ID token for another client', { aud: 'other' }],
    ['an ID token of another issuer', { iss: 'https://evil.test' }],
    ['an ID token that has expired', { exp: 1 }],
  ])('%s', async (_, idClaims) => {
    const browser = world.browser()
    const callback = await callbackOf(world, browser)
    Object.assign(world.issuers[0].behave, { idClaims })
    expectRefused(await browser.visit(callback))
  })

  test.each([
    ['HEAD', NAVIGATE, 405],
    ['POST', NAVIGATE, 405],
    ['GET', [...NAVIGATE, 'Sec-Purpose: prefetch'], 400],
  ])('%s at a callback with %j leaves its code for the person', async (method, fields, status) => {
    const browser = world.browser()
    const callback = await callbackOf(world, browser)
    const cookie = [...browser.jar].map(([name, value]) => `${name}=${value}`).join('; ')
    expect((await world.send(`${method} ${callback}`, [...fields, `Cookie: ${cookie}`])).status).toBe(status)
    expect((await browser.visit(callback)).status).toBe(303)
  })
})

describe('the way back', () => {
  test.each([
    ['//evil.test', 400],
    ['/%2f/evil.test', 400],
    ['/%5cevil.test', 400],
    ['/docs/1?next=https://evil.test', 302],
    ['https://evil.test/docs/1', 400],
  ])('open redirect (section 4.11.1): %s never leaves the origin', async (path, status) => {
    const answer = await world.send(`GET ${path}`, NAVIGATE)
    expect(answer.status).toBe(status)
    const location = field(answer, 'location')
    if (location !== null) expect(location.startsWith(`${world.origin}/.portcullis/sign-in?goal=v1.`)).toBe(true)
  })

  test.each(['https://evil.test', '//evil.test', '/\\evil.test', 'v1.AAAA', '%00', 'javascript:alert(1)'])(
    'open redirect: a goal that says %s leads to the start of this site',
    async (goal) => {
      const browser = world.browser()
      const { body } = await browser.visit(`/.portcullis/sign-in?goal=${encodeURIComponent(goal)}`)
      const href = /href="([^"]*\/sign-in\/idp0[^"]*)"/.exec(body)?.[1] ?? ''
      const back = await fetch(locationOf(await browser.visit(pathOf(href))), { redirect: 'manual' })
      const landed = await browser.visit(pathOf(back.headers.get('location') ?? ''))
      expect([landed.status, field(landed, 'location')]).toEqual([303, `${world.origin}/`])
    },
  )

  test('a sealed value of another kind is no way back', async () => {
    const browser = world.browser()
    const state = new URL(await callbackOf(world, browser), world.origin).searchParams.get('state') ?? ''
    const { body } = await browser.visit(`/.portcullis/sign-in?goal=${state}`)
    const other = new URL(/href="([^"]*\/sign-in\/idp0[^"]*)"/.exec(body)?.[1] ?? '').searchParams.get('goal') ?? ''
    expectRefused(await browser.visit(`/.portcullis/callback/idp0?code=x&state=${other}`))
    browser.jar.set(SESSION, `1.${state}`)
    expect((await browser.fetch('GET /docs/1')).status).toBe(401)
  })

  test('is cut to its path when it is too long for an address', async () => {
    const browser = world.browser()
    const landed = await browser.visit(await callbackOf(world, browser, `/docs/1?x=${'a'.repeat(4_000)}`))
    expect(field(landed, 'location')).toBe(`${world.origin}/docs/1`)
  })
})
