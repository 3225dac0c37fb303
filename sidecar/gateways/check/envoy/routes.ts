/** What is unsafe in Envoy's routes: settings of a route that switch ext_authz off, and rewriting after the decision. */
import { entriesOf, folded, get, isOn, itemsOf, type Tree, textOf } from '../../read/tree.ts'
import { removedAfterDecision, setAfterDecision } from '../changed-fields.ts'
import { at, type Finding } from '../finding.ts'
import { typeOf, unwrapped } from './filters.ts'

const REWRITES = ['prefix_rewrite', 'regex_rewrite', 'path_rewrite_policy', 'path_rewrite']
const HOST_REWRITES = ['host_rewrite_header', 'host_rewrite_path_regex']

/** Of the action `route`: what is checked, and what changes neither the request nor the service. */
const KNOWN = new Set(
  `cluster cluster_header weighted_clusters cluster_specifier_plugin inline_cluster_specifier_plugin cluster_not_found_response_code
  metadata_match host_rewrite_literal auto_host_rewrite append_x_forwarded_host timeout idle_timeout flush_timeout early_data_policy
  retry_policy retry_policy_typed_config request_mirror_policies priority rate_limits include_vh_rate_limits hash_policy cors max_grpc_timeout
  grpc_timeout_offset upgrade_configs internal_redirect_policy internal_redirect_action max_internal_redirects hedge_policy
  max_stream_duration ${REWRITES.join(' ')} ${HOST_REWRITES.join(' ')}`
    .split(/\s+/)
    .map(folded),
)

/** `node`: any part of a configuration. `askers`: the names of its ext_authz filters. */
export function checkRoutes(node: Tree, askers: readonly string[]): readonly Finding[] {
  return [...switchedOff(node, askers), ...rewritten(node), ...chosen(node), ...added(node), ...upgraded(node)]
}

/** Where the request goes: the settings of a route, and of a cluster. */
function chosen(node: Tree): readonly Finding[] {
  const headers = [
    get(node, 'cluster_header'),
    get(node, 'original_dst_lb_config', 'use_http_header'),
    ...itemsOf(get(node, 'override_host_sources')).map((source) => get(source, 'header')),
  ].filter(isOn)
  const action = get(node, 'route')
  const elsewhere = ['cluster_specifier_plugin', 'inline_cluster_specifier_plugin'].map((key) => get(action, key))
  const others = [get(node, 'filter_action'), get(node, 'vhds'), ...elsewhere].filter((value) => value !== null)
  const unknown = get(node, 'match') === null ? [] : entriesOf(action).filter(({ key }) => !KNOWN.has(folded(key)))
  return [
    ...headers.map((header) =>
      at(header)('other_bytes', 'a client chooses the service that gets the request', 'name the service'),
    ),
    ...others.map((value) =>
      at(value)('unseen', 'something else chooses where the requests go', 'name the cluster, or judge it by hand'),
    ),
    ...unknown.map((entry) =>
      at(entry)('unseen', `${entry.key} of a route is not known here: it may change requests`, 'judge it by hand'),
    ),
  ]
}

function switchedOff(node: Tree, askers: readonly string[]): readonly Finding[] {
  const configs = ['typed_per_filter_config', 'per_filter_config'].flatMap((key) => entriesOf(get(node, key)))
  return configs.flatMap(({ key, value }) => {
    const outer = unwrapped(value)
    const config = typeOf(value) === 'FilterConfig' ? get(outer, 'config') : value
    const inner = unwrapped(config)
    const isOurs =
      askers.includes(key) || /ext_authz|ExtAuthzPerRoute/.test(`${key} ${typeOf(value)} ${typeOf(config)}`)
    // The filters of these routes may be in another file, under any name.
    if (!isOurs && askers.length === 0 && !/^envoy\.filters\.http\./.test(key) && isOn(get(outer, 'disabled')))
      return [at(value)('unseen', `the filter ${key} is off here, and may be ext_authz`, 'check its listener, too')]
    if (!isOurs) return []
    const off = [get(outer, 'disabled'), get(inner, 'disabled')].find(isOn)
    if (off !== undefined)
      return [
        at(off ?? value)(
          'skips_question',
          'ext_authz is off here: nobody is asked about these requests',
          'remove it, and say public in the route file',
        ),
      ]
    const settings = get(inner, 'check_settings')
    const service = get(settings, 'grpc_service') ?? get(settings, 'http_service')
    const partial = get(settings, 'with_request_body', 'allow_partial_message')
    return [
      ...(service === null
        ? []
        : [at(service)('skips_question', 'another service is asked about these requests', 'remove the service here')]),
      ...(isOn(partial)
        ? [
            at(partial)(
              'other_bytes',
              'the door judges the beginning of a body only',
              'set allow_partial_message: false',
            ),
          ]
        : []),
    ]
  })
}

function rewritten(node: Tree): readonly Finding[] {
  const action = get(node, 'route')
  const paths = REWRITES.map((key) => get(action, key)).filter((value) => value !== null)
  const hosts = HOST_REWRITES.map((key) => get(action, key)).filter((value) => value !== null)
  return [
    ...paths.map((value) =>
      at(value)(
        'other_bytes',
        'the path is rewritten after the decision',
        'route the path as it is, and rewrite nothing',
      ),
    ),
    ...hosts.map((value) =>
      at(value)('other_bytes', 'a client chooses the Host that the service gets', 'remove the rewriting of the host'),
    ),
  ]
}

function added(node: Tree): readonly Finding[] {
  const written = itemsOf(get(node, 'request_headers_to_add')).map((item) => {
    const name = textOf(get(item, 'header', 'key')) ?? textOf(get(item, 'key')) ?? ''
    return { place: item, changed: setAfterDecision(name, textOf(get(item, 'header', 'value'))) }
  })
  const removed = itemsOf(get(node, 'request_headers_to_remove')).map((item) => ({
    place: item,
    changed: removedAfterDecision(textOf(item) ?? ''),
  }))
  return [...written, ...removed].flatMap(({ place, changed }) => (changed === null ? [] : [at(place)(...changed)]))
}

function upgraded(node: Tree): readonly Finding[] {
  return itemsOf(get(node, 'upgrade_configs')).flatMap((item) => {
    const enabled = get(item, 'enabled')
    if (enabled !== null && !isOn(enabled)) return []
    const type = textOf(get(item, 'upgrade_type')) ?? 'a protocol'
    return [
      at(item)(
        'skips_question',
        `a connection that upgrades to ${type} lasts when its permission has ended, and nobody is asked again`,
        'remove it; serve such routes by a sidecar in front of the service',
      ),
    ]
  })
}
