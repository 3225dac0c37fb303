/** What is unsafe in Envoy's own configuration, and in the parts of it that Istio and Envoy Gateway let one patch. */

import { isLoopback } from '../../../../pdp/shared/process/listen.ts'
import { get, isOn, isTrue, itemsOf, type Tree, textOf, walk } from '../../read/tree.ts'
import { at, type Finding } from '../finding.ts'
import { checkExtAuthz, doorClusters } from './ext-authz.ts'
import { askersIn, checkConnections, checkFilters, isUpstream, typeOf, unwrapped, upstreamFilters } from './filters.ts'
import { checkRoutes } from './routes.ts'
import { checkTrailers } from './trailers.ts'

export const isEnvoy = (tree: Tree): boolean =>
  ['static_resources', 'dynamic_resources', 'configs', 'http_filters', 'virtual_hosts'].some(
    (key) => get(tree, key) !== null,
  ) || itemsOf(get(tree, 'resources')).some((item) => get(item, '@type') !== null)

/** `trees`: all Envoy documents of the input, which may refer to one another. */
export function checkEnvoy(trees: readonly Tree[]): readonly Finding[] {
  const nodes = trees.flatMap((tree) => [...walk(tree)])
  const upstream = new Set(nodes.filter(isUpstream).map(unwrapped))
  const managers = nodes
    .filter((node) => typeOf(node) === 'HttpConnectionManager')
    .map((node) => unwrapped(node) ?? node)
  const listed = nodes.filter((node) => get(node, 'http_filters') !== null && !upstream.has(node))
  const stacks = [...new Set([...managers, ...listed])]
  const names = nodes.filter((node) => get(node, 'virtual_hosts') !== null).map((node) => textOf(get(node, 'name')))
  const clusters = nodes.flatMap((node) => itemsOf(get(node, 'clusters')))
  const askers = askersIn(nodes)
  return [
    ...stacks.flatMap((stack) => checkStack(stack, names)),
    ...trees.flatMap((tree) => unseenListeners(tree, stacks.length)),
    ...nodes.flatMap(checkAdmin),
    ...trees.flatMap((tree) => checkParts(tree, askers)),
    ...stacks.flatMap((stack) => [...doorClusters(stack, clusters), ...checkTrailers(stack, { nodes, clusters })]),
  ]
}

/**
 * What may be wrong in any part: HTTP filter stacks, filters, routes. Nothing is demanded that the part does not say.
 * `askers`: the names of ext_authz filters, where all of them are known.
 */
export function checkParts(tree: Tree, askers: readonly string[] = [EXT_AUTHZ]): readonly Finding[] {
  return [...walk(tree)].flatMap((node) => {
    const config = unwrapped(node)
    if (config === null) return []
    if (typeOf(node) === 'ExtAuthz') return checkExtAuthz(config, get(config, 'grpc_service') !== null)
    return [
      ...checkNormalisation(node),
      ...checkRoutes(node, askers),
      ...upstreamFilters(node),
      ...checkConnections(node),
    ]
  })
}

const EXT_AUTHZ = 'envoy.filters.http.ext_authz'

function unseenListeners(tree: Tree, stacks: number): readonly Finding[] {
  const dynamic = get(tree, 'dynamic_resources')
  const lds = get(dynamic, 'lds_config') ?? get(dynamic, 'lds_resources_locator')
  if (lds !== null)
    return [at(lds)('unseen', 'Envoy gets its listeners from elsewhere', 'check the output of /config_dump instead')]
  if (stacks > 0 || get(tree, 'virtual_hosts') !== null || get(tree, 'static_resources') === null) return []
  return [at(tree)('unseen', 'there is no HttpConnectionManager here', 'check the file that has the listeners')]
}

/** Who reaches the administration may change what counts at run time, such as which share of the requests is asked about. */
function checkAdmin(node: Tree): readonly Finding[] {
  const address = get(node, 'admin', 'address', 'socket_address', 'address')
  if (address === null || isLoopback(textOf(address) ?? '')) return []
  return [
    at(address)(
      'forgeable',
      'others than this machine may change settings of Envoy at run time, and end it',
      'let admin listen at 127.0.0.1 or a pipe, or remove it',
    ),
  ]
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
  return [...findings, ...checkReplies(stack), ...checkFilters(stack)]
}

/** Refusals and failures of the door are answers of Envoy itself. */
function checkReplies(stack: Tree): readonly Finding[] {
  return itemsOf(get(stack, 'local_reply_config', 'mappers')).flatMap((mapper) => {
    const code = get(mapper, 'status_code')
    if (code === null || /^[45]\d\d$/.test(textOf(code) ?? '')) return []
    return [at(code)('fails_open', 'a refusal looks like a success to clients', 'remove status_code, or set an error')]
  })
}

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
            'Envoy merges slashes before it asks: //admin is checked as /admin',
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
