/** A session that another provider has had for long is no sign-in of now: it opens nothing that asks for one. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Browser, createBrowser, hiddenFields } from '../../../../support/browser.ts'
import { createFlow } from '../../flow.ts'
import { CONTEXT, decode, openWorld, type World } from '../../harness.ts'
import { CLIENT, type Forged, forgeProvider } from './forged-provider.ts'

const HOUR = 3_600
const CHANGES = '/account/passkeys'
const SIGN_IN = '/account/sign-in?to=/account'

let world: World
let forged: Forged
let browser: Browser
let them: { readonly sub: string; readonly email: string; readonly email_verified: true }
let people = 0
beforeAll(async () => {
  ;[world, forged] = await Promise.all([openWorld(), forgeProvider()])
  const provider = { issuer: forged.issuer, client_id: CLIENT, name: 'Forged', creates_accounts: true }
  await world.identity.identityProviders.put('forged', { ...provider, secret: 's'.repeat(20) }, CONTEXT)
})
afterAll(async () => {
  await world.close()
  await forged.close()
})
beforeEach(() => {
  browser = createBrowser(world.issuer)
  const sub = `them${++people}`
  them = { sub, email: `${sub}@forged.example`, email_verified: true }
})

const now = (): number => Math.floor(Date.now() / 1_000)
/** Presses the button of a page; what the provider is asked. */
async function leave(page = SIGN_IN): Promise<URLSearchParams> {
  const html = await (await browser.send(page)).text()
  const form = html
    .split('<form ')
    .map(hiddenFields)
    .find(({ provider }) => provider === 'forged')
  const sent = await browser.send('/account/providers', { form: form ?? {} })
  return new URL(sent.headers.get('location') ?? 'about:blank').searchParams
}
function comeBack(asked: URLSearchParams, claims: { readonly auth_time?: number | null } = {}): Promise<Response> {
  forged.claims = { nonce: asked.get('nonce'), ...them, ...claims }
  return browser.send(
    `/account/providers/forged?${new URLSearchParams({ code: 'c', state: asked.get('state') ?? '' })}`,
  )
}
const travel = async (claims: { readonly auth_time?: number | null }, page = SIGN_IN): Promise<Response> =>
  comeBack(await leave(page), claims)
const mayChange = async (): Promise<boolean> => (await browser.send(CHANGES)).status === 200
const userId = async (): Promise<string> => (await world.directory.userByEmail(them.email))?.id ?? ''

describe('who signs in at a provider', () => {
  test.each([
    ['an hour ago', () => now() - HOUR],
    ['it does not say when', () => null],
    ['before there was time', () => 0],
    ['an hour from now', () => now() + HOUR],
    ['at the end of time', () => 1e300],
    ['just now, in milliseconds', () => now() * 1_000],
  ])('%s is signed in here, and changes nothing before signing in there once more', async (_when, at) => {
    expect((await travel({ auth_time: at() })).status).toBe(303)
    expect((await browser.send('/account')).status).toBe(200)
    expect(await mayChange()).toBe(false)
    const asked = await leave(`/account/sign-in?to=${CHANGES}`)
    expect(asked.get('prompt')).toBe('login')
    expect((await comeBack(asked, { auth_time: at() === null ? null : now() })).status).toBe(303)
    expect(await mayChange()).toBe(true)
  })

  test.each([
    ['just now', () => now()],
    ['by a clock that is a little ahead', () => now() + 5],
  ])('%s may change things', async (_when, at) => {
    expect((await travel({ auth_time: at() })).status).toBe(303)
    expect(await mayChange()).toBe(true)
  })

  test('is asked to sign in there at once where a fresh sign-in is needed', async () => {
    expect((await leave(`/account/sign-in?to=${CHANGES}`)).get('prompt')).toBe('login')
    expect((await leave()).get('prompt')).toBeNull()
  })

  test('long before being signed out here signs in there once more', async () => {
    const at = now() - HOUR
    await travel({ auth_time: at })
    await world.identity.sessions.revokeUser(await userId(), CONTEXT)
    world.time.offsetMs += 5_000
    const sent = await travel({ auth_time: at })
    const again = new URL(sent.headers.get('location') ?? 'about:blank')
    expect([again.origin, again.searchParams.get('prompt')]).toEqual([forged.issuer, 'login'])
    const refused = await comeBack(again.searchParams, { auth_time: at })
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('did not ask you to sign in')])
    const back = await comeBack(await leave(), { auth_time: now() + 5 })
    expect(back.headers.get('location')).toBe(`${world.issuer}/account`)
    expect((await browser.send('/account')).status).toBe(200)
  })
})

describe('an application', () => {
  const begin = async (parameters: { readonly [name: string]: string }): Promise<string> =>
    (await browser.send(createFlow(world).authorizeUrl(parameters))).headers.get('location') ?? ''
  async function member(): Promise<void> {
    await travel({ auth_time: now() })
    const membership = { role: 'viewer', status: 'active' } as const
    await world.store.write('acme', [{ kind: 'membership', user: await userId(), membership }], { context: CONTEXT })
    browser = createBrowser(world.issuer)
  }

  test('learns when the person signed in there', async () => {
    await member()
    const at = now() - HOUR
    const back = await travel({ auth_time: at }, await begin({}))
    let to = back.headers.get('location') ?? ''
    for (let hop = 0; hop < 4 && to.startsWith('/') !== to.startsWith(world.issuer); hop += 1)
      to = (await browser.send(to)).headers.get('location') ?? ''
    const { body } = await createFlow(world).redeem(new URL(to).searchParams.get('code') ?? '')
    expect(decode(String(body.id_token)).payload).toMatchObject({ auth_time: at, amr: ['fed'] })
  })

  test('that asks for a sign-in of late gets no session that the provider has had for long', async () => {
    await member()
    const asked = await leave(await begin({ max_age: '300' }))
    expect(asked.get('prompt')).toBe('login')
    expect(await (await comeBack(asked, { auth_time: now() - HOUR })).text()).toContain('did not ask you to sign in')
  })
})
