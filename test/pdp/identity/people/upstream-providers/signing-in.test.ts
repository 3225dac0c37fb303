import { describe, expect, test } from 'vitest'
import type { Change } from '../../../../../pdp/shared/domain/change.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { codeOf } from '../../../../support/authenticator.ts'
import { answerPage } from '../../../../support/sign-in.ts'
import { createFlow } from '../../flow.ts'
import { CONTEXT, PASSWORD } from '../../harness.ts'
import {
  button,
  document,
  get,
  here,
  join,
  leave,
  linksOf,
  mine,
  newBrowsers,
  other,
  PROOF,
  PROVIDER,
  PROVIDERS,
  person,
  post,
  prove,
  provide,
  signedInAs,
  signInThere,
  travel,
  useWorlds,
} from './world.ts'

useWorlds()

describe('somebody whom nobody here is connected with', () => {
  test('gets an account where the provider may create one and has verified the address', async () => {
    await provide({ creates_accounts: true })
    const them = await person(other)
    const back = await travel(them.email)
    expect([back.status, back.location]).toEqual([303, `${here.issuer}/account`])
    expect(await signedInAs()).toBe(them.email)
    const made = await here.directory.userByEmail(them.email)
    expect(made).toMatchObject({ email: them.email, emailVerified: true, name: them.id, passwordHash: null })
    expect(await linksOf(made?.id ?? '')).toEqual([them.id])
    // The next time they are known, also by another address.
    await other.directory.putUser({ id: them.id, email: 'new@x.example', emailVerified: false, name: null }, CONTEXT)
    const [again, there] = newBrowsers()
    await travel('new@x.example', { by: [again, there] })
    expect(await signedInAs(again)).toBe(them.email)
  })

  test.each([
    ['the provider may not create accounts', {}, {}],
    ['the address is not verified', { creates_accounts: true }, { emailVerified: false }],
  ])('gets none when %s, and is told what to do', async (_, provider, wanted) => {
    await provide(provider)
    const them = await person(other, wanted)
    const back = await travel(them.email)
    expect(back.location).toBe(here.issuer + PROOF)
    const page = await get(PROOF)
    for (const text of ['Other &amp; Co', them.email, 'for an invitation']) expect(page.html).toContain(text)
    expect(await here.directory.userByEmail(them.email)).toBeNull()
    expect(await signedInAs()).toBeNull()
  })

  test.each([true, false])(
    'is not taken for who has the same address here, whatever the provider says: verified %s',
    async (emailVerified) => {
      await provide({ creates_accounts: true })
      const victim = await person(here)
      const them = await person(other, { email: victim.email, emailVerified })
      expect((await travel(them.email)).location).toBe(here.issuer + PROOF)
      expect(await signedInAs()).toBeNull()
      const wrong = await prove(victim.email, 'not the password')
      expect([wrong.status, wrong.html]).toEqual([400, expect.stringContaining('role="alert"')])
      expect([await signedInAs(), await linksOf(victim.id)]).toEqual([null, []])
      // The same page for an address of nobody.
      const page = (await get(PROOF)).html
      const stranger = await person(other, { emailVerified })
      await provide()
      const [by, there] = newBrowsers()
      await travel(stranger.email, { by: [by, there] })
      expect((await get(PROOF, by)).html.replaceAll(stranger.email, victim.email)).toBe(page)
    },
  )

  test('is connected with the account whose password they give, and needs none the next time', async () => {
    const [account, them] = [await person(here), await person(other)]
    await travel(them.email)
    const proven = await prove(account.email)
    expect([proven.status, proven.location]).toEqual([303, `${here.issuer}/account`])
    expect([await signedInAs(), await linksOf(account.id)]).toEqual([account.email, [them.id]])
    const [again, there] = newBrowsers()
    await travel(them.email, { by: [again, there] })
    expect(await signedInAs(again)).toBe(account.email)
    const log = await here.sql.query<{ change: object }>(
      `select change from change_log where actor = $1 order by revision`,
      [`user:${account.id}`],
    )
    expect(log).toContainEqual({ change: { kind: 'foreign_identity', id: account.id, op: 'write' } })
  })

  test('is connected only after the second factor of the account, too', async () => {
    const [account, them] = [await person(here), await person(other)]
    const { secret } = await here.identity.secondFactor.enroll(account.id, CONTEXT)
    await travel(them.email)
    const asked = await prove(account.email)
    expect(asked.html).toContain('data-step="totp"')
    expect([await signedInAs(), await linksOf(account.id)]).toEqual([null, []])
    const sealed = /name="password_accepted" value="([^"]+)"/.exec(asked.html)?.[1] ?? ''
    const form = { action: 'code', password_accepted: sealed }
    expect((await post(PROOF, { ...form, code: '000000' })).status).toBe(400)
    expect(await linksOf(account.id)).toEqual([])
    expect((await post(PROOF, { ...form, code: codeOf(secret, Date.now()) })).status).toBe(303)
    expect(await linksOf(account.id)).toEqual([them.id])
    // And each later sign-in by the provider asks for it.
    here.time.offsetMs = 60_000
    const [again, there] = newBrowsers()
    expect((await travel(them.email, { by: [again, there] })).location).toBe(here.issuer + PROOF)
    expect(await signedInAs(again)).toBeNull()
    expect((await post(PROOF, { action: 'code', code: '000000' }, again)).status).toBe(400)
    const done = await post(PROOF, { action: 'code', code: codeOf(secret, Date.now() + 60_000) }, again)
    expect([done.status, await signedInAs(again)]).toEqual([303, account.email])
  })

  test('is one account of several first sign-ins at the same time', async () => {
    await provide({ creates_accounts: true })
    const them = await person(other)
    const browsers = Array.from({ length: 4 }, newBrowsers)
    const returns = await Promise.all(
      browsers.map(async ([by, there]) => signInThere(await leave(undefined, by), them.email, there)),
    )
    await Promise.all(returns.map((url, i) => get(url, browsers[i]?.[0])))
    const names = await Promise.all(browsers.map(([by]) => signedInAs(by)))
    expect(names.filter((name) => name !== null && name !== them.email)).toEqual([])
    const rows = await here.sql.query('select 1 from foreign_identity where subject = $1', [them.id])
    const accounts = await here.sql.query('select 1 from user_account where email = $1', [them.email])
    expect([rows.length, accounts.length, names.includes(them.email)]).toEqual([1, 1, true])
  })
})

describe('an application', () => {
  test('gets its code from who signs in at a provider, with the methods that were used', async () => {
    const [account, them] = [await person(here), await person(other)]
    await join(account.id)
    await travel(them.email)
    await prove(account.email)
    const flow = createFlow(here)
    const [by, there] = newBrowsers()
    const page = (await by.send(flow.authorizeUrl({}))).headers.get('location') ?? ''
    const back = await get(await signInThere(await leave(page, by), them.email, there), by)
    const callback = await by.follow(back.location, (form) => answerPage(form, { ...account, password: PASSWORD }))
    const code = callback.searchParams.get('code') ?? ''
    const tokens = await flow.redeem(code)
    const claims = JSON.parse(Buffer.from(String(tokens.body.id_token).split('.')[1] ?? '', 'base64url').toString())
    expect(claims).toMatchObject({ sub: account.id, acr: 'pwd', amr: ['fed'] })
  })

  test('shows the providers of its organization, and no other page does', async () => {
    await provide({ organizations: ['acme'] })
    const flow = createFlow(here)
    const pageOf = async (parameters: { [name: string]: string }) =>
      (await get((await mine.send(flow.authorizeUrl(parameters))).headers.get('location') ?? '')).html
    expect(await pageOf({ organization: 'acme' })).toContain('Sign in with Other &amp; Co')
    expect(await pageOf({ organization: 'beta' })).not.toContain('Other')
    expect(await pageOf({})).not.toContain('Other')
    expect((await get('/account/sign-in')).html).not.toContain('Other')
    expect((await get('/account/sign-in?organization=acme')).html).toContain('Sign in with Other')
  })
})

describe('who may not', () => {
  /** An account that is connected already. */
  const connected = async () => {
    const [account, them] = [await person(here), await person(other)]
    await travel(them.email)
    await prove(account.email)
    const [by, there] = newBrowsers()
    return { account, them, by, there }
  }

  test('comes in no more when the account is blocked or deleted', async () => {
    const one = await connected()
    await here.sql.query(`update user_account set signed_out_at = 'infinity' where user_id = $1`, [one.account.id])
    const back = await travel(one.them.email, { by: [one.by, one.there] })
    expect([back.status, back.html]).toEqual([403, expect.stringContaining('may not sign in')])
    expect(await signedInAs(one.by)).toBeNull()
    await here.sql.query(`update user_account set signed_out_at = null where user_id = $1`, [one.account.id])
    await here.directory.deleteUser(one.account.id, CONTEXT)
    expect((await travel(one.them.email, { by: newBrowsers() })).location).toBe(here.issuer + PROOF)
  })

  test('is stopped at the door of another organization, connected or about to be', async () => {
    const one = await connected()
    await provide({ organizations: ['acme'] })
    const path = '/account/sign-in?organization=acme'
    const back = await travel(one.them.email, { path, by: [one.by, one.there] })
    expect([back.status, back.html]).toEqual([403, expect.stringContaining('does not belong')])
    const [account, them] = [await person(here), await person(other)]
    const [by, there] = newBrowsers()
    await travel(them.email, { path, by: [by, there] })
    expect((await prove(account.email, PASSWORD, by)).status).toBe(403)
    expect([await linksOf(account.id), await signedInAs(by)]).toEqual([[], null])
    await join(one.account.id)
    const [again, elsewhere] = newBrowsers()
    await travel(one.them.email, { path, by: [again, elsewhere] })
    expect(await signedInAs(again)).toBe(one.account.email)
  })

  test.each<[string, (user: string) => Promise<unknown>]>([
    ['is a member elsewhere', (user) => join(user, 'beta')],
    ['may see something elsewhere', (user) => write('beta', { kind: 'tuple', op: 'write', tuple: tupleOf(user) })],
    ['has a role everywhere', (user) => write(ENVIRONMENT, grantOf(user, { app: null, role: 'auditor' }))],
    ['manages Portcullis', (user) => write('acme', grantOf(user, { app: 'portcullis', role: 'administrator' }))],
  ])('is stopped by the provider that an organization manages when the person %s', async (_, gain) => {
    const one = await connected()
    await join(one.account.id)
    await provide({ organizations: ['acme'], organization: 'acme' })
    const path = '/account/sign-in?organization=acme'
    await travel(one.them.email, { path, by: [one.by, one.there] })
    expect(await signedInAs(one.by)).toBe(one.account.email)
    await gain(one.account.id)
    const by = newBrowsers()
    expect((await travel(one.them.email, { path, by })).status).toBe(403)
    expect(await signedInAs(by[0])).toBeNull()
  })

  test.each([
    ['another domain', {}, 403],
    ['an address that is not verified', { email: 'unverified@good.example', emailVerified: false }, 403],
    ['a domain that ends alike', { email: 'a@evil-good.example' }, 403],
    ['a domain below', { email: 'a@sub.good.example' }, 403],
    ['the domain', { email: 'A.Person@GOOD.example' }, 303],
  ])('with %s', async (_, wanted, status) => {
    await provide({ email_domains: ['good.example'], creates_accounts: true })
    const them = await person(other, wanted)
    expect((await travel(them.email)).status).toBe(status)
  })

  test.each([
    ['is removed', async () => void (await here.identity.identityProviders.remove(PROVIDER, CONTEXT))],
    [
      'becomes another one',
      async () => {
        const elsewhere = { ...document(), issuer: 'https://elsewhere.example', secret: 'another-secret-of-it' }
        await here.identity.identityProviders.put(PROVIDER, elsewhere, CONTEXT)
      },
    ],
    ['gets another client', () => provide({ client_id: 'portal-2' })],
  ])('come in when the provider %s while they are there', async (_, change) => {
    const them = await person(other)
    const back = await signInThere(await leave(), them.email)
    await change()
    expect((await get(back)).status).toBe(400)
    expect(await signedInAs()).toBeNull()
    await here.identity.identityProviders.remove(PROVIDER, CONTEXT)
  })

  test('reach a provider inside the network that is not named', async () => {
    await here.identity.identityProviders.put(
      'inside',
      { ...document(), issuer: 'http://127.0.0.2:9', name: 'Inside', secret: 'the-secret-of-inside' },
      CONTEXT,
    )
    const html = (await get('/account/sign-in')).html
    const sent = await post(PROVIDERS, button(html, 'inside'))
    expect([sent.status, sent.location]).toEqual([503, ''])
    await here.identity.identityProviders.remove('inside', CONTEXT)
  })
})

const write = (log: string, change: Change) => here.store.write(log, [change], { context: CONTEXT })
const tupleOf = (user: string) =>
  ({ object: `document:of-${user}`, relation: 'viewer', subject: `user:${user}`, expiresAtMs: null }) as const
const grantOf = (user: string, { app, role }: { readonly app: string | null; readonly role: string }): Change => ({
  kind: 'role_grant',
  op: 'write',
  grant: { id: `of-${user}`, app, role, subject: `user:${user}` },
})
