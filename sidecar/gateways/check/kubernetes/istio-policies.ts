/** About which requests the policies of Istio ask, and whether what they need holds for the same gateways. */
import { entriesOf, get, itemsOf, type Tree, textOf } from '../../read/tree.ts'
import { at, type Finding } from '../finding.ts'
import { asksByFilter, hasPatch } from './istio-filters.ts'
import { hasLabels, kindOfObject, type Labels, labelsOf, namespaceOf } from './objects.ts'

type Facts = {
  readonly custom: readonly Tree[]
  readonly filters: readonly Tree[]
  readonly gateways: readonly Tree[]
  /** Null: there is no mesh configuration in the files. */
  readonly providers: readonly Tree[] | null
  readonly meshes: readonly Tree[]
  readonly all: readonly Tree[]
}

export function checkPolicies(facts: Facts): readonly Finding[] {
  const { custom, filters, gateways, meshes, all } = facts
  const roots = meshes.map((mesh) => textOf(get(mesh, 'rootNamespace'))).filter((name) => name !== null)
  const root = roots[0] ?? 'istio-system'
  return [
    ...custom.flatMap((policy) => [...checkPolicy(policy, facts), ...checkNeeds(policy, facts, root)]),
    ...gateways.flatMap((gateway) =>
      checkCovered(gateway, { policies: custom, filters: filters.filter(asksByFilter), all, root }),
    ),
    ...checkOthers(custom),
  ]
}

function checkPolicy(policy: Tree, { providers }: Facts): readonly Finding[] {
  const rules = get(policy, 'spec', 'rules')
  const isWhole = (rule: Tree): boolean => rule.kind === 'map' && rule.entries.length === 0
  const all = itemsOf(rules).some(isWhole)
  const dryRun = entriesOf(get(policy, 'metadata', 'annotations')).find(({ key }) => key === 'istio.io/dry-run')
  const fix = 'set rules: [{}], and say public in the route file'
  return [
    ...(rules === null || itemsOf(rules).length === 0
      ? [at(rules ?? policy)('skips_question', 'a CUSTOM policy without rules asks about no request', fix)]
      : []),
    ...(all
      ? []
      : itemsOf(rules).map((rule) =>
          at(rule)(
            'skips_question',
            'only the requests that this rule matches, as Istio reads them, are asked about',
            fix,
          ),
        )),
    ...checkName(policy, providers),
    ...(dryRun !== undefined && textOf(dryRun.value) !== 'false'
      ? [at(dryRun)('skips_question', 'the policy is tried out and not enforced', 'remove the annotation')]
      : []),
  ]
}

function checkName(policy: Tree, providers: readonly Tree[] | null): readonly Finding[] {
  const name = get(policy, 'spec', 'provider', 'name')
  const here = at(name ?? policy)
  if (providers === null)
    return [
      here('unseen', 'the mesh configuration is not in the files, which says how the door is asked', 'check it, too'),
    ]
  const known = providers.find((provider) => textOf(get(provider, 'name')) === textOf(name))
  if (known === undefined || name === null)
    return [here('skips_question', 'no provider of the mesh has this name', 'name the provider')]
  const asks = ['envoyExtAuthzGrpc', 'envoyExtAuthzHttp'].some((key) => get(known, key) !== null)
  return asks
    ? []
    : [here('skips_question', 'the provider of this name asks nobody', 'name one with envoyExtAuthzGrpc')]
}

/** What the mesh configuration cannot say comes from an EnvoyFilter, which must hold for the same workloads. */
function checkNeeds(policy: Tree, { filters }: Facts, root: string): readonly Finding[] {
  const own = filters.filter((filter) => holdsFor(filter, policy, root))
  const has = (key: string, ...values: readonly unknown[]): boolean =>
    own.some((filter) => hasPatch(filter, key, values))
  return [
    ...(has('encode_raw_headers', true)
      ? []
      : [
          at(policy)(
            'other_bytes',
            'repeated fields come to the door joined, so that it cannot see that there were two',
            'add the EnvoyFilter with encode_raw_headers: true for the same workloads, as gateway-config istio prints it',
          ),
        ]),
    ...(has('headers_with_underscores_action', 'REJECT_REQUEST', 'DROP_HEADER')
      ? []
      : [
          at(policy)(
            'forgeable',
            'fields with underscores pass, which many services read as X-Auth-Subject and its like',
            'add the EnvoyFilter with headers_with_underscores_action: REJECT_REQUEST for the same workloads',
          ),
        ]),
  ]
}

type Reach = { readonly namespace: string; readonly labels: Labels; readonly targets: readonly string[] }

function reachOf(object: Tree): Reach {
  const spec = get(object, 'spec')
  const refs = [...itemsOf(get(spec, 'targetRefs')), ...itemsOf(get(spec, 'targetRef'))]
  return {
    namespace: namespaceOf(object),
    labels: labelsOf(get(spec, 'selector', 'matchLabels') ?? get(spec, 'workloadSelector', 'labels')),
    targets: refs.map((ref) => `${textOf(get(ref, 'kind'))} ${textOf(get(ref, 'name'))}`),
  }
}

/** Whether the filter patches every workload that the policy is about. */
function holdsFor(filter: Tree, policy: Tree, root: string): boolean {
  const [own, wanted] = [reachOf(filter), reachOf(policy)]
  if (own.namespace !== root && own.namespace !== wanted.namespace) return false
  if (own.targets.length > 0)
    return wanted.targets.length > 0 && wanted.targets.every((target) => own.targets.includes(target))
  const [target = ''] = wanted.targets
  const named = new Map([['gateway.networking.k8s.io/gateway-name', target.replace(/^\w+ /, '')]])
  return hasLabels(wanted.targets.length === 1 ? named : wanted.labels, own.labels)
}

type Asking = {
  readonly policies: readonly Tree[]
  /** With ext_authz of their own. */
  readonly filters: readonly Tree[]
  readonly all: readonly Tree[]
  readonly root: string
}

/** Something must ask for every workload of the Gateway, which is that of its labels, in whatever namespace. */
function checkCovered(gateway: Tree, { policies, filters, all, root }: Asking): readonly Finding[] {
  const labels = labelsOf(get(gateway, 'spec', 'selector'))
  const runs = all.filter(
    (tree) =>
      ['Deployment', 'DaemonSet'].includes(kindOfObject(tree)) &&
      hasLabels(labelsOf(get(tree, 'spec', 'template', 'metadata', 'labels')), labels),
  )
  // Filters are often of one service: one counts only where it reaches the Gateway.
  const places = [root, ...[gateway, ...runs].map(namespaceOf)]
  const near = filters.filter((filter) => places.includes(namespaceOf(filter)))
  const matching = [...policies, ...near]
    .map(reachOf)
    .filter((reach) => reach.targets.length === 0 && hasLabels(labels, reach.labels))
  if (matching.some(({ namespace }) => namespace === root)) return []
  if (matching.length === 0)
    return [
      at(gateway)(
        'skips_question',
        'no CUSTOM policy is about the workloads of this Gateway',
        'add one with the labels of its selector, in the namespace of the workloads',
      ),
    ]
  const covered = (workload: Tree): boolean => matching.some(({ namespace }) => namespace === namespaceOf(workload))
  if (runs.length > 0 && runs.every(covered)) return []
  return [
    at(gateway)(
      'unseen',
      `what asks is about workloads of the namespace ${matching[0]?.namespace} only, and where those of this Gateway run is not in the files`,
      `ask in ${root}, or check the Deployment, too`,
    ),
  ]
}

/** A workload has one provider; Istio does not say which of two counts. */
function checkOthers(custom: readonly Tree[]): readonly Finding[] {
  const [first = null, ...others] = custom.flatMap((policy) => itemsOf(get(policy, 'spec', 'provider', 'name')))
  return others
    .filter((name) => textOf(name) !== textOf(first))
    .map((name) => at(name)('unseen', 'two policies ask two providers, and one may not be a door', 'judge it by hand'))
}
