import { describe, expect, test } from 'vitest'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { createBrowser } from '../../../../support/browser.ts'
import { CONTEXT } from '../../harness.ts'
import {
  browser,
  DAY_MS,
  grantsOf,
  invite,
  mailbox,
  membership,
  newAddress,
  open,
  PAGE,
  person,
  press,
  putInviter,
  signIn,
  useWorld,
  world,
} from './world.ts'

useWorld()
const APPROVER = { app: 'invoices', role: 'approver' }

describe('an invitation', () => {
  const accept = async (email: string) => {
    await signIn(email)
    return press('accept')
  }
  const invited = async (wanted: Parameters<typeof invite>[1] = {}) => {
    const one = await person()
    const link = await invite(one.email, wanted)
    await open(link)
    return { ...one, link }
  }
  const refused = async (one: { readonly id: string; readonly email: string }, text: string) => {
    const page = await accept(one.email)
    expect([page.status, page.html]).toEqual([400, expect.stringContaining(text)])
    expect([await membership(one.id), await grantsOf(one.id)]).toEqual([null, []])
  }

  test.each([
    ['who invited is gone', () => world.directory.deleteClient('inviter', CONTEXT)],
    ['who invited may no longer invite', () => putInviter('directory:read roles:write')],
    ['who invited may no longer give roles', () => putInviter('directory:write')],
    ['who invited belongs to another organization by now', () => putInviter('directory:write roles:write', 'beta')],
    ['who invited is bound by now, and holds less than the role', () => putInviter(undefined, 'acme')],
  ])('gives nothing when %s', async (_, change) => {
    const one = await invited({ roles: [APPROVER], by: 'service:inviter' })
    try {
      await change()
      await refused(one, 'may no longer do so')
    } finally {
      await world.sql.query(`update principal set deleted_at = null where id = 'inviter'`)
      await putInviter()
    }
    // Nothing was used up either.
    expect((await accept(one.email)).status).toBe(200)
  })

  test('of a person is good for as long as that person may invite', async () => {
    const boss = await person()
    const one = await invited({ by: `user:${boss.id}` })
    await refused(one, 'may no longer do so')
    await world.store.write(
      ENVIRONMENT,
      [
        {
          kind: 'manifest',
          manifest: {
            app: 'portcullis',
            audiences: [],
            permissions: { 'portcullis:directory:write': 'People' },
            roles: { hr: { name: 'HR', permissions: ['portcullis:directory:write'] } },
            model: null,
          },
        },
      ],
      { context: CONTEXT },
    )
    const grant = { id: 'hr1', app: 'portcullis', role: 'hr', subject: `user:${boss.id}` }
    await world.store.write('acme', [{ kind: 'role_grant', op: 'write', grant }], { context: CONTEXT })
    expect(await (await browser.send(PAGE)).text()).toContain(boss.id.toUpperCase())
    expect((await accept(one.email)).status).toBe(200)
    const two = await invited({ by: `user:${boss.id}` })
    await world.directory.deleteUser(boss.id, CONTEXT)
    await refused(two, 'may no longer do so')
  })

  test('gives nothing when a role is no longer there', async () => {
    const one = await invited({ roles: [{ app: 'invoices', role: 'gone' }] })
    await refused(one, 'no longer there')
  })

  test('gives nothing to members and to whom the organization has suspended', async () => {
    for (const [status, text] of [
      ['active', 'a member of this organization already'],
      ['suspended', 'suspended your membership'],
    ] as const) {
      const one = await invited({ role: 'owner', roles: [APPROVER] })
      const change = { kind: 'membership', user: one.id, membership: { role: 'viewer', status } } as const
      await world.store.write('acme', [change], { context: CONTEXT })
      const page = await accept(one.email)
      expect([page.status, page.html]).toEqual([400, expect.stringContaining(text)])
      expect([await membership(one.id), await grantsOf(one.id)]).toEqual([{ role: 'viewer', status }, []])
    }
  })

  test('goes with its organization', async () => {
    const change = {
      kind: 'organization',
      id: 'brief',
      organization: { id: 'brief', name: 'Brief', parent: null },
    } as const
    await world.store.write(ENVIRONMENT, [change], { context: CONTEXT })
    const one = await invited({ organization: 'brief' })
    await world.store.write(ENVIRONMENT, [{ ...change, organization: null }], { context: CONTEXT })
    const page = await accept(one.email)
    expect([page.status, page.html]).toEqual([400, expect.stringContaining('no longer good')])
  })

  test('is for the address alone, also when its person has another one by now', async () => {
    const one = await invited()
    await signIn(one.email)
    const user = { id: one.id, email: newAddress(), emailVerified: true, name: null }
    await world.directory.putUser(user, CONTEXT)
    const page = await press('accept')
    expect(page.html).toContain('no account with this address yet')
    expect(await membership(one.id)).toBeNull()
  })

  test('is good for seven days', async () => {
    const one = await invited()
    world.time.offsetMs = 7 * DAY_MS - 60_000
    expect((await open(one.link, createBrowser(world.issuer))).location).toContain('/account/sign-in')
    world.time.offsetMs = 7 * DAY_MS + 60_000
    expect((await open(one.link, createBrowser(world.issuer))).status).toBe(400)
    await refused(one, 'no longer good')
  })

  test('makes the link of the one before void, in either spelling of the address', async () => {
    const one = await person()
    const first = await invite(one.email)
    const upper = one.email.replace('invited', 'Invited')
    const second = await invite(upper, { role: 'viewer' })
    expect((await open(first)).status).toBe(400)
    await open(second)
    await signIn(one.email)
    expect((await press('accept')).status).toBe(200)
    expect(await membership(one.id)).toMatchObject({ role: 'viewer' })
  })

  test('is not used up by programs that open the links of mails', async () => {
    const one = await person()
    const link = await invite(one.email)
    for (const method of ['GET', 'HEAD', 'GET']) await fetch(world.issuer + link, { method })
    await open(link)
    expect((await accept(one.email)).status).toBe(200)
  })

  test.each([
    [
      'of another kind',
      async (email: string) => {
        await browser.send('/account/forgotten', { form: { email } })
        await world.identity.mailed()
        return mailbox.linkTo(email).replace('/account/reset', PAGE)
      },
    ],
    ['altered', async (email: string) => `${(await invite(email)).slice(0, -1)}!`],
    ['cut', async (email: string) => (await invite(email)).slice(0, -1)],
    ['empty', async () => `${PAGE}?token=`],
    ['absent', async () => PAGE],
  ])('does not open by a token %s', async (_, linkFor) => {
    const { email } = await person()
    expect((await open(await linkFor(email))).status).toBe(400)
  })

  test('speaks the language that who invites chose', async () => {
    await invite(newAddress(), { language: 'de' })
    const mail = mailbox.received.at(-1)
    expect(mail?.text).toContain('Sie sind eingeladen')
    expect(mail?.raw).toMatch(/^subject: .*Einladung/im)
  })

  test('mails no link but ours, whatever the organization is called', async () => {
    const name = 'Pay at https://evil.example/now, <a href="//evil.example"> or a@evil.example\r\nBcc: b@evil.example'
    const link = await invite(newAddress(), { organizationName: name })
    const mail = mailbox.received.at(-1)
    expect(mail?.to).toHaveLength(1)
    expect(mail?.text).toContain(world.issuer + link)
    expect(mail?.text).not.toMatch(/evil\.example|@/)
  })

  test('fills no mailbox by way of the spellings of its address', async () => {
    const [local] = newAddress().split('@')
    const spelled = (i: number): string => `${local}+${i}@x.example`
    for (let i = 0; i < 10; i += 1) await invite(spelled(i))
    for (const address of [
      spelled(11),
      `${local?.toUpperCase()}+12@X.example`,
      `${local?.slice(0, 3)}.${local?.slice(3)}@x.example`,
    ])
      await expect(invite(address)).rejects.toThrow('too many invitations')
    expect(mailbox.received).toHaveLength(10)
    await invite(newAddress())
  })
})
