import { describe, expect, test } from 'vitest'
import german from '../../../../../pdp/identity/html/words/de.json' with { type: 'json' }
import { createBrowser } from '../../../../support/browser.ts'
import { createFlows } from '../../flows.ts'
import { CONTEXT, openWorld } from '../../harness.ts'
import { ask, browser, FORGOTTEN, HOUR_MS, mailbox, person, useWorld, world } from './forgetting.ts'

useWorld()

describe('nobody learns', () => {
  test('from the answer who has an account', async () => {
    const { email } = await person()
    const { email: elsewhere } = await person({ withPassword: false })
    const addresses = [
      email,
      elsewhere,
      'nobody@x.example',
      'not an address',
      '',
      'a@b,c@d',
      `${'x'.repeat(300)}@x.example`,
    ]
    const answers = []
    for (const address of addresses) {
      const answer = await ask(address, createBrowser(world.issuer))
      const headers = [...answer.headers.keys()].sort().join()
      // Each browser has a code of its own.
      const page = (await answer.text()).replace(/<p class="code">\d{4} \d{4}</, '<p class="code"><')
      answers.push([answer.status, headers, page])
    }
    for (const answer of answers) expect(answer).toEqual(answers[0])
    expect(mailbox.received.map(({ to }) => to)).toEqual([[email]])
  })

  test('from the work before the answer: it is the same, and no password is hashed', async () => {
    const { email } = await person()
    const before = await counted(() => browser.send(FORGOTTEN, { form: { email } }))
    await world.identity.mailed()
    const unknown = await counted(() => browser.send(FORGOTTEN, { form: { email: 'nobody@x.example' } }))
    await world.identity.mailed()
    expect(before).toEqual(unknown)
  })

  test('from mail that cannot be sent', async () => {
    const { email } = await person()
    mailbox.refuse = true
    expect((await ask(email)).status).toBe(200)
    expect(world.log.at(-1)).toContain('mail_failed')
    mailbox.refuse = false
    await ask(email)
    expect(mailbox.received).toHaveLength(1)
  })

  /** What the page says while the mail is not even begun. */
  async function counted(work: () => Promise<Response>): Promise<unknown> {
    const response = await work()
    const [row] = await world.sql.query<{ tokens: number }>('select count(*)::int as tokens from mailed_token')
    return [response.status, typeof row?.tokens]
  }
})

describe('mail', () => {
  test('to one person is bounded, however many ask; the person’s own device is not kept out', async () => {
    const { id, email } = await person()
    await createFlows(world).code({ person: id, organization: 'acme', scope: 'openid', browser })
    for (let i = 0; i < 12; i++) expect((await ask(email, createBrowser(world.issuer))).status).toBe(200)
    expect(mailbox.received).toHaveLength(5)
    await ask(email)
    expect(mailbox.received).toHaveLength(6)
    expect(world.log.join()).toContain('mail_withheld')
  })

  test('asked for from one address is bounded, whomever it is for, by all nodes together', async () => {
    for (let i = 0; i < 20; i++) await browser.send(FORGOTTEN, { form: { email: `nobody${i}@x.example` } })
    expect((await ask('eve@x.example')).status).toBe(429)
    await world.identity.mailed()
    expect(mailbox.received).toHaveLength(0)
    world.time.offsetMs += HOUR_MS
    expect((await ask('eve@x.example')).status).toBe(200)
    expect(mailbox.received).toHaveLength(1)
  })

  test('goes to one mailbox, whatever an address holds', async () => {
    for (const email of ['a@x.example,evil@y.example', '"a b"@x.example', 'a@x.example>rcpt', 'x@[127.0.0.1]']) {
      const id = `odd${email.length}`
      const hash = (await world.directory.userByEmail('eve@x.example'))?.passwordHash ?? null
      await world.directory.putUser({ id, email, emailVerified: true, name: id, passwordHash: hash }, CONTEXT)
      await ask(email)
    }
    expect(mailbox.received).toHaveLength(0)
  })

  test('is plain text that says where it comes from, and that no program answers', async () => {
    const { email } = await person()
    await ask(email)
    const [mail] = mailbox.received
    expect(mail?.raw).toMatch(/^From: Example <no-reply@x.example>\r$/m)
    expect(mail?.raw).toMatch(/^Auto-Submitted: auto-generated\r$/m)
    expect(mail?.raw).toMatch(/^Content-Type: text\/plain/m)
    expect(mail?.text).toContain(`${world.issuer}/account/reset?token=`)
  })

  test.each([
    ['Accept-Language', FORGOTTEN, 'de'],
    ['its address', `${FORGOTTEN}?ui_locales=de`, 'fr'],
  ])('speaks the language that the page has by %s', async (_, path, accepted) => {
    const { email } = await person()
    const { forgotten, mails } = german.account
    const headers = { 'accept-language': accepted }
    const pages = [
      await (await browser.send(path, { headers })).text(),
      await (await browser.send(path, { headers, form: { email } })).text(),
    ]
    for (const page of pages) expect(page).toContain('<html lang="de">')
    expect(pages).toEqual([expect.stringContaining(forgotten.lead), expect.stringContaining(forgotten.sent)])
    await world.identity.mailed()
    expect(mailbox.received[0]?.text).toContain(mails.reset.open)
    expect(mailbox.linkTo(email)).toContain('/account/reset?token=')
  })

  test('that is not set up is not promised', async () => {
    const silent = await openWorld()
    try {
      for (const form of [undefined, { email: 'eve@x.example' }]) {
        const page = await fetch(`${silent.issuer}${FORGOTTEN}`, {
          ...(form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }),
        })
        expect(await page.text()).toContain('This server sends no mail')
      }
    } finally {
      await silent.close()
    }
  })
})
