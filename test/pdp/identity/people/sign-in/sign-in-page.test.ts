import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Browser, createBrowser } from '../../../../support/browser.ts'
import { signIn } from '../../../../support/sign-in.ts'
import { openWorld, PASSWORD, REDIRECT, SECRET, type World } from '../../harness.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world.close())

let browser: Browser
beforeEach(() => {
  browser = createBrowser(world.issuer)
})
/** Starts a sign-in; returns the path of its first page. */
async function start(parameters: { readonly [name: string]: string } = {}): Promise<string> {
  const query = new URLSearchParams({
    client_id: 'web',
    response_type: 'code',
    redirect_uri: REDIRECT,
    scope: 'openid',
    code_challenge: 'a'.repeat(43),
    code_challenge_method: 'S256',
    ...parameters,
  })
  const response = await browser.send(`/oauth/authorize?${query}`)
  return response.headers.get('location') ?? ''
}
const login = (path: string, email: string, password: string) =>
  browser.send(path, { form: { action: 'continue', email, password } })

describe('the sign-in page', () => {
  test('is plain HTML with labels, with one script of its own, and escapes what it shows', async () => {
    const response = await browser.send(await start({ login_hint: 'a"b@x.example' }))
    const html = await response.text()
    expect(response.status).toBe(200)
    expect(html).toContain('<label for="email">')
    expect(html).toContain('<label for="password">')
    expect(html).toContain('Web &lt;b&gt;')
    expect(html).toContain('value="a&quot;b@x.example"')
    expect(html.match(/<script[^>]*>/g)).toEqual(['<script type="module" src="/account/page.js">'])
  })

  test('cannot be framed, cached, or made to load anything', async () => {
    const { headers } = await browser.send(await start())
    expect(headers.get('content-security-policy')).toMatch(
      /default-src 'none'.*frame-ancestors 'none'; base-uri 'none'/,
    )
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('referrer-policy')).toBe('same-origin')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
  })

  test('belongs to the cookie of its own address', async () => {
    const path = await start()
    const setCookies = (
      await fetch(
        `${world.issuer}/oauth/authorize?${new URLSearchParams({ client_id: 'web', response_type: 'code', redirect_uri: REDIRECT, scope: 'openid', code_challenge: 'a'.repeat(43), code_challenge_method: 'S256' })}`,
        { redirect: 'manual' },
      )
    ).headers.getSetCookie()
    for (const cookie of setCookies) expect(cookie).toMatch(/; samesite=lax; httponly/i)
    expect(setCookies.find((c) => c.startsWith('portcullis_interaction='))).toMatch(/path=\/oauth\/interaction\//)
    const stranger = createBrowser(world.issuer)
    expect((await stranger.send(path)).status).toBe(400)
    expect(
      (await stranger.send(path, { form: { action: 'continue', email: 'eve@x.example', password: PASSWORD } })).status,
    ).toBe(400)
  })

  test('does not take a cookie that was made up or belongs to another address', async () => {
    const path = await start()
    const [, uid] = /interaction\/(.*)$/.exec(path) ?? []
    const stranger = createBrowser(world.issuer)
    const forged = { cookie: `portcullis_interaction=${uid}; portcullis_interaction.sig=AAAA` }
    expect((await stranger.send(path, { headers: forged })).status).toBe(400)
    const stolen = [...browser.cookies()].map(([name, value]) => `${name}=${value}`).join('; ')
    expect((await stranger.send('/oauth/interaction/another', { headers: { cookie: stolen } })).status).toBe(400)
  })

  test('does not take a form that another site sent', async () => {
    const path = await start()
    const form = { action: 'continue', email: 'eve@x.example', password: PASSWORD }
    for (const origin of ['https://evil.example', 'null']) {
      expect((await browser.send(path, { form, headers: { origin } })).status).toBe(400)
    }
    expect((await browser.send(path, { form, headers: { origin: world.issuer } })).status).toBe(303)
  })

  test('does not take a form that is too large', async () => {
    expect((await login(await start(), 'eve@x.example', 'x'.repeat(9_000))).status).toBe(413)
  })

  test('is over after it was used', async () => {
    const path = await start()
    const { status, headers } = await login(path, 'eve@x.example', PASSWORD)
    expect(status).toBe(303)
    await browser.send(headers.get('location') ?? '')
    expect((await browser.send(path)).status).toBe(400)
  })
})

describe('a wrong sign-in', () => {
  test.each([
    ['a wrong password', 'eve@x.example', 'wrong'],
    ['no password', 'eve@x.example', ''],
    ['an unknown person', 'nobody@x.example', PASSWORD],
    ['a person without a password', 'gus@x.example', PASSWORD],
    ['no address', '', PASSWORD],
    ['an address with a NUL', 'eve@x.example\0', PASSWORD],
    ['an address that is too long', `${'e'.repeat(250)}@x.example`, PASSWORD],
  ])('with %s says the same and keeps the person on the page', async (_, email, password) => {
    const response = await login(await start(), email, password)
    const html = await response.text()
    expect(response.status).toBe(400)
    expect(html).toContain('<p role="alert" id="problem">The e-mail address or the password is not right.</p>')
    expect(html).not.toContain(PASSWORD)
  })

  test('is possible ten times; then the account waits, whatever the password, and others do not', async () => {
    const path = await start()
    for (let i = 0; i < 10; i += 1) expect((await login(path, 'cy@x.example', `wrong ${i}`)).status).toBe(400)
    const refused = await login(path, 'CY@x.example', PASSWORD)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60'])
    expect((await login(path, 'eve@x.example', PASSWORD)).status).toBe(303)
    world.time.offsetMs = 900_001
    expect((await login(await start(), 'cy@x.example', PASSWORD)).status).toBe(303)
    world.time.offsetMs = 0
  })

  test('elsewhere uses up no tries of the browser in which the person signed in before, which has ten too', async () => {
    const own = browser
    expect((await login(await start(), 'bob@x.example', PASSWORD)).status).toBe(303)
    expect([...own.cookies().keys()].join()).toContain('portcullis_device')
    browser = createBrowser(world.issuer)
    const elsewhere = await start()
    for (let i = 0; i < 10; i += 1) await login(elsewhere, 'bob@x.example', `wrong ${i}`)
    expect((await login(elsewhere, 'bob@x.example', PASSWORD)).status).toBe(429)
    browser = own
    const path = await start({ prompt: 'login' })
    for (let i = 0; i < 9; i += 1) expect((await login(path, 'bob@x.example', `wrong ${i}`)).status).toBe(400)
    expect((await login(path, 'BOB@x.example', PASSWORD)).status).toBe(303)
    const again = await start({ prompt: 'login' })
    for (let i = 0; i < 10; i += 1) await login(again, 'bob@x.example', `wrong ${i}`)
    expect((await login(again, 'bob@x.example', PASSWORD)).status).toBe(429)
  })

  test('makes the browser no known one for anybody else', async () => {
    expect((await login(await start(), 'dan@x.example', PASSWORD)).status).toBe(303)
    const path = await start({ prompt: 'login' })
    for (let i = 0; i < 10; i += 1) await login(path, 'ann@x.example', `wrong ${i}`)
    browser = createBrowser(world.issuer)
    expect((await login(await start(), 'ann@x.example', PASSWORD)).status).toBe(429)
  })

  test('at an address that nobody has ends after as many tries, whatever its spelling', async () => {
    const path = await start()
    const spellings = ['nobody-2@x.example', 'NOBODY-2@x.example', 'Nobody-2@X.example']
    for (let i = 0; i < 10; i += 1) {
      expect((await login(path, spellings[i % spellings.length] ?? '', PASSWORD)).status).toBe(400)
    }
    for (const spelling of spellings) expect((await login(path, spelling, PASSWORD)).status).toBe(429)
  })

  test.each(['ann@x.example', 'nobody-3@x.example'])(
    'of %s from everywhere at once ends for strangers',
    async (email) => {
      world.time.offsetMs = 2_000_000
      const path = await start()
      const tried = await Promise.all(Array.from({ length: 25 }, (_, i) => login(path, email, `wrong ${i}`)))
      expect(tried.filter(({ status }) => status === 400)).toHaveLength(10)
      expect(tried.filter(({ status }) => status === 429)).toHaveLength(15)
      world.time.offsetMs = 0
    },
  )

  test('leaves no address and no password in the log', async () => {
    await login(await start(), 'eve@x.example', 'secret-attempt')
    await login(await start(), 'eve@x.example', PASSWORD)
    expect(world.log.join('')).toContain('sign_in_refused')
    expect(world.log.join('')).not.toMatch(/secret-attempt|eve@x.example|correct horse/)
  })
})

describe('the consent page', () => {
  test('lets somebody else take over, and tells the application of a refusal', async () => {
    const people = ['eve@x.example', 'cy@x.example']
    const steps: string[] = []
    const end = await browser.follow(await start({ prompt: 'consent' }), ({ step, html }) => {
      steps.push(step)
      if (step === 'login') return { action: 'login', email: people.shift() ?? '', password: PASSWORD }
      if (step === 'logout') return { logout: 'yes' }
      if (html.includes('eve@x.example')) return { action: 'switch' }
      expect(html).toContain('<strong>cy@x.example</strong>')
      return { action: 'cancel' }
    })
    expect(steps).toEqual(['login', 'consent', 'login', 'logout', 'consent'])
    expect(end.searchParams.get('error')).toBe('access_denied')
  })

  test('takes no wrong password of somebody else, and keeps who is signed in', async () => {
    const path = await start({ prompt: 'consent' })
    const { headers } = await login(path, 'eve@x.example', PASSWORD)
    const resumed = await browser.send(headers.get('location') ?? '')
    const consent = resumed.headers.get('location') ?? ''
    const wrong = { action: 'login', email: 'cy@x.example', password: 'wrong' }
    expect((await browser.send(consent, { form: wrong })).status).toBe(400)
    expect(await (await browser.send(consent)).text()).toContain('<strong>eve@x.example</strong>')
  })
})

describe('the browser session', () => {
  const request = { clientId: 'web', clientSecret: SECRET, redirectUri: REDIRECT, password: PASSWORD }

  test('ends, with its tokens, when somebody else signs in', async () => {
    const first = await signIn({ ...request, issuer: world.issuer, email: 'eve@x.example', browser })
    const path = await start({ prompt: 'login' })
    const { headers } = await login(path, 'cy@x.example', PASSWORD)
    // oidc-provider ends the former session by a form of its own.
    const handOver = await (await browser.send(headers.get('location') ?? '')).text()
    const xsrf = /name="xsrf" value="([^"]+)"/.exec(handOver)?.[1] ?? ''
    await browser.send('/oauth/logout/confirm', { form: { xsrf, logout: 'yes' } })
    expect(await world.identity.introspect(first.tokens.access_token)).toEqual({ active: false })
    const [entry] = await world.sql.query<{ change: unknown }>(
      "select change from change_log where organization_id = '#tokens' order by revision desc limit 1",
    )
    expect(entry?.change).toMatchObject({ kind: 'token', by: 'grant' })
  })

  test('is not ended by a form without its secret', async () => {
    const { tokens } = await signIn({ ...request, issuer: world.issuer, email: 'eve@x.example', browser })
    expect((await browser.send('/oauth/logout/confirm', { form: { logout: 'yes' } })).status).toBe(400)
    expect(await world.identity.introspect(tokens.access_token)).toMatchObject({ active: true })
  })
})
