import { describe, expect, test } from 'vitest'
import { CONTEXT } from '../../harness.ts'
import { browser, useWorld, world } from '../account/forgetting.ts'
import { codesIn, codesLeft, mailsTo, signedIn, signIn } from './own-factors.ts'
import {
  answer,
  creation,
  formFields,
  give,
  newPasskey,
  PASSKEYS,
  request,
  requestSecond,
  stranger,
  withPasskey,
} from './own-passkeys.ts'

useWorld({ host: 'localhost' })
const count = async (user: string): Promise<number> =>
  (await world.sql.query('select 1 from passkey where user_id = $1', [user])).length

describe('a new passkey', () => {
  test('is asked for in the name of the issuer, under a name that tells nobody who it is', async () => {
    const { id, email } = await signedIn()
    const { options } = await creation()
    const { user } = options
    expect(options).toMatchObject({ rp: { id: 'localhost' }, user: { name: email }, excludeCredentials: [] })
    expect(Buffer.from(user?.id ?? '', 'base64url')).toHaveLength(32)
    expect(Buffer.from(user?.id ?? '', 'base64url').toString()).not.toContain(id)
    expect((await creation()).options.user?.id).toBe(user?.id)
    expect((await creation()).options.challenge).not.toBe(options.challenge)
  })

  test('is listed by its name, brings recovery codes, a mail and an entry in the log, and counts from then on', async () => {
    const { id, email, passkey, codes } = await withPasskey()
    expect(codes).toHaveLength(10)
    const html = await (await browser.send(PASSKEYS)).text()
    expect(html).toContain('<strong>Laptop</strong>')
    expect(html).toContain('Never used')
    expect((await creation()).options.excludeCredentials).toMatchObject([{ id: passkey.id }])
    expect(await (await signIn(email, stranger())).text()).toContain('Use your passkey')
    await world.identity.mailed()
    expect(mailsTo(email)).toEqual([expect.stringContaining('A passkey was added')])
    const entries = await world.sql.query<{ kind: string }>(
      "select change ->> 'kind' as kind from change_log where change ->> 'id' = $1 and actor = $2 order by kind",
      [id, `user:${id}`],
    )
    expect(entries.map(({ kind }) => kind)).toEqual(['passkey', 'recovery_code'])
  })

  test('lets who has nothing else make new recovery codes', async () => {
    const { codes } = await withPasskey()
    const html = await (await browser.send(PASSKEYS)).text()
    expect(html).toContain('10 of 10 recovery codes are left')
    const form = { xsrf: formFields(html).xsrf ?? '', action: 'renew' }
    const renewed = codesIn(await (await browser.send('/account/authenticator', { form })).text())
    expect([renewed.length, renewed.includes(codes[0] ?? '')]).toEqual([10, false])
  })

  test('brings no codes to who has some', async () => {
    const { id } = await withPasskey()
    expect(await (await give(newPasskey())).text()).toContain('The passkey is added')
    expect([await count(id), await codesLeft(id)]).toEqual([2, 10])
  })

  test('may be named with markup, which is shown as text', async () => {
    await signedIn()
    await give(newPasskey(), { form: { name: `"><script>x</script>\u0000` } })
    expect(await (await browser.send(PASSKEYS)).text()).toContain(
      '<strong>&quot;&gt;&lt;script&gt;x&lt;/script&gt;</strong>',
    )
  })

  test('is one of twenty at most', async () => {
    const { id } = await withPasskey()
    await world.sql.query(
      `insert into passkey (credential_id, user_id, name, public_key, counter, synced, transports)
       select 'k' || n || $1, $1, 'x', 'x', 0, false, '{}' from generate_series(1, 18) n`,
      [id],
    )
    const asked = await creation()
    const other = await creation()
    expect((await give(newPasskey(), { asked })).status).toBe(200)
    expect((await give(newPasskey(), { asked: other })).status).toBe(400)
    expect(await count(id)).toBe(20)
    expect(await (await browser.send(PASSKEYS)).text()).toContain('as many passkeys as are possible')
  })

  test.each([
    ['for another origin', { origin: 'http://evil.example' }],
    ['for another port of this host', { origin: 'http://localhost:1' }],
    ['for another host', { rpId: 'evil.example' }],
    ['with a made-up challenge', { challenge: 'A'.repeat(43) }],
    ['of the wrong kind', { type: 'webauthn.get' }],
    ['made in a frame of another site', { crossOrigin: true }],
    ['made without anybody there', { flags: 0 }],
    ['with an algorithm that was not offered', { alg: -39 }],
    ['with a post-quantum algorithm', { alg: -48 }],
    ['with an unknown attestation', { format: 'mine' }],
    ['under the name of another one', { id: 'AAAA' }],
  ])('%s is refused', async (_, wrong) => {
    const { id } = await signedIn()
    const refused = await give(newPasskey(), { wrong })
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('No passkey was added')])
    expect(await count(id)).toBe(0)
  })

  test.each([
    '',
    'x',
    '{}',
    'null',
    '{"id":1}',
    '{"id":"a","response":{"clientDataJSON":7}}',
    `{"id":"${'a'.repeat(7_000)}"}`,
  ])('that is %j is refused', async (credential) => {
    const { id } = await signedIn()
    const asked = await creation()
    const form = { ...formFields(asked.html), name: 'x', credential }
    expect((await browser.send(PASSKEYS, { form })).status).toBe(400)
    expect(await count(id)).toBe(0)
  })

  test('is refused with a challenge of before, of another browser, another person, or a sign-in', async () => {
    const { id, email } = await signedIn()
    const asked = await creation()
    const credential = newPasskey().created(asked.options)
    const form = { ...formFields(asked.html), name: 'x', credential }
    const [other, thief] = [stranger(), stranger()]
    await signIn(email, other)
    await signedIn(thief)
    for (const by of [other, thief]) {
      const own = formFields((await creation(by)).html)
      expect((await by.send(PASSKEYS, { form: { ...own, name: 'x', credential } })).status).toBe(400)
    }
    const forSignIn = await request(browser)
    expect((await give(newPasskey(), { asked: { ...asked, options: forSignIn.options } })).status).toBe(400)
    world.time.offsetMs += 301_000
    expect((await browser.send(PASSKEYS, { form })).status).toBe(400)
    world.time.offsetMs = 0
    expect((await browser.send(PASSKEYS, { form })).status).toBe(200)
    expect((await browser.send(PASSKEYS, { form })).status).toBe(400)
    expect(await count(id)).toBe(1)
  })

  test('that belongs to somebody already is refused', async () => {
    const { passkey } = await withPasskey()
    const by = stranger()
    const { id } = await signedIn(by)
    expect((await give(passkey, { by })).status).toBe(400)
    expect(await count(id)).toBe(0)
  })

  test('needs a fresh sign-in, a form of this session, and of this site', async () => {
    const { id } = await signedIn()
    const asked = await creation()
    expect((await give(newPasskey(), { asked, form: { xsrf: 'A'.repeat(43) } })).status).toBe(400)
    const form = { ...formFields(asked.html), name: 'x', credential: newPasskey().created(asked.options) }
    const headers = { origin: 'https://evil.example' }
    expect((await browser.send(PASSKEYS, { form, headers })).status).toBe(400)
    world.time.offsetMs += 901_000
    for (const sent of [undefined, form])
      expect((await browser.send(PASSKEYS, sent && { form: sent })).headers.get('location')).toContain(
        '/account/sign-in',
      )
    expect((await stranger().send(PASSKEYS, { form })).status).toBe(303)
    expect(await count(id)).toBe(0)
  })
})

describe('a passkey that is removed', () => {
  const removal = async (id: string, by = browser) =>
    by.send(PASSKEYS, { form: { xsrf: formFields((await creation(by)).html).xsrf ?? '', remove: id } })

  test('signs nobody in any longer, ends all sign-ins, and takes the codes of who has nothing else along', async () => {
    const { id, email, passkey } = await withPasskey()
    const other = stranger()
    await answer(other, await request(other), passkey.signed((await request(other)).options))
    const late = stranger()
    const asked = await request(late)
    expect(await (await removal(passkey.id)).text()).toContain('The passkey is removed')
    expect((await answer(late, asked, passkey.signed(asked.options))).status).toBe(400)
    expect((await other.send('/account')).status).toBe(303)
    expect(await codesLeft(id)).toBe(0)
    expect((await signIn(email, stranger())).status).toBe(303)
    expect((await browser.send('/account')).status).toBe(303)
    await world.identity.mailed()
    expect(mailsTo(email).at(-1)).toContain('was removed')
  })

  test('is one of their own', async () => {
    const { id, passkey } = await withPasskey()
    const by = stranger()
    await signedIn(by)
    expect((await removal(passkey.id, by)).status).toBe(400)
    expect((await removal('nothing')).status).toBe(400)
    expect(await count(id)).toBe(1)
  })

  test('leaves an app as the second factor, and its codes', async () => {
    const { id, email, passkey } = await withPasskey()
    await world.identity.secondFactor.enroll(id, CONTEXT)
    expect((await removal(passkey.id)).status).toBe(200)
    expect(await (await signIn(email, stranger())).text()).toContain('Enter your code')
    expect(await codesLeft(id)).toBe(10)
  })
})

test('the script is one file of this origin, and the only one that may run', async () => {
  await signedIn()
  const page = await browser.send(PASSKEYS)
  const script = `${world.issuer}/account/passkey.js`
  expect(page.headers.get('content-security-policy')).toContain(`default-src 'none';`)
  expect(page.headers.get('content-security-policy')).toContain(`script-src ${script};`)
  expect([...(await page.text()).matchAll(/<script[^>]*>/g)].map(String)).toEqual([
    '<script type="module" src="/account/passkey.js">',
  ])
  const response = await fetch(script)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8'])
  expect((await browser.send('/account')).headers.get('content-security-policy')).not.toContain('script-src')
  expect((await requestSecond(stranger(), (await withPasskey()).email)).html).toContain('<noscript>')
})
