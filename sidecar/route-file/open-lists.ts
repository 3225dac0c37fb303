/** Finds routes that show whole lists although other routes check each item by itself. */
import { type Check, checkText } from '../routes/checks.ts'
import { type Pattern, patternText } from '../routes/patterns.ts'
import type { Route } from '../routes/route.ts'
import type { RouteFile } from './route-file.ts'

/** One sentence per such list, with the `answer` setting that would show each reader only the reader's own items. */
export function openLists(
  { routes }: Pick<RouteFile, 'routes'>,
  placeOf: (id: string) => string = () => '$.items[*]',
): string[] {
  const reads = routes.filter(({ method, mcp }) => method === 'GET' && mcp === null)
  return reads.flatMap((list) => {
    if (list.check === null || list.answer !== null) return []
    const item = reads.find((one) => one.host === list.host && isItemOf(one.pattern, list.pattern))
    const check = item === undefined ? null : checkOfItem(item)
    return check === null || item === undefined
      ? []
      : [
          `${list.id} shows all of its list to whom its check lets pass, but ${item.id} asks for ${check} of each item. To show each reader the reader's own, add answer: {each: "${placeOf(list.id)}", keep: "${check.replaceAll('{', '{item.')}"}, with the place of the list in the service's answer`,
        ]
  })
}

/** True if the paths of `item` are one level below `list`: `/invoices/{id}` and `/invoices`. */
function isItemOf(item: Pattern, list: Pattern): boolean {
  const last = item.segments.at(-1)
  if (item.rest || list.rest || last?.kind !== 'parameter' || item.segments.length !== list.segments.length + 1)
    return false
  return patternText(item).startsWith(`${patternText(list)}/{`)
}

/** The relation that has the path's last parameter as its id, as text; null: the route has none. */
function checkOfItem({ check, pattern }: Route): string | null {
  const { length } = pattern.segments.filter(({ kind }) => kind === 'parameter')
  const found = relationsOf(check).find(({ id }) => {
    const sources = id.filter((part) => typeof part === 'object')
    return sources.length === 1 && sources.every((part) => part.from === 'path' && part.index === length - 1)
  })
  return found === undefined ? null : checkText(found)
}

function relationsOf(check: Check | null): readonly Extract<Check, { kind: 'relation' }>[] {
  if (check === null) return []
  if (check.kind === 'all') return check.of.flatMap(relationsOf)
  return check.kind === 'relation' ? [check] : []
}
