/** What was begun before a password was set anew, and must not outlive it. */
import { expect, test } from 'vitest'
import { createBrowser } from '../../../../support/browser.ts'
import { createFlow } from '../../flow.ts'
import { CONTEXT, PASSWORD } from '../../harness.ts'
import { ask, browser, choose, mailbox, NEW_PASSWORD, open, person, useWorld, world } from './forgetting.ts'

useWorld()

test('a sign-in that was answered before, and not gone on with, opens no session', async () => {
  const { email } = await person()
  const thief = createBrowser(world.issuer)
  const path = (await thief.send(createFlow(world).authorizeUrl({}))).headers.get('location') ?? ''
  const answered = await thief.send(path, { form: { action: 'login', email, password: PASSWORD } })
  expect(answered.status).toBe(303)
  await ask(email)
  await open(mailbox.linkTo(email))
  expect((await choose(NEW_PASSWORD)).status).toBe(200)
  const resumed = await thief.send(answered.headers.get('location') ?? '')
  expect(resumed.status).toBeGreaterThanOrEqual(400)
  expect((await thief.send('/account')).headers.get('location')).toContain('/account/sign-in')
})

test('a link that was asked for before an administrator signed the person out is no longer good', async () => {
  const { id, email } = await person()
  await ask(email)
  const link = mailbox.linkTo(email)
  await world.identity.sessions.revokeUser(id, CONTEXT)
  expect((await open(link)).status).toBe(400)
})

test('a link that is no longer good does not take the place of one that is', async () => {
  const { email } = await person()
  await ask(email)
  await open(mailbox.linkTo(email))
  await browser.send(`/account/reset?token=${'x'.repeat(43)}`)
  expect((await choose(NEW_PASSWORD)).status).toBe(200)
})
