/** What is unsafe in objects of the Gateway API, and in those of Envoy Gateway beside them. */
import { get, itemsOf, type Tree, textOf } from '../../read/tree.ts'
import { at, type Finding } from '../finding.ts'
import { unknownMembers } from '../unknown-members.ts'
import { isIdle, isWhole } from './attached.ts'
import { checkOfEnvoy, checkPolicy, isAsking } from './envoy-gateway.ts'
import { fieldChanges, groupOf, kindOfObject, namespaceOf } from './objects.ts'
import { type DoorQuestion, questionOf } from './questions.ts'

const ROUTES = ['HTTPRoute', 'GRPCRoute']
const PAST_HTTP = ['TLSRoute', 'TCPRoute', 'UDPRoute']
const UNREAD = 'passes connections on unread'
const GROUPS = ['gateway.envoyproxy.io', 'gateway.networking.k8s.io']
export const isGatewayApi = (tree: Tree): boolean => GROUPS.includes(groupOf(tree))

/** `trees`: of the Gateway API and Envoy Gateway. `all`: every object of the input. */
export function checkGatewayApi(trees: readonly Tree[], all: readonly Tree[]): readonly Finding[] {
  const policies = trees.filter((tree) => kindOfObject(tree) === 'SecurityPolicy')
  const asking = policies.filter(isAsking)
  const routes = trees.filter((tree) => ROUTES.includes(kindOfObject(tree)))
  const [first] = trees
  return [
    ...routes.flatMap((route) => checkRoute(route, questionOf(route, policies, all))),
    ...asking.flatMap((policy) => checkPolicy(policy, trees)),
    ...policies.filter((policy) => !isAsking(policy)).flatMap((policy) => checkReplacing(policy, asking)),
    ...trees
      .filter((tree) => PAST_HTTP.includes(kindOfObject(tree)))
      .map((tree) => at(tree)('skips_question', `a ${kindOfObject(tree)} ${UNREAD}`, 'use an HTTPRoute')),
    ...trees.filter((tree) => kindOfObject(tree) === 'Gateway').flatMap(checkListeners),
    ...trees.filter((tree) => groupOf(tree) === 'gateway.envoyproxy.io').flatMap(checkOfEnvoy),
    ...(first === undefined || routes.length > 0 || asking.length > 0
      ? []
      : [at(first)('unseen', 'neither a route nor a SecurityPolicy that asks is in the files', 'check them, too')]),
  ]
}

/** A policy of a part takes the place of the one that asks about the whole, for that part. */
function checkReplacing(policy: Tree, asking: readonly Tree[]): readonly Finding[] {
  const near = asking.some((one) => namespaceOf(one) === namespaceOf(policy))
  return isWhole(policy) || isIdle(policy) || !near
    ? []
    : [
        at(policy)(
          'skips_question',
          'for a part of its target this policy takes the place of the one that asks, and has no extAuth',
          'add extAuth, or set mergeType: StrategicMerge',
        ),
      ]
}

function checkRoute(route: Tree, { asked, hiding, unseen }: DoorQuestion): readonly Finding[] {
  const rules = itemsOf(get(route, 'spec', 'rules'))
  const known = asked || hiding.length > 0 || unseen.length > 0
  return [
    ...unseen.map(({ namespace, name }) =>
      at(route)(
        'unseen',
        `the Gateway ${namespace}/${name} is not in the files: a policy of Istio asks only where its class is istio`,
        'check it, too',
      ),
    ),
    ...hiding.map((policy) =>
      at(policy)(
        'skips_question',
        'this policy takes the place of one that asks, and has no extAuth',
        'add extAuth, or set mergeType: StrategicMerge',
      ),
    ),
    ...rules.flatMap((rule) => checkRule(rule, known)),
    ...(rules.length === 0 && !known
      ? [at(route)('skips_question', 'nobody is asked about this route', 'add the filter ExternalAuth to a rule')]
      : []),
  ]
}

const KNOWN_FILTERS =
  `RequestHeaderModifier ResponseHeaderModifier RequestMirror RequestRedirect URLRewrite CORS ExternalAuth ExtensionRef`.split(
    ' ',
  )

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
            'add the filter ExternalAuth, or a SecurityPolicy with extAuth for each Gateway of the route',
          ),
        ]),
    ...typed('ExternalAuth').flatMap((filter) => checkFilter(get(filter, 'externalAuth') ?? filter)),
    ...[...filters, ...ofBackends].flatMap(checkChanges),
  ]
}

function checkChanges(filter: Tree): readonly Finding[] {
  const rewrite = get(filter, 'urlRewrite')
  const type = textOf(get(filter, 'type')) ?? ''
  const here = at(filter)
  return [
    ...(rewrite === null
      ? []
      : [at(rewrite)('other_bytes', 'the request is rewritten after the decision', 'route it as it is')]),
    ...fieldChanges(get(filter, 'requestHeaderModifier')),
    ...(type === 'ExtensionRef'
      ? [here('unseen', 'an extension may change the request after the decision', 'remove it, or judge it by hand')]
      : []),
    ...(KNOWN_FILTERS.includes(type)
      ? []
      : [here('unseen', `the filter ${type} is not known here: it may change requests`, 'judge it by hand')]),
  ]
}

const OF_FILTER = ['protocol', 'backendRef', 'grpc', 'http', 'forwardBody']

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
    ...unknownMembers(auth, 'ExternalAuth', ({ key }) => OF_FILTER.includes(key)),
  ]
}

function checkListeners(gateway: Tree): readonly Finding[] {
  return itemsOf(get(gateway, 'spec', 'listeners')).flatMap((listener) => {
    const protocol = textOf(get(listener, 'protocol')) ?? ''
    const mode = get(listener, 'tls', 'mode')
    if (/^HTTPS?$/.test(protocol) && textOf(mode) !== 'Passthrough') return []
    return [
      at(listener)('skips_question', `a listener of ${protocol} ${UNREAD}`, 'use HTTP or HTTPS, and terminate TLS'),
    ]
  })
}
