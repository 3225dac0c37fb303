/** What is unsafe in the mesh configuration and the objects of Istio. */

import { UnreadableError } from '../../read/source.ts'
import { entriesOf, folded, get, isOn, itemsOf, type Tree, textOf } from '../../read/tree.ts'
import { readYaml } from '../../read/yaml-toml.ts'
import { checkTimeout } from '../envoy/ext-authz.ts'
import { at, type Finding } from '../finding.ts'
import { unknownMembers } from '../unknown-members.ts'
import { asksByFilter, checkFilter } from './istio-filters.ts'
import { checkPolicies } from './istio-policies.ts'
import { checkGateway, checkService } from './istio-routes.ts'
import { groupOf, kindOfObject, nameOf } from './objects.ts'

/** The mesh configuration: a file of its own, of an installation, or as text in the ConfigMap. */
export function meshConfigOf(tree: Tree): Tree | null {
  if (get(tree, 'extensionProviders') !== null) return tree
  const inside = get(tree, 'spec', 'meshConfig') ?? get(tree, 'spec', 'values', 'meshConfig') ?? get(tree, 'meshConfig')
  if (inside !== null) return inside
  const text = meshTextOf(tree)
  return text === null ? null : meshIn(text)
}

/** Keys of a ConfigMap count as they are written. */
const meshTextOf = (tree: Tree): Tree | null =>
  kindOfObject(tree) === 'ConfigMap'
    ? (entriesOf(get(tree, 'data')).find(({ key }) => key === 'mesh')?.value ?? null)
    : null

/** Null for a text of somebody else, and for one that cannot be read. */
function meshIn(text: Tree): Tree | null {
  try {
    const [mesh = null] = readYaml(textOf(text) ?? '', text.file, text.line + 1)
    return mesh?.kind === 'map' ? mesh : null
  } catch (err) {
    if (err instanceof UnreadableError) return null
    throw err
  }
}

/** The ConfigMap that Istio reads is named istio, or istio and a revision. */
const isUnreadableMesh = (tree: Tree): boolean =>
  meshTextOf(tree) !== null && meshConfigOf(tree) === null && /^istio(-.+)?$/.test(nameOf(tree))

const isOfIstio = (tree: Tree): boolean => /(^|\.)(istio\.io|sailoperator\.io)$/.test(groupOf(tree))
export const isIstio = (tree: Tree): boolean => isOfIstio(tree) || meshConfigOf(tree) !== null || isUnreadableMesh(tree)

/** Kinds that are checked, or that neither route nor change a request of a gateway after the question. */
const KINDS =
  `AuthorizationPolicy DestinationRule EnvoyFilter Gateway Istio IstioOperator IstioCNI IstioRevision PeerAuthentication ProxyConfig
  RequestAuthentication ServiceEntry Sidecar Telemetry VirtualService WorkloadEntry WorkloadGroup ZTunnel`.split(/\s+/)

/** `trees`: of Istio. `all`: every object of the input. */
export function checkIstio(trees: readonly Tree[], all: readonly Tree[]): readonly Finding[] {
  const meshes = trees.map(meshConfigOf).filter((mesh) => mesh !== null)
  const providers = meshes.flatMap((mesh) => itemsOf(get(mesh, 'extensionProviders')))
  const kind = (name: string): readonly Tree[] => trees.filter((tree) => kindOfObject(tree) === name)
  const custom = kind('AuthorizationPolicy').filter((tree) => textOf(get(tree, 'spec', 'action')) === 'CUSTOM')
  const filters = kind('EnvoyFilter')
  const gateways = kind('Gateway')
  const services = kind('VirtualService')
  const facts = { custom, filters, gateways, providers: meshes.length > 0 ? providers : null, meshes, all }
  const [first] = trees
  return [
    ...meshes.flatMap(checkMesh),
    ...trees
      .filter(isUnreadableMesh)
      .map((tree) =>
        at(meshTextOf(tree) ?? tree)('unseen', 'the mesh configuration cannot be read as YAML', 'write it as a map'),
      ),
    ...providers.flatMap((provider) => checkProvider(provider, kind('DestinationRule'))),
    ...checkPolicies(facts),
    ...filters.flatMap(checkFilter),
    ...services.flatMap((service) => checkService(service, { services, gateways })),
    ...gateways.flatMap(checkGateway),
    ...trees
      .filter((tree) => isOfIstio(tree) && !KINDS.includes(kindOfObject(tree)))
      .map((tree) =>
        at(tree)('unseen', `a ${kindOfObject(tree)} may change requests after the decision`, 'judge it by hand'),
      ),
    ...(custom.length === 0 && gateways.length === 0 && !filters.some(asksByFilter) && first !== undefined
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
  return normalization !== null && !['NONE', 'BASE', 'DEFAULT'].includes(textOf(normalization) ?? '')
    ? [
        at(normalization)(
          'other_bytes',
          `${textOf(normalization)} changes the path before the question: //admin is checked as /admin`,
          'set normalization: NONE or BASE',
        ),
      ]
    : []
}

const OF_PROVIDER =
  `service port timeout failopen clearroutecache statusonerror includerequestbodyincheck initialmetadata pathprefix
  includerequestheadersincheck includeheadersincheck includeadditionalheadersincheck headerstoupstreamonallow headerstodownstreamondeny
  headerstodownstreamonallow`.split(/\s+/)

function checkProvider(provider: Tree, rules: readonly Tree[]): readonly Finding[] {
  const http = get(provider, 'envoyExtAuthzHttp')
  const grpc = get(provider, 'envoyExtAuthzGrpc')
  const settings = grpc ?? http
  if (settings === null) return []
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
    ...checkTimes(settings),
    ...checkTls(settings, rules),
    ...unknownMembers(settings, 'a provider', ({ key }) => OF_PROVIDER.includes(folded(key))),
  ]
}

/** A door must know that this gateway asks, and the gateway that the door answers. */
function checkTls(settings: Tree, rules: readonly Tree[]): readonly Finding[] {
  const service = (textOf(get(settings, 'service')) ?? '').replace(/^.*\//, '')
  const port = textOf(get(settings, 'port'))
  const own = rules.filter((rule) => matchesHost(textOf(get(rule, 'spec', 'host')) ?? '', service))
  const found = own.map((rule) => {
    const policy = get(rule, 'spec', 'trafficPolicy')
    const ofPort = itemsOf(get(policy, 'portLevelSettings')).find((one) => textOf(get(one, 'port', 'number')) === port)
    return get(ofPort ?? policy, 'tls')
  })
  const proves = found.some((tls) => /^(ISTIO_)?MUTUAL$/.test(textOf(get(tls, 'mode')) ?? ''))
  const unverified = found.map((tls) => get(tls, 'insecureSkipVerify')).filter(isOn)
  return [
    ...(proves || get(settings, 'initialMetadata') !== null
      ? []
      : [
          at(settings)(
            'forgeable',
            'the gateway does not say who it is to the door, which then answers nobody, or everybody',
            'add a DestinationRule for the service with tls: {mode: MUTUAL}, as gateway-config istio prints it',
          ),
        ]),
    ...unverified.map((value) =>
      at(value)('forgeable', 'the certificate of the door is not verified', 'set insecureSkipVerify: false'),
    ),
  ]
}

const matchesHost = (host: string, service: string): boolean =>
  host === service || (host.startsWith('*') && service.endsWith(host.slice(1)))

function checkTimes(settings: Tree): readonly Finding[] {
  const timeout = get(settings, 'timeout')
  const status = get(settings, 'statusOnError')
  return [
    // Without it Istio waits for 600 seconds.
    ...checkTimeout(timeout ?? settings),
    ...(status === null || /^[45]\d\d$/.test(textOf(status) ?? '')
      ? []
      : [
          at(status)('fails_open', 'a failure of the door looks like a success to clients', "set statusOnError: '503'"),
        ]),
  ]
}
