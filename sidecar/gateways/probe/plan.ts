/** Plans the probes for a route file: each guarded route with a made-up id, in its usual spelling and in others. */
import { createExplainer, type Explainer } from '../../enforce/explain.ts'
import type { RouteFile } from '../../route-file/route-file.ts'
import { servedHosts } from '../../route-file/served-hosts.ts'
import type { Check } from '../../routes/checks.ts'
import type { Route } from '../../routes/route.ts'
import type { Probe } from './probe.ts'
import { type Spelled, type Spelling, spellingsOf } from './spellings.ts'

export type PlanOptions = {
  /** Claims of the token without any rights; null: probes are sent without a token. */
  readonly claims: { readonly [claim: string]: unknown } | null
  readonly allMethods: boolean
  /** A made-up id for all parameters, for which nobody may have a permission. */
  readonly madeUp: string
}

/** How many probes one run sends. Probes in the usual spelling come first, so they are left out last. */
const PROBES_MAX = 5_000
const PUBLIC_PATHS_MAX = 3
const SAFE = ['GET', 'HEAD']
const OTHERS = ['POST', 'PUT', 'PATCH', 'DELETE']

export function planProbes(
  file: RouteFile,
  options: PlanOptions,
): {
  readonly probes: readonly Probe[]
  /** Sentences about routes that are not probed. */
  readonly leftOut: readonly string[]
} {
  const explain = createExplainer(file)
  const guarded = guardedPaths(file, options, explain)
  const longest = Math.max(0, ...guarded.map(({ spellings }) => spellings.length))
  const probes: Probe[] = []
  for (let at = 0; at < longest; at += 1)
    for (const { spellings, senders, ...of } of guarded) {
      const spelling = spellings[at]
      if (spelling === undefined) continue
      const { target, plain, fields } = spelling
      for (const { method, claims } of senders) {
        // Other spellings differ in the path and not in the method.
        if (method === 'HEAD' && !plain) continue
        const asked = { method, target, fields: withHost(fields, of.host), as: claims }
        if (isGuarded(asked, explain)) probes.push({ ...asked, ...of, plain, token: claims !== null })
      }
    }
  return { probes: probes.slice(0, PROBES_MAX), leftOut: leftOut(file, probes.length, options) }
}

type Guarded = {
  readonly host: string
  /** The id of the route. */
  readonly route: string
  readonly spellings: readonly Spelling[]
  /** Methods and tokens for which the sidecar refuses the path in its normal spelling, to which a gateway may change another spelling. */
  readonly senders: readonly { readonly method: string; readonly claims: PlanOptions['claims'] }[]
}

function guardedPaths(
  file: RouteFile,
  { claims, allMethods, madeUp }: PlanOptions,
  explain: Explainer,
): readonly Guarded[] {
  const open = openPaths(file, madeUp)
  const senders = (allMethods ? [...SAFE, ...OTHERS] : SAFE).flatMap((method) => [
    { method, claims: null },
    ...(claims === null ? [] : [{ method, claims }]),
  ])
  const found = new Map<string, Guarded>()
  for (const route of file.routes) {
    const host = hostOf(route, file)
    const path = madeUpPath(route, madeUp)
    if (route.check === null || route.shadow || found.has(`${host}${path}`)) continue
    const refused = senders.filter(({ method, claims: as }) =>
      isGuarded({ method, target: path, fields: withHost([], host), as }, explain),
    )
    const spellings = spellingsOf({ host, path, open })
    found.set(`${host}${path}`, { host, route: route.id, spellings, senders: refused })
  }
  return [...found.values()].filter(({ senders }) => senders.length > 0)
}

function leftOut({ routes }: RouteFile, count: number, { claims }: PlanOptions): readonly string[] {
  const shadowed = routes.filter(({ check, shadow }) => check !== null && shadow).length
  return [
    ...(shadowed > 0 ? [`routes in shadow mode, which guard nothing yet: ${shadowed}`] : []),
    ...(claims === null ? ['requests with a token that holds nothing: give one by --token'] : []),
    ...(count > PROBES_MAX ? [`${count - PROBES_MAX} of ${count} probes, which are more than one run sends`] : []),
  ]
}

/** True if the sidecar refuses the request: not for a public route, nor for a check that any token may pass. */
function isGuarded(
  { fields, ...asked }: Pick<Probe, 'method' | 'target' | 'fields'> & { readonly as: PlanOptions['claims'] },
  explain: Explainer,
): boolean {
  const { route, denial } = explain({ ...asked, headers: fields })
  return denial !== null || (route !== null && !route.shadow && !mayHold(route.check))
}

const withHost = (fields: Spelling['fields'], host: string): Spelling['fields'] =>
  fields.some(([name]) => name === 'host') ? fields : [['host', host], ...fields]

/** True if a token without any rights may satisfy the check. */
function mayHold(check: Check | null): boolean {
  if (check === null) return true
  if (check.kind === 'all') return check.of.every(mayHold)
  if (check.kind === 'any') return check.of.some(mayHold)
  return check.kind === 'signed_in' || check.kind === 'entitlement' || check.kind === 'equals'
}

/** The path with the made-up id, as for `/invoices/{id}`. */
function madeUpPath({ pattern }: Route, madeUp: string): string {
  const texts = pattern.segments.map((segment) => (segment.kind === 'literal' ? encodeURI(segment.text) : madeUp))
  return `/${[...texts, ...(pattern.rest ? [madeUp] : [])].join('/')}`
}

/** The host of the route; a wildcard is replaced by a made-up label. */
const hostOf = ({ host }: Pick<Route, 'host'>, file: RouteFile): string =>
  (host ?? file.hosts[0] ?? servedHosts(file)[0] ?? '').replace('*', 'probe')

/** Public paths with their fixed beginnings, by path. */
function openPaths({ routes }: RouteFile, madeUp: string): Spelled['open'] {
  const starts = new Map(
    routes
      .filter(({ check, method }) => check === null && (method === 'GET' || method === '*'))
      .map((route) => {
        const path = madeUpPath(route, madeUp)
        const { segments } = route.pattern
        const fixed = segments.findIndex(({ kind }) => kind !== 'literal')
        const count = fixed < 0 ? segments.length : fixed
        return [
          path
            .split('/')
            .slice(0, count + 1)
            .join('/'),
          path,
        ] as const
      }),
  )
  const found = [...starts].map(([start, path]) => ({ start, path }))
  return found.filter(({ start }) => start !== '' && !start.endsWith('/')).slice(0, PUBLIC_PATHS_MAX)
}
