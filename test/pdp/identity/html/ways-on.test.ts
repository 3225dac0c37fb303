/** Dead ends of people: each page says what happened, and has a link that leads on. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Browser, createBrowser, hiddenFields } from '../../../support/browser.ts'
import { createFlow } from '../flow.ts'
import { openWorld, PASSWORD, REDIRECT, type World } from '../harness.ts'

let world: World
let browser: Browser
beforeAll(async () => {
  world = await openWorld()
  flow = createFlow(world)
})
afterAll(() => world.close())
beforeEach(() => {
  browser = createBrowser(world.issuer)
})

const LOGIN = { action: 'login', email: 'eve@x.example', password: PASSWORD }
let flow: ReturnType<typeof createFlow>
const begin = async (parameters: { readonly [name: string]: string } = {}): Promise<string> =>
  (await browser.send(createFlow(world).authorizeUrl(parameters))).headers.get('location') ?? ''
/** Title and links of a page. */
async function said(response: Response): Promise<readonly [number, string | undefined, readonly string[]]> {
  const text = await response.text()
  const links = [...text.matchAll(/<a href="([^"]+)"/g)].map(([, href = '']) => href)
  return [response.status, /<h1>(.*?)<\/h1>/.exec(text)?.[1], links]
}
/** Sends a form, and goes where the answer leads. */
async function go(path: string, form: { readonly [name: string]: string }, who = browser): Promise<string> {
  let to = (await who.send(path, { form })).headers.get('location') ?? ''
  for (let hop = 0; hop < 3 && !to.startsWith(REDIRECT); hop += 1) {
    const next = (await who.send(to)).headers.get('location')
    if (next === null) break
    to = next
  }
  return to
}
const EXPIRED = [400, 'This sign-in has expired', ['/account']]

describe('a sign-in', () => {
  test('that is over says so to the back button and to a form that is sent again', async () => {
    const path = await begin()
    expect(await go(path, LOGIN)).toContain('code=')
    expect(await said(await browser.send(path))).toEqual(EXPIRED)
    expect(await said(await browser.send(path, { form: LOGIN }))).toEqual(EXPIRED)
  })

  test('whose cookie is lost in the middle, or that another browser began, says so', async () => {
    const path = await begin()
    const lost = createBrowser(world.issuer)
    expect(await said(await lost.send(path))).toEqual(EXPIRED)
    expect(await said(await lost.send(path, { form: LOGIN }))).toEqual(EXPIRED)
    const answered = await browser.send(path, { form: LOGIN })
    expect(await said(await lost.send(answered.headers.get('location') ?? ''))).toEqual(EXPIRED)
  })

  test('whose form is sent twice goes on by either answer', async () => {
    const path = await begin()
    const both = await Promise.all([1, 2].map(() => browser.send(path, { form: LOGIN })))
    expect(both.map(({ status }) => status)).toEqual([303, 303])
    const end = await browser.send(both[1]?.headers.get('location') ?? '')
    expect(end.headers.get('location')).toContain('code=')
  })

  test('in each of two tabs goes on in both', async () => {
    const tabs = [await begin({ prompt: 'consent' }), await begin({ prompt: 'consent' })]
    const consents = [await go(tabs[0] ?? '', LOGIN), await go(tabs[1] ?? '', LOGIN)]
    for (const consent of consents) {
      const form = hiddenFields(await (await browser.send(consent)).text())
      expect(await go(consent, { ...form, action: 'continue' })).toContain('code=')
    }
  })

  test('whose form comes from another site says that nothing was changed, and leads to the page', async () => {
    const path = await begin()
    const answer = await browser.send(path, { form: LOGIN, headers: { origin: 'https://evil.example' } })
    expect(await said(answer)).toEqual([400, 'This form was sent from elsewhere', [path]])
  })
})

describe('a sign-out', () => {
  const signIn = async (): Promise<void> => void (await go(await begin(), LOGIN))

  test('whose form is sent once more, or by who lost the cookie, says so and leads to signing out', async () => {
    await signIn()
    const form = { ...hiddenFields(await (await browser.send('/oauth/logout')).text()), logout: 'yes' }
    expect((await browser.send('/oauth/logout/confirm', { form })).status).toBe(303)
    for (const one of [browser, createBrowser(world.issuer)])
      expect(await said(await one.send('/oauth/logout/confirm', { form }))).toEqual([
        400,
        'This form has expired',
        ['/oauth/logout'],
      ])
  })

  test('is opened again at the address of its form', async () => {
    const reloaded = await browser.send('/oauth/logout/confirm')
    expect([reloaded.status, reloaded.headers.get('location')]).toEqual([303, `${world.issuer}/oauth/logout`])
  })

  /** Signs somebody in with a browser, and gives the ID token of this session. */
  async function hintOf(who: Browser, email = LOGIN.email): Promise<string> {
    const start = (await who.send(flow.authorizeUrl({}))).headers.get('location') ?? ''
    const back = await go(start, { ...LOGIN, email }, who)
    const { body } = await flow.redeem(new URL(back).searchParams.get('code') ?? '')
    return String(body.id_token)
  }
  const signOut = (who: Browser, hint: string): Promise<Response> =>
    who.send(`/oauth/logout?${new URLSearchParams({ id_token_hint: hint })}`)
  const isSignedIn = async (who: Browser): Promise<boolean> =>
    ((await who.send(flow.authorizeUrl({}))).headers.get('location') ?? '').includes('code=')

  test('with an ID token of the session is done at once: its application has asked already', async () => {
    const hint = await hintOf(browser)
    expect(await isSignedIn(browser)).toBe(true)
    const answer = await signOut(browser, hint)
    expect([answer.status, answer.headers.get('location')]).toEqual([303, `${world.issuer}/oauth/logout/success`])
    expect(await isSignedIn(browser)).toBe(false)
  })

  test('with an ID token of somebody else, or of nobody, asks', async () => {
    const other = createBrowser(world.issuer)
    const hint = await hintOf(other, 'bob@x.example')
    await hintOf(browser)
    const answer = await signOut(browser, hint)
    expect([answer.status, (await answer.text()).includes('Do you want to sign out')]).toEqual([200, true])
    expect([await isSignedIn(browser), await isSignedIn(other)]).toEqual([true, true])
    expect((await signOut(browser, `${hint.slice(0, -8)}AAAAAAAA`)).status).toBe(400)
    expect(await isSignedIn(browser)).toBe(true)
  })

  test.each([
    ['a hint that is none', { id_token_hint: 'x' }],
    ['an address that is not registered', { client_id: 'flows', post_logout_redirect_uri: 'https://evil.example/' }],
    ['a client that there is not', { client_id: 'nobody' }],
  ])('that an application asks for with %s goes nowhere, and can be done here', async (_name, parameters) => {
    await signIn()
    const page = await browser.send(`/oauth/logout?${new URLSearchParams(parameters)}`)
    expect(await said(page)).toEqual([400, 'The application made a mistake', ['/oauth/logout']])
    expect(await (await browser.send('/oauth/logout')).text()).toContain('Do you want to sign out')
  })
})

describe('an application that sends the browser with a form', () => {
  test.each(['/oauth/authorize', '/oauth/logout'])('gets what it gets by GET from %s', async (path) => {
    const form = { client_id: 'flows', state: '"&=#%é', redirect_uri: REDIRECT }
    const answer = await browser.send(path, { form, headers: { origin: 'https://app.example' } })
    const url = new URL(answer.headers.get('location') ?? '')
    expect([answer.status, `${url.origin}${url.pathname}`]).toEqual([303, world.issuer + path])
    expect(Object.fromEntries(url.searchParams)).toEqual(form)
  })

  test('signs a person in', async () => {
    const { search } = new URL(createFlow(world).authorizeUrl({}))
    const answer = await browser.send('/oauth/authorize', { form: Object.fromEntries(new URLSearchParams(search)) })
    const page = await browser.send(answer.headers.get('location') ?? '')
    expect(await go(page.headers.get('location') ?? '', LOGIN)).toContain('code=')
  })

  test('that is too large, or comes to another page, gets a page', async () => {
    const large = await browser.send('/oauth/authorize', { form: { state: 'x'.repeat(9_000) } })
    expect((await said(large)).slice(0, 2)).toEqual([413, 'The form is too large'])
    const other = await browser.send('/account/providers/example', { form: { code: 'x' } })
    expect((await said(other)).slice(0, 2)).toEqual([405, 'The application made a mistake'])
  })
})

test('a form of a page of the account that comes from elsewhere leads to that page', async () => {
  const wrong = await browser.send('/account/sign-in', { form: LOGIN, headers: { origin: 'https://evil.example' } })
  expect(await said(wrong)).toEqual([400, 'This form was sent from elsewhere', ['/account/sign-in']])
})

describe('a browser that keeps no cookies', () => {
  /** As browsers do: the address of the form stays the referrer of what its answer leads to. */
  const lands = async (referer?: string): Promise<string> => {
    const headers = referer === undefined ? {} : { referer }
    const sent = await createBrowser(world.issuer).send('/account', { headers })
    expect([sent.status, sent.headers.get('referrer-policy')]).toEqual([303, 'same-origin'])
    return (await createBrowser(world.issuer).send(sent.headers.get('location') ?? '', { headers })).text()
  }
  const SIGN_IN = '/account/sign-in?to=%2Faccount'

  test('reads after the right password why it is not signed in', async () => {
    const signedIn = await browser.send(SIGN_IN, { form: LOGIN })
    expect([signedIn.status, signedIn.headers.get('referrer-policy')]).toEqual([303, 'same-origin'])
    expect(await lands(world.issuer + SIGN_IN)).toMatch(/role="alert"[^>]*>Your browser kept no cookie/)
  })

  test.each([undefined, 'https://evil.example/account/sign-in', 'nothing', '/account/sign-in'])(
    'is not what is told to who comes from %s',
    async (referer) => {
      expect(await lands(referer)).not.toContain('role="alert"')
    },
  )

  test('reads it on a sign-in that an application asked for', async () => {
    expect(await (await createBrowser(world.issuer).send(await begin())).text()).toContain('keeps no cookies')
  })
})
