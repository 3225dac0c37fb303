/** What is unsafe in the policies of Envoy Gateway. */
import { get, isOn, isTrue, itemsOf, type Tree, textOf, textsOf } from '../../read/tree.ts'
import { setAfterDecision } from '../changed-fields.ts'
import { checkParts } from '../envoy/envoy.ts'
import { checkTimeout } from '../envoy/ext-authz.ts'
import { at, type Finding } from '../finding.ts'
import { isEverybody } from '../networks.ts'
import { unknownMembers } from '../unknown-members.ts'
import { isAbout, isWhole, parentsOf, type Target, targetOf } from './attached.ts'
import { kindOfObject } from './objects.ts'

export const isAsking = (policy: Tree): boolean => get(policy, 'spec', 'extAuth') !== null

const OF_QUESTION =
  `grpc http headersToExtAuth failOpen recomputeRoute timeout bodyToExtAuth statusOnError contextExtensions`.split(' ')

/** A SecurityPolicy that asks. `trees`: with the routes, Gateways and policies beside it. */
export function checkPolicy(policy: Tree, trees: readonly Tree[]): readonly Finding[] {
  const auth = get(policy, 'spec', 'extAuth')
  const open = get(auth, 'failOpen')
  const recompute = get(auth, 'recomputeRoute')
  const http = get(auth, 'http')
  const headers = get(auth, 'headersToExtAuth')
  const timeout = get(auth, 'timeout')
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
    ...(timeout === null ? [] : checkTimeout(timeout)),
    ...unknownMembers(auth, 'extAuth', ({ key }) => OF_QUESTION.includes(key)),
    ...checkTraffic(policy, trees),
  ]
}

/** Envoy Gateway merges slashes and unescapes them, unless a ClientTrafficPolicy of each Gateway says otherwise. */
function checkTraffic(policy: Tree, trees: readonly Tree[]): readonly Finding[] {
  const traffic = trees.filter((tree) => kindOfObject(tree) === 'ClientTrafficPolicy')
  const perGateway = gatewaysOf(policy, trees).map((gateway) =>
    traffic.filter((one) => isAbout(one, gateway, { sure: true })),
  )
  const all = (test: (path: Tree | null) => boolean): boolean =>
    perGateway.length > 0 &&
    perGateway.every((own) => own.some(isWhole) && own.every((one) => test(get(one, 'spec', 'path'))))
  return [
    ...(all((path) => isTrue(get(path, 'disableMergeSlashes')))
      ? []
      : [
          at(policy)(
            'other_bytes',
            'Envoy Gateway merges slashes before it asks: //admin is checked as /admin',
            'add a ClientTrafficPolicy for the Gateway with path: {disableMergeSlashes: true}',
          ),
        ]),
    ...(all((path) => ['RejectRequest', 'KeepUnchanged'].includes(textOf(get(path, 'escapedSlashesAction')) ?? ''))
      ? []
      : [
          at(policy)(
            'other_bytes',
            'Envoy Gateway turns %2F into a slash, so that a name becomes a path',
            'add a ClientTrafficPolicy for the Gateway with path: {escapedSlashesAction: RejectRequest}',
          ),
        ]),
  ]
}

/** Named by the policy, or of the routes that it is about, or in the files. */
function gatewaysOf(policy: Tree, trees: readonly Tree[]): readonly Target[] {
  const refs = ['targetRefs', 'targetRef'].flatMap((key) => itemsOf(get(policy, 'spec', key)))
  const own = targetOf(policy)
  const named = refs
    .filter((ref) => textOf(get(ref, 'kind')) === 'Gateway')
    .map((ref) => ({ ...own, kind: 'Gateway', name: textOf(get(ref, 'name')) ?? '', object: null }))
  const about = trees.filter((tree) => isAbout(policy, targetOf(tree), { sure: false }))
  const gateways = about.filter((tree) => kindOfObject(tree) === 'Gateway').map(targetOf)
  const ofRoutes = about.flatMap((tree) => parentsOf(tree, trees))
  return [...named, ...gateways, ...ofRoutes].filter(({ kind }) => kind === 'Gateway')
}

/** Objects beside the question, which may change requests after it, or who is believed. */
export function checkOfEnvoy(object: Tree): readonly Finding[] {
  const kind = kindOfObject(object)
  const spec = get(object, 'spec')
  const here = at(object)
  if (kind === 'SecurityPolicy') return checkForwarded(spec)
  if (kind === 'ClientTrafficPolicy') return checkClients(spec)
  if (kind === 'EnvoyPatchPolicy') return itemsOf(get(spec, 'jsonPatches')).flatMap(checkPatch)
  if (kind === 'EnvoyExtensionPolicy')
    return [here('other_bytes', 'an extension runs after the decision, and may change the request', 'remove it')]
  if (kind === 'HTTPRouteFilter') return checkRouteFilter(spec)
  if (kind === 'Backend')
    return textOf(get(spec, 'type')) === 'DynamicResolver'
      ? [here('other_bytes', 'a client chooses the service by its Host', 'name the service in endpoints')]
      : []
  if (kind === 'EnvoyProxy' || kind === 'EnvoyGateway') {
    const parts = [get(spec, 'filterOrder'), get(spec, 'bootstrap'), get(object, 'extensionManager')]
    return parts
      .filter((part) => part !== null)
      .map((part) =>
        at(part ?? object)(
          'unseen',
          'this may change what runs after the decision, or who is asked',
          'judge it by hand',
        ),
      )
  }
  return kind === 'BackendTrafficPolicy'
    ? []
    : [here('unseen', `the kind ${kind} is not known here: it may route`, 'judge it by hand')]
}

function checkRouteFilter(spec: Tree | null): readonly Finding[] {
  const rewrite = get(spec, 'urlRewrite')
  const credential = get(spec, 'credentialInjection', 'header')
  const changed = credential === null ? null : setAfterDecision(textOf(credential) ?? '')
  return [
    ...(rewrite === null
      ? []
      : [at(rewrite)('other_bytes', 'the request is rewritten after the decision', 'route it as it is')]),
    ...(credential === null || changed === null ? [] : [at(credential)(...changed)]),
  ]
}

function checkPatch(patch: Tree): readonly Finding[] {
  const value = get(patch, 'operation', 'value')
  return [
    at(patch)('unseen', 'a patch may change who is asked, and what follows', 'judge /config_dump instead'),
    ...(value === null ? [] : checkParts(value)),
  ]
}

/** Other ways to authenticate run after ext_authz, and tell the service who it is in fields of their own. */
function checkForwarded(spec: Tree | null): readonly Finding[] {
  const claims = itemsOf(get(spec, 'jwt', 'providers')).flatMap((provider) => itemsOf(get(provider, 'claimToHeaders')))
  const names = [
    ...claims.map((claim) => get(claim, 'header')),
    get(spec, 'basicAuth', 'forwardUsernameHeader'),
    get(spec, 'apiKeyAuth', 'forwardClientIDHeader'),
  ]
  return names.flatMap((name) => {
    const changed = name === null ? null : setAfterDecision(textOf(name) ?? '')
    return name === null || changed === null ? [] : [at(name)(...changed)]
  })
}

function checkClients(spec: Tree | null): readonly Finding[] {
  const underscores = get(spec, 'headers', 'withUnderscoresAction')
  const custom = get(spec, 'clientIPDetection', 'customHeader')
  const trusted = get(spec, 'clientIPDetection', 'xForwardedFor', 'trustedCIDRs')
  return [
    ...(textOf(underscores) === 'Allow' && underscores !== null
      ? [
          at(underscores)(
            'forgeable',
            'fields with underscores pass, which many services read as X-Auth-Subject and its like',
            'set withUnderscoresAction: RejectRequest',
          ),
        ]
      : []),
    ...(custom === null
      ? []
      : [
          at(custom)(
            'forgeable',
            'a client can say that it has another address',
            'use xForwardedFor with trustedCIDRs',
          ),
        ]),
    ...(trusted !== null && textsOf(trusted).some(isEverybody)
      ? [at(trusted)('forgeable', 'Envoy believes X-Forwarded-For of everybody', 'name your proxies')]
      : []),
  ]
}
