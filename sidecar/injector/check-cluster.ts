/** What of a cluster leads past a gate: Services, Pods, other network policies (they are additive), and gaps in the guard itself. */
import { LABEL_INJECT } from './annotations.ts'
import { isGatePort, RESERVED } from './gate.ts'
import { flagAt, isObject, type Json, type JsonObject, listAt, objectAt, textAt, textsAt } from './json.ts'
import { type Container, parsePod } from './pod.ts'
import { matchesLabels } from './selector.ts'

export type FindingCode =
  | 'service_bypass'
  | 'pod_ungated'
  | 'pod_reachable'
  | 'policy_missing'
  | 'policy_bypass'
  | 'webhook_missing'
  | 'webhook_open'
  | 'backstop_missing'
  | 'gate_mixed'
export type Finding = {
  readonly code: FindingCode
  readonly namespace: string | null
  /** `Kind/name`. */
  readonly object: string
  readonly message: string
}
type Named = { readonly namespace: string; readonly name: string; readonly raw: JsonObject }
type GatedPod = Named & { readonly labels: ReadonlyMap<string, string>; readonly containers: readonly Container[] }

/** Labels of the chart's objects, see charts/portcullis/templates. */
const PART = 'portcullis.dev/part'

/** `objects` as `kubectl get -o json` lists them. Throws ShapeError. */
export function checkCluster(objects: readonly JsonObject[]): readonly Finding[] {
  const watched = new Map(
    ofKind(objects, 'Namespace').flatMap(({ name, raw }) => {
      const mode = textsAt(objectAt(raw.metadata, 'metadata').labels, 'labels').get(LABEL_INJECT)
      return mode === 'enabled' || mode === 'required' ? [[name, mode] as const] : []
    }),
  )
  const inWatched = (kind: string): readonly Named[] =>
    ofKind(objects, kind).filter(({ namespace }) => watched.has(namespace))
  const pods = inWatched('Pod').map(readPod)
  const gated = pods.filter(({ containers }) => containers.some(isGate))
  const policies = inWatched('NetworkPolicy')
  return [
    ...checkGuard(objects),
    ...pods.filter((pod) => watched.get(pod.namespace) === 'required').flatMap(checkUngated),
    ...gated.flatMap(({ containers, ...pod }) => checkHostPorts({ ...pod, containers })),
    ...gated.flatMap((pod) => checkPolicies(pod, policies)),
    ...inWatched('Service').flatMap((service) => checkService(service, gated)),
    ...checkImages(gated, objects),
  ]
}

function ofKind(objects: readonly JsonObject[], kind: string): readonly Named[] {
  return objects
    .filter((object) => object.kind === kind)
    .map((raw) => {
      const metadata = objectAt(raw.metadata, 'metadata')
      const name = textAt(metadata.name, 'metadata.name') ?? ''
      return { namespace: textAt(metadata.namespace, 'metadata.namespace') ?? '', name, raw }
    })
}

function readPod(pod: Named): GatedPod {
  const { labels, containers } = parsePod(pod.raw)
  return { ...pod, labels, containers }
}

const isGate = ({ name }: Container): boolean => name.startsWith(`${RESERVED}gate`)
const finding = (code: FindingCode, { namespace, name }: Named, kind: string, message: string): Finding => ({
  code,
  namespace: namespace === '' ? null : namespace,
  object: `${kind}/${name}`,
  message,
})

function checkUngated(pod: GatedPod): readonly Finding[] {
  if (pod.containers.some(isGate)) return []
  const ports = pod.containers.flatMap((container) => container.ports)
  const serves = ports.length > 0 || flagAt(objectAt(pod.raw.spec, 'spec').hostNetwork, 'spec.hostNetwork')
  return serves ? [finding('pod_ungated', pod, 'Pod', 'serves without a gate where one is required')] : []
}

function checkHostPorts(pod: GatedPod): readonly Finding[] {
  return pod.containers
    .flatMap((container) => container.ports.map((port) => ({ container, port })))
    .filter(({ port }) => port.hostPort !== null)
    .map(({ container, port }) =>
      finding(
        'pod_reachable',
        pod,
        'Pod',
        `port ${port.number} of ${container.name} is open on its node as ${port.hostPort}`,
      ),
    )
}

/** The Services whose selector takes a gated Pod, and whose target is not a gate. */
function checkService(service: Named, gated: readonly GatedPod[]): readonly Finding[] {
  const spec = objectAt(service.raw.spec, 'spec')
  const selector = textsAt(spec.selector, 'spec.selector')
  if (selector.size === 0) return []
  const chosen = gated.filter(
    (pod) =>
      pod.namespace === service.namespace && [...selector].every(([name, value]) => pod.labels.get(name) === value),
  )
  return listAt(spec.ports, 'spec.ports').flatMap((item) => {
    const port = objectAt(item, 'spec.ports')
    const target = port.targetPort ?? port.port ?? null
    const open = chosen.find((pod) => leadsPast(target, pod))
    if (open === undefined) return []
    const message = `port ${port.port} goes to ${target} of Pod ${open.name}, which is not its gate; name the gated port in targetPort`
    return [finding('service_bypass', service, 'Service', message)]
  })
}

function leadsPast(target: Json, { containers }: GatedPod): boolean {
  if (typeof target === 'number') return !isGatePort(target)
  const holders = containers.filter(({ ports }) => ports.some(({ name }) => name === target))
  return holders.some((container) => !isGate(container))
}

/** Network policies allow: any that selects the Pod and admits more than the gate's ports opens the app. */
function checkPolicies(pod: GatedPod, policies: readonly Named[]): readonly Finding[] {
  const selecting = policies.filter((policy) => {
    const spec = objectAt(policy.raw.spec, 'spec')
    const types = listAt(spec.policyTypes, 'spec.policyTypes')
    const ingress = types.length === 0 || types.includes('Ingress')
    return ingress && policy.namespace === pod.namespace && matchesLabels(spec.podSelector, pod.labels)
  })
  if (selecting.length === 0)
    return [finding('policy_missing', pod, 'Pod', 'no network policy: its app answers whoever dials the Pod directly')]
  const apps = pod.containers.filter((container) => !isGate(container)).flatMap(({ ports }) => ports)
  return selecting.flatMap((policy) => {
    const spec = objectAt(policy.raw.spec, 'spec')
    const rules = listAt(spec.ingress, 'spec.ingress').map((rule) => objectAt(rule, 'spec.ingress'))
    const open = rules.some((rule) =>
      admitsApp(
        rule,
        apps.map(({ name, number }) => ({ name, number })),
      ),
    )
    const declared = policy.raw.metadata
    if (!open || isUnprotectedOnly(declared)) return []
    return [
      finding(
        'policy_bypass',
        policy,
        'NetworkPolicy',
        `admits more than the gate of Pod ${pod.name}; policies add up`,
      ),
    ]
  })
}

function admitsApp(rule: JsonObject, apps: readonly { name: string | null; number: number }[]): boolean {
  const ports = listAt(rule.ports, 'ports').map((port) => objectAt(port, 'ports'))
  if (ports.length === 0) return true
  return ports.some(({ port, endPort }) => {
    if (port === undefined || port === null) return true
    if (typeof port === 'string') return apps.some(({ name }) => name === port)
    if (typeof port !== 'number') return true
    const last = typeof endPort === 'number' ? endPort : port
    return apps.some(({ number }) => number >= port && number <= last) || !isGatePort(port) || !isGatePort(last)
  })
}

/** An operator's own word that a policy opens what is meant to be open, such as a metrics port. */
function isUnprotectedOnly(metadata: Json | undefined): boolean {
  return textsAt(objectAt(metadata, 'metadata').labels, 'labels').get(PART) === 'unprotected'
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
    ...webhooks.flatMap((webhook) => {
      const open = listAt(webhook.raw.webhooks, 'webhooks').some(
        (hook) => isObject(hook) && hook.failurePolicy !== 'Fail',
      )
      return open ? [finding('webhook_open', webhook, 'MutatingWebhookConfiguration', 'failurePolicy is not Fail')] : []
    }),
    ...(bindings.length > 0
      ? []
      : [
          nothing(
            'backstop_missing',
            'ValidatingAdmissionPolicyBinding',
            'nothing refuses bare Pods while the injector is down',
          ),
        ]),
  ]
}

const isPart =
  (part: string) =>
  ({ raw }: Named): boolean =>
    textsAt(objectAt(raw.metadata, 'metadata').labels, 'labels').get(PART) === part

/** After an upgrade, the Pods that were not restarted yet. Injector and gate are one program, so one image. */
function checkImages(gated: readonly GatedPod[], objects: readonly JsonObject[]): readonly Finding[] {
  const injectors = ofKind(objects, 'Deployment').filter(isPart('injector'))
  const images = new Set(
    injectors.flatMap(({ raw }) =>
      imagesOf(objectAt(objectAt(raw.spec, 'spec').template, 'spec.template'), () => true),
    ),
  )
  if (images.size === 0) return []
  return gated
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
