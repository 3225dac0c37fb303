/** Network policies add up: what any of them admits to a Pod is open, whatever the others say. */
import { isGatePort } from './gate.ts'
import { type JsonObject, listAt, objectAt, textsAt } from './json.ts'
import { matchesLabels } from './selector.ts'
import { type Finding, finding, isGate, type Named, ofKind, type WatchedPod } from './watched.ts'

/** An operator's own word that a policy opens what is meant to be open, such as a metrics port. */
const UNPROTECTED = ['portcullis.dev/part', 'unprotected'] as const

/** Gated Pods, and those without a gate where one is required. One finding for each policy. Throws ShapeError. */
export function checkPolicies(objects: readonly JsonObject[], pods: readonly WatchedPod[]): readonly Finding[] {
  const policies = ofKind(objects, 'NetworkPolicy').filter(isForIngress)
  const guarded = pods.filter(({ gated, mode }) => gated || mode === 'required')
  const missing = guarded.filter((pod) => !policies.some((policy) => selects(policy, pod)))
  const opening = policies
    .filter((policy) => !saysUnprotected(policy))
    .flatMap((policy) => {
      const open = guarded.find((pod) => selects(policy, pod) && admitsMore(policy, pod))
      return open === undefined ? [] : [{ policy, open }]
    })
  return [
    ...missing.map((pod) =>
      finding('policy_missing', pod, 'Pod', 'no network policy: its app answers whoever dials the Pod directly'),
    ),
    ...opening.map(({ policy, open }) => {
      const what = open.gated ? `more than the gate of Pod ${open.name}` : `Pod ${open.name}, which has no gate`
      return finding('policy_bypass', policy, 'NetworkPolicy', `admits ${what}; policies add up`)
    }),
  ]
}

function isForIngress({ raw }: Named): boolean {
  const types = listAt(objectAt(raw.spec, 'spec').policyTypes, 'spec.policyTypes')
  return types.length === 0 || types.includes('Ingress')
}

const selects = ({ namespace, raw }: Named, pod: WatchedPod): boolean =>
  namespace === pod.namespace && matchesLabels(objectAt(raw.spec, 'spec').podSelector, pod.labels)

function saysUnprotected({ raw }: Named): boolean {
  const labels = textsAt(objectAt(raw.metadata, 'metadata').labels, 'labels')
  return labels.get(UNPROTECTED[0]) === UNPROTECTED[1]
}

function admitsMore({ raw }: Named, pod: WatchedPod): boolean {
  const rules = listAt(objectAt(raw.spec, 'spec').ingress, 'spec.ingress').map((rule) => objectAt(rule, 'spec.ingress'))
  return pod.gated ? rules.some((rule) => admitsApp(rule, pod)) : rules.length > 0
}

function admitsApp(rule: JsonObject, { containers }: WatchedPod): boolean {
  const ports = listAt(rule.ports, 'ports').map((port) => objectAt(port, 'ports'))
  if (ports.length === 0) return true
  const [gates, apps] = [containers.filter(isGate), containers.filter((container) => !isGate(container))]
  const ofGates = new Set(gates.flatMap((gate) => gate.ports.map(({ number }) => number)))
  return ports.some(({ port, endPort }) => {
    if (typeof port === 'string') return apps.some((app) => app.ports.some(({ name }) => name === port))
    if (typeof port !== 'number') return true
    const last = typeof endPort === 'number' ? endPort : port
    // Past the range of gates there is nothing of ours, and within it only what this Pod has.
    if (!isGatePort(port) || !isGatePort(last)) return true
    return Array.from({ length: last - port + 1 }, (_, at) => port + at).some((number) => !ofGates.has(number))
  })
}
