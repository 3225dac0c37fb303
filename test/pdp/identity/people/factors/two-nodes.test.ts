/** A code or a recovery code that is given at two nodes at the same time. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { appendJournal } from '../../../../../pdp/engine/store/postgres/journal.ts'
import { appendEvents } from '../../../../../pdp/engine/store/postgres/outbox.ts'
import { createSecondFactor } from '../../../../../pdp/identity/people/factors/second-factor.ts'
import { masterKeysOf } from '../../../../../pdp/shared/base/encryption.ts'
import { codeOf } from '../../../../support/authenticator.ts'
import { CONTEXT, MASTER_KEY, openWorld, type World } from '../../harness.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world.close())

/** The clock of the second node is `aheadMs` ahead. */
const nodes = (nowMs: number, aheadMs: number) =>
  [0, aheadMs].map((ahead) =>
    createSecondFactor({
      ...{ issuer: world.issuer, sql: world.sql, directory: world.directory, appendJournal, appendEvents },
      revocations: { endUser: async () => [] },
      masterKeys: masterKeysOf(MASTER_KEY),
      clock: () => nowMs + ahead,
    }),
  )
const givenAtBoth = async (both: ReturnType<typeof nodes>, user: string, code: string) => {
  const given = await Promise.all([...both, ...both, ...both].map((node) => node.accept(user, code)))
  return given.map(({ by }) => by).filter((by) => by !== 'nothing')
}
// Two seconds into a time step.
const NOW = 1_800_000_002_000

test.each([0, 29_000])(
  'of the app counts at one of them, with clocks %i ms apart, and no older one after it',
  async (ahead) => {
    const user = ahead === 0 ? 'eve' : 'ann'
    const both = nodes(NOW, ahead)
    const secret = (await both[0]?.enroll(user, CONTEXT))?.secret ?? ''
    expect(await givenAtBoth(both, user, codeOf(secret, NOW))).toEqual(['app'])
    expect(await givenAtBoth(both, user, codeOf(secret, NOW))).toEqual([])
    expect(await givenAtBoth(both, user, codeOf(secret, NOW - 30_000))).toEqual([])
  },
)

test('of those that are kept on paper counts at one of them', async () => {
  const both = nodes(NOW, 0)
  await both[0]?.enroll('cy', CONTEXT)
  const [first = '', second = ''] = (await both[0]?.renewRecoveryCodes('cy', { ts: NOW / 1_000 }, CONTEXT)) ?? []
  expect(await givenAtBoth(both, 'cy', first)).toEqual(['recovery'])
  expect(await givenAtBoth(both, 'cy', first)).toEqual([])
  expect(await givenAtBoth(both, 'cy', second.toLowerCase().replaceAll('-', ' '))).toEqual(['recovery'])
})
