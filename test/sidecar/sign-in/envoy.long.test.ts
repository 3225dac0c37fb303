/** Browsers sign in through a real Envoy that asks the door, with the configuration that `gateway-config` prints. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findBinaries } from '../../doors/binaries.ts'
import { startGateway } from '../../doors/gateways.ts'
import { field } from '../../support/peers/raw-http.ts'
import { fieldOf, type Reached } from '../support/upstream.ts'
import { copyOf, expectRefused, MINUTE, notify, parts, signedIn, signOut, statusOf } from './steps.ts'
import { cookieLines, locationOf, NAVIGATE, openWorld, SESSION, type World } from './world.ts'

const binaries = findBinaries(process.env, { make: false })
const folder = mkdtempSync(join(tmpdir(), 'portcullis-envoy-sign-in-'))
const ROUTES = `GET /public: public
GET /docs/{id}: viewer doc:{id}
POST /docs/{id}: viewer doc:{id}
GET /api/{id}: {check: "viewer doc:{id}", sign_in: false}
GET /strong: {check: "viewer doc:1", step_up: {acr_values: [mfa]}}`

describe.skipIf(binaries.envoy === null)('a sign-in through Envoy', () => {
  let world: World
  let aheadMs = 0
  beforeAll(async () => {
    world = await openWorld({
      clock: () => Date.now() + aheadMs,
      routes: ROUTES,
      extra: `doors: [{profile: envoy, listen: "unix:${join(folder, 'door')}"}]`,
      front: (file, port) => startGateway('envoy', file, binaries, { at: port }),
    })
  })
  afterAll(async () => {
    await world.close()
    rmSync(folder, { recursive: true })
  })
  const lastReached = (): Reached => {
    const reached = world.upstream.reached.at(-1)
    if (reached === undefined) throw new Error('nothing reached the service')
    return reached
  }

  test('brings a person back to the page, and the service gets who it is and not the cookie', async () => {
    const browser = await signedIn(world)
    browser.jar.set('theme', 'dark')
    expect((await browser.visit('/docs/1', [...NAVIGATE, 'X-Auth-Subject: mallory'])).status).toBe(200)
    const reached = lastReached()
    expect([fieldOf(reached, 'x-auth-subject'), fieldOf(reached, 'cookie')]).toEqual(['alice', 'theme=dark'])
    expect(fieldOf(reached, 'authorization')).toBeNull()
  })

  test('sets each cookie in a line of its own, and clears the one of the way there', async () => {
    const browser = world.browser()
    const sent = await browser.visit('/docs/1')
    expect(cookieLines(sent)).toEqual([expect.stringMatching(/^__Host-portcullis-state-[^,]*$/)])
    const back = await fetch(locationOf(sent), { redirect: 'manual' })
    const answer = await browser.visit((back.headers.get('location') ?? '').slice(world.origin.length))
    const lines = cookieLines(answer)
    expect(lines.some((line) => line.startsWith(`${SESSION}=`))).toBe(true)
    expect(lines.some((line) => line.startsWith('__Host-portcullis-state-') && line.includes('Max-Age=0'))).toBe(true)
    expect([...browser.jar.keys()].filter((name) => name.includes('-state-'))).toEqual([])
  })

  test('refuses a way back that was not sent, and goes on from one that is used twice', async () => {
    const browser = world.browser()
    expectRefused(await browser.visit('/.portcullis/callback?code=x&state=y'))
    const back = await fetch(locationOf(await browser.visit('/docs/1')), { redirect: 'manual' })
    const path = (back.headers.get('location') ?? '').slice(world.origin.length)
    expectRefused(await world.browser().visit(path))
    await browser.visit(path)
    const again = await browser.visit(path)
    expect([again.status, field(again, 'location')]).toEqual([303, `${world.origin}/docs/1`])
    expect(cookieLines(again).filter((line) => line.startsWith(`${SESSION}=`))).toEqual([])
  })

  test.each([
    ['fits into one cookie', 0],
    ['is split over cookies', 5_000],
  ])('renews a session that %s, beside the cookies of the service', async (_, padding) => {
    world.issuers[0].behave.padding = padding
    const browser = await signedIn(world)
    expect(parts(browser).length > 1).toBe(padding > 0)
    const former = [...browser.jar.values()].join()
    world.upstream.handle = (_req, res) =>
      void res.setHeader('set-cookie', ['a=1', 'b=2']).setHeader('cache-control', 'public').end('ok')
    aheadMs += 4.5 * MINUTE
    const answer = await browser.visit('/docs/1')
    world.upstream.handle = null
    world.issuers[0].behave.padding = 0
    expect(cookieLines(answer).map((line) => line.split('=', 1)[0])).toEqual(
      expect.arrayContaining(['a', 'b', ...parts(browser)]),
    )
    expect([...browser.jar.values()].join()).not.toContain(former)
    expect(field(answer, 'cache-control')).toContain('no-store')
    aheadMs += 4.5 * MINUTE
    expect(await statusOf(browser)).toBe(200)
  })

  test('leaves an interface its 401, and counts no cookie for a page of another site', async () => {
    const before = world.upstream.reached.length
    expect((await world.browser().visit('/api/1')).status).toBe(401)
    const browser = await signedIn(world)
    const reachedAfterSignIn = world.upstream.reached.length
    const post = (...fields: string[]) => browser.fetch('POST /docs/1', fields, { body: 'x' })
    expect((await post(`Origin: ${world.origin}`)).status).toBe(200)
    expect(lastReached().body).toBe('x')
    expect((await post('Origin: https://evil.test')).status).not.toBe(200)
    expect(world.upstream.reached.length).toBe(reachedAfterSignIn + 1)
    expect(reachedAfterSignIn).toBe(before + 1)
  })

  test('believes neither of a cookie and a token that come together', async () => {
    const browser = await signedIn(world)
    expect((await browser.visit('/docs/1', [...NAVIGATE, 'Authorization: Basic eA=='])).status).toBe(400)
    expect((await browser.visit('/docs/1', [...NAVIGATE, 'Authorization: Bearer eA'])).status).toBe(400)
  })

  test('asks for more where a route does, by the denied response', async () => {
    const browser = await signedIn(world)
    const answer = await browser.visit('/strong')
    expect([answer.status, new URL(locationOf(answer)).searchParams.get('acr_values')]).toEqual([302, 'mfa'])
  })

  test('shows a person without the right a page with a request id, and the next request is allowed again', async () => {
    const browser = await signedIn(world)
    const answer = await browser.visit('/docs/2')
    expect([answer.status, field(answer, 'content-type')]).toEqual([403, 'text/html; charset=utf-8'])
    expect(answer.body).toMatch(/request id|Request/i)
    expect((await browser.visit('/docs/1')).status).toBe(200)
  })

  test('ends the session by the person, and by the issuer at the data port', async () => {
    const browser = await signedIn(world)
    const copy = copyOf(browser, world)
    const answer = await signOut(browser, world)
    expect([answer.status, locationOf(answer).startsWith(`${world.issuers[0].url}/logout`)]).toEqual([303, true])
    expect(parts(browser)).toEqual([])
    expect([await statusOf(browser), await statusOf(copy)]).toEqual([401, 401])
    const other = await signedIn(world)
    const [port] = world.ports
    const told = await notify(world, await world.issuers[0].signLogout({ sid: 's1' }), port)
    expect([told.status, await statusOf(other)]).toEqual([200, 401])
  })
})
