/** What is unsafe in a VirtualService and a Gateway of Istio. */
import { entriesOf, get, itemsOf, type Tree, textOf } from '../../read/tree.ts'
import { at, type Finding } from '../finding.ts'
import { fieldChanges, nameOf, namespaceOf } from './objects.ts'

const KNOWN =
  `name match redirect directResponse delegate rewrite timeout retries fault mirror mirrors mirrorPercent mirror_percent
  mirrorPercentage corsPolicy headers route`.split(/\s+/)
const UNREAD = 'connections are passed on unread: nobody is asked'

type Facts = { readonly services: readonly Tree[]; readonly gateways: readonly Tree[] }

export function checkService(service: Tree, { services, gateways }: Facts): readonly Finding[] {
  const unread = ['tls', 'tcp'].flatMap((key) => itemsOf(get(service, 'spec', key)))
  return [
    ...unread.map((one) => at(one)('skips_question', UNREAD, 'route it by http')),
    ...itemsOf(get(service, 'spec', 'http')).flatMap((route) => checkRoute(route, service, services)),
    ...itemsOf(get(service, 'spec', 'gateways'))
      .filter((name) => textOf(name) !== 'mesh' && !gateways.some((one) => isNamed(one, textOf(name) ?? '', service)))
      .map((name) =>
        at(name)(
          'unseen',
          `the Gateway ${textOf(name)} is not in the files: whether it asks is not known`,
          'check it, too',
        ),
      ),
  ]
}

/** `name`: with a namespace before a slash, or of the namespace of the VirtualService. */
function isNamed(gateway: Tree, name: string, service: Tree): boolean {
  const wanted = name.includes('/') ? name : `${namespaceOf(service)}/${name}`
  return `${namespaceOf(gateway)}/${nameOf(gateway)}` === wanted
}

function checkRoute(route: Tree, service: Tree, services: readonly Tree[]): readonly Finding[] {
  const rewrite = get(route, 'rewrite')
  const delegate = get(route, 'delegate')
  const found = services.some(
    (one) =>
      nameOf(one) === textOf(get(delegate, 'name')) &&
      namespaceOf(one) === (textOf(get(delegate, 'namespace')) ?? namespaceOf(service)),
  )
  return [
    ...(rewrite === null
      ? []
      : [at(rewrite)('other_bytes', 'the request is rewritten after the decision', 'route it as it is')]),
    ...fieldChanges(get(route, 'headers', 'request')),
    ...itemsOf(get(route, 'route')).flatMap((to) => fieldChanges(get(to, 'headers', 'request'))),
    ...(delegate === null || found
      ? []
      : [at(delegate)('unseen', 'the VirtualService that routes these requests is not in the files', 'check it, too')]),
    ...entriesOf(route)
      .filter(({ key }) => !KNOWN.includes(key))
      .map((entry) =>
        at(entry)('unseen', `${entry.key} of a route is not known here: it may change requests`, 'judge it by hand'),
      ),
  ]
}

const READ = ['HTTP', 'HTTPS', 'HTTP2', 'GRPC', 'GRPC-WEB']

export function checkGateway(gateway: Tree): readonly Finding[] {
  return itemsOf(get(gateway, 'spec', 'servers')).flatMap((server) => {
    const protocol = get(server, 'port', 'protocol')
    const mode = get(server, 'tls', 'mode')
    const passes = /PASSTHROUGH/.test(textOf(mode) ?? '') ? mode : null
    const unread = passes ?? (READ.includes((textOf(protocol) ?? '').toUpperCase()) ? null : (protocol ?? server))
    return unread === null ? [] : [at(unread)('skips_question', UNREAD, 'use HTTPS with a certificate, or HTTP')]
  })
}
