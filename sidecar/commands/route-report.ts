/** Reports on a route file for the command line: its routes in order of precedence, and the results of its tests. */

import { messageOf } from '../../pdp/shared/base/error-message.ts'
import { createExplainer, type Explanation } from '../enforce/explain.ts'
import type { RouteFile } from '../route-file/route-file.ts'
import type { RouteTest } from '../route-file/tests.ts'
import { isWithin } from '../routes/patterns.ts'
import type { Route } from '../routes/route.ts'

/** The routes, sorted so that a more specific path comes before a wider one. */
export function orderedRoutes({ routes }: RouteFile): readonly Route[] {
  const ordered: Route[] = []
  // A route for MCP has an entry for each of its methods, of which only POST is shown.
  for (const route of routes.filter(({ mcp, method }) => mcp === null || method === 'POST')) {
    const at = ordered.findIndex((other) => route.host === other.host && isWithin(route.pattern, other.pattern))
    ordered.splice(at < 0 ? ordered.length : at, 0, route)
  }
  return ordered
}

/** One line for each route. */
export function describeRoutes(file: RouteFile): string[] {
  const ordered = orderedRoutes(file)
  const width = Math.max(0, ...ordered.map(({ id }) => id.length))
  return ordered.map((route) => `${route.id.padEnd(width)}  ${route.check === null ? 'public' : 'checked'}`)
}

export type TestReport = {
  readonly passed: number
  readonly failed: number
  /** One line for each failed test, with its place in the file. */
  readonly failures: readonly string[]
  /** Ids of routes that no test reaches. */
  readonly untested: readonly string[]
}

export async function runRouteTests(file: RouteFile, path: string): Promise<TestReport> {
  const explainer = createExplainer(file)
  const reached = new Set<string>()
  const failures: string[] = []
  let failed = 0
  for (const test of file.tests) {
    const explanation = explainer(test)
    if (explanation.route !== null) reached.add(explanation.route.id)
    const complaints = [...compare(test, explanation), ...(await compareAnswer(test, explanation))]
    if (complaints.length > 0) failed += 1
    for (const complaint of complaints)
      failures.push(`${path}:${test.line}: ${test.method} ${test.target}: ${complaint}`)
  }
  const untested = [...new Set(file.routes.map(({ id }) => id))].filter((id) => !reached.has(id))
  return { passed: file.tests.length - failed, failed, failures, untested }
}

/** Ends with `N passed, N failed`; routes that no test reaches are listed before that. */
export const describeReport = ({ passed, failed, failures, untested }: TestReport): readonly string[] => [
  ...failures,
  ...untested.map((id) => `no test reaches ${id}`),
  `${passed} passed, ${failed} failed`,
]

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

async function compareAnswer({ answer, expect }: RouteTest, { edit, denial, route }: Explanation): Promise<string[]> {
  if (answer === null || expect.answer === null) return []
  if (denial !== null) return [`was refused, so that nobody gets the answer (${denial.status} ${denial.detail})`]
  if (edit === null) return [`took the route ${route?.id ?? 'none'}, which filters no answers`]
  try {
    const found = await edit(answer.text, answer.allowed)
    return found === expect.answer ? [] : [`showed ${found}, not ${expect.answer}`]
  } catch (err) {
    return [`lost the whole answer: ${messageOf(err)}`]
  }
}

const contextText = (context: { readonly [parameter: string]: unknown }): string =>
  JSON.stringify(Object.fromEntries(Object.entries(context).sort(([a], [b]) => (a < b ? -1 : 1))))

const list = (texts: readonly string[]): string => (texts.length === 0 ? 'nothing' : texts.join(', '))

const sameMembers = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((text) => b.includes(text))
