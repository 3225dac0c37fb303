/** Mails that tell people that somebody changed how they sign in. */
import { expect, test } from 'vitest'
import { hiddenFields } from '../../../../support/browser.ts'
import { PASSWORD } from '../../harness.ts'
import { ask, browser, choose, mailbox, NEW_PASSWORD, open, person, useWorld, world } from '../account/forgetting.ts'
import { mailsTo } from '../factors/own-factors.ts'

useWorld()
const CHANGED = 'The password of your account at 127.0.0.1'

test('a password that is changed is told to its person, and one that is refused is not', async () => {
  const { email } = await person()
  await browser.send('/account/sign-in', { form: { action: 'login', email, password: PASSWORD } })
  const change = async (present: string): Promise<number> => {
    const fields = hiddenFields(await (await browser.send('/account/password')).text())
    const form = { ...fields, present, password: NEW_PASSWORD, repeated: NEW_PASSWORD }
    const { status } = await browser.send('/account/password', { form })
    await world.identity.mailed()
    return status
  }
  expect(await change('another one')).toBe(400)
  expect(mailsTo(email)).toEqual([])
  expect(await change(PASSWORD)).toBe(200)
  expect(mailsTo(email)).toEqual([expect.stringContaining(CHANGED)])
  expect(mailsTo(email)[0]).not.toContain(NEW_PASSWORD)
})

test('a password that is set by a link of a mail is told to its person', async () => {
  const { email } = await person()
  await ask(email)
  await open(mailbox.linkTo(email))
  expect((await choose(NEW_PASSWORD)).status).toBe(200)
  await world.identity.mailed()
  expect(mailsTo(email).at(-1)).toContain(CHANGED)
})
