/** What is unsafe in the filters of Envoy: those of HTTP, and those of connections. */

import { get, isOn, itemsOf, type Tree, textOf, walk } from '../../read/tree.ts'
import { at, type Finding } from '../finding.ts'

/** `@type`, or the type of a TypedStruct. */
const typeUrl = (config: Tree | null): string => textOf(get(config, 'type_url')) ?? textOf(get(config, '@type')) ?? ''

/** The last part of the type. */
export const typeOf = (config: Tree | null): string => typeUrl(config).split('.').at(-1) ?? ''

/** The message of a TypedStruct is in its value. */
export const unwrapped = (config: Tree | null): Tree | null =>
  get(config, 'type_url') === null ? config : get(config, 'value')

/** Filters that leave method, target, fields and body as they are. */
const HARMLESS = new Set(
  'router cors rbac fault compressor buffer local_ratelimit ratelimit bandwidth_limit admission_control health_check csrf grpc_stats tap alternate_protocols_cache stateful_session set_metadata header_to_metadata upstream_codec'.split(
    ' ',
  ),
)
/** May change a request, or refuse it, before the question. Whatever else may answer by code of its own. */
const BEFORE = new Set(
  'jwt_authn oauth2 header_mutation json_to_metadata grpc_web grpc_json_transcoder grpc_http1_bridge basic_auth api_key_auth credential_injector decompressor set_filter_state geoip ip_tagging rate_limit_quota custom_response adaptive_concurrency kill_request original_src gcp_authn cdn_loop connect_grpc_bridge on_demand'.split(
    ' ',
  ),
)
/** Answer by themselves what another request was allowed to see. */
const CACHES = new Set(['cache', 'cache_v2'])

export function checkFilters(stack: Tree): readonly Finding[] {
  const filters = itemsOf(get(stack, 'http_filters'))
  const asking = filters.findIndex(
    (filter) => kindOf(filter) === 'ext_authz' && get(filter, 'config_discovery') === null,
  )
  const findings = filters.flatMap((filter, i) => checkPlaced(filter, asking >= 0 && i > asking))
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

/** `isAfter`: it runs when somebody was asked. */
export function checkPlaced(filter: Tree, isAfter: boolean): readonly Finding[] {
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
  if (HARMLESS.has(kind) || (!isAfter && BEFORE.has(kind))) return []
  if (!isAfter) return [here('unseen', `${name} may answer, or forward, before anybody is asked`, 'judge it by hand')]
  return [
    here(
      'other_bytes',
      `${name} comes after ext_authz, and may change the request that was checked`,
      'put it before ext_authz, or remove it',
    ),
  ]
}

/** Settings of the filter around its own. */
export function checkAskingFilter(filter: Tree): readonly Finding[] {
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
  const type = typeUrl(get(filter, 'typed_config'))
  const found =
    /filters\.http\.([a-z0-9_]+)\./.exec(type) ?? /filters\.http\.([a-z0-9_]+)$/.exec(textOf(get(filter, 'name')) ?? '')
  return found?.[1] ?? ''
}
export const isHarmless = (filter: Tree): boolean => HARMLESS.has(kindOf(filter))

/** Filters that run behind ext_authz: of the router, and of a cluster. */
export const upstreamFilters = (node: Tree): readonly Finding[] =>
  [
    ...itemsOf(get(node, 'upstream_http_filters')),
    ...(isUpstream(node) ? itemsOf(get(unwrapped(node), 'http_filters')) : []),
  ].flatMap((filter) => checkPlaced(filter, true))

export const isUpstream = (node: Tree): boolean => typeOf(node) === 'HttpProtocolOptions'

const CONNECTIONS = new Set(
  'http_connection_manager rbac ratelimit local_ratelimit connection_limit set_filter_state'.split(' '),
)
const LISTENERS = new Set(
  'tls_inspector http_inspector proxy_protocol original_dst original_src local_ratelimit set_filter_state'.split(' '),
)

/** What takes connections of a listener without reading requests. */
export function checkConnections(node: Tree): readonly Finding[] {
  const chains = [...itemsOf(get(node, 'filter_chains')), ...itemsOf(get(node, 'default_filter_chain'))]
  return [
    ...chains.flatMap((chain) => itemsOf(get(chain, 'filters'))).flatMap((one) => checkConnection(one)),
    ...itemsOf(get(node, 'listener_filters')).flatMap((one) => checkConnection(one, LISTENERS)),
  ]
}

export function checkConnection(filter: Tree, harmless: ReadonlySet<string> = CONNECTIONS): readonly Finding[] {
  const config = unwrapped(get(filter, 'typed_config'))
  const type = typeUrl(get(filter, 'typed_config'))
  const name = textOf(get(filter, 'name')) ?? ''
  const kind = /filters\.\w+(?:\.udp)?\.(\w+)\./.exec(type)?.[1] ?? /filters\.\w+\.(\w+)$/.exec(name)?.[1] ?? ''
  if (harmless.has(kind) || get(config, 'http_filters') !== null) return []
  return [
    /_proxy$/.test(kind)
      ? at(filter)(
          'skips_question',
          `${kind} passes connections on unread: nobody is asked`,
          'use an HttpConnectionManager',
        )
      : at(filter)('unseen', `${name === '' ? 'this filter' : name} may pass connections on`, 'judge it by hand'),
  ]
}

/** The names under which routes may switch the question off. */
export const askersIn = (nodes: readonly Tree[]): readonly string[] =>
  nodes.flatMap((node) => (kindOf(node) === 'ext_authz' ? [textOf(get(node, 'name')) ?? ''] : []))
