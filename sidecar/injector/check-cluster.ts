/** What of a cluster leads past a gate: Services, Pods, network policies, and gaps in the guard itself. */
import { LABEL_INJECT } from './annotations.ts'
import { checkPolicies } from './check-policies.ts'
import { checkServices } from './check-services.ts'
import { MODES, type Mode } from './injection.ts'
import { flagAt, isObject, type JsonObject, listAt, objectAt, textAt, textsAt } from './json.ts'
import { type Container, parsePod } from './pod.ts'
import {
  type Finding,
  type FindingCode,
  finding,
  isGate,
  type Named,
  ofKind,
  readWatched,
  type WatchedPod,
} from './watched.ts'

/** Label of the chart's objects, see charts/portcullis/templates. */
const PART = 'portcullis.dev/part'

/** `objects` as `kubectl get -o json` lists them. Throws ShapeError. */
export function checkCluster(objects: readonly JsonObject[]): readonly Finding[] {
  const namespaces = ofKind(objects, 'Namespace').map((object) => ({ object, said: saidMode(object) }))
  const modes = new Map(
    namespaces.flatMap(({ object, said }) => {
      const mode = MODES.find((known) => known === said)
      return mode === undefined ? [] : [[object.name, mode] as const]
    }),
  )
  const pods = ofKind(objects, 'Pod').flatMap((pod) => {
    const mode = modes.get(pod.namespace)
    return mode === undefined ? [] : [readWatched(pod, mode)]
  })
  return [
    ...checkGuard(objects),
    ...namespaces.flatMap(({ object, said }) => checkSaid(object, said)),
    ...pods.flatMap(checkUngated),
    ...pods.filter(({ gated }) => gated).flatMap(checkHostPorts),
    ...checkPolicies(objects, pods),
    ...checkServices(objects, pods),
    ...checkImages(objects, pods),
  ]
}

const saidMode = ({ raw }: Named): string | null =>
  textsAt(objectAt(raw.metadata, 'metadata').labels, 'labels').get(LABEL_INJECT) ?? null

function checkSaid(namespace: Named, said: string | null): readonly Finding[] {
  const known: readonly (Mode | 'disabled' | null)[] = [...MODES, 'disabled', null]
  if (known.some((word) => word === said)) return []
  const message = `label ${LABEL_INJECT} says ${said}, which gates nothing; it is ${MODES.join(' or ')}`
  return [finding('namespace_unknown', namespace, 'Namespace', message)]
}

function checkUngated(pod: WatchedPod): readonly Finding[] {
  if (pod.gated || pod.mode !== 'required') return []
  const ports = pod.containers.flatMap((container) => container.ports)
  const serves = ports.length > 0 || flagAt(objectAt(pod.raw.spec, 'spec').hostNetwork, 'spec.hostNetwork')
  return serves ? [finding('pod_ungated', pod, 'Pod', 'serves without a gate where one is required')] : []
}

function checkHostPorts(pod: WatchedPod): readonly Finding[] {
  return pod.containers
    .flatMap((container) => container.ports.map((port) => ({ container, port })))
    .filter(({ port }) => port.hostPort !== null)
    .map(({ container, port }) => {
      const message = `port ${port.number} of ${container.name} is open on its node as ${port.hostPort}`
      return finding('pod_reachable', pod, 'Pod', message)
    })
}

function checkGuard(objects: readonly JsonObject[]): readonly Finding[] {
  const webhooks = ofKind(objects, 'MutatingWebhookConfiguration').filter(isPart('injector'))
  const bindings = ofKind(objects, 'ValidatingAdmissionPolicyBinding').filter(isPart('backstop'))
  const nothing = (code: FindingCode, kind: string, message: string): Finding => ({
    code,
    namespace: null,
    object: kind,
    message,
  })
  return [
    ...(webhooks.length > 0
      ? []
      : [nothing('webhook_missing', 'MutatingWebhookConfiguration', 'no injector: new Pods get no gate')]),
    ...webhooks
      .filter(({ raw }) =>
        listAt(raw.webhooks, 'webhooks').some((hook) => isObject(hook) && hook.failurePolicy !== 'Fail'),
      )
      .map((webhook) => finding('webhook_open', webhook, 'MutatingWebhookConfiguration', 'failurePolicy is not Fail')),
    ...(bindings.some(({ name }) => name.endsWith('-pods'))
      ? []
      : [
          nothing(
            'backstop_missing',
            'ValidatingAdmissionPolicyBinding',
            'nothing refuses bare Pods while the injector is down',
          ),
        ]),
    ...bindings
      .filter(({ name, raw }) => !name.endsWith('-services') && !denies(raw))
      .map((binding) => finding('backstop_open', binding, 'ValidatingAdmissionPolicyBinding', 'does not deny')),
  ]
}

const denies = (binding: JsonObject): boolean =>
  listAt(objectAt(binding.spec, 'spec').validationActions, 'spec.validationActions').includes('Deny')

const isPart =
  (part: string) =>
  ({ raw }: Named): boolean =>
    textsAt(objectAt(raw.metadata, 'metadata').labels, 'labels').get(PART) === part

/** After an upgrade, the Pods that were not restarted yet. Injector and gate are one program, so one image. */
function checkImages(objects: readonly JsonObject[], pods: readonly WatchedPod[]): readonly Finding[] {
  const injectors = ofKind(objects, 'Deployment').filter(isPart('injector'))
  const images = new Set(
    injectors.flatMap(({ raw }) =>
      imagesOf(objectAt(objectAt(raw.spec, 'spec').template, 'spec.template'), () => true),
    ),
  )
  if (images.size === 0) return []
  return pods
    .filter(({ raw }) => imagesOf(raw, isGate).some((image) => !images.has(image)))
    .map((pod) => {
      const message = `its gate is not ${[...images].join(' or ')}, as the injector's; restart its workload`
      return finding('gate_mixed', pod, 'Pod', message)
    })
}

function imagesOf(pod: JsonObject, which: (container: Container) => boolean): readonly string[] {
  return parsePod(pod)
    .containers.filter(which)
    .map(({ raw }) => textAt(raw.image, 'image') ?? '')
}
