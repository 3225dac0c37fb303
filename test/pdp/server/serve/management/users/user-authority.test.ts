import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { MANAGEMENT_APP, MANAGEMENT_MANIFEST } from '../../../../../../pdp/identity/oauth/management-app.ts'
import { ENVIRONMENT } from '../../../../../../pdp/shared/domain/journal.ts'
import { openTenantWorld } from '../tenant-world.ts'

const world = openTenantWorld()
const { send, write } = world

let user = ''
beforeAll(() => write(ENVIRONMENT, [{ kind: 'manifest', manifest: MANAGEMENT_MANIFEST }]))
beforeEach(async () => {
  user = `p${world.count}`
  await send(world.admin, 'PUT', `/v1/users/${user}`, { email: `${user}@x.example` })
})

const HOLDINGS: readonly (readonly [string, () => Promise<unknown>])[] = [
  ['by a role everywhere', () => grant(ENVIRONMENT, `user:${user}`)],
  ['by a role in one organization', () => grant('beta', `user:${user}`)],
  ['through a group', () => grantToGroup(`user:${user}`)],
  [
    'through a role that a suspension withholds',
    async () => {
      await send(world.admin, 'PUT', `/v1/organizations/acme/members/${user}`, { role: 'member', status: 'suspended' })
      await grant('acme', `user:${user}`)
    },
  ],
]
const grant = (log: string, subject: string) =>
  write(log, [
    {
      kind: 'role_grant',
      op: 'write',
      grant: { id: `m-${user}`, app: MANAGEMENT_APP, role: 'administrator', subject },
    },
  ])
async function grantToGroup(member: string) {
  const group = `group:${user}`
  const tuple = { object: group, relation: 'member', subject: member, expiresAtMs: null }
  await write('acme', [{ kind: 'tuple', op: 'write', tuple }])
  await grant('acme', group)
}

describe.each(HOLDINGS)('a person who manages Portcullis %s', (_, hold) => {
  test('gets no other way to sign in from a client with less', async () => {
    await hold()
    const weak = await world.served.manager({ client: 'people', scopes: ['directory:write'] })
    const before = (await send(world.admin, 'GET', `/v1/users/${user}`)).body
    for (const [method, path, body] of [
      ['PUT', '', { email: `${user}@x.example`, password: 'chosen by somebody else' }],
      ['PUT', '', { email: `other-${user}@x.example` }],
      ['PUT', '', {}],
      ['POST', '/totp', undefined],
      ['DELETE', '/totp', undefined],
      ['DELETE', '/passkeys', undefined],
    ] as const)
      expect(await send(weak, method, `/v1/users/${user}${path}`, body), `${method} ${path}`).toMatchObject({
        status: 403,
        body: { code: 'permission_denied', detail: expect.stringContaining('portcullis:') },
      })
    expect((await send(world.admin, 'GET', `/v1/users/${user}`)).body).toEqual(before)
    // The answer does not tell a right guess from a wrong one.
    const own = { email: `${user}@x.example`, password: 'the password of the person' }
    await send(world.admin, 'PUT', `/v1/users/${user}`, own)
    for (const password of [own.password, 'a guess that is wrong'])
      expect((await send(weak, 'PUT', `/v1/users/${user}`, { ...own, password })).status).toBe(403)
    // Another name is harmless, and so is the same address.
    expect((await send(weak, 'PUT', `/v1/users/${user}`, { email: `${user}@x.example`, name: 'N' })).status).toBe(200)
    expect((await send(world.admin, 'PUT', `/v1/users/${user}`, { email: `new-${user}@x.example` })).status).toBe(200)
  })
})

test('a person whom a group names before they are made is made with a password by who holds the same', async () => {
  const weak = await world.served.manager({ client: 'people', scopes: ['directory:write'] })
  user = `later${world.count}`
  await grantToGroup(`user:${user}`)
  const body = { password: 'a password of eight or more' }
  expect((await send(weak, 'PUT', `/v1/users/${user}`, body)).status).toBe(403)
  expect((await send(world.admin, 'PUT', `/v1/users/${user}`, body)).status).toBe(201)
})

test('anybody else gets a password from a client that looks after people', async () => {
  const weak = await world.served.manager({ client: 'people', scopes: ['directory:write'] })
  const body = { email: 'else@x.example', password: 'a password of eight or more' }
  expect((await send(weak, 'PUT', `/v1/users/${user}`, body)).status).toBe(200)
})

test('nobody is kept from a new password by how many roles a tenant gives them', async () => {
  const grants = Array.from({ length: 1_001 }, (_, at) => ({
    kind: 'role_grant' as const,
    op: 'write' as const,
    grant: { id: `many-${user}-${at}`, app: null, role: `r${at}`, subject: `user:${user}` },
  }))
  for (let from = 0; from < grants.length; from += 100) await write('acme', grants.slice(from, from + 100))
  const body = { email: `${user}@x.example`, password: 'a password of eight or more' }
  expect((await send(world.admin, 'PUT', `/v1/users/${user}`, body)).status).toBe(200)
  const weak = await world.served.manager({ client: 'people', scopes: ['directory:write'] })
  expect((await send(weak, 'PUT', `/v1/users/${user}`, { password: 'another password of them' })).status).toBe(200)
})
