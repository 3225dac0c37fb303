/** Invitations, and sign-in at a provider of others, in a real Chromium: nobody is stuck, every page is accessible, and none needs scripts. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startPdp } from '../../pdp/server/runtime/start.ts'
import { createLog } from '../../pdp/shared/process/log.ts'
import { createShutdown } from '../../pdp/shared/process/shutdown.ts'
import { choosePorts } from '../e2e/demo-stack.ts'
import { pdpSettings } from '../e2e/pdp-settings.ts'
import { openTestDatabase } from '../support/database.ts'
import { launchChromium } from './chromium.ts'
import { BRANDING, LOCALE, lookAt, say } from './look.ts'

const SECRET = 'the-secret-of-the-administrator'
const PASSWORD = 'correct horse battery staple'

const shutdown = createShutdown({ log: createLog({ service: 'test', level: 'silent' }), timeoutMs: 20_000 })
const folders: string[] = []
const drops: (() => Promise<void>)[] = []
let chromium: Browser
let here: Service
let other: Service

type Service = {
  readonly issuer: string
  readonly mails: string
  manage(method: string, path: string, body: object): Promise<void>
}

/** The two have different hosts: a browser shares the cookies of one host among its ports. */
async function start(host: string): Promise<Service> {
  const database = await openTestDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-joining-'))
  folders.push(folder)
  drops.push(database.drop)
  const ports = await choosePorts({})
  const issuer = `http://${host}:${ports.http}`
  const at = { issuer, adminSecret: SECRET, host: '127.0.0.1', ports, databaseUrl: database.connectionString }
  const mails = join(folder, 'mail')
  const settings = {
    ...pdpSettings({ ...at, dataDirectory: folder }),
    branding: BRANDING,
    mail: { folder: mails },
    internalHosts: ['localhost'],
  }
  await startPdp(settings, { log: createLog({ service: 'test', level: 'silent' }), shutdown })
  const scope = 'directory:write clients:write roles:write manifest:write identity-providers:write'
  const granted = await fetch(`${issuer}/oauth/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`admin:${SECRET}`).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', scope }),
  })
  const { access_token: token } = JSON.parse(await granted.text())
  return {
    issuer,
    mails,
    async manage(method, path, body) {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const response = await fetch(issuer + path, { method, headers, body: JSON.stringify(body) })
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    },
  }
}

beforeAll(async () => {
  here = await start('127.0.0.1')
  other = await start('localhost')
  await here.manage('PUT', '/v1/organizations/acme', { name: 'Acme & Co' })
  await here.manage('PUT', '/v1/apps/ledger/manifest', {
    audiences: ['https://ledger.example'],
    permissions: { 'ledger:close': 'Close the books' },
    roles: { closer: { name: 'Closes the books', permissions: ['ledger:close'] } },
  })
  await other.manage('PUT', '/v1/clients/portal', {
    client_name: 'Acme Portal',
    client_secret: 'the-secret-of-the-portal',
    redirect_uris: [`${here.issuer}/account/providers/corp`],
    scope: 'openid email profile',
  })
  await here.manage('PUT', '/v1/identity-providers/corp', {
    ...{ issuer: other.issuer, client_id: 'portal', client_secret: 'the-secret-of-the-portal', name: 'Corp & Sons' },
  })
  chromium = await launchChromium()
})
afterAll(async () => {
  await chromium?.close()
  await shutdown.run('test')
  for (const drop of drops) await drop()
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

type Look = (name: string) => Promise<void>

/** No page has a script; axe alone needs them. */
async function open(
  colorScheme: 'light' | 'dark',
  javaScriptEnabled = true,
): Promise<{ page: Page; look: Look; complaints: string[] }> {
  const context = await chromium.newContext({ baseURL: here.issuer, locale: LOCALE, colorScheme, javaScriptEnabled })
  const complaints: string[] = []
  const page = await context.newPage()
  page.setDefaultTimeout(20_000)
  page.on('console', (message) => {
    if (/Content Security Policy|violates/i.test(message.text())) complaints.push(message.text())
  })
  return { page, look: (name) => lookAt(page, name, colorScheme), complaints }
}

const press = (page: Page, name: string): Promise<void> =>
  page.getByRole('button', { name: say(name), exact: true }).click()
async function signIn(page: Page, email: string, password = PASSWORD): Promise<void> {
  await page.getByLabel(say('E-mail address')).fill(email)
  await page.getByLabel(say('Password'), { exact: true }).fill(password)
  await press(page, 'Sign in')
}
const heading = (page: Page): Promise<string> => page.locator('h1').innerText()

let people = 0
/** Somebody new: a test that is tried again meets nobody whom its first try has changed. */
async function newPerson(at: Service, domain: string): Promise<string> {
  const id = `person-${++people}`
  const email = `${id}@${domain}`
  await at.manage('PUT', `/v1/users/${id}`, { name: id, email, password: PASSWORD })
  return email
}

/** The links of all mails to this address, oldest first. */
function linksTo(email: string): readonly string[] {
  const files = existsSync(here.mails) ? readdirSync(here.mails).sort() : []
  return files.flatMap((file) => {
    const text = readFileSync(join(here.mails, file), 'utf8')
    return text.includes(`To: ${email}\n`) ? [...(/^http\S+invitation\S+$/m.exec(text) ?? [])] : []
  })
}

/** The link of the mail that comes. */
async function invite(email: string): Promise<string> {
  const before = linksTo(email).length
  const roles = [{ app: 'ledger', role: 'closer' }]
  await here.manage('POST', '/v1/organizations/acme/invitations', { email, role: 'developer', roles })
  await expect.poll(() => linksTo(email).length).toBe(before + 1)
  return linksTo(email).at(-1) ?? ''
}

test.each(['light', 'dark'] as const)(
  'people join by invitation in the %s scheme',
  async (scheme) => {
    const { page, look, complaints } = await open(scheme)
    const email = `new-${scheme}-${++people}@acme.example`
    const link = await invite(email)
    await page.goto(link)
    expect(page.url()).toBe(`${here.issuer}/account/invitation`)
    await look('invitation-new')
    await page.getByLabel(say('New password'), { exact: true }).fill('short')
    await page.getByLabel(say('New password again')).fill('short')
    await page.evaluate("document.querySelector('form').noValidate = true")
    await press(page, 'Make the account and accept')
    await look('invitation-new-wrong')
    await page.getByLabel(say('Your name')).fill('Nora New')
    await page.getByLabel(say('New password'), { exact: true }).fill(PASSWORD)
    await page.getByLabel(say('New password again')).fill(PASSWORD)
    await press(page, 'Make the account and accept')
    await look('invitation-done')
    await page.getByRole('link', { name: say('To your account') }).click()
    await expect.poll(() => page.getByRole('main').innerText()).toContain(email)
    await page.goto(link)
    await look('invitation-gone')
    const known = await newPerson(here, 'acme.example')
    await page.goto(await invite(known))
    await look('invitation-not-you')
    await page.getByRole('link', { name: say('Sign in with the invited address') }).click()
    await signIn(page, known)
    await look('invitation-accept')
    await press(page, 'Decline')
    await look('invitation-declined')
    await page.goto(await invite(known))
    await press(page, 'Accept')
    await expect.poll(() => heading(page)).toBe(say('You belong to it now'))
    expect(complaints).toEqual([])
    await page.context().close()
  },
  180_000,
)

test.each(['light', 'dark'] as const)(
  'people sign in at another provider in the %s scheme, connect it and disconnect it',
  async (scheme) => {
    const { page, look, complaints } = await open(scheme)
    const [mine, theirs] = [await newPerson(here, 'acme.example'), await newPerson(other, 'corp.example')]
    await page.goto('/account')
    await look('foreign-sign-in')
    await press(page, 'Sign in with Corp & Sons')
    await page.waitForURL(`${other.issuer}/**`)
    await signIn(page, theirs)
    await page.waitForURL(`${here.issuer}/account/proof`)
    await look('foreign-proof')
    await page.getByLabel(say('E-mail address')).fill(mine)
    await page.getByLabel(say('Password'), { exact: true }).fill('wrong')
    await press(page, 'Sign in and connect')
    await look('foreign-proof-wrong')
    await page.getByLabel(say('Password'), { exact: true }).fill(PASSWORD)
    await page.getByLabel(say('E-mail address')).fill(mine)
    await press(page, 'Sign in and connect')
    await expect.poll(() => heading(page)).toBe(say('Your account'))
    await look('foreign-home')
    await page.getByRole('link', { name: say('Sign out') }).click()
    await press(page, 'Sign out')
    await page.goto('/account')
    // Known by now, there and here.
    await press(page, 'Sign in with Corp & Sons')
    await expect.poll(() => heading(page)).toBe(say('Your account'))
    await page.getByRole('link', { name: say('Sign-in with other services') }).click()
    await look('foreign-links')
    await page.getByRole('button', { name: say('Disconnect') }).click()
    await look('foreign-disconnected')
    await page.getByRole('link', { name: say('Sign in') }).click()
    await signIn(page, mine)
    await page.getByRole('link', { name: say('Sign-in with other services') }).click()
    await look('foreign-no-links')
    await press(page, 'Connect Corp & Sons')
    await look('foreign-connected')
    await page.goto('/account/providers/corp?code=c&state=s')
    await look('foreign-problem')
    await page.goto('/account/providers')
    await page.getByRole('button', { name: say('Disconnect') }).click()
    expect(complaints).toEqual([])
    await page.context().close()
  },
  180_000,
)

test('neither needs scripts', async () => {
  const { page } = await open('light', false)
  await page.goto(await invite(`without-scripts-${++people}@acme.example`))
  await page.getByLabel(say('New password'), { exact: true }).fill(PASSWORD)
  await page.getByLabel(say('New password again')).fill(PASSWORD)
  await press(page, 'Make the account and accept')
  await expect.poll(() => heading(page)).toBe(say('You belong to it now'))
  await page.goto('/account/providers')
  await press(page, 'Connect Corp & Sons')
  await signIn(page, await newPerson(other, 'corp.example'))
  await expect.poll(() => heading(page)).toBe(say('Connected'))
  await page.context().close()
})
