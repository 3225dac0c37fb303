/** How long the session of a browser lasts, who renews it, how large it may be, and which keys open it. */
import { afterAll, describe, expect, test } from 'vitest'
import { field } from '../../support/peers/raw-http.ts'
import { MINUTE, movableWorlds, parts, signedIn, statusOf } from './steps.ts'
import { cookieLines, KEYS, locationOf, NAVIGATE, SESSION } from './world.ts'

const worlds = movableWorlds()
afterAll(worlds.close)

describe('a session lasts', () => {
  test('no longer than session_max, even when it is used all the time', async () => {
    const own = await worlds.open({ settings: ', session_max: 1200, idle_max: 600' })
    const browser = await signedIn(own)
    for (let minute = 0; minute < 19; minute += 1) {
      worlds.clock.aheadMs += MINUTE
      expect(await statusOf(browser)).toBe(200)
    }
    worlds.clock.aheadMs += 2 * MINUTE
    expect(await statusOf(browser)).toBe(401)
    browser.jar.delete('__Host-portcullis-landed')
    expect((await browser.visit('/docs/1')).status).toBe(302)
  })

  test('no longer than idle_max without a request', async () => {
    const own = await worlds.open({ settings: ', session_max: 7200, idle_max: 600' })
    own.issuers[0].behave.accessSeconds = 7_200
    const browser = await signedIn(own)
    worlds.clock.aheadMs += 9 * MINUTE
    expect(await statusOf(browser)).toBe(200)
    worlds.clock.aheadMs += 9 * MINUTE
    expect(await statusOf(browser)).toBe(200)
    worlds.clock.aheadMs += 11 * MINUTE
    expect(await statusOf(browser)).toBe(401)
  })

  test('as long as its token, when the issuer gives no refresh token; then the person is led through the issuer again', async () => {
    const own = await worlds.open()
    own.issuers[0].behave.refreshTokens = false
    const browser = await signedIn(own)
    worlds.clock.aheadMs += 6 * MINUTE
    expect(await statusOf(browser)).toBe(401)
    browser.jar.delete('__Host-portcullis-landed')
    expect((await browser.open('/docs/1')).status).toBe(200)
  })
})

describe('a session is renewed', () => {
  test('behind the scenes, once for all requests at the same time, and the answer cannot be cached', async () => {
    const own = await worlds.open()
    const browser = await signedIn(own)
    const former = browser.jar.get(SESSION)
    const before = own.issuers[0].grants.length
    own.upstream.handle = (_req, res) => void res.setHeader('cache-control', 'public, max-age=60').end('ok')
    worlds.clock.aheadMs += 4.5 * MINUTE
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => own.send('GET /docs/1', [`Cookie: ${SESSION}=${former}`])),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200))
    expect(own.issuers[0].grants.length - before).toBe(1)
    expect(field(answers[0] ?? (await browser.visit('/')), 'cache-control')).toBe('public, max-age=60 | no-store')
    const [line = ''] = cookieLines(answers[0] ?? (await browser.visit('/')))
    expect(line.startsWith(`${SESSION}=1.v1.`)).toBe(true)
    browser.jar.set(SESSION, line.slice(SESSION.length + 1, line.indexOf(';')))
    worlds.clock.aheadMs += 4.5 * MINUTE
    expect(await statusOf(browser)).toBe(200)
    expect(own.issuers[0].reused()).toBe(0)
  })

  test('and another request with the former cookie does not use the refresh token a second time', async () => {
    const own = await worlds.open()
    const browser = await signedIn(own)
    const former = `Cookie: ${SESSION}=${browser.jar.get(SESSION)}`
    worlds.clock.aheadMs += 4.5 * MINUTE
    expect(await statusOf(browser)).toBe(200)
    worlds.clock.aheadMs += 30_000
    const late = await own.send('GET /docs/1', [former])
    expect([late.status, cookieLines(late).length]).toEqual([200, 1])
    expect(own.issuers[0].reused()).toBe(0)
  })

  test('by one of two replicas that share nothing: the other one signs nobody out', async () => {
    const own = await worlds.open({ replicas: 2 })
    const browser = await signedIn(own)
    const former = [`Cookie: ${SESSION}=${browser.jar.get(SESSION)}`]
    worlds.clock.aheadMs += 4.5 * MINUTE
    const [one, other] = await Promise.all(own.ports.map((port) => own.send('GET /docs/1', former, { port })))
    expect([one?.status, other?.status]).toEqual([200, 200])
    const lines = [
      ...cookieLines(one ?? (await browser.visit('/'))),
      ...cookieLines(other ?? (await browser.visit('/'))),
    ]
    expect(lines).toHaveLength(1)
  })

  test.each([
    ['keeps its token while it is good', 4.5, 200],
    ['is 503, and not over, once its token has expired', 6, 503],
  ])('while the issuer fails, it %s', async (_, minutes, status) => {
    const own = await worlds.open()
    const browser = await signedIn(own)
    own.issuers[0].behave.tokenStatus = 500
    worlds.clock.aheadMs += minutes * MINUTE
    expect(await statusOf(browser)).toBe(status)
    own.issuers[0].behave.tokenStatus = null
    expect(await statusOf(browser)).toBe(200)
  })

  test('unless the issuer has ended it', async () => {
    const own = await worlds.open()
    const browser = await signedIn(own)
    own.issuers[0].behave.tokenStatus = null
    const [issuer] = own.issuers
    worlds.clock.aheadMs += 6 * MINUTE
    // The refresh token is used up elsewhere.
    const form = own.browser()
    form.jar.set(SESSION, browser.jar.get(SESSION) ?? '')
    issuer.behave.refreshTokens = false
    expect(await statusOf(form)).toBe(200)
    worlds.clock.aheadMs += 6 * MINUTE
    expect(await statusOf(browser)).toBe(401)
  })

  test('never with the tokens of somebody else', async () => {
    const own = await worlds.open()
    const browser = await signedIn(own)
    own.issuers[0].behave.idClaims = { sub: 'mallory' }
    worlds.clock.aheadMs += 6 * MINUTE
    expect(await statusOf(browser)).toBe(503)
  })
})

describe('a large session', () => {
  test('is split over cookies, and the parts of a smaller one that follows are removed', async () => {
    const own = await worlds.open()
    own.issuers[0].behave.padding = 5_000
    const browser = await signedIn(own)
    expect(parts(browser).length).toBeGreaterThan(2)
    for (const line of browser.jar.values()) expect(line.length).toBeLessThan(3_700)
    own.issuers[0].behave.padding = 0
    worlds.clock.aheadMs += 4.5 * MINUTE
    expect(await statusOf(browser)).toBe(200)
    expect(parts(browser)).toEqual([SESSION])
    expect(await statusOf(browser)).toBe(200)
  })

  test.each<[string, (jar: Map<string, string>, other: Map<string, string>) => void]>([
    ['whose parts are swapped', (jar) => swap(jar, `${SESSION}-1`, SESSION)],
    ['without its last part', (jar) => void jar.delete(`${SESSION}-2`)],
    ['with a part that is cut short', (jar) => void jar.set(`${SESSION}-1`, (jar.get(`${SESSION}-1`) ?? '').slice(1))],
    ['with a part of another session', (jar, other) => void jar.set(`${SESSION}-1`, other.get(`${SESSION}-1`) ?? '')],
  ])('%s is refused', async (_, edit) => {
    const own = await worlds.open()
    own.issuers[0].behave.padding = 5_000
    const [browser, other] = [await signedIn(own), await signedIn(own)]
    edit(browser.jar, other.jar)
    expect([await statusOf(browser), await statusOf(other)]).toEqual([401, 200])
  })

  test('too large for cookies ends on a page that says what the operator can do', async () => {
    const own = await worlds.open()
    own.issuers[0].behave.padding = 9_000
    const answer = await own.browser().open('/docs/1')
    expect(answer.status).toBe(502)
    expect(answer.body).toContain('Redis')
  })
})

const swap = (jar: Map<string, string>, one: string, other: string): void => {
  const [a = '', b = ''] = [jar.get(one), jar.get(other)]
  jar.set(one, b)
  jar.set(other, a)
}

describe('keys', () => {
  test('rotate: an older key opens and the first one seals, until it is rotated out', async () => {
    const own = await worlds.open()
    const browser = await signedIn(own)
    const [first, second] = KEYS
    await own.useKeys('n'.repeat(40), first, second)
    expect(await statusOf(browser)).toBe(200)
    worlds.clock.aheadMs += 4.5 * MINUTE
    expect(await statusOf(browser)).toBe(200)
    await own.useKeys('n'.repeat(40))
    expect(await statusOf(browser)).toBe(200)
    await own.useKeys(first, second)
    expect(await statusOf(browser)).toBe(401)
  })

  test('are shared: another replica opens the session', async () => {
    const own = await worlds.open({ replicas: 2 })
    const browser = await signedIn(own)
    expect(await statusOf(browser, own.ports[1])).toBe(200)
    // A sign-in may begin at one replica and end at another.
    const other = own.browser()
    const sent = await other.visit('/docs/1', NAVIGATE, own.ports[0])
    const back = (await fetch(locationOf(sent), { redirect: 'manual' })).headers.get('location') ?? ''
    expect((await other.visit(back.slice(own.origin.length), NAVIGATE, own.ports[1])).status).toBe(303)
    expect(await statusOf(other, own.ports[0])).toBe(200)
  })
})
