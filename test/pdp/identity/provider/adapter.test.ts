/** oidc-provider's records when many write the same one. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { postgresDirectory } from '../../../../pdp/engine/store/postgres/directory.ts'
import { appendEvents } from '../../../../pdp/engine/store/postgres/outbox.ts'
import { openPostgres } from '../../../../pdp/engine/store/postgres/postgres.ts'
import { createRevocations, type Revocations } from '../../../../pdp/identity/issuer/tokens/revocation.ts'
import { createSessionEvents } from '../../../../pdp/identity/issuer/tokens/session-events.ts'
import { createAdapters } from '../../../../pdp/identity/provider/adapter.ts'
import { createRedemption } from '../../../../pdp/identity/provider/redemption.ts'
import { masterKeysOf } from '../../../../pdp/shared/base/encryption.ts'
import { openTestDatabase } from '../../../support/database.ts'

let adapterOf: ReturnType<typeof createAdapters>
let revocations: Revocations
let close: () => Promise<void>
beforeAll(async () => {
  const database = await openTestDatabase()
  const { sql, close: end } = await openPostgres({ connectionString: database.connectionString })
  revocations = createRevocations({ sql, appendEvents, clock: Date.now })
  adapterOf = createAdapters({
    sql,
    directory: postgresDirectory(sql),
    revocations,
    redemption: createRedemption({ sql, revocations, path: '/oauth/token', clock: Date.now }),
    masterKeys: masterKeysOf(Buffer.alloc(32, 7)),
    sessionEvents: createSessionEvents(appendEvents),
    documents: null,
    clientKeys: { of: async () => ({ keys: [] }) },
  })
  close = () => end().then(database.drop)
})
afterAll(() => close())

test.each([
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
  expect(await adapter.find('one')).toEqual({ ...other, jti: 'one', accountId: expect.stringMatching(/^19\./) })
})

test.each([
  ['signing out', (id: string) => adapterOf('Session').destroy(id)],
  ['revocation', (id: string) => revocations.revokeSession(`uid of ${id}`, { actor: 'test', requestId: 'r' })],
])('a Session ended by %s is not stored again by a request that began before', async (how, end) => {
  const adapter = adapterOf('Session')
  const payload = { uid: `uid of ${how}`, accountId: 'eve' }
  await adapter.upsert(how, payload, 60)
  await end(how)
  await adapter.upsert(how, payload, 60)
  expect([await adapter.find(how), await adapter.findByUid(payload.uid)]).toEqual([undefined, undefined])
  // A sign-in changes the id and keeps the uid.
  await adapter.upsert(`${how} anew`, payload, 60)
  expect(await adapter.findByUid(payload.uid)).toEqual(payload)
})
