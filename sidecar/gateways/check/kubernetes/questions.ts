/** Whether somebody is asked about the requests of a route of the Gateway API. */
import { get, itemsOf, type Tree, textOf } from '../../read/tree.ts'
import { isAbout, isIdle, isWhole, parentsOf, type Target, targetOf } from './attached.ts'
import { isAsking } from './envoy-gateway.ts'
import { groupOf, kindOfObject, labelsOf, namespaceOf } from './objects.ts'

/**
 * `hiding`: policies that do not ask, in the place of one that does. `unseen`: Gateways that are not in the files, and
 * at which a policy of Istio asks where they are of Istio.
 */
export type DoorQuestion = {
  readonly asked: boolean
  readonly hiding: readonly Tree[]
  readonly unseen: readonly Target[]
}

export function questionOf(route: Tree, policies: readonly Tree[], all: readonly Tree[]): DoorQuestion {
  const whole = policies.filter(isWhole)
  const parents = parentsOf(route, all)
  const own = about(targetOf(route), whole)
  const above = parents.map((parent) => about(parent, whole))
  const byIstio =
    parents.length > 0 && parents.every((parent) => mayBeOfIstio(parent) && all.some((tree) => isCustom(tree, parent)))
  const missing = parents.filter(({ object }) => object === null)
  if (byIstio && missing.length === 0) return { asked: true, hiding: [], unseen: [] }
  const asksAbove = above.length > 0 && above.every(({ asking, others }) => asking.length > 0 && others.length === 0)
  // A policy of the route takes the place of the Gateway's, unless it is merged into it. Of two for one target one counts.
  const replacing = own.others.filter((policy) => !isIdle(policy))
  const asked = replacing.length === 0 && (own.asking.length > 0 || asksAbove)
  const someAsk = own.asking.length > 0 || above.some(({ asking }) => asking.length > 0)
  const beside = own.asking.length > 0 ? [] : above.flatMap(({ asking, others }) => (asking.length > 0 ? others : []))
  return { asked, hiding: asked || !someAsk ? [] : [...replacing, ...beside], unseen: byIstio && !asked ? missing : [] }
}

function about(target: Target, policies: readonly Tree[]): { asking: readonly Tree[]; others: readonly Tree[] } {
  return {
    asking: policies.filter((policy) => isAsking(policy) && isAbout(policy, target, { sure: true })),
    others: policies.filter((policy) => !isAsking(policy) && isAbout(policy, target, { sure: false })),
  }
}

/** The class says who runs a Gateway; Istio asks at its own only. */
const mayBeOfIstio = ({ object }: Target): boolean =>
  object === null || /^istio(-.+)?$/.test(textOf(get(object, 'spec', 'gatewayClassName')) ?? '')

const NAME = 'gateway.networking.k8s.io/gateway-name'

/** A CUSTOM policy of Istio for this Gateway. What its rules are is checked with it. */
function isCustom(tree: Tree, parent: Target): boolean {
  if (groupOf(tree) !== 'security.istio.io' || kindOfObject(tree) !== 'AuthorizationPolicy') return false
  if (textOf(get(tree, 'spec', 'action')) !== 'CUSTOM' || parent.kind !== 'Gateway') return false
  const refs = ['targetRefs', 'targetRef'].flatMap((key) => itemsOf(get(tree, 'spec', key)))
  const labels = labelsOf(get(tree, 'spec', 'selector', 'matchLabels'))
  const own = namespaceOf(tree) === parent.namespace
  if (refs.length > 0)
    return own && refs.some((ref) => textOf(get(ref, 'kind')) === 'Gateway' && textOf(get(ref, 'name')) === parent.name)
  const everything = labels.size === 0 || (labels.size === 1 && labels.get(NAME) === parent.name)
  return everything && (own || namespaceOf(tree) === 'istio-system')
}
