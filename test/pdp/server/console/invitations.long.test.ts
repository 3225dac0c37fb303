/** Invitations in the console: who sees them, who sends and withdraws them, and what of them stays in the mail. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OwnWorld, startOwnWorld } from '../../../console/own-world.ts'
import type { PersonId } from '../../../console/world.ts'
import { type Browser, createBrowser } from '../../../support/browser.ts'
import { csrfIn, get, post, type Shown, signedInTo } from './visitor.ts'

let world: OwnWorld
let root: Browser
beforeAll(async () => {
  world = await startOwnWorld()
  root = await signedInTo(world, 'root')
})
afterAll(() => world?.close())

const PAGE = '/console/invitations?org=acme'
type Open = { readonly id: string; readonly email: string; readonly invited_by: string }
const open = async (): Promise<readonly Open[]> =>
  (await world.manage('GET', '/v1/organizations/acme/invitations')).items
const emails = async (): Promise<readonly string[]> => (await open()).map(({ email }) => email).sort()
const send = async (browser: Browser, form: { readonly [name: string]: string }): Promise<Shown> =>
  post(browser, PAGE, { csrf: csrfIn((await get(browser, '/console')).text), ...form })
const mailTo = (address: string): string | undefined =>
  readdirSync(world.mails)
    .map((file) => readFileSync(join(world.mails, file), 'utf8'))
    .find((text) => text.includes(`To: ${address}\n`))

test('an invitation goes out by mail and stands on the screen, where its link never does', async () => {
  const sent = await send(root, { email: 'erik@new.example', role: 'viewer', language: 'de', roles: 'docs/exporter' })
  expect([sent.status, sent.headers.get('location')]).toEqual([303, `${world.issuer}${PAGE}&done=invited`])
  const { text } = await get(root, PAGE)
  expect(text.replaceAll(/<[^>]*>/g, ' ')).toMatch(/erik@new\.example +viewer, +docs\/exporter +user:root/)
  await expect.poll(() => mailTo('erik@new.example')).toContain('invitation')
  const token = /token=3?D?([\w-]{20,})/.exec((mailTo('erik@new.example') ?? '').replaceAll('=\n', ''))?.[1] ?? 'none'
  expect(token).not.toBe('none')
  expect(text + sent.text).not.toContain(token.slice(0, 20))
  expect(world.logged.join()).not.toContain(token.slice(0, 20))
  expect(await open()).toContainEqual(expect.objectContaining({ email: 'erik@new.example', invited_by: 'user:root' }))
})

test('an address with a character that nobody sees is refused', async () => {
  await send(root, { email: 'a\u202Eb@new.example', role: 'member' })
  expect(await emails()).not.toContain('a\u202Eb@new.example')
})

test.each(['constructor', '__proto__', 'x'])('an unknown word for what was done says nothing: %s', async (done) => {
  expect((await get(root, `${PAGE}&done=${done}`)).status).toBe(200)
})

test('who sends a form twice sends one invitation, whose earlier link is void', async () => {
  const before = (await emails()).length
  const form = { email: 'twice@new.example', role: 'member' }
  await Promise.all([send(root, form), send(root, form)])
  expect((await emails()).length).toBe(before + 1)
})

test('an invitation is withdrawn once, and a second try says that it is no longer open', async () => {
  await send(root, { email: 'gone@new.example', role: 'member' })
  const withdraw = (await open()).find(({ email }) => email === 'gone@new.example')?.id ?? ''
  expect((await send(root, { withdraw })).headers.get('location')).toContain('done=withdrawn')
  expect(await emails()).not.toContain('gone@new.example')
  const again = await send(root, { withdraw })
  expect(again.headers.get('location')).toContain('done=gone')
  expect((await get(root, `${PAGE}&done=gone`)).text).toContain('no longer open')
})

test.each([
  ['no address', { email: '' }],
  ['no mail address', { email: 'nobody' }],
  ['two addresses', { email: 'a@new.example, b@new.example' }],
  ['a line of its own in the mail', { email: 'a@new.example\r\nBcc: b@new.example' }],
  ['an endless address', { email: `${'a'.repeat(100_000)}@new.example` }],
  ['markup', { email: '"><script>alert(1)</script>@new.example' }],
  ['an unknown tier', { email: 'c@new.example', role: 'emperor' }],
  ['an unknown language', { email: 'c@new.example', language: 'tlh' }],
  ['an unknown role', { email: 'c@new.example', roles: 'docs/nothing' }],
  ['an unknown app', { email: 'c@new.example', roles: 'nothing/exporter' }],
  ['half a role', { email: 'c@new.example', roles: '/exporter' }],
  ['a role twice', { email: 'c@new.example', roles: 'docs/exporter docs/exporter' }],
  ['too many roles', { email: 'c@new.example', roles: Array.from({ length: 21 }, (_, i) => `docs/r${i}`).join('\n') }],
])('with %s nobody is invited, and what was typed stays', async (_, typed) => {
  const before = await emails()
  const { status, text } = await send(root, { role: 'member', ...typed })
  expect(status).toBe(400)
  expect(text).toContain('role="alert"')
  expect(text).not.toContain('<script>alert')
  expect(text).toContain('name="email" type="text" value="')
  expect(await emails()).toEqual(before)
})

describe('somebody', () => {
  test.each([
    ['bob', 403],
    ['tom', 403],
    ['anna', 200],
  ] as const)(
    'such as %s is answered %i, offered nothing to send, and sends nothing',
    async (person: PersonId, code) => {
      const before = await emails()
      const browser = await signedInTo(world, person)
      const { status, text } = await get(browser, PAGE)
      expect(status).toBe(code)
      expect(text.includes('dora@elsewhere.example')).toBe(code === 200)
      expect(text).not.toContain('Send the invitation')
      expect(text).not.toContain('Withdraw')
      const [{ id: withdraw } = { id: '' }] = await open()
      expect((await send(browser, { email: 'c@new.example', role: 'owner' })).status).toBe(403)
      expect((await send(browser, { withdraw })).status).toBe(403)
      expect(await emails()).toEqual(before)
      const start = (await get(browser, '/console?org=acme')).text
      expect(start.includes('/console/invitations')).toBe(code === 200)
    },
  )

  test('with another organization withdraws nothing here', async () => {
    const before = await emails()
    const [{ id: withdraw } = { id: '' }] = await open()
    const csrf = csrfIn((await get(root, PAGE)).text)
    const { headers } = await post(root, '/console/invitations?org=globex', { csrf, withdraw })
    expect(headers.get('location')).toContain('done=gone')
    expect(await emails()).toEqual(before)
  })

  test('who may invite and not grant gives no role', async () => {
    await world.manage('PUT', '/v1/users/ida', { email: 'ida@acme.example', email_verified: true, name: 'ida' })
    const { status, text } = await send(await signedInTo(world, 'anna'), {
      email: 'c@new.example',
      roles: 'docs/exporter',
    })
    expect([status, text.includes('portcullis:directory:write')]).toEqual([403, true])
  })

  test('without a session, or with one that ended meanwhile, is told that nothing was written', async () => {
    const before = await emails()
    const form = { email: 'c@new.example', role: 'member' }
    const never = await post(createBrowser(world.issuer), PAGE, form)
    const browser = await signedInTo(world, 'root')
    const csrf = csrfIn((await get(browser, PAGE)).text)
    await world.manage('POST', '/v1/users/root/sessions:revoke')
    for (const { status, text } of [never, await post(browser, PAGE, { ...form, csrf })]) {
      expect([status, text.includes('Nothing was written')]).toEqual([403, true])
      expect(text).toContain(`to=${encodeURIComponent(PAGE)}`)
    }
    expect(await emails()).toEqual(before)
    root = await signedInTo(world, 'root')
  })

  test('whose sign-in is old sends nothing, and finds what was typed after the next one', async () => {
    const before = await emails()
    const csrf = csrfIn((await get(root, PAGE)).text)
    const sql = new pg.Client({ connectionString: world.connectionString })
    await sql.connect()
    await sql.query("update user_account set signed_out_at = null where user_id = 'root'")
    await sql.query(`update oidc_record set payload = jsonb_set(payload, '{authTime}', to_jsonb((payload ->> 'authTime')::int - 960))
      where kind = 'ConsoleSession' and payload ->> 'user' = 'root'`)
    await sql.end()
    const { status, text } = await post(root, PAGE, { csrf, email: 'late@new.example', role: 'owner' })
    expect([status, text.includes('sign-in?again=1')]).toEqual([403, true])
    expect(await emails()).toEqual(before)
    const filled = (await get(root, `${PAGE}&email=late%40new.example&role=owner`)).text
    expect(filled).toContain('value="late@new.example"')
    expect(filled).toContain('<option value="owner" selected>')
    expect(filled).toContain('sign in once more')
  })
})
