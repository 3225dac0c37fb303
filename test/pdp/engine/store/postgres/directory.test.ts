import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Store } from '../../../../../pdp/engine/store/contract.ts'
import type { Directory, Sql, User } from '../../../../../pdp/engine/store/directory.ts'
import { postgresDirectory } from '../../../../../pdp/engine/store/postgres/directory.ts'
import { openPostgres } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import type { Change } from '../../../../../pdp/shared/domain/change.ts'
import { DIRECTORY, ENVIRONMENT, TOKENS } from '../../../../../pdp/shared/domain/journal.ts'
import { openTestDatabase } from '../../../../support/database.ts'

const context = { actor: 'service:admin', requestId: 'r1' }
let directory: Directory
let sql: Sql
let store: Store
let close: () => Promise<void>
beforeAll(async () => {
  const database = await openTestDatabase()
  const opened = await openPostgres({ connectionString: database.connectionString })
  store = opened.store
  sql = opened.sql
  directory = postgresDirectory(opened.sql)
  close = async () => {
    await opened.close()
    await database.drop()
  }
  for (const id of ['acme', 'beta']) {
    await store.write(
      ENVIRONMENT,
      [{ kind: 'organization', id, organization: { id, name: id.toUpperCase(), parent: null } }],
      { context },
    )
  }
})
afterAll(() => close())

const user = (id: string, rest: Partial<User> = {}): User => ({
  id,
  email: null,
  emailVerified: false,
  name: null,
  ...rest,
})
const client = (id: string) => ({ id, app: null, organization: null, metadata: { client_name: id } })
const revisionOf = async (log: string) => (await store.vector([log])).logs.get(log)?.revision ?? 0
async function changesSince(log: string, from: number): Promise<readonly Change[]> {
  const entries = await store.entries([{ log, from, to: await revisionOf(log) }], 100)
  return entries.filter(({ revision }) => revision > from).map(({ change }) => change)
}
async function changesOf(log: string, work: () => Promise<unknown>): Promise<readonly Change[]> {
  const from = await revisionOf(log)
  await work()
  return changesSince(log, from)
}

describe('users', () => {
  test('are stored, found by id and by e-mail whatever the case, and replaced', async () => {
    const ann = user('ann', { email: 'Ann@Acme.test', emailVerified: true, name: 'Ann' })
    const changes = await changesOf(DIRECTORY, () => directory.putUser({ ...ann, passwordHash: 'hash' }, context))
    expect(changes).toEqual([{ kind: 'user', id: 'ann', op: 'write' }])
    expect(await directory.user('ann')).toEqual(ann)
    expect(await directory.userByEmail('aNN@acme.TEST')).toEqual({ ...ann, passwordHash: 'hash', isUnopened: false })
    await directory.putUser(user('ann', { email: 'ann@acme.test' }), context)
    expect(await directory.userByEmail('ann@acme.test')).toMatchObject({ name: null, passwordHash: 'hash' })
    await directory.putUser({ ...user('ann', { email: 'ann@acme.test' }), passwordHash: null }, context)
    expect(await directory.userByEmail('ann@acme.test')).toMatchObject({ passwordHash: null })
    expect([await directory.user('nobody'), await directory.userByEmail('nobody@acme.test')]).toEqual([null, null])
  })

  test('may all be without an e-mail', async () => {
    await directory.putUser(user('mute-1'), context)
    await directory.putUser(user('mute-2'), context)
    expect(await directory.user('mute-2')).toEqual(user('mute-2'))
  })

  test('are deleted with their memberships and tokens, each deletion in its log', async () => {
    await directory.putUser(user('bo'), context)
    for (const organization of ['beta', 'acme']) {
      await store.write(
        organization,
        [{ kind: 'membership', user: 'bo', membership: { role: 'viewer', status: 'active' } }],
        { context },
      )
    }
    const logs = [DIRECTORY, TOKENS, 'acme', 'beta']
    const before = await Promise.all(logs.map(revisionOf))
    expect(await directory.deleteUser('bo', context)).toBe(true)
    const membership = { kind: 'membership', user: 'bo', membership: null }
    expect(await Promise.all(logs.map((log, i) => changesSince(log, before[i] ?? 0)))).toEqual([
      [{ kind: 'user', id: 'bo', op: 'delete' }],
      [{ kind: 'token', by: 'user', id: 'bo' }],
      [membership],
      [membership],
    ])
    expect(await store.members('acme', { after: null, countMax: 10 })).toEqual([])
    expect(await directory.user('bo')).toBeNull()
  })

  test('that are deleted leave a suspended membership where they hold something, which would count again', async () => {
    await directory.putUser(user('sue'), context)
    const suspended = { kind: 'membership', user: 'sue', membership: { role: 'viewer', status: 'suspended' } } as const
    for (const organization of ['acme', 'beta']) await store.write(organization, [suspended], { context })
    const tuple = { object: 'doc:1', relation: 'viewer', subject: 'user:sue', expiresAtMs: null }
    await store.write('beta', [{ kind: 'tuple', op: 'write', tuple }], { context })
    expect(await changesOf('beta', () => directory.deleteUser('sue', context))).toEqual([])
    const page = { after: null, countMax: 10 }
    expect([await store.members('acme', page), await store.members('beta', page)]).toEqual([
      [],
      [{ user: 'sue', role: 'viewer', status: 'suspended' }],
    ])
  })

  test('that are not there are not deleted, and nothing is logged', async () => {
    expect(
      await changesOf(DIRECTORY, async () => expect(await directory.deleteUser('ghost', context)).toBe(false)),
    ).toEqual([])
  })

  test('never get an id or an e-mail that is or was taken', async () => {
    await directory.putUser(user('cy', { email: 'cy@acme.test' }), context)
    await directory.putClient(client('app'), context)
    await directory.putUser(user('gone'), context)
    await directory.deleteUser('gone', context)
    const refused = { name: 'PdpError', code: 'conflict' }
    const log = await changesOf(DIRECTORY, async () => {
      await expect(directory.putUser(user('app'), context)).rejects.toMatchObject(refused)
      await expect(directory.putUser(user('gone'), context)).rejects.toMatchObject(refused)
      await expect(directory.putUser(user('dee', { email: 'CY@acme.test' }), context)).rejects.toMatchObject(refused)
      await expect(directory.putClient(client('cy'), context)).rejects.toMatchObject(refused)
      await expect(directory.putClient(client('gone'), context)).rejects.toMatchObject(refused)
    })
    expect(log).toEqual([])
  })

  test('are created once when two try at the same time', async () => {
    const tries = [
      directory.putUser(user('race', { email: 'race@a.test' }), context),
      directory.putUser(user('race-2', { email: 'race@a.test' }), context),
    ]
    const outcomes = await Promise.allSettled(tries)
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  })

  test('are listed by id in byte order, in pages', async () => {
    for (const id of ['z1', 'Z1', 'z-0', '{']) await directory.putUser(user(id), context)
    const after = await directory.users({ after: 'y', countMax: 2 })
    expect(after.map(({ id }) => id)).toEqual(['z-0', 'z1'])
    expect((await directory.users({ after: 'z1', countMax: 2 })).map(({ id }) => id)).toEqual(['{'])
    expect((await directory.users({ after: 'Y', countMax: 1 })).map(({ id }) => id)).toEqual(['Z1'])
  })
})

describe('exists', () => {
  test('tells people from clients, and knows none that never was or is deleted', async () => {
    await directory.putUser(user('here'), context)
    await directory.putClient(client('robot'), context)
    await directory.putUser(user('left'), context)
    await directory.deleteUser('left', context)
    const asked = [
      { type: 'user', id: 'here' },
      { type: 'service', id: 'robot' },
      { type: 'user', id: 'robot' },
      { type: 'service', id: 'here' },
      { type: 'user', id: 'left' },
      { type: 'user', id: 'never' },
      { type: 'user', id: '__proto__' },
    ] as const
    const answers = await Promise.all(asked.map((subject) => directory.exists(subject, 'acme')))
    expect(answers).toEqual([true, true, false, false, false, false, false])
  })

  test('is one statement for all who ask at once, and an error for each when it fails', async () => {
    let count = 0
    let fails = false
    const watched = postgresDirectory({
      ...sql,
      query: (text, values) => {
        count++
        return fails ? Promise.reject(new Error('lost')) : sql.query(text, values)
      },
    })
    const ask = () => Array.from({ length: 50 }, (_, i) => watched.exists({ type: 'user', id: `u-${i}` }, 'acme'))
    expect((await Promise.all(ask())).some(Boolean)).toBe(false)
    expect(count).toBe(1)
    fails = true
    const outcomes = await Promise.allSettled(ask())
    expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true)
  })
})

describe('activeMemberships', () => {
  test('has the active ones alone, with the organization, in id order', async () => {
    await directory.putUser(user('eve'), context)
    await store.write(
      ENVIRONMENT,
      [{ kind: 'organization', id: 'gamma', organization: { id: 'gamma', name: 'G', parent: 'acme' } }],
      { context },
    )
    for (const [organization, status] of [
      ['gamma', 'active'],
      ['acme', 'active'],
      ['beta', 'suspended'],
    ] as const) {
      await store.write(organization, [{ kind: 'membership', user: 'eve', membership: { role: 'owner', status } }], {
        context,
      })
    }
    expect(await directory.activeMemberships('eve')).toEqual([
      { organization: { id: 'acme', name: 'ACME', parent: null }, role: 'owner' },
      { organization: { id: 'gamma', name: 'G', parent: 'acme' }, role: 'owner' },
    ])
  })
})

describe('clients', () => {
  test('are stored with their metadata, keep their secret unless another is given, and are deleted with their tokens', async () => {
    const stored = {
      id: 'web',
      app: 'invoices',
      organization: 'acme',
      metadata: { scope: 'openid', redirect_uris: ['https://a.test/'] },
    }
    await directory.putClient({ ...stored, secretHash: 'hash' }, context)
    await directory.putClient(stored, context)
    expect(await directory.client('web')).toEqual({ ...stored, secretHash: 'hash', secretSetBy: null, tokenEpoch: 0 })
    await directory.putClient({ ...stored, secretHash: null }, context)
    expect(await directory.client('web')).toEqual({ ...stored, secretHash: null, secretSetBy: null, tokenEpoch: 0 })
    expect((await directory.clients({}, { after: 'v', countMax: 1 })).map(({ id }) => id)).toEqual(['web'])
    const tokens = await changesOf(TOKENS, async () => expect(await directory.deleteClient('web', context)).toBe(true))
    expect(tokens).toEqual([{ kind: 'token', by: 'client', id: 'web' }])
    expect([await directory.client('web'), await directory.deleteClient('web', context)]).toEqual([null, false])
  })

  test('are refused in an organization that is not there', async () => {
    await expect(directory.putClient({ ...client('lost'), organization: 'none' }, context)).rejects.toMatchObject({
      code: 'organization_unknown',
    })
    expect(await directory.client('lost')).toBeNull()
  })
})
