/** The routes of connected sidecars, as they report them. They are shown to people, and no decision uses them. */

import { create } from '@bufbuild/protobuf'
import type { ServerDuplexStream } from '@grpc/grpc-js'
import type {
  ReportRequest,
  ReportResponse,
  RouteCount,
  RouteTable,
} from '../../../../proto/gen/portcullis/v1/routes_pb.ts'
import { ReportResponseSchema } from '../../../../proto/gen/portcullis/v1/routes_pb.ts'
import type { GrpcCaller } from '../authentication/grpc-callers.ts'
import { createBudgets, type Holding, hold } from './budgets.ts'
import type { OpenStream } from './stream.ts'

const ROUTES_MAX = 2_000
const WARNINGS_MAX = 100
/** The longest text of a table, in characters. */
const TEXT_MAX = 2_048
/** The bytes for a route besides its texts, as counted for the limit. */
const ROUTE_BYTES = 256
const TRY_MS = 2_000
const TRIALS_MAX = 16
/** Limits of all callers together; one caller may hold a quarter, and the callers of one tenant a half. */
const LIMITS = { streams: 2_000, watched: 0, tokenCharacters: 0, bytes: 64 * 1024 * 1024 }

export type ReportedRoute = {
  readonly id: string
  readonly check: string
  readonly shadow: boolean
  /** How many tests of the route file lead to this route. */
  readonly tests: number
  readonly requests: number
  readonly denied: number
  readonly shadowed: number
}
export type Trial = { readonly method: string; readonly target: string; readonly claims: string }
export type Tried = {
  /** The id of the trial request's route; empty: no route. */
  readonly route: string
  readonly parameters: readonly string[]
  readonly asks: readonly string[]
  /** The code of the sidecar's denial; empty: the sidecar would ask the PDP. */
  readonly denial: string
}
export type ReportedSidecar = {
  /** In Kubernetes `namespace/Pod/process`, with the namespace of the verified service account. */
  readonly name: string
  readonly resource: string
  readonly fileHash: string
  /** The name of the caller that the sidecar authenticated as. */
  readonly caller: string
  readonly connectedMs: number
  /** The time of the sidecar's report in milliseconds since the epoch. */
  readonly loadedMs: number
  readonly routes: readonly ReportedRoute[]
  /** How many routes are not in `routes`, because there are too many. */
  readonly leftOut: number
  /** How many tests the route file has; 0: none, or too many to run. */
  readonly tests: number
  readonly warnings: readonly string[]
  /** Lets the sidecar say what it would do with a request. Null: it did not answer in time, or has too many trials open. */
  try(trial: Trial): Promise<Tried | null>
}
export type ReportCall = Pick<
  ServerDuplexStream<ReportRequest, ReportResponse>,
  'on' | 'write' | 'end' | 'writableNeedDrain'
>
export type RouteReports = {
  /** Sidecars that have sent a table, the longest connected first. */
  all(): readonly ReportedSidecar[]
  /** Takes the reports of one stream. Null: the caller has too many open streams. */
  serve(call: ReportCall, caller: GrpcCaller): OpenStream | null
}

export function createRouteReports({ clock }: { readonly clock: () => number }): RouteReports {
  const budgets = createBudgets(LIMITS)
  const open = new Set<{ readonly sidecar: () => ReportedSidecar | null }>()
  return {
    all: () => [...open].flatMap(({ sidecar }) => sidecar() ?? []),
    serve(call, caller) {
      const holding = budgets.of(caller)
      const release = hold(holding, 'streams', 1)
      if (release === null) return null
      const report = serveReport(call, { caller: caller.name, holding, connectedMs: clock(), clock })
      open.add(report)
      for (const event of ['end', 'cancelled', 'close', 'error', 'finish']) {
        call.on(event, () => {
          if (!open.delete(report)) return
          report.close()
          release()
          if (event === 'end') call.end()
        })
      }
      return { drain: () => call.end() }
    },
  }
}

function serveReport(
  call: ReportCall,
  {
    caller,
    holding,
    connectedMs,
    clock,
  }: { caller: string; holding: Holding; connectedMs: number; clock: () => number },
) {
  const namespace = /^service account ([^/]+)\//.exec(caller)?.[1]
  let table: Table | null = null
  let loadedMs = connectedMs
  let release = (): void => undefined
  let last = 0
  const trials = new Map<number, (tried: Tried | null) => void>()

  function keep(next: RouteTable): void {
    release()
    const { table: read, bytes } = readTable(next)
    loadedMs = clock()
    const held = hold(holding, 'bytes', bytes)
    // If a table does not fit into the limits, the sidecar is shown without routes.
    table = held !== null ? read : { ...EMPTY, resource: read.resource, leftOut: next.routes.length }
    release = held ?? release
  }

  function trial(asked: Trial): Promise<Tried | null> {
    if (trials.size >= TRIALS_MAX || call.writableNeedDrain) return Promise.resolve(null)
    last = (last + 1) >>> 0
    const number = last
    const { promise, resolve } = Promise.withResolvers<Tried | null>()
    const timer = setTimeout(() => resolve(null), TRY_MS)
    trials.set(number, resolve)
    call.write(create(ReportResponseSchema, { trial: number, ...asked }))
    return promise.finally(() => {
      clearTimeout(timer)
      trials.delete(number)
    })
  }

  call.on('data', ({ table: next, counts, tried }: ReportRequest) => {
    if (next !== undefined) keep(next)
    if (table !== null) for (const count of counts.slice(0, ROUTES_MAX)) addCount(table.routes, count)
    if (tried === undefined) return
    const { route, parameters, asks, denial } = tried
    trials.get(tried.trial)?.({
      route: shortened(route),
      parameters: texts(parameters),
      asks: texts(asks),
      denial: shortened(denial),
    })
  })
  return {
    sidecar: (): ReportedSidecar | null =>
      table && {
        ...table,
        name: namespace === undefined ? table.name : `${namespace}/${table.name}`,
        caller,
        connectedMs,
        loadedMs,
        try: trial,
      },
    close() {
      release()
      table = null
      for (const resolve of trials.values()) resolve(null)
    },
  }
}

type Table = Pick<ReportedSidecar, 'name' | 'resource' | 'fileHash' | 'leftOut' | 'tests' | 'warnings'> & {
  readonly routes: ReportedRoute[]
}
const EMPTY: Table = { name: '', resource: '', fileHash: '', leftOut: 0, tests: 0, warnings: [], routes: [] }
const UNASKED = { requests: 0, denied: 0, shadowed: 0 }

const shortened = (text: string): string => text.slice(0, TEXT_MAX)
const texts = (all: readonly string[]): readonly string[] => all.slice(0, WARNINGS_MAX).map(shortened)

function readTable({ name, resource, fileHash, routes: all, leftOut, tests, warnings }: RouteTable): {
  table: Table
  bytes: number
} {
  const routes = all.slice(0, ROUTES_MAX).map((route) => ({
    ...UNASKED,
    id: shortened(route.id),
    check: shortened(route.check),
    shadow: route.shadow,
    tests: route.tests,
  }))
  const read = {
    name: shortened(name),
    resource: shortened(resource),
    fileHash: shortened(fileHash),
    tests,
    warnings: texts(warnings),
    routes,
  }
  const bytes = 2 * JSON.stringify(read).length + ROUTE_BYTES * routes.length
  return { table: { ...read, leftOut: leftOut + all.length - routes.length }, bytes }
}

function addCount(routes: ReportedRoute[], { route, requests, denied, shadowed }: RouteCount): void {
  const known = routes[route]
  if (known !== undefined) routes[route] = { ...known, requests, denied, shadowed }
}
