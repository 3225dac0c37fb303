/** People see where they are signed in, and end what they do not know. */
import { expect, test } from 'vitest'
import { type Browser, createBrowser, hiddenFields } from '../../../../support/browser.ts'
import { createFlows } from '../../flows.ts'
import { PASSWORD } from '../../harness.ts'
import { person, useWorld, world } from './forgetting.ts'

useWorld()
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'
const SAFARI =
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15'

/** A browser that says who it is. */
function naming(agent: string): Browser {
  const inner = createBrowser(world.issuer)
  const send: Browser['send'] = (url, init = {}) =>
    inner.send(url, { ...init, headers: { 'user-agent': agent, ...init.headers } })
  return { ...inner, send }
}
async function signedIn(email: string, agent: string): Promise<Browser> {
  const browser = naming(agent)
  const form = { action: 'login', email, password: PASSWORD }
  expect((await browser.send('/account/sign-in?to=/account', { form })).status).toBe(303)
  return browser
}
const home = async (by: Browser): Promise<string> => (await by.send('/account')).text()
const others = (by: Browser, xsrf: string): Promise<Response> => by.send('/account', { form: { xsrf, others: 'yes' } })

test('a person reads with which browser, from where and since when each sign-in is', async () => {
  const { email } = await person()
  const here = await signedIn(email, FIREFOX)
  await signedIn(email, SAFARI)
  const page = await home(here)
  expect(page).toContain('<strong>Firefox 128, Linux</strong> (This browser)')
  expect(page).toMatch(
    /<strong>Safari 17, macOS<\/strong><br><small>From 127\.0\.0\.1\. Signed in \d{4}-\d\d-\d\d \d\d:\d\d UTC\. Last used \d{4}-/,
  )
})

test('a sign-in for an application names it, and the browser of its last visit', async () => {
  const { id, email } = await person()
  await createFlows(world).code({
    person: id,
    organization: 'acme',
    scope: 'openid',
    browser: createBrowser(world.issuer),
  })
  const [session] = await world.identity.sessions.sessionsOf(id)
  expect(session).toMatchObject({ browser: null, address: '127.0.0.1', clients: ['flows'] })
  expect(Math.abs((session?.usedMs ?? 0) - (session?.signedInMs ?? 0))).toBeLessThan(60_000)
  const page = await home(await signedIn(email, FIREFOX))
  expect(page).toContain('<strong>Unknown browser</strong>')
  expect(page).toMatch(/For [^<]+\.<\/small>/)
})

test('what a browser says of itself cannot become markup, and only words of ours are kept', async () => {
  const { id, email } = await person()
  await signedIn(email, 'Firefox/1"><script>alert(1)</script>')
  expect((await world.identity.sessions.sessionsOf(id)).map(({ browser }) => browser)).toEqual(['Firefox 1'])
})

test('a person ends all others at once: this browser stays, and so do other people', async () => {
  const [mine, theirs] = [await person(), await person()]
  const here = await signedIn(mine.email, FIREFOX)
  const foreign = await signedIn(theirs.email, FIREFOX)
  const elsewhere = [await signedIn(mine.email, SAFARI), await signedIn(mine.email, SAFARI)]
  const page = await home(here)
  expect(page).toContain('>End all others<')
  const { xsrf = '' } = hiddenFields(page)
  expect((await others(here, 'A'.repeat(43))).status).toBe(400)
  expect(await world.identity.sessions.sessionsOf(mine.id)).toHaveLength(3)
  const ended = await others(here, xsrf)
  expect([ended.status, await ended.text()]).toEqual([200, expect.stringContaining('All others have ended')])
  expect(await world.identity.sessions.sessionsOf(mine.id)).toHaveLength(1)
  expect((await here.send('/account')).status).toBe(200)
  expect((await foreign.send('/account')).status).toBe(200)
  for (const one of elsewhere) expect((await one.send('/account')).status).toBe(303)
  expect(await home(here)).not.toContain('>End all others<')
})

test('a session that an earlier version stored is shown without what that did not keep', async () => {
  const { id, email } = await person()
  const here = await signedIn(email, FIREFOX)
  await world.sql.query(
    "update oidc_record set payload = payload - 'seen' where kind = 'Session' and payload ->> 'accountId' = $1",
    [id],
  )
  expect(await home(here)).toContain('<strong>Unknown browser</strong> (This browser)')
  expect(await world.identity.sessions.sessionsOf(id)).toMatchObject([{ browser: null, address: null }])
})
