/** What is unsafe in routes of the Gateway API and in the policies of Envoy Gateway. */

import { get, isOn, isTrue, itemsOf, type Tree, textOf } from '../../read/tree.ts'
import { checkParts } from '../envoy.ts'
import { at, type Finding } from '../finding.ts'
import { identityChanges, isObjectOf, kindOfObject, nameOf, namespaceOf } from './objects.ts'

const ROUTES = ['HTTPRoute', 'GRPCRoute']
const PAST_HTTP = ['TLSRoute', 'TCPRoute', 'UDPRoute']
export const isGatewayApi = (tree: Tree): boolean =>
  isObjectOf(tree, 'gateway.envoyproxy.io') || isObjectOf(tree, 'gateway.networking.k8s.io')

export function checkGatewayApi(trees: readonly Tree[]): readonly Finding[] {
  const policies = trees.filter((tree) => kindOfObject(tree) === 'SecurityPolicy')
  const asking = policies.filter((tree) => get(tree, 'spec', 'extAuth') !== null)
  const routes = trees.filter((tree) => ROUTES.includes(kindOfObject(tree)))
  return [
    ...routes.flatMap((route) => checkRoute(route, policies)),
    ...asking.flatMap((policy) => checkPolicy(policy, trees)),
    ...trees
      .filter((tree) => PAST_HTTP.includes(kindOfObject(tree)))
      .map((tree) =>
        at(tree)('skips_question', `a ${kindOfObject(tree)} passes connections on unread`, 'use an HTTPRoute'),
      ),
    ...trees
      .filter((tree) => kindOfObject(tree) === 'EnvoyPatchPolicy')
      .flatMap((tree) =>
        itemsOf(get(tree, 'spec', 'jsonPatches')).flatMap((patch) => {
          const value = get(patch, 'operation', 'value')
          return value === null ? [] : checkParts(value)
        }),
      ),
    ...nothingAsked(trees, routes, asking),
  ]
}

function nothingAsked(trees: readonly Tree[], routes: readonly Tree[], asking: readonly Tree[]): readonly Finding[] {
  const [first] = trees
  return first === undefined || routes.length > 0 || asking.length > 0
    ? []
    : [at(first)('unseen', 'neither a route nor a SecurityPolicy that asks is in the files', 'check them, too')]
}

/** Whether the policy is about this route, or about a Gateway that the route is attached to. A part of one does not count. */
function isAbout(policy: Tree, route: Tree, kinds: readonly string[]): boolean {
  const own = { kind: kindOfObject(route), name: nameOf(route), namespace: namespaceOf(route) }
  const parents = itemsOf(get(route, 'spec', 'parentRefs')).map((ref) => ({
    kind: 'Gateway',
    name: textOf(get(ref, 'name')) ?? '',
    namespace: textOf(get(ref, 'namespace')) ?? own.namespace,
  }))
  const targets = [...itemsOf(get(policy, 'spec', 'targetRefs')), ...itemsOf(get(policy, 'spec', 'targetRef'))]
  return targets.some((ref) => {
    const kind = textOf(get(ref, 'kind')) ?? ''
    if (!kinds.includes(kind) || get(ref, 'sectionName') !== null) return false
    return [own, ...parents].some(
      (target) =>
        target.kind === kind && target.name === textOf(get(ref, 'name')) && target.namespace === namespaceOf(policy),
    )
  })
}

function checkRoute(route: Tree, policies: readonly Tree[]): readonly Finding[] {
  const own = policies.filter((policy) => isAbout(policy, route, ROUTES))
  const above = policies.filter((policy) => isAbout(policy, route, ['Gateway']))
  const asks = (policy: Tree): boolean => get(policy, 'spec', 'extAuth') !== null
  // A policy of the route takes the place of the Gateway's, unless it is merged into it.
  const replacing = own.filter((policy) => get(policy, 'spec', 'mergeType') === null)
  const asked = own.some(asks) || (replacing.length === 0 && above.some(asks))
  const hidden = asked ? [] : replacing.filter((policy) => above.some(asks) && !asks(policy))
  const rules = itemsOf(get(route, 'spec', 'rules'))
  return [
    ...hidden.map((policy) =>
      at(policy)(
        'skips_question',
        'this policy takes the place of the one of the Gateway, and has no extAuth',
        'add extAuth, or set mergeType: StrategicMerge',
      ),
    ),
    ...rules.flatMap((rule) => checkRule(rule, asked || hidden.length > 0)),
    ...(rules.length === 0 && !asked && hidden.length === 0
      ? [at(route)('skips_question', 'nobody is asked about this route', 'add the filter ExternalAuth to a rule')]
      : []),
  ]
}

function checkRule(rule: Tree, asked: boolean): readonly Finding[] {
  const ofBackends = itemsOf(get(rule, 'backendRefs')).flatMap((ref) => itemsOf(get(ref, 'filters')))
  const filters = itemsOf(get(rule, 'filters'))
  const typed = (type: string): readonly Tree[] => filters.filter((filter) => textOf(get(filter, 'type')) === type)
  const forwards = typed('RequestRedirect').length === 0
  return [
    ...(asked || typed('ExternalAuth').length > 0 || !forwards
      ? []
      : [
          at(rule)(
            'skips_question',
            'nobody is asked about the requests of this rule',
            'add the filter ExternalAuth, or a SecurityPolicy with extAuth',
          ),
        ]),
    ...typed('ExternalAuth').flatMap((filter) => checkFilter(get(filter, 'externalAuth') ?? filter)),
    ...[...filters, ...ofBackends].flatMap((filter) => {
      const rewrite = get(filter, 'urlRewrite')
      return [
        ...(rewrite === null
          ? []
          : [at(rewrite)('other_bytes', 'the request is rewritten after the decision', 'route it as it is')]),
        ...identityChanges(get(filter, 'requestHeaderModifier')),
      ]
    }),
    ...typed('ExtensionRef').map((filter) =>
      at(filter)('unseen', 'an extension may change the request after the decision', 'remove it, or judge it by hand'),
    ),
  ]
}

function checkFilter(auth: Tree): readonly Finding[] {
  const http = textOf(get(auth, 'protocol')) !== 'GRPC'
  const allowed = get(auth, 'grpc', 'allowedHeaders')
  return [
    ...(http
      ? [
          at(get(auth, 'protocol') ?? auth)(
            'other_bytes',
            'over HTTP the door gets five fields only',
            'set protocol: GRPC',
          ),
        ]
      : []),
    ...(allowed !== null && itemsOf(allowed).length > 0
      ? [
          at(allowed)(
            'other_bytes',
            'the door sees some fields only, and cannot refuse the others',
            'remove allowedHeaders',
          ),
        ]
      : []),
  ]
}

function checkPolicy(policy: Tree, trees: readonly Tree[]): readonly Finding[] {
  const auth = get(policy, 'spec', 'extAuth')
  const open = get(auth, 'failOpen')
  const recompute = get(auth, 'recomputeRoute')
  const http = get(auth, 'http')
  const headers = get(auth, 'headersToExtAuth')
  return [
    ...(isOn(open)
      ? [at(open)('fails_open', 'requests pass when the door does not answer', 'set failOpen: false')]
      : []),
    ...(isOn(recompute)
      ? [at(recompute)('other_bytes', 'the route is chosen again after the decision', 'set recomputeRoute: false')]
      : []),
    ...(http === null ? [] : [at(http)('other_bytes', 'over HTTP the door gets few fields, joined', 'use grpc')]),
    ...(headers === null
      ? []
      : [
          at(headers)(
            'other_bytes',
            'the door sees some fields only, and cannot refuse the others',
            'remove headersToExtAuth',
          ),
        ]),
    ...checkTraffic(policy, trees),
  ]
}

/** Envoy Gateway merges slashes and unescapes them, unless a ClientTrafficPolicy of the Gateway says otherwise. */
function checkTraffic(policy: Tree, trees: readonly Tree[]): readonly Finding[] {
  const settings = trees
    .filter((tree) => kindOfObject(tree) === 'ClientTrafficPolicy')
    .map((tree) => get(tree, 'spec', 'path'))
  const kept = settings.some((path) => isTrue(get(path, 'disableMergeSlashes')))
  const slashes = settings.map((path) => textOf(get(path, 'escapedSlashesAction')))
  const rejected = slashes.some((action) => action === 'RejectRequest' || action === 'KeepUnchanged')
  const underscores = trees
    .filter((tree) => kindOfObject(tree) === 'ClientTrafficPolicy')
    .map((tree) => get(tree, 'spec', 'headers', 'withUnderscoresAction'))
    .filter((action) => textOf(action) === 'Allow')
    .filter((action) => action !== null)
  return [
    ...(kept
      ? []
      : [
          at(policy)(
            'other_bytes',
            'Envoy Gateway merges slashes before it asks: //admin is judged as /admin',
            'add a ClientTrafficPolicy with path: {disableMergeSlashes: true}',
          ),
        ]),
    ...(rejected
      ? []
      : [
          at(policy)(
            'other_bytes',
            'Envoy Gateway turns %2F into a slash, so that a name becomes a path',
            'add a ClientTrafficPolicy with path: {escapedSlashesAction: RejectRequest}',
          ),
        ]),
    ...underscores.map((action) =>
      at(action)(
        'forgeable',
        'fields with underscores pass, which many services read as X-Auth-Subject and its like',
        'set withUnderscoresAction: RejectRequest',
      ),
    ),
  ]
}
