/** The injector's whole judgement, as a pure function: what to change in a Pod so that each named port leads through a gate. */
import {
  ANNOTATION_PORTS,
  ANNOTATION_ROUTES,
  ANNOTATION_STATUS,
  LABEL_INJECT,
  LABEL_INJECTED,
  LABEL_OPEN,
  readWishes,
  type Wishes,
} from './annotations.ts'
import type { InjectorConfig } from './config.ts'
import { buildGates, buildVolumes, describeGates, type Gate, RESERVED } from './gate.ts'
import { findStrangers, standsIn } from './gate-present.ts'
import { type Denial, deny, type Injection, type Mode } from './injection.ts'
import { type JsonObject, pointer, ShapeError } from './json.ts'
import type { PatchOperation } from './patch.ts'
import { append, placeGates } from './place-gates.ts'
import { type Container, type Pod, type Port, parsePod } from './pod.ts'
import { takeOver } from './take-over.ts'
import { openNumbers } from './unprotected-ports.ts'

/** Never throws. Injecting into what was injected into changes nothing. */
export function inject(document: JsonObject, options: { config: InjectorConfig; mode: Mode }): Injection {
  try {
    return judge(parsePod(document), options)
  } catch (err) {
    if (err instanceof ShapeError) return deny('pod_invalid', err.message)
    throw err
  }
}

function judge(pod: Pod, { config, mode }: { config: InjectorConfig; mode: Mode }): Injection {
  const wishes = readWishes(pod)
  if ('mistake' in wishes) return deny('wish_invalid', wishes.mistake)
  if (wishes.disabled && mode === 'required')
    return deny('opted_out', `this namespace requires the gate; label ${LABEL_INJECT}: disabled is not accepted`)
  if (pod.hostNetwork && (mode === 'required' || (wishes.ports !== null && !wishes.disabled)))
    return deny('host_network', 'a Pod on the network of its node cannot be gated')
  if (pod.sharesProcesses && mode === 'required')
    return deny('processes_shared', 'containers that share processes, or see those of the node, reach into the gate')
  const ports = wishes.disabled ? [] : (wishes.ports ?? [])
  if (ports.length === 0) return withoutGate(pod, wishes, mode)
  if (wishes.routes === null)
    return deny('routes_missing', `annotation ${ANNOTATION_ROUTES} must name the ConfigMap with the route files`)
  if (!config.nativeSidecars && pod.restartPolicy !== 'Always')
    return deny(
      'job_unsupported',
      'this cluster has no native sidecars, and with an ordinary one the Pod would never end',
    )
  const early = pod.containers.find(({ list, raw }) => list === 'initContainers' && raw.restartPolicy === 'Always')
  if (!config.nativeSidecars && mode === 'required' && early !== undefined)
    return deny(
      'gate_late',
      `container ${early.name} keeps running and starts before the gate, whose port it could take`,
    )
  return withGates(pod, { config, mode, wishes, routes: wishes.routes, gates: buildGates(ports, config) })
}

function withoutGate(pod: Pod, wishes: Wishes, mode: Mode): Injection {
  const stranger = pod.containers.find(({ name }) => name.startsWith(RESERVED))
  if (stranger !== undefined)
    return deny('name_taken', `container ${stranger.name} has a name that only a gate may have`)
  const forged = [...pod.labels.keys()].find((name) => name === LABEL_INJECTED || name.startsWith(LABEL_OPEN))
  if (forged !== undefined) return deny('label_forged', `label ${forged} is set by the injector alone`)
  if (mode === 'required' && wishes.ports === null)
    return deny('ports_missing', `this namespace requires annotation ${ANNOTATION_PORTS}: port names, or none`)
  // Unprotected is a word for ports beside a gate: a Pod that serves has one.
  const open = openPorts(pod, mode === 'required' ? new Set() : wishes.unprotected)
  if (mode === 'required' && open.length > 0) return deny('port_ungated', sayOpen(open))
  const warnings = wishes.disabled || open.length === 0 ? [] : [sayOpen(open)]
  if (wishes.disabled) return { verdict: 'skip', code: 'opted_out', warnings }
  return { verdict: 'skip', code: wishes.ports === null ? 'not_asked' : 'serves_nothing', warnings }
}

type Plan = {
  readonly config: InjectorConfig
  readonly mode: Mode
  readonly wishes: Wishes
  readonly routes: string
  readonly gates: readonly Gate[]
}

function withGates(pod: Pod, plan: Plan): Injection | Denial {
  const { config, mode, wishes, gates } = plan
  const list = config.nativeSidecars ? 'initContainers' : 'containers'
  const volumes = buildVolumes(plan.routes, config)
  const strangers = findStrangers(pod, { gates, volumes, list })
  if (strangers !== null) return strangers
  const own = new Set(gates.map(({ name }) => name))
  const apps = pod.containers.filter(({ name }) => !own.has(name))
  const present = gates.filter((gate) => standsIn(pod, gate))
  const taken = takeOver(apps, { gates, present })
  if ('verdict' in taken) return taken
  const numbers = openNumbers(apps, { unprotected: wishes.unprotected, gates })
  if ('verdict' in numbers) return numbers
  const labels = [LABEL_INJECTED, ...numbers.map((number) => `${LABEL_OPEN}${number}`)]
  const forged = [...pod.labels.keys()].find((name) => name.startsWith(LABEL_OPEN) && !labels.includes(name))
  if (forged !== undefined) return deny('label_forged', `label ${forged} is set by the injector alone`)
  const warnings = pod.sharesProcesses ? ['shared processes let the containers of this Pod reach into the gate'] : []
  const open = openPorts({ containers: apps }, wishes.unprotected, gates)
  if (open.length > 0 && mode === 'required') return deny('port_ungated', sayOpen(open))
  if (open.length > 0) warnings.push(sayOpen(open))
  const placement = placeGates(pod, { gates, list, first: mode === 'required' })
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
    ...(pod.enableServiceLinks === false
      ? []
      : [{ op: 'add', path: '/spec/enableServiceLinks', value: false } as const]),
    ...marks(pod, gates, { appPorts: taken.appPorts, numbers, app: apps.find(({ list }) => list === 'containers') }),
  ]
  return { verdict: 'inject', operations, warnings }
}

function marks(
  pod: Pod,
  gates: readonly Gate[],
  {
    appPorts,
    numbers,
    app,
  }: { appPorts: ReadonlyMap<string, number>; numbers: readonly number[]; app: Container | undefined },
): readonly PatchOperation[] {
  const annotations: [string, string][] = []
  if (appPorts.size > 0) annotations.push([ANNOTATION_STATUS, describeGates(gates, appPorts)])
  if (app !== undefined && !pod.annotations.has(DEFAULT_CONTAINER)) annotations.push([DEFAULT_CONTAINER, app.name])
  const wanted: [string, string][] = [
    [LABEL_INJECTED, String(gates.length)],
    ...numbers.map((number): [string, string] => [`${LABEL_OPEN}${number}`, 'true']),
  ]
  const labels = wanted.filter(([name, value]) => pod.labels.get(name) !== value)
  return [...mark(pod, 'annotations', annotations), ...mark(pod, 'labels', labels)]
}

const DEFAULT_CONTAINER = 'kubectl.kubernetes.io/default-container'

function mark(pod: Pod, kind: 'annotations' | 'labels', entries: [string, string][]): readonly PatchOperation[] {
  if (entries.length === 0) return []
  // An `add` of the whole map would erase what is there.
  if (pod.missing.has(kind)) return [{ op: 'add', path: pointer('metadata', kind), value: Object.fromEntries(entries) }]
  return entries.map(([name, value]) => ({ op: 'add', path: pointer('metadata', kind, name), value }))
}

/** In one message: a Pod may declare a hundred thousand. */
const NAMED_COUNT_MAX = 8

type OpenPort = { readonly container: string; readonly port: Port }

/** Ports that neither a gate takes nor the Pod calls unprotected. */
function openPorts(
  pod: Pick<Pod, 'containers'>,
  unprotected: Wishes['unprotected'],
  gates: readonly Gate[] = [],
): readonly OpenPort[] {
  const behind = new Set(gates.flatMap(({ portName, hiddenName }) => [portName, hiddenName]))
  return pod.containers
    .flatMap((container) => container.ports.map((port) => ({ container: container.name, port })))
    .filter(({ port }) => port.name === null || !behind.has(port.name))
    .filter(({ port }) => !unprotected.has(String(port.number)) && !unprotected.has(port.name ?? ''))
}

function sayOpen(open: readonly OpenPort[]): string {
  const named = open
    .slice(0, NAMED_COUNT_MAX)
    .map(({ container, port }) => `${port.name ?? port.number} of ${container}`)
  const more = open.length > named.length ? ` and ${open.length - named.length} more` : ''
  return `not gated: ${named.join(', ')}${more}; name them in portcullis.dev/ports or portcullis.dev/unprotected-ports`
}
