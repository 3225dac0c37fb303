/** What is unsafe in Envoy's own configuration, and in the parts of it that Istio and Envoy Gateway let one patch. */

import { entriesOf, get, isFalse, isOn, isTrue, itemsOf, type Tree, textOf, walk } from '../read/tree.ts'
import { checkRoutes } from './envoy-routes.ts'
import { checkExtAuthz } from './ext-authz.ts'
import { at, type Finding } from './finding.ts'

/** The last part of `@type`, or of the type of a TypedStruct. */
export const typeOf = (config: Tree | null): string =>
  (textOf(get(config, 'type_url')) ?? textOf(get(config, '@type')) ?? '').split('.').at(-1) ?? ''

/** The message of a TypedStruct is in its value. */
export const unwrapped = (config: Tree | null): Tree | null =>
  get(config, 'type_url') === null ? config : get(config, 'value')

/** Filters that leave method, target, fields and body as they are. */
const HARMLESS = new Set(
  'router cors rbac fault compressor buffer local_ratelimit ratelimit bandwidth_limit admission_control health_check csrf grpc_stats tap alternate_protocols_cache stateful_session set_metadata header_to_metadata'.split(
    ' ',
  ),
)
/** Answer by themselves what another request was allowed to see. */
const CACHES = new Set(['cache', 'cache_v2'])

export const isEnvoy = (tree: Tree): boolean =>
  ['static_resources', 'dynamic_resources', 'configs', 'http_filters', 'virtual_hosts'].some(
    (key) => get(tree, key) !== null,
  ) || itemsOf(get(tree, 'resources')).some((item) => get(item, '@type') !== null)

/** `trees`: all Envoy documents of the input, which may refer to one another. */
export function checkEnvoy(trees: readonly Tree[]): readonly Finding[] {
  const stacks = trees.flatMap((tree) => [...walk(tree)].filter((node) => get(node, 'http_filters') !== null))
  const names = trees.flatMap((tree) =>
    [...walk(tree)].filter((node) => get(node, 'virtual_hosts') !== null).map((node) => textOf(get(node, 'name'))),
  )
  const findings = stacks.flatMap((stack) => checkStack(stack, names))
  const clusters = trees.flatMap((tree) => [...walk(tree)].flatMap((node) => itemsOf(get(node, 'clusters'))))
  return [
    ...findings,
    ...trees.flatMap((tree) => unseenListeners(tree, stacks.length)),
    ...trees.flatMap((tree) => checkParts(tree)),
    ...stacks.flatMap((stack) => doorClusters(stack, clusters)),
  ]
}

/** What may be wrong in any part: HTTP filter stacks, filters, routes. Nothing is demanded that the part does not say. */
export function checkParts(tree: Tree): readonly Finding[] {
  return [...walk(tree)].flatMap((node) => {
    const config = unwrapped(node)
    if (config === null) return []
    if (typeOf(node) === 'ExtAuthz') return checkExtAuthz(config, get(config, 'grpc_service') !== null)
    return [...checkNormalisation(node), ...checkRoutes(node)]
  })
}

function unseenListeners(tree: Tree, stacks: number): readonly Finding[] {
  const lds = get(tree, 'dynamic_resources', 'lds_config')
  if (lds !== null)
    return [at(lds)('unseen', 'Envoy gets its listeners from elsewhere', 'check the output of /config_dump instead')]
  if (stacks > 0 || get(tree, 'virtual_hosts') !== null || get(tree, 'static_resources') === null) return []
  return [at(tree)('unseen', 'there is no HttpConnectionManager here', 'check the file that has the listeners')]
}

function checkStack(stack: Tree, routeNames: readonly (string | null)[]): readonly Finding[] {
  const findings: Finding[] = []
  const here = at(stack)
  if (!isTrue(get(stack, 'use_remote_address')))
    findings.push(
      here(
        'forgeable',
        'use_remote_address is not true, so that Envoy believes X-Forwarded-For and x-envoy-* of clients',
        'set use_remote_address: true',
      ),
    )
  const underscores = textOf(get(stack, 'common_http_protocol_options', 'headers_with_underscores_action'))
  if (underscores !== 'REJECT_REQUEST' && underscores !== 'DROP_HEADER')
    findings.push(
      here(
        'forgeable',
        'fields with underscores pass, which many services read as X-Auth-Subject and its like',
        'set common_http_protocol_options: {headers_with_underscores_action: REJECT_REQUEST}',
      ),
    )
  const rds = get(stack, 'rds') ?? get(stack, 'scoped_routes')
  const name = textOf(get(rds, 'route_config_name'))
  if (rds !== null && (name === null || !routeNames.includes(name)))
    findings.push(
      at(rds)(
        'unseen',
        'the routes come from elsewhere, and may switch ext_authz off',
        'check the output of /config_dump',
      ),
    )
  return [...findings, ...checkFilters(stack)]
}

function checkFilters(stack: Tree): readonly Finding[] {
  const filters = itemsOf(get(stack, 'http_filters'))
  const asking = filters.findIndex(
    (filter) => kindOf(filter) === 'ext_authz' && get(filter, 'config_discovery') === null,
  )
  const findings = filters.flatMap((filter, i) => checkFilter(filter, asking >= 0 && i > asking))
  if (asking >= 0) return findings
  return [
    at(get(stack, 'http_filters') ?? stack)(
      'skips_question',
      'this HttpConnectionManager has no ext_authz filter: nobody is asked about its requests',
      'add envoy.filters.http.ext_authz before the router, as gateway-config envoy prints it',
    ),
    ...findings,
  ]
}

function checkFilter(filter: Tree, isAfter: boolean): readonly Finding[] {
  const kind = kindOf(filter)
  const name = textOf(get(filter, 'name')) ?? kind
  const here = at(filter)
  if (get(filter, 'config_discovery') !== null)
    return [here('unseen', `the filter ${name} comes from elsewhere`, 'write it into the file, or check /config_dump')]
  const wrapped = [...walk(filter)].some((node) => typeOf(node) === 'ExtAuthz') && kind !== 'ext_authz'
  if (wrapped)
    return [
      here('skips_question', `ext_authz runs only where ${name} says so`, 'list ext_authz among http_filters directly'),
    ]
  if (kind === 'ext_authz') return checkAskingFilter(filter)
  if (CACHES.has(kind))
    return [here('skips_question', `${name} answers from its cache without a question`, 'remove the filter')]
  if (!isAfter || HARMLESS.has(kind)) return []
  return [
    here(
      'other_bytes',
      `${name} comes after ext_authz, and may change the request that was judged`,
      'put it before ext_authz, or remove it',
    ),
  ]
}

function checkAskingFilter(filter: Tree): readonly Finding[] {
  const disabled = get(filter, 'disabled')
  const optional = get(filter, 'is_optional')
  return [
    ...(isOn(disabled)
      ? [at(disabled)('skips_question', 'ext_authz is off unless a route turns it on', 'remove disabled')]
      : []),
    ...(isOn(optional)
      ? [
          at(optional)(
            'skips_question',
            'an Envoy that does not know ext_authz would go on without it',
            'remove is_optional',
          ),
        ]
      : []),
  ]
}

/** `ext_authz`, from the type or the name of a filter. */
export function kindOf(filter: Tree): string {
  const config = get(filter, 'typed_config')
  const type = textOf(get(config, 'type_url')) ?? textOf(get(config, '@type')) ?? ''
  const found =
    /filters\.http\.([a-z0-9_]+)\./.exec(type) ?? /filters\.http\.([a-z0-9_]+)$/.exec(textOf(get(filter, 'name')) ?? '')
  return found?.[1] ?? ''
}
export const isHarmless = (filter: Tree): boolean => HARMLESS.has(kindOf(filter))

/** Rewriting before the question changes what comes to us, and with it which requests are refused as ambiguous. */
function checkNormalisation(node: Tree): readonly Finding[] {
  const merge = get(node, 'merge_slashes')
  const slashes = get(node, 'path_with_escaped_slashes_action')
  const action = textOf(slashes) ?? ''
  return [
    ...(isOn(merge)
      ? [
          at(merge)(
            'other_bytes',
            'Envoy merges slashes before it asks: //admin is judged as /admin',
            'set merge_slashes: false',
          ),
        ]
      : []),
    ...(slashes !== null && !['REJECT_REQUEST', 'KEEP_UNCHANGED'].includes(action)
      ? [
          at(slashes)(
            'other_bytes',
            `${action} turns %2F into a slash before the question, so that a name becomes a path`,
            'set path_with_escaped_slashes_action: REJECT_REQUEST',
          ),
        ]
      : []),
  ]
}

/** A door must know that this gateway asks, and the gateway that the door answers. */
function doorClusters(stack: Tree, clusters: readonly Tree[]): readonly Finding[] {
  return itemsOf(get(stack, 'http_filters')).flatMap((filter) => {
    if (kindOf(filter) !== 'ext_authz') return []
    const service = get(unwrapped(get(filter, 'typed_config')), 'grpc_service')
    const name = get(service, 'envoy_grpc', 'cluster_name')
    const cluster = clusters.find((one) => textOf(get(one, 'name')) === textOf(name))
    if (name === null) return []
    if (cluster === undefined)
      return [at(name)('unseen', `the cluster ${textOf(name)} is not in the files`, 'check the file that has it, too')]
    const usesPipe = [...walk(cluster)].some((node) => get(node, 'pipe', 'path') !== null)
    const tls = [...walk(cluster)].find((node) => typeOf(node) === 'UpstreamTlsContext')
    const proves = isProving(tls) || entriesOf(service).some(({ key }) => /^initial_?metadata$/i.test(key))
    const trusts =
      tls === undefined ||
      [...walk(tls)].some((node) => get(node, 'trusted_ca') !== null || get(node, 'system_root_certs') !== null)
    const unverified =
      tls === undefined ? null : [...walk(tls)].find((node) => get(node, 'trust_chain_verification') !== null)
    return [
      ...(usesPipe || proves
        ? []
        : [
            at(name)(
              'forgeable',
              'Envoy does not say who it is to the door, which then answers nobody, or everybody',
              'give the cluster a client certificate, a pipe, or initial_metadata with x-portcullis-caller',
            ),
          ]),
      ...(trusts && !isAccepting(unverified ?? null)
        ? []
        : [
            at(cluster)(
              'forgeable',
              'the certificate of the door is not verified',
              'set validation_context.trusted_ca',
            ),
          ]),
    ]
  })
}

const isProving = (tls: Tree | undefined): boolean =>
  tls !== undefined &&
  [...walk(tls)].some(
    (node) => get(node, 'tls_certificates') !== null || get(node, 'tls_certificate_sds_secret_configs') !== null,
  )
const isAccepting = (node: Tree | null): boolean =>
  node !== null && textOf(get(node, 'trust_chain_verification')) === 'ACCEPT_UNTRUSTED' && !isFalse(node)
