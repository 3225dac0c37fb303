/** Finds the Services and endpoints that lead around a sidecar. */

import { type Json, type JsonObject, listAt, objectAt, textAt, textsAt } from '../pod/json.ts'
import { firstPortOf } from '../pod/recognize-sidecar.ts'
import { settingsOf } from './asking.ts'
import { type Finding, finding, type Named, ofKind, plainIp, type WatchedPod } from './watched.ts'

const SERVICE_LABEL = 'kubernetes.io/service-name'

/** A target of a Service or slice that leads past the sidecar; `number` is the port. */
type Past = { readonly pod: WatchedPod; readonly number: number | null }

/** Throws ShapeError. */
export function checkServices(objects: readonly JsonObject[], pods: readonly WatchedPod[]): readonly Finding[] {
  // Pods that neither have nor need a sidecar are not checked.
  const guarded = pods.filter(({ sidecars, mode }) => sidecars.length > 0 || mode === 'required')
  const first = settingsOf(objects)?.port ?? null
  const services = ofKind(objects, 'Service').map((service) => ({
    service,
    ...checkService(service, { pods, guarded, first }),
  }))
  const slices = ofKind(objects, 'EndpointSlice').flatMap((slice) => {
    // A slice's finding that its own Service already has is not repeated. The label serves only for this: it proves nothing.
    const name = textsAt(objectAt(slice.raw.metadata, 'metadata').labels, 'labels').get(SERVICE_LABEL)
    const own = services.find(({ service }) => service.namespace === slice.namespace && service.name === name)
    return checkSlice(slice, { guarded, said: own?.past ?? [] })
  })
  return [...services.flatMap(({ findings }) => findings), ...slices]
}

function checkService(
  service: Named,
  { pods, guarded, first }: { pods: readonly WatchedPod[]; guarded: readonly WatchedPod[]; first: number | null },
): { readonly findings: readonly Finding[]; readonly past: readonly Past[] } {
  const spec = objectAt(service.raw.spec, 'spec')
  const selector = textsAt(spec.selector, 'spec.selector')
  const chosen = pods.filter(
    ({ namespace, labels }) =>
      selector.size > 0 &&
      namespace === service.namespace &&
      [...selector].every(([name, value]) => labels.get(name) === value),
  )
  if (!chosen.some((pod) => guarded.includes(pod))) return { findings: [], past: [] }
  const checked = listAt(spec.ports, 'spec.ports').map((item) => {
    const port = objectAt(item, 'spec.ports')
    const target = port.targetPort ?? port.port ?? null
    return { port, target, past: chosen.flatMap((pod) => leadPast(target, pod)) }
  })
  const findings = [
    ...checkHeadless(service, chosen),
    ...checkFormer(service, chosen, first),
    ...checked.flatMap(({ port, target, past: [found] }) => {
      if (found === undefined) return []
      const hasSidecar = found.pod.sidecars.length > 0
      const why = hasSidecar
        ? 'which is not its sidecar; set targetPort to the name of the protected port'
        : 'which has no sidecar'
      const message = `port ${port.port} goes to ${target} of Pod ${found.pod.name}, ${why}`
      return [finding('service_bypass', service, 'Service', message)]
    }),
  ]
  return { findings, past: checked.flatMap(({ past }) => past) }
}

/** Checks a Service without an address of its own: its name leads to the Pods, and clients use its port there, whatever its target is. */
function checkHeadless(service: Named, pods: readonly WatchedPod[]): readonly Finding[] {
  const spec = objectAt(service.raw.spec, 'spec')
  if (spec.clusterIP !== 'None') return []
  const guarded = pods.find(({ sidecars }) => sidecars.length > 0)
  const past = listAt(spec.ports, 'spec.ports')
    .map((item) => objectAt(item, 'spec.ports').port ?? null)
    .find((port) => typeof port === 'number' && guarded?.open.has(port) === false)
  if (guarded === undefined || past === undefined) return []
  const message = `has no address of its own, so clients dial port ${past} of Pod ${guarded.name} itself, which is not its sidecar's; set its port to ${guarded.sidecars[0]?.ports[0]?.number}`
  return [finding('service_headless', service, 'Service', message)]
}

/** Finds Services with a port number that Pods lose at their next restart, because the injector's first port has changed. */
function checkFormer(service: Named, pods: readonly WatchedPod[], first: number | null): readonly Finding[] {
  const former = pods
    .flatMap(({ sidecars }) => sidecars)
    .filter((sidecar) => first !== null && firstPortOf(sidecar) !== first)
    .flatMap(({ ports }) => ports.map(({ number }) => number))
  const spec = objectAt(service.raw.spec, 'spec')
  const isHeadless = spec.clusterIP === 'None'
  return listAt(spec.ports, 'spec.ports').flatMap((item) => {
    const { port, targetPort } = objectAt(item, 'spec.ports')
    const lost = isHeadless ? port : (targetPort ?? port)
    if (typeof lost !== 'number' || !former.includes(lost)) return []
    const what = isHeadless
      ? 'its clients must dial the new port from then on'
      : 'set targetPort to the name of the protected port before'
    const message = `port ${port} goes to ${lost}, which its Pods lose when they restart (injector.sidecar.port is ${first}); ${what}`
    return [finding('sidecar_outdated', service, 'Service', message)]
  })
}

function leadPast(target: Json, pod: WatchedPod): readonly Past[] {
  const all = [...pod.sidecars, ...pod.apps].flatMap(({ ports }) => ports)
  const numbers =
    typeof target === 'number' ? [target] : all.filter(({ name }) => name === target).map(({ number }) => number)
  return numbers.filter((number) => !pod.open.has(number)).map((number) => ({ pod, number }))
}

function checkSlice(
  slice: Named,
  { guarded, said }: { guarded: readonly WatchedPod[]; said: readonly Past[] },
): readonly Finding[] {
  const addresses = new Set(
    listAt(slice.raw.endpoints, 'endpoints').flatMap((item) =>
      listAt(objectAt(item, 'endpoints').addresses, 'addresses').map((address) =>
        plainIp(textAt(address, 'addresses') ?? ''),
      ),
    ),
  )
  const listed = listAt(slice.raw.ports, 'ports').map((item) => objectAt(item, 'ports').port ?? null)
  const ports = listed.length === 0 ? [null] : listed
  const past = guarded
    .filter((pod) => pod.addresses.some((address) => addresses.has(address)))
    .flatMap((pod) => ports.map((port) => ({ pod, number: typeof port === 'number' ? port : null })))
    .filter(({ pod, number }) => number === null || !pod.open.has(number))
    .filter(({ pod, number }) => !said.some((other) => other.pod === pod && other.number === number))
  return past.slice(0, 1).map(({ pod, number }) => {
    const message = `goes to ${number ?? 'every port'} of Pod ${pod.name}, which is not its sidecar`
    return finding('service_bypass', slice, 'EndpointSlice', message)
  })
}
