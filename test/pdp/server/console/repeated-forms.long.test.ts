/** Forms of the console as people really send them: twice, from two tabs, and after a right has ended. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OwnWorld, startOwnWorld } from '../../../console/own-world.ts'
import { type Browser, hiddenFields } from '../../../support/browser.ts'
import { csrfIn, get, post, type Shown, signedInTo } from './visitor.ts'

let world: OwnWorld
let root: Browser
beforeAll(async () => {
  world = await startOwnWorld()
  root = await signedInTo(world, 'root')
})
afterAll(() => world?.close())

const unescaped = (text: string): string => text.replaceAll('&quot;', '"').replaceAll('&amp;', '&')
/** The hidden fields of the first form that has `mark`. */
function fieldsOf({ text }: Shown, mark: string): { readonly [name: string]: string } {
  const form = [...text.matchAll(/<form(?:(?!<\/form>).)*<\/form>/gs)].find(([one]) => one.includes(mark))?.[0] ?? ''
  return Object.fromEntries(Object.entries(hiddenFields(form)).map(([key, value]) => [key, unescaped(value)]))
}
const shownAt = (answer: Shown): string => answer.headers.get('location') ?? ''

describe('a right that ends between the form and its sending', () => {
  test('writes nothing and keeps what was typed', async () => {
    const grant = { app: 'portcullis', role: 'editor', subject: 'user:bob' }
    const { id } = await world.manage('POST', '/v1/organizations/acme/role-grants', grant)
    const bob = await signedInTo(world, 'bob')
    const path = '/console/relationships?org=acme'
    const csrf = csrfIn((await get(bob, path)).text)
    await world.manage('DELETE', `/v1/organizations/acme/role-grants/${id}`)
    const lines = 'doc:typed-with-care#viewer@user:bob'
    const origin = new URL(world.issuer).origin
    const { status, text } = await post(bob, path, { csrf, op: 'write', lines, action: 'confirm' }, { origin })
    expect([status, text.includes('Nothing was written'), text.includes(lines)]).toEqual([403, true, true])
    expect(
      (await world.manage('GET', '/v1/organizations/acme/relationships?object=doc:typed-with-care')).items,
    ).toEqual([])
  })
})

describe('a preview of relationships', () => {
  const path = '/console/relationships?org=acme'
  const previewOf = async (lines: string): Promise<{ readonly [name: string]: string }> => {
    const csrf = csrfIn((await get(root, path)).text)
    const shown = await post(root, path, { csrf, op: 'write', lines, action: 'preview' })
    return { ...fieldsOf(shown, 'value="confirm"'), action: 'confirm' }
  }

  test('is shown again when what is stored changed meanwhile', async () => {
    const tuple = 'doc:previewed#viewer@user:bob'
    const form = await previewOf(`${tuple} 2040-01-01T00:00:00Z`)
    await world.manage('POST', '/v1/organizations/acme/relationships', { write: [tuple] })
    const answer = await post(root, path, form)
    expect([answer.status, answer.text.includes('changed after the preview')]).toEqual([409, true])
    const { items } = await world.manage('GET', '/v1/organizations/acme/relationships?object=doc:previewed')
    expect(items).toMatchObject([{ expires_at: null }])
    const again = { ...fieldsOf(answer, 'value="confirm"'), action: 'confirm' }
    expect((await post(root, path, again)).status).toBe(303)
  })

  test('that is confirmed twice is done once, and says so twice', async () => {
    const form = await previewOf('doc:twice#viewer@user:bob')
    expect((await post(root, path, form)).status).toBe(303)
    expect((await post(root, path, form)).status).toBe(303)
  })

  test('shows no words of an address as a revision', async () => {
    const { text } = await get(root, `${path}&done=call+this+number`)
    expect(text).not.toContain('call this number')
  })
})

describe('a button of an entitlement', () => {
  const page = '/console/organization?org=acme'
  const path = '/v1/organizations/acme/entitlements/feature.twice'
  const put = (value: object) => world.manage('PUT', path, { value })

  test('that is pressed twice is done', async () => {
    await put({ enabled: true })
    const form = fieldsOf(await get(root, page), 'feature.twice')
    for (const _ of [1, 2]) expect(shownAt(await post(root, page, form))).toContain('done=enabled')
    expect(await world.manage('GET', path)).toMatchObject({ value: { enabled: false } })
  })

  test('of a page that is out of date writes nothing and says so', async () => {
    await put({ enabled: true })
    const form = fieldsOf(await get(root, page), 'feature.twice')
    await put({ enabled: true, seats: 9 })
    const to = shownAt(await post(root, page, form))
    expect((await get(root, to)).text).toContain('somebody changed this entitlement')
    expect(await world.manage('GET', path)).toMatchObject({ value: { enabled: true, seats: 9 } })
  })
})

describe('a model', () => {
  const page = '/console/model?org=acme&app=docs'
  const compared = async (text: string): Promise<{ readonly [name: string]: string }> => {
    const csrf = csrfIn((await get(root, page)).text)
    return { ...fieldsOf(await post(root, page, { csrf, text }), 'value="apply"'), text, whole: 'no', action: 'apply' }
  }

  test('that is put in force twice is in force, and from two tabs only the first', async () => {
    const { model } = await world.manage('GET', '/v1/apps/docs/manifest')
    const [first, second] = [await compared(`${model}type one\n`), await compared(`${model}type two\n`)]
    for (const _ of [1, 2]) expect(shownAt(await post(root, page, first))).toContain('done=1')
    const late = await post(root, page, second)
    expect([late.status, late.text.includes('changed after you compared'), late.text.includes('type two')]).toEqual([
      409,
      true,
      true,
    ])
    expect((await world.manage('GET', '/v1/apps/docs/manifest')).model).toContain('type one')
  })
})

describe('the stream of a receiver', () => {
  const page = '/console/streams?org=acme&stream=stream-of-failing'

  test('that is paused twice is paused, and by somebody else meanwhile keeps their reason', async () => {
    const form = { ...fieldsOf(await get(root, page), 'value="pause"'), reason: 'upgrade' }
    for (const _ of [1, 2]) expect(shownAt(await post(root, page, form))).toContain('done=pause')
    const to = shownAt(await post(root, page, { ...form, reason: 'another' }))
    expect((await get(root, to)).text).toContain('the stream changed after the page was shown')
    expect(await world.manage('GET', '/v1/streams/stream-of-failing')).toMatchObject({ reason: 'upgrade' })
  })
})

test('an invitation that is sent twice keeps the first link good', async () => {
  const page = '/console/invitations?org=acme'
  const form = { csrf: csrfIn((await get(root, page)).text), email: 'twice@new.example', role: 'member' }
  expect(shownAt(await post(root, page, form))).toContain('done=invited')
  const second = await post(root, page, form)
  expect([second.status, second.text.includes('invited already')]).toEqual([409, true])
  const again = { ...form, ...fieldsOf(second, 'Invite again') }
  expect(shownAt(await post(root, page, again))).toContain('done=invited')
})

test('a session that is ended twice has ended', async () => {
  await signedInTo(world, 'tom')
  const page = '/console/people?org=globex&user=tom'
  const form = fieldsOf(await get(root, page), 'name="session"')
  for (const _ of [1, 2]) expect(shownAt(await post(root, page, form))).toContain('done=sessions')
})

test('signing out counts from a page of an earlier session, too', async () => {
  const anna = await signedInTo(world, 'anna')
  const origin = new URL(world.issuer).origin
  const { text } = await post(anna, '/console/sign-out', { csrf: 'of-an-earlier-session' }, { origin })
  expect(text).toContain('You are signed out')
  expect((await get(anna, '/console')).status).toBe(303)
})
