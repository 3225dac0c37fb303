/** The token log: whatever kills a token before its time is seen by the very next decision, at the same moment as the rest. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import { RevokedTokens } from '../../../../pdp/engine/store/cache/revoked-tokens.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import type { Directory } from '../../../../pdp/engine/store/directory.ts'
import { postgresDirectory } from '../../../../pdp/engine/store/postgres/directory.ts'
import { appendJournal } from '../../../../pdp/engine/store/postgres/journal.ts'
import { openPostgres } from '../../../../pdp/engine/store/postgres/postgres.ts'
import type { Pdp } from '../../../../pdp/shared/domain/decision.ts'
import { TOKENS } from '../../../../pdp/shared/domain/journal.ts'
import { REVOCATION_KEPT_MS, revocationKey } from '../../../../pdp/shared/domain/revocation.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { openTestDatabase } from '../../../support/database.ts'
import { context, given, put } from '../../../support/tuples.ts'

const CAUSES = ['jti', 'grant', 'session', 'user', 'client'] as const

describe('the token log', () => {
  let store: Store
  let pdp: Pdp
  let kill: (by: (typeof CAUSES)[number], id: string) => Promise<unknown>
  let directory: Directory
  let close: () => Promise<void>
  const ask = (...revocationKeys: string[]) =>
    pdp.decide({
      organization: 'acme',
      subject: user('ann'),
      permissions: [{ relation: 'viewer', resource: 'doc:1' }],
      revocationKeys,
    })

  beforeEach(async () => {
    const database = await openTestDatabase()
    const opened = await openPostgres({ connectionString: database.connectionString, poolCountMax: 4 })
    store = opened.store
    pdp = createPdp({ store })
    kill = (by, id) => opened.sql.transaction((sql) => appendJournal(sql, TOKENS, [{ kind: 'token', by, id }], context))
    directory = postgresDirectory(opened.sql)
    close = () => opened.close().then(database.drop)
    await given(store, 'acme', put('doc:1#viewer@user:ann'))
  })
  afterEach(() => close())

  test.each(CAUSES)('lets a token die by its %s on the very next decision', async (by) => {
    const keys = CAUSES.map((cause) => revocationKey(cause, 'x'))
    expect(await ask(...keys)).toMatchObject({ tokenRevoked: false, permissions: [{ allowed: true }] })
    await kill(by, 'x')
    expect((await ask(...keys)).tokenRevoked).toBe(true)
    expect((await ask(...CAUSES.map((cause) => revocationKey(cause, 'y')))).tokenRevoked).toBe(false)
  })

  test('knows what died before it was first asked', async () => {
    await kill('grant', 'x')
    expect((await ask(revocationKey('grant', 'x'))).tokenRevoked).toBe(true)
  })

  test('leaves a client the tokens that it gets after its others were ended', async () => {
    const decide = (issuedAtMs: number) =>
      pdp.decide({
        organization: 'acme',
        subject: user('ann'),
        revocationKeys: [revocationKey('client', 'x'), revocationKey('grant', 'g')],
        issuedAtMs,
      })
    await kill('client', 'x')
    expect((await decide(Date.now() - 60_000)).tokenRevoked).toBe(true)
    expect((await decide(Date.now() + 60_000)).tokenRevoked).toBe(false)
    await kill('grant', 'g')
    expect((await decide(Date.now() + 60_000)).tokenRevoked).toBe(true)
  })

  test.each([
    ['loses a scope', { metadata: { scope: 'decisions:ask' } }, true],
    ['moves to another organization', { organization: null }, true],
    ['moves to another app', { app: 'other' }, true],
    ['gains a scope', { metadata: { scope: 'decisions:ask decisions:read roles:write' } }, false],
  ])('ends the tokens of a client that %s: %#', async (_, change, ends) => {
    const client = { id: 'bot', app: null, organization: 'acme', metadata: { scope: 'decisions:ask decisions:read' } }
    const keys = [revocationKey('client', 'bot')]
    await directory.putClient(client, context)
    expect((await ask(...keys)).tokenRevoked).toBe(false)
    await directory.putClient({ ...client, ...change }, context)
    expect((await ask(...keys)).tokenRevoked).toBe(ends)
  })

  test('is not read for questions without a token', async () => {
    await kill('grant', 'x')
    expect((await ask()).tokenRevoked).toBe(false)
  })
})

describe('a list of revocations', () => {
  test('counts the last of several revocations by one key, in whatever order they come', () => {
    const list = new RevokedTokens([
      { key: 'client x', atMs: 9 },
      { key: 'client x', atMs: 5 },
    ])
    expect(list.at('client x')).toBe(9)
    list.add({ key: 'client x', atMs: 7 })
    expect(list.at('client x')).toBe(9)
  })

  test('forgets what no token can be alive by, and nothing younger', () => {
    const list = new RevokedTokens([])
    list.add({ key: 'jti old', atMs: 0 })
    list.add({ key: 'jti kept', atMs: 1 })
    for (let i = 0; i < 2_000; i++) list.add({ key: `jti ${i}`, atMs: REVOCATION_KEPT_MS + 1 })
    expect(['jti old', 'jti kept', 'jti 0'].map((key) => list.at(key))).toEqual([undefined, 1, REVOCATION_KEPT_MS + 1])
  })
})
