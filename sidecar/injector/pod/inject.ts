/** The injector's decision as a pure function: how to change a Pod so that each named port leads through a sidecar. */
import {
  ANNOTATION_PORTS,
  ANNOTATION_ROUTES,
  ANNOTATION_SCRAPE,
  ANNOTATION_STATUS,
  LABEL_INJECT,
  LABEL_INJECTED,
  LABEL_OPEN,
  PREFIX,
  readWishes,
  type Wishes,
} from './annotations.ts'
import type { InjectorConfig } from './config.ts'
import { type Denial, deny, type Injection, type Mode } from './injection.ts'
import { type JsonObject, pointer, ShapeError } from './json.ts'
import type { PatchOperation } from './patch.ts'
import { append, placeSidecars } from './place-sidecars.ts'
import { type Container, type Pod, type Port, parsePod } from './pod.ts'
import { markOf } from './ports.ts'
import { findStrangers, isPresent } from './reserved-names.ts'
import { beyondBounds, RESOURCES, resourcesFor } from './resources.ts'
import {
  buildSidecars,
  buildVolumes,
  describeSidecars,
  RESERVED,
  type Sidecar,
  WITHDRAW_SECONDS,
} from './sidecar-container.ts'
import { takeOver } from './take-over.ts'
import { openNumbers } from './unprotected-ports.ts'

/** Adds sidecars to a Pod, and denies one that cannot be read. A second injection changes nothing. */
export function inject(document: JsonObject, options: { config: InjectorConfig; mode: Mode }): Injection {
  try {
    return decide(parsePod(document), options)
  } catch (err) {
    if (err instanceof ShapeError) return deny('pod_invalid', err.message)
    throw err
  }
}

function decide(pod: Pod, { config, mode }: { config: InjectorConfig; mode: Mode }): Injection {
  const wishes = readWishes(pod)
  if ('issue' in wishes) return deny('wish_invalid', wishes.issue)
  if (wishes.disabled && mode === 'required')
    return deny('opted_out', `this namespace requires the sidecar; remove label ${LABEL_INJECT}: disabled`)
  if (pod.hostNetwork && (mode === 'required' || (wishes.ports !== null && !wishes.disabled)))
    return deny('host_network', 'a Pod with hostNetwork cannot have a sidecar; remove hostNetwork')
  if (pod.sharesProcesses && mode === 'required')
    return deny(
      'processes_shared',
      'this namespace requires the sidecar, and shareProcessNamespace or hostPID lets other containers reach into it; remove both',
    )
  const ports = wishes.disabled ? [] : (wishes.ports ?? [])
  if (ports.length === 0) return withoutSidecar(pod, wishes, mode)
  if (wishes.routes === null)
    return deny('routes_missing', `annotation ${ANNOTATION_ROUTES} must name the ConfigMap with the route files`)
  if (wishes.scrape.length > 0 && config.scrapers.length === 0)
    return deny(
      'wish_refused',
      `annotation ${ANNOTATION_SCRAPE} must wait for the operator, who has named no addresses in injector.sidecar.scrapers`,
    )
  for (const name of RESOURCES) {
    const wish = wishes.resources[name]
    const issue = wish === null ? null : beyondBounds(wish, config.resourceBounds[name])
    if (issue !== null) return deny('wish_refused', `annotation ${PREFIX}${name} ${issue}`)
  }
  const resources = resourcesFor(pod.hasResources ? null : config.resources, wishes.resources)
  if (pod.isWindows)
    return deny(
      'windows_unsupported',
      'the sidecar is a Linux program, so the Pod must not be one for Windows; remove the annotations',
    )
  if (!config.nativeSidecars && pod.restartPolicy !== 'Always')
    return deny(
      'job_unsupported',
      'the Pod would never end, because the injector adds no native sidecars; set injector.sidecar.nativeSidecars of the chart to true, which needs Kubernetes 1.32',
    )
  const early = pod.containers.find(({ list, raw }) => list === 'initContainers' && raw.restartPolicy === 'Always')
  if (!config.nativeSidecars && mode === 'required' && early !== undefined)
    return deny(
      'sidecar_late',
      `container ${early.name} keeps running and starts before the sidecar, so it could take the sidecar's port; make it an ordinary container`,
    )
  return withSidecars(pod, {
    config,
    mode,
    wishes,
    routes: wishes.routes,
    sidecars: buildSidecars({ ports, secrets: wishes.secrets, scrape: wishes.scrape, resources }, config),
  })
}

function withoutSidecar(pod: Pod, wishes: Wishes, mode: Mode): Injection {
  const stranger = pod.containers.find(({ name }) => name.startsWith(RESERVED))
  if (stranger !== undefined)
    return deny(
      'name_taken',
      `container ${stranger.name} has a reserved name; rename it: only injected sidecars have names that begin with ${RESERVED}. A copy by kubectl debug --copy-to needs --keep-annotations`,
    )
  const forged = [...pod.labels.keys()].find((name) => name === LABEL_INJECTED || name.startsWith(LABEL_OPEN))
  if (forged !== undefined) return deny('label_forged', `only the injector may set label ${forged}; remove it`)
  if (mode === 'required' && wishes.ports === null)
    return deny(
      'ports_missing',
      `this namespace requires annotation ${ANNOTATION_PORTS} with port names, or with none if the Pod serves nothing`,
    )
  // Unprotected ports are allowed only beside a sidecar: where one is required, a Pod with ports must have it.
  const open = openPorts(pod, mode === 'required' ? new Set() : wishes.unprotected)
  if (mode === 'required' && open.length > 0) return deny('port_unprotected', describeOpenPorts(open))
  const warnings = wishes.disabled || open.length === 0 ? [] : [describeOpenPorts(open)]
  if (wishes.disabled) return { verdict: 'skip', code: 'opted_out', warnings }
  return { verdict: 'skip', code: wishes.ports === null ? 'not_asked' : 'serves_nothing', warnings }
}

type Plan = {
  readonly config: InjectorConfig
  readonly mode: Mode
  readonly wishes: Wishes
  readonly routes: string
  readonly sidecars: readonly Sidecar[]
}

function withSidecars(pod: Pod, plan: Plan): Injection | Denial {
  const { config, mode, wishes, sidecars } = plan
  const list = config.nativeSidecars ? 'initContainers' : 'containers'
  const volumes = buildVolumes({ routes: plan.routes, secrets: wishes.secrets }, config)
  const strangers = findStrangers(pod, { sidecars, volumes, list })
  if (strangers !== null) return strangers
  const own = new Set(sidecars.map(({ name }) => name))
  const apps = pod.containers.filter(({ name }) => !own.has(name))
  const present = sidecars.filter((sidecar) => isPresent(pod, sidecar))
  const taken = takeOver(apps, { sidecars, present, first: config.port })
  if ('verdict' in taken) return taken
  const numbers = openNumbers(apps, { unprotected: wishes.unprotected, sidecars, first: config.port })
  if ('verdict' in numbers) return numbers
  const labels = [LABEL_INJECTED, ...numbers.map((number) => `${LABEL_OPEN}${number}`)]
  const forged = [...pod.labels.keys()].find((name) => name.startsWith(LABEL_OPEN) && !labels.includes(name))
  if (forged !== undefined) return deny('label_forged', `only the injector may set label ${forged}; remove it`)
  const warnings = pod.sharesProcesses
    ? ['shareProcessNamespace or hostPID lets the other containers of this Pod reach into the sidecar']
    : []
  if (pod.graceSeconds < GRACE_SECONDS_MIN)
    warnings.push(
      `terminationGracePeriodSeconds is ${pod.graceSeconds}: requests are cut off, because the sidecar still accepts some for ${WITHDRAW_SECONDS} seconds when its Pod ends; set ${GRACE_SECONDS_MIN} or more`,
    )
  const open = openPorts({ containers: apps }, wishes.unprotected, sidecars)
  if (open.length > 0 && mode === 'required') return deny('port_unprotected', describeOpenPorts(open))
  if (open.length > 0) warnings.push(describeOpenPorts(open))
  const placement = placeSidecars(pod, { sidecars, list, first: mode === 'required' })
  warnings.push(...placement.warnings)
  const operations = [
    ...taken.operations,
    ...placement.operations,
    ...append(
      ['spec', 'volumes'],
      volumes.filter(({ name }) => !pod.volumes.some((v) => v.name === name)),
      pod.missing.has('volumes'),
    ),
    ...append(
      ['spec', 'imagePullSecrets'],
      config.imagePullSecrets.filter((name) => !pod.imagePullSecrets.includes(name)).map((name) => ({ name })),
      pod.missing.has('imagePullSecrets'),
    ),
    ...marks(pod, sidecars, {
      appPorts: taken.appPorts,
      numbers,
      app: apps.find(({ list }) => list === 'containers'),
      mark: markOf(sidecars.length, config.port),
    }),
  ]
  return { verdict: 'inject', operations, warnings }
}

function marks(
  pod: Pod,
  sidecars: readonly Sidecar[],
  {
    appPorts,
    numbers,
    app,
    mark: injected,
  }: {
    appPorts: ReadonlyMap<string, number>
    numbers: readonly number[]
    app: Container | undefined
    mark: string
  },
): readonly PatchOperation[] {
  const annotations: [string, string][] = []
  if (appPorts.size > 0) annotations.push([ANNOTATION_STATUS, describeSidecars(sidecars, appPorts)])
  if (app !== undefined && !pod.annotations.has(DEFAULT_CONTAINER)) annotations.push([DEFAULT_CONTAINER, app.name])
  const wanted: [string, string][] = [
    [LABEL_INJECTED, injected],
    ...numbers.map((number): [string, string] => [`${LABEL_OPEN}${number}`, 'true']),
  ]
  const labels = wanted.filter(([name, value]) => pod.labels.get(name) !== value)
  return [...mark(pod, 'annotations', annotations), ...mark(pod, 'labels', labels)]
}

const DEFAULT_CONTAINER = 'kubectl.kubernetes.io/default-container'

function mark(pod: Pod, kind: 'annotations' | 'labels', entries: [string, string][]): readonly PatchOperation[] {
  if (entries.length === 0) return []
  // An `add` of the whole map would erase its other entries, so each entry is added by itself.
  if (pod.missing.has(kind)) return [{ op: 'add', path: pointer('metadata', kind), value: Object.fromEntries(entries) }]
  return entries.map(([name, value]) => ({ op: 'add', path: pointer('metadata', kind, name), value }))
}

/** The time to withdraw, and the same time again for the last requests. */
const GRACE_SECONDS_MIN = 2 * WITHDRAW_SECONDS

/** How many ports one message names: a Pod may declare thousands. */
const NAMED_COUNT_MAX = 8

/** The Pod's ports that no sidecar covers, and that its annotation does not list as unprotected. */
function openPorts(
  pod: Pick<Pod, 'containers'>,
  unprotected: Wishes['unprotected'],
  sidecars: readonly Sidecar[] = [],
): readonly { readonly container: string; readonly port: Port }[] {
  const behind = new Set(sidecars.flatMap(({ portName, hiddenName }) => [portName, hiddenName]))
  return pod.containers
    .flatMap((container) => container.ports.map((port) => ({ container: container.name, port })))
    .filter(({ port }) => port.name === null || !behind.has(port.name))
    .filter(({ port }) => !unprotected.has(String(port.number)) && !unprotected.has(port.name ?? ''))
}

function describeOpenPorts(open: readonly { readonly container: string; readonly port: Port }[]): string {
  const named = open
    .slice(0, NAMED_COUNT_MAX)
    .map(({ container, port }) => `${port.name ?? port.number} of ${container}`)
  const more = open.length > named.length ? ` and ${open.length - named.length} more` : ''
  return `unprotected ports: ${named.join(', ')}${more}; name them in portcullis.dev/ports or portcullis.dev/unprotected-ports`
}
