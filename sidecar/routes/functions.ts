/**
 * Page frameworks run functions of a page (server functions, actions, islands) at paths that do not name the page: at an endpoint of the
 * framework, or at any path, for a POST with a certain query key. So a route for many paths could open functions of guarded pages.
 */
import { PAGE_FUNCTION_KEYS, PAGE_FUNCTION_STARTS, PAGE_FUNCTIONS } from '../frameworks/page-frameworks.ts'
import { foldText } from '../http/folding.ts'
import { addedNames, strippedCount } from '../http/upstream-entry.ts'
import { RequestError } from '../request/errors.ts'
import type { RequestTarget } from '../request/target.ts'
import { namesSent } from './path-readings.ts'
import { decodeAgain } from './query.ts'
import type { Route } from './route.ts'

/** Matches unfolded paths that may name such an endpoint. */
const MAY_NAME_ENDPOINT = /\/(?:_|rsc[;/])|%/i

const MAY_HAVE_KEY = /_action|\/remote|%/

/**
 * Refuses a request that could run a function of a guarded page. `findGuarded`: a guarded route with other rules whose paths may begin with
 * these folded names, or null. Throws RequestError, unless the route names the endpoint, or has `query: keep` for the key.
 */
export function refuseFunction(
  { method, target }: { readonly method: string; readonly target: RequestTarget },
  route: Route,
  findGuarded: (names: readonly string[]) => Route | null,
): void {
  const { path, query, segments } = target
  if (route.addPath !== null || MAY_NAME_ENDPOINT.test(path)) {
    const count = strippedCount(route.stripPath)
    const added = addedNames(route.addPath).length
    const sent = namesSent(route, segments)
    const names = sent.flatMap((text) => foldText(text).split('/')).map((text) => text.split(';', 1)[0] ?? '')
    const { base, last } = endpointIn(names)
    const isNamed =
      names.length === sent.length && (last < added || route.pattern.segments[count + last - added]?.kind === 'literal')
    if (last >= 0 && !isNamed)
      refuse(
        'This path may run functions of any page',
        'add a route that names it',
        findGuarded([...segments.slice(0, count).map(foldText), ...base.slice(added)]),
      )
  }
  if (method === 'POST' && query !== null && !route.query && MAY_HAVE_KEY.test(query) && namesFunction(query))
    refuse('The query may name a function of any page', 'set query: keep', findGuarded([]))
}

/** `base`: the names before the endpoint. `last`: the index of the endpoint's last name; -1: the path has no endpoint. */
function endpointIn(names: readonly string[]): { readonly base: readonly string[]; readonly last: number } {
  for (const [at, name] of names.entries()) {
    if (PAGE_FUNCTION_STARTS.some((start) => name.startsWith(start))) return { base: names.slice(0, at), last: at }
    const found = PAGE_FUNCTIONS.find((texts) => texts.every((text, place) => names[at + place] === text))
    if (found !== undefined) return { base: names.slice(0, at), last: at + found.length - 1 }
  }
  return { base: [], last: -1 }
}

const namesFunction = (query: string): boolean =>
  query.split('&').some((pair) => PAGE_FUNCTION_KEYS.has(decodeAgain(pair.split('=', 1)[0] ?? '')))

function refuse(message: string, way: string, other: Route | null): void {
  if (other === null) return
  const why = `${message}, also one of ${other.id}, which has other rules; if everybody whom this route allows may run them, ${way}`
  throw new RequestError('request_invalid', message, why)
}
