/** Writes of an application that embeds the PDP: what the management API would accept, and nothing else. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { EmbeddedPdp } from '../../../../pdp/engine/decision-point/embedded.ts'
import { httpEntitlements } from '../../../../pdp/engine/store/entitlements/http-source.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import { postgresStore } from '../../../../pdp/engine/store/postgres/postgres.ts'
import { ENTITLEMENT_COUNT_MAX, entitlementSizeIssue } from '../../../../pdp/engine/writes/entitlement-sizes.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { openTestDatabase } from '../../../support/database.ts'

const MODEL = `model
  schema 1.1
type user
type group
  relations
    define member: [user]
type memo
  relations
    define reader: [user, group#member]
    define seen: reader
`
const STORES = [
  ['in memory', async () => ({ store: memoryStore(), drop: async () => {} })],
  [
    'on PostgreSQL',
    async () => {
      const database = await openTestDatabase()
      return { store: await postgresStore({ connectionString: database.connectionString }), drop: database.drop }
    },
  ],
] as const

describe.each(STORES)('an embedded PDP %s', (_, open) => {
  let pdp: EmbeddedPdp
  let drop: () => Promise<void>
  beforeAll(async () => {
    const opened = await open()
    pdp = createPdp({ store: opened.store })
    drop = opened.drop
    await pdp.putManifest('memos', {
      model: MODEL,
      permissions: { 'memos:approve': 'Approve memos' },
      roles: { clerk: { name: 'Clerk', permissions: ['memos:approve'] } },
    })
    await pdp.putOrganization('acme', { name: 'Acme' })
    await pdp.putOrganization('lab', { name: 'Lab', parent: 'acme' })
  })
  afterAll(async () => {
    await pdp.close()
    await drop()
  })

  test('answers by what it wrote', async () => {
    await pdp.write('acme', { write: ['memo:1#reader@group:g#member', 'group:g#member@user:ann'] })
    expect(await pdp.can('acme', user('ann'), 'seen', 'memo:1')).toBe(true)
    expect(await pdp.write('acme', { delete: ['group:g#member@user:ann'] })).toMatchObject({ changed: true })
    expect(await pdp.can('acme', user('ann'), 'seen', 'memo:1')).toBe(false)
    expect(await pdp.write('acme', { delete: ['group:g#member@user:ann'] })).toMatchObject({ changed: false })
  })

  test('keeps a tuple until it expires', async () => {
    const tuple = { object: 'memo:2', relation: 'reader', subject: 'user:ann' }
    await pdp.write('acme', { write: [{ ...tuple, expires_at: '2020-01-31T12:00:00Z' }] })
    expect(await pdp.can('acme', user('ann'), 'reader', 'memo:2')).toBe(false)
    await pdp.write('acme', { write: [{ ...tuple, expires_at: '2999-01-31T12:00:00Z' }] })
    expect(await pdp.can('acme', user('ann'), 'reader', 'memo:2')).toBe(true)
  })

  test('grants roles that roll down, and takes them back', async () => {
    const grant = { app: 'memos', role: 'clerk', subject: 'user:bob' }
    expect(await pdp.grantRole('acme', grant)).toMatchObject(grant)
    expect(await pdp.can('lab', user('bob'), 'memos:approve', 'app:memos')).toBe(true)
    expect(await pdp.revokeRole('acme', grant)).toBe(true)
    expect(await pdp.revokeRole('acme', grant)).toBe(false)
    expect(await pdp.can('lab', user('bob'), 'memos:approve', 'app:memos')).toBe(false)
  })

  test('writes members and entitlements', async () => {
    await pdp.putMember('acme', 'cat', { role: 'admin' })
    expect(await pdp.can('acme', user('cat'), 'admin', 'organization:acme')).toBe(true)
    expect(await pdp.deleteMember('acme', 'cat')).toBe(true)
    expect(await pdp.can('acme', user('cat'), 'admin', 'organization:acme')).toBe(false)
    await pdp.putEntitlement('acme', 'feature.export', true)
    expect((await pdp.entitlement('acme', 'feature.export'))?.boolean()).toBe(true)
    expect(await pdp.deleteEntitlement('acme', 'feature.export')).toBe(true)
    expect(await pdp.entitlement('acme', 'feature.export')).toBe(null)
  })

  test('lets nobody in by ending a membership that keeps them out', async () => {
    const tuple = { object: 'memo:3', relation: 'reader', subject: 'user:sue' }
    const asked = () => pdp.can('acme', user('sue'), 'reader', 'memo:3')
    await pdp.write('acme', { write: [tuple] })
    await pdp.putMember('acme', 'sue', { role: 'member', status: 'suspended' })
    await expect(pdp.deleteMember('acme', 'sue')).rejects.toMatchObject({ code: 'conflict' })
    expect(await asked()).toBe(false)
    await pdp.write('acme', { delete: [tuple] })
    expect(await pdp.deleteMember('acme', 'sue')).toBe(true)
    expect(await asked()).toBe(false)
  })

  test('bounds the entitlement values of an organization together, and how many there are', async () => {
    await pdp.putOrganization('large', { name: 'Large' })
    await pdp.putEntitlement('large', 'first', { text: 'x'.repeat(1_000_000) })
    const second = pdp.putEntitlement('large', 'second', { text: 'x'.repeat(100_000) })
    await expect(second).rejects.toMatchObject({ code: 'request_invalid', issues: [{ place: '/value' }] })
    await pdp.putEntitlement('large', 'first', { text: '' })
    await pdp.putEntitlement('large', 'second', { text: 'x'.repeat(100_000) })
    const entitlement = { value: {}, enforcement: 'DecisionApi' } as const
    const values = new Map(Array.from({ length: ENTITLEMENT_COUNT_MAX }, (_, at) => [`key.${at}`, entitlement]))
    const full = { entitlements: async () => ({ version: 1, writeId: '1', values }) }
    const many = entitlementSizeIssue(full, 'large', { key: 'one.more', value: {} })
    expect(await many).toBe('would be one more than the 4096 entitlements that large may have')
    expect(await entitlementSizeIssue(full, 'large', { key: 'key.0', value: {} })).toBe(null)
  })

  test('renames an organization, moves none, and deletes one that nothing depends on', async () => {
    await pdp.putOrganization('old', { name: 'Old', parent: 'acme' })
    expect(await pdp.putOrganization('old', { name: 'New', parent: 'acme' })).toMatchObject({ name: 'New' })
    await expect(pdp.putOrganization('old', { name: 'New' })).rejects.toMatchObject({ code: 'conflict' })
    await expect(pdp.deleteOrganization('acme')).rejects.toMatchObject({ code: 'conflict' })
    expect(await pdp.deleteOrganization('old')).toBe(true)
    expect(await pdp.deleteOrganization('old')).toBe(false)
  })

  // What a caller without a compiler sends, and the answer to it.
  const wrong: readonly (readonly [name: string, changes: object, options: object, place: string])[] = [
    ['a member that is misspelt', { writes: [] }, {}, '/writes'],
    ['no array', { write: 'memo:1#reader@user:a' }, {}, '/write'],
    ['nothing', {}, {}, ''],
    ['a text that is no tuple', { write: ['memo 1'] }, {}, '/write/0'],
    ['a number', { delete: [7] }, {}, '/delete/0'],
    [
      'an unknown part',
      { write: [{ object: 'memo:1', relation: 'reader', subject: 'user:a', expires: 1 }] },
      {},
      '/write/0/expires',
    ],
    [
      'a text that is not an instant',
      { write: [{ object: 'memo:1', relation: 'reader', subject: 'user:a', expires_at: 'soon' }] },
      {},
      '/write/0/expires_at',
    ],
    [
      'a day that no calendar has',
      { write: [{ object: 'memo:1', relation: 'reader', subject: 'user:a', expires_at: '2030-02-31T00:00:00Z' }] },
      {},
      '/write/0',
    ],
    ['a relation that the model lacks', { write: ['memo:1#writer@user:a'] }, {}, '/write/0'],
    ['a subject that the model does not allow', { write: ['memo:1#reader@service:a'] }, {}, '/write/0'],
    ['a computed relation', { write: ['memo:1#seen@user:a'] }, {}, '/write/0'],
    ['one tuple twice', { write: ['memo:1#reader@user:a'], delete: ['memo:1#reader@user:a'] }, {}, '/delete/0'],
    ['a membership as a tuple', { write: ['organization:acme#admin@user:a'] }, {}, '/write/0'],
    [
      'a text that is not a condition',
      { write: ['memo:1#reader@user:a'] },
      { if: [{ tuple: 'memo:1#reader@user:a' }] },
      '/if/0/exists',
    ],
    ['too many tuples', { write: Array.from({ length: 1_001 }, (_, i) => `memo:${i}#reader@user:a`) }, {}, ''],
  ]
  test.each(wrong)('refuses %s', async (_, changes, options, place) => {
    const found = await pdp.write('acme', changes, options).catch((err: unknown) => err)
    expect(found).toMatchObject({
      code: 'request_invalid',
      issues: expect.arrayContaining([expect.objectContaining({ place })]),
    })
  })

  test('refuses names that are none, and organizations that do not exist', async () => {
    const write = (organization: string) => pdp.write(organization, { write: ['memo:1#reader@user:a'] })
    await expect(write('a#b')).rejects.toMatchObject({ code: 'request_invalid' })
    await expect(write('#environment')).rejects.toMatchObject({ code: 'request_invalid' })
    await expect(write('nobody')).rejects.toMatchObject({ code: 'organization_unknown' })
    await expect(pdp.putMember('#environment', 'a', { role: 'admin' })).rejects.toMatchObject({
      code: 'request_invalid',
    })
    await expect(pdp.putOrganization('#x', { name: 'X' })).rejects.toMatchObject({ code: 'request_invalid' })
  })

  test('refuses a role that nobody declares, and a manifest that would orphan tuples or is malformed', async () => {
    const grant = { app: 'memos', role: 'boss', subject: 'user:a' }
    await expect(pdp.grantRole('acme', grant)).rejects.toMatchObject({ issues: [{ place: '/role' }] })
    await pdp.write('acme', { write: ['memo:9#reader@group:g#member'] })
    const model = MODEL.replace(', group#member', '')
    await expect(pdp.putManifest('memos', { model })).rejects.toMatchObject({
      code: 'conflict',
      issues: [{ place: '/model' }],
    })
    await expect(pdp.putManifest('other', { model: MODEL })).rejects.toMatchObject({ code: 'conflict' })
    await expect(pdp.putManifest('other', { audiences: ['not a URI'] })).rejects.toMatchObject({
      issues: [{ place: '/audiences/0' }],
    })
    await expect(pdp.putManifest('a#b', {})).rejects.toMatchObject({ code: 'request_invalid' })
  })
})

test('refuses entitlements that an external source owns', async () => {
  const store = memoryStore()
  const entitlements = httpEntitlements({ url: 'https://billing.invalid', secret: 's', store, fetch })
  const pdp = createPdp({ store, entitlements })
  await pdp.putOrganization('acme', { name: 'Acme' })
  await expect(pdp.putEntitlement('acme', 'feature.export', true)).rejects.toMatchObject({ code: 'conflict' })
})
