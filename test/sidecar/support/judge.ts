/** Which route a table finds for a request, without a sidecar around it. */

import { parseTarget } from '../../../sidecar/request/target.ts'
import type { RouteFile } from '../../../sidecar/route-file/route-file.ts'
import { createRouteTable } from '../../../sidecar/routes/route-table.ts'
import { loadFile, routeFile } from './harness.ts'

export const loadRoutes = (routes: string): RouteFile =>
  loadFile(routeFile(routes.trim()).replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1'))

/**
 * `line`: method and target. The route's id; `refused` when it may be taken for another; `overlap` when none is the most specific; 405 and 404 as the sidecar would answer.
 */
export function judge(routes: string, line: string): string {
  const [method = '', target = ''] = line.split(' ')
  const path = parseTarget(target)
  const match = createRouteTable(loadRoutes(routes).routes).match({ host: 'app.test', method, path })
  if (match.kind === 'route') return match.route.id
  if (match.kind === 'overlap') return 'overlap'
  return match.kind === 'ambiguous' ? 'refused' : match.kind === 'method' ? '405' : '404'
}
