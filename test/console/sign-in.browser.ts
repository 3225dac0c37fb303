/** An unchanged Express and an unchanged Flask application behind two sidecars that sign people in, in a real Chromium without JavaScript. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect, createServer as createRelay, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startPdp } from '../../pdp/server/runtime/start.ts'
import { createLog } from '../../pdp/shared/process/log.ts'
import { createShutdown } from '../../pdp/shared/process/shutdown.ts'
import { readConfig } from '../../sidecar/config/config.ts'
import { startSidecar } from '../../sidecar/runtime/start.ts'
import { choosePorts } from '../e2e/demo-stack.ts'
import { pdpSettings } from '../e2e/pdp-settings.ts'
import { openTestDatabase } from '../support/database.ts'
import { freePort } from '../support/free-port.ts'
import { clientToken } from '../support/sign-in.ts'
import { until } from '../support/until.ts'
import { launchChromium } from './chromium.ts'
import { LOCALE, lookAt } from './look.ts'

const HOST = '127.0.0.1'
const ADMIN_SECRET = 'the-secret-of-the-administrator'
const PASSWORD = 'correct horse battery staple'
const RESOURCE = 'https://app.example.com'
const SCOPE = 'directory:write manifest:write relationships:write clients:write'
const BOOK = readFileSync(new URL('../../docs/sign-in.md', import.meta.url), 'utf8')
const FLASK = `import sys
from flask import Flask, request
app = Flask(__name__)
@app.get('/')
def home():
    return f"<h1>Flask: {request.headers['X-Auth-Subject']}</h1><p>{request.headers.get('Cookie', 'no cookie')}</p>"
@app.get('/invoices/<id>')
def invoice(id):
    return f"<h1>Invoice {id}</h1>"
app.run(port=int(sys.argv[1]))
`

const log = createLog({ service: 'test', level: 'silent' })
const shutdown = createShutdown({ log, timeoutMs: 20_000 })
const closers: (() => unknown)[] = []
const folder = mkdtempSync(join(tmpdir(), 'portcullis-sign-in-'))
let issuer: string
let grpcPort: number
let chromium: Browser
let secret: string

async function manage(method: string, path: string, body?: object): Promise<{ client_secret?: string }> {
  const { access_token: token } = await clientToken({
    issuer,
    clientId: 'admin',
    clientSecret: ADMIN_SECRET,
    scope: SCOPE,
  })
  const json = body === undefined ? {} : { 'content-type': 'application/json' }
  const sent = body === undefined ? {} : { body: JSON.stringify(body) }
  const response = await fetch(`${issuer}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...json },
    ...sent,
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text === '' ? {} : JSON.parse(text)
}

const grant = (what: 'write' | 'delete'): Promise<object> =>
  manage('POST', '/v1/organizations/acme/relationships', { [what]: ['invoice:1#viewer@user:ann'] })

beforeAll(async () => {
  const ports = await choosePorts({})
  const database = await openTestDatabase()
  closers.push(database.drop)
  issuer = `http://${HOST}:${ports.http}`
  grpcPort = ports.grpc
  const databaseUrl = database.connectionString
  const settings = pdpSettings({
    issuer,
    adminSecret: ADMIN_SECRET,
    host: HOST,
    ports,
    databaseUrl,
    dataDirectory: folder,
  })
  await startPdp(settings, { log, shutdown })
  await manage('PUT', '/v1/organizations/acme', { name: 'Acme' })
  await manage('PUT', '/v1/apps/invoices/manifest', { audiences: [RESOURCE] })
  await manage('PUT', '/v1/users/ann', { email: 'ann@acme.example', password: PASSWORD })
  await manage('PUT', '/v1/organizations/acme/members/ann', { role: 'member', status: 'active' })
  chromium = await launchChromium()
})
afterAll(async () => {
  await chromium?.close()
  await shutdown.run('test')
  for (const close of closers.reverse()) await close()
  rmSync(folder, { recursive: true, force: true })
})

/** Connections go to the replicas in turn. */
async function relay(port: number, to: readonly number[]): Promise<Server & { cut(): void }> {
  let turn = 0
  const open = new Set<Socket>()
  const server = createRelay((socket) => {
    open.add(socket)
    const other = connect(to[turn++ % to.length] ?? 0, HOST)
    socket.pipe(other).pipe(socket)
    for (const [one, its] of [
      [socket, other],
      [other, socket],
    ] as const)
      one.on('error', () => its.destroy())
  })
  await new Promise<void>((resolve) => server.listen(port, 'localhost', resolve))
  const cut = (): void => {
    server.close()
    for (const socket of open) socket.destroy()
  }
  return Object.assign(server, { cut })
}

/** The book's route file for this application, in front of which two sidecars stand. Returns the address for browsers. */
async function guard(upstreamPort: number, pages = '', edit = (source: string): string => source): Promise<string> {
  const publicPort = await freePort()
  // Another site than the issuer, so that its pages are cross-site.
  const url = `http://localhost:${publicPort}`
  const redirects = ['callback', 'signed-out'].map((name) => `${url}/.portcullis/${name}`)
  const registered = await manage('PUT', '/v1/clients/web', {
    ...JSON.parse(/PUT \/v1\/clients\/web\n([\s\S]*?)```/.exec(BOOK)?.[1] ?? ''),
    redirect_uris: [redirects[0], `${redirects[0]}/here`],
    post_logout_redirect_uris: [redirects[1]],
  })
  secret = registered.client_secret ?? secret
  writeFileSync(join(folder, 'web.secret'), secret)
  writeFileSync(join(folder, 'sign-in.keys'), randomBytes(48).toString('base64'))
  const source = (/```yaml\n(# sign-in\.md\n[\s\S]*?)```/.exec(BOOK)?.[1] ?? '')
    .replaceAll('http://127.0.0.1:8080', issuer)
    .replace('http://127.0.0.1:3000', `http://${HOST}:${upstreamPort}`)
    .replace('127.0.0.1:9090', `${HOST}:${grpcPort}`)
    .replace('sign-in.keys', join(folder, 'sign-in.keys'))
    .replace('web.secret', join(folder, 'web.secret'))
    .replace('sign_in: {', `sign_in: {${pages}`)
    .replace('routes:', 'routes:\n  GET /reports/**: entitlement reports')
    .replace('issuers:', `public_url: ${url}\nlimits: {pdp_ms: 5000}\nissuers:`)
  expect(/```yaml\n# sign-in\.md\n([\s\S]*?)```/.exec(BOOK)?.[1]?.trim().split('\n').length).toBeLessThan(10)
  const file = join(folder, `routes-${publicPort}.yaml`)
  writeFileSync(file, edit(source))
  const ports: number[] = []
  for (let replica = 0; replica < 2; replica += 1) {
    const [port, admin] = [await freePort(), await freePort()]
    await startSidecar(readConfig({}, { file, listen: `${HOST}:${port}`, adminListen: `${HOST}:${admin}` }), {
      log,
      shutdown,
    })
    await until(async () => (await fetch(`http://${HOST}:${admin}/readyz`)).ok)
    ports.push(port)
  }
  const server = await relay(publicPort, ports)
  closers.push(() => void server.close())
  return url
}

async function startExpress(): Promise<number> {
  const app = express()
  app.get('/', (req, res) => {
    res.send(`<h1>Express: ${req.get('x-auth-subject')}</h1><p>${req.get('cookie') ?? 'no cookie'}</p>`)
  })
  app.get('/invoices/:id', (req, res) => void res.send(`<h1>Invoice ${req.params.id}</h1>`))
  const port = await freePort()
  const server = app.listen(port, HOST)
  closers.push(() => void server.close())
  return port
}

const hasFlask = (): boolean => spawnSync('python3', ['-c', 'import flask']).status === 0

async function startFlask(): Promise<number> {
  const port = await freePort()
  const file = join(folder, 'application.py')
  writeFileSync(file, FLASK)
  const child: ChildProcess = spawn('python3', [file, String(port)], { stdio: 'ignore' })
  closers.push(() => child.kill())
  await until(async () => (await fetch(`http://${HOST}:${port}/none`).catch(() => null)) !== null)
  return port
}

async function signIn(page: Page): Promise<void> {
  await page.locator('input[name=email]').fill('ann@acme.example')
  await page.locator('input[name=password]').fill(PASSWORD)
  await page.locator('button[type=submit]').first().click()
}
const heading = (page: Page): Promise<string> => page.locator('h1').innerText()

async function play(name: string, url: string): Promise<void> {
  await grant('write')
  // As it is before another try, too.
  await manage('PUT', '/v1/users/ann', { email: 'ann@acme.example', password: PASSWORD })
  const context = await chromium.newContext({ javaScriptEnabled: false, baseURL: url })
  const page = await context.newPage()
  await page.goto('/?from=here')
  expect(new URL(page.url()).origin).toBe(issuer)
  await signIn(page)
  await expect.poll(async () => [await heading(page), page.url()]).toEqual([`${name}: ann`, `${url}/?from=here`])
  expect(await page.locator('p').innerText()).toBe('no cookie')
  const [cookie] = (await context.cookies()).filter(({ name: key }) => key === '__Host-portcullis-session')
  expect(cookie).toMatchObject({ httpOnly: true, secure: true, sameSite: 'Lax', path: '/' })

  expect((await page.goto('/invoices/1'))?.status()).toBe(200)
  expect((await page.goto('/invoices/2'))?.status()).toBe(403)
  await expect.poll(() => heading(page)).toBe('You may not open this page')
  // A right that is taken away is gone on the next request, at whichever replica it arrives.
  await grant('delete')
  for (let turn = 0; turn < 2; turn += 1) expect((await page.goto('/invoices/1'))?.status()).toBe(403)

  await page.goto('/.portcullis/sign-out')
  await page.getByRole('button', { name: 'Sign out' }).click()
  if (page.url().startsWith(issuer)) await page.locator('button[type=submit]').first().click()
  await expect
    .poll(async () => [await heading(page), new URL(page.url()).pathname])
    .toEqual(['You are signed out', '/.portcullis/signed-out'])
  expect((await context.cookies(url)).filter(({ name: key }) => key.includes('session'))).toEqual([])
  await page.goto('/')
  expect(new URL(page.url()).origin).toBe(issuer)

  // The issuer ends the session: nobody is signed in here from then on.
  await signIn(page)
  await expect.poll(() => heading(page)).toBe(`${name}: ann`)
  await manage('PUT', '/v1/users/ann', { email: 'ann@acme.example', password: `${PASSWORD} ${name}` })
  await manage('PUT', '/v1/users/ann', { email: 'ann@acme.example', password: PASSWORD })
  await page.goto('/')
  // So soon after a sign-in the sidecar shows a page with a link, in place of what may be a loop.
  if (new URL(page.url()).origin !== issuer) await page.getByRole('link', { name: 'Sign in' }).click()
  expect(new URL(page.url()).origin).toBe(issuer)
  await context.close()
}

describe('people sign in at the sidecar, go where they may, lose a right at once, and sign out', () => {
  test('of an unchanged Express application', async () => {
    await play('Express', await guard(await startExpress()))
  })

  test.runIf(hasFlask())('of an unchanged Flask application', async () => {
    await play('Flask', await guard(await startFlask()))
  })
})

const BRAND = `pages: {ask: "The service desk gives access, mostly within a day.", support: "mailto:desk@acme.example", name: Acme Invoices, color: "#7a1fa2", privacy: https://acme.example/privacy}, `
const PAGES = {
  denied: '/invoices/2',
  'no-capability': '/reports/2026',
  'sign-out': '/.portcullis/sign-out',
  'signed-out': '/.portcullis/signed-out',
  'callback-lost': '/.portcullis/callback',
  missing: '/.portcullis/none',
}

test.each([
  ['as it is', '', 'en', 'sidecar'],
  ['with a brand, in the language of the reader', BRAND, 'de', 'branded'],
])(
  'every page of the sidecar %s is accessible, in both colour schemes, at every width',
  async (_, pages, locale, kind) => {
    const url = await guard(await startExpress(), pages)
    await grant('write')
    for (const colorScheme of ['light', 'dark'] as const) {
      const context = await chromium.newContext({ baseURL: url, colorScheme, locale })
      const page = await context.newPage()
      await page.goto('/.portcullis/signed-out')
      await page.locator('main a').click()
      await signIn(page)
      for (const [name, path] of Object.entries(PAGES)) {
        await page.goto(path)
        expect(await page.locator('html').getAttribute('lang')).toBe(locale)
        await lookAt(page, `${kind}-${name}`, colorScheme)
      }
      await context.close()
    }
  },
)

test.each(['light', 'dark'] as const)(
  'what goes wrong has pages that lead on, in the %s scheme',
  async (colorScheme) => {
    const upstream = await freePort()
    const application = express()
      .get('/', (_req, res) => void res.send('<h1>There</h1>'))
      .listen(upstream, HOST)
    const away = `http://${HOST}:${await freePort()}`
    const metadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).text()
    const keys = await (await fetch(`${issuer}/oauth/jwks`)).text()
    // There while the sidecar starts.
    const other = createServer(
      (req, res) =>
        void res
          .setHeader('content-type', 'application/json')
          .end(req.url?.includes('jwks') ? keys : metadata.replaceAll(issuer, away)),
    )
    await new Promise<void>((resolve) => other.listen(Number(new URL(away).port), HOST, resolve))
    const grpc = await freePort()
    const pdp = await relay(grpc, [grpcPort])
    const url = await guard(upstream, BRAND, (source) =>
      source
        .replace(/(?<=issuers: \[.*)\]/, `, {issuer: "${away}"}]`)
        .replace(
          'providers: [',
          `providers: [{issuer: "${away}", name: away, label: Contoso & Sons, client_id: web, client_secret_file: ${join(folder, 'web.secret')}}, `,
        )
        .replace(
          `{issuer: "${issuer}", client_id: web`,
          `{issuer: "${issuer}", name: here, label: Acme, client_id: web`,
        )
        .replace(`"${HOST}:${grpcPort}"`, `"localhost:${grpc}"`)
        .replace(
          'routes:',
          'routes:\n  GET /strong: {check: signed_in, step_up: {acr_values: [mfa]}}\n  GET /wide: scope docs.all',
        ),
    )
    other.close()
    other.closeAllConnections()
    const context = await chromium.newContext({ baseURL: url, colorScheme, locale: LOCALE })
    const page = await context.newPage()
    const look = (name: string): Promise<void> => lookAt(page, `trouble-${name}`, colorScheme)
    const acts = (): Promise<string[]> => page.locator('main a.act').allInnerTexts()
    await page.goto('/')
    await look('choose')
    await page.getByRole('link', { name: 'Contoso & Sons' }).click()
    await look('issuer-away')
    expect(await acts()).toEqual(['Try again', 'Use another account'])
    await page.goto('/strong')
    await page.getByRole('link', { name: 'Acme' }).click()
    await signIn(page)
    await page.waitForURL(`${url}/**`)
    await look('too-weak')
    expect(await acts()).toHaveLength(3)
    await page.getByRole('link', { name: 'Use another account' }).click()
    await page.getByRole('link', { name: 'Acme' }).click()
    await page.locator('button[value=cancel]').click()
    await page.waitForURL(`${url}/**`)
    await look('cancelled')
    expect(await acts()).toHaveLength(2)
    // The first sign-in still counts where it is strong enough.
    await page.goto('/')
    await expect.poll(() => heading(page)).toBe('There')
    for (const [name, path] of [
      ['scope', '/wide'],
      ['method', '/.portcullis/callback'],
      ['callback-error', '/.portcullis/callback/here?error=server_error&state=x'],
    ] as const) {
      await page.goto(path)
      await look(name)
    }
    application.close()
    application.closeAllConnections()
    await page.goto('/')
    await look('service-away')
    pdp.cut()
    await expect.poll(async () => (await page.goto('/'))?.status()).toBe(503)
    await look('pdp-away')
    await context.close()
  },
)

test('a person who may not get in signs in with another account, and reads the page that it was for', async () => {
  const url = await guard(await startExpress(), BRAND)
  await grant('delete')
  await manage('PUT', '/v1/users/bob', { email: 'bob@acme.example', password: PASSWORD })
  await manage('PUT', '/v1/organizations/acme/members/bob', { role: 'member', status: 'active' })
  await manage('POST', '/v1/organizations/acme/relationships', { write: ['invoice:1#viewer@user:bob'] })
  const context = await chromium.newContext({ baseURL: url, javaScriptEnabled: false })
  const page = await context.newPage()
  await page.goto('/invoices/1')
  await signIn(page)
  await expect.poll(() => page.locator('main').innerText()).toContain('What is missing: viewer for invoice 1.')
  expect(await page.getByRole('link', { name: 'desk@acme.example' }).getAttribute('href')).toBe(
    'mailto:desk@acme.example',
  )
  await page.getByRole('link', { name: 'Use another account' }).click()
  await page.locator('input[name=email]').fill('bob@acme.example')
  await page.locator('input[name=password]').fill(PASSWORD)
  await page.locator('button[type=submit]').first().click()
  await expect.poll(() => heading(page)).toBe('Change the account')
  await page.locator('button[type=submit]').first().click()
  await expect.poll(async () => [await heading(page), page.url()]).toEqual(['Invoice 1', `${url}/invoices/1`])
  await context.close()
})
