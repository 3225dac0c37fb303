/** Twelve tasks of an operator, from the start page: each at most five clicks, one typed field where a name is needed, and the counts of the book. */
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { OwnWorld } from './own-world.ts'
import { useTabs } from './tabs.ts'
import { MODEL } from './world.ts'

const CLICKS_MAX = 5
/** The table of the book: task, before, now. */
const TABLE = readFileSync('docs/console.md', 'utf8')

let world: OwnWorld
const open = useTabs((made) => {
  world = made
})

let page: Page
let [clicks, fields] = [0, 0]
beforeEach(async () => {
  page = await open({ person: 'root' })
  await page.goto('/console?org=acme')
  clicks = 0
  fields = 0
})
afterEach(() => {
  const [number] = (expect.getState().currentTestName ?? '').split(' ')
  expect(TABLE).toMatch(new RegExp(`^\\| ${number} .*\\| ${clicks}, ${fields} \\|$`, 'm'))
  expect([clicks <= CLICKS_MAX, fields <= 1]).toEqual([true, true])
})

const click = async (
  role: 'link' | 'button',
  name: string | RegExp,
  within = page.getByRole('main'),
): Promise<void> => {
  clicks += 1
  await within
    .getByRole(role, { name, exact: typeof name === 'string' })
    .first()
    .click()
}
const menu = (name: string): Promise<void> => click('link', name, page.getByRole('navigation', { name: 'Screens' }))
const type = async (label: string, text: string): Promise<void> => {
  fields += 1
  await page.getByLabel(label, { exact: true }).fill(text)
}
/** By the field of every page, and Enter. */
const find = async (text: string): Promise<void> => {
  fields += 1
  await page.keyboard.press('/')
  await page.keyboard.type(text)
  await page.keyboard.press('Enter')
}
const shows = async (text: string | RegExp): Promise<void> => {
  const wanted = typeof text === 'string' ? new RegExp(RegExp.escape(text)) : text
  await expect.poll(() => page.getByRole('main').innerText()).toMatch(wanted)
}

test('1 why can Bob see document 2', async () => {
  await find('bob viewer doc:2')
  await shows('✓ allowed')
  const picture = page.getByRole('img', { name: /Why user:bob has viewer on doc:2/ }).first()
  expect(await picture.innerHTML()).toMatch(/doc[\s\S]*finance[\s\S]*accounting[\s\S]*bob/)
})

test('2 who can see document 2', async () => {
  await find('doc:2')
  await shows(/viewer[\s\S]*user:bob/)
})

test('3 what can Bob do at all', async () => {
  await find('bob')
  await shows(/by type and relation[\s\S]*viewer[\s\S]*doc:2/)
})

test('4 who lost access since yesterday, and by whom', async () => {
  await world.manage('POST', '/v1/organizations/acme/relationships', {
    write: ['doc:lost#viewer@group:finance#member'],
  })
  await world.manage('POST', '/v1/organizations/acme/relationships', {
    delete: ['doc:lost#viewer@group:finance#member'],
  })
  await menu('Changes')
  await click('link', 'Who lost access since yesterday?')
  await shows(/Who lost what[\s\S]*bob[\s\S]*viewer doc:lost[\s\S]*service:admin/)
})

test('5 a leaver is removed everywhere', async () => {
  await world.manage('PUT', '/v1/users/leaver', { name: 'Lea Ver', email: 'lea@acme.example', email_verified: true })
  await world.manage('PUT', '/v1/organizations/acme/members/leaver', { role: 'member', status: 'active' })
  await world.manage('POST', '/v1/organizations/acme/relationships', { write: ['doc:9#viewer@user:leaver'] })
  await find('lea ver')
  await click('link', /Offboard/)
  await shows('doc:9#viewer@user:leaver')
  await click('button', /Shut out, and take away 2/)
  await shows('everything that they held was taken away')
  expect((await world.manage('GET', '/v1/users/leaver/holdings')).relationships).toEqual([])
})

test('6 what happens if a group is removed', async () => {
  await find('group:finance')
  await click('button', /deleted\?/)
  await shows(/lost[\s\S]*− loses[\s\S]*user:bob[\s\S]*viewer doc:2/)
})

test('7 which routes are denied most, and why', async () => {
  for (const _ of [1, 2]) await world.send('GET', '/docs/1', 'denied-for-the-ranking')
  // Counts of all PDPs are written each second.
  await expect
    .poll(async () => {
      await page.reload()
      return page.getByRole('main').innerText()
    })
    .toMatch(/Denied most[\s\S]*GET \/docs\/\{id\}[\s\S]*none/)
})

test('8 a contractor gets access until Friday', async () => {
  await world.manage('POST', '/v1/organizations/acme/relationships', { delete: ['doc:4#viewer@user:contractor'] })
  await menu('Relationships')
  await type('Relationships', 'doc:4#viewer@user:contractor Friday')
  await click('button', 'Preview')
  await shows(/is added[\s\S]*00:00:00 UTC/)
  await click('button', 'Write 1 relationship')
  await shows('Every decision from now on sees it')
  await click('button', /Undo/)
  await shows('is deleted')
})

test('9 who changed the model, and back to the one before', async () => {
  const manifest = await world.manage('GET', '/v1/apps/docs/manifest')
  const { audiences, permissions, roles } = manifest
  await world.manage('PUT', '/v1/apps/docs/manifest', {
    audiences,
    permissions,
    roles,
    model: MODEL.replace(' or editor', ''),
  })
  await menu('Model')
  await click('link', 'docs')
  await shows(/Versions of the manifest[\s\S]*service:admin/)
  await click('link', 'version 1')
  await click('link', 'Who would gain and who would lose?')
  await click('button', 'Put this model in force')
  await shows('The new model is in force')
})

test('10 a session is found and ended', async () => {
  // Not with a session that an earlier try has ended.
  await open({ person: 'tom', isFresh: true })
  await page.goto('/console?org=globex')
  await find('tom')
  await click('button', /^End session/)
  await shows('The sessions were ended')
})

test('11 somebody is invited with a role', async () => {
  await menu('Invitations')
  await type('E-mail address', 'new@elsewhere.example')
  clicks += 1
  await page.getByLabel('Role', { exact: true }).selectOption({ label: 'Exporter (docs)' })
  await click('button', 'Send the invitation')
  await shows(/The mail is on its way[\s\S]*new@elsewhere\.example[\s\S]*docs\/exporter/)
})

test('12 do all sidecars run the same route file', async () => {
  await menu('Sidecars and routes')
  await shows('All sidecars of each resource enforce the same route file')
})
