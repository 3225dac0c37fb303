/** The engine's records when many write the same one. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createAdapters } from '../../../pdp/identity/adapter.ts'
import { createEndings } from '../../../pdp/identity/endings.ts'
import { createRotation } from '../../../pdp/identity/rotation.ts'
import { openPostgres } from '../../../pdp/store/postgres.ts'
import { postgresDirectory } from '../../../pdp/store/postgres-directory.ts'
import { appendLog } from '../../../pdp/store/postgres-log.ts'
import { appendEvents } from '../../../pdp/store/postgres-outbox.ts'
import { openTestDatabase } from '../../support/database.ts'

let adapterOf: ReturnType<typeof createAdapters>
let close: () => Promise<void>
beforeAll(async () => {
  const database = await openTestDatabase()
  const { sql, close: end } = await openPostgres({ connectionString: database.connectionString })
  const endings = createEndings({ sql, appendLog, appendEvents, clock: Date.now })
  const rotation = createRotation({ sql, path: '/oauth/token' })
  adapterOf = createAdapters({ sql, directory: postgresDirectory(sql), endings, rotation })
  close = () => end().then(database.drop)
})
afterAll(() => close())

it.each([
  ['Session', { uid: 'u' }],
  ['DeviceCode', { userCode: 'BCDF' }],
])('a %s is kept by 20 at once', async (kind, other) => {
  const adapter = adapterOf(kind)
  await adapter.upsert('one', other, 60)
  for (let round = 0; round < 20; round++) {
    const writers = Array.from({ length: 20 }, (_, i) =>
      adapter.upsert('one', { ...other, accountId: `${round}.${i}` }, 60),
    )
    await Promise.all(writers)
  }
  expect(await adapter.find('one')).toEqual({ ...other, accountId: expect.stringMatching(/^19\./) })
})
