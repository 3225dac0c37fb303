/** Trailers that Envoy passes on: fields that follow the body, which no door sees and some services take for header fields. */
import { get, isOn, itemsOf, type Tree, textOf, walk } from '../../read/tree.ts'
import { at, type Finding } from '../finding.ts'
import { isUpstream, kindOf, unwrapped } from './filters.ts'

/** `nodes`: every part of the input. `clusters`: among them. */
export function checkTrailers(
  stack: Tree,
  { nodes, clusters }: { readonly nodes: readonly Tree[]; readonly clusters: readonly Tree[] },
): readonly Finding[] {
  if (itemsOf(get(stack, 'http_filters')).some(removesTrailers)) return []
  const served = new Set(nodes.flatMap(servedBy))
  const ofClusters = clusters
    .filter((cluster) => served.has(textOf(get(cluster, 'name'))))
    .flatMap((cluster) => [
      get(cluster, 'http2_protocol_options'),
      ...[...walk(cluster)].filter(isUpstream).map((options) => passesTrailers(unwrapped(options))),
    ])
  const enabled = get(stack, 'http_protocol_options', 'enable_trailers')
  return [...ofClusters, isOn(enabled) ? enabled : null]
    .filter((place) => place !== null)
    .map((place) =>
      at(place)(
        'forgeable',
        'a client may send X-Auth-Subject and its like in trailers, which the door does not see',
        'remove request trailers by a header_mutation filter, as gateway-config envoy prints it for HTTP/2',
      ),
    )
}

/** Clusters that a route names. */
const servedBy = (node: Tree): readonly (string | null)[] => {
  const action = get(node, 'route')
  const weighted = itemsOf(get(action, 'weighted_clusters', 'clusters')).map((one) => textOf(get(one, 'name')))
  return [textOf(get(action, 'cluster')), ...weighted].filter((name) => name !== null)
}

/** Envoy drops trailers on the way to HTTP/1.1. */
const passesTrailers = (options: Tree | null): Tree | null =>
  get(options, 'explicit_http_config', 'http2_protocol_options') ??
  get(options, 'explicit_http_config', 'http3_protocol_options') ??
  get(options, 'auto_config') ??
  get(options, 'use_downstream_protocol_config')

const EVERYTHING = /^\.[*+]$/

const removesTrailers = (filter: Tree): boolean =>
  kindOf(filter) === 'header_mutation' &&
  itemsOf(get(unwrapped(get(filter, 'typed_config')), 'mutations', 'request_trailers_mutations')).some((mutation) =>
    EVERYTHING.test(textOf(get(mutation, 'remove_on_match', 'key_matcher', 'safe_regex', 'regex')) ?? ''),
  )
