/** Finds the routes of the Gateway API that lead to a gated Service without asking an authorizer. */
import { isObject, type Json, type JsonObject, listAt, objectAt, textAt, textsAt } from '../pod/json.ts'
import { type Finding, finding, type Named, ofKind } from './watched.ts'

/** The label of a Service before which gateways must ask. */
export const LABEL_GATED = 'portcullis.dev/gated'
const KINDS = ['HTTPRoute', 'GRPCRoute']
const GATEWAY = 'Gateway'

type Rule = {
  readonly route: Named
  readonly kind: string
  /** The rule's number, counted from one. */
  readonly number: number
  /** The Services to which it leads, as `namespace/name`. */
  readonly services: readonly string[]
  readonly asks: boolean
}

/**
 * Finds rules that lead to a protected Service without asking. A Service is protected if it has the label, or if another rule to it asks.
 * Throws ShapeError.
 */
export function checkHttpRoutes(objects: readonly JsonObject[]): readonly Finding[] {
  const policies = ofKind(objects, 'SecurityPolicy')
  const rules = KINDS.flatMap((kind) => ofKind(objects, kind).flatMap((route) => rulesOf({ route, kind, policies })))
  const labelled = ofKind(objects, 'Service')
    .filter(({ raw }) => textsAt(objectAt(raw.metadata, 'metadata').labels, 'labels').get(LABEL_GATED) === 'true')
    .map(({ namespace, name }) => `${namespace}/${name}`)
  const gated = new Set([...labelled, ...rules.filter(({ asks }) => asks).flatMap(({ services }) => services)])
  return rules.flatMap(({ route, kind, number, services, asks }) => {
    const [service] = services.filter((name) => gated.has(name))
    if (asks || service === undefined) return []
    const message = `rule ${number} leads to the gated Service ${service} and asks no authorizer; add the filter ExternalAuth, or a SecurityPolicy with extAuth`
    return [finding('route_unasked', route, kind, message)]
  })
}

function rulesOf({
  route,
  kind,
  policies,
}: {
  readonly route: Named
  readonly kind: string
  readonly policies: readonly Named[]
}): readonly Rule[] {
  const spec = objectAt(route.raw.spec, 'spec')
  const byPolicy = isAskedByPolicy({ route, kind, policies, parents: listAt(spec.parentRefs, 'spec.parentRefs') })
  return listAt(spec.rules, 'spec.rules').map((item, at) => {
    const rule = objectAt(item, 'spec.rules')
    const filters = listAt(rule.filters, 'filters').map((filter) => objectAt(filter, 'filters'))
    const services = listAt(rule.backendRefs, 'backendRefs').flatMap((value) => {
      const ref = objectAt(value, 'backendRefs')
      const name = textAt(ref.name, 'name')
      const isService = (textAt(ref.kind, 'kind') ?? 'Service') === 'Service'
      return isService && name !== null ? [`${textAt(ref.namespace, 'namespace') ?? route.namespace}/${name}`] : []
    })
    const asks = byPolicy || filters.some((filter) => filter.type === 'ExternalAuth' && isObject(filter.externalAuth))
    return { route, kind, number: at + 1, services, asks }
  })
}

/** True if a policy makes the gateway ask. A policy of the route replaces the Gateway's, unless it is merged into it. */
function isAskedByPolicy({
  route,
  kind,
  policies,
  parents,
}: {
  readonly route: Named
  readonly kind: string
  readonly policies: readonly Named[]
  readonly parents: readonly Json[]
}): boolean {
  const own = policies.filter((policy) => targets(policy, { kind, ...route }))
  const gateways = parents.map((value) => {
    const ref = objectAt(value, 'parentRefs')
    const namespace = textAt(ref.namespace, 'namespace') ?? route.namespace
    return { kind: GATEWAY, name: textAt(ref.name, 'name') ?? '', namespace }
  })
  const above = policies.filter((policy) => gateways.some((gateway) => targets(policy, gateway)))
  if (own.some(asksAuthorizer)) return true
  const replaced = own.some(({ raw }) => objectAt(raw.spec, 'spec').mergeType === undefined)
  // All Gateways to which the route is attached must ask.
  return (
    !replaced &&
    gateways.length > 0 &&
    gateways.every((gateway) => above.some((policy) => targets(policy, gateway) && asksAuthorizer(policy)))
  )
}

const asksAuthorizer = ({ raw }: Named): boolean => {
  const auth = objectAt(raw.spec, 'spec').extAuth
  return isObject(auth) && auth.failOpen !== true
}

function targets(
  policy: Named,
  { kind, namespace, name }: Pick<Named, 'namespace' | 'name'> & { kind: string },
): boolean {
  const spec = objectAt(policy.raw.spec, 'spec')
  const refs = [...listAt(spec.targetRefs, 'spec.targetRefs'), ...(isObject(spec.targetRef) ? [spec.targetRef] : [])]
  return (
    policy.namespace === namespace &&
    refs.some((value) => {
      const ref = objectAt(value, 'targetRefs')
      return ref.kind === kind && ref.name === name && ref.sectionName === undefined
    })
  )
}
