/** A real Chromium, such as Debian's, and the tabs that tests look through. */
import { existsSync } from 'node:fs'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { emailOf, PASSWORD, type World } from './world.ts'

const PATHS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** `CHROMIUM` names another one. Null: not installed. */
export function findChromium(): string | null {
  const { CHROMIUM } = process.env
  return (CHROMIUM === undefined ? PATHS : [CHROMIUM]).find((path) => existsSync(path)) ?? null
}

export function launchChromium(): Promise<Browser> {
  const executablePath = findChromium()
  if (executablePath === null) throw new Error('there is no Chromium')
  // Root in a container has no user namespaces for the sandbox; the pages are our own.
  const sandbox = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  return chromium.launch({ executablePath, args: [...sandbox, '--disable-gpu', '--disable-dev-shm-usage'] })
}

export type Tab = {
  readonly page: Page
  readonly context: BrowserContext
  /** What a policy refused, what failed to load, and requests to other origins: must stay empty. */
  readonly complaints: string[]
}

/** A tab of somebody who has signed in; null: of nobody. */
export async function openTab(
  browser: Browser,
  world: Pick<World, 'issuer'>,
  options: BrowserContextOptions & { readonly person: string | null },
): Promise<Tab> {
  const { person, ...rest } = options
  const context = await browser.newContext({ baseURL: world.issuer, ...rest })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    if (/Content Security Policy|Trusted|violates/i.test(message.text())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('request', (request) => {
    if (!request.url().startsWith(world.issuer)) complaints.push(`request to ${request.url()}`)
  })
  if (person !== null) await signIn(page, person)
  return { page, context, complaints }
}

async function signIn(page: Page, person: string): Promise<void> {
  await page.goto('/console')
  await page.locator('input[name=email]').fill(emailOf(person))
  await page.locator('input[name=password]').fill(PASSWORD)
  await page.locator('button[type=submit]').first().click()
  await page.waitForURL(/\/console/)
}
