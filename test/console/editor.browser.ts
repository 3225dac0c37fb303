/** The editor of models: what the server finds wrong at its line, with and without scripts. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { BrowserContextOptions, Locator, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import type { OwnWorld } from './own-world.ts'
import { useTabs } from './tabs.ts'
import { MODEL } from './world.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const LABEL = 'Model in the OpenFGA language'
const WRONG = MODEL.replace('define member: [user, group#member]', 'define member: [usr, group#member]')
const WRONG_LINE = MODEL.split('\n').findIndex((line) => line.includes('define member:')) + 1

let world: OwnWorld
const openAs = useTabs((made) => {
  world = made
})

async function open(options: BrowserContextOptions = {}): Promise<Page> {
  const page = await openAs({ ...options, person: 'root' })
  await page.goto('/console/model?org=acme&app=docs')
  return page
}

const editorOf = (page: Page): Locator => page.getByRole('textbox', { name: LABEL })

const lineOfMarker = (page: Page) =>
  page.evaluate(`(() => {
    const root = document.querySelector('.editor').shadowRoot
    const marker = root.querySelector('.cm-lint-marker-error')
    if (marker === null) return null
    const top = marker.getBoundingClientRect().top
    return [...root.querySelectorAll('.cm-lineNumbers .cm-gutterElement')].find((one) => Math.abs(one.getBoundingClientRect().top - top) < 10)?.textContent
  })()`)

test('a mistake is marked at its line while it is typed, and gone when it is taken back', async () => {
  const page = await open()
  const editor = editorOf(page)
  await expect.poll(() => editor.getAttribute('contenteditable')).toBe('true')
  await editor.fill(WRONG)
  await expect.poll(() => lineOfMarker(page)).toBe(String(WRONG_LINE))
  await expect.poll(() => page.locator('.found').innerText()).toContain(`line ${WRONG_LINE}`)
  await page.keyboard.press('Control+z')
  await expect.poll(() => page.locator('.found').innerText()).toBe('')
  expect(await lineOfMarker(page)).toBe(null)
})

test('what was typed in it is what the form sends', async () => {
  const page = await open()
  await editorOf(page).fill(MODEL.replace('define banned: [user]', 'define banned: [user, group#member]'))
  await page.getByRole('button', { name: 'Check and compare' }).click()
  await expect.poll(() => page.locator('h1').innerText()).toContain('compared')
  await expect.poll(() => editorOf(page).innerText()).toContain('define banned: [user, group#member]')
})

test('a text that is refused comes back with each mistake at its line', async () => {
  const page = await open()
  await editorOf(page).fill(WRONG)
  await page.getByRole('button', { name: 'Check and compare' }).click()
  await expect.poll(() => page.getByRole('alert').innerText()).toContain(`line ${WRONG_LINE}`)
  await expect.poll(() => lineOfMarker(page)).toBe(String(WRONG_LINE))
})

test('the keyboard enters it, writes, and leaves it again', async () => {
  const page = await open()
  await editorOf(page).focus()
  await page.keyboard.press('Control+End')
  await page.keyboard.type('type by-keyboard')
  await page.keyboard.press('Tab')
  expect(await page.evaluate('document.activeElement.name')).toBe('type')
  expect(await page.evaluate("document.querySelector('textarea[name=text]').value")).toContain('type by-keyboard')
  await page.keyboard.press('Shift+Tab')
  expect(await page.evaluate('document.activeElement.className')).toBe('editor')
  // What is typed takes the place of what is selected, over several lines too.
  await page.keyboard.press('Control+a')
  await page.keyboard.type('model')
  expect(await page.evaluate("document.querySelector('textarea[name=text]').value")).toBe('model')
  await page.keyboard.press('Control+z')
  await page.keyboard.press('Control+z')
  await expect
    .poll(() => page.evaluate("document.querySelector('textarea[name=text]').value.includes('by-keyboard')"))
    .toBe(false)
})

test('without scripts the text is a plain field, and a mistake is told with its line', async () => {
  const page = await open({ javaScriptEnabled: false })
  await editorOf(page).fill(WRONG)
  await page.getByRole('button', { name: 'Check and compare' }).click()
  await expect.poll(() => page.getByRole('alert').innerText()).toContain('define member: [usr, group#member]')
  expect(await page.getByRole('alert').innerText()).toContain(`line ${WRONG_LINE}`)
  expect(await editorOf(page).inputValue()).toBe(WRONG)
})

test('only the screen with an editor loads one, all of it from here', async () => {
  const page = await open()
  const loaded = (): Promise<readonly string[]> =>
    page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)")
  await expect.poll(() => page.locator('.cm-content').count()).toBe(1)
  const addresses = await loaded()
  expect(addresses.filter((one) => one.includes('/console/assets/editor/')).length).toBeGreaterThan(5)
  expect(addresses.filter((one) => !one.startsWith(world.issuer))).toEqual([])
  await page.goto('/console?org=acme')
  expect((await loaded()).filter((one) => one.includes('/editor/'))).toEqual([])
})

describe.each(['light', 'dark'] as const)('in the %s scheme', (colorScheme) => {
  test('it passes axe with a mistake marked, and fits 400 % zoom', async () => {
    const page = await open({ colorScheme, bypassCSP: true })
    await editorOf(page).fill(WRONG)
    await expect.poll(() => lineOfMarker(page)).toBe(String(WRONG_LINE))
    await page.evaluate(AXE)
    for (const width of [1280, 320]) {
      await page.setViewportSize({ width, height: 600 })
      const found = await page.evaluate(
        'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes[0].html]))',
      )
      expect({ width, found }).toEqual({ width, found: [] })
    }
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
  })
})
