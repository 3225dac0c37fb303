/** The token log: whatever kills a token before its time is seen by the very next decision, at the same moment as the rest. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createPdp } from '../../../pdp/create-pdp.ts'
import type { Pdp } from '../../../pdp/pdp.ts'
import { DEATH_KEPT_MS, deathKey, type Store, TOKENS } from '../../../pdp/store/contracts.ts'
import { DeathList } from '../../../pdp/store/death-list.ts'
import { openPostgres } from '../../../pdp/store/postgres.ts'
import { appendLog } from '../../../pdp/store/postgres-log.ts'
import { user } from '../../../pdp/subjects.ts'
import { openTestDatabase } from '../../support/database.ts'
import { context, given, put } from '../../support/tuples.ts'

const CAUSES = ['jti', 'grant', 'session', 'user', 'client'] as const

describe('the token log', () => {
  let store: Store
  let pdp: Pdp
  let kill: (by: (typeof CAUSES)[number], id: string) => Promise<unknown>
  let close: () => Promise<void>
  const ask = (...deathKeys: string[]) =>
    pdp.decide({
      organization: 'acme',
      subject: user('ann'),
      permissions: [{ relation: 'viewer', resource: 'doc:1' }],
      deathKeys,
    })

  beforeEach(async () => {
    const database = await openTestDatabase()
    const opened = await openPostgres({ connectionString: database.connectionString, poolCountMax: 4 })
    store = opened.store
    pdp = createPdp({ store })
    kill = (by, id) => opened.sql.transaction((sql) => appendLog(sql, TOKENS, [{ kind: 'token', by, id }], context))
    close = () => opened.close().then(database.drop)
    await given(store, 'acme', put('doc:1#viewer@user:ann'))
  })
  afterEach(() => close())

  it.each(CAUSES)('lets a token die by its %s on the very next decision', async (by) => {
    const keys = CAUSES.map((cause) => deathKey(cause, 'x'))
    expect(await ask(...keys)).toMatchObject({ tokenDead: false, permissions: [{ allowed: true }] })
    await kill(by, 'x')
    expect((await ask(...keys)).tokenDead).toBe(true)
    expect((await ask(...CAUSES.map((cause) => deathKey(cause, 'y')))).tokenDead).toBe(false)
  })

  it('knows what died before it was first asked', async () => {
    await kill('grant', 'x')
    expect((await ask(deathKey('grant', 'x'))).tokenDead).toBe(true)
  })

  it('is not read for questions without a token', async () => {
    await kill('grant', 'x')
    expect((await ask()).tokenDead).toBe(false)
  })
})

describe('a list of deaths', () => {
  it('forgets what no token can be alive by, and nothing younger', () => {
    const list = new DeathList([])
    list.add({ key: 'jti old', atMs: 0 })
    list.add({ key: 'jti kept', atMs: 1 })
    for (let i = 0; i < 2_000; i++) list.add({ key: `jti ${i}`, atMs: DEATH_KEPT_MS + 1 })
    expect([list.has('jti old'), list.has('jti kept'), list.has('jti 0')]).toEqual([false, true, true])
  })
})
