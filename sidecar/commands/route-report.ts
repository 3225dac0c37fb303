/** Reports on a route file for the command line: its routes in order of precedence, and the results of its tests. */
import type { RouteFile } from '../route-file/route-file.ts'
import type { RouteTest } from '../route-file/tests.ts'
import { isWithin } from '../routes/patterns.ts'
import type { Route } from '../routes/route.ts'
import { createExplainer, type Explanation } from './explain.ts'

/** One line for each route; a more specific path comes before the wider one. */
export function describeRoutes({ routes }: RouteFile): string[] {
  const ordered: Route[] = []
  for (const route of routes) {
    const at = ordered.findIndex((other) => route.host === other.host && isWithin(route.pattern, other.pattern))
    ordered.splice(at < 0 ? ordered.length : at, 0, route)
  }
  const width = Math.max(0, ...ordered.map(({ id }) => id.length))
  return ordered.map((route) => `${route.id.padEnd(width)}  ${route.check === null ? 'public' : 'checked'}`)
}

export type TestReport = { readonly lines: readonly string[]; readonly failed: number }

/** Ends with `N passed, N failed`; routes that no test names are listed before that. */
export function runRouteTests(file: RouteFile, path: string): TestReport {
  const explainer = createExplainer(file)
  const reached = new Set<string>()
  const lines: string[] = []
  let failed = 0
  for (const test of file.tests) {
    const explanation = explainer(test)
    if (explanation.route !== null) reached.add(explanation.route.id)
    const complaints = compare(test, explanation)
    if (complaints.length > 0) failed += 1
    for (const complaint of complaints) lines.push(`${path}:${test.line}: ${test.method} ${test.target}: ${complaint}`)
  }
  const untested = file.routes.filter(({ id }) => !reached.has(id))
  for (const { id } of untested) lines.push(`no test reaches ${id}`)
  lines.push(`${file.tests.length - failed} passed, ${failed} failed`)
  return { lines, failed }
}

function compare({ expect }: RouteTest, { route, asks, context, denial }: Explanation): string[] {
  const complaints: string[] = []
  const seen = route?.id ?? 'none'
  const detail = denial === null ? '' : ` (${denial.status} ${denial.detail})`
  if (expect.route !== null && expect.route !== seen)
    complaints.push(`took the route ${seen}, not ${expect.route}${detail}`)
  if (expect.asks !== null && !sameMembers(expect.asks, asks))
    complaints.push(`asked ${list(asks)}, not ${list(expect.asks)}${detail}`)
  const [wanted, found] = [expect.context === null ? null : contextText(expect.context), contextText(context)]
  if (wanted !== null && wanted !== found) complaints.push(`had the context ${found}, not ${wanted}${detail}`)
  if (expect.status !== null && expect.status !== denial?.status)
    complaints.push(`was ${denial === null ? 'not refused' : denial.status}, not ${expect.status}`)
  return complaints
}

const contextText = (context: { readonly [parameter: string]: unknown }): string =>
  JSON.stringify(Object.fromEntries(Object.entries(context).sort(([a], [b]) => (a < b ? -1 : 1))))

const list = (texts: readonly string[]): string => (texts.length === 0 ? 'nothing' : texts.join(', '))

const sameMembers = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((text) => b.includes(text))
