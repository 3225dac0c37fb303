/** Checks network policies. They add up: what one of them admits to a Pod is open, whatever the others say. */
import { type JsonObject, listAt, objectAt } from '../pod/json.ts'
import { matchesLabels } from './selector.ts'
import { type Finding, finding, type Named, ofKind, type WatchedPod } from './watched.ts'

/** One finding for each policy that admits clients past a sidecar, or to a Pod that lacks its required sidecar. Throws ShapeError. */
export function checkPolicies(objects: readonly JsonObject[], pods: readonly WatchedPod[]): readonly Finding[] {
  const policies = ofKind(objects, 'NetworkPolicy').filter(isForIngress)
  const guarded = pods.filter(({ sidecars, mode }) => sidecars.length > 0 || mode === 'required')
  const missing = guarded.filter((pod) => !policies.some((policy) => selects(policy, pod)))
  const opening = policies.flatMap((policy) => {
    const open = guarded.find((pod) => selects(policy, pod) && admitsMore(policy, pod))
    return open === undefined ? [] : [{ policy, open }]
  })
  return [
    ...missing.map((pod) =>
      finding(
        'policy_missing',
        pod,
        'Pod',
        'no network policy selects it, so any client can connect to its app directly',
      ),
    ),
    ...opening.map(({ policy, open }) => {
      const what =
        open.sidecars.length > 0
          ? `more than the sidecar of Pod ${open.name}`
          : `Pod ${open.name}, which has no sidecar`
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

function admitsMore(policy: Named, pod: WatchedPod): boolean {
  const { ingress } = objectAt(policy.raw.spec, 'spec')
  const rules = listAt(ingress, 'spec.ingress').map((rule) => objectAt(rule, 'spec.ingress'))
  return pod.sidecars.length > 0 ? rules.some((rule) => admitsApp(rule, policy, pod)) : rules.length > 0
}

// The policies of the chart for the sidecar with this number, of which it has one for each in a namespace.
const CHARTS_OWN = /^portcullis-(?:former-)?sidecars(?:-([2-4]))?$/

function admitsApp(rule: JsonObject, policy: Named, { sidecars, apps, open }: WatchedPod): boolean {
  const ports = listAt(rule.ports, 'ports').map((port) => objectAt(port, 'ports'))
  if (ports.length === 0) return true
  const all = [...sidecars, ...apps].flatMap((container) => container.ports)
  // During an update, the chart also lets scrapers read the older version's metrics ports, which begin at 15090.
  const own = CHARTS_OWN.exec(policy.name)
  const former = own === null || listAt(rule.from, 'from').length === 0 ? null : 15_089 + Number(own[1] ?? 1)
  const isFormer = (number: number): boolean =>
    number === former && open.has(number - 10) && !all.some((port) => port.number === number)
  return ports.some(({ port, endPort }) => {
    if (typeof port === 'string') return all.some(({ name, number }) => name === port && !open.has(number))
    if (typeof port !== 'number') return true
    const last = typeof endPort === 'number' ? endPort : port
    // The app itself might listen on any other number.
    return last - port >= open.size || numbersFrom(port, last).some((number) => !open.has(number) && !isFormer(number))
  })
}

const numbersFrom = (first: number, last: number): readonly number[] =>
  Array.from({ length: Math.max(1, last - first + 1) }, (_, at) => first + at)
