/** The parts of a Pod that decide about its sidecars. */
import { flagAt, type Json, type JsonObject, listAt, numberAt, objectAt, ShapeError, textAt, textsAt } from './json.ts'

export const LISTS = ['initContainers', 'containers'] as const
export type ContainerList = (typeof LISTS)[number]

export type Port = {
  readonly name: string | null
  readonly number: number
  readonly hostPort: number | null
  readonly protocol: string
}
/** A probe or lifecycle handler that names a port. `path`: the path to the port's name. */
export type PortReference = { readonly path: readonly string[]; readonly portName: string }
export type Container = {
  readonly list: ContainerList
  readonly index: number
  readonly name: string
  readonly ports: readonly Port[]
  /** Names of the volumes that the container mounts. */
  readonly mounts: readonly string[]
  readonly references: readonly PortReference[]
  readonly raw: JsonObject
}
export type Volume = { readonly name: string; readonly raw: JsonObject }
export type Pod = {
  readonly labels: ReadonlyMap<string, string>
  readonly annotations: ReadonlyMap<string, string>
  readonly containers: readonly Container[]
  readonly volumes: readonly Volume[]
  readonly hostNetwork: boolean
  /** True: a container may reach the processes of others, in either of the two ways to set it. */
  readonly sharesProcesses: boolean
  /** Names of Secrets. */
  readonly imagePullSecrets: readonly string[]
  readonly restartPolicy: string
  readonly isWindows: boolean
  readonly graceSeconds: number
  /** True: the Pod as a whole has requests or limits, which its containers share. */
  readonly hasResources: boolean
  /** Members of the Pod that are absent and that an `add` into them needs. */
  readonly missing: ReadonlySet<'annotations' | 'labels' | 'volumes' | 'imagePullSecrets' | ContainerList>
}

const HANDLERS = [
  ['startupProbe'],
  ['readinessProbe'],
  ['livenessProbe'],
  ['lifecycle', 'postStart'],
  ['lifecycle', 'preStop'],
] as const
const ACTIONS = ['httpGet', 'tcpSocket'] as const

/** Reads a Pod. Throws ShapeError, which names the wrong member. */
export function parsePod(document: JsonObject): Pod {
  const metadata = objectAt(document.metadata, 'metadata')
  const spec = objectAt(document.spec, 'spec')
  const containers = LISTS.flatMap((list) =>
    listAt(spec[list], `spec.${list}`).map((item, index) => parseContainer(item, { list, index })),
  )
  if (!containers.some(({ list }) => list === 'containers')) throw new ShapeError('spec.containers is empty')
  const absent = (value: Json | undefined): boolean => value === undefined || value === null
  return {
    labels: textsAt(metadata.labels, 'metadata.labels'),
    annotations: textsAt(metadata.annotations, 'metadata.annotations'),
    containers,
    volumes: listAt(spec.volumes, 'spec.volumes').map(parseVolume),
    hostNetwork: flagAt(spec.hostNetwork, 'spec.hostNetwork'),
    sharesProcesses:
      flagAt(spec.shareProcessNamespace, 'spec.shareProcessNamespace') || flagAt(spec.hostPID, 'spec.hostPID'),
    imagePullSecrets: listAt(spec.imagePullSecrets, 'spec.imagePullSecrets').map((item, index) =>
      nameAt(item, `spec.imagePullSecrets[${index}]`),
    ),
    isWindows: isWindows(spec),
    graceSeconds: numberAt(spec.terminationGracePeriodSeconds, 'spec.terminationGracePeriodSeconds') ?? GRACE_SECONDS,
    restartPolicy: textAt(spec.restartPolicy, 'spec.restartPolicy') ?? 'Always',
    hasResources: Object.keys(objectAt(spec.resources, 'spec.resources')).length > 0,
    missing: new Set([
      ...(['labels', 'annotations'] as const).filter((name) => absent(metadata[name])),
      ...(['volumes', 'imagePullSecrets', ...LISTS] as const).filter((name) => absent(spec[name])),
    ]),
  }
}

/** The default grace period of Kubernetes. */
const GRACE_SECONDS = 30

function isWindows(spec: JsonObject): boolean {
  const chosen = textsAt(spec.nodeSelector, 'spec.nodeSelector').get('kubernetes.io/os')
  return [objectAt(spec.os, 'spec.os').name, chosen].includes('windows')
}

function parseContainer(item: Json, { list, index }: { list: ContainerList; index: number }): Container {
  const place = `spec.${list}[${index}]`
  const raw = objectAt(item, place)
  const name = textAt(raw.name, `${place}.name`)
  if (name === null) throw new ShapeError(`${place}.name is missing`)
  const ports = listAt(raw.ports, `${place}.ports`).map((port, at) => parsePort(port, `${place}.ports[${at}]`))
  const mounts = listAt(raw.volumeMounts, `${place}.volumeMounts`).map((mount, at) =>
    nameAt(mount, `${place}.volumeMounts[${at}]`),
  )
  const references = HANDLERS.flatMap((path) => referencesAt(raw, path, place))
  return { list, index, name, ports, mounts, references, raw }
}

function parsePort(item: Json, place: string): Port {
  const raw = objectAt(item, place)
  const number = numberAt(raw.containerPort, `${place}.containerPort`)
  if (number === null) throw new ShapeError(`${place}.containerPort is missing`)
  const hostPort = numberAt(raw.hostPort, `${place}.hostPort`)
  return {
    name: textAt(raw.name, `${place}.name`),
    number,
    hostPort: hostPort === 0 ? null : hostPort,
    protocol: textAt(raw.protocol, `${place}.protocol`) ?? 'TCP',
  }
}

function referencesAt(container: JsonObject, path: readonly string[], place: string): readonly PortReference[] {
  let handler = container
  for (const part of path) handler = objectAt(handler[part], `${place}.${path.join('.')}`)
  return ACTIONS.flatMap((action) => {
    const { port } = objectAt(handler[action], `${place}.${path.join('.')}.${action}`)
    return typeof port === 'string' ? [{ path: [...path, action, 'port'], portName: port }] : []
  })
}

function parseVolume(item: Json, index: number): Volume {
  const place = `spec.volumes[${index}]`
  return { name: nameAt(item, place), raw: objectAt(item, place) }
}

function nameAt(item: Json, place: string): string {
  return textAt(objectAt(item, place).name, `${place}.name`) ?? ''
}
