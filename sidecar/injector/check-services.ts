/** The Services and hand-written endpoints that lead past a gate. */
import { isGatePort } from './gate.ts'
import { type Json, type JsonObject, listAt, objectAt, textAt, textsAt } from './json.ts'
import { type Finding, finding, isGate, type Named, ofKind, type WatchedPod } from './watched.ts'

const CONTROLLER = 'endpointslice-controller.k8s.io'

/** Throws ShapeError. */
export function checkServices(objects: readonly JsonObject[], pods: readonly WatchedPod[]): readonly Finding[] {
  return [
    ...ofKind(objects, 'Service').flatMap((service) => checkService(service, pods)),
    ...ofKind(objects, 'EndpointSlice').flatMap((slice) => checkSlice(slice, pods)),
  ]
}

function checkService(service: Named, pods: readonly WatchedPod[]): readonly Finding[] {
  const spec = objectAt(service.raw.spec, 'spec')
  const selector = textsAt(spec.selector, 'spec.selector')
  if (selector.size === 0) return []
  const chosen = pods.filter(
    ({ namespace, labels }) =>
      namespace === service.namespace && [...selector].every(([name, value]) => labels.get(name) === value),
  )
  // Without a gate and without the duty to have one, it is nothing of ours.
  if (!chosen.some(({ gated, mode }) => gated || mode === 'required')) return []
  return listAt(spec.ports, 'spec.ports').flatMap((item) => {
    const port = objectAt(item, 'spec.ports')
    const target = port.targetPort ?? port.port ?? null
    const open = chosen.find((pod) => leadsPast(target, pod))
    if (open === undefined) return []
    const why = open.gated ? 'which is not its gate; name the gated port in targetPort' : 'which has no gate'
    return [
      finding('service_bypass', service, 'Service', `port ${port.port} goes to ${target} of Pod ${open.name}, ${why}`),
    ]
  })
}

function leadsPast(target: Json, { containers, gated }: WatchedPod): boolean {
  if (typeof target === 'number') return !gated || !isGatePort(target)
  const holders = containers.filter(({ ports }) => ports.some(({ name }) => name === target))
  return holders.some((container) => !isGate(container))
}

/** The controller's follow their Service; others say by themselves where they lead. */
function checkSlice(slice: Named, pods: readonly WatchedPod[]): readonly Finding[] {
  const labels = textsAt(objectAt(slice.raw.metadata, 'metadata').labels, 'labels')
  if (labels.get('endpointslice.kubernetes.io/managed-by') === CONTROLLER) return []
  const addresses = new Set(
    listAt(slice.raw.endpoints, 'endpoints').flatMap((item) =>
      listAt(objectAt(item, 'endpoints').addresses, 'addresses').map((address) => textAt(address, 'addresses')),
    ),
  )
  const reached = pods.find((pod) => pod.gated && pod.addresses.some((address) => addresses.has(address)))
  if (reached === undefined) return []
  const ports = listAt(slice.raw.ports, 'ports').map((item) => objectAt(item, 'ports').port ?? null)
  const past = ports.length === 0 ? [null] : ports.filter((port) => typeof port !== 'number' || !isGatePort(port))
  return past.slice(0, 1).map((port) => {
    const message = `goes to ${port ?? 'every port'} of Pod ${reached.name}, which is not its gate`
    return finding('service_bypass', slice, 'EndpointSlice', message)
  })
}
