/** Finds routes that a changed route file protects less than before. */
import { setImmediate } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { RequestError } from '../request/errors.ts'
import type { Check } from '../routes/checks.ts'
import type { McpRule } from '../routes/mcp-rules.ts'
import { commonSegment, overlap, type Pattern } from '../routes/patterns.ts'
import type { PathSegments, Route, RouteTable } from '../routes/route.ts'
import { createRouteTableInTurns } from '../routes/route-table.ts'
import { sharesMore } from './opened-settings.ts'

/**
 * `route` decides now. `before` decided until now; null: no route did, so the answer was 404 or 405. `other`: some requests pass that did
 * not, and some that did pass no longer do. `allows`: the route accepts requests that were refused to everybody.
 */
export type OpenedRoute = {
  readonly route: string
  readonly before: string | null
  readonly now: 'public' | 'shadow' | 'weaker' | 'other' | 'allows'
}

/**
 * Compares the routes that match sample requests: one sample for each new pattern, and one for the paths that a former pattern shares
 * with it, since a removed route may have been the one that protected them. Every route is compared with every other, so other
 * requests are served between comparisons.
 */
export async function openedRoutes(former: readonly Route[], next: readonly Route[]): Promise<readonly OpenedRoute[]> {
  const tables = { former: await createRouteTableInTurns(former), next: await createRouteTableInTurns(next) }
  const methods = new Set([...former, ...next].map(({ method }) => method))
  const hosts = [...new Set([...former, ...next].map(({ host }) => host ?? ''))]
  const opened = new Map<string, OpenedRoute>()

  function compare(a: Route, b: Route): void {
    const path = pathOf(a.pattern, b.pattern)
    const named = [a.host, b.host].filter((host) => host !== null)
    for (const host of named.length === 0 ? hosts : named) {
      for (const method of a.method === '*' && b.method === '*' ? methods : [a.method, b.method]) {
        const request = { host, method: method === '*' ? OTHER_METHOD : method, path }
        const [before, route] = [routeOf(tables.former, request), routeOf(tables.next, request)]
        const now = route === null ? null : opening(before, route)
        if (route !== null && now !== null)
          opened.set(`${before?.id} ${route.id}`, { route: route.id, before: before?.id ?? null, now })
      }
    }
  }

  for (const [at, one] of [...former, ...next].entries()) {
    compare(one, one)
    if (at % COMPARED_IN_TURN === 0) await setImmediate()
  }
  for (const before of former) {
    for (const now of next)
      if (overlap(before.pattern, now.pattern) && opening(before, now) !== null) compare(before, now)
    await setImmediate()
  }
  return [...opened.values()]
}

/** How many samples are compared before requests get a turn. Each takes up to a millisecond: its first match looks at all routes. */
const COMPARED_IN_TURN = 5

/** A made-up method in place of all methods that no route names. */
const OTHER_METHOD = 'PORTCULLIS-OTHER'
/** A segment that only parameters match, since literals of routes have no braces. */
const PARAMETER = '{}'

/** A path that both patterns match, and of other patterns only those that match all common paths of the two. */
function pathOf(a: Pattern, b: Pattern): PathSegments {
  const segments: string[] = []
  const length = Math.max(...[a, b].map(({ segments: own, rest }) => own.length + (rest ? 1 : 0)))
  for (let at = 0; at < length; at += 1) {
    const [one, other] = [a.segments[at], b.segments[at]]
    const common = one === undefined || other === undefined ? (one ?? other) : commonSegment(one, other)
    segments.push(
      common?.kind === 'literal' ? common.text : `${common?.before ?? ''}${PARAMETER}${common?.after ?? ''}`,
    )
  }
  return { segments, written: segments }
}

function routeOf(table: RouteTable, request: Parameters<RouteTable['match']>[0]): Route | null {
  try {
    const match = table.match(request)
    return match.kind === 'route' ? match.route : null
  } catch (err) {
    // The table refuses such a path for everybody, so it opens nothing.
    if (err instanceof RequestError) return null
    throw err
  }
}

function opening(before: Route | null, now: Route): OpenedRoute['now'] | null {
  // A path that had no route was closed, so a new route with a check opens nothing.
  if (before === null) return now.check === null ? 'public' : now.shadow ? 'shadow' : null
  if (before.check === null || before.shadow) return null
  if (now.check === null) return 'public'
  if (now.shadow) return 'shadow'
  if (isWeakerStepUp(before, now)) return 'weaker'
  if (now.guests !== null && !isDeepStrictEqual(before.guests, now.guests)) return 'weaker'
  const change = changeOf(before.check, now.check)
  if (change === 'weaker') return 'weaker'
  if (change === 'other' || !isDeepStrictEqual(before.context, now.context)) return 'other'
  if (before.answer !== null && !isDeepStrictEqual(before.answer, now.answer))
    return now.answer === null ? 'weaker' : 'other'
  return mcpOpening(before.mcp, now.mcp) ?? (allowsMore(before, now) ? 'allows' : null)
}

/** The same comparison for the rules of tools, prompts and resources. */
function mcpOpening(before: Route['mcp'], now: Route['mcp']): OpenedRoute['now'] | null {
  if (before === null || isDeepStrictEqual(before, now)) return null
  if (now === null) return 'other'
  const rulesIn = ({ tools, prompts, resources }: typeof before): Map<string, McpRule> =>
    new Map([
      ...Object.entries(tools).map(([name, rule]) => [`tool ${name}`, rule] as const),
      ...Object.entries(prompts).map(([name, rule]) => [`prompt ${name}`, rule] as const),
      ...resources.map((rule) => [`resource ${rule.template}`, rule] as const),
    ])
  const former = rulesIn(before)
  for (const [name, rule] of rulesIn(now)) {
    const old = former.get(name)
    if (old === undefined) return 'allows'
    const change = changeOf(old.check, rule.check)
    if (change !== null || isWeakerStepUp(old, rule)) return change ?? 'weaker'
  }
  return null
}

const ALLOWANCES = ['encodedSlash', 'semicolon', 'query', 'websocket', 'forwardToken'] as const

function allowsMore(before: Route, now: Route): boolean {
  if (ALLOWANCES.some((name) => now[name] && !before[name])) return true
  if (now.body === 'keep' && before.body !== 'keep') return true
  if (sharesMore(before.cors, now.cors)) return true
  if (!isDeepStrictEqual(before.upstream, now.upstream)) return true
  if (takesMore(before.issuers, now.issuers) || takesMore(before.audience, now.audience)) return true
  if (now.tokenFrom !== null && !isDeepStrictEqual(before.tokenFrom, now.tokenFrom)) return true
  const isForPages = now.websocket || now.tokenFrom !== null
  return isForPages && [...now.origins].some((origin) => !before.origins.has(origin))
}

/** True if the list gained a name. Null stands for every name. */
const takesMore = (before: readonly string[] | null, now: readonly string[] | null): boolean =>
  before !== null && (now === null || now.some((name) => !before.includes(name)))

function isWeakerStepUp({ stepUp: before }: Pick<Route, 'stepUp'>, { stepUp: now }: Pick<Route, 'stepUp'>): boolean {
  if (before === null) return false
  if (now === null) return true
  const isOlder = (now.maxAgeSeconds ?? Number.POSITIVE_INFINITY) > (before.maxAgeSeconds ?? Number.POSITIVE_INFINITY)
  const isLower = now.acrValues.some((acr) => !before.acrValues.includes(acr)) || now.acrValues.length === 0
  return isOlder || (before.acrValues.length > 0 && isLower)
}

/** How many parts are compared one by one. A check with more parts counts as weaker when its text differs. */
const PARTS_MAX = 10

/** Compares what two checks let pass. `weaker`: all of before, and more. `other`: more, but not all of before. Null: nothing more. */
function changeOf(before: Check, now: Check): 'weaker' | 'other' | null {
  if (textOf(before) === textOf(now)) return null
  const parts = [...new Set([...partsOf(before), ...partsOf(now)])]
  if (parts.length > PARTS_MAX) return 'weaker'
  let passesMore = false
  let passesLess = false
  for (let bits = 0; bits < 2 ** parts.length; bits += 1) {
    const holding = new Set(parts.filter((_, at) => (bits >> at) % 2 === 1))
    const [passed, passes] = [isMet(before, holding), isMet(now, holding)]
    passesLess ||= passed && !passes
    passesMore ||= passes && !passed
  }
  if (!passesMore) return null
  return passesLess ? 'other' : 'weaker'
}

/** A check's text for comparison, in which parameters have no names, so that renaming one changes nothing. */
const textOf = (check: Check): string =>
  JSON.stringify(check, (_, value) => (value?.from === 'path' ? { from: 'path', index: value.index } : value))

function partsOf(check: Check): string[] {
  if ('of' in check) return check.of.flatMap(partsOf)
  return check.kind === 'signed_in' ? [] : [textOf(check)]
}

function isMet(check: Check, holding: ReadonlySet<string>): boolean {
  // Any check needs an active token, so `signed_in` holds whenever another part does.
  if (check.kind === 'signed_in') return true
  if (!('of' in check)) return holding.has(textOf(check))
  return check.kind === 'all'
    ? check.of.every((part) => isMet(part, holding))
    : check.of.some((part) => isMet(part, holding))
}
