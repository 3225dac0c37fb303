/** What is unsafe in Envoy's ext_authz filter, and in the cluster that it asks. */

import { type Entry, folded, get, isFalse, isOn, isTrue, itemsOf, type Tree, textOf, walk } from '../../read/tree.ts'
import { at, type Finding, type FindingCode } from '../finding.ts'
import { unknownMembers } from '../unknown-members.ts'
import { kindOf, typeOf, unwrapped } from './filters.ts'

type Rule = { readonly key: string; readonly code: FindingCode; readonly message: string; readonly fix: string }

/** Each may only be absent or false. */
const OFF: readonly Rule[] = [
  {
    key: 'failure_mode_allow',
    code: 'fails_open',
    message: 'requests pass when the door does not answer',
    fix: 'set failure_mode_allow: false',
  },
  {
    key: 'clear_route_cache',
    code: 'other_bytes',
    message: 'the route is chosen again after the decision',
    fix: 'set clear_route_cache: false',
  },
  {
    key: 'filter_enabled_metadata',
    code: 'skips_question',
    message: 'only requests with some metadata are asked about',
    fix: 'remove filter_enabled_metadata',
  },
  {
    key: 'allowed_headers',
    code: 'other_bytes',
    message: 'the door sees some fields only, and cannot refuse the others',
    fix: 'remove allowed_headers',
  },
  {
    key: 'disallowed_headers',
    code: 'other_bytes',
    message: 'the door does not see fields that are forwarded',
    fix: 'remove disallowed_headers',
  },
  {
    key: 'http_service',
    code: 'other_bytes',
    message: 'over HTTP the door gets few fields, joined, and no scheme',
    fix: 'ask over grpc_service',
  },
  {
    key: 'decoder_header_mutation_rules',
    code: 'forgeable',
    message: 'Envoy may leave out what the door says about the bearer, so that what the client says remains',
    fix: 'remove decoder_header_mutation_rules',
  },
]
/** What is checked below, and what changes neither the question nor what follows from the answer. */
const KNOWN = new Set(
  `@type grpc_service transport_api_version encode_raw_headers filter_enabled deny_at_disable with_request_body status_on_error stat_prefix
  failure_mode_allow_header_add metadata_context_namespaces typed_metadata_context_namespaces route_metadata_context_namespaces
  route_typed_metadata_context_namespaces filter_metadata include_peer_certificate include_tls_session bootstrap_metadata_labels_key
  charge_cluster_response_stats enable_dynamic_metadata_ingestion emit_filter_state_stats max_denied_response_body_bytes validate_mutations
  enforce_response_header_limits`
    .split(/\s+/)
    .map(folded),
)

/** `whole`: the filter itself, and not a patch of it. */
export function checkExtAuthz(filter: Tree, whole: boolean): readonly Finding[] {
  const off = OFF.flatMap(({ key, code, message, fix }) => {
    const value = get(filter, key)
    return isOn(value) ? [at(value)(code, message, fix)] : []
  })
  const isKnown = ({ key, value }: Entry): boolean =>
    !isOn(value) || KNOWN.has(folded(key)) || OFF.some((rule) => folded(rule.key) === folded(key))
  const raw = get(filter, 'encode_raw_headers')
  const timeout = get(filter, 'grpc_service', 'timeout')
  const hidden =
    isTrue(raw) || (raw === null && !whole)
      ? []
      : [
          at(raw ?? filter)(
            'other_bytes',
            'repeated fields come to the door joined, so that it cannot see that there were two',
            'set encode_raw_headers: true',
          ),
        ]
  return [
    ...off,
    ...hidden,
    ...unknownMembers(filter, 'ext_authz', isKnown),
    ...checkShare(filter),
    ...checkBody(filter),
    ...checkStatus(filter),
    ...(timeout === null ? [] : checkTimeout(timeout)),
  ]
}

function checkShare(filter: Tree): readonly Finding[] {
  const enabled = get(filter, 'filter_enabled')
  if (enabled === null || isTrue(get(filter, 'deny_at_disable', 'default_value'))) return []
  const fraction = get(enabled, 'default_value')
  const share = Number(textOf(get(fraction, 'numerator')) ?? 0)
  const of = { HUNDRED: 100, TEN_THOUSAND: 10_000, MILLION: 1_000_000 }[
    textOf(get(fraction, 'denominator')) ?? 'HUNDRED'
  ]
  if (of !== undefined && share >= of && get(enabled, 'runtime_key') === null) return []
  return [
    at(enabled)(
      'skips_question',
      'a share of the requests is not asked about, or can be at run time',
      'remove filter_enabled, or set deny_at_disable: {default_value: true}',
    ),
  ]
}

function checkBody(filter: Tree): readonly Finding[] {
  const partial = get(filter, 'with_request_body', 'allow_partial_message')
  return isOn(partial)
    ? [at(partial)('other_bytes', 'the door judges the beginning of a body only', 'set allow_partial_message: false')]
    : []
}

function checkStatus(filter: Tree): readonly Finding[] {
  const code = get(filter, 'status_on_error', 'code')
  const text = textOf(code) ?? ''
  if (code === null || /^[45]\d\d$/.test(text) || /[a-z]/.test(text)) return []
  return [
    at(code)('fails_open', 'a failure of the door looks like a success to clients', 'set code: ServiceUnavailable'),
  ]
}

const TIMEOUT_SECONDS_MAX = 10

/** `timeout`: how long the gateway waits for the door, or what has no such setting. Zero is without end. */
export function checkTimeout(timeout: Tree): readonly Finding[] {
  const [, length, unit] = /^([\d.]+)(ms|s)$/.exec(textOf(timeout) ?? '') ?? []
  const seconds = Number(length ?? Number.NaN) / (unit === 'ms' ? 1_000 : 1)
  if (seconds > 0 && seconds <= TIMEOUT_SECONDS_MAX) return []
  return [
    at(timeout)(
      'fails_open',
      'a door that hangs holds requests for minutes, and with them the gateway',
      'set timeout: 2s',
    ),
  ]
}

/** A door must know that this gateway asks, and the gateway that the door answers. */
export function doorClusters(stack: Tree, clusters: readonly Tree[]): readonly Finding[] {
  return itemsOf(get(stack, 'http_filters')).flatMap((filter) => {
    if (kindOf(filter) !== 'ext_authz') return []
    const service = get(unwrapped(get(filter, 'typed_config')), 'grpc_service')
    const google = get(service, 'google_grpc')
    if (google !== null) return googleDoor(google, service)
    const name = get(service, 'envoy_grpc', 'cluster_name')
    const cluster = clusters.find((one) => textOf(get(one, 'name')) === textOf(name))
    if (name === null) return []
    if (cluster === undefined)
      return [at(name)('unseen', `the cluster ${textOf(name)} is not in the files`, 'check the file that has it, too')]
    const usesPipe = [...walk(cluster)].some((node) => get(node, 'pipe', 'path') !== null)
    const tls = [...walk(cluster)].find((node) => typeOf(node) === 'UpstreamTlsContext')
    const proves = isProving(tls) || saysWho(service)
    const trusts =
      tls === undefined ||
      [...walk(tls)].some((node) => get(node, 'trusted_ca') !== null || get(node, 'system_root_certs') !== null)
    const unverified =
      tls === undefined ? null : [...walk(tls)].find((node) => get(node, 'trust_chain_verification') !== null)
    return [
      ...(usesPipe || proves ? [] : [at(name)('forgeable', NAMELESS, NAMED)]),
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

const NAMELESS = 'Envoy does not say who it is to the door, which then answers nobody, or everybody'
const NAMED = 'give the cluster a client certificate, a pipe, or initial_metadata with x-portcullis-caller'
const saysWho = (service: Tree | null): boolean => get(service, 'initial_metadata') !== null

/** Without credentials gRPC's own library speaks in the clear. */
function googleDoor(google: Tree, service: Tree | null): readonly Finding[] {
  const target = get(google, 'target_uri')
  const proves = get(google, 'channel_credentials', 'ssl_credentials', 'private_key') !== null || saysWho(service)
  if (proves || /^unix:/.test(textOf(target) ?? '')) return []
  return [at(target ?? google)('forgeable', NAMELESS, 'set envoy_grpc, with a cluster that has a client certificate')]
}
