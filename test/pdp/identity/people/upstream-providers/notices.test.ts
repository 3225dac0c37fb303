/** Mails that tell people that another service was connected with their account, or is no longer. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createBrowser, hiddenFields } from '../../../../support/browser.ts'
import { cheapHash } from '../../../../support/passwords/cheap-hash.ts'
import { CONTEXT, openWorld, PASSWORD, type World } from '../../harness.ts'
import { accountWith, type Mailbox, openMailbox } from '../mail/mailbox.ts'
import { CLIENT, type Forged, forgeProvider } from './forged-provider.ts'

let mailbox: Mailbox
let world: World
let forged: Forged
beforeAll(async () => {
  mailbox = await openMailbox()
  ;[world, forged] = await Promise.all([openWorld({ account: accountWith(mailbox) }), forgeProvider()])
  const provider = { issuer: forged.issuer, client_id: CLIENT, name: 'Forged', secret: 's'.repeat(20) }
  await world.identity.identityProviders.put('forged', provider, CONTEXT)
})
afterAll(async () => {
  await world.close()
  await forged.close()
  await mailbox.close()
})

test('a service that is connected, and disconnected, is told to the person of the account', async () => {
  const email = 'connected@x.example'
  const user = { id: 'connected', email, emailVerified: true, name: null, passwordHash: cheapHash(PASSWORD) }
  await world.directory.putUser(user, CONTEXT)
  const browser = createBrowser(world.issuer)
  const login = { action: 'login', email, password: PASSWORD }
  const pressed = hiddenFields(
    (await (await browser.send('/account/sign-in')).text()).split('data-step="provider"')[1] ?? '',
  )
  const sent = await browser.send('/account/providers', { form: pressed })
  const asked = new URL(sent.headers.get('location') ?? 'about:blank').searchParams
  forged.claims = { nonce: asked.get('nonce') }
  await browser.send(`/account/providers/forged?${new URLSearchParams({ code: 'c', state: asked.get('state') ?? '' })}`)
  expect(mailbox.received).toHaveLength(0)
  expect((await browser.send('/account/proof', { form: login })).status).toBe(303)
  await world.identity.mailed()
  expect(mailbox.received.map(({ text }) => text)).toEqual([expect.stringContaining('Another service was connected')])
  const html = await (await browser.send('/account/providers')).text()
  const row = hiddenFields(html.split('data-step="disconnect"')[1] ?? '')
  expect((await browser.send('/account/providers', { form: { ...row, action: 'disconnect' } })).status).toBe(200)
  await world.identity.mailed()
  expect(mailbox.received.map(({ to, text }) => [to, text])[1]).toEqual([
    [email],
    expect.stringContaining('Another service was disconnected'),
  ])
})
