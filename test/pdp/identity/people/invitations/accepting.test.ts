import { describe, expect, test } from 'vitest'
import { numberEvents } from '../../../../../pdp/engine/store/number-events.ts'
import { createBrowser } from '../../../../support/browser.ts'
import { cheapHash } from '../../../../support/passwords/cheap-hash.ts'
import { CONTEXT, PASSWORD } from '../../harness.ts'
import {
  browser,
  chosen,
  grantsOf,
  invite,
  membership,
  newAddress,
  open,
  PAGE,
  person,
  press,
  signIn,
  useWorld,
  world,
} from './world.ts'

useWorld()
const APPROVER = { app: 'invoices', role: 'approver' }
const GOOD_PASSWORD = 'a battery of new staples'
const eventsOf = async () => {
  await numberEvents(world.sql)
  const rows = await world.sql.query<{ payload: { change: string } }>(
    `select payload from outbox where type = 'invitation.changed' order by seq`,
  )
  return rows.map(({ payload }) => payload)
}

describe('a person who has an account', () => {
  test('sees who invites to what, and is a member at one click', async () => {
    const { id, email } = await person({ emailVerified: false })
    const link = await invite(email, { roles: [APPROVER] })
    const sent = await open(link)
    expect(sent.location).toContain('/account/sign-in')
    expect((await signIn(email)).headers.get('location')).toBe(world.issuer + PAGE)
    const page = await (await browser.send(PAGE)).text()
    for (const text of ['Human &#60;Resources&#62;', 'Acme &#38; Co', 'developer', 'Approver (invoices)', email])
      expect(page.replaceAll('&lt;', '&#60;').replaceAll('&gt;', '&#62;').replaceAll('&amp;', '&#38;')).toContain(text)
    expect(await membership(id)).toBeNull()
    const done = await press('accept')
    expect([done.status, done.html]).toEqual([200, expect.stringContaining('You belong to it now')])
    expect(await membership(id)).toEqual({ role: 'developer', status: 'active' })
    expect(await grantsOf(id)).toEqual([APPROVER])
    // The mail came to this address, so it is proven.
    expect(await world.directory.user(id)).toMatchObject({ emailVerified: true })
    expect((await open(link)).status).toBe(400)
    const changes = await world.sql.query<{ change: { kind: string; op?: string } }>(
      `select change, actor from change_log where actor = $1 and organization_id = 'acme' order by revision, seq`,
      [`user:${id}`],
    )
    expect(changes.map(({ change }) => [change.kind, change.op])).toEqual([
      ['invitation', 'delete'],
      ['membership', undefined],
      ['role_grant', 'write'],
    ])
    expect((await eventsOf()).slice(-2)).toMatchObject([
      { change: 'created', user: null },
      { change: 'accepted', user: id },
    ])
  })

  test('declines, and the link is spent', async () => {
    const { id, email } = await person()
    const link = await invite(email)
    await open(link)
    await signIn(email)
    expect((await press('decline')).html).toContain('You declined')
    expect(await membership(id)).toBeNull()
    expect((await open(link)).status).toBe(400)
    expect((await eventsOf()).at(-1)).toMatchObject({ change: 'declined', user: id })
  })

  test('is asked "not you?" in a browser of somebody else, who can neither accept nor decline', async () => {
    const [mine, theirs] = [await person(), await person()]
    const link = await invite(mine.email)
    await signIn(theirs.email)
    const page = await open(link)
    expect([page.status, page.html]).toEqual([400, expect.stringContaining('for another account')])
    const xsrf = /name="xsrf" value="([^"]+)"/.exec(await (await browser.send('/account/password')).text())?.[1] ?? ''
    for (const action of ['accept', 'decline'] as const) expect((await press(action, { xsrf })).status).toBe(400)
    expect([await membership(mine.id), await membership(theirs.id)]).toEqual([null, null])
    // The same browser, after signing in as the right person.
    await signIn(mine.email)
    expect((await press('accept')).status).toBe(200)
    expect(await membership(mine.id)).toMatchObject({ status: 'active' })
  })

  test.each([
    ['without the mark of the form', { xsrf: '' }, {}],
    ['with the mark of another session', { xsrf: 'A'.repeat(43) }, {}],
  ])('does not accept %s', async (_, form) => {
    const { id, email } = await person()
    await open(await invite(email))
    await signIn(email)
    expect((await press('accept', form)).status).toBe(400)
    expect(await membership(id)).toBeNull()
  })

  test('does not accept from the page of another site', async () => {
    const { id, email } = await person()
    await open(await invite(email))
    await signIn(email)
    const xsrf = /name="xsrf" value="([^"]+)"/.exec(await (await browser.send(PAGE)).text())?.[1] ?? ''
    const form = { xsrf, action: 'accept' }
    expect((await browser.send(PAGE, { form, headers: { origin: 'https://evil.example' } })).status).toBe(400)
    expect(await membership(id)).toBeNull()
  })

  test('is let in once of 8 clicks at the same time', async () => {
    const { id, email } = await person()
    await open(await invite(email))
    await signIn(email)
    const statuses = (await Promise.all(Array.from({ length: 8 }, () => press('accept')))).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
    expect(await membership(id)).toEqual({ role: 'developer', status: 'active' })
  })

  test('turns a membership that waits for consent into an active one', async () => {
    const { id, email } = await person()
    const change = { kind: 'membership', user: id, membership: { role: 'viewer', status: 'invited' } } as const
    await world.store.write('acme', [change], { context: CONTEXT })
    await open(await invite(email))
    await signIn(email)
    expect((await press('accept')).status).toBe(200)
    expect(await membership(id)).toEqual({ role: 'developer', status: 'active' })
  })
})

describe('a person without an account', () => {
  test('makes one, whose address is proven, and is signed in', async () => {
    const email = newAddress()
    const page = await open(await invite(email, { roles: [APPROVER] }))
    expect([page.status, page.html]).toEqual([200, expect.stringContaining('no account with this address yet')])
    const done = await press('accept', chosen(GOOD_PASSWORD))
    expect([done.status, done.html]).toEqual([200, expect.stringContaining('You belong to it now')])
    const made = await world.directory.userByEmail(email)
    expect(made).toMatchObject({ email, emailVerified: true, name: 'New Person' })
    expect(await membership(made?.id ?? '')).toEqual({ role: 'developer', status: 'active' })
    expect(await grantsOf(made?.id ?? '')).toEqual([APPROVER])
    expect(await (await browser.send('/account')).text()).toContain(email)
    expect((await signIn(email, createBrowser(world.issuer), GOOD_PASSWORD)).status).toBe(303)
  })

  test.each([
    ['a short password', chosen('short')],
    ['a known password', chosen('password123')],
    ['the address as the password', (email: string) => chosen(email)],
    ['two different passwords', chosen(GOOD_PASSWORD, 'another')],
    ['no password', chosen('')],
  ])('makes none with %s, and can try again', async (_, form) => {
    const email = newAddress()
    await open(await invite(email))
    const again = await press('accept', typeof form === 'function' ? form(email) : form)
    expect([again.status, again.html]).toEqual([400, expect.stringContaining('role="alert"')])
    expect(await world.directory.userByEmail(email)).toBeNull()
    expect((await press('accept', chosen(GOOD_PASSWORD))).status).toBe(200)
  })

  test('is one account of 6 that are made at the same time', async () => {
    const email = newAddress()
    await open(await invite(email))
    const tries = Array.from({ length: 6 }, (_, i) => press('accept', chosen(`${GOOD_PASSWORD} ${i}`)))
    const statuses = (await Promise.all(tries)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
  })

  test('takes over the browser of whom is signed in there, as the page says before', async () => {
    const [email, other] = [newAddress(), await person()]
    await signIn(other.email)
    const page = await open(await invite(email))
    expect(page.html).toContain('That sign-in ends when you make the account')
    await press('accept', chosen(GOOD_PASSWORD))
    expect(await (await browser.send('/account')).text()).toContain(email)
    expect(await membership(other.id)).toBeNull()
  })

  test('declines without making one', async () => {
    const email = newAddress()
    await open(await invite(email))
    expect((await press('decline')).html).toContain('You declined')
    expect(await world.directory.userByEmail(email)).toBeNull()
    expect((await press('accept', chosen(GOOD_PASSWORD))).status).toBe(400)
  })

  test('signs in instead when the address has an account by now', async () => {
    const email = newAddress()
    const link = await invite(email)
    await open(link)
    const user = { id: email.replace('@', '.'), email, emailVerified: false, name: null }
    await world.directory.putUser({ ...user, passwordHash: cheapHash(PASSWORD) }, CONTEXT)
    const { passwordHash } = (await world.directory.userByEmail(email)) ?? {}
    expect((await press('accept', chosen(GOOD_PASSWORD))).location).toContain('/account/sign-in')
    expect(await membership(user.id)).toBeNull()
    expect(await world.directory.userByEmail(email)).toMatchObject({ passwordHash })
  })
})

describe('a person whose address somebody has put into the directory, and whom nothing lets in yet,', () => {
  async function unopened(more: { emailVerified?: boolean } = {}): Promise<{ id: string; email: string }> {
    const email = newAddress()
    const id = `beta~${email.replace('@', '.')}`
    await world.directory.putUser(
      { id, email, emailVerified: false, name: 'By the directory', passwordHash: null, ...more },
      CONTEXT,
    )
    return { id, email }
  }

  test('gets that account by the mail, with a first password, and belongs to both', async () => {
    const { id, email } = await unopened()
    const page = await open(await invite(email))
    expect([page.status, page.html]).toEqual([200, expect.stringContaining('New password')])
    const done = await press('accept', chosen(GOOD_PASSWORD))
    expect([done.status, done.html]).toEqual([200, expect.stringContaining('You belong to it now')])
    expect(await world.directory.userByEmail(email)).toMatchObject({
      id,
      emailVerified: true,
      name: 'By the directory',
    })
    expect(await membership(id)).toEqual({ role: 'developer', status: 'active' })
    expect((await signIn(email, createBrowser(world.issuer), GOOD_PASSWORD)).status).toBe(303)
  })

  test.each([
    ['a proven address', { emailVerified: true }, null],
    [
      'a passkey',
      {},
      "insert into passkey (credential_id, user_id, name, public_key, counter, synced, transports) values ($1, $1, 'x', '{}', 0, false, '{}')",
    ],
    [
      'a connected service',
      {},
      "insert into foreign_identity (issuer, subject, user_id) values ('https://o.example', $1, $1)",
    ],
    ['a directory that shuts it', {}, "update user_account set signed_out_at = 'infinity' where user_id = $1"],
  ])('does not get one with %s, not even if it came after the page', async (_what, more, statement) => {
    for (const when of ['before', 'after']) {
      const { id, email } = await unopened(when === 'before' ? more : {})
      const link = await invite(email)
      const change = async () => {
        if (statement !== null) await world.sql.query(statement, [id])
        else await world.sql.query('update user_account set email_verified = true where user_id = $1', [id])
      }
      if (when === 'before') await change()
      await open(link)
      if (when === 'after') await change()
      await press('accept', chosen(GOOD_PASSWORD))
      expect([when, await membership(id), await passwordOf(id)]).toEqual([when, null, null])
    }
  })

  test('gets it once of 6 clicks at the same time, with one of the passwords', async () => {
    const { id, email } = await unopened()
    await open(await invite(email))
    const passwords = Array.from({ length: 6 }, (_, i) => `${GOOD_PASSWORD} ${i}`)
    const done = await Promise.all(passwords.map((password) => press('accept', chosen(password))))
    const right = passwords.filter((_, i) => done[i]?.status === 200)
    expect(right).toHaveLength(1)
    expect((await signIn(email, createBrowser(world.issuer), right[0])).status).toBe(303)
    expect(await world.directory.user(id)).toMatchObject({ email, emailVerified: true })
  })
})

const passwordOf = async (id: string): Promise<string | null> => {
  const [row] = await world.sql.query<{ hash: string | null }>(
    'select password_hash as hash from user_account where user_id = $1',
    [id],
  )
  return row?.hash ?? null
}
