import { beforeEach, describe, expect, test } from 'vitest'
import { codeOf } from '../../../../support/authenticator.ts'
import { type Browser, createBrowser, hiddenFields } from '../../../../support/browser.ts'
import { CONTEXT } from '../../harness.ts'
import { browser, useWorld, world } from '../account/forgetting.ts'
import { added, codesIn, codesLeft, giveCode, mailsTo, PAGE, secretIn, signedIn, signIn } from './own-factors.ts'

useWorld()
// Two seconds into a time step: no test runs into the next one.
beforeEach(() => {
  world.time.offsetMs = 32_000 - (Date.now() % 30_000)
})
const now = () => Date.now() + world.time.offsetMs
const page = async (by: Browser = browser) => (await by.send(PAGE)).text()
const act = async (action: string, by: Browser = browser) =>
  by.send(PAGE, { form: { xsrf: hiddenFields(await page(by)).xsrf ?? '', action } })
const logged = async (id: string) =>
  (
    await world.sql.query<{ change: { kind: string; op: string }; actor: string }>(
      "select change, actor from change_log where organization_id = '#directory' and change ->> 'id' = $1 and change ->> 'kind' <> 'user' order by revision, change ->> 'kind'",
      [id],
    )
  ).map(({ change, actor }) => `${actor} ${change.op} ${change.kind}`)

describe('an own authenticator', () => {
  test('counts once a code of it was given, and not before', async () => {
    const { id, email } = await signedIn()
    const shown = await page()
    expect(await world.identity.console.hasSecondFactor(id)).toBe(false)
    expect(shown).toContain('role="img" aria-label="QR code with the key"')
    expect(shown).toContain(
      `otpauth://totp/${encodeURIComponent(new URL(world.issuer).host)}:${encodeURIComponent(email)}?secret=`,
    )
    const secret = secretIn(shown)
    const wrong = await browser.send(PAGE, { form: { ...hiddenFields(shown), action: 'confirm', code: '000000' } })
    expect(wrong.status).toBe(400)
    const again = await wrong.text()
    expect([secretIn(again), again.includes('role="alert"')]).toEqual([secret, true])
    const done = await browser.send(PAGE, {
      form: { ...hiddenFields(again), action: 'confirm', code: codeOf(secret, now()) },
    })
    expect(done.status).toBe(200)
    expect(new Set(codesIn(await done.text())).size).toBe(10)
    expect(await logged(id)).toEqual([`user:${id} write authenticator`, `user:${id} write recovery_code`])
    await world.identity.mailed()
    expect(mailsTo(email)).toEqual([expect.stringContaining('An authenticator app was added')])
  })

  test('is asked for at the next sign-in, where the code that confirmed it is used up', async () => {
    const { email, secret } = await added()
    const other = createBrowser(world.issuer)
    const asked = await (await signIn(email, other)).text()
    expect((await giveCode(asked, codeOf(secret, now()), other)).status).toBe(400)
    expect((await giveCode(asked, codeOf(secret, now() + 30_000), other)).status).toBe(303)
  })

  test('keeps this browser signed in, as by both', async () => {
    await added()
    expect(await page()).toContain('10 of 10 recovery codes are left')
    expect((await act('renew')).status).toBe(200)
  })

  test('is removed by who signed in with it, which ends every sign-in', async () => {
    const { id, email, secret } = await added()
    const other = createBrowser(world.issuer)
    await giveCode(await (await signIn(email, other)).text(), codeOf(secret, now() + 30_000), other)
    expect((await act('remove')).status).toBe(200)
    expect(await world.identity.console.hasSecondFactor(id)).toBe(false)
    expect((await other.send('/account')).status).toBe(303)
    // Nobody has signed in again, so no session may say so.
    expect((await browser.send('/account')).status).toBe(303)
    expect((await signIn(email)).status).toBe(303)
    expect((await browser.send('/account')).status).toBe(200)
    expect(await world.sql.query('select 1 from recovery_code where user_id = $1', [id])).toEqual([])
    await world.identity.mailed()
    expect(mailsTo(email).at(-1)).toContain('was removed')
    expect((await logged(id)).at(-1)).toBe(`user:${id} delete authenticator`)
  })
})

describe('nothing changes', () => {
  test('for who is not signed in, or not lately, or by password alone', async () => {
    expect((await browser.send(PAGE)).headers.get('location')).toContain('/account/sign-in')
    const { id } = await signedIn()
    const shown = await page()
    world.time.offsetMs += 901_000
    for (const form of [undefined, { ...hiddenFields(shown), action: 'confirm', code: codeOf(secretIn(shown), now()) }])
      expect((await browser.send(PAGE, form && { form })).headers.get('location')).toContain('/account/sign-in')
    expect(await world.identity.console.hasSecondFactor(id)).toBe(false)
    world.time.offsetMs -= 901_000
    await world.identity.secondFactor.enroll(id, CONTEXT)
    for (const action of ['remove', 'renew'])
      expect((await browser.send(PAGE, { form: { ...hiddenFields(shown), action } })).status).toBe(303)
    expect(await world.identity.console.hasSecondFactor(id)).toBe(true)
  })

  test.each([
    ['no mark of the form', { xsrf: '' }],
    ['the mark of nobody', { xsrf: 'A'.repeat(43) }],
    ['no key', { sealed: '' }],
    ['a key that nobody sealed', { sealed: 'v1.AAAA' }],
    ['a code of letters', { code: 'abcdef' }],
  ])('with %s', async (_, wrong) => {
    const { id } = await signedIn()
    const shown = await page()
    const form = { ...hiddenFields(shown), action: 'confirm', code: codeOf(secretIn(shown), now()), ...wrong }
    expect((await browser.send(PAGE, { form })).status).toBe(400)
    expect(await world.identity.console.hasSecondFactor(id)).toBe(false)
  })

  test('from a form of another site', async () => {
    const { id } = await signedIn()
    const shown = await page()
    const form = { ...hiddenFields(shown), action: 'confirm', code: codeOf(secretIn(shown), now()) }
    expect((await browser.send(PAGE, { form, headers: { origin: 'https://evil.example' } })).status).toBe(400)
    expect(await world.identity.console.hasSecondFactor(id)).toBe(false)
  })

  test('with the key that another person, or another browser of the same person, was shown', async () => {
    const thief = await signedIn()
    const planted = hiddenFields(await page()).sealed ?? ''
    const secret = secretIn(await page())
    const victim = await signedIn(createBrowser(world.issuer))
    const own = createBrowser(world.issuer)
    await signIn(thief.email, own)
    for (const [by, id] of [
      [victim.by, victim.id],
      [own, thief.id],
    ] as const) {
      const form = { ...hiddenFields(await page(by)), sealed: planted, action: 'confirm', code: codeOf(secret, now()) }
      expect((await by.send(PAGE, { form })).status).toBe(400)
      expect(await world.identity.console.hasSecondFactor(id)).toBe(false)
    }
  })

  test('for who has an authenticator already: of two at once one counts', async () => {
    const { id } = await signedIn()
    const shown = [await page(), await page()]
    const answers = await Promise.all(
      shown.map((html) =>
        browser.send(PAGE, { form: { ...hiddenFields(html), action: 'confirm', code: codeOf(secretIn(html), now()) } }),
      ),
    )
    const texts = await Promise.all(answers.map((answer) => answer.text()))
    expect(texts.filter((text) => codesIn(text).length === 10)).toHaveLength(1)
    expect(await codesLeft(id)).toBe(10)
  })

  test('for who was deleted meanwhile', async () => {
    const { id } = await signedIn()
    const shown = await page()
    await world.directory.deleteUser(id, CONTEXT)
    const form = { ...hiddenFields(shown), action: 'confirm', code: codeOf(secretIn(shown), now()) }
    expect((await browser.send(PAGE, { form })).status).toBe(303)
  })
})
