import { describe, expect, test } from 'vitest'
import { ENVIRONMENT, TOKENS } from '../../../../../pdp/shared/domain/journal.ts'
import { CONTEXT } from '../harness.ts'
import { at, find, group, mayActSince, membership, name, openWorld, patch, send, served, TYPE, user } from './world.ts'

openWorld()

describe('a user', () => {
  test('becomes an account and an active member, and is shown with its address and version', async () => {
    const answer = await send('POST', '/Users', {
      body: {
        schemas: ['x'],
        userName: `${name}@x.test`,
        externalId: 'e1',
        displayName: 'Ann Lee',
        password: 'ignored',
        active: true,
      },
    })
    const { id, meta } = answer.body
    expect(answer.headers.get('content-type')).toBe('application/scim+json; charset=utf-8')
    expect(answer.headers.get('location')).toBe(meta.location)
    expect(answer.headers.get('etag')).toBe(meta.version)
    expect(answer.body).toMatchObject({
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
      userName: `${name}@x.test`,
      externalId: 'e1',
      active: true,
      roles: [{ value: 'member' }],
      meta: { resourceType: 'User', location: `https://id.example.test/scim/v2/Users/${encodeURIComponent(id)}` },
    })
    expect(JSON.stringify(answer.body)).not.toContain('ignored')
    expect(id).toMatch(/^acme~/)
    // A directory's word does not verify an address.
    expect(await served.directory.user(id)).toEqual({
      id,
      email: `${name}@x.test`,
      emailVerified: false,
      name: 'Ann Lee',
    })
    expect(await membership(id)).toEqual({ role: 'member', status: 'active' })
    expect((await send('GET', at('Users', id))).body).toEqual(answer.body)
  })

  test('may come inactive, in another tier, with an address of its own', async () => {
    const { id } = await user({
      active: 'False',
      roles: [{ value: 'Developer' }],
      userName: name,
      emails: [{ value: 'x@y.test' }, { value: `${name}@z.test`, primary: true }],
    })
    expect(await membership(id)).toEqual({ role: 'developer', status: 'suspended' })
    expect(await served.directory.user(id)).toMatchObject({ email: `${name}@z.test`, name: 'Ann Lee' })
  })

  test.each([
    [{ userName: 'taken@acme.test', emails: [{ value: 'alice@acme.test' }] }, 409, 'uniqueness'],
    [{ userName: 'ALICE@acme.test' }, 409, 'uniqueness'],
    [{ userName: 'a', emails: [{ value: 'no address' }] }, 400, 'invalidValue'],
    [{ userName: 'a', roles: [{ value: 'owner' }] }, 400, 'invalidValue'],
    [{ userName: 'a', roles: [{ value: 'king' }] }, 400, 'invalidValue'],
    [{ userName: 'a', roles: [{ value: 'admin' }, { value: 'viewer' }] }, 400, 'invalidValue'],
    [{ displayName: 'no user name' }, 400, 'invalidValue'],
    [[], 400, 'invalidSyntax'],
  ])('as %j is refused', async (body, status, scimType) => {
    const answer = await send('POST', '/Users', { body })
    expect([answer.status, answer.body]).toEqual([
      status,
      {
        schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
        status: String(status),
        scimType,
        detail: expect.any(String),
      },
    ])
  })

  test('is there once: the same user name is a conflict, and nothing of the second is left', async () => {
    await user()
    const before = (await find('Users', 'count=0')).totalResults
    const second = await send('POST', '/Users', {
      body: { userName: `${name.toUpperCase()}@X.test`, emails: [{ value: `${name}@other.test` }] },
    })
    expect([second.status, second.body.scimType]).toEqual([409, 'uniqueness'])
    expect((await find('Users', 'count=0')).totalResults).toBe(before)
    expect(await served.directory.userByEmail(`${name}@other.test`)).toBe(null)
  })

  test('is replaced by PUT; what it does not say about active and roles stays', async () => {
    const { id } = await user({ active: false, title: 'Chief', roles: [{ value: 'admin' }] })
    const { status, body } = await send('PUT', at('Users', id), {
      body: { userName: `${name}-2@x.test`, displayName: 'New' },
    })
    expect([status, body.active, body.title, body.roles]).toEqual([
      200,
      false,
      undefined,
      [{ value: 'admin', primary: true }],
    ])
    expect(await served.directory.user(id)).toMatchObject({ email: `${name}-2@x.test`, name: 'New' })
  })

  test('gets the role that Entra ID adds beside the former one', async () => {
    const { id } = await user()
    await patch(at('Users', id), { op: 'Add', path: 'roles', value: [{ value: 'admin' }] })
    expect(await membership(id)).toEqual({ role: 'admin', status: 'active' })
    await patch(at('Users', id), { op: 'Replace', path: 'roles[primary eq "True"].value', value: 'viewer' })
    expect((await membership(id))?.role).toBe('viewer')
  })

  test('keeps the address that the operator gave it when the directory changes something else', async () => {
    const { id } = await user()
    await served.directory.putUser(
      { id, email: `${name}@operator.test`, emailVerified: true, name: 'Operator' },
      CONTEXT,
    )
    expect((await patch(at('Users', id), { op: 'replace', path: 'title', value: 'Chief' })).status).toBe(200)
    expect(await served.directory.user(id)).toMatchObject({ email: `${name}@operator.test`, emailVerified: true })
  })

  test('whose address another user has stays as it was', async () => {
    const { id } = await user()
    const { status, body } = await patch(
      at('Users', id),
      { op: 'replace', path: 'title', value: 'X' },
      { op: 'replace', path: 'userName', value: 'alice@acme.test' },
    )
    expect([status, body.scimType]).toEqual([409, 'uniqueness'])
    expect((await send('GET', at('Users', id))).body).toMatchObject({ userName: `${name}@x.test` })
    expect((await send('GET', at('Users', id))).body.title).toBe(undefined)
  })
})

describe('who is deactivated', () => {
  test.each([
    ['Okta', { op: 'replace', value: { active: false } }],
    ['Entra ID', { op: 'Replace', path: 'active', value: 'False' }],
  ])(
    'by %s is signed out for good, in the same write, and comes back with the next sign-in',
    async (_name, operation) => {
      const { id } = await user()
      const now = Math.floor(Date.now() / 1_000)
      expect(await mayActSince(id, now + 60)).toBe(true)
      const before = (await served.store.vector([TOKENS])).logs.get(TOKENS)?.revision
      expect((await patch(at('Users', id), operation)).body.active).toBe(false)
      expect(await membership(id)).toMatchObject({ status: 'suspended' })
      expect(await mayActSince(id, now + 1_000_000)).toBe(false)
      await served.sessions.revokeUser(id, CONTEXT)
      expect(await mayActSince(id, now + 1_000_000)).toBe(false)
      expect(
        (
          await served.sql.query(
            "select 1 from (select type, payload from outbox union all select type, payload from outbox_arrival) events where type = 'user.signed_out' and payload ->> 'user' = $1",
            [id],
          )
        ).length,
      ).toBe(2)
      expect(before).toEqual(expect.any(Number))

      expect((await patch(at('Users', id), { op: 'replace', path: 'active', value: true })).body.active).toBe(true)
      expect(await mayActSince(id, now - 60)).toBe(false)
      expect(await mayActSince(id, now + 60)).toBe(true)
    },
  )

  test('cannot sign in with a password, which comes back with them', async () => {
    const { id } = await user()
    await served.directory.putUser(
      { id, email: `${name}@x.test`, emailVerified: false, name: null, passwordHash: '$scrypt$x' },
      CONTEXT,
    )
    await patch(at('Users', id), { op: 'replace', path: 'active', value: false })
    expect((await served.directory.userByEmail(`${name}@x.test`))?.passwordHash).toBe(null)
    await patch(at('Users', id), { op: 'replace', path: 'active', value: true })
    expect((await served.directory.userByEmail(`${name}@x.test`))?.passwordHash).toBe('$scrypt$x')
  })

  test('and is a member of an organization below is signed out as well', async () => {
    const { id } = await user()
    await served.store.write(
      'acme-eu',
      [{ kind: 'membership', user: id, membership: { role: 'member', status: 'active' } }],
      { context: CONTEXT },
    )
    await patch(at('Users', id), { op: 'replace', path: 'active', value: false })
    expect(await mayActSince(id, Date.now() / 1_000 + 60)).toBe(false)
  })
})

describe('a user who also belongs elsewhere', () => {
  async function shared(): Promise<string> {
    const { id } = await user()
    await served.store.write(
      'beta',
      [{ kind: 'membership', user: id, membership: { role: 'member', status: 'active' } }],
      { context: CONTEXT },
    )
    return id
  }

  test('loses what they have here, and keeps their sign-in', async () => {
    const id = await shared()
    await patch(at('Users', id), { op: 'replace', path: 'active', value: false })
    expect(await membership(id)).toMatchObject({ status: 'suspended' })
    expect(await mayActSince(id, Date.now() / 1_000)).toBe(true)
    expect((await send('DELETE', at('Users', id))).status).toBe(204)
    expect([await membership(id), await membership(id, 'beta')]).toEqual([
      { role: 'member', status: 'suspended' },
      { role: 'member', status: 'active' },
    ])
    expect(await served.directory.user(id)).toMatchObject({ id })
  })

  test('gets no other address from this directory, by any spelling', async () => {
    const id = await shared()
    for (const value of [{ userName: `${name}-evil@x.test` }, { emails: [{ value: `${name}-evil@x.test` }] }]) {
      const answer = await patch(at('Users', id), { op: 'replace', value })
      expect([answer.status, answer.body.scimType]).toEqual([403, undefined])
    }
    expect((await send('PUT', at('Users', id), { body: { userName: `${name}-evil@x.test` } })).status).toBe(403)
    expect(await served.directory.user(id)).toMatchObject({ email: `${name}@x.test` })
    expect((await patch(at('Users', id), { op: 'replace', path: 'displayName', value: 'New name' })).status).toBe(200)
  })
})

test.each([
  ['directly', null],
  ['through a group', 'admins'],
])('an administrator, %s, gets no other address from a directory', async (_name, of) => {
  const { id } = await user()
  const subject = of === null ? `user:${id}` : `group:${of}`
  const tuple = { object: `group:${of}`, relation: 'member', subject: `user:${id}`, expiresAtMs: null }
  await served.store.write(
    ENVIRONMENT,
    [
      {
        kind: 'manifest',
        manifest: {
          app: 'portcullis',
          audiences: [],
          permissions: { 'portcullis:directory:write': 'x' },
          roles: { administrator: { name: 'A', permissions: ['portcullis:directory:write'] } },
          model: null,
        },
      },
    ],
    { context: CONTEXT },
  )
  await served.store.write(
    'acme',
    [
      {
        kind: 'role_grant',
        op: 'write',
        grant: { id: `g-${name}`, app: 'portcullis', role: 'administrator', subject },
      },
      ...(of === null ? [] : [{ kind: 'tuple', op: 'write', tuple } as const]),
    ],
    { context: CONTEXT },
  )
  expect((await patch(at('Users', id), { op: 'replace', path: 'userName', value: `${name}-evil@x.test` })).status).toBe(
    403,
  )
  await patch(at('Users', id), { op: 'replace', path: 'active', value: false })
  expect(await mayActSince(id, Date.now() / 1_000 + 60)).toBe(false)
})

describe('DELETE', () => {
  test('ends the account and its places in groups; the id never comes back', async () => {
    const { id } = await user()
    const { id: team } = await group({ members: [{ value: id }] })
    expect((await send('DELETE', at('Users', id), { headers: TYPE })).status).toBe(204)
    expect(await served.directory.user(id)).toBe(null)
    expect((await send('GET', at('Users', id))).status).toBe(404)
    expect((await send('GET', at('Groups', team))).body.members).toBe(undefined)
    expect((await send('DELETE', at('Users', id))).status).toBe(404)
    expect((await user()).id).not.toBe(id)
  })

  test('by the operator takes the user out of the directory', async () => {
    const { id } = await user()
    await served.directory.deleteUser(id, CONTEXT)
    expect((await send('GET', at('Users', id))).status).toBe(404)
  })

  test('of an organization takes what its directory brought with it', async () => {
    const admin = await served.manager()
    await served.send('PUT', '/v1/organizations/gone', { token: admin, body: { name: 'Gone' } })
    const token = await served.manager({ client: 'gone-directory', organization: 'gone', scopes: ['scim'] })
    await group({}, token)
    await served.send('DELETE', '/v1/clients/gone-directory', { token: admin })
    expect((await served.send('DELETE', '/v1/organizations/gone', { token: admin })).status).toBe(204)
  })
})
