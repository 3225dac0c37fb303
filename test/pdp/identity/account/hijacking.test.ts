/** An account that somebody prepared for another person, with that person's address, must not stay open to who prepared it. */
import { describe, expect, test } from 'vitest'
import { DIRECTORY } from '../../../../pdp/domain/log.ts'
import { lockLog } from '../../../../pdp/identity/oauth/log-lock.ts'
import { codeOf } from '../../../support/authenticator.ts'
import { hiddenFields } from '../../../support/browser.ts'
import { codesIn, secretIn, signIn } from '../factors/own-factors.ts'
import { answer, creation, give, newPasskey, PASSKEYS, request, stranger } from '../factors/own-passkeys.ts'
import { CONTEXT } from '../harness.ts'
import { ask, browser, choose, mailbox, NEW_PASSWORD, open, person, useWorld, world } from './forgetting.ts'

useWorld({ host: 'localhost' })
const linked = (user: string) =>
  world.sql.query("insert into foreign_identity (issuer, subject, user_id) values ('https://o.example', $1, $1)", [
    user,
  ])
const passkeysOf = async (user: string) =>
  (await world.sql.query('select 1 from passkey where user_id = $1', [user])).length
const mails = (email: string) => mailbox.received.filter(({ to }) => to.includes(email))

describe('an address that nobody has proven', () => {
  test('brings no link to an account that opens by a passkey too, before its owner has verified it', async () => {
    const { email } = await person({ emailVerified: false })
    const thief = stranger()
    await signIn(email, thief)
    const passkey = newPasskey()
    await give(passkey, { by: thief })
    await world.identity.mailed()
    mailbox.received.length = 0
    expect((await ask(email)).status).toBe(200)
    expect(mails(email)).toEqual([])
    const own = stranger()
    const asked = await request(own)
    expect((await answer(own, asked, passkey.signed(asked.options))).status).toBe(303)
  })

  test('brings none to an account that another service opens too', async () => {
    const { id, email } = await person({ emailVerified: false })
    await linked(id)
    await ask(email)
    expect(mails(email)).toEqual([])
  })

  test('brings one to who has nothing but a password, which ends who knew it', async () => {
    const { email } = await person({ emailVerified: false })
    const thief = stranger()
    await signIn(email, thief)
    await ask(email)
    await open(mailbox.linkTo(email))
    expect((await choose(NEW_PASSWORD)).status).toBe(200)
    expect((await thief.send('/account')).status).toBe(303)
    expect((await signIn(email, thief)).status).toBe(400)
  })

  test('makes the link void when the account opens otherwise since', async () => {
    const { id, email } = await person({ emailVerified: false })
    await ask(email)
    await open(mailbox.linkTo(email))
    await linked(id)
    expect((await choose(NEW_PASSWORD)).status).toBe(400)
    expect((await signIn(email, stranger())).status).toBe(303)
  })

  test('that is proven brings the link, whatever opens the account', async () => {
    const { id, email } = await person()
    await linked(id)
    await ask(email)
    await open(mailbox.linkTo(email))
    expect((await choose(NEW_PASSWORD)).status).toBe(200)
  })
})

describe('nothing new opens an account for who was signed out while they added it:', () => {
  /** Ends all sign-ins of the person while a change of theirs waits for the directory. */
  async function meanwhile(user: string, change: () => Promise<Response>): Promise<Response> {
    let changing: Promise<Response> | undefined
    await world.sql.transaction(async (tx) => {
      await lockLog(tx, DIRECTORY)
      changing = change()
      const waiting = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
      await expect.poll(() => world.sql.query(waiting)).toHaveLength(1)
      await world.identity.sessions.endUser(tx, user, CONTEXT)
    })
    if (changing === undefined) throw new TypeError('nothing was changed')
    return changing
  }

  test('no passkey', async () => {
    const { id, email } = await person()
    await signIn(email)
    const asked = await creation()
    const form = { ...hiddenFields(asked.html.slice(asked.html.indexOf(' data-passkey='))), name: 'x' }
    const credential = newPasskey().created(asked.options)
    const done = await meanwhile(id, () => browser.send(PASSKEYS, { form: { ...form, credential } }))
    expect([done.status, await passkeysOf(id)]).toEqual([400, 0])
  })

  test('no authenticator', async () => {
    const { id, email } = await person()
    await signIn(email)
    const html = await (await browser.send('/account/authenticator')).text()
    const code = codeOf(secretIn(html), Date.now() + world.time.offsetMs)
    const form = { ...hiddenFields(html), action: 'confirm', code }
    const done = await meanwhile(id, () => browser.send('/account/authenticator', { form }))
    expect([done.status, codesIn(await done.text())]).toEqual([400, []])
    expect(await world.identity.console.hasSecondFactor(id)).toBe(false)
  })
})
