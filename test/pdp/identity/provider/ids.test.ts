/** People and clients have no id in common, in whatever way they come (RFC 9700 section 4.15, RFC 9068 section 5). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clientToken } from '../../../support/sign-in.ts'
import { createFlows } from '../flows.ts'
import { CONTEXT, decode, openWorld, SECRET, type World } from '../harness.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world.close())

const MACHINE = { grant_types: ['client_credentials'], scope: 'orders:read' }
const putUser = (id: string) =>
  world.directory.putUser(
    { id, email: `${id}@ids.example`, emailVerified: true, name: null, passwordHash: null },
    CONTEXT,
  )
const imported = async (id: string): Promise<void> => {
  const user = { id, email: null, emailVerified: false, name: null, passwordHash: null }
  const issues = await world.directory.importUsers([user], { context: CONTEXT, dryRun: false })
  if (issues.length > 0) throw new Error(issues[0]?.message)
}
const putClient = (id: string) => world.putClient({ id, metadata: MACHINE })
const kindOf = async (id: string) => ({
  person: (await world.directory.user(id)) !== null,
  client: (await world.directory.client(id)) !== null,
})

describe('an id', () => {
  test.each([
    ['a person', 'robot', putUser, 'belongs to a client'],
    ['a person who is imported', 'robot', imported, 'belongs to a client'],
    ['a client', 'eve', putClient, 'belongs to a user'],
  ])('that is taken is not given to %s', async (_who, id, put, message) => {
    const before = await kindOf(id)
    await expect(put(id)).rejects.toThrow(message)
    expect(await kindOf(id)).toEqual(before)
  })

  test.each([putUser, imported])('is of one of the two when both come at the same time (%#)', async (putPerson) => {
    for (let i = 0; i < 8; i += 1) {
      const id = `both-${putPerson.name}-${i}`
      const outcomes = await Promise.allSettled([putPerson(id), putClient(id), putPerson(id), putClient(id)])
      expect(outcomes.some(({ status }) => status === 'fulfilled')).toBe(true)
      const { person, client } = await kindOf(id)
      expect([id, person !== client]).toEqual([id, true])
    }
  })

  test('of a deleted person is nobody’s, and the id of a deleted client is no client’s', async () => {
    await putUser('gone')
    await world.directory.deleteUser('gone', CONTEXT)
    for (const put of [putUser, imported, putClient]) await expect(put('gone')).rejects.toThrow('was deleted')
    await putClient('retired')
    await world.directory.deleteClient('retired', CONTEXT)
    await expect(putClient('retired')).rejects.toThrow('was deleted')
  })
})

test('a person with the id of a former client has nothing of it: no token, no role, no relationship', async () => {
  const secretHash = (await world.directory.client('robot'))?.secretHash ?? null
  await world.putClient({ id: 'former', organization: 'acme', metadata: MACHINE, secretHash })
  const grant = { id: 'g-former', app: null, role: 'auditor', subject: 'service:former' }
  await world.store.write('acme', [{ kind: 'role_grant', op: 'write', grant }], { context: CONTEXT })
  const token = await clientToken({ issuer: world.issuer, clientId: 'former', clientSecret: SECRET })
  expect(await world.identity.introspect(token.access_token)).toMatchObject({
    active: true,
    subject: { type: 'service', id: 'former' },
  })
  await world.directory.deleteClient('former', CONTEXT)
  const passwordHash = (await world.directory.userByEmail('eve@x.example'))?.passwordHash ?? null
  const person = { id: 'former', email: 'former@x.example', emailVerified: true, name: null, passwordHash }
  await world.directory.putUser(person, CONTEXT)
  const membership = { role: 'viewer', status: 'active' } as const
  await world.store.write('acme', [{ kind: 'membership', user: 'former', membership }], { context: CONTEXT })
  expect(await world.identity.introspect(token.access_token)).toEqual({ active: false })
  const { tokens } = await createFlows(world).code({ person: 'former', organization: 'acme' })
  expect(await world.identity.introspect(tokens.access_token)).toMatchObject({
    active: true,
    subject: { type: 'user', id: 'former' },
  })
  expect(decode(tokens.access_token).payload).not.toHaveProperty('roles')
})
