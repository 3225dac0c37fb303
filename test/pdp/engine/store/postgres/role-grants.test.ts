/** A role grant is deleted as what it is: caches find what a deletion affects by what it says. */
import { describe, expect, test } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../../pdp/engine/store/memory/memory.ts'
import { openPostgres } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import type { RoleGrant } from '../../../../../pdp/shared/domain/role.ts'
import { openTestDatabase } from '../../../../support/database.ts'
import { context, given, grant } from '../../../../support/tuples.ts'

const ROLE = { kind: 'role', key: 'r', role: { key: 'r', name: 'R', permissions: ['x:read'] } } as const
const STORED: RoleGrant = { id: '1', app: null, role: 'r', subject: 'user:alice' }
const STORES: readonly (readonly [name: string, open: () => Promise<{ store: Store; close(): Promise<void> }>])[] = [
  ['memory', async () => ({ store: memoryStore(), close: async () => {} })],
  [
    'PostgreSQL',
    async () => {
      const database = await openTestDatabase()
      const opened = await openPostgres({ connectionString: database.connectionString })
      return {
        store: opened.store,
        async close() {
          await opened.close()
          await database.drop()
        },
      }
    },
  ],
]

describe.each(STORES)('a deletion of a role grant in %s', (_, open) => {
  test.each<[string, Partial<RoleGrant>]>([
    ['subject', { subject: 'user:bob' }],
    ['role', { role: 's' }],
    ['app', { app: 'a' }],
  ])('that names another %s is refused, and what is cached stays right', async (_field, wrong) => {
    const { store, close } = await open()
    await given(store, ENVIRONMENT, ROLE)
    await given(store, 'acme', grant(STORED.id, STORED.role, STORED.subject))
    const pdp = createPdp({ store })
    const ask = () => pdp.can('acme', { type: 'user', id: 'alice' }, 'x:read', 'organization:acme')
    expect(await ask()).toBe(true)
    const remove = (it: RoleGrant) =>
      store.write('acme', [{ kind: 'role_grant', op: 'delete', grant: it }], { context })
    await expect(remove({ ...STORED, ...wrong })).rejects.toMatchObject({ code: 'conflict' })
    expect(await ask()).toBe(true)
    await remove(STORED)
    expect(await ask()).toBe(false)
    await close()
  })
})
