/** Finds Pods that ask for a sidecar in vain: in a namespace without a mode, with a missing or wrong route file, or in a template. */
import { readWishes } from '../pod/annotations.ts'
import { type InjectorConfig, parseInjectorConfig } from '../pod/config.ts'
import type { Mode } from '../pod/injection.ts'
import { type JsonObject, listAt, textsAt } from '../pod/json.ts'
import { parsePod } from '../pod/pod.ts'
import { hasSidecarName, platformOf } from '../pod/recognize-sidecar.ts'
import { checkWorkload, ROUTE_KEY, type RouteFileReport } from '../webhook/checks.ts'
import { webhooksOf } from './injectors.ts'
import { type Finding, finding, type Named, ofKind, type WatchedPod } from './watched.ts'

/** Checks a route file. `platform`: the text that a platform sets for every route file; null: none. */
export type CheckRoutes = (text: string, platform: string | null) => RouteFileReport

/** Pods of namespaces without a mode. */
export function checkBare(pod: Named): readonly Finding[] {
  const parsed = parsePod(pod.raw)
  const wishes = readWishes(parsed)
  const asks = !('issue' in wishes) && !wishes.disabled && (wishes.ports ?? []).length > 0
  if (!asks || parsed.containers.some(hasSidecarName)) return []
  const message =
    'asks for a sidecar and has none: its namespace has no label portcullis.dev/inject; set it, and restart the workload'
  return [finding('pod_bare', pod, 'Pod', message)]
}

const WORKLOADS = ['Deployment', 'StatefulSet', 'DaemonSet', 'CronJob', 'Rollout']

/** Finds workloads, in namespaces with a mode, whose next Pods the injector would refuse. */
export function checkWorkloads(
  objects: readonly JsonObject[],
  modeOf: (namespace: string) => Mode | undefined,
): readonly Finding[] {
  const config = settingsOf(objects)
  if (config === null) return []
  return WORKLOADS.flatMap((kind) =>
    ofKind(objects, kind).flatMap((workload) => {
      const mode = modeOf(workload.namespace)
      const [first] = mode === undefined ? [] : checkWorkload(workload.raw, mode, config).warnings
      return first?.startsWith('its Pods will be refused') === true
        ? [finding('workload_refused', workload, kind, first)]
        : []
    }),
  )
}

/** The settings of the injector; null: they cannot be read. A ConfigMap of another namespace could say anything. */
export function settingsOf(objects: readonly JsonObject[]): InjectorConfig | null {
  const homes = webhooksOf(objects).map(({ namespace }) => namespace)
  for (const { namespace, raw } of ofKind(objects, 'ConfigMap')) {
    if (!homes.includes(namespace)) continue
    const text = textsAt(raw.data, 'data').get('injector.yaml')
    try {
      if (text !== undefined) return parseInjectorConfig(text, 'injector.yaml')
    } catch {
      // The settings are those of another version, so they count as unreadable.
    }
  }
  return null
}

/** Checks the route files of Pods with sidecars, and all ConfigMaps labelled as route files. */
export function checkRouteFiles(
  objects: readonly JsonObject[],
  pods: readonly WatchedPod[],
  check: CheckRoutes,
): readonly Finding[] {
  const maps = ofKind(objects, 'ConfigMap')
  if (maps.length === 0) return []
  const seen = new Set<string>()
  const once = (one: Finding): boolean => {
    const text = JSON.stringify(one)
    return !seen.has(text) && seen.add(text) !== undefined
  }
  const missing = pods.flatMap((pod) => {
    const wishes = readWishes(parsePod(pod.raw))
    if ('issue' in wishes || wishes.routes === null || pod.sidecars.length === 0) return []
    const { routes, ports } = wishes
    const map = maps.find(({ namespace, name }) => namespace === pod.namespace && name === routes)
    if (map === undefined)
      return [
        finding(
          'routes_missing',
          { namespace: pod.namespace, name: routes },
          'ConfigMap',
          'does not exist, and sidecars read their route files there',
        ),
      ]
    const keys = [...textsAt(map.raw.data, 'data').keys()]
    return (ports ?? [])
      .filter((port) => !keys.includes(`${port}.yaml`))
      .map((port) => finding('routes_missing', map, 'ConfigMap', missingKey(`${port}.yaml`, keys)))
  })
  // The settings may be unreadable for this operator, but the sidecars' arguments contain the same text.
  const args = pods.flatMap(({ sidecars }) => sidecars.flatMap(({ raw }) => listAt(raw.args, 'args').map(String)))
  const platform = settingsOf(objects)?.platform ?? platformOf(args)
  const read = new Set(pods.map((pod) => `${pod.namespace}/${routesOf(pod)}`))
  const wrong = maps
    .filter((map) => read.has(`${map.namespace}/${map.name}`) || labelsOf(map).get(LABEL_ROUTE_FILE) === 'true')
    .flatMap((map) =>
      [...textsAt(map.raw.data, 'data')]
        .filter(([key]) => ROUTE_KEY.test(key))
        .flatMap(([key, text]) =>
          check(text, platform)
            .errors.slice(0, 1)
            .map((line) => finding('routes_invalid', map, 'ConfigMap', `${key}:${line}`)),
        ),
    )
  return [...missing, ...wrong].filter(once)
}

const LABEL_ROUTE_FILE = 'portcullis.dev/route-file'

const missingKey = (key: string, keys: readonly string[]): string =>
  `has no key ${key}, the route file of its port; its keys are ${keys.slice(0, 8).join(', ') || 'none'}`

function routesOf(pod: WatchedPod): string {
  const wishes = readWishes(parsePod(pod.raw))
  return 'issue' in wishes ? '' : (wishes.routes ?? '')
}

const labelsOf = ({ raw }: Named): ReadonlyMap<string, string> => {
  const { metadata } = raw
  return textsAt(
    typeof metadata === 'object' && metadata !== null && 'labels' in metadata ? metadata.labels : null,
    'labels',
  )
}
