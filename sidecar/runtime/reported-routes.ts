/** Reports this sidecar's routes: the table in force, how often each route was asked, and the questions that a request would ask. */
import { hostname } from 'node:os'
import { create } from '@bufbuild/protobuf'
import { isJsonObject } from '../../pdp/shared/domain/json.ts'
import {
  RouteCountSchema,
  RouteSchema,
  type RouteTable,
  RouteTableSchema,
  RouteTriedSchema,
} from '../../proto/gen/portcullis/v1/routes_pb.ts'
import type { LoadedConfig } from '../config/config.ts'
import { createExplainer, type ExplainedRequest, type Explainer } from '../enforce/explain.ts'
import { testsByRoute } from '../enforce/tested-routes.ts'
import type { RouteSource } from '../pdp-client/route-reports.ts'
import { methodWarnings, routeWarnings, signInWarnings } from '../route-file/warnings.ts'
import { checkText } from '../routes/checks.ts'
import { createRoutingInTurns } from '../routes/route-request.ts'
import type { Metrics } from './metrics.ts'

/** How many characters the routes' texts may have: far below the limit of a gRPC message. */
const TABLE_CHARACTERS_MAX = 200_000
/** How many routes are compared, each with every other. For larger tables there is `sidecar check`. */
const COMPARED_MAX = 200
const WARNINGS_MAX = 50
/** How many tests of the route file are run. Each takes a fraction of a millisecond. */
const TESTS_RUN_MAX = 500

type Reported = Pick<LoadedConfig, 'file' | 'hash'>
type InForce = {
  readonly config: Reported
  /** The result of `table`; null until it is built. */
  known: RouteTable | null
  /** The table, built on first use, because only a PDP that accepts reports needs it; null before. */
  table: Promise<RouteTable> | null
  explain: Explainer | null
}

const begun = (config: Reported): InForce => ({ config, known: null, table: null, explain: null })

export function createReportedRoutes(started: Reported): RouteSource & {
  /** The routes of this configuration are in force, and are counted from now on. */
  show(config: Reported): void
  /** Never throws. */
  decided: Metrics['decided']
} {
  let inForce = begun(started)
  let counts = new Map<string, { requests: number; denied: number; shadowed: number }>()

  async function build(shown: InForce): Promise<RouteTable> {
    const { file } = shown.config
    shown.explain = createExplainer(file, await createRoutingInTurns(file))
    shown.known = await tableOf(shown.config, shown.explain)
    return shown.known
  }

  return {
    table() {
      inForce.table ??= build(inForce)
      return inForce.table
    },
    show(config) {
      inForce = begun(config)
      counts = new Map()
    },
    decided(route, { decision }) {
      if (route === '') return
      const found = counts.get(route) ?? { requests: 0, denied: 0, shadowed: 0 }
      counts.set(route, found)
      found.requests += 1
      if (decision === 'deny') found.denied += 1
      else if (decision === 'shadow') found.shadowed += 1
    },
    counts: () =>
      (inForce.known?.routes ?? []).flatMap(({ id }, route) => {
        const found = counts.get(id)
        return found === undefined ? [] : [create(RouteCountSchema, { route, ...found })]
      }),
    try({ trial, method, target, claims }) {
      try {
        inForce.explain ??= createExplainer(inForce.config.file)
        const { route, parameters, asks, denial } = inForce.explain({ method, target, as: claimsOf(claims) })
        return create(RouteTriedSchema, {
          trial,
          route: route?.id ?? '',
          parameters: parameters.map(([name, value]) => `${name}=${value}`),
          asks: [...asks],
          denial: denial === null ? '' : `${denial.status} ${denial.code}: ${denial.detail}`,
        })
      } catch {
        return create(RouteTriedSchema, {
          trial,
          denial: 'the request cannot be tried: the claims are not a JSON object',
        })
      }
    },
  }
}

/** The claims of a token; null: no token is sent. */
function claimsOf(text: string): ExplainedRequest['as'] {
  if (text === '') return null
  const value: unknown = JSON.parse(text)
  if (!isJsonObject(value)) throw new TypeError('not an object')
  return Object.fromEntries(Object.entries(value))
}

async function tableOf({ file, hash }: Reported, explain: Explainer): Promise<RouteTable> {
  let characters = 0
  const tests = file.tests.length > TESTS_RUN_MAX ? 0 : file.tests.length
  const reached = tests === 0 ? null : await testsByRoute(file.tests, explain)
  const routes = file.routes.flatMap(({ id, check, shadow, guests }) => {
    const route = {
      id,
      check: check === null ? 'public' : `${checkText(check)}${guests === null ? '' : '; guests'}`,
      shadow,
      tests: reached?.get(id) ?? 0,
    }
    characters += route.id.length + route.check.length
    return characters > TABLE_CHARACTERS_MAX ? [] : [create(RouteSchema, route)]
  })
  const compared = file.routes.length > COMPARED_MAX ? [] : routeWarnings(file.routes)
  // These warnings come first, because the report has room for only the first ones.
  const left = [
    ...beyond('routes', file.routes.length, { max: COMPARED_MAX, done: 'compared', does: 'compares' }),
    ...beyond('tests', file.tests.length, { max: TESTS_RUN_MAX, done: 'run', does: 'runs' }),
  ]
  return create(RouteTableSchema, {
    name: `${hostname()}/${process.pid}`,
    resource: file.resource,
    fileHash: hash,
    routes,
    leftOut: file.routes.length - routes.length,
    tests,
    warnings: [...left, ...methodWarnings(file.routes), ...signInWarnings(file), ...compared].slice(0, WARNINGS_MAX),
  })
}

function beyond(
  what: string,
  count: number,
  { max, done, does }: { max: number; done: string; does: string },
): string[] {
  if (count <= max) return []
  return [`its ${count} ${what} are more than the ${max} that are ${done} here: portcullis-sidecar check ${does} them`]
}
