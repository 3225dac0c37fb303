/** Warns about valid routes that servers may confuse: by case, a trailing slash, a format, or what follows the name of a script. */
import { didYouMean } from '../../pdp/shared/base/nearest.ts'
import { type Check, usesSource } from '../routes/checks.ts'
import { judgementOf } from '../routes/overlaps.ts'
import { type Protection, protectsOtherwise, rulesOf } from '../routes/path-readings.ts'
import {
  commonSegment,
  cross,
  foldPattern,
  isWithin,
  otherSlash,
  type Pattern,
  parametersOf,
  patternText,
  type Segment,
} from '../routes/patterns.ts'
import type { Route } from '../routes/route.ts'
import { formatsOf, isIndexFile, isScript, stemsOf } from '../routes/script-paths.ts'
import { describeSource } from '../routes/template.ts'
import { CHANGING, READING } from '../routes/value-readings.ts'
import type { RouteFile } from './route-file.ts'
import { servedHosts } from './served-hosts.ts'
import { audienceWarnings } from './words/assertion.ts'
import { comparisons, comparisonWarnings } from './words/comparison.ts'
import { originWarnings } from './words/cors.ts'

/** One sentence for each mistake that leaves the file valid. */
export const fileWarnings = (file: RouteFile): string[] => [
  ...methodWarnings(file.routes),
  ...routeWarnings(file.routes),
  ...restWarnings(file.routes),
  ...upstreamWarnings(file.routes),
  ...hostWarnings(file),
  ...audienceWarnings(file),
  ...originWarnings(file.routes),
  ...signInWarnings(file),
  ...preflightWarnings(file),
  ...identityWarnings(file),
  ...mcpWarnings(file.routes),
  ...comparisonWarnings(file),
  ...doorWarnings(file),
  ...(file.keepsToken ? [TOKEN_KEPT] : []),
]

const TOKEN_KEPT =
  'the service gets Authorization and DPoP only while the file is in shadow mode: say forward_token: true if it needs them, or false to try without'

/** Warns of hosts and routes that browsers cannot reach after they sign in, and of a sign-in without effect. */
export function signInWarnings(file: RouteFile): string[] {
  const { signIn, routes, publicUrl } = file
  if (signIn === null) return routes.some((route) => !route.signIn) ? [NOBODY_SIGNS_IN] : []
  const { hostname } = new URL(publicUrl)
  const others = servedHosts(file).filter((host) => host !== hostname)
  const shadowed = routes.filter(({ pattern }) => patternText(pattern).startsWith('/.portcullis'))
  const guarded = routes.filter(({ check, host }) => check !== null && (host === null || host === hostname))
  return [
    ...(others.length > 0
      ? [`browsers sign in at ${hostname} only, as public_url says, and get 401 at ${others.join(', ')}`]
      : []),
    ...(servedHosts(file).includes(hostname)
      ? []
      : [`sign_in needs the host of public_url, ${hostname}, in hosts: browsers come back there`]),
    ...shadowed.map(({ id }) => `${id} never matches: the sidecar answers paths below /.portcullis/ itself`),
    ...(guarded.some((route) => route.signIn) ? [] : ['sign_in has no effect: no route sends browsers to sign in']),
  ]
}

/** Warns of a named host that the routes of a wildcard take away from those without a host. */
function hostWarnings(file: RouteFile): string[] {
  const plain = file.routes.find(({ host }) => host === null)
  const own = new Set(file.routes.map(({ host }) => host))
  const wildcard = (host: string): string => host.replace(/^[^.]+/, '*')
  return servedHosts(file)
    .filter((host) => plain !== undefined && !host.startsWith('*') && !own.has(host) && own.has(wildcard(host)))
    .map(
      (host) =>
        `${host} has the routes of ${wildcard(host)} alone, and none without a host such as ${plain?.id}: write ${host} before the paths that it should have`,
    )
}

/** Warns of a route that names no service, while others do: its requests would go to another service than its author means. */
const upstreamWarnings = (routes: readonly Route[]): string[] =>
  routes.flatMap(({ id, host, upstream }) => {
    const other = routes.find((one) => host !== null && one.host === host && one.upstream !== null)
    return upstream !== null || other === undefined
      ? []
      : [`${id} leads to the upstream of the file, but ${other.id} of the same host has its own`]
  })

/** Warns of claims that two issuers could give to different people under one value. */
function identityWarnings({ headers, issuers }: RouteFile): string[] {
  const { identity = [] } = headers
  return issuers.length < 2 || identity.length === 0
    ? []
    : [
        `identity_headers: a claim says nothing about its issuer, and the file has ${issuers.length}. Make sure that no two of them give one value to different people, such as an address`,
      ]
}

/** Warns of routes for OPTIONS that look as if they let every preflight pass to the service. */
function preflightWarnings({ routes }: RouteFile): string[] {
  const lines = routes.filter(
    ({ method, pattern, check, cors }) => method === 'OPTIONS' && pattern.rest && !check && !cors,
  )
  return lines.flatMap((line) => {
    const others = routes.filter(
      ({ host, method, pattern }) =>
        host === line.host && method !== 'OPTIONS' && isWithin(pattern, line.pattern) && !isSame(pattern, line.pattern),
    )
    const [other] = others.filter(
      ({ pattern }) => !routes.some((one) => one.method === 'OPTIONS' && isSame(one.pattern, pattern)),
    )
    return other === undefined
      ? []
      : [
          `${line.id} does not match preflights for ${other.id}, because the most specific path decides first. Set cors, with preflight: pass if the service answers them`,
        ]
  })
}

const NOBODY_SIGNS_IN = 'sign_in of a route has no effect, because the file has no sign_in'

/** Warns of comparisons of a call of MCP: they check only the form of a call that their author thought of. */
const mcpWarnings = (routes: readonly Route[]): string[] =>
  routes
    .filter(({ check, mcp }) => mcp === null && check !== null && comparisons(check).some(isOfMcp))
    .map(
      ({ id }) =>
        `${id} compares body.method with tools/…, as calls of MCP have it. A route of the kind MCP (MCP /path), judges each tool, its arguments and lists; this one judges what its comparisons say`,
    )

const isOfMcp = ({ source, value }: Extract<Check, { kind: 'equals' }>): boolean =>
  describeSource(source) === 'body.method' && value.startsWith('tools/')

const NAMED_MAX = 5

/** Warns of routes that read bodies where a door's gateway sends none: the door refuses all such requests. */
function doorWarnings({ doors, routes }: RouteFile): string[] {
  const blind = new Set(doors.filter((door) => !door.body).map(({ profile }) => profile))
  const ids = routes.filter((route) => judgesBodies(route, routes)).map(({ id }) => id)
  const lists =
    doors.length === 0 ? [] : [...new Set(routes.filter(({ mcp }) => mcp !== null).map(({ id }) => id))].map(mcpAtDoor)
  if (ids.length === 0) return lists
  const more = ids.length > NAMED_MAX ? ` and ${ids.length - NAMED_MAX} more` : ''
  const named = `${ids.slice(0, NAMED_MAX).join(', ')}${more}`
  const blinded = [...blind].map(
    (profile) =>
      `the door for ${profile} gets no bodies, so on ${named} it answers 415 to JSON and forms, and where a check reads the query to every request with a Content-Type: the service could find another value or method in a body than the one that was checked. A body without a Content-Type it cannot see. If this service takes no such value from bodies, set body: keep on the routes; if it takes values from every body (Bottle, CGI of Ruby), put the sidecar in front of it instead`,
  )
  return [...lists, ...blinded]
}

const mcpAtDoor = (id: string): string =>
  `${id} at a door: calls are judged, but a gateway's door cannot edit answers. So lists of tools, prompts and resources are refused there, sessions of revisions before 2026-07-28 do not work, and a call that runs is not cut. Put the sidecar in front of the server instead`

/** True if `refuseOtherReadings` would read the body, judged by the routes of the same path. */
function judgesBodies(route: Route, routes: readonly Route[]): boolean {
  const { check, context, method, body } = route
  if (body === 'keep') return false
  const asking = check === null ? null : { check, context }
  if (asking !== null && (usesSource(asking, 'query') || (body === 'judge' && usesSource(asking, 'path')))) return true
  const path = patternText(route.pattern)
  const methods = check === null ? [...CHANGING, ...READING] : CHANGING
  return (
    method === 'POST' &&
    routes.some(
      (other) =>
        methods.includes(other.method) &&
        other.check !== null &&
        other.host === route.host &&
        patternText(other.pattern) === path &&
        rulesOf(other) !== rulesOf(route),
    )
  )
}

type Folded = Protection & { readonly route: Route }

/** One sentence for each warning that concerns only routes. */
export function routeWarnings(routes: readonly Route[]): string[] {
  const hosts = Map.groupBy(routes, ({ host }) => host)
  const warnings = [...hosts.values()].flatMap((ofHost) => {
    const folded = ofHost.map((route) => ({
      route,
      pattern: foldPattern(route.pattern),
      rules: rulesOf(route),
      isPublic: route.check === null,
      upstream: route.upstream,
    }))
    return folded.flatMap((one, at) => [
      ...spelledAlike(one, folded.slice(0, at)),
      ...nearly(one, folded),
      ...passedOver(one, folded),
      ...behindScript(one, folded),
      ...withoutFormat(one, folded),
      ...dataOfPages(one, folded),
    ])
  })
  return [...new Set([...overlapWarnings(routes), ...warnings])]
}

// The methods of RFC 9110 section 9, of RFC 5789, and those registered for WebDAV and its extensions.
const METHODS = new Set(
  '* GET HEAD POST PUT DELETE OPTIONS PATCH QUERY ACL BIND CHECKIN CHECKOUT COPY LABEL LINK LOCK MERGE MKACTIVITY MKCALENDAR MKCOL MKWORKSPACE MOVE ORDERPATCH PROPFIND PROPPATCH REBIND REPORT SEARCH UNBIND UNCHECKOUT UNLINK UNLOCK UPDATE VERSION-CONTROL'.split(
    ' ',
  ),
)

/** One sentence for each misspelt method, since no client ever sends it. */
export const methodWarnings = (routes: readonly Route[]): string[] =>
  [...new Set(routes.map(({ method }) => method))]
    .filter((method) => !METHODS.has(method))
    .map(
      (method) =>
        `${method} is not a registered HTTP method: no request may ever match its routes${/^(ANY|ALL)$/.test(method) ? '; did you mean "*"?' : didYouMean(method, METHODS)}`,
    )

/** Warns of routes such as `/docs/**` if no route matches `/docs` itself. */
const restWarnings = (routes: readonly Route[]): string[] =>
  routes.flatMap((route) => {
    const path = route.pattern.rest ? toggled(route.pattern) : null
    if (path === null || routes.some((other) => other.host === route.host && isWithin(path, other.pattern))) return []
    const written = routeText(route, path)
    return [
      `${written} matches no route, since ${route.id} begins behind the slash: add ${written} if it is to be served`,
    ]
  })

/** The pattern of the paths that both match. */
function commonPattern(a: Pattern, b: Pattern): Pattern {
  const length = Math.max(a.segments.length, b.segments.length)
  const segments = Array.from({ length }, (_, at) => narrower(a.segments[at], b.segments[at]))
  return { segments: segments.filter((segment) => segment !== undefined), rest: a.rest && b.rest }
}

const narrower = (one: Segment | undefined, other: Segment | undefined): Segment | undefined =>
  one === undefined || other === undefined ? (one ?? other) : (commonSegment(one, other) ?? one)

/** One sentence for each pair of overlapping routes that refuses a common request. */
function overlapWarnings(routes: readonly Route[]): string[] {
  return routes.flatMap((one, at) =>
    routes.slice(0, at).flatMap((other) => {
      if (one.host !== other.host || !cross(one.pattern, other.pattern)) return []
      const common = commonPattern(one.pattern, other.pattern)
      const isTaken = routes.some(({ host, pattern }) => host === one.host && isSame(pattern, common))
      if (isTaken || agree(one, other, common)) return []
      const path = patternText(common)
      return [
        `${other.id} and ${one.id} both match ${path}, and neither is the more specific, so such a request is refused (route_ambiguous). If somebody sends one, add a route for ${path} with its check`,
      ]
    }),
  )
}

function agree(one: Route, other: Route, common: Pattern): boolean {
  const path = patternText(common).slice(1).split('/')
  const [mine, theirs] = [one, other].map((route) =>
    judgementOf({ route, parameters: parametersOf(route.pattern, path) }),
  )
  return mine === theirs
}

/** Warns of two routes with different checks whose paths differ only in case or in a slash at the end. */
function spelledAlike(one: Folded, earlier: readonly Folded[]): string[] {
  const same = earlier.filter(
    (other) =>
      other.rules !== one.rules &&
      other.route.method === one.route.method &&
      (isSame(other.pattern, one.pattern) || isSame(otherSlash(other.pattern, true), otherSlash(one.pattern, true))),
  )
  return same.map(
    (other) =>
      `${other.route.id} and ${one.route.id} are the same path for servers that ignore case or a trailing slash, but their checks differ. A request that could pass one check to reach the other route is denied. Use the same check for both`,
  )
}

/** Warns of paths that differ from the route's only by a trailing slash, and match another route. */
function nearly(theirs: Folded, all: readonly Folded[]): string[] {
  const path = toggled(theirs.pattern)
  const shown = toggled(theirs.route.pattern)
  if (path === null || shown === null) return []
  const ours = taking(path, theirs, all)
  if (ours === undefined || !isRefused(ours, theirs, path)) return []
  const written = routeText(theirs.route, shown)
  return [
    `${written} matches ${ours.route.id}, but servers that ignore a trailing slash run ${theirs.route.id} for it, so it is denied. Add ${written} with the check of ${theirs.route.id}`,
  ]
}

/** Warns of paths of the route that match another route when the trailing slash is toggled. */
function passedOver(ours: Folded, all: readonly Folded[]): string[] {
  const path = toggled(ours.pattern)
  const shown = toggled(ours.route.pattern)
  if (path === null || shown === null) return []
  const theirs = taking(path, ours, all)
  const own = ours.pattern.rest ? otherSlash({ ...ours.pattern, rest: false }, true) : ours.pattern
  if (theirs === undefined || !isRefused(ours, theirs, own)) return []
  const written = routeText(ours.route, shown)
  return [
    `servers that ignore a trailing slash run ${theirs.route.id} for ${routeText(ours.route, own)}, so it is denied. Add ${written} with the check of ${ours.route.id}`,
  ]
}

/** Warns of paths that continue after a script of the route, and match another route. */
function behindScript(theirs: Folded, all: readonly Folded[]): string[] {
  const { segments, rest } = theirs.pattern
  const names = segments.map((segment) => (segment.kind === 'literal' ? segment.text : ''))
  if (rest || !isScript(names, names.length - 1)) return []
  const below: Pattern = { segments, rest: true }
  const ours = taking(below, theirs, all)
  if (ours === undefined || !protectsOtherwise(ours, theirs, { path: theirs.pattern, read: below })) return []
  const written = routeText(theirs.route, { ...theirs.route.pattern, rest: true })
  return [
    `${written} matches ${ours.route.id}, but servers run ${theirs.route.id} for it and pass the rest of the path to the script, so it is denied. Add ${written} with the check of ${theirs.route.id}`,
  ]
}

/** Warns of paths that lack the format of the route's file, and match another route. */
function withoutFormat(theirs: Folded, all: readonly Folded[]): string[] {
  const { segments, rest } = theirs.pattern
  const last = segments.at(-1)
  const shown = theirs.route.pattern.segments.at(-1)
  if (rest || last === undefined || shown === undefined) return []
  return withoutFormats(last).flatMap((named, at) => {
    const path: Pattern = { segments: segments.with(-1, named), rest: false }
    const ours = taking(path, theirs, all)
    const isTaken = all.some((other) => isSame(other.pattern, path) && covers(other.route.method, theirs.route.method))
    if (isTaken || ours === undefined) return []
    // The other route's parameter may contain the format, so its rules already cover such names.
    if (last.kind === 'parameter' && ours.pattern.segments.length === segments.length) return []
    if (!protectsOtherwise(ours, theirs, { path: theirs.pattern, read: path })) return []
    const without = withoutFormats(shown)[at] ?? shown
    const written = routeText(theirs.route, { segments: theirs.route.pattern.segments.with(-1, without), rest: false })
    return [
      `${written} matches ${ours.route.id}, but servers that leave out the format run ${theirs.route.id} for it, so it is denied. Add ${written} with the check of ${theirs.route.id}`,
    ]
  })
}

/** The segments as servers read the segment that leave out its formats. */
function withoutFormats(segment: Segment): Segment[] {
  if (segment.kind === 'parameter') return formatsOf(segment).map(({ stem }) => ({ ...segment, after: stem }))
  const { text } = segment
  return isIndexFile(text) ? [] : stemsOf(text).map((stem) => ({ kind: 'literal', text: stem }))
}

/** Warns of a public route for everything below `_next` of Next.js, since the data of guarded pages is there, too. */
function dataOfPages(ours: Folded, all: readonly Folded[]): string[] {
  const { segments, rest } = ours.pattern
  const last = segments.at(-1)
  const isNext = rest && last?.kind === 'literal' && last.text === '_next'
  if (!isNext || !ours.isPublic || all.every(({ isPublic }) => isPublic)) return []
  const below = (...names: readonly string[]): string => {
    const more = names.map((text) => ({ kind: 'literal', text }) as const)
    return routeText(ours.route, { segments: [...ours.route.pattern.segments, ...more], rest: true })
  }
  return [
    `${ours.route.id} has the data of guarded pages of Next.js below it, which is denied. Make ${below('static')} public instead, and add ${below('data')} with the check of the pages`,
  ]
}

/** True when requests for `path`, which matches `ours`, are denied because of `theirs`. */
const isRefused = (ours: Folded, theirs: Folded, path: Pattern): boolean => {
  const read = otherSlash(ours.pattern, !endsInSlash(path))
  return !isSame(read, theirs.pattern) && protectsOtherwise(ours, theirs, { path: theirs.pattern, read })
}

/** The most specific other route that matches all these paths and has the method. */
function taking(path: Pattern, { route, pattern }: Folded, all: readonly Folded[]): Folded | undefined {
  const found = all.filter(
    (other) =>
      covers(other.route.method, route.method) && isWithin(path, other.pattern) && !isSame(other.pattern, pattern),
  )
  return found.find((one) => found.every((other) => isWithin(one.pattern, other.pattern)))
}

/** The route's paths with a final slash added or removed; `/mnt` for `/mnt/**`. Null: there are no such paths. */
function toggled(pattern: Pattern): Pattern | null {
  if (pattern.segments.length === 0 || (pattern.segments.length === 1 && endsInSlash(pattern))) return null
  return otherSlash(pattern, !pattern.rest && !endsInSlash(pattern))
}

const routeText = ({ method, host }: Route, pattern: Pattern): string =>
  `${method} ${host ?? ''}${patternText(pattern)}`

const endsInSlash = ({ segments }: Pattern): boolean => {
  const last = segments.at(-1)
  return last?.kind === 'literal' && last.text === ''
}

const covers = (method: string, asked: string): boolean =>
  method === asked || method === '*' || (asked === 'HEAD' && method === 'GET')

const isSame = (a: Pattern, b: Pattern): boolean => isWithin(a, b) && isWithin(b, a)
