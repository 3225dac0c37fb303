/** Questions about the past over HTTP: the asker is who it is now. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { appendJournal } from '../../../../../pdp/engine/store/postgres/journal.ts'
import { TOKENS } from '../../../../../pdp/shared/domain/journal.ts'
import { CONTEXT, type Json, type Served, seedAcme, serve } from '../harness.ts'

let served: Served
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  const metadata = { scope: 'decisions:read' }
  await served.directory.putClient({ id: 'reader', app: null, organization: 'acme', metadata }, CONTEXT)
})
afterAll(() => served.close())

test('a token that is revoked now learns nothing of a time when it was not', async () => {
  const reader = (jti: string): string =>
    served.token({
      subject: { type: 'service', id: 'reader' },
      clientId: 'reader',
      scopes: new Set(['decisions:read']),
      audiences: ['https://id.example.test'],
      revocationKeys: [`jti ${jti}`],
    })
  const body = {
    subject: { type: 'user', id: 'alice' },
    permissions: [{ relation: 'viewer', resource: 'invoice:1' }],
    as_of: new Date().toISOString(),
  }
  const ask = async (token: string): Promise<Json> =>
    (await served.send('POST', '/oauth/decisions', { token, body })).body
  const [gone, other] = [reader('gone'), reader('other')]
  expect((await ask(gone)).permissions[0].allowed).toBe(true)
  await served.sql.transaction((sql) => appendJournal(sql, TOKENS, [{ kind: 'token', by: 'jti', id: 'gone' }], CONTEXT))
  expect(await ask(gone)).toMatchObject({ subject: null, permissions: [{ allowed: false }] })
  expect((await ask(other)).permissions[0].allowed).toBe(true)
})
