/** Finds ways around the sidecars: Services, Pods, network policies, and gaps in the webhook and the backstop. */
import { LABEL_INJECT } from '../pod/annotations.ts'
import { MODES, type Mode } from '../pod/injection.ts'
import { flagAt, type JsonObject, listAt, objectAt, textAt, textsAt } from '../pod/json.ts'
import { parsePod } from '../pod/pod.ts'
import { firstPortOf, hasSidecarName, platformOf } from '../pod/recognize-sidecar.ts'
import { asksPdp, ONLY_SIDECAR } from '../pod/reserved-names.ts'
import { RESERVED, TOKEN_AUDIENCE } from '../pod/sidecar-container.ts'
import { type CheckRoutes, checkBare, checkRouteFiles, checkWorkloads, settingsOf } from './asking.ts'
import { checkGuard } from './guard.ts'
import { checkHttpRoutes } from './http-routes.ts'
import { findInjectors } from './injectors.ts'
import { checkPolicies } from './network-policies.ts'
import { checkServices } from './services.ts'
import { type Finding, finding, hasEnded, type Named, ofKind, readWatched, type WatchedPod } from './watched.ts'

/** `objects`: as `kubectl get -o json` lists them. Throws ShapeError. */
export function checkCluster(objects: readonly JsonObject[], checkRoutes: CheckRoutes): readonly Finding[] {
  const namespaces = ofKind(objects, 'Namespace').map((object) => ({ object, ...readLabels(object) }))
  const guarded = namespaces.flatMap(({ object: { name }, labels, said }) => {
    const mode = MODES.find((known) => known === said)
    // Selectors may use this label, which the API server itself sets.
    const all = new Map([...labels, ['kubernetes.io/metadata.name', name]])
    return mode === undefined ? [] : [{ name, mode, labels: all }]
  })
  const pods = ofKind(objects, 'Pod').flatMap((pod) => {
    if (hasEnded(pod)) return []
    const mode = guarded.find(({ name }) => name === pod.namespace)?.mode
    return mode === undefined ? [] : [readWatched(pod, mode)]
  })
  const unlabelled = new Set(namespaces.flatMap(({ object: { name }, said }) => (said === null ? [name] : [])))
  return [
    ...checkGuard(objects, guarded),
    ...namespaces.flatMap(({ object, said }) => checkSaid(object, said)),
    ...pods.flatMap(checkUnprotected),
    ...pods.flatMap(checkForged),
    ...pods
      .filter(({ sidecars }) => sidecars.length > 0)
      .flatMap((pod) => [...checkHostPorts(pod), ...checkTokens(pod)]),
    ...checkPolicies(objects, pods),
    ...checkServices(objects, pods),
    ...checkHttpRoutes(objects),
    ...checkImages(objects, pods),
    ...checkSettings(objects, pods),
    ...ofKind(objects, 'Pod')
      .filter((pod) => unlabelled.has(pod.namespace) && !hasEnded(pod))
      .flatMap(checkBare),
    ...checkWorkloads(objects, (namespace) => guarded.find(({ name }) => name === namespace)?.mode),
    ...checkRouteFiles(objects, pods, checkRoutes),
  ]
}

function readLabels({ raw }: Named): { readonly labels: ReadonlyMap<string, string>; readonly said: string | null } {
  const labels = textsAt(objectAt(raw.metadata, 'metadata').labels, 'labels')
  return { labels, said: labels.get(LABEL_INJECT) ?? null }
}

function checkSaid(namespace: Named, said: string | null): readonly Finding[] {
  const known: readonly (Mode | 'disabled' | null)[] = [...MODES, 'disabled', null]
  if (known.some((word) => word === said)) return []
  const message = `label ${LABEL_INJECT} is ${said}, which protects nothing; set it to ${MODES.join(' or ')}`
  return [finding('namespace_unknown', namespace, 'Namespace', message)]
}

function checkUnprotected(pod: WatchedPod): readonly Finding[] {
  if (pod.sidecars.length > 0 || pod.mode !== 'required') return []
  const ports = pod.apps.flatMap((container) => container.ports)
  const serves = ports.length > 0 || flagAt(objectAt(pod.raw.spec, 'spec').hostNetwork, 'spec.hostNetwork')
  return serves
    ? [finding('pod_unprotected', pod, 'Pod', 'serves without a sidecar, which its namespace requires')]
    : []
}

function checkHostPorts(pod: WatchedPod): readonly Finding[] {
  return [...pod.sidecars, ...pod.apps]
    .flatMap((container) => container.ports.map((port) => ({ container, port })))
    .filter(({ port }) => port.hostPort !== null)
    .map(({ container, port }) => {
      const message = `port ${port.number} of ${container.name} is open on its node as ${port.hostPort}`
      return finding('pod_reachable', pod, 'Pod', message)
    })
}

function checkTokens(pod: WatchedPod): readonly Finding[] {
  return parsePod(pod.raw)
    .volumes.filter((volume) => !volume.name.startsWith(RESERVED) && asksPdp(volume))
    .map(({ name }) => {
      const message = `volume ${name} has a token with the audience ${TOKEN_AUDIENCE}: ${ONLY_SIDECAR}`
      return finding('token_shared', pod, 'Pod', message)
    })
}

function checkForged(pod: WatchedPod): readonly Finding[] {
  return pod.apps.filter(hasSidecarName).map(({ name }) => {
    const message = `container ${name} has a sidecar's name and differs from the sidecar of this version; restart its workload`
    return finding('sidecar_forged', pod, 'Pod', message)
  })
}

/** Finds Pods that were not restarted after an upgrade. Injector and sidecar are one program, so they have one image. */
function checkImages(objects: readonly JsonObject[], pods: readonly WatchedPod[]): readonly Finding[] {
  const images = new Set(findInjectors(objects).flatMap((injector) => injector.images))
  if (images.size === 0) return []
  return pods
    .filter(({ sidecars }) => sidecars.some(({ raw }) => !images.has(textAt(raw.image, 'image') ?? '')))
    .map((pod) => {
      const message = `its sidecar's image is not the injector's ${[...images].join(' or ')}; restart its workload`
      return finding('sidecar_outdated', pod, 'Pod', message)
    })
}

/** Finds Pods that were not restarted after a change of the settings that they show. */
function checkSettings(objects: readonly JsonObject[], pods: readonly WatchedPod[]): readonly Finding[] {
  const settings = settingsOf(objects)
  if (settings === null) return []
  const differ = (what: string, pod: WatchedPod): Finding => {
    const message = `its sidecar has ${what} than the injector's settings; restart its workload`
    return finding('sidecar_outdated', pod, 'Pod', message)
  }
  return pods.flatMap((pod) => [
    ...(pod.sidecars.some(({ raw }) => platformOf(listAt(raw.args, 'args').map(String)) !== settings.platform)
      ? [differ('another platform (injector.sidecar.platform)', pod)]
      : []),
    ...(pod.sidecars.some((sidecar) => firstPortOf(sidecar) !== settings.port)
      ? [differ('other ports (injector.sidecar.port)', pod)]
      : []),
  ])
}
