/** An own authenticator, recovery codes and passkeys in a real Chromium, with an authenticator of its own. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, CDPSession, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
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

const log = createLog({ service: 'test', level: 'silent' })
const shutdown = createShutdown({ log, timeoutMs: 20_000 })
const folder = mkdtempSync(join(tmpdir(), 'portcullis-factors-'))
let issuer: string
let chromium: Browser
let dropDatabase: () => Promise<void>
let put: (path: string, body: object) => Promise<void>
let people = 0

beforeAll(async () => {
  const database = await openTestDatabase()
  dropDatabase = database.drop
  const ports = await choosePorts({})
  // Passkeys are for a name.
  issuer = `http://localhost:${ports.http}`
  const at = { issuer, adminSecret: ADMIN_SECRET, host: HOST, ports, databaseUrl: database.connectionString }
  await startPdp({ ...pdpSettings({ ...at, dataDirectory: folder }), branding: BRANDING }, { log, shutdown })
  const local = `http://${HOST}:${ports.http}`
  const scope = 'directory:write clients:write'
  const { access_token: token } = await clientToken({ issuer, clientId: 'admin', clientSecret: ADMIN_SECRET, scope })
  put = async (path, body) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await fetch(local + path, { method: 'PUT', headers, body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  }
  await put('/v1/clients/ledger', {
    ...{ client_name: 'Ledger', redirect_uris: [CALLBACK], token_endpoint_auth_method: 'none' },
    ...{ application_type: 'native', scope: 'openid' },
  })
  await put('/v1/clients/vault', {
    ...{ client_name: 'Vault', redirect_uris: [CALLBACK], token_endpoint_auth_method: 'none' },
    ...{ application_type: 'native', scope: 'openid', require_second_factor: true },
  })
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

async function open(colorScheme: Scheme, javaScriptEnabled = true, offersPasskeys = false): Promise<Tab> {
  const context = await chromium.newContext({ baseURL: issuer, locale: LOCALE, colorScheme, javaScriptEnabled })
  const page = await context.newPage()
  // This authenticator would answer at once, before anybody has pressed anything.
  if (!offersPasskeys)
    await page.addInitScript(
      'if (globalThis.PublicKeyCredential) PublicKeyCredential.isConditionalMediationAvailable = async () => false',
    )
  const complaints: string[] = []
  page.on('console', (message) => {
    if (/Content Security Policy|violates/i.test(message.text())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  const reader = javaScriptEnabled ? page : await (await chromium.newContext({ locale: LOCALE, colorScheme })).newPage()
  return { page, complaints, look: (name) => lookAt(page, name, colorScheme, reader) }
}
const press = (page: Page, name: string): Promise<void> =>
  page.getByRole('button', { name: say(name), exact: true }).click()
const text = (page: Page): Promise<string> => page.getByRole('main').innerText()
/** Waits for it: a script may be about to leave the page. */
const shows = (page: Page, wanted: string): Promise<void> => expect.poll(() => text(page)).toContain(say(wanted))
/** Somebody without a second factor: a test that is tried again meets nobody who has got one before. */
async function newPerson(name: string): Promise<string> {
  const id = `${name}-${++people}`
  await put(`/v1/users/${id}`, { name: id, email: `${id}@acme.example`, password: PASSWORD })
  return id
}
async function givePassword(page: Page, person: string): Promise<void> {
  await page.getByLabel(say('E-mail address')).fill(`${person}@acme.example`)
  await page.getByLabel(say('Password'), { exact: true }).fill(PASSWORD)
  await press(page, 'Sign in')
}
/** The page asks by itself; a browser may want to be asked for it by hand. */
async function passThrough(page: Page): Promise<void> {
  await page.bringToFront()
  const refused = page.getByText(say('The device gave no passkey'))
  await Promise.race([page.waitForURL(/\/account$/), refused.waitFor()])
  if (await refused.isVisible()) await press(page, 'Use the passkey')
  await page.waitForURL(/\/account$/)
}
async function authenticator(page: Page): Promise<{ session: CDPSession; id: string }> {
  const session = await page.context().newCDPSession(page)
  await session.send('WebAuthn.enable')
  const { authenticatorId: id } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      ...{ protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true },
      ...{ isUserVerified: true, automaticPresenceSimulation: true },
    },
  })
  return { session, id }
}

test.each(['light', 'dark'] as const)(
  'an authenticator is set up, used, recovered from and removed without JavaScript, in the %s scheme',
  async (scheme) => {
    const person = await newPerson('ann')
    const { page, look, complaints } = await open(scheme, false)
    await page.goto('/account')
    await givePassword(page, person)
    await look('account-without')
    await page.getByRole('link', { name: say('Authenticator app') }).click()
    await look('authenticator-setup')
    const secret = (await page.locator('.key').innerText()).replaceAll(' ', '')
    await page.getByLabel(say('Code that')).fill('000000')
    await press(page, 'Switch it on')
    await look('authenticator-wrong')
    await page.getByLabel(say('Code that')).fill(codeOf(secret, Date.now()))
    await press(page, 'Switch it on')
    await page.getByRole('link', { name: say('I have kept them') }).waitFor()
    await look('recovery-codes')
    const codes = await page.locator('.codes code').allInnerTexts()
    expect(codes).toHaveLength(10)
    await page.getByRole('link', { name: say('I have kept them') }).click()
    await look('account-with-app')
    await page.context().clearCookies()

    await page.goto('/account')
    await givePassword(page, person)
    await page.getByText(say('I have lost my device')).click()
    await look('code-lost')
    await page.getByLabel(say('One of your')).fill('AAAA-AAAA-AAAA-AAAA')
    await press(page, 'Use the recovery code')
    await look('recovery-wrong')
    await page.getByLabel(say('One of your')).fill(codes[0] ?? '')
    await press(page, 'Use the recovery code')
    if (LOCALE === 'en') await shows(page, '9 of 10 are left')
    else await shows(page, 'You are signed in with a recovery code')
    await look('recovery-used')
    await page.getByRole('link', { name: say('To your account') }).click()
    await page.getByRole('link', { name: say('Authenticator app') }).click()
    await look('authenticator')
    await press(page, 'Remove the app')
    await look('authenticator-removed')

    await page.goto('/account/passkeys')
    await givePassword(page, person)
    await shows(page, 'Passkeys need JavaScript')
    await look('passkeys-without-script')
    await page.context().clearCookies()
    await page.goto('/account')
    await press(page, 'Sign in with a passkey')
    await shows(page, 'Passkeys need JavaScript')
    await look('passkey-without-script')
    await press(page, 'Use the password instead')
    await givePassword(page, person)
    await shows(page, `${person}@acme.example`)
    expect(complaints).toEqual([])
  },
  180_000,
)

test.each(['light', 'dark'] as const)(
  'a passkey is made, signs in alone and after the password, and is removed, in the %s scheme',
  async (scheme) => {
    const person = await newPerson('bob')
    const { page, look, complaints } = await open(scheme)
    const { session, id } = await authenticator(page)
    await page.goto('/account/passkeys')
    await givePassword(page, person)
    await look('passkeys-none')
    await page.getByLabel(say('Name, such as')).fill('Laptop <b>')
    await press(page, 'Add a passkey')
    await page.getByRole('link', { name: say('I have kept them') }).click()
    await page.getByRole('link', { name: say('Passkeys') }).click()
    await shows(page, 'Laptop <b>')
    await look('passkeys')
    // The device has one for this account, which it says itself.
    await page.getByLabel(say('Name, such as')).fill('Again')
    await press(page, 'Add a passkey')
    await page.getByText(say('No passkey was added')).waitFor()
    await look('passkeys-twice')

    await page.context().clearCookies()
    await page.goto('/account')
    await look('sign-in-with-passkey')
    await press(page, 'Sign in with a passkey')
    await passThrough(page)
    await shows(page, `${person}@acme.example`)
    await look('account-with-passkey')

    await page.context().clearCookies()
    await page.goto('/account')
    await givePassword(page, person)
    await passThrough(page)
    await shows(page, `${person}@acme.example`)

    await page.context().clearCookies()
    const answered = await ask(page, 'ledger', { acr_values: 'mfa' })
    await press(page, 'Sign in with a passkey')
    await press(page, 'Continue')
    await page.waitForURL(`${CALLBACK}*`)
    expect(answered().get('code')).not.toBeNull()

    // Without the device: the page says so and offers other ways.
    await page.context().clearCookies()
    await session.send('WebAuthn.setUserVerified', { authenticatorId: id, isUserVerified: false })
    await page.goto('/account')
    await press(page, 'Sign in with a passkey')
    await page.getByText(say('The device gave no passkey')).waitFor()
    await look('passkey-not-given')
    await press(page, 'Use the password instead')
    await session.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId: id, enabled: false })
    await givePassword(page, person)
    await page.getByText(say('Use your passkey')).waitFor()
    await look('passkey-after-password')
    await session.send('WebAuthn.setUserVerified', { authenticatorId: id, isUserVerified: true })
    await session.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId: id, enabled: true })
    await page.goto('/account')
    await givePassword(page, person)
    await passThrough(page)

    await page.goto('/account/passkeys')
    await page.getByRole('button', { name: `${say('Remove')}: Laptop <b>` }).click()
    await look('passkeys-removed')
    await page.context().clearCookies()
    await page.goto('/account')
    await press(page, 'Sign in with a passkey')
    await page.getByText(say('This passkey is not right')).waitFor()
    await look('passkey-wrong')
    await press(page, 'Use the password instead')
    await givePassword(page, person)
    await shows(page, `${person}@acme.example`)
    expect(complaints).toEqual([])
  },
  180_000,
)

/** As the application asks for a sign-in; what it is answered. */
async function ask(page: Page, client: string, more: object = {}): Promise<() => URLSearchParams> {
  let answered = new URLSearchParams()
  await page.context().route(`${CALLBACK}*`, (route) => {
    answered = new URL(route.request().url()).searchParams
    return route.fulfill({ contentType: 'text/html', body: '<title>The application</title>' })
  })
  const parameters = { client_id: client, response_type: 'code', redirect_uri: CALLBACK, scope: 'openid' }
  const challenge = { code_challenge: 'a'.repeat(43), code_challenge_method: 'S256' }
  await page.goto(`/oauth/authorize?${new URLSearchParams({ ...parameters, ...challenge, ...more })}`)
  return () => answered
}

test.each(['light', 'dark'] as const)(
  'an application that demands a second factor leads who has none to an app without JavaScript, and goes on, in the %s scheme',
  async (scheme) => {
    const { page, look, complaints } = await open(scheme, false)
    const answered = await ask(page, 'vault')
    await givePassword(page, await newPerson('cleo'))
    await shows(page, 'A second factor is needed')
    await look('second-factor-needed')
    await page.getByRole('link', { name: say('Authenticator app') }).click()
    await look('second-factor-setup')
    const secret = (await page.locator('.key').innerText()).replaceAll(' ', '')
    await page.getByRole('link', { name: say('Go on with the sign-in') }).click()
    await shows(page, 'A second factor is needed')
    await page.goBack()
    const shown = (await page.locator('.key').innerText()).replaceAll(' ', '')
    await page.getByLabel(say('Code that')).fill(codeOf(shown === secret ? secret : shown, Date.now()))
    await press(page, 'Switch it on')
    await page.getByRole('link', { name: say('I have kept them') }).click()
    await press(page, 'Continue')
    await page.waitForURL(`${CALLBACK}*`)
    expect(answered().get('code')).not.toBeNull()
    expect(complaints).toEqual([])
  },
  180_000,
)

test.each(['light', 'dark'] as const)(
  'an application that demands a second factor leads who has none to a passkey, and goes on, in the %s scheme',
  async (scheme) => {
    const { page, look, complaints } = await open(scheme)
    await authenticator(page)
    const answered = await ask(page, 'vault')
    await givePassword(page, await newPerson('dora'))
    await page.getByRole('link', { name: say('Add a passkey') }).click()
    await look('second-factor-passkey')
    await page.getByLabel(say('Name, such as')).fill('Laptop')
    await press(page, 'Add a passkey')
    await page.getByRole('link', { name: say('I have kept them') }).click()
    await press(page, 'Continue')
    await page.waitForURL(`${CALLBACK}*`)
    expect(answered().get('code')).not.toBeNull()
    expect(complaints).toEqual([])
  },
  180_000,
)

test.each(['light', 'dark'] as const)(
  'a page with scripts shows a password, copies codes, and offers the passkey by itself, in the %s scheme',
  async (scheme) => {
    const person = await newPerson('eve')
    const { page, look, complaints } = await open(scheme, true, true)
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.goto('/account')
    expect(await page.getByLabel(say('E-mail address')).getAttribute('autocomplete')).toBe('username webauthn')
    const field = page.locator('input[name=password]')
    await field.fill('what nobody sees')
    expect(await field.getAttribute('type')).toBe('password')
    await page.getByLabel(say('Show password')).check()
    expect(await field.getAttribute('type')).toBe('text')
    await look('sign-in-shown')
    await page.getByLabel(say('Show password')).uncheck()
    expect(await field.getAttribute('type')).toBe('password')
    await page.getByLabel(say('Show password')).check()
    await givePassword(page, person)
    await look('account-with-sessions')

    await authenticator(page)
    await page.goto('/account/passkeys')
    await page.getByLabel(say('Name, such as')).fill('Laptop')
    await press(page, 'Add a passkey')
    // The script asks the device, then sends the form.
    await page.getByRole('button', { name: say('Print'), exact: true }).waitFor()
    const codes = await page.locator('.codes code').allInnerTexts()
    expect(codes).toHaveLength(10)
    await page.evaluate('window.print = () => document.title += " printed"')
    await press(page, 'Print')
    expect(await page.title()).toContain('printed')
    await press(page, 'Copy')
    await page.getByText(say('Copied')).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(codes.join('\n'))
    await look('recovery-codes-copied')

    await page.context().clearCookies()
    await page.goto('/account')
    await page.waitForURL(/\/account$/)
    await shows(page, `${person}@acme.example`)
    await page.goto('/account/password')
    await page.getByLabel(say('Show password')).check()
    expect(await page.locator('input[type=password]').count()).toBe(0)
    await look('password-shown')
    expect(complaints).toEqual([])
  },
  180_000,
)
