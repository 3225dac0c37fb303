/** A window with many tabs that is restored after its session ended, and a cookie that another server plants, in a real Chromium. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openWorld, SESSION, type World } from '../sidecar/sign-in/world.ts'
import { launchChromium } from './chromium.ts'

/** `TABS=60` plays as many as people really have. */
const TABS = Number(process.env.TABS ?? 12)

let world: World
let chromium: Browser
beforeAll(async () => {
  world = await openWorld({ extra: 'limits: {pdp_ms: 5000}' })
  world.upstream.handle = (req, res) => void res.setHeader('content-type', 'text/html').end(`<h1>${req.url}</h1>`)
  chromium = await launchChromium()
})
afterAll(async () => {
  await chromium?.close()
  await world?.close()
})

test('every tab of a restored window ends where it was', async () => {
  const context = await chromium.newContext({ baseURL: world.origin })
  const over = { name: SESSION, value: '1.v1.over', url: world.origin, secure: true, httpOnly: true }
  await context.addCookies([{ ...over, url: world.origin.replace('http:', 'https:') }])
  const paths = Array.from({ length: TABS }, (_, tab) => `/docs/1?tab=${tab}`)
  const tabs = await Promise.all(paths.map(() => context.newPage()))
  await Promise.all(tabs.map((page, at) => page.goto(paths[at] ?? '', { timeout: 120_000 }).catch(() => null)))
  for (const [at, page] of tabs.entries())
    await expect.poll(() => page.locator('h1').innerText(), { timeout: 30_000 }).toBe(paths[at])
  expect((await context.cookies()).filter(({ name }) => name === SESSION)).toHaveLength(1)
  await context.close()
})

test('a cookie that another server plants is nobody’s session, and goes away', async () => {
  const mallory = world.browser()
  await mallory.open('/docs/1')
  const line = Buffer.from(`\u00a0${SESSION}=${mallory.jar.get(SESSION)}; Path=/docs; Max-Age=86400`, 'latin1')
  // Cookies of a host know no ports.
  const planter = createServer((_req, res) =>
    res.writeHead(200, ['set-cookie', line.toString('latin1')]).end('planted'),
  )
  await new Promise<void>((resolve) => planter.listen(0, '127.0.0.1', resolve))
  const context = await chromium.newContext({ baseURL: world.origin })
  const page = await context.newPage()
  await page.goto(`http://127.0.0.1:${(planter.address() as AddressInfo).port}/docs`)
  const isPlanted = async (): Promise<boolean> =>
    (await context.cookies(`${world.origin}/docs/1`)).some(({ value }) => value === mallory.jar.get(SESSION))
  expect(await isPlanted()).toBe(true)
  const sent = world.issuers[0].asked.length
  await page.goto('/docs/1')
  expect(await page.locator('h1').innerText()).toBe('/docs/1')
  // The browser keeps cookies in a process of its own.
  await expect.poll(isPlanted).toBe(false)
  expect(world.issuers[0].asked.length).toBe(sent + 1)
  await context.close()
  await new Promise((resolve) => planter.close(resolve))
})
