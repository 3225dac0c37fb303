/** RFC 9700 sections 4.2, 4.16 and 4.17 on every page that a browser can be shown. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBrowser } from '../../../support/browser.ts'
import { createFlow } from '../flow.ts'
import { openWorld, PASSWORD, parseObject, type World } from '../harness.ts'

let world: World
let flow: ReturnType<typeof createFlow>
beforeAll(async () => {
  world = await openWorld()
  flow = createFlow(world)
})
afterAll(() => world.close())

/** The page of a sign-in that has begun, and the requests that lead there. */
async function signInPage(parameters: { readonly [name: string]: string } = {}) {
  const browser = createBrowser(world.issuer)
  let response = await browser.send(flow.authorizeUrl(parameters))
  let url = flow.authorizeUrl(parameters)
  for (let hop = 0; hop < 5 && response.headers.get('location') !== null; hop += 1) {
    url = new URL(response.headers.get('location') ?? '', url).href
    response = await browser.send(url)
  }
  return { browser, url, response }
}

async function consentPage(): Promise<Response> {
  const { browser, url } = await signInPage({ prompt: 'consent' })
  let response = await browser.send(url, { form: { action: 'login', email: 'eve@x.example', password: PASSWORD } })
  for (let hop = 0; hop < 3 && response.headers.get('location') !== null; hop += 1)
    response = await browser.send(response.headers.get('location') ?? '')
  return response
}
async function postForm(path: string, form: { readonly [name: string]: string }) {
  const response = await fetch(world.issuer + path, { method: 'POST', body: new URLSearchParams(form) })
  return { status: response.status, body: parseObject(await response.text()) }
}
const readPage = async (response: Response) => ({ headers: response.headers, text: await response.text() })

describe('4.2, 4.16 and 4.17, pages', () => {
  const signedIn = async (person: string) => {
    const browser = createBrowser(world.issuer)
    const form = { action: 'login', email: `${person}@x.example`, password: PASSWORD }
    expect((await browser.send('/account/sign-in', { form })).status).toBe(303)
    return browser
  }
  const formPost = { prompt: 'none', response_mode: 'form_post' }
  const device = async () => {
    const { body } = await postForm('/oauth/device_authorization', { client_id: 'public-flows', scope: 'openid' })
    return `/oauth/device?user_code=${body.user_code}`
  }
  const PAGES: readonly (readonly [string, () => Promise<Response>])[] = [
    ['signing in', async () => (await signInPage()).response],
    ['consenting', async () => consentPage()],
    ['an expired sign-in', async () => createBrowser(world.issuer).send('/oauth/interaction/x')],
    ['a mistake of an application', async () => (await signInPage({ client_id: 'nobody' })).response],
    ['an answer by form_post', async () => (await signInPage(formPost)).response],
    ['a device', async () => createBrowser(world.issuer).send('/oauth/device')],
    ['the code of a device', async () => (await signedIn('eve')).send(await device())],
    ['requests of applications', async () => (await signedIn('eve')).send('/oauth/approve')],
    ['signing out', async () => (await signedIn('eve')).send('/oauth/logout')],
    ['signing out nobody', async () => createBrowser(world.issuer).send('/oauth/logout')],
    ['a finished sign-out', async () => createBrowser(world.issuer).send('/oauth/logout/success')],
    ['a sign-out that went wrong', async () => createBrowser(world.issuer).send('/oauth/logout?id_token_hint=x')],
    ['a wrong method', async () => createBrowser(world.issuer).send('/account/providers/x', { form: {} })],
    ...['', '/password', '/authenticator', '/passkeys', '/verification', '/providers'].map(
      (path) => [`the account ${path}`, async () => (await signedIn('eve')).send(`/account${path}`)] as const,
    ),
    ...['sign-in', 'forgotten', 'reset', 'invitation', 'proof', 'providers/x'].map(
      (path) => [path, async () => createBrowser(world.issuer).send(`/account/${path}`)] as const,
    ),
  ]
  test.each(PAGES)(
    'for %s cannot be framed, tell nobody their address, are not kept, and load nothing',
    async (_name, opened) => {
      const { headers, ...response } = await readPage(await opened())
      expect(response.text).toContain('<!doctype html>')
      expect(headers.get('content-security-policy')).toMatch(
        /^default-src 'none';.* frame-ancestors 'none'; base-uri 'none'/,
      )
      expect(headers.get('referrer-policy')).toBe('same-origin')
      expect(headers.get('cache-control')).toContain('no-store')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(response.text).not.toMatch(/src="(?:https?:)?\/\/|<link|postMessage|opener/)
    },
  )

  test.each([
    ['web_message', 'invalid_request'],
    ['jwt', 'invalid_request'],
  ])('no answer goes to another window, or into a script, by the mode %s', async (mode, error) => {
    expect(await flow.errorOf({ response_mode: mode })).toBe(error)
  })
})

test('each attack of RFC 9700 section 4 has a test that names it', () => {
  const files = ['security-bcp.test.ts', 'security-bcp-pages.test.ts'].map((name) =>
    readFileSync(new URL(name, import.meta.url), 'utf8'),
  )
  const titles = files.join('\n').match(/^ *(?:describe|test)\('4\..*|^ {2}'4\..*/gm) ?? []
  const named = new Set(titles.flatMap((title) => title.match(/(?<![\d.])4\.\d+/g) ?? []))
  for (let section = 1; section <= 17; section += 1) expect([...named]).toContain(`4.${section}`)
})
