/** Sidecars of one resource with different route files: the differences side by side, the newest file first. */
import { EMPTY, type Html, html, joined } from '../../../shared/base/html.ts'
import type { ReportedRoute, ReportedSidecar } from '../../serve/grpc/route-reports.ts'
import { alert, instant, name } from '../parts.ts'
import { type Place, table } from './table.ts'

/** How many older files of one resource are compared. */
const OLDER_MAX = 3
/** How many sidecars of a file are named. */
const NAMED_MAX = 5

type File = { readonly hash: string; readonly sidecars: readonly ReportedSidecar[]; readonly sinceMs: number }

/** The differences; empty if all sidecars have the same file. */
export function routeDifferences(visit: Place, all: readonly ReportedSidecar[]): Html {
  const shown = [...Map.groupBy(all, ({ resource }) => resource)].map(([resource, of], i) => {
    const files = filesOf(of)
    const [newer, ...older] = files
    if (newer === undefined || older.length === 0) return EMPTY
    const tables = older
      .slice(0, OLDER_MAX)
      .map((one, j) => compared(visit, { id: `difference-${i}-${j}`, newer, older: one }))
    return html`${alert(html`The sidecars of ${name(resource)} enforce ${String(files.length)} different route files.`)}${tables}`
  })
  return html`${shown}`
}

/** The route files, the one that this PDP heard of last first. */
function filesOf(sidecars: readonly ReportedSidecar[]): readonly File[] {
  const files = [...Map.groupBy(sidecars, ({ fileHash }) => fileHash)].map(([hash, of]): File => {
    return { hash, sidecars: of, sinceMs: Math.min(...of.map(({ loadedMs }) => loadedMs)) }
  })
  return files.sort((a, b) => b.sinceMs - a.sinceMs)
}

function compared(
  visit: Place,
  { id, newer, older }: { readonly id: string; readonly newer: File; readonly older: File },
): Html {
  const [after, before] = [newer, older].map(routesOf)
  const ids = [...new Set([...(after?.keys() ?? []), ...(before?.keys() ?? [])])]
  const rows = ids.flatMap((route) => {
    const [now, was] = [after?.get(route), before?.get(route)]
    return now === was ? [] : [[name(route), textOf(now), textOf(was)]]
  })
  return html`<dl><dt>Newer</dt><dd>${about(newer)}</dd><dt>Older</dt><dd>${about(older)}</dd></dl>
${table(visit, { id, isWhole: true, caption: 'Routes that differ', columns: ['Route', 'Newer', 'Older'], rows, empty: html`<p>The routes and their checks are the same: the files differ in something else, such as the upstream or a limit.</p>` })}`
}

const about = ({ hash, sidecars, sinceMs }: File): Html =>
  html`<span class="id">${name(hash)}</span>, reported since ${instant(sinceMs)} by ${joined(sidecars.slice(0, NAMED_MAX).map((one) => name(one.name)))}${sidecars.length > NAMED_MAX ? ` and ${sidecars.length - NAMED_MAX} more` : EMPTY}`

const textOf = (text: string | undefined): Html =>
  text === undefined ? html`<span class="note">no such route</span>` : name(text)

const routesOf = ({ sidecars: [first] }: File): ReadonlyMap<string, string> =>
  new Map(
    (first?.routes ?? []).map((route: ReportedRoute) => [
      route.id,
      `${route.check}${route.shadow ? '; shadow mode' : ''}`,
    ]),
  )
