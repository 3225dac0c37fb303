/** Which routes the tests of a route file reach. */
import { setImmediate } from 'node:timers/promises'
import type { RouteTest } from '../route-file/tests.ts'
import type { Explainer } from './explain.ts'

/** The number of tests that reach each route, by the route's id. The sidecar serves requests between tests, each under a millisecond. */
export async function testsByRoute(
  tests: readonly RouteTest[],
  explain: Explainer,
): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>()
  for (const [at, test] of tests.entries()) {
    if (at % TESTED_IN_TURN === 0) await setImmediate()
    const id = explain(test).route?.id
    if (id !== undefined) counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  return counts
}

const TESTED_IN_TURN = 10
