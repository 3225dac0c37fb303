/** What the start page tells operators to look at. */
import { expect, test } from 'vitest'
import { ofConditions } from '../../../../pdp/server/console/operations.ts'
import { createDecisionRing } from '../../../../pdp/server/serve/decisions/decision-ring.ts'

const KEPT = {
  ...{ atMs: 0, decisionId: 'd', requestId: null, clientId: null, subject: 'user:ann', app: null, acting: {} },
  ...{ entitlements: [], isInactive: false, durationMs: 1, isWhole: true },
}
const lacking = (resource: string, missingContext: readonly string[]) =>
  ({ relation: 'viewer', resource, allowed: false, reasonCode: 'condition_failed', missingContext }) as const

test('a route that sends no value which conditions need is named once for each value and type, and only here', () => {
  const decisions = createDecisionRing(100)
  const denied = { relation: 'viewer', resource: 'memo:1', allowed: false, reasonCode: 'none' } as const
  for (const organization of ['acme', 'other'])
    for (const [route, permissions] of [
      ['GET /c/{id}', [lacking('contract:1', ['ip']), denied]],
      ['GET /c/{id}', [lacking('contract:2', ['ip', 'hour'])]],
      ['GET /fine', [denied]],
      [null, [lacking('memo:1', ['ip'])]],
    ] as const)
      decisions.record({ ...KEPT, organization, route: organization === 'acme' ? route : 'GET /theirs', permissions })
  const visit = { deps: { decisions }, organization: 'acme', may: () => true }
  const told = ofConditions(visit).map(({ what }) => String(what).replace(/<[^>]*>/g, ''))
  expect(told.sort()).toEqual([
    'An application sends no ip, which grants on memo need',
    'Route GET /c/{id} sends no hour, which grants on contract need',
    'Route GET /c/{id} sends no ip, which grants on contract need',
  ])
  expect(ofConditions({ ...visit, may: () => false })).toEqual([])
  expect(ofConditions({ ...visit, organization: null })).toEqual([])
})
