/** What is unsafe in Envoy's routes: settings of a route that switch ext_authz off, and rewriting after the decision. */
import { IDENTITY_FIELDS } from '../../http/door-fields.ts'
import { entriesOf, get, isOn, itemsOf, type Tree, textOf } from '../read/tree.ts'
import { at, type Finding } from './finding.ts'

const REWRITES = ['prefix_rewrite', 'regex_rewrite', 'path_rewrite_policy', 'path_rewrite']
const HOST_REWRITES = ['host_rewrite_header', 'host_rewrite_path_regex']

/** `node`: any part of a configuration. */
export function checkRoutes(node: Tree): readonly Finding[] {
  return [...switchedOff(node), ...rewritten(node), ...added(node), ...upgraded(node)]
}

function switchedOff(node: Tree): readonly Finding[] {
  const configs = ['typed_per_filter_config', 'per_filter_config'].flatMap((key) => entriesOf(get(node, key)))
  return configs.flatMap(({ key, value }) => {
    const type = textOf(get(value, '@type')) ?? ''
    const inner = /\.FilterConfig$/.test(type) ? get(value, 'config') : value
    const isOurs = /ext_authz|ExtAuthzPerRoute/.test(`${key} ${type} ${textOf(get(inner, '@type')) ?? ''}`)
    if (!isOurs) return []
    const off = [get(value, 'disabled'), get(inner, 'disabled')].find(isOn)
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
  return itemsOf(get(node, 'request_headers_to_add')).flatMap((item) => {
    const name = textOf(get(item, 'header', 'key')) ?? textOf(get(item, 'key'))
    if (name === null || !IDENTITY_FIELDS.includes(name.toLowerCase())) return []
    return [at(item)('forgeable', `${name} is set after the decision`, 'leave identity fields to the door')]
  })
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
