/** What an address that a directory changes means for what opens the account. */
import { describe, expect, test } from 'vitest'
import { CONTEXT } from '../harness.ts'
import { at, name, openWorld, patch, served, user } from './world.ts'

openWorld()

const WAYS_IN = [
  `insert into passkey (credential_id, user_id, name, public_key, counter, synced, transports)
   values ($1, $1, 'x', '{}', 0, false, '{internal}')`,
  "insert into authenticator (user_id, secret_sealed, used_step) values ($1, 'x', 0)",
  "insert into recovery_code (user_id, digest) values ($1, 'x')",
  "insert into foreign_identity (issuer, subject, user_id) values ('https://o.example', $1, $1)",
]

describe('a user of a directory', () => {
  test('gets another address, and loses all by which somebody signed in with the former one', async () => {
    const { id } = await user()
    await served.sql.query("update user_account set password_hash = 'h', email_verified = true where user_id = $1", [
      id,
    ])
    for (const statement of WAYS_IN) await served.sql.query(statement, [id])
    const { status } = await patch(at('Users', id), { op: 'replace', path: 'userName', value: `${name}-new@x.test` })
    expect(status).toBe(200)
    expect(await served.directory.userByEmail(`${name}-new@x.test`)).toMatchObject({
      ...{ id, emailVerified: false, passwordHash: null, isUnopened: true },
    })
    for (const table of ['passkey', 'authenticator', 'recovery_code', 'foreign_identity', 'mailed_token'])
      expect([table, await served.sql.query(`select 1 from ${table} where user_id = $1`, [id])]).toEqual([table, []])
    const told = await served.sql.query<{ credential: string }>(
      `select payload ->> 'credential' as credential from (select type, payload from outbox union all select type, payload from outbox_arrival) events
       where type = 'credential.changed' and payload ->> 'user' = $1 and payload ->> 'change' = 'delete' order by 1`,
      [id],
    )
    expect(told.map(({ credential }) => credential)).toEqual(['app', 'federated', 'fido2-platform', 'password'])
    const logged = await served.sql.query<{ kind: string }>(
      `select change ->> 'kind' as kind from change_log where change ->> 'id' = $1 and change ->> 'op' = 'delete' order by 1`,
      [id],
    )
    expect(logged.map(({ kind }) => kind)).toEqual(['authenticator', 'foreign_identity', 'passkey', 'recovery_code'])
  })

  test.each(['', '  ', null])('is shut out by a request that also leaves the work address %j', async (value) => {
    const { id } = await user()
    await patch(at('Users', id), { op: 'add', path: 'emails', value: [{ type: 'work', value: `${name}@x.test` }] })
    const { status, body } = await patch(
      at('Users', id),
      { op: 'replace', path: 'emails[type eq "work"].value', value },
      { op: 'replace', path: 'active', value: 'False' },
    )
    expect([status, body.active]).toEqual([200, false])
    expect((await served.directory.user(id))?.email).toBe(`${name}@x.test`)
  })

  describe('that is known by a name and is told to have no address', () => {
    const known = async (): Promise<string> => {
      const emails = [{ type: 'work', value: `${name}@x.test` }]
      const { id } = await user({ userName: name, emails })
      for (const statement of WAYS_IN) await served.sql.query(statement, [id])
      return id
    }
    const LACKING = { op: 'replace', path: 'emails[type eq "work"].value', value: '' }

    test('keeps the former one, and all by which it signs in', async () => {
      const id = await known()
      expect((await patch(at('Users', id), LACKING)).status).toBe(200)
      expect((await served.directory.user(id))?.email).toBe(`${name}@x.test`)
      expect(await served.sql.query('select 1 from passkey where user_id = $1', [id])).toHaveLength(1)
    })

    test('is shut out by the same request, also if it has a relationship in another organization', async () => {
      const id = await known()
      const tuple = { object: 'invoice:1', relation: 'viewer', subject: `user:${id}`, expiresAtMs: null }
      await served.store.write('beta', [{ kind: 'tuple', op: 'write', tuple }], { context: CONTEXT })
      const off = { op: 'replace', path: 'active', value: false }
      expect(await patch(at('Users', id), LACKING, off)).toMatchObject({ status: 200, body: { active: false } })
    })
  })

  test('gets another name, and keeps all by which it signs in', async () => {
    const { id } = await user()
    for (const statement of WAYS_IN) await served.sql.query(statement, [id])
    expect((await patch(at('Users', id), { op: 'replace', path: 'displayName', value: 'New' })).status).toBe(200)
    for (const table of ['passkey', 'authenticator', 'recovery_code', 'foreign_identity'])
      expect(await served.sql.query(`select 1 from ${table} where user_id = $1`, [id])).toHaveLength(1)
  })

  test('gets no other address while it has a relationship in another organization', async () => {
    const { id } = await user()
    const tuple = { object: 'invoice:1', relation: 'viewer', subject: `user:${id}`, expiresAtMs: null }
    await served.store.write('beta', [{ kind: 'tuple', op: 'write', tuple }], { context: CONTEXT })
    const { status } = await patch(at('Users', id), { op: 'replace', path: 'userName', value: `${name}-new@x.test` })
    expect([status, (await served.directory.user(id))?.email]).toEqual([403, `${name}@x.test`])
  })
})
