/** The console as people use it: in a real browser, with and without scripts, by keyboard, in both schemes. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import type { OwnWorld } from './own-world.ts'
import { SCREENS } from './screens.ts'
import { useTabs } from './tabs.ts'
import { MODEL } from './world.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const PAGE_BYTES_MAX = 50_000

let world: OwnWorld
const open = useTabs((made) => {
  world = made
})

describe('in three clicks', () => {
  test('the request id in the 403 of a sidecar leads to the missing relationship', async () => {
    const refused = await world.send('GET', '/docs/1', 'refused-by-sidecar')
    expect(refused.status).toBe(403)
    const instance = /"instance":"([^"]+)"/.exec(await refused.text())?.[1] ?? ''
    const page = await open({ person: 'root' })
    await page.goto('/console?org=acme')
    await page.getByLabel('Somebody was refused?').fill(instance)
    await page.getByRole('button', { name: 'Find the decision' }).click()
    await page.getByRole('link', { name: 'viewer doc:1' }).first().click()
    await expect.poll(() => page.locator('.verdict').innerText()).toContain('denied')
    expect(await page.getByRole('main').innerText()).toContain('doc:1#viewer@user:bob')
  })

  test('the request id of a refused question leads to the missing relationship', async () => {
    await world.ask({ requestId: 'refused-request-1', relation: 'viewer', resource: 'doc:1' })
    const page = await open({ person: 'root' })
    await page.goto('/console?org=acme')
    await page.getByLabel('Somebody was refused?').fill('refused-request-1')
    await page.getByRole('button', { name: 'Find the decision' }).click()
    await page.getByRole('link', { name: 'viewer doc:1' }).first().click()
    await expect.poll(() => page.locator('.verdict').innerText()).toContain('denied')
    // A name may break where another one begins, which a row's name shows as a space.
    await page
      .getByRole('row', { name: /doc:1#viewer@ ?user:bob/ })
      .getByRole('link', { name: 'What if?' })
      .click()
    await expect.poll(() => page.locator('.verdict').innerText()).toContain('allowed')
  })

  test('who can see a resource becomes a CSV with all of them', async () => {
    const page = await open({ person: 'root' })
    await page.goto('/console?org=acme')
    await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: 'Who has access' }).click()
    await page.getByLabel('Resource', { exact: true }).fill('doc:2')
    await page.getByLabel('Relation or permission').fill('viewer')
    await page.getByRole('button', { name: 'List' }).click()
    const downloading = page.waitForEvent('download')
    await page.getByRole('link', { name: /^CSV of: Every/ }).click()
    const text = readFileSync((await (await downloading).path()) ?? '', 'utf8')
    expect(text.split('\r\n')).toEqual(['name', 'user:bob', expect.stringMatching(/^# complete; revision /), ''])
  })

  test('a changed model names who would lose access', async () => {
    const page = await open({ person: 'root' })
    await page.goto('/console?org=acme')
    await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: 'Model' }).click()
    const editor = page.getByRole('textbox', { name: 'Model in the OpenFGA language' })
    // What is typed while the editor takes the place of the field goes to neither.
    await expect.poll(() => editor.getAttribute('contenteditable')).toBe('true')
    await editor.fill(MODEL.replace(' or editor', ''))
    await page.getByLabel('Type of the resources').fill('doc')
    await page.getByLabel('Relation', { exact: true }).fill('viewer')
    await page.getByRole('button', { name: 'Check and compare' }).click()
    await expect.poll(() => page.getByRole('main').innerText()).toMatch(/would lose, 0 would gain/)
  })
})

test('an answer follows the writes while the page is open', async () => {
  await world.manage('POST', '/v1/organizations/acme/relationships', { delete: ['doc:live#viewer@user:bob'] })
  const page = await open({ person: 'root' })
  await page.goto('/console/ask?org=acme&subject=user:bob&relation=viewer&resource=doc:live')
  await expect.poll(() => page.locator('.live').count()).toBe(1)
  expect(await page.locator('.verdict').innerText()).toContain('denied')
  await world.manage('POST', '/v1/organizations/acme/relationships', { write: ['doc:live#viewer@user:bob'] })
  await expect.poll(() => page.locator('.verdict').innerText()).toContain('✓ allowed')
})

test('decisions come in as they are made, once somebody asks for that', async () => {
  const page = await open({ person: 'root' })
  await page.goto('/console/decisions?org=acme&resource=doc:tail')
  await world.ask({ requestId: 'tail-request-0', relation: 'viewer', resource: 'doc:tail' })
  await page.reload()
  await page.getByRole('button', { name: 'Follow live' }).click()
  await expect
    .poll(async () => {
      await world.ask({ requestId: 'tail-request-1', relation: 'viewer', resource: 'doc:tail' })
      return page.getByText('tail-request-1').count()
    })
    .toBeGreaterThan(0)
  await page.getByRole('button', { name: 'Pause' }).click()
})

test('every screen is whole without JavaScript, within 50 KB', async () => {
  const page = await open({ person: 'root', javaScriptEnabled: false })
  for (const [name, path] of Object.entries(SCREENS)) {
    const response = await page.goto(path)
    const isSmall = ((await response?.body())?.length ?? 0) < PAGE_BYTES_MAX
    expect({ name, status: response?.status(), isSmall }).toEqual({ name, status: 200, isSmall: true })
    expect(await page.locator('h1').count()).toBe(1)
  }
})

describe.each(['light', 'dark'] as const)('in the %s scheme', (colorScheme) => {
  test('every screen passes axe, and fits a phone and 400 % zoom', async () => {
    const page = await open({ person: 'root', colorScheme, bypassCSP: true })
    for (const [name, path] of Object.entries(SCREENS)) {
      await page.setViewportSize({ width: 1280, height: 900 })
      await page.goto(path)
      await page.evaluate(AXE)
      const judge = async (): Promise<void> => {
        const found = await page.evaluate(
          "axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })",
        )
        expect({ name, violations: violationsIn(found) }).toEqual({ name, violations: [] })
      }
      await judge()
      // 1280 pixels at 400 % (WCAG 1.4.10).
      await page.setViewportSize({ width: 320, height: 256 })
      const beyond = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
      expect({ name, beyond }).toEqual({ name, beyond: 0 })
      await judge()
      for (const width of [320, 1024]) {
        await page.setViewportSize({ width, height: 256 })
        const sideways = await page.evaluate(
          "Array.from(document.querySelectorAll('.scroll:has(table)')).filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent.slice(0, 80))",
        )
        expect({ name, width, sideways }).toEqual({ name, width, sideways: [] })
      }
    }
  }, 300_000)
})

function violationsIn(found: unknown): readonly string[] {
  if (typeof found !== 'object' || found === null || !('violations' in found)) throw new Error('axe did not run')
  return [found.violations]
    .flat()
    .map((violation) => JSON.stringify(violation, ['id', 'help', 'nodes', 'html', 'target']))
}

test('a question is asked and answered by keyboard alone', async () => {
  const page = await open({ person: 'root' })
  await page.goto('/console/ask?org=acme')
  await page.keyboard.press('Tab')
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the content')
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Help')
  for (const text of ['user:bob', 'viewer', 'doc:2']) {
    await page.keyboard.press('Tab')
    await page.keyboard.type(text)
  }
  await page.keyboard.press('Enter')
  await expect.poll(() => page.locator('.verdict').innerText()).toContain('allowed')
})

describe('the routes of a connected sidecar', () => {
  test('show what was asked, what never was, and what shadow mode would deny', async () => {
    const page = await open({ person: 'root' })
    await world.send('DELETE', '/docs/1', 'deleted-in-shadow')
    await page.goto('/console/routes?org=acme&show=shadow')
    await expect
      .poll(async () => {
        await page.reload()
        return page.getByRole('main').innerText()
      })
      .toMatch(/Without shadow mode [1-9]/)
    await page.goto('/console/routes?org=acme')
    await page.getByRole('link', { name: /never asked/ }).click()
    await expect
      .poll(() => page.getByRole('main').innerText())
      .toMatch(/FETCH is not a registered HTTP method[\s\S]*GET \/docs\/\{id\}\/export/)
    await page.getByRole('link', { name: 'reached by no test (5)' }).click()
    const main = page.getByRole('main')
    await expect.poll(() => main.innerText()).toMatch(/2 are reached by one of the 3 tests[\s\S]*FETCH \/docs/)
    const untested = await main.innerText()
    expect(untested).toContain('PUT /docs/{id}')
    expect(untested).not.toContain('GET /health')
  })

  test('say by the code of the sidecar what a request would ask, and lead to the question', async () => {
    const page = await open({ person: 'root' })
    await page.goto('/console/routes?org=acme')
    await page.getByLabel('Path, or URL with host').fill('/docs/2/export')
    await page.getByLabel('Claims of the token').fill('{"sub": "bob", "org": "acme"}')
    await page.getByRole('button', { name: 'Try' }).click()
    await expect
      .poll(() => page.locator('.answer').innerText())
      .toMatch(/takes GET \/docs\/\{id\}\/export[\s\S]*entitlement feature.export/)
    await page.getByRole('link', { name: 'viewer doc:2' }).click()
    await expect.poll(() => page.locator('.verdict').innerText()).toContain('allowed')
  })

  test.each([
    ['/docs//1', '', 'The sidecar refuses it by itself: 400'],
    ['/docs/1', '', 'The sidecar refuses it by itself: 401'],
    ['/docs/1', '[1]', 'claims are not a JSON object'],
    ['/nothing', '{}', 'No route matches'],
    ['https://elsewhere.example/docs/1', '{}', 'is not served'],
    [`/docs/${encodeURIComponent(`"><b>`)}`, `{"sub":"bob"}`, 'takes GET /docs/{id}'],
  ])('say of %s with the claims %s: %s', async (target, claims, expected) => {
    const page = await open({ person: 'root' })
    await page.goto(`/console/routes?${new URLSearchParams({ org: 'acme', target, claims })}`)
    expect(await page.locator('.answer').innerText()).toContain(expected)
    expect(await page.locator('script:not([src])').count()).toBe(0)
  })
})

test('a relationship is previewed, written and seen by the next decision', async () => {
  await world.manage('POST', '/v1/organizations/acme/relationships', { delete: ['doc:new#viewer@user:carla'] })
  const page = await open({ person: 'anna' })
  await page.goto('/console/relationships?org=acme')
  await page.getByLabel('Relationships', { exact: true }).fill('doc:new#viewer@user:carla\ndoc:1#nothing@user:carla')
  await page.getByRole('button', { name: 'Preview' }).click()
  await expect.poll(() => page.getByRole('alert').innerText()).toMatch(/line 2/)
  await page.getByLabel('Relationships', { exact: true }).fill('doc:new#viewer@user:carla 2099-01-31T12:00:00Z')
  await page.getByRole('button', { name: 'Preview' }).click()
  await expect.poll(() => page.locator('table').first().innerText()).toContain('is added')
  await page.getByRole('button', { name: 'Write 1 relationship' }).click()
  await expect.poll(() => page.getByRole('status').first().innerText()).toContain('Every decision from now on sees it')
  const changes = await world.manage('GET', '/v1/organizations/acme/changes?after=0')
  expect(changes.items.at(-1)).toMatchObject({ actor: 'user:anna' })
})

test('somebody is invited and the invitation withdrawn, by keyboard alone', async () => {
  const page = await open({ person: 'root' })
  await page.goto('/console/invitations?org=acme')
  const address = `keyboard-${Date.now()}@new.example`
  await page.getByLabel('E-mail address').focus()
  await page.keyboard.type(address)
  for (const _ of ['tier', 'language', 'role', 'more roles', 'button']) await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await expect.poll(() => page.getByRole('status').first().innerText()).toContain('The mail is on its way')
  await page
    .getByRole('row', { name: new RegExp(RegExp.escape(address)) })
    .getByRole('button', { name: 'Withdraw' })
    .focus()
  await page.keyboard.press('Enter')
  await expect.poll(() => page.getByRole('status').first().innerText()).toContain('withdrawn')
  // No page is kept, so that the way back shows what there is now.
  await page.goBack()
  await expect.poll(() => page.getByRole('row', { name: /dora@elsewhere\.example/ }).count()).toBe(1)
  expect(await page.getByRole('row', { name: new RegExp(RegExp.escape(address)) }).count()).toBe(0)
})

test('a session that is ended is over at the next click', async () => {
  const page = await open({ person: 'anna' })
  await world.manage('POST', '/v1/users/anna/sessions:revoke')
  await page.goto('/console')
  await expect.poll(() => page.url()).toContain('/oauth/interaction/')
})
