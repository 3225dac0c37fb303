/** The identity service's pages in a real Chromium: accessible and readable in both schemes at every width, and no dead end. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startPdp } from '../../pdp/server/runtime/start.ts'
import { createLog } from '../../pdp/shared/process/log.ts'
import { createShutdown } from '../../pdp/shared/process/shutdown.ts'
import { choosePorts } from '../e2e/demo-stack.ts'
import { pdpSettings } from '../e2e/pdp-settings.ts'
import { codeOf } from '../support/authenticator.ts'
import { openTestDatabase } from '../support/database.ts'
import { clientToken } from '../support/sign-in.ts'
import { launchChromium } from './chromium.ts'
import { BRANDING, LOCALE, lookAt, say } from './look.ts'

const HOST = '127.0.0.1'
const ADMIN_SECRET = 'the-secret-of-the-administrator'
const PASSWORD = 'correct horse battery staple'
const CALLBACK = 'https://app.example/cb'
const CIBA = 'urn:openid:params:grant-type:ciba'
const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'
const LOGO = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40"><rect width="40" height="40" rx="9" fill="#7a1fa2"/><path d="M10 28 20 8l10 20z" fill="#fff"/></svg>`

const log = createLog({ service: 'test', level: 'silent' })
const shutdown = createShutdown({ log, timeoutMs: 20_000 })
const folder = mkdtempSync(join(tmpdir(), 'portcullis-identity-'))
let issuer: string
let chromium: Browser
let dropDatabase: () => Promise<void>
let people = 0
let secret: string
let token: string

async function manage(
  method: string,
  path: string,
  body?: object,
): Promise<{ secret?: string; client_secret?: string }> {
  const json = body === undefined ? {} : { 'content-type': 'application/json' }
  const sent = body === undefined ? {} : { body: JSON.stringify(body) }
  const response = await fetch(issuer + path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...json },
    ...sent,
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text === '' ? {} : JSON.parse(text)
}

async function addMember(user: string): Promise<void> {
  await manage('PUT', `/v1/users/${user}`, { name: user, email: `${user}@acme.example`, password: PASSWORD })
  await manage('PUT', `/v1/organizations/acme/members/${user}`, { role: 'member', status: 'active' })
}

beforeAll(async () => {
  const database = await openTestDatabase()
  dropDatabase = database.drop
  const ports = await choosePorts({})
  issuer = `http://${HOST}:${ports.http}`
  const at = { issuer, adminSecret: ADMIN_SECRET, host: HOST, ports, databaseUrl: database.connectionString }
  const settings = pdpSettings({ ...at, dataDirectory: folder })
  const branding = {
    ...{ name: 'Example Works', logo: 'https://cdn.example/logo.svg', color: '#7a1fa2' },
    ...{
      terms: 'https://example.com/terms',
      privacy: 'https://example.com/privacy',
      support: 'mailto:help@example.com',
    },
  }
  await startPdp({ ...settings, branding: { ...branding, ...BRANDING } }, { log, shutdown })
  const scope = 'directory:write manifest:write clients:write'
  const admin = { issuer, clientId: 'admin', clientSecret: ADMIN_SECRET, scope }
  token = (await clientToken(admin)).access_token
  for (const [id, name] of [
    ['acme', 'Acme & Co'],
    ['globex', 'Globex'],
  ])
    await manage('PUT', `/v1/organizations/${id}`, { name })
  for (const user of ['ann', 'bob']) await addMember(user)
  await manage('PUT', '/v1/organizations/globex/members/ann', { role: 'member', status: 'active' })
  const shown = {
    ...{ client_name: 'Ledger for Windows', logo_uri: 'https://cdn.example/ledger.svg' },
    ...{ tos_uri: 'https://ledger.example/terms', policy_uri: 'https://ledger.example/privacy' },
    scope: 'openid profile email organizations offline_access',
  }
  await manage('PUT', '/v1/clients/ledger', {
    ...shown,
    ...{ redirect_uris: [CALLBACK], token_endpoint_auth_method: 'none', application_type: 'native' },
    grant_types: ['authorization_code', 'refresh_token', DEVICE_CODE],
  })
  const bank = await manage('PUT', '/v1/clients/bank', { ...shown, client_name: 'The Bank', grant_types: [CIBA] })
  secret = bank.client_secret ?? ''
  chromium = await launchChromium()
})
afterAll(async () => {
  await chromium?.close()
  await shutdown.run('test')
  await dropDatabase?.()
  rmSync(folder, { recursive: true, force: true })
})

const authorize = (more: { readonly [name: string]: string } = {}): string =>
  `/oauth/authorize?${new URLSearchParams({
    ...{
      client_id: 'ledger',
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid profile email offline_access',
    },
    ...{ code_challenge: 'a'.repeat(43), code_challenge_method: 'S256', prompt: 'consent', ...more },
  })}`

type Look = (name: string) => Promise<void>

async function open(
  colorScheme: 'light' | 'dark',
  javaScriptEnabled = true,
): Promise<{ page: Page; look: Look; complaints: string[] }> {
  const context = await chromium.newContext({
    baseURL: issuer,
    locale: LOCALE,
    colorScheme,
    bypassCSP: false,
    javaScriptEnabled,
  })
  const complaints: string[] = []
  await context.route('https://cdn.example/**', (route) => route.fulfill({ contentType: 'image/svg+xml', body: LOGO }))
  const page = await context.newPage()
  page.on('console', (message) => {
    if (/Content Security Policy|violates/i.test(message.text())) complaints.push(message.text())
  })
  return { page, look: (name) => lookAt(page, name, colorScheme), complaints }
}

const press = (page: Page, name: string): Promise<void> =>
  page.getByRole('button', { name: say(name), exact: true }).click()
async function signIn(page: Page, person: string, password = PASSWORD): Promise<void> {
  await page.getByLabel(say('E-mail address')).fill(`${person}@acme.example`)
  await page.getByLabel(say('Password'), { exact: true }).fill(password)
  await press(page, 'Sign in')
}
/** Where the application would be. */
async function callback(page: Page): Promise<() => URLSearchParams> {
  let last = new URLSearchParams()
  await page.context().route(`${CALLBACK}*`, (route) => {
    last = new URLSearchParams(route.request().postData() ?? new URL(route.request().url()).search)
    return route.fulfill({ contentType: 'text/html', body: '<title>The application</title>' })
  })
  return () => last
}

test.each(['light', 'dark'] as const)(
  'every page is accessible in the %s scheme, at every width',
  async (scheme) => {
    const { page, look, complaints } = await open(scheme)
    // Somebody new: a code counts once, and what waits for an approval waits for the next try, too.
    const person = `cy-${++people}`
    await addMember(person)
    const { secret: key = '' } = await manage('POST', `/v1/users/${person}/totp`)
    await callback(page)
    await page.goto('/')
    await look('landing')
    expect((await page.goto('/nothing/here'))?.status()).toBe(404)
    await look('missing')
    await page.goto('/oauth/authorize?client_id=nobody')
    await look('error-application')
    await page.goto('/oauth/interaction/none')
    await look('error-expired')

    await page.goto(authorize())
    await look('sign-in')
    await signIn(page, 'ann', 'wrong')
    await look('sign-in-wrong')
    await signIn(page, 'ann')
    await look('consent-choice')
    await press(page, 'Not you? Use another account')
    await look('switch')
    await signIn(page, person)
    await look('code')
    await page.getByLabel(say('Code from')).fill('000000')
    await press(page, 'Continue')
    await look('code-wrong')
    await page.getByLabel(say('Code from')).fill(codeOf(key, Date.now()))
    await press(page, 'Continue')
    await look('hand-over')
    await press(page, 'Continue')
    await look('consent')

    await page.goto('/oauth/device')
    await look('device-code')
    const started = await fetch(`${issuer}/oauth/device_authorization`, {
      method: 'POST',
      body: new URLSearchParams({ client_id: 'ledger', scope: 'openid profile email', organization: 'acme' }),
    })
    const device: { user_code: string } = JSON.parse(await started.text())
    await page.goto(`/oauth/device?user_code=${device.user_code}`)
    await look('device-confirm')
    await press(page, 'This is my device')
    await press(page, 'Continue')
    await look('device-done')
    await page.goto('/oauth/device?user_code=BBBB-BBBB')
    await look('device-wrong')

    await page.goto('/oauth/approve')
    await look('approval-none')
    await fetch(`${issuer}/oauth/bc-authorize`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`bank:${secret}`).toString('base64')}` },
      body: new URLSearchParams({
        login_hint: `${person}@acme.example`,
        scope: 'openid email',
        binding_message: 'W4SCT',
      }),
    })
    await page.reload()
    await look('approval')
    await press(page, 'Refuse')
    await look('approval-refused')

    await page.goto('/oauth/logout')
    await look('sign-out')
    await press(page, 'Sign out')
    await look('signed-out')
    expect(complaints).toEqual([])
    await page.context().close()
  },
  180_000,
)

test('nobody is stuck on consent: another person takes over, or the application learns of the refusal', async () => {
  const { page } = await open('light', false)
  const received = await callback(page)
  await page.goto(authorize())
  await signIn(page, 'ann')
  await press(page, 'Not you? Use another account')
  await signIn(page, 'bob')
  await press(page, 'Continue')
  await expect.poll(() => page.getByRole('main').innerText()).toContain('bob@acme.example')
  await press(page, 'Cancel')
  await expect.poll(() => received().get('error')).toBe('access_denied')
  await page.context().close()
})

test.each([true, false])('an answer by form_post reaches the application, with scripts: %s', async (scripts) => {
  const { page, complaints } = await open('dark', scripts)
  const received = await callback(page)
  await page.goto(authorize({ response_mode: 'form_post', state: `"><b>&amp;'`, prompt: 'login' }))
  await press(page, 'Cancel')
  if (!scripts) {
    await page.waitForLoadState()
    await press(page, 'Continue')
  }
  await page.waitForURL(CALLBACK)
  expect([received().get('error'), received().get('state')]).toEqual(['access_denied', `"><b>&amp;'`])
  expect(complaints).toEqual([])
  await page.context().close()
})

test('a reader of German reads German, and the address can ask for French', async () => {
  const context = await chromium.newContext({ baseURL: issuer, locale: 'de-AT' })
  const page = await context.newPage()
  await page.goto(authorize())
  expect(await page.locator('h1').innerText()).toBe('Anmelden')
  await page.goto(authorize({ ui_locales: 'fr-CA en' }))
  expect([await page.locator('h1').innerText(), await page.locator('html').getAttribute('lang')]).toEqual([
    'Connexion',
    'fr',
  ])
  await context.close()
})
