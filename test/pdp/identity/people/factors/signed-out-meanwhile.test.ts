/** What people change in their account, and no longer may when it is written: they were signed out while it waited. */
import { hash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { codeOf } from '../../../../support/authenticator.ts'
import { hiddenFields } from '../../../../support/browser.ts'
import { CONTEXT, PASSWORD } from '../../harness.ts'
import { browser, meanwhile, NEW_PASSWORD, person, signedOutMeanwhile, useWorld, world } from '../account/forgetting.ts'
import { added, codesIn, codesLeft, PAGE, secretIn, signIn } from './own-factors.ts'
import { creation, newPasskey, PASSKEYS, stranger, withPasskey } from './own-passkeys.ts'

useWorld({ host: 'localhost' })
const PROVIDERS = '/account/providers'
const PASSWORD_PAGE = '/account/password'

const rows = async (table: string, user: string) =>
  JSON.stringify(await world.sql.query(`select * from ${table} where user_id = $1 order by 1, 2`, [user]))
const xsrf = async (page: string): Promise<{ xsrf: string }> => ({
  xsrf: hiddenFields(await (await browser.send(page)).text()).xsrf ?? '',
})

describe('nothing new opens an account for who was signed out while they added it:', () => {
  test('no passkey', async () => {
    // The first one loads what verifies them.
    await withPasskey(stranger())
    const { id, email } = await person()
    await signIn(email)
    const asked = await creation()
    const form = { ...hiddenFields(asked.html.slice(asked.html.indexOf(' data-passkey='))), name: 'x' }
    const credential = newPasskey().created(asked.options)
    const done = await signedOutMeanwhile(id, () => browser.send(PASSKEYS, { form: { ...form, credential } }))
    expect([done.status, await rows('passkey', id)]).toEqual([400, '[]'])
  })

  test('no authenticator', async () => {
    const { id, email } = await person()
    await signIn(email)
    const html = await (await browser.send(PAGE)).text()
    const code = codeOf(secretIn(html), Date.now() + world.time.offsetMs)
    const form = { ...hiddenFields(html), action: 'confirm', code }
    const done = await signedOutMeanwhile(id, () => browser.send(PAGE, { form }))
    expect([done.status, codesIn(await done.text())]).toEqual([400, []])
    expect(await world.identity.console.hasSecondFactor(id)).toBe(false)
  })

  test('no recovery codes', async () => {
    const { id } = await added()
    const before = await rows('recovery_code', id)
    const form = { ...(await xsrf(PAGE)), action: 'renew' }
    const done = await signedOutMeanwhile(id, () => browser.send(PAGE, { form }))
    expect([codesIn(await done.text()), await rows('recovery_code', id)]).toEqual([[], before])
  })

  test('no password', async () => {
    const { id, email } = await person()
    await signIn(email)
    const form = { ...(await xsrf(PASSWORD_PAGE)), present: PASSWORD, password: NEW_PASSWORD, repeated: NEW_PASSWORD }
    const stored = async () => (await world.directory.userByEmail(email))?.passwordHash
    const before = await stored()
    const done = await signedOutMeanwhile(id, () => browser.send(PASSWORD_PAGE, { form }))
    expect([done.status, await stored()]).toEqual([400, before])
  })
})

describe('nothing is taken from an account by who was signed out while they removed it:', () => {
  test('no authenticator', async () => {
    const { id } = await added()
    const before = await rows('authenticator', id)
    const form = { ...(await xsrf(PAGE)), action: 'remove' }
    await signedOutMeanwhile(id, () => browser.send(PAGE, { form }))
    expect(await rows('authenticator', id)).toBe(before)
  })

  test('no passkey', async () => {
    const { id, passkey } = await withPasskey()
    const before = await rows('passkey', id)
    const form = { ...(await xsrf(PASSKEYS)), remove: passkey.id }
    await signedOutMeanwhile(id, () => browser.send(PASSKEYS, { form }))
    expect([before === '[]', await rows('passkey', id)]).toEqual([false, before])
  })

  test('no connected service', async () => {
    const { id, email } = await person()
    await world.sql.query(
      "insert into foreign_identity (issuer, subject, user_id) values ('https://o.example', $1, $1)",
      [id],
    )
    await signIn(email)
    const before = await rows('foreign_identity', id)
    const identity = hash('sha256', JSON.stringify(['https://o.example', id]), 'base64url')
    const form = { ...(await xsrf(PROVIDERS)), action: 'disconnect', identity }
    await signedOutMeanwhile(id, () => browser.send(PROVIDERS, { form }))
    expect(await rows('foreign_identity', id)).toBe(before)
  })
})

test('who lost the second factor while new recovery codes were made gets none', async () => {
  const { id } = await added()
  const form = { ...(await xsrf(PAGE)), action: 'renew' }
  const done = await meanwhile(
    (tx) => tx.query('delete from authenticator where user_id = $1', [id]),
    () => browser.send(PAGE, { form }),
  )
  expect(codesIn(await done.text())).toEqual([])
})

test('an administrator who adds and one who removes an authenticator leave one, or none, and what was asked for last holds', async () => {
  const { id } = await added()
  await world.identity.secondFactor.remove(id, null, CONTEXT)
  const outcomes = await Promise.allSettled(
    Array.from({ length: 10 }, (_, i) =>
      i % 2 === 0
        ? world.identity.secondFactor.enroll(id, CONTEXT)
        : world.identity.secondFactor.remove(id, null, CONTEXT),
    ),
  )
  const made = outcomes.filter(({ status }, i) => i % 2 === 0 && status === 'fulfilled').length
  const gone = outcomes.filter((one, i) => i % 2 === 1 && one.status === 'fulfilled' && one.value === true).length
  expect(made - gone).toBe(JSON.parse(await rows('authenticator', id)).length)
  expect(await codesLeft(id)).toBe(0)
})
