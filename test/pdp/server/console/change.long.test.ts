/** Memberships and roles change after a preview, and go back by another one. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OwnWorld, startOwnWorld } from '../../../console/own-world.ts'
import { type Browser, hiddenFields } from '../../../support/browser.ts'
import { get, post, type Shown, signedInTo } from './visitor.ts'

let world: OwnWorld
let root: Browser
beforeAll(async () => {
  world = await startOwnWorld()
  root = await signedInTo(world, 'root')
})
afterAll(() => world?.close())

const at = (parameters: { readonly [name: string]: string }): string =>
  `/console/change?${new URLSearchParams({ org: 'acme', ...parameters })}`
const text = ({ text: page }: Shown): string => page.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')
/** The form of a preview is sent as it stands. */
async function confirm(path: string): Promise<Shown> {
  const shown = await get(root, path)
  const form = /<form method="post" action="\/console\/change[^>]*>.*?<\/form>/s.exec(shown.text)?.[0] ?? ''
  return post(root, path, hiddenFields(form))
}
const followed = async (answer: Shown): Promise<Shown> => get(root, new URL(answer.headers.get('location') ?? '').href)
const undoIn = ({ text: page }: Shown): string =>
  /href="(\/console\/change[^"]*)">Undo/.exec(page)?.[1]?.replaceAll('&amp;', '&') ?? ''
const memberOf = async (user: string): Promise<unknown> =>
  world.manage('GET', `/v1/organizations/acme/members/${user}`).catch(() => null)

const SUSPENSION = { what: 'member', user: 'bob', tier: 'member', status: 'suspended' }
const ROLE = { what: 'role', op: 'write', app: 'docs', role: 'exporter', subject: 'user:bob' }

describe('a membership', () => {
  test('is suspended after a preview of what is lost, and restored by Undo', async () => {
    const preview = text(await get(root, at(SUSPENSION)))
    expect(preview).toMatch(/member, active .*member, suspended/)
    expect(preview).toMatch(/− loses user:bob member organization:acme/)
    expect(preview).toMatch(/− loses user:bob viewer doc:2/)
    const done = await followed(await confirm(at(SUSPENSION)))
    expect(await memberOf('bob')).toMatchObject({ status: 'suspended' })
    expect(text(await get(root, undoIn(done)))).toMatch(/\+ gains user:bob viewer doc:2/)
    await confirm(undoIn(done))
    expect(await memberOf('bob')).toMatchObject({ role: 'member', status: 'active' })
  })

  test('is made and ended', async () => {
    const done = await followed(await confirm(at({ what: 'member', user: 'tom', tier: 'viewer' })))
    expect(await memberOf('tom')).toMatchObject({ role: 'viewer', status: 'active' })
    await confirm(undoIn(done))
    expect(await memberOf('tom')).toBeNull()
  })

  test('is not written when it changed after the preview', async () => {
    const shown = await get(root, at(SUSPENSION))
    const form = /<form method="post" action="\/console\/change.*?<\/form>/s.exec(shown.text)?.[0] ?? ''
    await world.manage('PUT', '/v1/organizations/acme/members/bob', { role: 'admin', status: 'active' })
    const answer = await post(root, at(SUSPENSION), hiddenFields(form))
    expect([answer.status, text(answer).includes('changed after the preview')]).toEqual([409, true])
    expect(await memberOf('bob')).toMatchObject({ role: 'admin', status: 'active' })
    await world.manage('PUT', '/v1/organizations/acme/members/bob', { role: 'member', status: 'active' })
  })

  test('that somebody else must accept says why it was refused', async () => {
    const answer = await confirm(at({ what: 'member', user: 'nobody-there', tier: 'member' }))
    expect([answer.status, text(answer).includes('there is no user nobody-there')]).toEqual([400, true])
  })
})

describe('a role', () => {
  test('is given after a preview of its permissions, and taken by Undo', async () => {
    expect(text(await get(root, at(ROLE)))).toMatch(/\+ gains user:bob docs:export organization:acme/)
    const done = await followed(await confirm(at(ROLE)))
    expect(text(done)).toMatch(/docs \/ exporter directly here Take away/)
    expect(text(await get(root, undoIn(done)))).toMatch(/− loses user:bob docs:export/)
    await confirm(undoIn(done))
    expect((await world.manage('GET', '/v1/organizations/acme/role-grants?subject=user:bob')).items).toEqual([])
  })

  test('is given everywhere by who may, with its way back', async () => {
    const everywhere = { ...ROLE, everywhere: 'yes' }
    expect(text(await get(root, at(everywhere)))).toMatch(/every organization.*at least 1 gained/)
    const done = await followed(await confirm(at(everywhere)))
    await confirm(undoIn(done))
    expect((await world.manage('GET', '/v1/role-grants?subject=user:bob')).items).toEqual([])
  })

  test('has an end through a group that holds it', async () => {
    await world.manage('POST', '/v1/organizations/acme/role-grants', {
      app: 'docs',
      role: 'exporter',
      subject: 'group:exporters',
    })
    const page = await get(root, at(ROLE))
    expect(page.text).toContain(encodeURIComponent('group:exporters#member@user:bob'))
    const joining = '/console/relationships?org=acme'
    const csrf = /name="csrf" value="([^"]+)"/.exec(page.text)?.[1] ?? ''
    const lines = 'group:exporters#member@user:bob'
    const shown = text(await post(root, joining, { csrf, op: 'write', lines, until: '+3d', action: 'preview' }))
    expect(shown).toMatch(/\+ gains user:bob docs:export organization:acme/)
  })

  test('that is held already is nothing to do', async () => {
    const twice = at({ ...ROLE, subject: 'group:exporters' })
    const shown = await get(root, twice)
    expect([text(shown).includes('it is so already'), shown.text.includes('Give the role')]).toEqual([true, false])
  })
})

test.each([
  [{ what: 'member', user: '' }],
  [{ what: 'member', user: 'a b' }],
  [{ what: 'role', role: '', subject: 'user:bob' }],
  [{ what: 'role', role: 'exporter', subject: '' }],
  [{ what: 'role', role: 'exporter', subject: 'user:' }],
  [{ what: 'tuple', role: 'exporter', subject: 'user:bob' }],
  [{}],
])('the address %j names no change', async (parameters) => {
  expect((await get(root, at(parameters))).status).toBe(400)
})

test('nobody previews or writes what they may not', async () => {
  const anna = await signedInTo(world, 'anna')
  const bob = await signedInTo(world, 'bob')
  expect((await get(bob, at(ROLE))).status).toBe(403)
  expect((await get(bob, at(SUSPENSION))).status).toBe(403)
  expect((await get(anna, at({ ...ROLE, everywhere: 'yes' }))).status).toBe(403)
})

test('a preview says nothing of who exists in another organization', async () => {
  const role = { app: 'portcullis', role: 'administrator', subject: 'user:anna' }
  await world.manage('POST', '/v1/organizations/acme/role-grants', role)
  const anna = await signedInTo(world, 'anna')
  const told = async (user: string): Promise<string> =>
    text(await get(anna, at({ ...SUSPENSION, user })))
      .replaceAll(user, '…')
      .replaceAll(/[0-9a-f-]{36}/g, '')
  expect(await told('tom')).toBe(await told('zed'))
  expect(await told('tom')).toContain('Preview')
})
