/** Which routes the tests of a route file reach. */
import type { RouteFile } from '../route-file/route-file.ts'
import { createExplainer } from './explain.ts'

/** How many tests take a route, by its id. */
export function testsByRoute(file: RouteFile): ReadonlyMap<string, number> {
  const explain = createExplainer(file)
  const counts = new Map<string, number>()
  for (const test of file.tests) {
    const id = explain(test).route?.id
    if (id !== undefined) counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  return counts
}
