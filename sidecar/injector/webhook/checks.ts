/** Reviews that change nothing: of workloads whose Pods the injector would refuse or warn about, and of ConfigMaps with route files. */
import type { InjectorConfig } from '../pod/config.ts'
import { inject } from '../pod/inject.ts'
import { type Injection, MODES, type Mode } from '../pod/injection.ts'
import { isObject, type JsonObject, objectAt, ShapeError, textsAt } from '../pod/json.ts'
import { templatePath } from '../pod/templates.ts'
import { STATUS_DENIED } from './status.ts'

/** The result of `check` for a route file, without the file's name. */
export type RouteFileReport = { readonly errors: readonly string[]; readonly warnings: readonly string[] }
export type Asked = { readonly kind: 'workload'; readonly mode: Mode } | { readonly kind: 'routes' }
export type Checked = {
  readonly verdict: 'allow' | 'warn' | 'deny'
  /** The object as `namespace/name`. */
  readonly object: string
  readonly response: JsonObject
}

/** How many lines one answer has: a file may have thousands of errors. */
const LINES_MAX = 8
const NAME_CHARS_MAX = 253
export const ROUTE_KEY = /\.ya?ml$/

export function askedAt(path: string): Asked | null {
  if (path === '/routes') return { kind: 'routes' }
  const mode = MODES.find((known) => path === `/workloads/${known}`)
  return mode === undefined ? null : { kind: 'workload', mode }
}

/** Answers the request of an AdmissionReview. Null: the text is none. */
export async function check(
  request: JsonObject,
  asked: Asked,
  deps: { readonly config: InjectorConfig; readonly checkRoutes: (text: string) => Promise<RouteFileReport> },
): Promise<Checked | null> {
  const { uid, namespace, name, object } = request
  if (typeof uid !== 'string' || !isObject(object)) return null
  const named = [namespace, name].map((part) => String(part).slice(0, NAME_CHARS_MAX)).join('/')
  const { errors, warnings } =
    asked.kind === 'routes'
      ? await checkRoutesOf(object, deps.checkRoutes)
      : checkWorkload(object, asked.mode, deps.config)
  const lines = warnings.slice(0, LINES_MAX).map((line) => `portcullis: ${line}`)
  const noted = lines.length > 0 && { warnings: lines }
  if (errors.length === 0)
    return { verdict: lines.length > 0 ? 'warn' : 'allow', object: named, response: { uid, allowed: true, ...noted } }
  const more = errors.length > LINES_MAX ? [`and ${errors.length - LINES_MAX} more`] : []
  const message = `portcullis: ${[...errors.slice(0, LINES_MAX), ...more].join('; ')}`
  const status = { code: STATUS_DENIED, reason: 'Invalid', message }
  return { verdict: 'deny', object: named, response: { uid, allowed: false, status, ...noted } }
}

/** Warns the author now: the later refusal of Pods reaches only the controller that creates them. */
export function checkWorkload(workload: JsonObject, mode: Mode, config: InjectorConfig): RouteFileReport {
  try {
    const path = templatePath(workload)
    if (path === undefined) return NOTHING
    const template = path.reduce((parent, part) => objectAt(parent[part], part), workload)
    const injection = inject(template, { config, mode })
    if (injection.verdict !== 'deny')
      return { errors: [], warnings: [...injection.warnings, ...headless(workload, injection, config.port)] }
    return { errors: [], warnings: [`its Pods will be refused: ${injection.message} (${injection.code})`] }
  } catch (err) {
    // The API server itself reports what is wrong with the object.
    if (err instanceof ShapeError) return NOTHING
    throw err
  }
}

/** A warning if the workload's Service leads directly to Pod addresses, where clients choose the port. */
function headless({ kind, spec }: JsonObject, { verdict }: Injection, dataPort: number): readonly string[] {
  const name = isObject(spec) && kind === 'StatefulSet' ? spec.serviceName : null
  if (verdict !== 'inject' || typeof name !== 'string' || name === '') return []
  return [
    `clients that use the names of its Pods (Service ${name}) dial the app's port past the sidecar, or wait in vain where a network policy closes it: give them the port ${dataPort}`,
  ]
}

const NOTHING: RouteFileReport = { errors: [], warnings: [] }

/** Checks all keys that sidecars may read, as `check` does. */
async function checkRoutesOf(
  map: JsonObject,
  checkRoutes: (text: string) => Promise<RouteFileReport>,
): Promise<RouteFileReport> {
  const files = [...textsAt(map.data, 'data')].filter(([key]) => ROUTE_KEY.test(key))
  if (files.length === 0)
    return { errors: ['it has no key such as http.yaml, the route file of the port http'], warnings: [] }
  const found: { errors: string[]; warnings: string[] } = { errors: [], warnings: [] }
  for (const [key, text] of files) {
    const { errors, warnings } = await checkRoutes(text)
    found.errors.push(...errors.map((line) => `${key}:${line}`))
    found.warnings.push(...warnings.map((line) => `${key}: ${line}`))
  }
  return found
}
