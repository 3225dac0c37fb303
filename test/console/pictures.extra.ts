/** Pictures of every screen in both schemes and four widths; those that the documentation shows go into `docs/pictures`. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchChromium, openTab } from './chromium.ts'
import { type OwnWorld, startOwnWorld } from './own-world.ts'
import { SCREENS } from './screens.ts'

const WIDTHS = [390, 768, 1024, 1440]
const KEPT = ['ask-allowed', 'ask-denied', 'model', 'decisions']
/** `CONSOLE_PICTURES` names a folder for all of them. */
const ALL = process.env.CONSOLE_PICTURES
/** The editor measures its lines a frame after it is there. */
const MEASURED = `new Promise((done) => {
  const look = () => (document.querySelector('[data-problems]:not([hidden])') === null ? requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))) : setTimeout(look, 50))
  look()
})`
const KEPT_FOLDER = 'docs/pictures'

let world: OwnWorld
let browser: Browser
beforeAll(async () => {
  world = await startOwnWorld()
  browser = await launchChromium()
  for (const [i, resource] of ['doc:1', 'doc:2', 'doc:3', 'doc:2'].entries())
    await world.ask({ requestId: `request-${i}-of-the-story`, relation: 'viewer', resource })
})
afterAll(async () => {
  await browser?.close()
  await world?.close()
})

test.each(['light', 'dark'] as const)(
  'in the %s scheme',
  async (colorScheme) => {
    const { page } = await openTab(browser, world, { person: 'root', colorScheme })
    for (const [name, path] of Object.entries(SCREENS)) {
      if (ALL === undefined && !KEPT.includes(name)) continue
      expect((await page.goto(path, { waitUntil: 'load' }))?.status()).toBe(200)
      for (const width of ALL === undefined ? [] : WIDTHS) {
        await page.setViewportSize({ width, height: 900 })
        await page.evaluate(MEASURED)
        mkdirSync(ALL ?? '', { recursive: true })
        await page.screenshot({ path: join(ALL ?? '', `${name}-${width}-${colorScheme}.png`), fullPage: true })
      }
      if (!KEPT.includes(name)) continue
      await page.setViewportSize({ width: 1024, height: 640 })
      await page.evaluate(MEASURED)
      mkdirSync(KEPT_FOLDER, { recursive: true })
      await page.screenshot({ path: join(KEPT_FOLDER, `console-${name}-${colorScheme}.png`) })
    }
    expect(page.url()).toContain('/console')
  },
  480_000,
)
