/** Looks at a page of the identity service as people do: at each width, by axe, and as a picture where a folder is named. */
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** Names a folder for a picture of every page. */
const { IDENTITY_PICTURES } = process.env
const WIDTHS = IDENTITY_PICTURES === undefined ? [1280, 390, 320] : [1440, 1024, 768, 390, 320]

/** `name`: of the picture. `reader`: a page with scripts, for one that has none: axe reads the same there. */
export async function lookAt(page: Page, name: string, scheme: 'light' | 'dark', reader = page): Promise<void> {
  if (reader !== page) await reader.setContent(await page.content())
  for (const width of WIDTHS) {
    for (const one of new Set([page, reader])) await one.setViewportSize({ width, height: 800 })
    const wide = await page.evaluate('document.documentElement.scrollWidth')
    expect([name, width, Number(wide) <= width]).toEqual([name, width, true])
    if (width === 320) continue
    const found = await reader.evaluate(
      `${AXE};axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes[0].html]))`,
    )
    expect([name, width, found]).toEqual([name, width, []])
    if (IDENTITY_PICTURES === undefined) continue
    mkdirSync(IDENTITY_PICTURES, { recursive: true })
    await page.screenshot({ path: join(IDENTITY_PICTURES, `${name}-${width}-${scheme}.png`), fullPage: true })
  }
}
