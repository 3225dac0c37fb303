/** What people, issuers and attackers do in tests of a sign-in, one step each. */
import { expect } from 'vitest'
import { field, type RawAnswer } from '../../support/peers/raw-http.ts'
import { cookieLines, type Fields, locationOf, openWorld, SESSION, type TestBrowser, type World } from './world.ts'

export const MINUTE = 60_000
export const FORM = ['Content-Type: application/x-www-form-urlencoded']

export const named = (value: string | undefined): Fields => [`Cookie: ${SESSION}=${value ?? ''}`]
export const parts = ({ jar }: TestBrowser): readonly string[] =>
  [...jar.keys()].filter((name) => name.startsWith(SESSION))

/** In a world of several providers: chooses one, and stops where it sends the browser back. */
export async function callbackOf(world: World, browser: TestBrowser, path = '/docs/1', provider = 0): Promise<string> {
  const pathOf = (url: string): string => url.slice(world.origin.length)
  const chooser = pathOf(locationOf(await browser.visit(path)))
  const { body } = await browser.visit(chooser)
  const href = new RegExp(`href="([^"]*/sign-in/idp${provider}[^"]*)"`).exec(body)?.[1] ?? ''
  const sent = await browser.visit(pathOf(href))
  const back = await fetch(locationOf(sent), { redirect: 'manual' })
  return pathOf(back.headers.get('location') ?? '')
}

/** Nobody is signed in by this answer, and nobody is sent on by it. */
export function expectRefused(answer: RawAnswer, status = 400): void {
  expect([answer.status, field(answer, 'location')]).toEqual([status, null])
  expect(cookieLines(answer).filter((line) => line.startsWith(SESSION) && !line.includes('Max-Age=0'))).toEqual([])
}

/** Worlds whose clock a test moves. */
export function movableWorlds() {
  const worlds: World[] = []
  let clock = { aheadMs: 0 }
  return {
    get clock() {
      return clock
    },
    async open(options: Parameters<typeof openWorld>[0] = {}): Promise<World> {
      const own = { aheadMs: 0 }
      clock = own
      const opened = await openWorld({ clock: () => Date.now() + own.aheadMs, ...options })
      worlds.push(opened)
      return opened
    },
    async close(): Promise<void> {
      for (const opened of worlds) await opened.close()
    },
  }
}

/** In a world of one provider. */
export async function signedIn({ browser }: World): Promise<TestBrowser> {
  const person = browser()
  expect((await person.open('/docs/1')).status).toBe(200)
  return person
}

export function copyOf({ jar }: TestBrowser, { browser }: World): TestBrowser {
  const copy = browser()
  for (const [name, value] of jar) copy.jar.set(name, value)
  return copy
}

export const statusOf = async (browser: TestBrowser, port?: number): Promise<number> =>
  (await browser.fetch('GET /docs/1', [], port === undefined ? {} : { port })).status

export const signOut = (browser: TestBrowser, { origin }: World): Promise<RawAnswer> =>
  browser.fetch('POST /.portcullis/sign-out', [`Origin: ${origin}`, 'Content-Length: 0'])

/** As the issuer tells that somebody signed out. */
export const notify = (at: World, token: string, port?: number): Promise<RawAnswer> =>
  at.send('POST /.portcullis/backchannel-logout', FORM, {
    body: new URLSearchParams({ logout_token: token }).toString(),
    ...(port !== undefined && { port }),
  })
