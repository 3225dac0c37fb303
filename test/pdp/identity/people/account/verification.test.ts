/** Links that prove an address: what happens around them between the mail and the confirmation. */
import { expect, test } from 'vitest'
import { createBrowser, hiddenFields } from '../../../../support/browser.ts'
import { CONTEXT, PASSWORD } from '../../harness.ts'
import { ask, browser, choose, mailbox, NEW_PASSWORD, open, person, useWorld, world } from './forgetting.ts'

useWorld()
const PAGE = '/account/verification'
const signIn = (email: string, by = browser, password = PASSWORD) =>
  by.send('/account/sign-in', { form: { action: 'login', email, password } })
const xsrfOf = async (by = browser) => hiddenFields(await (await by.send('/account/password')).text()).xsrf ?? ''
const press = async (action: string, by = browser): Promise<readonly [number, string | undefined]> => {
  const answer = await by.send(PAGE, { form: { xsrf: await xsrfOf(by), action } })
  return [answer.status, /<h1>(.*?)<\/h1>/.exec(await answer.text())?.[1]]
}
const isVerified = async (id: string) => (await world.directory.user(id))?.emailVerified
/** A person who is signed in, and the link that they were sent. */
async function asked() {
  const one = await person({ emailVerified: false })
  await signIn(one.email)
  expect((await press('send'))[0]).toBe(200)
  await world.identity.mailed()
  return { ...one, link: mailbox.linkTo(one.email) }
}
const GONE = [400, 'This link is no longer good']
const DONE = [200, 'Your address is verified']

test('a confirmation that is sent twice at the same time is done, and says so to both', async () => {
  const { id, link } = await asked()
  await open(link)
  expect(await Promise.all([press('confirm'), press('confirm')])).toEqual([DONE, DONE])
  expect(await isVerified(id)).toBe(true)
  const logged = world.log.filter((line) => line.includes('address_verified') && line.includes(`"${id}"`))
  expect(logged).toHaveLength(1)
})

test('a link is not used up by programs that open the links of mails', async () => {
  const { id, link } = await asked()
  for (const method of ['GET', 'HEAD', 'GET', 'POST']) await fetch(world.issuer + link, { method, redirect: 'follow' })
  expect(await isVerified(id)).toBe(false)
  await open(link)
  expect(await press('confirm')).toEqual(DONE)
})

test('an address that changed since the mail is not proven, nor is the former one', async () => {
  const { id, email, link } = await asked()
  await open(link)
  const user = { id, email: `new-${email}`, emailVerified: false, name: null }
  await world.directory.putUser(user, CONTEXT)
  expect(await press('confirm')).toEqual(GONE)
  expect(await isVerified(id)).toBe(false)
})

test('a link is good in another browser for its person alone', async () => {
  const { id, email, link } = await asked()
  const [own, strange] = [createBrowser(world.issuer), createBrowser(world.issuer)]
  const stranger = await person({ emailVerified: false })
  await signIn(stranger.email, strange)
  await open(link, strange)
  expect(await press('confirm', strange)).toEqual(GONE)
  expect([await isVerified(id), await isVerified(stranger.id)]).toEqual([false, false])
  await signIn(email, own)
  await open(link, own)
  expect(await press('confirm', own)).toEqual(DONE)
})

test('a link outlives a password that is set anew, and asks for the new one', async () => {
  const { id, email, link } = await asked()
  await ask(email)
  await open(mailbox.linkTo(email))
  expect((await choose(NEW_PASSWORD)).status).toBe(200)
  expect((await open(link)).url).toContain(PAGE)
  expect((await browser.send(PAGE)).headers.get('location')).toContain('/account/sign-in')
  await signIn(email, browser, NEW_PASSWORD)
  expect(await press('confirm')).toEqual(DONE)
  expect(await isVerified(id)).toBe(true)
})

test('links of a person who was shut out do nothing', async () => {
  const { id, email, link } = await asked()
  await ask(email)
  const reset = mailbox.linkTo(email)
  await world.identity.sessions.revokeUser(id, CONTEXT)
  await world.sql.query("update user_account set signed_out_at = 'infinity' where user_id = $1", [id])
  expect((await open(reset)).status).toBe(400)
  await open(link)
  const answer = await browser.send(PAGE, { form: { action: 'confirm' } })
  expect(answer.headers.get('location')).toContain('/account/sign-in')
  await signIn(email)
  expect((await browser.send(PAGE)).headers.get('location')).toContain('/account/sign-in')
  expect(await isVerified(id)).toBe(false)
})

test('a mail for a forgotten password is counted for its person, however the address is spelled', async () => {
  const { email } = await person()
  const spellings = [
    ...[email.toUpperCase(), email.replace('x', 'X'), ` ${email}`, `${email} `, `"${email.replace('@', '"@')}`],
    ...[email.replace('@', '+1@'), email.replace('@', '(a comment)@'), `${email}\r\nBcc: evil@x.example`],
    ...[email.replace('@', '＠'), email.replace('x.example', 'x。example'), `Eve <${email}>`, email],
  ]
  for (const spelling of spellings) await ask(spelling, createBrowser(world.issuer))
  for (const spelling of spellings) await ask(spelling.toUpperCase(), createBrowser(world.issuer))
  expect(mailbox.received.length).toBeLessThanOrEqual(5)
  expect(new Set(mailbox.received.flatMap(({ to }) => to))).toEqual(new Set([email]))
  expect(mailbox.received.map(({ raw }) => raw).join('\n')).not.toMatch(/^bcc:/im)
})
