/** The playground's page in a real browser: the answers of the commands, and nothing that leaves it. */
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runModelTests } from '../../pdp/tools/model-test/model-test.ts'
import { launchChromium } from './chromium.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const PAGE = join(import.meta.dirname, '../../dist/playground/index.html')
const SAMPLES = join(import.meta.dirname, '../../../shared/models/openfga-sample-stores/stores')
const PAGE_BYTES_MAX = 400 * 1_024

let browser: Browser
beforeAll(async () => {
  execFileSync(process.execPath, ['bin/dev/playground/build.ts'])
  browser = await launchChromium()
})
afterAll(() => browser?.close())

async function open(options: Parameters<Browser['newContext']>[0] = {}) {
  const page = await (await browser.newContext(options)).newPage()
  const seen: string[] = []
  page.on('request', (request) => seen.push(request.url()))
  page.on('pageerror', (error) => seen.push(String(error)))
  await page.goto(`file://${PAGE}`)
  await expect.poll(() => page.locator('#tests').innerText()).toContain('4 passed, 0 failed')
  return { page, seen }
}
/** Replaces the text of the first editor as a person does. */
async function write(page: Page, text: string): Promise<void> {
  await page.locator('.cm-content').first().click()
  await page.keyboard.press('Control+A')
  await page.keyboard.insertText(text)
}

test('the page is small, and nothing but itself is ever requested', async () => {
  expect(gzipSync(readFileSync(PAGE)).length).toBeLessThan(PAGE_BYTES_MAX)
  const { page, seen } = await open()
  await page.getByLabel('User').fill('user:eve')
  await page.getByRole('button', { name: 'Ask' }).click()
  await expect.poll(() => page.locator('#answer').innerText()).toContain('denied: user:eve viewer invoice:7')
  expect(seen).toEqual([`file://${PAGE}`])
})

test('an allow shows its way, a denial what would allow it, and a wrong question what is wrong', async () => {
  const { page } = await open()
  expect(await page.locator('#answer').innerText()).toMatch(
    /allowed: user:bob viewer invoice:7[\s\S]*group:accounting#member@user:bob/,
  )
  const answerTo = async (field: string, text: string): Promise<string> => {
    await page.getByLabel(field).fill(text)
    await page.getByRole('button', { name: 'Ask' }).click()
    await expect.poll(() => page.locator('#answer').innerText()).not.toMatch(/^allowed: user:bob viewer/)
    return page.locator('#answer').innerText()
  }
  expect(await answerTo('Relation', 'editor')).toMatch(/denied[\s\S]*invoice:7#editor@user:bob/)
  expect(await answerTo('Relation', 'owner')).toContain('type "invoice" has no relation "owner"')
  expect(await answerTo('Context (JSON)', '{')).toContain('The context is no JSON object.')
})

test('a change is judged at once: tests fail, findings come, and a mistake is named with its line', async () => {
  const { page } = await open()
  const text = await page.locator('textarea').first().inputValue()
  await write(page, text.replace('but not banned', 'but not viewer from parent'))
  await expect.poll(() => page.locator('#tests').innerText()).toContain('failed')
  await expect.poll(() => page.locator('#tests').innerText()).toMatch(/expected true, got false/)
  await write(page, text.replace('define editor: [user]', 'define editor: [usr]'))
  await expect.poll(() => page.locator('#findings').innerText()).toMatch(/store\.fga\.yaml:15:\d+: .*usr/)
  await write(
    page,
    text.replace('define editor: [user]', 'define editor: [user]\n      define odd: banned but not banned'),
  )
  await expect
    .poll(() => page.locator('#findings').innerText())
    .toContain('line 16: invoice#odd: nobody can ever have it')
})

describe.each(['light', 'dark'] as const)('in %s colours', (colorScheme) => {
  test.each([390, 1280])('at %d pixels it scrolls one way only, and breaks no rule of accessibility', async (width) => {
    const { page } = await open({ colorScheme, viewport: { width, height: 900 } })
    expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
    await page.addScriptTag({ content: AXE }).catch(() => page.evaluate(AXE))
    const { violations } = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>('axe.run()')
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([])
  })
})

const samples = globSync('*/*.fga.yaml', { cwd: SAMPLES })
test.skipIf(samples.length === 0)('every sample store has the answers that the command has', async () => {
  const { page } = await open()
  const counts = { passed: 0 }
  for (const file of samples) {
    const folder = join(SAMPLES, dirname(file))
    const files = globSync('**/*.{yaml,fga,mod,json,csv,jsonl}', { cwd: folder }).map((name) => [
      name,
      readFileSync(join(folder, name), 'utf8'),
    ])
    const asked = JSON.stringify({ files, main: relative(folder, join(SAMPLES, file)) })
    const found = await page.evaluate<{ issues: string[]; tests: { failure: string | null }[] }>(
      `(({ files, main }) => portcullis.play(new Map(files), main))(${asked})`,
    )
    let summary = ''
    const io = { write: (text: string) => (summary = text), directory: folder, allowExternalFiles: true }
    await runModelTests([join(SAMPLES, file)], io)
    const failed = found.tests.filter(({ failure }) => failure !== null).length
    expect([file, found.issues, summary]).toEqual([
      file,
      [],
      expect.stringMatching(new RegExp(`^${found.tests.length - failed} passed, ${failed} failed`)),
    ])
    counts.passed += found.tests.length - failed
  }
  expect(counts.passed).toBeGreaterThan(100)
})
