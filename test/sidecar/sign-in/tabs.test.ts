/** Many tabs of one browser that sign in at the same time, as those of a window that was restored after its session ended. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { field } from '../../support/peers/raw-http.ts'
import { until } from '../../support/until.ts'
import { callbackOf, named } from './steps.ts'
import { cookieLines, locationOf, NAVIGATE, openWorld, SESSION, type World } from './world.ts'

const TABS = 12

let world: World
beforeAll(async () => {
  world = await openWorld({ providers: 2 })
})
afterAll(() => world.close())

test('a second sign-in of the same person ends neither the session of the first nor what is under way with it', async () => {
  const browser = world.browser()
  const [first, second] = [await callbackOf(world, browser), await callbackOf(world, browser)]
  expect((await browser.visit(first)).status).toBe(303)
  const former = browser.jar.get(SESSION)
  world.upstream.handle = (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write('data: open\n\n')
    release = () => res.end('data: whole\n\n')
  }
  let release = (): void => undefined
  const before = world.upstream.reached.length
  const slow = world.send('GET /docs/1', named(former))
  await until(() => world.upstream.reached.length > before)
  expect((await browser.visit(second)).status).toBe(303)
  expect(browser.jar.get(SESSION)).not.toBe(former)
  world.upstream.handle = null
  const own = ['Sec-Fetch-Site: same-origin', `Origin: ${world.origin}`]
  expect((await world.send('POST /docs/1', [...own, ...named(former)], { body: 'x' })).status).toBe(200)
  release()
  expect((await slow).body).toContain('data: whole')
})

test('a tab whose start the browser forgot goes where it wanted when another has signed in, and waits for that', async () => {
  const browser = world.browser()
  const callbacks: string[] = []
  for (let tab = 0; tab < TABS; tab += 1) callbacks.push(await callbackOf(world, browser, `/docs/1?tab=${tab}`))
  const [oldest = '', latest = ''] = [callbacks[0], callbacks.at(-1)]
  const early = await browser.visit(oldest)
  expect([early.status, field(early, 'location'), field(early, 'refresh')]).toEqual([400, null, '3'])
  expect((await browser.visit(latest)).status).toBe(303)
  for (const [tab, callback] of callbacks.entries()) {
    const answer = await browser.visit(callback)
    expect([answer.status, locationOf(answer)]).toEqual([303, `${world.origin}/docs/1?tab=${tab}`])
  }
  expect((await browser.fetch('GET /docs/1')).status).toBe(200)
})

test('a tab that is sent to sign in does not take away the session that another has just begun', async () => {
  const browser = world.browser()
  const answer = await world.send('GET /docs/1', [...NAVIGATE, ...named('1.v1.over')])
  expect(answer.status).toBe(302)
  expect(cookieLines(answer).filter((line) => line.startsWith(SESSION))).toEqual([])
  expect((await browser.visit(await callbackOf(world, browser))).status).toBe(303)
})

test('of the starts within one second the browser keeps the latest', async () => {
  const browser = world.browser()
  const callbacks: string[] = []
  for (let tab = 0; tab < TABS; tab += 1) callbacks.push(await callbackOf(world, browser))
  for (const callback of callbacks.slice(-4)) {
    const other = world.browser()
    for (const [name, value] of browser.jar) other.jar.set(name, value)
    expect([(await other.visit(callback)).status, other.jar.has(SESSION)]).toEqual([303, true])
  }
})

test('an address that begins too many sign-ins waits, and no other address does', async () => {
  const own = await openWorld({ extra: 'trusted_proxies: [127.0.0.1]' })
  const from = (address: string): readonly string[] => [
    ...NAVIGATE,
    `X-Forwarded-For: ${address}`,
    'X-Forwarded-Proto: http',
    `X-Forwarded-Host: ${own.origin.slice('http://'.length)}`,
  ]
  const begin = (address: string) => own.send('GET /docs/1', from(address))
  const statuses: number[] = []
  for (let at = 0; at < 30; at += 1)
    statuses.push(
      ...(await Promise.all(Array.from({ length: 20 }, () => begin('203.0.113.7')))).map(({ status }) => status),
    )
  expect(new Set(statuses)).toEqual(new Set([302]))
  const late = await begin('203.0.113.7')
  expect([late.status, field(late, 'retry-after'), cookieLines(late)]).toEqual([429, '60', []])
  expect((await begin('203.0.113.8')).status).toBe(302)
  expect(await own.steps()).toMatchObject({ '0 sent done': 601, '0 sent too_many': 1 })
  await own.close()
})
