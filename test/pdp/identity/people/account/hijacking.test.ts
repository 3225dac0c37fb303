/** An account that somebody prepared for another person, with that person's address, must not stay open to who prepared it. */
import { describe, expect, test } from 'vitest'
import { signIn } from '../factors/own-factors.ts'
import { answer, give, newPasskey, request, stranger } from '../factors/own-passkeys.ts'
import { ask, choose, mailbox, NEW_PASSWORD, open, person, useWorld, world } from './forgetting.ts'

useWorld({ host: 'localhost' })
const linked = (user: string) =>
  world.sql.query("insert into foreign_identity (issuer, subject, user_id) values ('https://o.example', $1, $1)", [
    user,
  ])
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
