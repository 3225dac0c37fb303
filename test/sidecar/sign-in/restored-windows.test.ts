/** Windows of many tabs as people have them, restored after their session ended: each tab ends where it was. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { field } from '../../support/peers/raw-http.ts'
import { cookieLines, locationOf, NAVIGATE, openWorld, SESSION, type TestBrowser, type World } from './world.ts'

const TABS = 30
const ROUNDS_MAX = 4
const PATHS = [
  '/docs/1',
  '/docs/1?tab=2',
  '/docs/1?q=a%20b&next=https%3A%2F%2Fevil.test%2F',
  `/docs/1?long=${'x'.repeat(1_500)}`,
  '/docs/1?#',
  '/docs/1?a[]=1&b={c}|d',
  '/docs/1?code=1&state=2&error=access_denied',
]
const paths = Array.from(
  { length: TABS },
  (_, tab) => `${PATHS[tab % PATHS.length]}${tab % 5 === 0 ? '' : `&n=${tab}`}`,
).map((path) => path.replace('#', '').replace(/^(\/docs\/1)&/, '$1?'))

let one: World
let two: World
beforeAll(async () => {
  one = await openWorld()
  two = await openWorld({ replicas: 2 })
})
afterAll(async () => {
  await one.close()
  await two.close()
})

/** Where the issuer sends the tab back to, after the request of the restored tab. */
async function sentBack(world: World, browser: TestBrowser, path: string, port?: number): Promise<string> {
  const start = await browser.visit(path, NAVIGATE, port)
  expect(start.status).toBe(302)
  const back = await fetch(locationOf(start), { redirect: 'manual' })
  return (back.headers.get('location') ?? '').slice(world.origin.length)
}

/** Tabs that are told to wait ask again, as browsers do by Refresh. */
async function finish(
  browser: TestBrowser,
  tabs: readonly string[],
  { atOnce = false, ports }: { readonly atOnce?: boolean; readonly ports: readonly (number | undefined)[] },
): Promise<(string | number)[]> {
  const ended: (string | number)[] = tabs.map(() => 0)
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const waiting = [...tabs.entries()].filter(([tab]) => ended[tab] === 0)
    const visit = async ([tab, callback]: readonly [number, string]): Promise<void> => {
      const answer = await browser.visit(callback, NAVIGATE, ports[(tab + round) % ports.length])
      if (answer.status === 303) ended[tab] = locationOf(answer)
      else if (field(answer, 'refresh') === null) ended[tab] = answer.status
    }
    if (atOnce) await Promise.all(waiting.map(visit))
    else for (const tab of waiting) await visit(tab)
  }
  return ended
}

const shuffled = <Item>(items: readonly Item[]): Item[] => items.map((_, at) => items[(at * 7) % items.length] as Item)

describe.each([
  ['one sidecar', () => one],
  ['two sidecars in turn', () => two],
] as const)('behind %s, every tab ends where it was', (_, worldOf) => {
  test.each<[string, (tabs: readonly string[]) => readonly string[], boolean]>([
    ['in the order of their start', (tabs) => tabs, false],
    ['the latest first', (tabs) => tabs.toReversed(), false],
    ['in any order', shuffled, false],
    ['all at once', (tabs) => tabs, true],
  ])('%s', async (_order, order, atOnce) => {
    const world = worldOf()
    const browser = world.browser()
    browser.jar.set(SESSION, '1.v1.over')
    const ports = [...world.ports]
    const sent: string[] = []
    for (const [tab, path] of order(paths).entries())
      sent.push(await sentBack(world, browser, path, ports[tab % ports.length]))
    const cookies = [...browser.jar].map(([name, value]) => `${name}=${value}`).join('; ')
    expect(cookies.length).toBeLessThan(6_000)
    expect(await finish(browser, sent, { atOnce, ports })).toEqual(order(paths).map((path) => `${world.origin}${path}`))
    expect((await browser.fetch('GET /docs/1')).status).toBe(200)
  })
})

test('what pages of restored tabs ask for meanwhile begins no sign-in, and takes no session away', async () => {
  const browser = one.browser()
  browser.jar.set(SESSION, '1.v1.over')
  const own = { 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Mode': 'no-cors' }
  const asks: readonly (readonly [string, { readonly [name: string]: string }])[] = [
    ['an image', { ...own, 'Sec-Fetch-Dest': 'image', Accept: 'image/*' }],
    ['a script', { ...own, 'Sec-Fetch-Dest': 'script', Accept: '*/*' }],
    ['a style sheet', { ...own, 'Sec-Fetch-Dest': 'style', Accept: 'text/css' }],
    ['a service worker', { ...own, 'Sec-Fetch-Mode': 'same-origin', 'Sec-Fetch-Dest': 'serviceworker' }],
    ['a manifest', { ...own, 'Sec-Fetch-Mode': 'cors', 'Sec-Fetch-Dest': 'manifest' }],
    ['an event stream', { ...own, 'Sec-Fetch-Mode': 'cors', 'Sec-Fetch-Dest': 'empty', Accept: 'text/event-stream' }],
    ['data', { ...own, 'Sec-Fetch-Mode': 'cors', 'Sec-Fetch-Dest': 'empty', Accept: 'application/json' }],
    ['a font', { ...own, 'Sec-Fetch-Mode': 'cors', 'Sec-Fetch-Dest': 'font' }],
    [
      'a page that is fetched early',
      { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document', 'Sec-Purpose': 'prefetch' },
    ],
    [
      'a page in a frame of another site',
      { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'iframe' },
    ],
    ['an object', { ...own, 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'object' }],
  ]
  for (const [what, given] of asks) {
    const lines = Object.entries(given).map(([name, value]) => `${name}: ${value}`)
    const answer = await browser.visit('/docs/1', lines)
    const set = cookieLines(answer).filter((line) => !line.includes('Max-Age=0'))
    expect([what, answer.status >= 300 && answer.status < 400, set]).toEqual([what, false, []])
  }
  expect((await browser.open('/docs/1')).status).toBe(200)
})
