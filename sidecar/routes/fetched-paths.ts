/**
 * Image endpoints of page frameworks, which fetch a path of the same service that the query names, without the client's identity:
 * `/_next/image?url=/api/photo/7` of Next.js and `/_image?href=…` of Astro. So that path must be open to the client, too.
 */
import { PAGE_FETCHERS } from '../frameworks/page-frameworks.ts'
import { foldText, keyParts } from '../http/folding.ts'
import { malformed, RequestError } from '../request/errors.ts'
import { parseTarget, type RequestTarget } from '../request/target.ts'
import { namesSent, rulesOf, usesRequest } from './path-readings.ts'
import { decodeAgain, decodeQuery, queryPairs } from './query.ts'
import type { Match, Route } from './route.ts'

/** How many such endpoints a query may nest. Each level reads the rest of the query again. */
const NESTED_MAX = 4
/** How many paths one query may name. Each is matched to a route, and an image has one. */
const FETCHED_MAX = 4

/** Throws RequestError unless the client may GET the named path, too. `find`: matches a GET. `level`: 1 for the request's own endpoint. */
export function refuseFetchedPath(
  target: RequestTarget,
  route: Route,
  find: (path: RequestTarget) => Match,
  level = 1,
): void {
  if (target.query === null) return
  const folded = namesSent(route, target.segments)
    .map(foldText)
    .filter((text) => text !== '')
  const endpoint = PAGE_FETCHERS.find(({ path }) => path.every((text, at) => folded.at(at - path.length) === text))
  if (endpoint === undefined) return
  if (level > NESTED_MAX)
    throw malformed(`The query names paths that the service may fetch, more than ${NESTED_MAX} within each other`)
  const pairs = queryPairs(target.query).filter(({ key }) => keyParts(decodeAgain(key))[0] === endpoint.key)
  if (pairs.length > FETCHED_MAX)
    throw malformed(`The query names more than ${FETCHED_MAX} paths that the service may fetch`)
  for (const { value } of pairs) {
    // A URL of another server is no path of this service; the service decides about it.
    const named = decodeQuery(value).trim()
    if (/^[a-z][a-z0-9+.-]*:\/\//i.test(named)) continue
    const rest = restOf(named.startsWith('/') ? named : `/${named}`, route.addPath)
    const path = rest === null ? null : parseTarget(`${route.stripPath ?? ''}${rest}`)
    const match = path === null ? NONE : find(path)
    if (
      path !== null &&
      match.kind === 'route' &&
      isOpenTo(route, match.route) &&
      !path.encodedSlash &&
      !path.semicolon
    ) {
      // The named path may in turn name another path that the service fetches.
      refuseFetchedPath(path, match.route, find, level + 1)
      continue
    }
    const message = 'The query names a path that this service may fetch'
    const other = match.kind === 'route' ? match.route.id : 'no route'
    throw new RequestError('request_invalid', message, `${message}, of ${other}, which has other rules`)
  }
}

const NONE = { kind: 'none' } as const

/** The part of the path after `add_path`, which the service does not see as its own; null: the path does not begin with `add_path`. */
function restOf(path: string, addPath: string | null): string | null {
  const rest = path.slice(addPath?.length ?? 0)
  if (!path.startsWith(addPath ?? '') || !/^(?:[/?]|$)/.test(rest)) return null
  return rest.startsWith('/') ? rest : `/${rest}`
}

/** True when everybody who may use `ours` may also use `theirs`. A check that reads the request would read other values there. */
function isOpenTo(ours: Route, theirs: Route): boolean {
  // A service fetches from itself, so a path of another service here is refused.
  if (theirs.upstream !== ours.upstream) return false
  if (theirs.check === null) return true
  const rules = rulesOf(theirs)
  return rules === rulesOf(ours) && !usesRequest(rules)
}
