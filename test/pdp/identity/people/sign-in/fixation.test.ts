/** A browser into which somebody put a session before its person signs in. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Browser, createBrowser } from '../../../../support/browser.ts'
import { createFlow } from '../../flow.ts'
import { openWorld, PASSWORD, type World } from '../../harness.ts'

const LOGIN = { action: 'login', email: 'eve@x.example', password: PASSWORD }

describe('a session of before', () => {
  let world: World
  beforeAll(async () => {
    world = await openWorld()
  })
  afterAll(() => world.close())

  const DOORS: readonly (readonly [string, (by: Browser) => Promise<Response>])[] = [
    ['on the page of the account', (by) => by.send('/account/sign-in', { form: LOGIN })],
    ['on the page for requests of applications', (by) => by.send('/oauth/approve', { form: LOGIN })],
    [
      'for an application',
      async (by) => {
        const path = (await by.send(createFlow(world).authorizeUrl({}))).headers.get('location') ?? ''
        const answered = await by.send(path, { form: LOGIN })
        return by.send(answered.headers.get('location') ?? '')
      },
    ],
  ]
  test.each(DOORS)('is not that of who signs in %s', async (_name, signIn) => {
    const browser = createBrowser(world.issuer)
    for (const path of ['/oauth/device', '/oauth/logout', '/account']) await browser.send(path)
    const planted = [...browser.cookies()].map(([name, value]) => `${name}=${value}`).join('; ')
    expect(planted).toContain('portcullis_session=')
    expect((await signIn(browser)).status).toBeLessThan(400)
    expect((await browser.send('/account')).status).toBe(200)
    const headers = { cookie: planted, accept: 'text/html' }
    const other = await fetch(`${world.issuer}/account`, { headers, redirect: 'manual' })
    expect(other.headers.get('location')).toContain('/account/sign-in')
  })
})

describe('behind TLS', () => {
  let world: World
  beforeAll(async () => {
    world = await openWorld({ behindTls: true })
  })
  afterAll(() => world.close())

  const cookiesOf = async (path: string, form?: { readonly [name: string]: string }): Promise<readonly string[]> => {
    const body = form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }
    const address = world.issuer.replace('https:', 'http:')
    const answer = await fetch(address + path, { redirect: 'manual', headers: { accept: 'text/html' }, ...body })
    return answer.headers.getSetCookie()
  }

  test.each([
    ['/account/sign-in', LOGIN],
    ['/oauth/approve', LOGIN],
    ['/oauth/device', undefined],
  ])('no other host of the domain can put one there: %s sets it for this host alone', async (path, form) => {
    const session = (await cookiesOf(path, form)).filter((line) => /session|identity/.test(line.split('=', 1)[0] ?? ''))
    expect(session.map((line) => line.split('=', 1)[0])).toEqual([
      '__Host-portcullis-identity',
      '__Host-portcullis-identity.sig',
    ])
    for (const line of session) {
      expect(line).toMatch(/; path=\/(;|$)/i)
      expect(line).toMatch(/; secure/i)
      expect(line).toMatch(/; httponly/i)
      expect(line).not.toMatch(/; domain=/i)
    }
  })

  test('every cookie is for TLS alone, and out of reach of scripts', async () => {
    const { pathname, search } = new URL(createFlow(world).authorizeUrl({}))
    const lines = [
      ...(await cookiesOf('/account/sign-in', LOGIN)),
      ...(await cookiesOf(pathname + search)),
      ...(await cookiesOf('/account/forgotten', { email: 'eve@x.example' })),
    ]
    expect(lines.length).toBeGreaterThan(3)
    for (const line of lines) expect(line).toMatch(/(?=.*; secure)(?=.*; httponly)(?=.*; samesite=lax)/i)
  })
})
