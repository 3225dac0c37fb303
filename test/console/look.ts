/**
 * Looks at a page of the identity service or the sidecar as people do: at each width by axe, or where IDENTITY_PICTURES names a folder,
 * as a picture. IDENTITY_LANGUAGE chooses the language, IDENTITY_BRAND the brand (as PORTCULLIS_BRANDING does).
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { LANGUAGES } from '../../pdp/identity/html/words/words.ts'
import { type Branding, parseBranding } from '../../pdp/shared/pages/brand.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const { IDENTITY_PICTURES, IDENTITY_LANGUAGE = 'en', IDENTITY_BRAND } = process.env
const WIDTHS = IDENTITY_PICTURES === undefined ? [1280, 390, 320] : [1440, 1024, 768, 390, 320]

export const LOCALE = IDENTITY_LANGUAGE
export const BRANDING: Branding = IDENTITY_BRAND === undefined ? {} : parseBranding(IDENTITY_BRAND)

/** An English text, or the beginning or a part of one, in the language of the pages. */
export function say(english: string): string {
  const [from = [], to = []] = ['en', LOCALE].map((lang) => textsOf(LANGUAGES.get(lang)))
  const whole = from.indexOf(english)
  const at = whole >= 0 ? whole : from.findIndex((text) => text.includes(english))
  if (at >= 0) return LOCALE === 'en' ? english : (to[at] ?? english)
  for (const [i, text] of from.entries()) {
    const [before = '', after, ...more] = text.split(/\{\w+\}/)
    if (after === undefined || more.length > 0 || before + after === '') continue
    if (english.startsWith(before) && english.endsWith(after))
      return (to[i] ?? '').replace(/\{\w+\}/, () => english.slice(before.length, english.length - after.length))
  }
  return english
}

const textsOf = (words: unknown): readonly string[] =>
  typeof words === 'string' ? [words] : Object.values(words ?? {}).flatMap(textsOf)

/** `name`: of the picture. `reader`: a page with scripts, for one that has none: axe reads the same there. */
export async function lookAt(page: Page, name: string, scheme: 'light' | 'dark', reader = page): Promise<void> {
  if (reader !== page) await reader.setContent(await page.content())
  for (const width of WIDTHS) {
    for (const one of new Set([page, reader])) await one.setViewportSize({ width, height: 800 })
    const wide = await page.evaluate('document.documentElement.scrollWidth')
    expect([name, width, Number(wide) <= width]).toEqual([name, width, true])
    if (width === 320) continue
    if (IDENTITY_PICTURES === undefined) {
      const found = await reader.evaluate(
        `${AXE};axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes[0].html]))`,
      )
      expect([name, width, found]).toEqual([name, width, []])
      continue
    }
    mkdirSync(IDENTITY_PICTURES, { recursive: true })
    const path = join(IDENTITY_PICTURES, `${name}-${LOCALE}-${width}-${scheme}.png`)
    await page.screenshot({ path, fullPage: true })
  }
}
