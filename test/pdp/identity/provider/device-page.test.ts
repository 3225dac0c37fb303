import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Browser, createBrowser, hiddenFields } from '../../../support/browser.ts'
import { createFlow } from '../flow.ts'
import { createFlows } from '../flows.ts'
import { openWorld, PASSWORD, type World } from '../harness.ts'

let world: World
let flows: ReturnType<typeof createFlows>
let browser: Browser
beforeAll(async () => {
  world = await openWorld()
  flows = createFlows(world)
})
afterAll(() => world.close())
beforeEach(() => {
  browser = createBrowser(world.issuer)
})

async function start(): Promise<{ code: string; complete: string }> {
  const { started } = await flows.startDevice({ person: 'eve', scope: 'openid' })
  return { code: started.user_code, complete: started.verification_uri_complete ?? '' }
}
const open = async (url: string) => {
  const response = await browser.send(url)
  return { status: response.status, headers: response.headers, html: await response.text() }
}
function expectOurs({ headers, html }: Awaited<ReturnType<typeof open>>): void {
  expect(html).not.toContain('<script')
  expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'; frame/)
  expect(headers.get('cache-control')).toBe('no-store')
}

describe('the address with the code in it', () => {
  test('shows the code and who asks, and goes on only when the person says so', async () => {
    const { code, complete } = await start()
    const page = await open(complete)
    expectOurs(page)
    expect(page.status).toBe(200)
    expect(page.html).toContain(`<p class="code">${code}</p>`)
    expect(page.html).toContain('<strong>Flows</strong>')
    const form = { ...hiddenFields(page.html), confirm: 'yes' }
    expect((await browser.send('/oauth/device', { form })).headers.get('location')).toMatch(/\/oauth\/interaction\//)
  })

  test('can be typed in any case and grouping', async () => {
    const { code } = await start()
    const page = await open(`/oauth/device?user_code=${code.toLowerCase().replace('-', '%20')}`)
    expect(page.html).toContain(`<p class="code">${code}</p>`)
  })

  test('is refused by the person as on the other page', async () => {
    const { complete } = await start()
    const form = { ...hiddenFields((await open(complete)).html), abort: 'yes' }
    expect(await (await browser.send('/oauth/device', { form })).text()).toContain('was stopped')
    expect((await open(complete)).html).toContain('This code was used already')
  })

  test('says that a code has expired', async () => {
    const { complete } = await start()
    await world.sql.query(`update oidc_record set payload = payload || '{"exp": 1000000000}' where kind = 'DeviceCode'`)
    expect((await open(complete)).html).toContain('This code has expired')
  })

  test.each([
    ['an unknown code', 'BBBB-BBBB'],
    ['no code', ''],
    ['something else', '"><script>alert(1)</script>'],
    ['two codes', 'BBBB-BBBB&user_code=CCCC-CCCC'],
  ])('with %s asks for it', async (_, code) => {
    const page = await open(`/oauth/device?user_code=${code.includes('&') ? code : encodeURIComponent(code)}`)
    expectOurs(page)
    expect(page.html).toContain('<label for="code">')
  })

  test('gives guessers no more than the form does', async () => {
    const { complete } = await start()
    for (let i = 0; i < 100; i += 1) await browser.send('/oauth/device?user_code=BBBB-BBBB')
    expect((await open(complete)).status).toBe(429)
    world.time.offsetMs += 60_001
    expect((await open(complete)).status).toBe(200)
  })

  test('lets no guesser keep those away who are signed in, and no one of these another', async () => {
    world.time.offsetMs += 60_001
    const guess = async (by: Browser) => {
      for (let i = 0; i < 100; i += 1) await by.send('/oauth/device?user_code=BBBB-BBBB')
    }
    const statusFor = async (by: Browser) => (await by.send((await start()).complete)).status
    const [eve, cy] = [createBrowser(world.issuer), createBrowser(world.issuer)]
    await flows.code({ person: 'eve', scope: 'openid', browser: eve })
    await flows.code({ person: 'cy', scope: 'openid', browser: cy })
    await guess(browser)
    expect(await Promise.all([browser, eve, cy].map(statusFor))).toEqual([429, 200, 200])
    await guess(eve)
    expect(await Promise.all([browser, eve, cy].map(statusFor))).toEqual([429, 429, 200])
  })
})

describe('forms that oidc-provider would send by a script', () => {
  test('are pages of ours: signing out when nobody is signed in', async () => {
    const page = await open('/oauth/logout')
    expectOurs(page)
    const form = { ...hiddenFields(page.html), logout: 'yes' }
    expect((await browser.send('/oauth/logout/confirm', { form })).headers.get('location')).toContain('/oauth/logout/')
  })

  test('are pages of ours: when somebody else signs in', async () => {
    await flows.code({ person: 'eve', scope: 'openid', browser })
    const path = (await browser.send(createFlow(world).authorizeUrl({ prompt: 'login' }))).headers.get('location')
    const form = { action: 'login', email: 'cy@x.example', password: PASSWORD }
    const resumed = await browser.send(path ?? '', { form })
    const page = await open(resumed.headers.get('location') ?? '')
    expectOurs(page)
    expect(page.html).toContain('Another account was signed in')
    const end = await browser.follow(resumed.headers.get('location') ?? '', () => ({ logout: 'yes' }))
    expect(end.searchParams.get('code')).not.toBeNull()
  })
})
