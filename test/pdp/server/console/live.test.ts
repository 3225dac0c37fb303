/** What a look at the decisions sends, and what it says that it did not. */
import { expect, test } from 'vitest'
import { since } from '../../../../pdp/server/console/live.ts'
import type { KeptDecision } from '../../../../pdp/server/serve/decisions/decision-ring.ts'

const decision = (number: number): KeptDecision => ({
  number,
  atMs: 0,
  decisionId: `d${number}`,
  requestId: `r${number}`,
  route: null,
  clientId: null,
  subject: 'user:bob',
  organization: 'acme',
  app: null,
  acting: {},
  permissions: [],
  entitlements: [],
  isInactive: false,
  durationMs: 1,
  isWhole: true,
})
/** The newest first, as they are kept. */
const kept = (count: number): readonly KeptDecision[] =>
  Array.from({ length: count }, (_, i) => decision(count - 1 - i))
const all = () => true

test.each([
  [20, 20, 0],
  [21, 20, 1],
  [500, 20, 480],
])('of %i new decisions it sends %i, and says that there are %i more', (count, sent, more) => {
  const { newest, leftOut } = since(kept(count), { from: -1, isWanted: all })
  expect({ sent: newest.length, leftOut }).toEqual({ sent, leftOut: more })
  expect(newest.at(-1)?.number).toBe(count - 1)
})

test('what was seen before, or is not wanted, is neither sent nor counted', () => {
  expect(since(kept(30), { from: 29, isWanted: all })).toEqual({ newest: [], leftOut: 0 })
  const { newest, leftOut } = since(kept(100), { from: 9, isWanted: ({ number }) => number % 2 === 0 })
  expect([newest.length, leftOut]).toEqual([20, 25])
})
