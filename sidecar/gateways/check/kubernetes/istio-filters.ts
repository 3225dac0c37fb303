/** What is unsafe in an EnvoyFilter of Istio. */
import { entriesOf, get, isFalse, itemsOf, type Scalar, type Tree, textOf, walk } from '../../read/tree.ts'
import { checkParts } from '../envoy/envoy.ts'
import {
  checkAskingFilter,
  checkConnection,
  checkFilters,
  checkPlaced,
  isHarmless,
  kindOf,
  typeOf,
  unwrapped,
} from '../envoy/filters.ts'
import { at, type Finding } from '../finding.ts'

/** With CUSTOM, rbac finds the requests that ext_authz asks about. */
const ASKERS = /(^|\.)(ext_authz|rbac)$/
const PARTS = ['CLUSTER', 'HTTP_ROUTE', 'ROUTE_CONFIGURATION', 'VIRTUAL_HOST', 'LISTENER', 'FILTER_CHAIN']

type Patch = {
  readonly applyTo: string
  readonly operation: string
  readonly value: Tree | null
  /** The filter that the patch names; null: every filter. */
  readonly target: string | null
  readonly here: ReturnType<typeof at>
  readonly match: Tree | null
}

function patchesOf(filter: Tree): readonly Patch[] {
  return itemsOf(get(filter, 'spec', 'configPatches')).map((patch) => {
    const match = get(patch, 'match')
    const chain = get(match, 'listener', 'filterChain', 'filter')
    const operation = get(patch, 'patch', 'operation')
    const applyTo = textOf(get(patch, 'applyTo')) ?? ''
    return {
      applyTo,
      operation: textOf(operation) ?? '',
      value: get(patch, 'patch', 'value'),
      target: textOf(applyTo === 'HTTP_FILTER' ? get(chain, 'subFilter', 'name') : get(chain, 'name')),
      here: at(operation ?? patch),
      match,
    }
  })
}

export function checkFilter(filter: Tree): readonly Finding[] {
  return patchesOf(filter).flatMap((patch) => [
    ...checkPatch(patch),
    ...(patch.value === null ? [] : [...checkParts(patch.value), ...checkValue(patch.value)]),
  ])
}

function checkPatch(patch: Patch): readonly Finding[] {
  const { applyTo, here } = patch
  if (applyTo === 'HTTP_FILTER') return checkHttpFilter(patch)
  if (applyTo === 'NETWORK_FILTER') return checkNetworkFilter(patch)
  if (PARTS.includes(applyTo)) return stacksOf(patch)
  return [here('unseen', `a patch of ${applyTo} may change requests, or who is asked`, 'judge it by hand')]
}

function checkHttpFilter({ operation, value, target, here }: Patch): readonly Finding[] {
  const touches = target === null || ASKERS.test(target)
  if (operation === 'REMOVE')
    return touches ? [here('skips_question', 'ext_authz is removed', 'remove this patch')] : []
  if (operation === 'REPLACE' && touches)
    return [here('unseen', 'ext_authz is replaced by something else', 'change it by MERGE')]
  if (operation === 'MERGE')
    return [
      ...(value === null ? [] : checkAskingFilter(value)),
      ...(target !== null && /rbac$/.test(target)
        ? [here('skips_question', 'a change of rbac may change who is asked about', 'remove this patch')]
        : []),
    ]
  if (value === null || kindOf(value) === 'ext_authz' || isHarmless(value)) return []
  const before =
    operation === 'INSERT_FIRST' || (operation === 'INSERT_BEFORE' && /(ext_authz|jwt_authn)$/.test(target ?? ''))
  if (before) return checkPlaced(value, false)
  return [
    here(
      'other_bytes',
      'this filter may come after ext_authz, and change the request that was checked',
      'insert it before ext_authz',
    ),
  ]
}

function checkNetworkFilter(patch: Patch): readonly Finding[] {
  const { operation, value, here } = patch
  if (operation === 'MERGE') return []
  if (operation === 'REMOVE')
    return [here('unseen', 'a filter of connections is removed', 'change it by MERGE, or judge it by hand')]
  return [...(value === null ? [] : checkConnection(value)), ...stacksOf(patch)]
}

/** Listeners and chains that are added have to ask, too. */
function stacksOf({ operation, value, applyTo }: Patch): readonly Finding[] {
  if (value === null || operation === 'MERGE' || operation === 'REMOVE') return []
  const managers = [...walk(value)].filter((node) => typeOf(node) === 'HttpConnectionManager')
  return [
    ...managers.flatMap((node) => checkFilters(unwrapped(node) ?? node)),
    ...(applyTo === 'FILTER_CHAIN' ? itemsOf(get(value, 'filters')).flatMap((one) => checkConnection(one)) : []),
  ]
}

function checkValue(value: Tree): readonly Finding[] {
  return [...walk(value)].flatMap((node) => {
    const remote = get(node, 'use_remote_address')
    const underscores = get(node, 'headers_with_underscores_action')
    const off = entriesOf(get(node, 'typed_per_filter_config')).filter(({ key }) => /\.rbac$/.test(key))
    return [
      ...(remote !== null && isFalse(remote)
        ? [
            at(remote)(
              'forgeable',
              'Envoy believes X-Forwarded-For and x-envoy-* of clients',
              'set use_remote_address: true',
            ),
          ]
        : []),
      ...(textOf(underscores) === 'ALLOW' && underscores !== null
        ? [
            at(underscores)(
              'forgeable',
              'fields with underscores pass, which many services read as X-Auth-Subject and its like',
              'set headers_with_underscores_action: REJECT_REQUEST',
            ),
          ]
        : []),
      ...off.map((entry) =>
        at(entry)(
          'skips_question',
          'rbac of a route changes who is asked about',
          'remove it, and say public in the route file',
        ),
      ),
    ]
  })
}

/** It puts ext_authz of its own before everything else, for every listener of a gateway. */
export const asksByFilter = (filter: Tree): boolean =>
  patchesOf(filter).some(
    ({ applyTo, operation, value, match }) =>
      applyTo === 'HTTP_FILTER' &&
      operation === 'INSERT_FIRST' &&
      value !== null &&
      kindOf(value) === 'ext_authz' &&
      isWide(match),
  )

/** Whether it merges one of the values under the key, for every listener of a gateway. */
export const hasPatch = (filter: Tree, key: string, values: readonly unknown[]): boolean =>
  patchesOf(filter).some(
    ({ operation, value, match }) =>
      operation === 'MERGE' &&
      value !== null &&
      isWide(match) &&
      [...walk(value)].some((node) => {
        const found = get(node, key)
        const scalar: Scalar = found?.kind === 'scalar' ? found.value : null
        return found !== null && values.includes(scalar)
      }),
  )

/** Names no port, address, proxy or chain. */
function isWide(match: Tree | null): boolean {
  const context = textOf(get(match, 'context')) ?? 'ANY'
  const narrow = [
    ...entriesOf(match).filter(({ key }) => !['context', 'listener'].includes(key)),
    ...entriesOf(get(match, 'listener')).filter(({ key }) => key !== 'filterChain'),
    ...entriesOf(get(match, 'listener', 'filterChain')).filter(({ key }) => key !== 'filter'),
  ]
  return ['ANY', 'GATEWAY'].includes(context) && narrow.length === 0
}
