import { describe, expect, test } from 'vitest'
import { createFlow } from '../../flow.ts'
import {
  button,
  CALLBACK,
  get,
  here,
  leave,
  mine,
  newBrowsers,
  other,
  PROOF,
  PROVIDER,
  PROVIDERS,
  person,
  post,
  prove,
  provide,
  signedInAs,
  signInHere,
  signInThere,
  useWorlds,
} from './world.ts'

useWorlds()

describe('the way back', () => {
  const refusedPage = async (url: string, by = mine) => {
    const back = await get(url, by)
    expect([url, back.status]).toEqual([url, 400])
    expect(await signedInAs(by)).toBeNull()
  }

  test('is good once, in the browser that went, with the state that it took along', async () => {
    await provide({ creates_accounts: true })
    const victim = await person(other)
    const url = new URL(await signInThere(await leave(), victim.email))
    await refusedPage(url.href, newBrowsers()[0]) // another browser
    const stranger = newBrowsers()
    await leave(undefined, stranger[0])
    await refusedPage(url.href, stranger[0]) // which is on a way of its own
    for (const change of [
      (to: URL) => to.searchParams.delete('state'),
      (to: URL) => to.searchParams.set('state', 'A'.repeat(43)),
      (to: URL) => to.searchParams.set('state', `${to.searchParams.get('state')}A`),
      (to: URL) => void Object.assign(to, { pathname: `${PROVIDERS}/another` }),
    ]) {
      const changed = new URL(url)
      change(changed)
      await refusedPage(changed.href)
    }
    const cookies = [...mine.cookies()].map(([name, value]) => `${name}=${value}`).join('; ')
    expect((await get(url.href)).status).toBe(303)
    expect(await signedInAs()).toBe(victim.email)
    // By who kept the cookie.
    const replayed = await newBrowsers()[0].send(url.href, { headers: { cookie: cookies } })
    expect(replayed.status).toBe(400)
  })

  test('takes no code of somebody else', async () => {
    await provide({ creates_accounts: true })
    const [victim, attacker] = [await person(other), await person(other)]
    const [by, there] = newBrowsers()
    const foreign = new URL(await signInThere(await leave(undefined, by), attacker.email, there))
    const url = new URL(await signInThere(await leave(), victim.email))
    url.searchParams.set('code', foreign.searchParams.get('code') ?? '')
    await refusedPage(url.href)
    expect(await here.directory.userByEmail(attacker.email)).toBeNull()
  })

  test.each([
    ['another issuer answers (RFC 9207)', (to: URL) => to.searchParams.set('iss', 'https://evil.example')],
    ['it is our own', (to: URL) => to.searchParams.set('iss', here.issuer)],
    ['no issuer is named', (to: URL) => to.searchParams.delete('iss')],
    ['the code is missing', (to: URL) => to.searchParams.delete('code')],
    ['the code is there twice', (to: URL) => to.searchParams.append('code', 'another')],
    ['it holds tokens', (to: URL) => to.searchParams.set('id_token', 'a.b.c')],
    ['it is an error', (to: URL) => to.searchParams.set('error', 'server_error')],
  ])('leads nowhere when %s', async (_, change) => {
    await provide({ creates_accounts: true })
    const url = new URL(await signInThere(await leave(), (await person(other)).email))
    change(url)
    await refusedPage(url.href)
  })

  test('says so when the person went no further there, and the log has what the provider said', async () => {
    const url = await leave()
    const state = new URL(url).searchParams.get('state') ?? ''
    const error_description = 'User is not assigned\r\nto the <b>client'
    const query = new URLSearchParams({ error: 'access_denied', error_description, state, iss: other.issuer })
    const { html } = await get(`${CALLBACK}?${query}`)
    expect(html).toContain('did not go on at Other')
    expect(html).not.toContain('assigned')
    expect(here.log.join()).toContain('access_denied: User is not assigned to the <b>client')
  })

  test('that went no further, and of which the provider said no more, is in the log with the code alone', async () => {
    const state = new URL(await leave()).searchParams.get('state') ?? ''
    const query = new URLSearchParams({ error: 'access_denied', state, iss: other.issuer })
    const lines = here.log.length
    await get(`${CALLBACK}?${query}`)
    expect(here.log.slice(lines).join()).toContain('"reason":"access_denied"')
  })

  test.each([
    ['was cancelled', { error: 'access_denied' }],
    ['failed', { error: 'server_error' }],
  ])('that %s leads to the sign-in of the application again', async (_, answer) => {
    const page = (await mine.send(createFlow(here).authorizeUrl({}))).headers.get('location') ?? ''
    const state = new URL(await leave(page)).searchParams.get('state') ?? ''
    const { html } = await get(`${CALLBACK}?${new URLSearchParams({ ...answer, state, iss: other.issuer })}`)
    const { pathname } = new URL(page, here.issuer)
    expect(html).toContain(`<a href="${pathname}">Begin again</a>`)
    expect((await get(pathname)).html).toContain('data-step="login"')
  })

  test('of a person without an account shows how to begin again, and the password on demand', async () => {
    const page = (await mine.send(createFlow(here).authorizeUrl({}))).headers.get('location') ?? ''
    await get(await signInThere(await leave(page), (await person(other)).email))
    const { html } = await get(PROOF)
    expect(html).toContain(`<a href="${new URL(page, here.issuer).pathname}">Begin again</a>`)
    expect(html).toContain('data-show="Show password"')
  })

  test('is not good for ever', async () => {
    const url = await signInThere(await leave(), (await person(other)).email)
    here.time.offsetMs = 601_000
    await refusedPage(url)
  })

  test('begins on our own page alone, and leads to our own pages alone', async () => {
    const fields = button((await get('/account/sign-in?to=//evil.example')).html)
    const headers = { origin: 'https://evil.example' }
    expect((await mine.send(PROVIDERS, { form: { ...fields }, headers })).status).toBe(400)
    for (const target of ['', 'https://evil.example', '/account', `${fields.target}A`])
      expect((await post(PROVIDERS, { provider: PROVIDER, target })).status).toBe(400)
    expect((await post(PROVIDERS, { ...fields, provider: 'none' })).status).toBe(400)
    const account = await person(here)
    const them = await person(other)
    const sent = await post(PROVIDERS, fields)
    await get(await signInThere(sent.location, them.email))
    expect((await prove(account.email)).location).toBe(`${here.issuer}/account`)
  })

  test('asks who is signed in already to sign in there once more', async () => {
    const account = await person(here)
    await signInHere(account.email)
    expect(new URL(await leave('/account/sign-in?to=/account/password')).searchParams.get('prompt')).toBe('login')
    expect(new URL(await leave(undefined, newBrowsers()[0])).searchParams.get('prompt')).toBeNull()
  })
})
