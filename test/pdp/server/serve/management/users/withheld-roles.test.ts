/** A membership that becomes active again, and a person whom a directory lets in again: who gives that must be able to give the roles. */
import { beforeEach, describe, expect, test } from 'vitest'
import { openTenantWorld } from '../tenant-world.ts'

const world = openTenantWorld()
const { write, send } = world

describe('a membership that withheld roles', () => {
  const role = (subject: string) => ({ id: `w-${subject}`, app: null, role: 'auditor', subject })
  const put = (token: string, status: string) =>
    send(token, 'PUT', `/v1/organizations/acme/members/${world.name}`, { role: 'member', status })
  const weak = (organization?: string) =>
    world.served.manager({
      client: `members-${organization ?? 'of-all'}`,
      scopes: ['directory:write'],
      ...(organization === undefined ? {} : { organization }),
    })
  beforeEach(() => send(world.admin, 'PUT', `/v1/users/${world.name}`, {}))

  test.each(['suspended', 'invited'])('as %s becomes active only by who may give them', async (status) => {
    await put(world.admin, status)
    await write('acme', [{ kind: 'role_grant', op: 'write', grant: role(`user:${world.name}`) }])
    for (const token of [await weak(), await weak('acme')])
      expect((await put(token, status)).status, 'what gives nothing needs no right').toBe(200)
    expect((await put(await weak(), 'active')).body).toMatchObject({
      code: 'permission_denied',
      detail: expect.stringContaining('logs:read'),
    })
    if (status === 'suspended')
      for (const token of [await weak('acme'), world.tenant]) expect((await put(token, 'active')).status).toBe(403)
    expect((await put(world.admin, 'active')).status).toBe(200)
    expect((await put(await weak(), 'active')).status, 'it counts already').toBe(200)
  })

  test.each([`user:NAME`, 'group:inner#member'])(
    'through a group, of which %s is a member, is no other',
    async (member) => {
      await put(world.admin, 'suspended')
      const group = `group:g${world.count}`
      await write('acme', [
        { kind: 'role_grant', op: 'write', grant: role(group) },
        tupleOf(group, member.replace('NAME', world.name)),
        tupleOf('group:inner', `user:${world.name}`),
      ])
      expect((await put(await weak(), 'active')).status).toBe(403)
      expect((await put(world.admin, 'active')).status).toBe(200)
    },
  )

  test('and the sign-in of somebody whom a directory has shut out returns only by who may give all their roles', async () => {
    const blocked = async () => {
      await put(world.admin, 'suspended')
      await world.served.sql.query(`update user_account set signed_out_at = 'infinity' where user_id = $1`, [
        world.name,
      ])
    }
    await blocked()
    await write('beta', [{ kind: 'role_grant', op: 'write', grant: role(`user:${world.name}`) }])
    expect((await put(await weak(), 'active')).status).toBe(403)
    const first = { role: 'viewer', status: 'active' }
    const path = `/v1/organizations/acme-eu/members/${world.name}`
    expect((await send(await weak(), 'PUT', path, first)).status, 'by a first membership').toBe(403)
    // Whom a tenant makes active stays shut out, so nothing elsewhere is asked or told.
    expect((await put(world.tenant, 'active')).status).toBe(200)
    expect((await put(world.admin, 'active')).status).toBe(200)
  })

  test('so does that of somebody who has them through a group elsewhere', async () => {
    await put(world.admin, 'suspended')
    await world.served.sql.query(`update user_account set signed_out_at = 'infinity' where user_id = $1`, [world.name])
    const group = `group:b${world.count}`
    await write('beta', [{ kind: 'role_grant', op: 'write', grant: role(group) }, tupleOf(group, `user:${world.name}`)])
    expect((await put(await weak(), 'active')).status).toBe(403)
    expect((await put(world.admin, 'active')).status).toBe(200)
  })

  test('is no obstacle where it withheld none', async () => {
    await put(world.admin, 'suspended')
    expect((await put(await weak(), 'active')).status).toBe(200)
  })

  const tupleOf = (object: string, subject: string) =>
    ({ kind: 'tuple', op: 'write', tuple: { object, relation: 'member', subject, expiresAtMs: null } }) as const
})
