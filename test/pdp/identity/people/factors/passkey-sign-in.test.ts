import { describe, expect, test } from 'vitest'
import { type Browser, hiddenFields } from '../../../../support/browser.ts'
import { createFlow } from '../../flow.ts'
import { CONTEXT, decode, PASSWORD } from '../../harness.ts'
import { useWorld, world } from '../account/forgetting.ts'
import { signedIn } from './own-factors.ts'
import {
  type Asked,
  answer,
  askedBy,
  formFields,
  give,
  newPasskey,
  request,
  requestSecond,
  SIGN_IN,
  stranger,
  withPasskey,
} from './own-passkeys.ts'
import type { Wrong } from './test-passkey.ts'

useWorld({ host: 'localhost' })
/** What an authenticator says of a person who was there, verified or not. */
const UNVERIFIED = 1
const isIn = async (by: Browser) => (await by.send('/account')).status === 200

/** Starts a sign-in for an application; the address of its page. */
async function atInteraction(by: Browser, parameters: { [name: string]: string } = {}): Promise<string> {
  return (await by.send(createFlow(world).authorizeUrl(parameters))).headers.get('location') ?? ''
}
async function idToken(by: Browser, answered: Response) {
  const flow = createFlow(world)
  const end = await by.follow(answered.headers.get('location') ?? '', () => ({ action: 'continue' }))
  const { body } = await flow.redeem(end.searchParams.get('code') ?? '')
  return decode(String(body.id_token)).payload
}

describe('without a password', () => {
  test('a passkey signs in, counts as two factors, and the account says when it was used', async () => {
    const { id, email, passkey } = await withPasskey()
    const by = stranger()
    const asked = await request(by)
    expect(asked.options).toMatchObject({ rpId: 'localhost', allowCredentials: [], userVerification: 'required' })
    expect((await answer(by, asked, passkey.signed(asked.options))).status).toBe(303)
    expect(await (await by.send('/account')).text()).toContain(email)
    expect(await (await by.send('/account/passkeys')).text()).toContain('Last used')
    expect(world.log.at(-1)).toContain(`"user":"${id}"`)
  })

  test('a passkey signs in to an application, and the token says how', async () => {
    const { id, passkey } = await withPasskey()
    const by = stranger()
    const path = await atInteraction(by, { acr_values: 'mfa' })
    const asked = await request(by, path)
    const answered = await answer(by, asked, passkey.signed(asked.options), path)
    expect(answered.status).toBe(303)
    expect(await idToken(by, answered)).toMatchObject({ sub: id, acr: 'mfa', amr: ['hwk', 'user', 'mfa'] })
  })

  test.each([
    ['the page of the account', async () => SIGN_IN],
    ['the page of an application', (by: Browser) => atInteraction(by)],
  ])('a passkey that the browser fills in on %s signs in', async (_, open) => {
    const { passkey } = await withPasskey()
    const by = stranger()
    const path = await open(by)
    const asked = askedBy(await (await by.send(path)).text())
    expect(asked.html).toContain('autocomplete="username webauthn"')
    expect(asked.options).toMatchObject({ allowCredentials: [], userVerification: 'required' })
    expect((await answer(by, asked, passkey.signed(asked.options), path)).status).toBe(303)
    // It is good once, and in this browser.
    const other = stranger()
    const again = await answer(other, asked, passkey.signed(asked.options), SIGN_IN)
    expect([again.status, await isIn(other)]).toEqual([400, false])
  })

  test('a passkey signs in on the page for requests of applications', async () => {
    const { email, passkey } = await withPasskey()
    const by = stranger()
    const asked = await request(by, '/oauth/approve')
    const shown = await answer(by, asked, passkey.signed(asked.options), '/oauth/approve')
    expect(await shown.text()).toContain(email)
  })

  test('a passkey that the browser fills in signs in on that page, too', async () => {
    const { email, passkey } = await withPasskey()
    const by = stranger()
    const asked = askedBy(await (await by.send('/oauth/approve')).text())
    expect(asked.html).toContain('autocomplete="username webauthn"')
    const shown = await answer(by, asked, passkey.signed(asked.options), '/oauth/approve')
    expect(await shown.text()).toContain(email)
  })

  test('nobody learns who has a passkey: everybody is asked for the same', async () => {
    await withPasskey()
    const { options, html } = await request(stranger())
    const { challenge, ...others } = options
    expect(others).toEqual({ rpId: 'localhost', timeout: 300_000, allowCredentials: [], userVerification: 'required' })
    expect(html).not.toContain('recovery')
    expect(challenge).toMatch(/^[\w-]{43}$/)
  })

  test.each<[string, Wrong]>([
    ['from another origin', { origin: 'http://evil.example' }],
    ['for another host', { rpId: 'evil.example' }],
    ['for a made-up challenge', { challenge: 'A'.repeat(43) }],
    ['of the wrong kind', { type: 'webauthn.create' }],
    ['in a frame of another site', { crossOrigin: true }],
    ['without that the person was verified', { flags: UNVERIFIED }],
    ['without anybody there', { flags: 0 }],
    ['as one that can be copied, which it could not be before', { flags: 13 }],
    ['with authenticator data that was changed', { tampered: true }],
    ['without the name of its owner', { userHandle: null }],
    ['under the name of another owner', { userHandle: 'A'.repeat(43) }],
    ['under an empty name', { userHandle: '' }],
    ['under an unknown credential', { id: 'AAAA' }],
  ])('a passkey that is used %s is refused', async (_, wrong) => {
    const { passkey } = await withPasskey()
    const by = stranger()
    const asked = await request(by)
    const refused = await answer(by, asked, passkey.signed(asked.options, wrong))
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('This passkey is not right')])
    expect(await isIn(by)).toBe(false)
  })

  test('a passkey of somebody else under the name of the victim is refused', async () => {
    const victim = await withPasskey()
    const thief = await withPasskey(stranger())
    const handle = async (id: string) =>
      (await world.sql.query<{ handle: string }>('select handle from passkey_owner where user_id = $1', [id]))[0]
        ?.handle
    const by = stranger()
    for (const wrong of [
      { userHandle: (await handle(victim.id)) ?? '' },
      { userHandle: (await handle(victim.id)) ?? '', id: victim.passkey.id },
      { id: victim.passkey.id },
    ]) {
      const asked = await request(by)
      expect((await answer(by, asked, thief.passkey.signed(asked.options, wrong))).status).toBe(400)
    }
    expect(await isIn(by)).toBe(false)
  })

  test('an answer is good once, for minutes, in its own browser and on its own page', async () => {
    const { passkey } = await withPasskey()
    const [by, other] = [stranger(), stranger()]
    const asked = await request(by)
    const credential = passkey.signed(asked.options)
    const path = await atInteraction(by)
    expect((await answer(other, await request(other), credential)).status).toBe(400)
    expect((await answer(by, await request(by, path), credential, path)).status).toBe(400)
    expect((await answer(by, await request(by, '/oauth/approve'), credential, '/oauth/approve')).status).toBe(400)
    world.time.offsetMs = 301_000
    expect((await answer(by, asked, credential)).status).toBe(400)
    world.time.offsetMs = 0
    expect((await answer(by, asked, credential)).status).toBe(303)
    expect((await answer(by, asked, credential)).status).toBe(400)
  })

  test('of several that give the same answer at once one is signed in', async () => {
    const { passkey } = await withPasskey()
    const by = stranger()
    const asked = await request(by)
    const credential = passkey.signed(asked.options)
    const answers = await Promise.all(Array.from({ length: 8 }, () => answer(by, asked, credential)))
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1)
  })

  test('a count that does not go up is of a copied key: it is refused, and logged', async () => {
    const { id, passkey } = await withPasskey()
    const use = async (counter: number) => {
      passkey.counter = counter
      const by = stranger()
      const asked = await request(by)
      return (await answer(by, asked, passkey.signed(asked.options))).status
    }
    expect([await use(0), await use(5), await use(5), await use(4), await use(0), await use(6)]).toEqual([
      ...[303, 303, 400, 400, 400, 303],
    ])
    const entries = world.log.filter((line) => line.includes('passkey_counter_went_back') && line.includes(`"${id}"`))
    expect(entries).toHaveLength(3)
  })

  test('an answer of somebody who cannot sign says nothing about the count', async () => {
    const { id, passkey } = await withPasskey()
    passkey.counter = 9
    const by = stranger()
    const asked = await request(by)
    expect((await answer(by, asked, passkey.signed(asked.options, { tampered: true }))).status).toBe(400)
    expect(world.log.some((line) => line.includes('went_back') && line.includes(`"${id}"`))).toBe(false)
  })

  test('who was blocked or deleted is not let in, also when the answer was on its way', async () => {
    for (const end of [
      (id: string) => world.sql.query("update user_account set signed_out_at = 'infinity' where user_id = $1", [id]),
      (id: string) => world.directory.deleteUser(id, CONTEXT),
    ]) {
      const { id, passkey } = await withPasskey(stranger())
      const by = stranger()
      const asked = await request(by)
      const credential = passkey.signed(asked.options)
      await end(id)
      expect((await answer(by, asked, credential)).status).toBe(400)
      expect(await isIn(by)).toBe(false)
    }
  })

  test('an answer from a form of another site is not taken', async () => {
    const { passkey } = await withPasskey()
    const by = stranger()
    const asked = await request(by)
    const form = { ...formFields(asked.html), credential: passkey.signed(asked.options) }
    const headers = { origin: 'https://evil.example' }
    expect((await by.send('/account/sign-in', { form, headers })).status).toBe(400)
    expect(await isIn(by)).toBe(false)
  })

  test('and without a script, the page says what is missing and leads back to the password', async () => {
    const by = stranger()
    const { html } = await request(by)
    expect(html).toMatch(/<noscript><p role="alert">Passkeys need JavaScript/)
    expect((await by.send('/account/sign-in', { form: formFields(html) })).status).toBe(400)
    expect(await (await by.send('/account/sign-in', { form: { action: 'switch' } })).text()).toContain(
      'name="password"',
    )
  })
})

describe('after the password', () => {
  test('the passkey of who has nothing else is asked for, and the token says how', async () => {
    const { id, email, passkey } = await withPasskey()
    const by = stranger()
    const path = await atInteraction(by)
    const asked = await requestSecond(by, email, path)
    expect(asked.options).toMatchObject({ userVerification: 'preferred', allowCredentials: [{ id: passkey.id }] })
    // The password is one factor, so a touch is enough for the other.
    const answered = await answer(
      by,
      asked,
      passkey.signed(asked.options, { flags: UNVERIFIED, userHandle: null }),
      path,
    )
    expect(await idToken(by, answered)).toMatchObject({ sub: id, acr: 'mfa', amr: ['pwd', 'hwk', 'user', 'mfa'] })
  })

  test('who has an app too chooses', async () => {
    const { id, email, passkey } = await withPasskey()
    await world.identity.secondFactor.enroll(id, CONTEXT)
    const by = stranger()
    const send = async (fields: { [name: string]: string }) =>
      (await by.send('/account/sign-in', { form: fields })).text()
    const code = await send({ action: 'login', email, password: PASSWORD })
    expect(code).toContain('Enter your code')
    const asked = askedBy(await send({ ...hiddenFields(code), action: 'passkey' }))
    expect(asked.options.allowCredentials).toMatchObject([{ id: passkey.id }])
    expect(
      await send({ ...hiddenFields(asked.html.slice(asked.html.indexOf('data-step="other"'))), action: 'app' }),
    ).toContain('Enter your code')
    expect((await answer(by, asked, passkey.signed(asked.options))).status).toBe(303)
  })

  test('a recovery code is taken instead', async () => {
    const { email, codes } = await withPasskey()
    const by = stranger()
    const asked = await requestSecond(by, email)
    const form = { ...formFields(asked.html), action: 'code', code: 'AAAA-AAAA-AAAA-AAAA' }
    const refused = await by.send('/account/sign-in', { form })
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('recovery code is not right')])
    const used = await by.send('/account/sign-in', { form: { ...form, code: codes[0] ?? '' } })
    expect(await used.text()).toContain('9 of 10 are left')
  })

  test('the passkey of another person, or an answer without the password, lets nobody in', async () => {
    const victim = await withPasskey()
    const thief = await withPasskey(stranger())
    const by = stranger()
    const asked = await requestSecond(by, victim.email)
    for (const wrong of [{}, { userHandle: null }, { id: victim.passkey.id }])
      expect((await answer(by, asked, thief.passkey.signed(asked.options, wrong))).status).toBe(400)
    const unverified = victim.passkey.signed(asked.options, { flags: UNVERIFIED })
    for (const fields of [
      { action: 'passkey_answer' },
      { action: 'passkey_answer', second: 'yes' },
      { action: 'passkey_answer', second: 'yes', password_accepted: 'v1.AAAA' },
    ]) {
      const form = { ...fields, credential: unverified }
      expect((await by.send('/account/sign-in', { form })).status).not.toBe(303)
    }
    expect(await isIn(by)).toBe(false)
  })

  test('an answer for one person is not good for another whose password was given as well', async () => {
    const [one, two] = [await withPasskey(stranger()), await withPasskey(stranger())]
    const by = stranger()
    const first = await requestSecond(by, one.email)
    const second = await requestSecond(by, two.email)
    const mixed: Asked = { html: first.html, options: second.options }
    expect((await answer(by, mixed, one.passkey.signed(second.options))).status).toBe(400)
  })

  test('it is asked for when an application wants more than a password', async () => {
    const by = stranger()
    const { passkey } = await withPasskey(by)
    // Signed in by password alone, before there was a passkey.
    const early = stranger()
    const { id, email } = await signedIn(early)
    const own = newPasskey()
    await signInElsewhere(email, own)
    const path = await atInteraction(early, { acr_values: 'mfa' })
    const asked = askedBy(await (await early.send(path)).text())
    expect(asked.options.allowCredentials).toMatchObject([{ id: own.id }])
    expect((await answer(early, asked, passkey.signed(asked.options), path)).status).toBe(400)
    const again = askedBy(await (await early.send(path)).text())
    const answered = await answer(early, again, own.signed(again.options), path)
    expect(await idToken(early, answered)).toMatchObject({ sub: id, acr: 'mfa' })
  })
})

/** Adds the passkey in another browser of the same person. */
async function signInElsewhere(email: string, passkey: ReturnType<typeof newPasskey>): Promise<void> {
  const by = stranger()
  await by.send('/account/sign-in', { form: { action: 'login', email, password: PASSWORD } })
  expect((await give(passkey, { by })).status).toBe(200)
}
