import { describe, expect, test } from 'vitest'
import { createFlows } from '../../flows.ts'
import { CONTEXT } from '../../harness.ts'
import {
  button,
  get,
  here,
  join,
  leave,
  linksOf,
  mine,
  newBrowsers,
  other,
  PROVIDER,
  PROVIDERS,
  person,
  post,
  prove,
  provide,
  signedInAs,
  signInHere,
  signInThere,
  travel,
  useWorlds,
} from './world.ts'

useWorlds()
const HALF_AN_HOUR_MS = 1_800_000
const disconnectForm = (html: string) => ({
  action: 'disconnect',
  xsrf: /name="xsrf" value="([^"]+)"/.exec(html)?.[1] ?? '',
  identity: /name="identity" value="([^"]+)"/.exec(html)?.[1] ?? '',
})

describe('a person who is signed in', () => {
  test('connects a provider, sees it in the account, signs in by it, and disconnects it', async () => {
    const [account, them] = [await person(here), await person(other)]
    await signInHere(account.email)
    expect((await get('/account')).html).toContain(`href="${PROVIDERS}"`)
    const done = await travel(them.email, { path: PROVIDERS })
    expect([done.status, done.html]).toEqual([200, expect.stringContaining('From now on you can sign in with')])
    expect(await linksOf(account.id)).toEqual([them.id])
    const [again, there] = newBrowsers()
    await travel(them.email, { by: [again, there] })
    expect(await signedInAs(again)).toBe(account.email)
    await join(account.id)
    const app = await createFlows(here).code({
      ...{ person: account.id, organization: 'acme', scope: 'openid', browser: newBrowsers()[0] },
    })
    const page = await get(PROVIDERS)
    expect(page.html).toContain(`Other &amp; Co as ${them.email}`)
    expect((await post(PROVIDERS, disconnectForm(page.html))).html).toContain('can no longer sign in')
    expect(await linksOf(account.id)).toEqual([])
    // Nobody signed in with anything else just now.
    expect([await signedInAs(), await signedInAs(again)]).toEqual([null, null])
    expect((await here.identity.introspect(app.tokens.access_token)).active).toBe(false)
    expect((await travel(them.email, { by: newBrowsers() })).location).toContain('/account/proof')
  })

  test.each([
    ['no mark of the form', { xsrf: '' }],
    ['the mark of another session', { xsrf: 'A'.repeat(43) }],
  ])('goes nowhere with %s', async (_, change) => {
    const account = await person(here)
    await signInHere(account.email)
    const fields = button((await get(PROVIDERS)).html)
    expect((await post(PROVIDERS, { ...fields, ...change })).status).toBe(400)
  })

  test('signs in once more before a change, when the sign-in is not recent', async () => {
    const account = await person(here)
    await signInHere(account.email)
    const fields = button((await get(PROVIDERS)).html)
    here.time.offsetMs = HALF_AN_HOUR_MS
    expect((await post(PROVIDERS, fields)).location).toContain('/account/sign-in')
  })

  test('gets nothing connected that somebody else began', async () => {
    const [account, attacker, them] = [await person(here), await person(here), await person(other)]
    const [by, there] = newBrowsers()
    await signInHere(attacker.email, by)
    const link = await signInThere(await leave(PROVIDERS, by), them.email, there)
    // The attacker's link, in the browser of the person.
    await signInHere(account.email)
    expect((await get(link)).status).toBe(400)
    // The attacker's browser, in which the person signs in meanwhile.
    await signInHere(account.email, by)
    const back = await get(link, by)
    expect([back.status, back.html]).toEqual([400, expect.stringContaining('Somebody else is signed in')])
    expect([await linksOf(account.id), await linksOf(attacker.id)]).toEqual([[], []])
  })

  test('gets nothing connected after signing out, nor what belongs to another account', async () => {
    const [account, owner, them] = [await person(here), await person(here), await person(other)]
    await travel(them.email)
    await prove(owner.email)
    const [by, there] = newBrowsers()
    await signInHere(account.email, by)
    const taken = await travel(them.email, { path: PROVIDERS, by: [by, there] })
    expect([taken.status, taken.html]).toEqual([400, expect.stringContaining('with an account already')])
    const second = await person(other)
    const [late, elsewhere] = newBrowsers()
    await signInHere(account.email, late)
    const link = await signInThere(await leave(PROVIDERS, late), second.email, elsewhere)
    await here.identity.sessions.revokeUser(account.id, CONTEXT)
    expect((await get(link, late)).status).toBe(400)
    expect([await linksOf(account.id), await linksOf(owner.id)]).toEqual([[], [them.id]])
  })

  test('keeps the last way in', async () => {
    await provide({ creates_accounts: true })
    const them = await person(other)
    await travel(them.email)
    const { id = '' } = (await here.directory.userByEmail(them.email)) ?? {}
    const form = disconnectForm((await get(PROVIDERS)).html)
    const kept = await post(PROVIDERS, form)
    expect([kept.status, kept.html]).toEqual([400, expect.stringContaining('only way into your account')])
    expect(await linksOf(id)).toEqual([them.id])
  })

  test('disconnects nothing of others', async () => {
    const [account, owner, them] = [await person(here), await person(here), await person(other)]
    await travel(them.email)
    await prove(owner.email)
    const { identity } = disconnectForm((await get(PROVIDERS)).html)
    const [by] = newBrowsers()
    await signInHere(account.email, by)
    const xsrf = button((await get(PROVIDERS, by)).html).xsrf ?? ''
    expect((await post(PROVIDERS, { action: 'disconnect', xsrf, identity }, by)).status).toBe(400)
    expect(await linksOf(owner.id)).toEqual([them.id])
  })

  test('is told nothing of providers where there are none', async () => {
    await here.identity.identityProviders.remove(PROVIDER, CONTEXT)
    const account = await person(here)
    await signInHere(account.email)
    expect((await get('/account')).html).not.toContain(PROVIDERS)
    expect((await get('/account/sign-in')).html).not.toContain('data-step="provider"')
    expect(await signedInAs(mine)).toBe(account.email)
  })
})
