/** Attacks on the session of a browser and with it, after RFC 9700 and RFC 6265. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { asFieldBytes } from '../../support/blanks.ts'
import { field } from '../../support/peers/raw-http.ts'
import { fieldOf } from '../support/upstream.ts'
import { callbackOf, expectRefused, named } from './steps.ts'
import { cookieLines, type Fields, NAVIGATE, openWorld, SESSION, type TestBrowser, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld({ providers: 2 })
})
afterAll(() => world.close())
beforeEach(() => {
  for (const { url, behave } of world.issuers)
    Object.assign(behave, { idClaims: {}, accessClaims: {}, iss: url, error: null, padding: 0, refreshTokens: true })
})

async function signedIn(path = '/docs/1'): Promise<TestBrowser> {
  const browser = world.browser()
  const landed = await browser.visit(await callbackOf(world, browser, path))
  expect(landed.status).toBe(303)
  return browser
}

describe('a session cookie is refused', () => {
  test.each<[string, (value: string) => string]>([
    ['tampered', (value) => value.replace(/(?<=^1\.v1\..{20})./, (c) => (c === 'A' ? 'B' : 'A'))],
    ['truncated', (value) => value.slice(0, -10)],
    ['extended', (value) => `${value}AAAA`],
    ['of one byte', () => '1.v1.A'],
    ['empty', () => ''],
    ['with a part that is missing', (value) => value.replace(/^1\./, '2.')],
    ['with too many parts', (value) => value.replace(/^1\./, '9.')],
    ['that is not sealed', () => '1.eyJpZCI6IngifQ'],
    ['that is huge', () => `1.v1.${'A'.repeat(14_000)}`],
  ])('%s', async (_, edit) => {
    const browser = await signedIn()
    expect((await browser.fetch('GET /docs/1')).status).toBe(200)
    browser.jar.set(SESSION, edit(browser.jar.get(SESSION) ?? ''))
    expect((await browser.fetch('GET /docs/1')).status).toBe(401)
    browser.jar.delete('__Host-portcullis-landed')
    expect((await browser.visit('/docs/1')).status).toBe(302)
  })

  test('two cookies of the same name: neither is believed, both are removed, and the person goes on', async () => {
    const [one, other] = [await signedIn(), await signedIn()]
    const [mine, theirs] = [one, other].map(({ jar }) => jar.get(SESSION))
    for (const fields of [
      [`Cookie: ${SESSION}=${mine}; ${SESSION}=${theirs}`],
      [...named(mine), ...named(theirs)],
      [`Cookie: ${SESSION}=${mine}; ${SESSION}=${mine}`],
    ]) {
      expect((await world.send('GET /docs/1', fields)).status).toBe(401)
      const page = await world.send('GET /docs/1', [...NAVIGATE, ...fields])
      expect(page.status).toBe(302)
      for (const form of ['Path=/; Max-Age=0', 'Path=/docs; Max-Age=0', 'Path=/docs/1; Domain=127.0.0.1; Max-Age=0'])
        expect(cookieLines(page)).toContain(`${SESSION}=; ${form}; Secure`)
      expect((await world.send('GET /public', fields)).status).toBe(200)
    }
  })

  test('two cookies of the same name: signing out ends both sessions and removes both', async () => {
    const [one, other] = [await signedIn(), await signedIn()]
    const fields = [one, other].flatMap(({ jar }) => named(jar.get(SESSION)))
    const own = [`Origin: ${world.origin}`, 'Content-Length: 0', ...NAVIGATE]
    const answer = await world.send('POST /.portcullis/sign-out', [...own, ...fields])
    expect(answer.status).toBe(303)
    expect(cookieLines(answer)).toContain(`${SESSION}=; Path=/; Max-Age=0; Secure`)
    for (const { jar } of [one, other])
      expect((await world.send('GET /docs/1', named(jar.get(SESSION)))).status).toBe(401)
  })

  test('a planted name is nobody’s session, hides none, and is removed by each answer', async () => {
    const [browser, mallory] = [await signedIn(), await signedIn()]
    const theirs = mallory.jar.get(SESSION) ?? ''
    for (const blank of ['\u00a0', '\u0085', asFieldBytes('\u2003'), asFieldBytes('\ufeff')]) {
      const planted = [`Cookie: ${blank}${SESSION}=${theirs}`]
      expect((await world.send('GET /docs/1', planted)).status).toBe(401)
      const page = await world.send('GET /docs/1', [...NAVIGATE, ...planted])
      expect(page.status).toBe(302)
      const removal = `${blank}${SESSION}=; Path=/docs; Max-Age=0; Secure`
      expect(cookieLines(page)).toContain(removal)
      const both = [...planted, ...named(browser.jar.get(SESSION))]
      const mine = await world.send('GET /docs/1', both)
      expect([mine.status, cookieLines(mine).includes(removal)]).toEqual([200, true])
      expect(fieldOf(world.upstream.reached.at(-1), 'cookie')).toBeNull()
      const asked = await world.send('GET /.portcullis/sign-out', [...NAVIGATE, ...both])
      expect([asked.status, cookieLines(asked).length > 0]).toEqual([200, true])
    }
  })

  test('a planted state finishes no sign-in', async () => {
    const mallory = world.browser()
    const callback = await callbackOf(world, mallory)
    const [[name, value] = ['', '']] = [...mallory.jar].filter(([key]) => key.includes('-state-'))
    expectRefused(await world.send(`GET ${callback}`, [...NAVIGATE, `Cookie: \u00a0${name}=${value}`]))
    expect((await mallory.visit(callback)).status).toBe(303)
  })

  test.each([
    ['without the prefix', 'portcullis-session'],
    ['with another prefix', '__Secure-portcullis-session'],
    ['in another case', '__host-portcullis-session'],
    ['with a space', `__Host-portcullis-session `],
  ])('cookie tossing: a cookie %s, which another host may set, is nobody’s session', async (_, name) => {
    const browser = await signedIn()
    const value = browser.jar.get(SESSION)
    const status = (await world.send('GET /docs/1', [`Cookie: ${name}=${value}`])).status
    expect(status).toBe(name.trim() === SESSION ? 200 : 401)
  })

  test('of a sidecar in front of another service, with the same keys', async () => {
    const other = await openWorld({ resource: 'https://other.test' })
    const stranger = other.browser()
    await stranger.open('/docs/1')
    expect((await other.send('GET /docs/1', named(stranger.jar.get(SESSION)))).status).toBe(200)
    expect((await world.send('GET /docs/1', named(stranger.jar.get(SESSION)))).status).toBe(401)
    await other.close()
  })

  test('side by side with a token: neither is believed', async () => {
    const browser = await signedIn()
    const token = await world.issuers[0].tokens.token()
    for (const credentials of [`Bearer ${token}`, `DPoP ${token}`, 'Basic YTpi', 'Bearer junk']) {
      const answer = await world.send('GET /docs/1', [
        ...named(browser.jar.get(SESSION)),
        `Authorization: ${credentials}`,
      ])
      expect(answer.status).toBe(400)
    }
    expect((await world.send('GET /docs/1', [`Authorization: Bearer ${token}`])).status).toBe(200)
  })

  test('at another host of the same sidecar', async () => {
    const browser = await signedIn()
    const fields = ['Host: other.test', ...named(browser.jar.get(SESSION))]
    expect((await world.send('GET /docs/1', fields)).status).toBe(401)
  })

  test('session fixation: a sign-in begins a session of its own, and ends the one that was planted', async () => {
    const person = { sub: 'mallory' }
    Object.assign(world.issuers[0].behave, { idClaims: person, accessClaims: person })
    const attacker = await signedIn()
    Object.assign(world.issuers[0].behave, { idClaims: {}, accessClaims: {} })
    const planted = attacker.jar.get(SESSION) ?? ''
    expect((await world.send('GET /docs/1', named(planted))).status).toBe(403)
    const victim = world.browser()
    const callback = await callbackOf(world, victim, '/docs/2')
    victim.jar.set(SESSION, planted)
    expect((await victim.visit(callback)).status).toBe(303)
    expect(victim.jar.get(SESSION)).not.toBe(planted)
    expect((await victim.fetch('GET /docs/1')).status).toBe(200)
    expect((await world.send('GET /docs/1', named(planted))).status).toBe(401)
  })
})

describe('CSRF: with a session cookie', () => {
  test.each<[string, Fields, number]>([
    ['of our own page', ['Sec-Fetch-Site: same-origin', 'Origin: OWN'], 200],
    ['of our own page in a browser without Fetch metadata', ['Origin: OWN'], 200],
    ['of a page of another site', ['Sec-Fetch-Site: cross-site', 'Origin: https://evil.test'], 403],
    ['of a page of another host of the site', ['Sec-Fetch-Site: same-site', 'Origin: http://sub.app.test'], 403],
    ['that says both', ['Sec-Fetch-Site: same-origin', 'Origin: https://evil.test'], 403],
    ['that says two sites', ['Sec-Fetch-Site: same-origin', 'Sec-Fetch-Site: cross-site', 'Origin: OWN'], 403],
    ['of a sandboxed page', ['Origin: null'], 403],
    ['of nobody', [], 403],
    ['of our host at another port', ['Origin: http://127.0.0.1:1'], 403],
  ])('a POST %s', async (_, fields, status) => {
    const browser = await signedIn()
    const sent = [...fields.map((text) => text.replace('OWN', world.origin)), ...named(browser.jar.get(SESSION))]
    const before = world.upstream.reached.length
    const answer = await world.send('POST /docs/1', sent, { body: 'x' })
    expect(answer.status).toBe(status)
    expect(world.upstream.reached.length - before).toBe(status === 200 ? 1 : 0)
  })

  test('a person reads why a form of another site was refused', async () => {
    const browser = await signedIn()
    const form = [...NAVIGATE, 'Sec-Fetch-Site: cross-site', 'Origin: https://evil.test']
    const answer = await world.send('POST /docs/1', [...form, ...named(browser.jar.get(SESSION))], { body: 'x' })
    expect([answer.status, field(answer, 'content-type')]).toEqual([403, 'text/html; charset=utf-8'])
  })

  test.each<[string, Fields, number]>([
    ['of our own page', ['Origin: OWN'], 502],
    ['of a page of another site', ['Origin: https://evil.test'], 403],
    ['that does not say whose page', [], 403],
    ['that says only Fetch metadata', ['Sec-Fetch-Site: same-origin'], 403],
  ])('a WebSocket %s', async (_, fields, status) => {
    const browser = await signedIn()
    const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']
    const key = `Sec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}`
    const sent = fields.map((text) => text.replace('OWN', world.origin))
    const answer = await world.send('GET /socket', [...upgrade, key, ...sent, ...named(browser.jar.get(SESSION))])
    // The service of this test does not switch protocols.
    expect(status === 502 ? [200, 502] : [status]).toContain(answer.status)
  })

  test('logout CSRF: a form of another site signs nobody out, and a link only asks', async () => {
    const browser = await signedIn()
    const cookie = named(browser.jar.get(SESSION))
    const away = ['Sec-Fetch-Site: cross-site', 'Origin: https://evil.test', 'Content-Length: 0']
    expect((await world.send('POST /.portcullis/sign-out', [...away, ...cookie])).status).toBe(403)
    const asked = await world.send('GET /.portcullis/sign-out', [...NAVIGATE, ...cookie])
    expect([asked.status, cookieLines(asked)]).toEqual([200, []])
    expect((await browser.fetch('GET /docs/1')).status).toBe(200)
  })
})

describe('between browser and service', () => {
  test('cookies of the sidecar never reach the service, and others stay as they are', async () => {
    const browser = await signedIn()
    const value = browser.jar.get(SESSION)
    const cookie = `Cookie: a=1; ${SESSION}=${value}; b="x y"; __HOST-Portcullis-x=1;c=3`
    expect((await world.send('GET /docs/1', [cookie])).status).toBe(200)
    expect(fieldOf(world.upstream.reached.at(-1), 'cookie')).toBe('a=1; b="x y"; c=3')
    expect((await world.send('GET /public', [`Cookie: ${SESSION}=${value}`])).status).toBe(200)
    expect(fieldOf(world.upstream.reached.at(-1), 'cookie')).toBeNull()
    expect((await world.send('GET /public', ['Cookie: a=1;b=2;  c'])).status).toBe(200)
    expect(fieldOf(world.upstream.reached.at(-1), 'cookie')).toBe('a=1;b=2;  c')
  })

  test('the service cannot set a cookie of the sidecar, in whatever spelling', async () => {
    world.upstream.handle = (_req, res) => {
      res.setHeader('set-cookie', [
        `${SESSION}=x; Path=/; Secure`,
        '__host-PORTCULLIS-session=x',
        ` ${SESSION}=x`,
        `=${SESSION}=x`,
        'app=1',
      ])
      res.end('ok')
    }
    expect(cookieLines(await world.send('GET /public'))).toEqual(['app=1'])
    world.upstream.handle = null
  })

  test('a client cannot name itself with identity fields beside a session', async () => {
    const browser = await signedIn()
    const forged = ['X-Auth-Subject: root', 'X-Auth-Organization: other', ...named(browser.jar.get(SESSION))]
    await world.send('GET /docs/1', forged)
    const reached = world.upstream.reached.at(-1)
    expect([fieldOf(reached, 'x-auth-subject'), fieldOf(reached, 'x-auth-organization')]).toEqual(['alice', 'acme'])
  })
})

describe('no loop: a browser', () => {
  test('that drops every cookie ends on a page', async () => {
    const own = await openWorld()
    const answer = await own.browser({ keeps: () => false }).open('/docs/1')
    expect([answer.status, answer.hops]).toEqual([400, 2])
    expect(answer.body).toContain('cookies of this site must be allowed')
    await own.close()
  })

  test('that keeps all cookies but that of the session ends on a page', async () => {
    const own = await openWorld()
    const answer = await own.browser({ keeps: (name) => !name.startsWith(SESSION) }).open('/docs/1')
    expect([answer.status, answer.hops]).toEqual([401, 3])
    await own.close()
  })

  test('whose token is refused by the PDP ends on a page', async () => {
    const own = await openWorld()
    const { script } = own.pdp
    own.pdp.script = (asked) => {
      const answer = script(asked)
      return typeof answer === 'object' && answer !== null ? { ...answer, active: false } : answer
    }
    const answer = await own.browser().open('/docs/1')
    expect([answer.status, answer.hops]).toEqual([401, 3])
    await own.close()
  })

  test('that begins in many tabs keeps a handful of cookies', async () => {
    const own = await openWorld()
    const browser = own.browser()
    for (let tab = 0; tab < 12; tab += 1) await browser.visit('/docs/1')
    expect(browser.jar.size).toBeLessThanOrEqual(5)
    expect((await browser.open('/docs/1')).status).toBe(200)
    await own.close()
  })
})
