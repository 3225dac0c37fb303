/** Writes inside the application's own transaction: its row and its grant commit together, or neither does. */
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import { memoryStore } from '../../../../../pdp/engine/store/memory/memory.ts'
import { user } from '../../../../../pdp/shared/domain/subjects.ts'
import { openTestDatabase } from '../../../../support/database.ts'
import { useApplication } from './joined-write-harness.ts'

const a = useApplication()
const invalid = (message: RegExp) =>
  expect.objectContaining({ code: 'request_invalid', message: expect.stringMatching(message) })

describe('a write in the transaction of the application', () => {
  test('is seen by every process from the commit on, and not before', async () => {
    const asked = () => Promise.all([a.pdp, a.other].map((one) => one.can(a.org, user('ann'), 'owner', 'invoice:1')))
    expect(await asked()).toEqual([false, false])
    await a.transaction('commit', async (client) => {
      await client.query('insert into invoice values (1, $1)', ['ann'])
      const written = await a.pdp.write(a.org, { write: ['invoice:1#owner@user:ann'] }, { client, actor: 'user:ann' })
      expect(written).toEqual({ revision: 1, changed: true })
      expect(await asked()).toEqual([false, false])
    })
    expect(await asked()).toEqual([true, true])
    expect(await a.store.entries([{ log: a.org, from: 0, to: 9 }], 10)).toMatchObject([
      { revision: 1, actor: 'user:ann' },
    ])
  })

  test('leaves nothing after a rollback: no tuple, no revision, no entry', async () => {
    const before = await a.position()
    await a.transaction('rollback', async (client) => {
      await client.query('insert into invoice values (2, $1)', ['ann'])
      await a.pdp.write(a.org, { write: ['invoice:2#owner@user:ann'] }, { client })
    })
    expect(await a.pdp.can(a.org, user('ann'), 'owner', 'invoice:2')).toBe(false)
    expect(await a.position()).toEqual(before)
    expect(await a.store.entries([{ log: a.org, from: 0, to: 9 }], 10)).toEqual([])
    expect((await a.pool.query('select from invoice where id = 2')).rowCount).toBe(0)
  })

  test('makes one revision after the other when the same transaction writes twice', async () => {
    await a.transaction('commit', async (client) => {
      await a.pdp.write(a.org, { write: ['invoice:3#owner@user:ann'] }, { client })
      await a.pdp.write(
        a.org,
        { write: ['invoice:3#owner@user:bob'], delete: ['invoice:3#owner@user:ann'] },
        { client },
      )
    })
    const entries = await a.store.entries([{ log: a.org, from: 0, to: 9 }], 10)
    expect(entries.map(({ revision }) => revision)).toEqual([1, 2, 2])
    expect(await a.other.can(a.org, user('bob'), 'owner', 'invoice:3')).toBe(true)
    expect(await a.other.can(a.org, user('ann'), 'owner', 'invoice:3')).toBe(false)
  })

  test('leaves the session as it was', async () => {
    await a.transaction('commit', async (client) => {
      await client.query(`set local search_path = public; set local lock_timeout = '7s'`)
      await a.pdp.write(a.org, { write: ['invoice:4#owner@user:ann'] }, { client })
      const { rows } = await client.query(
        `select current_setting('search_path') as path, current_setting('lock_timeout') as lock`,
      )
      expect(rows).toEqual([{ path: 'public', lock: '7s' }])
      await client.query(`insert into organization values ($1, 'free')`, [a.org])
    })
    expect((await a.pool.query('select plan from organization where id = $1', [a.org])).rows).toEqual([
      { plan: 'free' },
    ])
  })

  test('is not deceived by temporary tables of the session', async () => {
    await a.transaction('commit', async (client) => {
      await client.query('create temporary table revision (organization_id text, closed boolean) on commit drop')
      await client.query('create temporary table relationship (organization_id text) on commit drop')
      await a.pdp.write(a.org, { write: ['invoice:5#owner@user:ann'] }, { client })
    })
    expect(await a.pdp.can(a.org, user('ann'), 'owner', 'invoice:5')).toBe(true)
  })

  test('works where the driver parses into types of the application', async () => {
    const client = new pg.Client({
      connectionString: a.database.connectionString,
      types: { getTypeParser: () => () => 'mine' },
    })
    await client.connect()
    await client.query('begin')
    expect(await a.pdp.write(a.org, { write: ['invoice:6#owner@user:ann'] }, { client })).toEqual({
      revision: 1,
      changed: true,
    })
    await client.query('commit')
    await client.end()
  })

  test('holds under repeatable read, where a concurrent writer makes it fail rather than overwrite', async () => {
    const outcome = a.transaction('commit', async (client) => {
      await client.query('set transaction isolation level repeatable read')
      await client.query('select from invoice')
      await a.pdp.write(a.org, { write: ['invoice:7#owner@user:bob'] })
      await a.pdp.write(a.org, { write: ['invoice:7#owner@user:ann'] }, { client })
    })
    await expect(outcome).rejects.toMatchObject({ code: 'store_unavailable' })
    expect(await a.position()).toMatchObject({ revision: 1 })
  })
})

describe('conditions and failures inside the transaction', () => {
  test('refuses a failed condition, and the application may go on', async () => {
    await a.transaction('commit', async (client) => {
      await client.query('insert into invoice values (8, $1)', ['ann'])
      const options = { client, if: [{ tuple: 'invoice:8#owner@user:ann', exists: true }] }
      await expect(a.pdp.write(a.org, { write: ['invoice:8#viewer@user:bob'] }, options)).rejects.toMatchObject({
        code: 'precondition_failed',
        message: 'invoice:8#owner@user:ann does not exist',
      })
    })
    expect((await a.pool.query('select from invoice where id = 8')).rowCount).toBe(1)
    expect(await a.position()).toMatchObject({ revision: 0 })
  })

  test('sees in its conditions what the transaction has written', async () => {
    await a.transaction('commit', async (client) => {
      await a.pdp.write(a.org, { write: ['invoice:9#owner@user:ann'] }, { client })
      const options = { client, if: [{ tuple: 'invoice:9#owner@user:ann', exists: true }] }
      expect(await a.pdp.write(a.org, { write: ['invoice:9#viewer@user:bob'] }, options)).toMatchObject({
        changed: true,
      })
    })
  })

  test('raises nothing when nothing changes', async () => {
    await a.pdp.write(a.org, { write: ['invoice:10#owner@user:ann'] })
    await a.transaction('commit', async (client) => {
      const written = await a.pdp.write(a.org, { write: ['invoice:10#owner@user:ann'] }, { client })
      expect(written).toEqual({ revision: 1, changed: false })
    })
    expect(await a.position()).toMatchObject({ revision: 1 })
  })

  test('refuses an organization that does not exist', async () => {
    const outcome = a.transaction('commit', (client) => a.pdp.write('nobody', { write: ['a:1#b@user:c'] }, { client }))
    await expect(outcome).rejects.toMatchObject({ code: 'organization_unknown' })
  })

  test('refuses what the model does not allow, before anything is sent', async () => {
    const model = 'model\n  schema 1.1\ntype user\ntype memo\n  relations\n    define reader: [user]\n'
    await a.pdp.putManifest(`memos${a.number}`, { model })
    await a.transaction('commit', async (client) => {
      await expect(a.pdp.write(a.org, { write: ['memo:1#writer@user:a'] }, { client })).rejects.toMatchObject({
        code: 'request_invalid',
        issues: [{ place: '/write/0', message: 'type "memo" has no relation "writer"' }],
      })
      await client.query('select 1')
    })
  })

  test('refuses a client without a transaction, a known one too', async () => {
    const client = await a.pool.connect()
    const write = () => a.pdp.write(a.org, { write: ['invoice:11#owner@user:ann'] }, { client })
    await expect(write()).rejects.toEqual(invalid(/BEGIN/))
    await client.query('begin')
    await write()
    await client.query('rollback')
    await expect(write()).rejects.toEqual(invalid(/BEGIN/))
    client.release()
    expect(await a.position()).toMatchObject({ revision: 0 })
  })

  test('writes nothing when the application commits without waiting for it', async () => {
    const client = await a.pool.connect()
    await client.query('begin')
    const write = a.pdp.write(a.org, { write: ['invoice:12#owner@user:ann'] }, { client })
    await client.query('commit')
    await expect(write).rejects.toEqual(invalid(/BEGIN/))
    client.release()
    expect(await a.pdp.can(a.org, user('ann'), 'owner', 'invoice:12')).toBe(false)
  })

  test('refuses a client of another database', async () => {
    const elsewhere = await openTestDatabase()
    const client = new pg.Client({ connectionString: elsewhere.connectionString })
    await client.connect()
    await client.query('begin')
    await expect(a.pdp.write(a.org, { write: ['a:1#b@user:c'] }, { client })).rejects.toEqual(
      invalid(/database of the store/),
    )
    await client.end()
    await elsewhere.drop()
  })

  test('refuses a transaction that has failed', async () => {
    const client = await a.pool.connect()
    await client.query('begin')
    await client.query('select 1/0').catch(() => undefined)
    await expect(a.pdp.write(a.org, { write: ['a:1#b@user:c'] }, { client })).rejects.toEqual(invalid(/roll it back/))
    await client.query('rollback')
    client.release()
  })

  test('refuses a client where the store has no transactions', async () => {
    const inMemory = createPdp({ store: memoryStore() })
    await inMemory.putOrganization('acme', { name: 'Acme' })
    const client = await a.pool.connect()
    await expect(inMemory.write('acme', { write: ['a:1#b@user:c'] }, { client })).rejects.toEqual(
      invalid(/postgresStore/),
    )
    client.release()
  })
})
