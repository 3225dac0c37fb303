/** The objects of a cluster in the form for `check-cluster`, and its findings about them. */
import { readWishes } from '../pod/annotations.ts'
import type { Mode } from '../pod/injection.ts'
import { type JsonObject, listAt, objectAt, textAt } from '../pod/json.ts'
import { type Container, parsePod } from '../pod/pod.ts'
import { DEFAULT_PORT } from '../pod/ports.ts'
import { coveredBy, firstPortOf, isSidecar } from '../pod/recognize-sidecar.ts'
import { openNumbers } from '../pod/unprotected-ports.ts'

export type FindingCode =
  | 'service_bypass'
  | 'service_headless'
  | 'pod_unprotected'
  | 'pod_reachable'
  | 'policy_missing'
  | 'policy_bypass'
  | 'namespace_unknown'
  | 'webhook_missing'
  | 'webhook_open'
  | 'backstop_missing'
  | 'backstop_open'
  | 'sidecar_outdated'
  | 'sidecar_forged'
  | 'token_shared'
  | 'route_unasked'
  | 'pod_bare'
  | 'workload_refused'
  | 'routes_missing'
  | 'routes_invalid'
export type Finding = {
  readonly code: FindingCode
  readonly namespace: string | null
  /** `Kind/name`. */
  readonly object: string
  readonly message: string
}
export type Named = { readonly namespace: string; readonly name: string; readonly raw: JsonObject }
/** A namespace with a mode. `name` null: every namespace with this mode. */
export type GuardedNamespace = {
  readonly name: string | null
  readonly mode: Mode
  readonly labels: ReadonlyMap<string, string>
}
/** A Pod of a namespace with a mode. */
export type WatchedPod = Named & {
  readonly mode: Mode
  readonly labels: ReadonlyMap<string, string>
  /** Containers that are sidecars by all of their members. */
  readonly sidecars: readonly Container[]
  /** All containers that are no sidecars, even if they have a sidecar's name. */
  readonly apps: readonly Container[]
  /** Port numbers that may be reached: those of its sidecars, and those that the Pod itself names as unprotected. */
  readonly open: ReadonlySet<number>
  readonly addresses: readonly string[]
}

export const finding = (
  code: FindingCode,
  { namespace, name }: Pick<Named, 'namespace' | 'name'>,
  kind: string,
  message: string,
): Finding => ({
  code,
  namespace: namespace === '' ? null : namespace,
  object: `${kind}/${name}`,
  message,
})

export const nothing = (code: FindingCode, namespace: string | null, kind: string, message: string): Finding => ({
  code,
  namespace,
  object: kind,
  message,
})

/** Throws ShapeError. */
export function ofKind(objects: readonly JsonObject[], kind: string): readonly Named[] {
  return objects
    .filter((object) => object.kind === kind)
    .map((raw) => {
      const metadata = objectAt(raw.metadata, 'metadata')
      const name = textAt(metadata.name, 'metadata.name') ?? ''
      return { namespace: textAt(metadata.namespace, 'metadata.namespace') ?? '', name, raw }
    })
}

/** Throws ShapeError. */
export function readWatched(named: Named, mode: Mode): WatchedPod {
  const pod = parsePod(named.raw)
  const sidecars = pod.containers.filter((container) => isSidecar(container, pod))
  const apps = pod.containers.filter((container) => !sidecars.includes(container))
  const ips = listAt(objectAt(named.raw.status, 'status').podIPs, 'status.podIPs')
  const addresses = ips.map((item) => plainIp(textAt(objectAt(item, 'podIPs').ip, 'ip') ?? ''))
  const wishes = readWishes(pod)
  const unprotected = 'issue' in wishes || sidecars.length === 0 ? new Set<string>() : wishes.unprotected
  const first = sidecars[0] === undefined ? DEFAULT_PORT : firstPortOf(sidecars[0])
  const numbers = openNumbers(apps, { unprotected, sidecars: sidecars.flatMap(coveredBy), first })
  const open = new Set(sidecars.flatMap(({ ports }) => ports.map(({ number }) => number)))
  for (const number of 'verdict' in numbers ? [] : numbers) open.add(number)
  return { ...named, mode, labels: pod.labels, sidecars, apps, open, addresses }
}

/** True if the Pod has ended, such as that of a finished Job: its address may belong to another Pod by now. */
export function hasEnded({ raw }: Named): boolean {
  const phase = textAt(objectAt(raw.status, 'status').phase, 'status.phase')
  return phase === 'Succeeded' || phase === 'Failed'
}

/** The IP address in one form, since IPv6 has several for one address. */
export const plainIp = (address: string): string =>
  address.includes(':') ? (URL.parse(`http://[${address}]`)?.hostname ?? address) : address
