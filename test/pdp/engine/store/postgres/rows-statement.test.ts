/** Reading row sets: many keys in one statement give what each gives alone. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RowKey, Store } from '../../../../../pdp/engine/store/contract.ts'
import { openPostgres } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import { rowsStatement } from '../../../../../pdp/engine/store/postgres/rows.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { openTestDatabase } from '../../../../support/database.ts'
import { given, grant, member, put } from '../../../../support/tuples.ts'

const log = 'acme'
const KEYS: readonly RowKey[] = [
  { log, kind: 'set', object: 'doc:1', relation: 'viewer' },
  { log, kind: 'tuple', object: 'doc:1', relation: 'viewer', subject: 'user:alice' },
  { log, kind: 'groups', subject: 'user:alice' },
  { log, kind: 'groups', subject: 'group:a#member' },
  { log, kind: 'membership', user: 'alice' },
  { log, kind: 'grants', subject: 'user:alice' },
  { log, kind: 'grants', subject: 'group:a' },
  { log, kind: 'grants', subject: 'group:b' },
  { log: ENVIRONMENT, kind: 'organization', id: log },
  { log: ENVIRONMENT, kind: 'manifests' },
  { log: ENVIRONMENT, kind: 'roles' },
]

let store: Store
let close: () => Promise<void>
beforeAll(async () => {
  const database = await openTestDatabase()
  const opened = await openPostgres({ connectionString: database.connectionString })
  store = opened.store
  close = async () => {
    await opened.close()
    await database.drop()
  }
  await given(store, log, member('alice', 'member'), put('doc:1#viewer@user:alice'), put('doc:1#viewer@group:b#member'))
  await given(store, log, put('group:a#member@user:alice'), put('group:b#member@group:a#member'))
  await given(store, log, grant('1', 'r', 'user:alice'), grant('2', 'r', 'group:a'), grant('3', 'r', 'group:b'))
})
afterAll(() => close())

describe('row sets', () => {
  test.each(KEYS.map((key) => [Object.values(key).join(' '), key] as const))(
    'of %s are the same whether read alone or along with others',
    async (_, key) => {
      const ofKey = async (keys: readonly RowKey[]) =>
        (await store.rows([log], keys)).rows.filter((rows) => JSON.stringify(rows.key) === JSON.stringify(key))
      const alone = await ofKey([key])
      expect(alone).toHaveLength(1)
      expect(await ofKey(KEYS)).toEqual(alone)
    },
  )

  test('are read by statements whose names PostgreSQL keeps whole and apart', () => {
    const names = new Map<string, string>()
    for (let chosen = 0; chosen < 2 ** KEYS.length; chosen++) {
      const { name, text } = rowsStatement(
        [[log], [null]],
        KEYS.filter((_, i) => (chosen & (1 << i)) !== 0),
      )
      expect(Buffer.byteLength(name)).toBeLessThan(64)
      expect(names.get(name) ?? text).toBe(text)
      names.set(name, text)
    }
  })
})
