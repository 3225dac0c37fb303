/** Names that somebody else chose, on every screen of the console: in what is stored, and in every part of an address. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { launchChromium, openTab, type Tab } from './chromium.ts'
import { type OwnWorld, startOwnWorld } from './own-world.ts'
import { SCREENS } from './screens.ts'
import { fillStreams, HOSTILE } from './world.ts'

let world: OwnWorld
let browser: Browser
let tab: Tab
beforeAll(async () => {
  world = await startOwnWorld()
  browser = await launchChromium()
  tab = await openTab(browser, world, { person: 'root' })
  for (const [kind, hostile] of Object.entries(HOSTILE)) await store(kind, hostile.slice('doc:'.length))
  await fillStreams(world.connectionString, [['w'.repeat(80), 'acme', `https://${'w'.repeat(60)}.example/`]])
})
afterAll(async () => {
  await browser?.close()
  await world?.close()
})
/** No policy had to refuse anything, and nothing left this origin. */
afterEach(() => expect(tab.complaints.splice(0)).toEqual([]))

/** Everything that somebody may name, under such a name where ids may have it, else with such a title. */
async function store(kind: string, text: string): Promise<void> {
  const id = /^[\x21-\x7e]{1,250}$/.test(text) ? `${kind}${text}` : kind === 'long' ? text : `of-${kind}`
  const at = encodeURIComponent(id)
  const { manage } = world
  await manage('PUT', `/v1/organizations/${at}`, { name: text, parent: 'acme' })
  await manage('PUT', `/v1/users/${at}`, { name: text, email: `${kind}@names.example` })
  await manage('PUT', `/v1/organizations/acme/members/${at}`, { role: 'member', status: 'suspended' })
  await manage('PUT', `/v1/apps/${at}/manifest`, {
    audiences: [`https://${kind}.example`],
    permissions: { [`${kind}:read`]: text },
    roles: { [`${kind}-reader`]: { name: text, permissions: [`${kind}:read`] } },
    model: null,
  })
  const grant = { app: id, role: `${kind}-reader` }
  await manage('POST', '/v1/organizations/acme/role-grants', { ...grant, subject: `user:${id}` })
  await manage('POST', '/v1/role-grants', { ...grant, subject: `user:${id}` })
  await manage('POST', '/v1/organizations/acme/invitations', {
    email: `${kind}@invited.example`,
    role: 'member',
    roles: [grant],
  })
  await manage('POST', '/v1/organizations/acme/relationships', { write: [`doc:${kind}#viewer@user:${text}`] })
  await world.ask({ requestId: `asked-about-${kind}`, relation: 'viewer', resource: `doc:${text}` })
}

/** Every parameter that a screen reads. */
const PARAMETERS: { readonly [screen: string]: readonly string[] } = {
  '': [],
  find: ['q'],
  ask: ['subject', 'relation', 'resource', 'app', 'actors', 'scopes', 'with', 'without', 'as_of', 'context'],
  who: ['resource', 'relation', 'type', 'page', 'with', 'as_of', 'context'],
  what: ['subject', 'relation', 'type', 'page', 'without', 'context'],
  decisions: ['request', 'route', 'subject', 'resource', 'reason', 'outcome', 'now', 'from', 'to'],
  model: ['app', 'revision', 'type', 'compare', 'done'],
  relationships: ['object', 'relation', 'subject', 'lines', 'op', 'page', 'done'],
  organization: ['members', 'below', 'roles', 'entitlements', 'done'],
  people: ['user', 'search', 'page', 'done'],
  change: ['what', 'user', 'tier', 'status', 'op', 'app', 'role', 'subject', 'everywhere', 'until'],
  invitations: ['email', 'role', 'roles', 'language', 'page', 'done'],
  routes: ['sidecar', 'method', 'target', 'claims', 'show'],
  streams: ['stream', 'after', 'done'],
  changes: ['log', 'until', 'skip', 'actor', 'text', 'from', 'to', 'kind'],
  help: [],
  'help/console': [],
  'help/routes': [],
}

/** Nothing of it is markup, nothing turns its neighbours around, and nothing makes the page wider than a phone. */
async function requireHarmless(page: Page, path: string): Promise<void> {
  const response = await page.goto(path)
  const status = response?.status() ?? 0
  const found = await page.evaluate(`({
    scripts: document.querySelectorAll('script:not([src])').length,
    handlers: [...document.querySelectorAll('*')].filter((one) => [...one.attributes].some(({ name }) => name.startsWith('on'))).length,
    turned: /[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.title + document.body.innerText),
    elsewhere: [...document.querySelectorAll('a[href], form[action]')].filter((one) => new URL(one.href ?? one.action, location.href).origin !== location.origin).length,
    beyond: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  })`)
  expect({ path, isAnswer: status < 500, found }).toEqual({
    path,
    isAnswer: true,
    found: { scripts: 0, handlers: 0, turned: false, elsewhere: 0, beyond: 0 },
  })
}

test('no table has to be scrolled sideways for such names', async () => {
  for (const [name, path] of Object.entries(SCREENS)) {
    await tab.page.goto(path)
    for (const width of [320, 660, 800, 1000, 1280]) {
      await tab.page.setViewportSize({ width, height: 800 })
      const sideways = await tab.page.evaluate(
        "Array.from(document.querySelectorAll('.scroll:has(table)')).filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent.slice(0, 80))",
      )
      expect({ name, width, sideways }).toEqual({ name, width, sideways: [] })
    }
  }
})

test('every screen is in the table', () => {
  const paths = Object.values(SCREENS).map((path) => path.replace(/^\/console\/?/, '').split('?', 1)[0])
  expect(Object.keys(PARAMETERS).sort()).toEqual([...new Set(paths)].sort())
})

describe.each(Object.keys(PARAMETERS))('the screen "%s"', (screen) => {
  test('shows what is stored under such names as text', async () => {
    await tab.page.setViewportSize({ width: 390, height: 800 })
    for (const path of Object.values(SCREENS).filter((one) => one.startsWith(`/console${screen && `/${screen}`}?`)))
      await requireHarmless(tab.page, path)
  })

  test.each(Object.entries(HOSTILE))('shows what is %s in its address as text', async (_, hostile) => {
    const text = hostile.slice('doc:'.length)
    await tab.page.setViewportSize({ width: 390, height: 800 })
    const path = `/console${screen && `/${screen}`}`
    const to = (query: { readonly [name: string]: string }): string => `${path}?${new URLSearchParams(query)}`
    for (const parameter of PARAMETERS[screen] ?? []) {
      await requireHarmless(tab.page, to({ org: 'acme', [parameter]: text }))
      await requireHarmless(tab.page, to({ org: 'acme', [parameter]: hostile }))
    }
    await requireHarmless(tab.page, to({ org: text }))
    const all = Object.fromEntries((PARAMETERS[screen] ?? []).map((one) => [one, hostile]))
    await requireHarmless(tab.page, to({ org: 'acme', ...all }))
  })
})
