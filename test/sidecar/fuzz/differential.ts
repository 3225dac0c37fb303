/**
 * Looks for bypasses: a handler of a service that runs for a request which the sidecar took for another route's. The
 * sidecar's part is its own parser and route table; what they let through is sent to each service as it would be.
 */
import { Pool } from 'undici'
import { type ClientRequest, syntheticRequest } from '../../../sidecar/http/client-request.ts'
import { readInbound } from '../../../sidecar/request/inbound.ts'
import type { Route } from '../../../sidecar/routes/route.ts'
import { createRouting, type RoutingDeps, routeRequest } from '../../../sidecar/routes/route-request.ts'
import { sentTarget } from '../../../sidecar/upstream/forward.ts'
import { loadFile, routeFile } from '../support/harness.ts'
import { type Framework, HANDLER, startFrameworks } from './frameworks.ts'
import { type Random, randomTarget, seeded } from './targets.ts'

/** The path of the route that the request takes, and the bytes that are forwarded; null: nothing is. */
type Passed = { readonly path: string; readonly forwarded: string }
export type Gate = (target: string) => Passed | null | Promise<Passed | null>
export type FuzzReport = {
  readonly targets: number
  readonly forwarded: number
  /** Requests that were sent to services. */
  readonly sent: number
  readonly bypasses: readonly string[]
}

/** The more specific first, as frameworks that take the first match need them. */
export const WITHOUT_REST = [
  '/',
  '/admin',
  '/admin/users',
  '/files/secret',
  '/invoices/export',
  '/invoices/{id}',
  '/invoices/{id}/approve',
  '/orgs/{org}/invoices/{id}',
  '/public/{name}',
]
/** Slashes at the end, as some frameworks want them, beside paths that nearly have them. */
export const WITH_SLASHES = [
  '/',
  '/admin/',
  '/files/read@me',
  '/files/secret/',
  '/files/{name}',
  '/invoices/{id}/',
  '/mnt/**',
  '/orgs/{org}/invoices/{id}/',
  '/public/assets/**',
  '/{page}',
]
/** Paths that others match as well, and none is the more specific. */
export const WITH_OVERLAPS = [
  '/admin/{tab}',
  '/{page}/users',
  '/invoices/export/{name}',
  '/invoices/{id}/approve',
  '/files/a/{name}',
  '/files/{folder}/secret',
  '/orgs/{org}/invoices/**',
  '/orgs/acme/{kind}/{id}',
]
/** Parameters with a text behind them. */
export const WITH_PARTS = [
  '/files/secret.csv',
  '/files/{file}.csv',
  '/files/{name}',
  '/{page}.json',
  '/{page}',
  '/orgs/{org}/invoices/{id}.csv',
  '/orgs/**',
]
export const WITH_REST = [...WITHOUT_REST.slice(1), '/public/assets/**', '/files/**', '/admin/**']

/** Each with a check of its own: what is judged alike may be confused. */
export const routesOf = (paths: readonly string[]): string =>
  paths.map((path, at) => `GET ${path}: scope own${at}`).join('\n')

export function tableOf(paths: readonly string[]): RoutingDeps {
  const routes = routesOf(paths)
  const file = routeFile(routes, { extra: 'hosts: [app.test]' })
  return createRouting(loadFile(file.replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1')))
}

const PREFIX = '/app'

/** Behind a prefix that the services do not get, and that every target gets. `below`: the path of theirs below which they get it. */
export function gateBehindPrefix(paths: readonly string[], below = ''): Gate {
  const added = below === '' ? '' : `, add_path: ${below}`
  const upstream = `{url: "http://127.0.0.1:1", strip_path: ${PREFIX}${added}}`
  const file = routeFile(routesOf(paths.map((path) => `${PREFIX}${path}`)), { extra: 'hosts: [app.test]' })
  const table = createRouting(loadFile(file.replace('UPSTREAM', upstream).replace('PDP', '127.0.0.1:1')))
  return (target) => {
    const [, host = '', path = target] = /^(https?:\/\/[^/?#]+)(.*)$/i.exec(target) ?? []
    const found = passedBy(table, `${host}${PREFIX}${path}`)
    return (
      found && { path: found.route.id.slice(`GET ${PREFIX}`.length), forwarded: sentTarget(found.raw, found.route) }
    )
  }
}

/** The route, and the target as it arrived; null: it is refused. */
function passedBy(table: RoutingDeps, target: string): { readonly route: Route; readonly raw: string } | null {
  try {
    const origin = { address: '', host: null, fault: null }
    const request = readInbound(message(target), { origin, targetCharsMax: 8_192 })
    const match = routeRequest(table, request)
    return match.kind === 'route' ? { route: match.route, raw: request.target.raw } : null
  } catch {
    return null
  }
}

/** `change`: a laxity to plant, which sees the segments before they are matched. */
export function gateOf(
  paths: readonly string[],
  change: (segments: readonly string[]) => readonly string[] = (s) => s,
): Gate {
  const table = tableOf(paths)
  return (target) => {
    try {
      const request = readInbound(message(target), {
        origin: { address: '', host: null, fault: null },
        targetCharsMax: 8_192,
      })
      const [segments, written] = [change(request.target.segments), change(request.target.written)]
      const match = routeRequest(table, { ...request, target: { ...request.target, segments, written } })
      if (match.kind !== 'route') return null
      return { path: match.route.id.replace(/^GET /, ''), forwarded: request.target.raw }
    } catch {
      return null
    }
  }
}

/** What Node's parser makes of such a request; what it refuses is refused. */
function message(target: string): ClientRequest {
  if (/[\0-\x20\x7f]/.test(target)) throw new Error('the parser refuses it')
  return syntheticRequest({ method: 'GET', target, raw: ['Host', 'app.test'] })
}

export async function fuzz(options: {
  readonly paths: readonly string[]
  readonly gate: Gate
  readonly count: number
  readonly seed: number
  /** Where the services have the paths, beside others that no route leads to. */
  readonly below?: string
}): Promise<FuzzReport> {
  const { below = '' } = options
  const frameworks = await startFrameworks(
    below === '' ? options.paths : [...options.paths.map((path) => `${below}${path}`), '/admin', '/{page}'],
  )
  const pools = frameworks.map(({ origin }) => new Pool(origin, { connections: 8, pipelining: 1 }))
  const bypasses: string[] = []
  let forwarded = 0
  let sent = 0
  const asked = new Set<string>()

  async function attempt(random: Random): Promise<void> {
    const target = randomTarget(random)
    const passed = await options.gate(target)
    if (passed === null) return
    forwarded += 1
    // The same bytes get the same answer.
    if (asked.has(passed.forwarded)) return
    asked.add(passed.forwarded)
    await Promise.all(
      frameworks.map(async (framework, at) => {
        sent += 1
        const handler = await handlerOf(pools[at], passed.forwarded)
        if (handler !== null && handler !== `${below}${passed.path}`)
          bypasses.push(describe(framework, { target, passed, handler }))
      }),
    )
  }

  try {
    const workers = Array.from({ length: 8 }, async (_, at) => {
      const random = seeded(options.seed * 8 + at)
      for (let left = options.count / 8; left > 0; left -= 1) await attempt(random)
    })
    await Promise.all(workers)
  } finally {
    await Promise.all(pools.map((pool) => pool.destroy()))
    await Promise.all(frameworks.map(({ close }) => close()))
  }
  return { targets: options.count, forwarded, sent, bypasses }
}

function describe(
  { name }: Framework,
  { target, passed, handler }: { target: string; passed: { path: string }; handler: string },
): string {
  return `${name}: ${JSON.stringify(target)} was judged as ${passed.path} and served by ${handler}`
}

async function handlerOf(pool: Pool | undefined, path: string): Promise<string | null> {
  if (pool === undefined) return null
  const { headers, body } = await pool.request({ path, method: 'GET', headers: { host: 'app.test' } })
  await body.dump()
  const handler = headers[HANDLER]
  return typeof handler === 'string' && handler !== 'none' ? handler : null
}
