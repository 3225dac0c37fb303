/** Memberships and roles change after a preview, and go back by another one. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { postgresStore } from '../../../../pdp/engine/store/postgres/postgres.ts'
import { DIRECTORY } from '../../../../pdp/shared/domain/journal.ts'
import { type OwnWorld, startOwnWorld } from '../../../console/own-world.ts'
import { type Browser, hiddenFields } from '../../../support/browser.ts'
import { context, put } from '../../../support/tuples.ts'
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

const membersOf = async (group: string): Promise<{ subject: string; expires_at: string }[]> =>
  (await world.manage('GET', `/v1/organizations/acme/relationships?object=${group}`)).items
const DAY_MS = 86_400_000

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

  test('that was not accepted yet and was ended is not made active by Undo', async () => {
    await world.manage('PUT', '/v1/organizations/acme/members/tom', { role: 'member', status: 'invited' })
    const done = await followed(await confirm(at({ what: 'member', user: 'tom', tier: '' })))
    expect(await memberOf('tom')).toBeNull()
    expect([text(done).includes('Done.'), undoIn(done)]).toEqual([true, ''])
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

  test('has an end through a group of its own, whose membership goes back by Undo', async () => {
    const until = { ...ROLE, until: '+3d' }
    const shown = await get(root, at(until))
    expect(text(shown)).toMatch(/role docs\/exporter for group:until-docs-exporter none held/)
    expect(text(shown)).toMatch(/group:until-docs-exporter#member@ ?user:bob none until 20/)
    expect(text(shown)).toMatch(/\+ gains user:bob docs:export organization:acme/)
    const done = await followed(await confirm(at(until)))
    expect(text(done)).toMatch(/docs \/ exporter through group:until-docs-exporter until 20/)
    const [held] = await membersOf('group:until-docs-exporter')
    const leftMs = Date.parse(held?.expires_at ?? '') - Date.now()
    expect([held?.subject, leftMs > 2 * DAY_MS, leftMs <= 3 * DAY_MS]).toEqual(['user:bob', true, true])
    const undo = /href="([^"]*)">Undo/.exec(done.text)?.[1]?.replaceAll('&amp;', '&') ?? ''
    expect((await get(root, undo)).text).toContain('group:until-docs-exporter#member@user:bob</textarea>')
    // Once more, and later: the group holds the role already, and the end alone is new.
    const later = text(await get(root, at({ ...ROLE, until: '+5d' })))
    expect([later.includes('for group:until'), / until 20\S+ \S+ UTC until 20/.test(later)]).toEqual([false, true])
    expect((await confirm(at({ ...ROLE, until: '+5d' }))).status).toBe(303)
  })

  test.each([
    ['', 'docs-exporter', 'until--docs-exporter'],
    ['docs-a', 'b', 'until-docs%2Da-b'],
    ['docs', 'a-b', 'until-docs-a-b'],
  ])('of app "%s" and role %s has an end through the group %s alone', async (app, role, group) => {
    const shown = text(await get(root, at({ ...ROLE, app, role, until: '+3d' })))
    expect(shown).toContain(`for group:${group} none held`)
  })

  test('with an end is not given while somebody has put others into its group, who would hold it for ever', async () => {
    const until = at({ ...ROLE, org: 'globex', until: '+3d' })
    const put = (what: 'write' | 'delete', tuple: string): Promise<unknown> =>
      world.manage('POST', '/v1/organizations/globex/relationships', { [what]: [tuple] })
    const first = await get(root, until)
    expect(first.status).toBe(200)
    const form = /<form method="post" action="\/console\/change.*?<\/form>/s.exec(first.text)?.[0] ?? ''
    const granted = async () =>
      (await world.manage('GET', '/v1/organizations/globex/role-grants?subject=group:until-docs-exporter')).items
    for (const member of ['user:mallory', 'group:outsiders#member']) {
      const tuple = `group:until-docs-exporter#member@${member}`
      await put('write', tuple)
      for (const answer of [await get(root, until), await post(root, until, hiddenFields(form))])
        expect([answer.status, text(answer).includes('has others in it')]).toEqual([409, true])
      expect(await granted()).toEqual([])
      await put('delete', tuple)
    }
    expect((await confirm(until)).status).toBe(303)
    expect(await granted()).toHaveLength(1)
  })

  test('with an end is never given, not even for a moment, when others join its group just before', async () => {
    const until = at({ ...ROLE, org: 'acme~eu', until: '+3d' })
    const sql = new pg.Client({ connectionString: world.connectionString })
    await sql.connect()
    const replica = await postgresStore({ connectionString: world.connectionString })
    try {
      // A grant waits for whoever holds the directory; a member joins without it.
      await sql.query(`begin`)
      await sql.query(`select 1 from revision where organization_id = '${DIRECTORY}' for update`)
      const sent = confirm(until)
      const waiting = 'select 1 from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))'
      await vi.waitFor(async () => expect((await sql.query(waiting)).rows).not.toEqual([]), 3_000)
      // Another replica writes: in this one, writers of the same organization wait for each other.
      await replica.write('acme~eu', [put('group:until-docs-exporter#member@user:mallory')], { context })
      await sql.query('commit')
      const answer = await sent
      expect([answer.status, text(answer).includes('has others in it')]).toEqual([409, true])
    } finally {
      await sql.end()
      await replica.close()
    }
    const of = '/v1/organizations/acme~eu/role-grants?subject=group:until-docs-exporter'
    expect((await world.manage('GET', of)).items).toEqual([])
    // A process that dies after a grant would leave it.
    const written = JSON.stringify(await world.manage('GET', '/v1/organizations/acme~eu/changes'))
    expect([written.includes('user:mallory'), written.includes('role_grant')]).toEqual([true, false])
  })

  test('with an end is not written when it changed after the preview', async () => {
    const until = at({ ...ROLE, subject: 'user:anna', until: '+3d' })
    const form =
      /<form method="post" action="\/console\/change.*?<\/form>/s.exec((await get(root, until)).text)?.[0] ?? ''
    await world.manage('POST', '/v1/organizations/acme/relationships', {
      write: ['group:until-docs-exporter#member@user:anna'],
    })
    const answer = await post(root, until, hiddenFields(form))
    expect([answer.status, text(answer).includes('changed after the preview')]).toEqual([409, true])
    const found = await membersOf('group:until-docs-exporter')
    expect(found.find(({ subject }) => subject === 'user:anna')?.expires_at).toBeNull()
  })

  test.each([
    [{ until: 'someday' }, 400, 'names no time'],
    [{ until: '-1d' }, 400, 'is over already'],
    [{ until: '+1d', everywhere: 'yes' }, 400, 'one organization'],
    [{ until: '+1d', op: 'delete' }, 400, 'one organization'],
    [{ until: '+1d', what: 'member', user: 'bob', tier: 'member' }, 400, 'one organization'],
    [{ until: '+1d', subject: 'device:1' }, 400, 'group'],
  ])('with the end %j has no preview', async (more, status, words) => {
    const shown = await get(root, at({ ...ROLE, ...more }))
    expect([shown.status, text(shown).includes(words)]).toEqual([status, true])
  })

  test('that is held already is nothing to do', async () => {
    const grant = { app: 'docs', role: 'exporter', subject: 'group:exporters' }
    await world.manage('POST', '/v1/organizations/acme/role-grants', grant)
    const twice = at({ ...ROLE, subject: 'group:exporters' })
    const shown = await get(root, twice)
    expect([text(shown).includes('it is so already'), shown.text.includes('Give the role')]).toEqual([true, false])
  })
})

test.each([
  [{ what: 'member', user: '' }],
  [{ what: 'member', user: 'a b' }],
  [{ what: 'member', user: 'bob', tier: 'owners' }],
  [{ what: 'member', user: 'bob', tier: 'member', status: 'invited' }],
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
  expect((await get(bob, at({ ...ROLE, until: '+1d' }))).status).toBe(403)
})

test('who may write in one organization alone reads that a stranger is invited, before and after', async () => {
  const role = { app: 'portcullis', role: 'administrator', subject: 'user:bob' }
  await world.manage('POST', '/v1/organizations/acme/role-grants', role)
  const bob = await signedInTo(world, 'bob')
  const path = at({ what: 'member', user: 'root', tier: 'member' })
  const shown = await get(bob, path)
  expect(text(shown)).toContain('are invited, and must accept')
  const form = /<form method="post" action="\/console\/change.*?<\/form>/s.exec(shown.text)?.[0] ?? ''
  const answer = await post(bob, path, hiddenFields(form))
  expect(await memberOf('root')).toMatchObject({ status: 'invited' })
  expect(answer.headers.get('location')).toContain('done=invited')
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

describe('the zone of a browser without scripts', () => {
  test('is chosen once, and days are those of it', async () => {
    const page = await get(root, '/console/relationships?org=acme')
    const form = /<form class="question zone".*?<\/form>/s.exec(page.text)?.[0] ?? ''
    const answer = await post(root, '/console/zone', { ...hiddenFields(form), zone: ' Pacific/Kiritimati ' })
    expect([answer.status, answer.headers.get('location')]).toEqual([
      303,
      `${world.issuer}/console/relationships?org=acme`,
    ])
    const then = await get(root, '/console/relationships?org=acme')
    expect(text(then)).toContain('Days are those of Pacific/Kiritimati')
    const sent = { ...hiddenFields(form), op: 'write', lines: 'doc:zone#viewer@user:bob 2099-01-31', action: 'preview' }
    expect(text(await post(root, '/console/relationships?org=acme', sent))).toContain('2099-01-31 10:00:00 UTC')
  })

  test.each([
    [{ csrf: 'wrong' }, {}, 403],
    [{}, { origin: 'https://elsewhere.example' }, 403],
    [{ to: 'https://elsewhere.example/' }, {}, 303],
    [{ to: '//elsewhere.example/console' }, {}, 303],
    [{ zone: 'Mars/Olympus; Path=/' }, {}, 303],
  ])('is not taken from %j with %j further than it should', async (more, headers, status) => {
    const page = await get(root, '/console/relationships?org=acme')
    const form = /<form class="question zone".*?<\/form>/s.exec(page.text)?.[0] ?? ''
    const answer = await post(root, '/console/zone', { ...hiddenFields(form), ...more }, headers)
    expect(answer.status).toBe(status)
    if (status === 303) expect(answer.headers.get('location')).toMatch(`${world.issuer}/console`)
    if ('zone' in more) expect(answer.headers.get('set-cookie')).toMatch(/^portcullis_zone=UTC; Path=\/console;/)
  })
})
