/** What is unsafe in the mesh configuration and the policies of Istio. */

import { entriesOf, get, isOn, isTrue, itemsOf, type Tree, textOf, walk } from '../../read/tree.ts'
import { readYaml } from '../../read/yaml-toml.ts'
import { checkParts } from '../envoy.ts'
import { isHarmless, kindOf } from '../envoy-filters.ts'
import { at, type Finding } from '../finding.ts'
import { identityChanges, isObjectOf, kindOfObject } from './objects.ts'

const TIMEOUT_SECONDS_MAX = 10

/** The mesh configuration: a file of its own, of an installation, or as text in the ConfigMap. */
export function meshConfigOf(tree: Tree): Tree | null {
  if (get(tree, 'extensionProviders') !== null) return tree
  const inside = get(tree, 'spec', 'meshConfig') ?? get(tree, 'meshConfig')
  if (inside !== null) return inside
  const text = kindOfObject(tree) === 'ConfigMap' ? get(tree, 'data', 'mesh') : null
  return text === null ? null : (readYaml(textOf(text) ?? '', text.file, text.line + 1)[0] ?? null)
}

const ISTIO_GROUPS = ['security.istio.io', 'networking.istio.io', 'install.istio.io']
export const isIstio = (tree: Tree): boolean =>
  ISTIO_GROUPS.some((group) => isObjectOf(tree, group)) || meshConfigOf(tree) !== null

export function checkIstio(trees: readonly Tree[]): readonly Finding[] {
  const meshes = trees.map(meshConfigOf).filter((mesh) => mesh !== null)
  const providers = meshes.flatMap((mesh) => itemsOf(get(mesh, 'extensionProviders')))
  const policies = trees.filter((tree) => kindOfObject(tree) === 'AuthorizationPolicy')
  const custom = policies.filter((tree) => textOf(get(tree, 'spec', 'action')) === 'CUSTOM')
  const filters = trees.filter((tree) => kindOfObject(tree) === 'EnvoyFilter')
  const [first] = trees
  return [
    ...meshes.flatMap(checkMesh),
    ...providers.flatMap((provider) => checkProvider(provider, filters)),
    ...custom.flatMap((policy) => checkPolicy(policy, meshes.length > 0 ? providers : null)),
    ...filters.flatMap(checkFilter),
    ...trees.filter((tree) => kindOfObject(tree) === 'VirtualService').flatMap(checkService),
    ...(custom.length === 0 && first !== undefined
      ? [
          at(first)(
            'skips_question',
            'no AuthorizationPolicy with the action CUSTOM is in the files: nobody is asked',
            'add one with rules: [{}], as gateway-config istio prints it',
          ),
        ]
      : []),
  ]
}

function checkMesh(mesh: Tree): readonly Finding[] {
  const normalization = get(mesh, 'pathNormalization', 'normalization')
  return /MERGE/.test(textOf(normalization) ?? '') && normalization !== null
    ? [
        at(normalization)(
          'other_bytes',
          `${textOf(normalization)} changes the path before the question: //admin is judged as /admin`,
          'set normalization: NONE or BASE',
        ),
      ]
    : []
}

function checkProvider(provider: Tree, filters: readonly Tree[]): readonly Finding[] {
  const http = get(provider, 'envoyExtAuthzHttp')
  const grpc = get(provider, 'envoyExtAuthzGrpc')
  const settings = grpc ?? http
  if (settings === null) return []
  const raw = filters.some((tree) => [...walk(tree)].some((node) => isTrue(get(node, 'encode_raw_headers'))))
  const flags = (['failOpen', 'clearRouteCache'] as const).flatMap((key) => {
    const value = get(settings, key)
    if (!isOn(value)) return []
    return key === 'failOpen'
      ? [at(value)('fails_open', 'requests pass when the door does not answer', 'set failOpen: false')]
      : [at(value)('other_bytes', 'the route is chosen again after the decision', 'set clearRouteCache: false')]
  })
  const partial = get(settings, 'includeRequestBodyInCheck', 'allowPartialMessage')
  return [
    ...flags,
    ...(isOn(partial)
      ? [at(partial)('other_bytes', 'the door judges the beginning of a body only', 'set allowPartialMessage: false')]
      : []),
    ...(http === null
      ? []
      : [at(http)('other_bytes', 'over HTTP the door gets few fields, joined', 'ask over envoyExtAuthzGrpc')]),
    ...(grpc === null || raw
      ? []
      : [
          at(grpc)(
            'other_bytes',
            'repeated fields come to the door joined, so that it cannot see that there were two',
            'add the EnvoyFilter with encode_raw_headers: true, as gateway-config istio prints it',
          ),
        ]),
    ...checkTimes(settings),
  ]
}

function checkTimes(settings: Tree): readonly Finding[] {
  const timeout = get(settings, 'timeout')
  const seconds = /^([\d.]+)(ms|s)$/.exec(textOf(timeout) ?? '')
  const length = Number(seconds?.[1] ?? Number.NaN) / (seconds?.[2] === 'ms' ? 1_000 : 1)
  const status = get(settings, 'statusOnError')
  return [
    ...(length > 0 && length <= TIMEOUT_SECONDS_MAX
      ? []
      : [
          at(timeout ?? settings)(
            'fails_open',
            'a door that hangs holds requests for up to 600 seconds, and with them the gateway',
            'set timeout: 2s',
          ),
        ]),
    ...(status === null || /^[45]\d\d$/.test(textOf(status) ?? '')
      ? []
      : [
          at(status)('fails_open', 'a failure of the door looks like a success to clients', "set statusOnError: '503'"),
        ]),
  ]
}

function checkPolicy(policy: Tree, providers: readonly Tree[] | null): readonly Finding[] {
  const rules = get(policy, 'spec', 'rules')
  const narrow = itemsOf(rules).filter((rule) => entriesOf(rule).length > 0)
  const all = itemsOf(rules).some((rule) => rule.kind === 'map' && rule.entries.length === 0)
  const name = get(policy, 'spec', 'provider', 'name')
  const known = providers?.some((provider) => textOf(get(provider, 'name')) === textOf(name)) ?? true
  const dryRun = entriesOf(get(policy, 'metadata', 'annotations')).find(({ key }) => key === 'istio.io/dry-run')
  const fix = 'set rules: [{}], and say public in the route file'
  return [
    ...(rules === null || itemsOf(rules).length === 0
      ? [at(rules ?? policy)('skips_question', 'a CUSTOM policy without rules asks about no request', fix)]
      : []),
    ...(all
      ? []
      : narrow.map((rule) =>
          at(rule)(
            'skips_question',
            'only the requests that this rule matches are asked about, read by Istio’s eyes',
            fix,
          ),
        )),
    ...(known
      ? []
      : [at(name ?? policy)('skips_question', 'no provider of the mesh has this name', 'name the provider')]),
    ...(dryRun !== undefined && textOf(dryRun.value) !== 'false'
      ? [at(dryRun)('skips_question', 'the policy is tried out and not enforced', 'remove the annotation')]
      : []),
  ]
}

function checkFilter(filter: Tree): readonly Finding[] {
  return itemsOf(get(filter, 'spec', 'configPatches')).flatMap((patch) => {
    const operation = get(patch, 'patch', 'operation')
    const verb = textOf(operation) ?? ''
    const value = get(patch, 'patch', 'value')
    const target = [...walk(get(patch, 'match') ?? patch)].map((node) => textOf(get(node, 'subFilter', 'name')))
    const touchesUs = target.some((name) => name?.includes('ext_authz') === true)
    const here = at(operation ?? patch)
    if (verb === 'REMOVE' && touchesUs) return [here('skips_question', 'ext_authz is removed', 'remove this patch')]
    if (verb === 'REPLACE' && touchesUs)
      return [
        here('unseen', 'ext_authz is replaced by something else', 'change it by MERGE'),
        ...(value === null ? [] : checkParts(value)),
      ]
    const isFilter = textOf(get(patch, 'applyTo')) === 'HTTP_FILTER' && value !== null
    const isBefore = verb === 'INSERT_FIRST' || (verb === 'INSERT_BEFORE' && touchesUs)
    const comesAfter =
      isFilter && /^(INSERT|ADD)/.test(verb) && !isBefore && !isHarmless(value) && kindOf(value) !== 'ext_authz'
    return [
      ...(comesAfter
        ? [
            here(
              'other_bytes',
              'this filter may come after ext_authz, and change the request that was judged',
              'insert it before ext_authz',
            ),
          ]
        : []),
      ...(value === null ? [] : checkParts(value)),
    ]
  })
}

function checkService(service: Tree): readonly Finding[] {
  return itemsOf(get(service, 'spec', 'http')).flatMap((route) => {
    const rewrite = get(route, 'rewrite')
    return [
      ...(rewrite === null
        ? []
        : [at(rewrite)('other_bytes', 'the request is rewritten after the decision', 'route it as it is')]),
      ...identityChanges(get(route, 'headers', 'request')),
      ...itemsOf(get(route, 'route')).flatMap((to) => identityChanges(get(to, 'headers', 'request'))),
    ]
  })
}
