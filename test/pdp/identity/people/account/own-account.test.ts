import { describe, expect, test } from 'vitest'
import french from '../../../../../pdp/identity/html/words/fr.json' with { type: 'json' }
import { codeOf } from '../../../../support/authenticator.ts'
import { createBrowser, hiddenFields } from '../../../../support/browser.ts'
import { createFlows } from '../../flows.ts'
import { PASSWORD } from '../../harness.ts'
import { secretIn } from '../factors/own-factors.ts'
import { browser, HOUR_MS, mailbox, NEW_PASSWORD, open, person, useWorld, world } from './forgetting.ts'

useWorld()
const signIn = (email: string, by = browser, password = PASSWORD) =>
  by.send('/account/sign-in?to=/account/password', { form: { action: 'login', email, password } })
const home = async (by = browser) => (await by.send('/account')).text()
const xsrfOf = async (by = browser) => hiddenFields(await (await by.send('/account/password')).text()).xsrf ?? ''
const isActive = async (token: string) => (await world.identity.introspect(token)).active
const connected = (id: string, by = createBrowser(world.issuer)) =>
  createFlows(world).code({ person: id, organization: 'acme', scope: 'openid', browser: by })
const sessionOf = async (id: string) =>
  (
    await world.sql.query<{ session: unknown }>(
      "select payload as session from oidc_record where kind = 'Session' and payload ->> 'accountId' = $1",
      [id],
    )
  )[0]?.session
const change = (form: { [name: string]: string }, by = browser) =>
  by.send('/account/password', { form: { present: PASSWORD, password: NEW_PASSWORD, repeated: NEW_PASSWORD, ...form } })

describe('a person', () => {
  test('who is not signed in is sent to sign in first, and nowhere else afterwards', async () => {
    const { email } = await person()
    for (const path of ['/account', '/account/password', '/account/verification'])
      expect((await browser.send(path)).headers.get('location')).toContain(
        `/account/sign-in?to=${encodeURIComponent(path)}`,
      )
    for (const to of ['https://evil.example', '//evil.example', '/account/sign-in', '/oauth/logout']) {
      const form = { action: 'login', email, password: PASSWORD }
      const sent = await browser.send(`/account/sign-in?${new URLSearchParams({ to })}`, { form })
      expect([to, sent.headers.get('location')]).toEqual([to, `${world.issuer}/account`])
    }
  })

  test('reads all pages in their own language', async () => {
    const { email } = await person()
    await signIn(email)
    const { home: own, change: changing, verification } = french.account
    for (const [path, title] of [
      ['/account', own.title],
      ['/account/password', changing.title],
      ['/account/verification', verification.doneTitle],
      ['/account/sign-in', french.signIn.title],
    ] as const) {
      const page = await (await browser.send(path, { headers: { 'accept-language': 'fr' } })).text()
      expect(page).toContain('<html lang="fr">')
      expect(page).toContain(`<h1>${title}</h1>`)
      if (path === '/account/sign-in') expect(page).toContain('href="/account/forgotten?ui_locales=fr"')
    }
  })

  test('reads their own organizations with tier, status and roles, and nothing of other people', async () => {
    const { id, email } = await person()
    const others = await person()
    await signIn(email)
    const home = async (): Promise<string> => (await browser.send('/account')).text()
    expect(await home()).toMatch(/<\/strong> \(acme\)<br><small>reader\.<\/small>/)
    const grant = (role: string, subject: string) =>
      world.sql.query(
        "insert into role_grant (organization_id, grant_id, app, role, subject) values ('acme', $1, 'ledger', $2, $3)",
        [`${role}-${id}`, role, subject],
      )
    await grant('<closer>', `user:${id}`)
    await grant('secret', `user:${others.id}`)
    await world.sql.query("update membership set status = 'suspended' where user_id = $1", [id])
    const page = await home()
    expect(page).toContain('reader, suspended. Roles: ledger/&lt;closer&gt;.')
    expect(page).not.toContain('secret')
    await world.sql.query('delete from membership where user_id = $1', [id])
    expect(await home()).toContain('<h2>Your organizations</h2><p>None.</p>')
  })

  test('changes the password with the present one, which ends everything else, and stays signed in', async () => {
    const { id, email } = await person()
    const other = await connected(id)
    await signIn(email)
    const done = await change({ xsrf: await xsrfOf() })
    expect([done.status, await done.text()]).toEqual([200, expect.stringContaining('Your password is changed')])
    expect(await isActive(other.tokens.access_token)).toBe(false)
    expect(await home()).toContain(email)
    expect((await signIn(email, createBrowser(world.issuer))).status).toBe(400)
    expect((await signIn(email, createBrowser(world.issuer), NEW_PASSWORD)).status).toBe(303)
  })

  test('who changes the password has given no code with it', async () => {
    const { id, email } = await person()
    await signIn(email)
    const page = '/account/authenticator'
    const html = await (await browser.send(page)).text()
    const secret = secretIn(html)
    const code = codeOf(secret, Date.now() + world.time.offsetMs)
    await browser.send(page, { form: { ...hiddenFields(html), action: 'confirm', code } })
    expect(await sessionOf(id)).toMatchObject({ acr: 'mfa' })
    expect((await change({ xsrf: await xsrfOf() })).status).toBe(200)
    expect(await sessionOf(id)).toMatchObject({ acr: 'pwd', amr: ['pwd'] })
    expect((await browser.send(page)).headers.get('location')).toContain('/account/sign-in')
  })

  test.each([
    ['a wrong present password', { present: 'wrong' }, 400],
    ['a known password', { password: 'password123', repeated: 'password123' }, 400],
    ['another repetition', { repeated: 'x' }, 400],
    ['no mark of the form', { xsrf: '' }, 400],
    ['the mark of another session', { xsrf: 'A'.repeat(43) }, 400],
  ])('changes nothing with %s', async (_, form, status) => {
    const { email } = await person()
    await signIn(email)
    expect((await change({ xsrf: await xsrfOf(), ...form })).status).toBe(status)
    expect((await signIn(email, createBrowser(world.issuer))).status).toBe(303)
  })

  test('signs in once more for a change when the sign-in is not recent', async () => {
    const { email } = await person()
    await signIn(email)
    const xsrf = await xsrfOf()
    world.time.offsetMs += HOUR_MS / 2
    const to = (await change({ xsrf })).headers.get('location') ?? ''
    expect(to).toContain('/account/sign-in')
    for (const init of [{}, { form: { action: 'login', email, password: 'wrong' } }])
      expect(await (await browser.send(to, init)).text()).toContain('Nothing was changed yet')
    expect(await (await browser.send('/account/sign-in?to=/account')).text()).not.toContain('Nothing was changed')
    expect((await signIn(email, createBrowser(world.issuer))).status).toBe(303)
  })

  test('ends a connection and another sign-in, on the next call, and none of other people', async () => {
    const [mine, theirs] = [await person(), await person()]
    const [one, foreign] = [await connected(mine.id), await connected(theirs.id)]
    const foreignUid = (await world.identity.record(foreign.tokens.access_token))?.sessionUid ?? ''
    await signIn(mine.email)
    const xsrf = await xsrfOf()
    const end = async (form: { [name: string]: string }) =>
      (await browser.send('/account', { form: { xsrf, ...form } })).status
    expect(await end({ session: foreignUid })).toBe(400)
    expect(await end({ application: 'nothing' })).toBe(400)
    expect(await isActive(foreign.tokens.access_token)).toBe(true)
    expect(await end({ application: 'flows', xsrf: '' })).toBe(400)
    expect(await isActive(one.tokens.access_token)).toBe(true)
    expect(await end({ application: 'flows' })).toBe(200)
    expect([await isActive(one.tokens.access_token), await isActive(foreign.tokens.access_token)]).toEqual([
      false,
      true,
    ])
    const two = await connected(mine.id)
    const uid = (await world.identity.record(two.tokens.access_token))?.sessionUid ?? ''
    expect(await end({ session: uid })).toBe(200)
    expect(await isActive(two.tokens.access_token)).toBe(false)
  })

  test('verifies an address by a link, signed in as its person alone, once', async () => {
    const [mine, theirs] = [await person({ emailVerified: false }), await person()]
    await signIn(mine.email)
    const xsrf = await xsrfOf()
    expect((await browser.send('/account/verification', { form: { xsrf, action: 'send' } })).status).toBe(200)
    await world.identity.mailed()
    const link = mailbox.linkTo(mine.email)
    const stranger = createBrowser(world.issuer)
    await signIn(theirs.email, stranger)
    expect((await open(link, stranger)).status).toBe(400)
    const confirm = (by = browser, mark = xsrf) =>
      by.send('/account/verification', { form: { xsrf: mark, action: 'confirm' } })
    expect((await confirm(stranger, await xsrfOf(stranger))).status).toBe(400)
    expect((await open(link)).status).toBe(200)
    expect(await world.directory.user(mine.id)).toMatchObject({ emailVerified: false })
    expect((await confirm()).status).toBe(200)
    expect(await world.directory.user(mine.id)).toMatchObject({ emailVerified: true })
    // It says what is so, to who opens the link once more too.
    for (const { status, html } of [await open(link), await open('/account/verification')])
      expect([status, html]).toEqual([200, expect.stringContaining('Your address is verified')])
  })
})
