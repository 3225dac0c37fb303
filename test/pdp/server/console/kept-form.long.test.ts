/** Forms of the console that come when the session is over, or the sign-in is too old to write. */
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type OwnWorld, startOwnWorld } from '../../../console/own-world.ts'
import type { Browser } from '../../../support/browser.ts'
import { csrfIn, get, post, type Shown, signedInTo } from './visitor.ts'

let world: OwnWorld
let root: Browser
beforeAll(async () => {
  world = await startOwnWorld()
})
afterAll(() => world?.close())
beforeEach(async () => {
  root = await signedInTo(world, 'root')
})

const LINES = Array.from({ length: 200 }, (_, i) => `doc:kept${i}#viewer@user:bob`).join('\n')
const FORMS = [
  ['/console/relationships?org=acme', { op: 'write', lines: LINES, action: 'confirm' }],
  [
    '/console/model?org=acme&app=docs',
    { text: 'model\n  schema 1.1\ntype typed', version: '1', whole: 'no', action: 'apply' },
  ],
  ['/console/organization?org=acme', { key: 'feature.export', enabled: 'false' }],
  ['/console/invitations?org=acme', { email: 'kept@new.example', role: 'member' }],
  ['/console/streams?org=acme&stream=stream-of-failing', { action: 'pause', reason: 'typed with care' }],
  ['/console/people?org=acme&user=tom', { all: '1' }],
] as const
const own = () => ({ origin: new URL(world.issuer).origin })
const unescaped = (text: string): string =>
  text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<').replaceAll('&amp;', '&')
const hiddenIn = ({ text }: Shown): { readonly [name: string]: string } =>
  Object.fromEntries(
    Array.from(text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g), ([, key = '', value = '']) => [
      key,
      unescaped(value),
    ]),
  )
async function age(): Promise<void> {
  const sql = new pg.Client({ connectionString: world.connectionString })
  await sql.connect()
  await sql.query("update user_account set signed_out_at = null where user_id = 'root'")
  await sql.query(`update oidc_record set payload = jsonb_set(payload, '{authTime}', to_jsonb((payload ->> 'authTime')::int - 960))
    where kind = 'ConsoleSession' and payload ->> 'user' = 'root'`)
  await sql.end()
}

describe.each(FORMS)('a form of %s', (path, form) => {
  test('keeps every field when the session is over', async () => {
    const csrf = csrfIn((await get(root, path)).text)
    await world.manage('POST', '/v1/users/root/sessions:revoke')
    const answer = await post(root, path, { ...form, csrf }, own())
    expect(answer.text).toContain('Nothing was written')
    expect(hiddenIn(answer)).toEqual(form)
  })

  test('keeps every field when the sign-in is too old', async () => {
    const csrf = csrfIn((await get(root, path)).text)
    await age()
    const answer = await post(root, path, { ...form, csrf }, own())
    expect([answer.status, answer.text.includes('Nothing was written')]).toEqual([403, true])
    expect(hiddenIn(answer)).toMatchObject(form)
  })
})

test('a kept form counts after the next sign-in, once the person has seen it again', async () => {
  const [path, form] = FORMS[0]
  const csrf = csrfIn((await get(root, path)).text)
  await world.manage('POST', '/v1/users/root/sessions:revoke')
  const over = await post(root, path, { ...form, csrf }, own())
  root = await signedInTo(world, 'root')
  const shown = await post(root, path, hiddenIn(over), own())
  expect(shown.text).toContain('Nothing was written yet')
  expect(shown.text).toContain('root')
  const written = await post(root, path, hiddenIn(shown), own())
  expect(written.status).toBe(303)
})

test('the link to sign in again of a long preview cuts no line', async () => {
  const [path, { lines }] = FORMS[0]
  const csrf = csrfIn((await get(root, path)).text)
  await age()
  const { text } = await post(root, path, { csrf, op: 'write', lines, action: 'preview' }, own())
  const to = Array.from(text.matchAll(/href="([^"]+again=1[^"]*)"/g), ([, url = '']) => unescaped(url))
  expect(to.length).toBeGreaterThan(0)
  for (const url of to) {
    const back = new URL(new URL(url, world.issuer).searchParams.get('to') ?? '', world.issuer)
    expect(back.searchParams.get('lines')).toBeNull()
  }
})

test('a form of another site is kept for nobody', async () => {
  const [path, form] = FORMS[0]
  const foreign = { origin: 'https://evil.example' }
  const signedIn = await post(root, path, form, foreign)
  await world.manage('POST', '/v1/users/root/sessions:revoke')
  for (const { status, text } of [signedIn, await post(root, path, form, foreign)])
    expect([status, text.includes('doc:kept0')]).toEqual([403, false])
})
