/** What people do by themselves with their account, in a real Chromium: a forgotten password, a new one, their address, agents, and names of any kind. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { startPdp } from '../../../pdp/server/runtime/start.ts'
import { createLog } from '../../../pdp/shared/process/log.ts'
import { createShutdown } from '../../../pdp/shared/process/shutdown.ts'
import { choosePorts } from '../../e2e/demo-stack.ts'
import { ADMIN_SECRET, HOST, pdpSettings } from '../../e2e/pdp-settings.ts'
import { openTestDatabase } from '../../support/database.ts'
import { clientToken } from '../../support/sign-in.ts'
import { launchChromium } from '../chromium.ts'
import { BRANDING, LOCALE, lookAt, say } from '../look.ts'

const PASSWORD = 'correct horse battery staple'
const NEW_PASSWORD = 'quite another battery staple'
const CALLBACK = 'https://app.example/cb'
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
/** As long as a name may be, from right to left, and with pictures. */
const NAMES = {
  long: `${'Wolfeschlegelsteinhausenbergerdorff '.repeat(6)}the Third`,
  rtl: 'أحمد بن محمد (admin)',
  emoji: '👩‍👩‍👧‍👦 Zoë & Co <b>',
}

const log = createLog({ service: 'test', level: 'silent' })
const shutdown = createShutdown({ log, timeoutMs: 20_000 })
const folder = mkdtempSync(join(tmpdir(), 'portcullis-account-'))
const mails = join(folder, 'mail')
let issuer: string
let chromium: Browser
let dropDatabase: () => Promise<void>
let manage: (method: 'PUT' | 'POST', path: string, body: object) => Promise<void>
let people = 0

beforeAll(async () => {
  const database = await openTestDatabase()
  dropDatabase = database.drop
  const ports = await choosePorts({})
  issuer = `http://${HOST}:${ports.http}`
  const at = { issuer, adminSecret: ADMIN_SECRET, host: HOST, ports, databaseUrl: database.connectionString }
  const settings = { ...pdpSettings({ ...at, dataDirectory: folder }), mail: { folder: mails }, branding: BRANDING }
  await startPdp(settings, { log, shutdown })
  const scope = 'directory:write clients:write manifest:write relationships:write'
  const admin = { issuer, clientId: 'admin', clientSecret: ADMIN_SECRET, scope }
  const { access_token: token } = await clientToken(admin)
  manage = async (method, path, body) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await fetch(issuer + path, { method, headers, body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  }
  await manage('PUT', '/v1/organizations/acme', { name: NAMES.rtl })
  const model = `model
  schema 1.1
type user
type group
  relations
    define member: [user]
type folder
  relations
    define viewer: [user]
type doc
  relations
    define viewer: [group#member]
`
  await manage('PUT', '/v1/apps/docs/manifest', { audiences: [], permissions: {}, roles: {}, model })
  await manage('PUT', '/v1/clients/ledger', {
    ...{ client_name: NAMES.emoji, redirect_uris: [CALLBACK], token_endpoint_auth_method: 'none' },
    ...{ application_type: 'native', scope: 'openid profile offline_access' },
    grant_types: ['authorization_code', 'refresh_token'],
  })
  const shown = { client_name: NAMES.long, grant_types: [EXCHANGE], scope: 'orders:read orders:write' }
  await manage('PUT', '/v1/clients/agent', { ...shown, exchange_clients: ['ledger'] })
  chromium = await launchChromium()
})
afterAll(async () => {
  await chromium?.close()
  await shutdown.run('test')
  await dropDatabase?.()
  rmSync(folder, { recursive: true, force: true })
})
afterEach(async () => {
  for (const context of chromium.contexts()) await context.close()
})

type Scheme = 'light' | 'dark'
type Tab = { readonly page: Page; readonly complaints: string[]; look(name: string): Promise<void> }

async function open(colorScheme: Scheme, javaScriptEnabled = true): Promise<Tab> {
  const context = await chromium.newContext({ baseURL: issuer, colorScheme, locale: LOCALE, javaScriptEnabled })
  const page = await context.newPage()
  page.setDefaultTimeout(20_000)
  const complaints: string[] = []
  page.on('console', (message) => {
    if (/Content Security Policy|violates/i.test(message.text())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  return { page, complaints, look: (name) => lookAt(page, name, colorScheme) }
}
const press = (page: Page, name: string): Promise<void> =>
  page.getByRole('button', { name: say(name), exact: true }).click()
const follow = (page: Page, name: string): Promise<void> =>
  page.getByRole('link', { name: say(name), exact: true }).click()
const shows = (page: Page, wanted: string): Promise<void> =>
  expect.poll(() => page.getByRole('main').innerText()).toContain(say(wanted))

async function newPerson(name: string): Promise<string> {
  const id = `person-${++people}`
  await manage('PUT', `/v1/users/${id}`, { name, email: `${id}@acme.example`, password: PASSWORD })
  await manage('PUT', `/v1/organizations/acme/members/${id}`, { role: 'member', status: 'active' })
  return `${id}@acme.example`
}
/** Relationships of a person, with names of any kind. */
async function reachMuch(email: string): Promise<void> {
  const user = `user:${email.split('@', 1)[0]}`
  const folders = Array.from({ length: 101 }, (_, i) => `folder:${i}#viewer@${user}`)
  await manage('POST', '/v1/organizations/acme/relationships', {
    write: [`group:staff#member@${user}`, `doc:${'long'.repeat(60)}#viewer@group:staff#member`, ...folders],
  })
}
async function signIn(page: Page, email: string, password = PASSWORD): Promise<void> {
  await page.getByLabel(say('E-mail address')).fill(email)
  await page.getByLabel(say('Password'), { exact: true }).fill(password)
  await press(page, 'Sign in')
}
const linksTo = (email: string): readonly string[] =>
  (existsSync(mails) ? readdirSync(mails).sort() : []).flatMap((file) => {
    const text = readFileSync(join(mails, file), 'utf8')
    return text.includes(`To: ${email}\n`) ? [...(/^http\S+$/m.exec(text) ?? [])] : []
  })
async function linkAfter(email: string, act: () => Promise<void>): Promise<string> {
  const before = linksTo(email).length
  await act()
  await expect.poll(() => linksTo(email).length).toBe(before + 1)
  return linksTo(email).at(-1) ?? ''
}
const authorize = (): string =>
  `/oauth/authorize?${new URLSearchParams({
    ...{ client_id: 'ledger', response_type: 'code', redirect_uri: CALLBACK, scope: 'openid profile offline_access' },
    ...{ code_challenge: 'a'.repeat(43), code_challenge_method: 'S256', prompt: 'consent' },
  })}`

test.each(['light', 'dark'] as const)(
  'a forgotten password is set anew by the link, in another browser by the code too, in the %s scheme',
  async (scheme) => {
    const email = await newPerson(NAMES.rtl)
    const [first, second] = [await open(scheme), await open(scheme)]
    await first.page.goto(authorize())
    await follow(first.page, 'Forgot your password?')
    await first.look('forgotten')
    // Back at the sign-in of the application, not of the account.
    await follow(first.page, 'Sign in')
    await shows(first.page, NAMES.emoji)
    await follow(first.page, 'Forgot your password?')
    await first.page.getByLabel(say('E-mail address')).fill(email)
    const link = await linkAfter(email, () => press(first.page, 'Send the link'))
    await first.look('forgotten-sent')
    const code = await first.page.locator('.code').innerText()

    await second.page.goto(link)
    await second.look('reset-other-browser')
    await second.page.getByLabel(say('Code of the other browser')).fill('0000 0000')
    await press(second.page, 'Continue')
    await second.look('reset-other-browser-wrong')
    await second.page.getByLabel(say('Code of the other browser')).fill(code)
    await press(second.page, 'Continue')
    await second.look('reset')
    await second.page.getByLabel(say('New password'), { exact: true }).fill(NEW_PASSWORD)
    await second.page.getByLabel(say('New password again')).fill(`${NEW_PASSWORD}!`)
    await press(second.page, 'Set the password')
    await second.look('reset-different')
    await second.page.getByLabel(say('New password'), { exact: true }).fill(NEW_PASSWORD)
    await second.page.getByLabel(say('New password again')).fill(NEW_PASSWORD)
    await press(second.page, 'Set the password')
    await second.look('reset-done')
    await second.page.goto(link)
    await second.look('reset-gone')
    await follow(second.page, 'Ask for another link')
    await shows(second.page, 'We will send you a link')
    await second.page.goto('/account')
    await signIn(second.page, email, NEW_PASSWORD)
    await shows(second.page, email)
    expect([...first.complaints, ...second.complaints]).toEqual([])
  },
  180_000,
)

test.each(['light', 'dark'] as const)(
  'a person verifies the address, changes the password, lets an agent act, and ends all others, in the %s scheme',
  async (scheme) => {
    const email = await newPerson(NAMES.emoji)
    const { page, look, complaints } = await open(scheme)
    for (let other = 0; other < 2; other += 1) {
      const { page: elsewhere } = await open(scheme)
      await elsewhere.goto('/account')
      await signIn(elsewhere, email)
      await shows(elsewhere, email)
    }
    await page
      .context()
      .route(`${CALLBACK}*`, (route) => route.fulfill({ contentType: 'text/html', body: '<p>There</p>' }))
    await page.goto(authorize())
    await signIn(page, email)
    await look('consent-names')
    await press(page, 'Continue')
    await page.waitForURL(`${CALLBACK}*`)
    await page.goto('/account/delegations')
    await look('delegation-which')
    await page.goto('/account/delegations?client_id=nobody')
    await look('delegation-unknown')
    await page.goto('/account/delegations?client_id=agent&organization=acme')
    await look('delegation-asked')
    await press(page, 'Let it act')
    await look('delegation-granted')
    await page.goto('/account')
    await look('account-full')
    await reachMuch(email)
    await page.locator('a[href*="/account/access"]').click()
    await shows(page, 'By type and relation')
    await look('access')
    await page.goto('/account/access?organization=nowhere')
    await look('access-elsewhere')
    await page.goto('/account')
    await press(page, 'End all others')
    await shows(page, 'All others have ended')
    await look('account-ended-others')
    const link = await linkAfter(email, () => press(page, 'Send a link that verifies it'))
    await look('verification-sent')
    await follow(page, 'Back to your account')
    await page.goto(link)
    await look('verification')
    await press(page, 'Yes, verify it')
    await look('verification-done')

    await page.goto('/account/password')
    await look('change-password')
    // Password managers ignore fields of the type `hidden`.
    const known = page.locator('input[autocomplete=username]')
    expect([await known.inputValue(), await known.getAttribute('type')]).toEqual([email, 'text'])
    await page.getByLabel(say('Current password')).fill('wrong')
    await page.getByLabel(say('New password'), { exact: true }).fill(NEW_PASSWORD)
    await page.getByLabel(say('New password again')).fill(NEW_PASSWORD)
    await press(page, 'Change the password')
    await look('change-password-wrong')
    // Another tab, in which somebody else signs in meanwhile: the form of the former session changes nothing.
    await page.context().clearCookies()
    const other = await newPerson(NAMES.long)
    const beside = await page.context().newPage()
    await beside.goto('/account')
    await signIn(beside, other)
    await shows(beside, other)
    await page.getByLabel(say('Current password')).fill(PASSWORD)
    await page.getByLabel(say('New password'), { exact: true }).fill(NEW_PASSWORD)
    await page.getByLabel(say('New password again')).fill(NEW_PASSWORD)
    await press(page, 'Change the password')
    await look('form-of-another-session')
    await follow(page, 'Open the page again')
    await shows(page, 'Current password')
    expect(complaints).toEqual([])
  },
  180_000,
)

test('no page is wider than the window when its text is twice as large', async () => {
  const { page } = await open('light')
  await page.setViewportSize({ width: 640, height: 800 })
  const email = await newPerson(NAMES.long)
  await page.goto('/account')
  await signIn(page, email)
  await shows(page, email)
  await reachMuch(email)
  for (const path of [
    '/account',
    '/account/password',
    '/account/access',
    '/account/authenticator',
    '/account/delegations?client_id=agent',
  ]) {
    await page.goto(path)
    await page.evaluate('document.documentElement.style.fontSize = "200%", document.body.style.fontSize = "32px"')
    expect([path, await page.evaluate('document.documentElement.scrollWidth <= innerWidth')]).toEqual([path, true])
  }
})
