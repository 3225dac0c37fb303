import { afterEach, describe, expect, test } from 'vitest'
import type { Mail } from '../../../../../pdp/identity/people/mail/mail.ts'
import { CONTEXT, serve } from '../harness.ts'
import { openTenantWorld } from './tenant-world.ts'

const mails: Mail[] = []
const world = openTenantWorld({ mailer: { send: async (mail) => void mails.push(mail) } })
afterEach(async () => {
  await world.served.sql.query('delete from attempt')
  await world.served.sql.query('delete from mailed_token')
  mails.length = 0
})
const PATH = '/v1/organizations/acme/invitations'
const invite = (body: object, { token = world.admin, path = PATH } = {}) => world.send(token, 'POST', path, body)
const bob = { email: 'bob@new.example', role: 'member' }
const open = async (token = world.admin) => (await world.send(token, 'GET', PATH)).body.items

describe('an invitation', () => {
  test('is made, listed and withdrawn, and its mail has a link that nobody else learns', async () => {
    const made = await invite({ ...bob, roles: [{ role: 'auditor' }] })
    expect(made).toMatchObject({
      status: 201,
      body: { ...bob, roles: [{ app: null, role: 'auditor' }], invited_by: 'service:admin' },
    })
    expect(mails.map(({ to }) => to)).toEqual([bob.email])
    const token = /\?token=([\w-]{43})\n/.exec(mails[0]?.text ?? '')?.[1] ?? 'none'
    expect(JSON.stringify([made.body, await open()])).not.toContain(token)
    expect(await open()).toEqual([made.body])
    const path = `${PATH}/${made.body.id}`
    expect((await world.send(world.admin, 'DELETE', path)).status).toBe(204)
    expect((await world.send(world.admin, 'DELETE', path)).status).toBe(404)
    expect(await open()).toEqual([])
    const changes = await world.served.sql.query<{ op: string }>(
      `select change ->> 'op' as op, actor from change_log where change ->> 'id' = $1 order by revision`,
      [made.body.id],
    )
    expect(changes).toEqual([
      { op: 'write', actor: 'service:admin' },
      { op: 'delete', actor: 'service:admin' },
    ])
  })

  test('gets the same answer for an address with an account and without one', async () => {
    const user = { id: 'known', email: 'known@x.example', emailVerified: true, name: 'Known', passwordHash: null }
    await world.served.directory.putUser(user, CONTEXT)
    const shapeOf = async (email: string) => {
      const { status, body } = await invite({ email, role: 'member' })
      return [status, Object.keys(body), body.roles, body.role]
    }
    expect(await shapeOf('known@x.example')).toEqual(await shapeOf('nobody@x.example'))
    expect(mails.map(({ subject }) => subject)).toEqual([mails[0]?.subject, mails[0]?.subject])
  })

  test('of the same address replaces the one before', async () => {
    const first = await invite(bob)
    const second = await invite({ email: 'BOB@new.example', role: 'viewer' })
    expect(second.body).toMatchObject({ id: first.body.id, role: 'viewer' })
    expect(await open()).toEqual([second.body])
  })

  test.each([
    ['no address', { role: 'member' }],
    ['no tier', { email: bob.email }],
    ['an unknown tier', { ...bob, role: 'king' }],
    ['two addresses', { ...bob, email: 'a@x.example,b@x.example' }],
    ['an address that a mail program could misread', { ...bob, email: '<a@x.example>' }],
    ['a line break in the address', { ...bob, email: 'a@x.example\r\nBcc:b@x.example' }],
    ['an unknown role', { ...bob, roles: [{ role: 'nobody' }] }],
    ['a role of an unknown app', { ...bob, roles: [{ app: 'none', role: 'auditor' }] }],
    ['too many roles', { ...bob, roles: Array.from({ length: 21 }, (_, i) => ({ role: `r${i}` })) }],
    ['the same role twice', { ...bob, roles: [{ role: 'auditor' }, { role: 'auditor' }] }],
    ['an unknown language', { ...bob, language: 'tlh' }],
    ['an unknown member', { ...bob, admin: true }],
  ])('is refused with %s, and nothing is mailed', async (_, body) => {
    expect((await invite(body)).status).toBe(400)
    expect([mails, await open()]).toEqual([[], []])
  })

  test('into an organization that does not exist is 404', async () => {
    expect((await invite(bob, { path: '/v1/organizations/none/invitations' })).status).toBe(404)
  })
})

describe('a client', () => {
  const withScopes = (scopes: readonly string[], organization?: string) =>
    world.served.manager({
      client: `c${scopes.join('-')}`,
      scopes,
      ...(organization === undefined ? {} : { organization }),
    })

  test.each([
    ['without a scope for members', ['roles:write'], bob, 403],
    ['that may only read them', ['directory:read'], bob, 403],
    ['without a scope for roles, giving one', ['directory:write'], { ...bob, roles: [{ role: 'auditor' }] }, 403],
    ['without a scope for roles, giving none', ['directory:write'], bob, 201],
    ['with both', ['directory:write', 'roles:write'], { ...bob, roles: [{ role: 'auditor' }] }, 201],
  ])('%s', async (_, scopes, body, status) => {
    expect((await invite(body, { token: await withScopes(scopes) })).status).toBe(status)
  })

  test('that is bound invites into its own organizations, to roles that it holds, and sees no others', async () => {
    const { tenant: token } = world
    expect((await invite(bob, { token, path: '/v1/organizations/beta/invitations' })).status).toBe(403)
    expect((await world.send(token, 'GET', '/v1/organizations/beta/invitations')).status).toBe(403)
    const given = { ...bob, roles: [{ role: 'auditor' }] }
    expect((await invite(given, { token })).status).toBe(403)
    expect((await invite(bob, { token })).status).toBe(201)
    expect((await invite(bob, { token, path: '/v1/organizations/acme-eu/invitations' })).status).toBe(201)
    const grant = { id: 'held', app: null, role: 'auditor', subject: 'service:acme-admin' }
    await world.write('acme', [{ kind: 'role_grant', op: 'write', grant }])
    expect((await invite(given, { token })).status).toBe(201)
    await world.write('acme', [{ kind: 'role_grant', op: 'delete', grant }])
    const elsewhere = await invite(bob, { path: '/v1/organizations/beta/invitations' })
    expect((await world.send(token, 'DELETE', `${PATH}/${elsewhere.body.id}`)).status).toBe(404)
  })
})

describe('mails', () => {
  const statusOf = async (body: object, path = PATH) => (await invite(body, { path })).status

  test('to one address are few in an hour: of one organization, and of all together', async () => {
    const statuses = []
    for (const org of ['acme', 'acme', 'acme', 'acme', 'beta'])
      statuses.push(await statusOf(bob, `/v1/organizations/${org}/invitations`))
    expect(statuses).toEqual([201, 201, 201, 429, 201])
    expect(await statusOf({ ...bob, email: 'BOB@NEW.example' })).toBe(429)
    expect(await statusOf({ ...bob, email: 'other@new.example' })).toBe(201)
    expect(mails).toHaveLength(5)
    // What was refused changed nothing of the invitation that there is.
    expect(await open()).toHaveLength(2)
  })

  test('of one organization are bounded too, and another one is not kept from its own', async () => {
    await world.served.sql.query(`update attempt set tries = 0`)
    expect(await statusOf(bob)).toBe(201)
    await world.served.sql.query('update attempt set tries = 200')
    expect(await statusOf({ ...bob, email: 'next@new.example' })).toBe(429)
    expect(await statusOf({ ...bob, email: 'next@new.example' }, '/v1/organizations/beta/invitations')).toBe(201)
  })

  test('are not sent by a server that cannot: the answer says which setting is missing', async () => {
    const served = await serve()
    const token = await served.manager()
    await served.send('PUT', '/v1/organizations/acme', { token, body: { name: 'Acme' } })
    const answer = await served.send('POST', PATH, { token, body: bob })
    expect([answer.status, answer.body.detail]).toEqual([409, expect.stringContaining('PORTCULLIS_SMTP_URL')])
    await served.close()
  })
})
