/** The objects of a cluster as its check reads them, and what the check says about them. */
import { RESERVED } from './gate.ts'
import type { Mode } from './injection.ts'
import { type JsonObject, listAt, objectAt, textAt } from './json.ts'
import { type Container, parsePod } from './pod.ts'

export type FindingCode =
  | 'service_bypass'
  | 'pod_ungated'
  | 'pod_reachable'
  | 'policy_missing'
  | 'policy_bypass'
  | 'namespace_unknown'
  | 'webhook_missing'
  | 'webhook_open'
  | 'backstop_missing'
  | 'backstop_open'
  | 'gate_mixed'
export type Finding = {
  readonly code: FindingCode
  readonly namespace: string | null
  /** `Kind/name`. */
  readonly object: string
  readonly message: string
}
export type Named = { readonly namespace: string; readonly name: string; readonly raw: JsonObject }
/** A Pod of a namespace with a mode. */
export type WatchedPod = Named & {
  readonly mode: Mode
  readonly labels: ReadonlyMap<string, string>
  readonly containers: readonly Container[]
  readonly gated: boolean
  readonly addresses: readonly string[]
}

export const isGate = ({ name }: Pick<Container, 'name'>): boolean => name.startsWith(`${RESERVED}gate`)

export const finding = (code: FindingCode, { namespace, name }: Named, kind: string, message: string): Finding => ({
  code,
  namespace: namespace === '' ? null : namespace,
  object: `${kind}/${name}`,
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
export function readWatched(pod: Named, mode: Mode): WatchedPod {
  const { labels, containers } = parsePod(pod.raw)
  const ips = listAt(objectAt(pod.raw.status, 'status').podIPs, 'status.podIPs')
  const addresses = ips.map((item) => textAt(objectAt(item, 'podIPs').ip, 'ip') ?? '')
  return { ...pod, mode, labels, containers, gated: containers.some(isGate), addresses }
}
