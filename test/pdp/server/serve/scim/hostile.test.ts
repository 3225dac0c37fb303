/** What a directory that errs, or is in wrong hands, cannot do. */
import { describe, expect, test } from 'vitest'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import type { Membership } from '../../../../../pdp/shared/domain/membership.ts'
import { CONTEXT } from '../harness.ts'
import { at, group, mayActSince, membership, name, openWorld, patch, send, served, user } from './world.ts'

openWorld()

const join = (org: string, id: string, of: Membership | null) =>
  served.store.write(org, [{ kind: 'membership', user: id, membership: of }], { context: CONTEXT })
const ACTIVE = { role: 'member', status: 'active' } as const
const setActive = (id: string, value: boolean) => patch(at('Users', id), { op: 'replace', path: 'active', value })
const mayAct = (id: string) => mayActSince(id, Date.now() / 1_000 + 60)
const hashOf = async (id: string) =>
  (
    await served.sql.query<{ hash: string | null }>(
      'select password_hash as hash from user_account where user_id = $1',
      [id],
    )
  )[0]?.hash
const guestTuple = (id: string, object: string) =>
  served.store.write(
    'beta',
    [{ kind: 'tuple', op: 'write', tuple: { object, relation: 'member', subject: `user:${id}`, expiresAtMs: null } }],
    { context: CONTEXT },
  )
async function withPassword(): Promise<string> {
  const { id } = await user()
  await served.directory.putUser(
    { id, email: `${name}@x.test`, emailVerified: true, name: null, passwordHash: '$scrypt$x' },
    CONTEXT,
  )
  await served.sql.query(
    `insert into mailed_token (digest, kind, user_id, email, expires_at)
     values ($1, 'reset', $2, $3, now() + interval '1 hour')`,
    [`d-${name}`, id, `${name}@x.test`],
  )
  return id
}
const mailedTo = async (id: string) =>
  (await served.sql.query('select 1 from mailed_token where user_id = $1', [id])).length

describe('active: false', () => {
  test('signs out a person whom an administrator has suspended before', async () => {
    const { id } = await user()
    await join('acme', id, { role: 'member', status: 'suspended' })
    expect((await setActive(id, false)).status).toBe(200)
    expect(await mayAct(id)).toBe(false)
  })

  test('said again signs out who was a member elsewhere, and is not any more', async () => {
    const { id } = await user()
    await join('beta', id, ACTIVE)
    await setActive(id, false)
    expect(await mayAct(id)).toBe(true)
    await join('beta', id, null)
    await setActive(id, false)
    expect(await mayAct(id)).toBe(false)
  })

  test.each(['suspended', 'invited'] as const)(
    'is not outweighed by a membership elsewhere that is %s',
    async (status) => {
      const { id } = await user()
      await join('beta', id, { role: 'member', status })
      await setActive(id, false)
      expect(await mayAct(id)).toBe(false)
    },
  )

  test('is not implied by a change of something else', async () => {
    const { id } = await user()
    await join('acme', id, { role: 'member', status: 'suspended' })
    await patch(at('Users', id), { op: 'replace', path: 'title', value: 'Chief' })
    expect([await mayAct(id), await membership(id)]).toEqual([true, { role: 'member', status: 'suspended' }])
  })
})

describe('another address', () => {
  test('ends the password, what was mailed, and all sessions', async () => {
    const id = await withPassword()
    const since = Date.now() / 1_000 - 60
    expect(await mayActSince(id, since)).toBe(true)
    const operation = { op: 'replace', path: 'userName', value: `${name}-evil@x.test` }
    expect((await patch(at('Users', id), operation)).status).toBe(200)
    expect(await served.directory.user(id)).toMatchObject({ email: `${name}-evil@x.test`, emailVerified: false })
    expect([await hashOf(id), await mailedTo(id), await mayActSince(id, since)]).toEqual([null, 0, false])
  })

  test('is none when only the name changes, or the operator gave it already', async () => {
    const id = await withPassword()
    await patch(at('Users', id), { op: 'replace', path: 'displayName', value: 'Other' })
    await served.directory.putUser({ id, email: `${name}-2@x.test`, emailVerified: true, name: null }, CONTEXT)
    await patch(at('Users', id), { op: 'replace', path: 'userName', value: `${name}-2@x.test` })
    expect([await hashOf(id), await mailedTo(id)]).toEqual(['$scrypt$x', 1])
    expect(await served.directory.user(id)).toMatchObject({ emailVerified: true })
  })
})

describe('DELETE', () => {
  test.each([
    ['a relationship', (id: string) => guestTuple(id, `document:${name}`)],
    ['a group', (id: string) => guestTuple(id, `group:${name}`)],
    [
      'a role',
      (id: string) =>
        served.store.write(
          'beta',
          [
            {
              kind: 'role_grant',
              op: 'write',
              grant: { id: `g-${name}`, app: null, role: 'auditor', subject: `user:${id}` },
            },
          ],
          { context: CONTEXT },
        ),
    ],
  ])('of who has %s in another organization suspends and shuts out, and keeps the account', async (_name, give) => {
    const { id } = await user()
    await give(id)
    expect((await send('DELETE', at('Users', id))).status).toBe(204)
    expect(await membership(id)).toEqual({ role: 'member', status: 'suspended' })
    expect([(await served.directory.user(id))?.id, await mayAct(id)]).toEqual([id, false])
    expect((await send('GET', at('Users', id))).status).toBe(404)
  })

  test('gives back no role that a suspended membership withheld', async () => {
    const { id } = await user()
    const grant = { id: `g-${name}`, app: null, role: 'auditor', subject: `user:${id}` }
    await served.store.write('acme', [{ kind: 'role_grant', op: 'write', grant }], { context: CONTEXT })
    await join('beta', id, ACTIVE)
    await setActive(id, false)
    await send('DELETE', at('Users', id))
    const { permissions } = await served.pdp.held({ organization: 'acme', subject: { type: 'user', id }, app: null })
    expect([permissions, await mayAct(id)]).toEqual([[], true])
  })

  test('of an administrator by a group keeps the account', async () => {
    const manifest = {
      app: 'portcullis',
      audiences: [],
      permissions: { 'portcullis:directory:write': 'x' },
      roles: { administrator: { name: 'A', permissions: ['portcullis:directory:write'] } },
      model: null,
    }
    await served.store.write(ENVIRONMENT, [{ kind: 'manifest', manifest }], { context: CONTEXT })
    const { id } = await user()
    const { id: team } = await group({ members: [{ value: id }] })
    const grant = { id: `g-${name}`, app: 'portcullis', role: 'administrator', subject: `group:${team}` }
    await served.store.write('acme', [{ kind: 'role_grant', op: 'write', grant }], { context: CONTEXT })
    await send('DELETE', at('Users', id))
    expect([(await served.directory.user(id))?.id, await mayAct(id)]).toEqual([id, false])
  })
})

describe('who is blocked', () => {
  test('comes back by active: true, although the membership was activated before', async () => {
    const { id } = await user({ active: false })
    await join('acme', id, ACTIVE)
    expect(await mayAct(id)).toBe(false)
    await setActive(id, true)
    expect(await mayAct(id)).toBe(true)
  })

  test('is let in by the operator as a member of another organization, and not by that organization', async () => {
    const { id } = await user({ active: false })
    const path = `/v1/organizations/beta/members/${encodeURIComponent(id)}`
    const bound = await served.manager({ client: 'beta-admin', organization: 'beta' })
    await served.send('PUT', path, { token: bound, body: ACTIVE })
    expect(await mayAct(id)).toBe(false)
    await served.send('PUT', path, { token: await served.manager(), body: { role: 'member', status: 'suspended' } })
    expect(await mayAct(id)).toBe(false)
    expect((await served.send('PUT', path, { token: await served.manager(), body: ACTIVE })).status).toBe(200)
    expect(await mayAct(id)).toBe(true)
  })

  test('is so no more when the organization of the directory is deleted', async () => {
    const admin = await served.manager()
    for (const org of ['ended', 'ended~not'])
      await served.send('PUT', `/v1/organizations/${encodeURIComponent(org)}`, { token: admin, body: { name: org } })
    const [ended, stays] = await Promise.all(
      ['ended', 'ended~not'].map((organization) =>
        served.manager({ client: `${organization}-directory`, organization, scopes: ['scim'] }),
      ),
    )
    const { id } = await user({ active: false }, ended)
    const { id: neighbour } = await user({ active: false, userName: `${name}-2@x.test` }, stays)
    await served.send('DELETE', '/v1/clients/ended-directory', { token: admin })
    expect((await served.send('DELETE', '/v1/organizations/ended', { token: admin })).status).toBe(204)
    expect([await mayAct(id), await mayAct(neighbour)]).toEqual([true, false])
  })
})

describe('who left the organization', () => {
  test('and is a member of another one is invited, not made a member', async () => {
    const { id } = await user()
    await join('acme', id, null)
    await join('beta', id, ACTIVE)
    for (const value of [false, true, true, false, true]) await setActive(id, value)
    expect(await membership(id)).toEqual({ role: 'member', status: 'invited' })
  })

  test.each([
    { op: 'replace', path: 'title', value: 'Chief' },
    { op: 'replace', path: 'roles', value: [{ value: 'admin' }] },
    { op: 'replace', path: 'active', value: false },
  ])('is not a member again by %j', async (operation) => {
    const { id } = await user()
    await join('acme', id, null)
    expect((await patch(at('Users', id), operation)).status).toBe(200)
    expect(await membership(id)).toBe(null)
  })

  test('and belongs nowhere else comes back with active: true', async () => {
    const { id } = await user()
    await join('acme', id, null)
    await setActive(id, true)
    expect(await membership(id)).toEqual(ACTIVE)
  })
})

test.each([
  { op: 'remove', path: 'roles' },
  { op: 'replace', path: 'roles', value: [{ value: 'viewer' }] },
  { op: 'replace', path: 'title', value: 'Chief' },
])('an owner stays one after %j', async (operation) => {
  const { id } = await user()
  await join('acme', id, { role: 'owner', status: 'active' })
  expect((await patch(at('Users', id), operation)).status).toBe(200)
  expect(await membership(id)).toEqual({ role: 'owner', status: 'active' })
})

test.each(['id eq "\\u0000"', 'userName eq "a\\u0000"', 'externalId co "\\ud800"', 'emails[value eq "\\u0000"]'])(
  'the filter %s is refused',
  async (filter) => {
    const answer = await send('GET', `/Users?filter=${encodeURIComponent(filter)}`)
    expect([answer.status, answer.body.scimType]).toEqual([400, 'invalidFilter'])
  },
)
