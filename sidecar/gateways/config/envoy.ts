/** Prints a bootstrap of Envoy that asks the door about the raw request, and forwards exactly what the door has decided. */
import { stringify } from 'yaml'
import { CALLER_FIELD } from '../../http/door-fields.ts'
import { type ConfigFile, DOOR_TIMEOUT_SECONDS, type DoorAccess, type GatewayPlan, type HostAndPort } from '../plan.ts'

const TYPE = 'type.googleapis.com/envoy.extensions'
const DOOR_CLUSTER = 'portcullis_door'
const SERVICE_CLUSTER = 'service'
const CONNECT_TIMEOUT = '1s'
/** An environment variable for the secret, since Envoy 1.40 ends at its first request when the value is a file. */
const SECRET_VARIABLE = 'PORTCULLIS_CALLER_SECRET'

export function envoyConfig(plan: GatewayPlan): readonly ConfigFile[] {
  const bootstrap = {
    static_resources: { listeners: [listener(plan)], clusters: [doorCluster(plan.door), serviceCluster(plan.service)] },
  }
  return [{ name: 'envoy.yaml', text: stringify(bootstrap, { lineWidth: 0 }) }]
}

function listener(plan: GatewayPlan): object {
  const connections = {
    '@type': `${TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: 'portcullis',
    // Envoy sets X-Forwarded-For and its own headers from the connection, and not from the client's fields.
    use_remote_address: true,
    merge_slashes: false,
    path_with_escaped_slashes_action: plan.encodedSlash ? 'KEEP_UNCHANGED' : 'REJECT_REQUEST',
    common_http_protocol_options: { headers_with_underscores_action: 'REJECT_REQUEST' },
    http_filters: [
      // Envoy sends no trailers to a service with HTTP/1.1.
      ...(plan.service.http2 ? [withoutTrailers] : []),
      { name: 'envoy.filters.http.ext_authz', typed_config: extAuthz(plan) },
      { name: 'envoy.filters.http.router', typed_config: { '@type': `${TYPE}.filters.http.router.v3.Router` } },
    ],
    route_config: {
      virtual_hosts: [
        // Matches every host, because the door itself refuses unserved hosts with 421.
        {
          name: 'service',
          domains: ['*'],
          routes: [{ match: { prefix: '/' }, route: { cluster: SERVICE_CLUSTER } }],
        },
      ],
    },
  }
  return {
    name: 'portcullis',
    address: socket(plan.listen),
    filter_chains: [
      { filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: connections }] },
    ],
  }
}

/** Removes trailers: they come after the question, and a client's could be an X-Auth-Subject. */
const withoutTrailers = {
  name: 'envoy.filters.http.header_mutation',
  typed_config: {
    '@type': `${TYPE}.filters.http.header_mutation.v3.HeaderMutation`,
    mutations: {
      request_trailers_mutations: [{ remove_on_match: { key_matcher: { safe_regex: { regex: '.*' } } } }],
    },
  },
}

/** The configuration of the filter. Istio and others reach the same in other ways. */
function extAuthz({ door, bodyBytesMax }: GatewayPlan): object {
  const secretFile = door.kind === 'unix' ? null : door.secretFile
  return {
    '@type': `${TYPE}.filters.http.ext_authz.v3.ExtAuthz`,
    transport_api_version: 'V3',
    grpc_service: {
      envoy_grpc: { cluster_name: DOOR_CLUSTER },
      timeout: `${DOOR_TIMEOUT_SECONDS}s`,
      ...(secretFile !== null && {
        initial_metadata: [{ key: CALLER_FIELD, value: `%ENVIRONMENT(${SECRET_VARIABLE})%` }],
      }),
    },
    failure_mode_allow: false,
    status_on_error: { code: 'ServiceUnavailable' },
    // Raw headers keep repeated fields apart, which a joined value would hide.
    encode_raw_headers: true,
    clear_route_cache: false,
    ...(bodyBytesMax !== null && {
      with_request_body: { max_request_bytes: bodyBytesMax, allow_partial_message: false, pack_as_bytes: true },
    }),
  }
}

function doorCluster(door: DoorAccess): object {
  return {
    ...cluster(
      DOOR_CLUSTER,
      door.kind === 'unix' ? { pipe: { path: door.path } } : socket(door.at),
      door.kind === 'unix',
    ),
    typed_extension_protocol_options: HTTP2,
    ...(door.kind === 'tls' && {
      transport_socket: {
        name: 'envoy.transport_sockets.tls',
        typed_config: {
          '@type': `${TYPE}.transport_sockets.tls.v3.UpstreamTlsContext`,
          sni: door.at.host,
          common_tls_context: {
            ...(door.client !== null && {
              tls_certificates: [
                { certificate_chain: { filename: door.client.cert }, private_key: { filename: door.client.key } },
              ],
            }),
            validation_context: {
              trusted_ca: { filename: door.ca },
              match_typed_subject_alt_names: [{ san_type: sanType(door.at.host), matcher: { exact: door.at.host } }],
            },
          },
        },
      },
    }),
  }
}

const sanType = (host: string): string => (/^[\d.]+$|:/.test(host) ? 'IP_ADDRESS' : 'DNS')

function serviceCluster(service: GatewayPlan['service']): object {
  return {
    ...cluster(SERVICE_CLUSTER, socket(service), false),
    ...(service.http2 && { typed_extension_protocol_options: HTTP2 }),
    ...(service.tls && {
      transport_socket: {
        name: 'envoy.transport_sockets.tls',
        typed_config: {
          '@type': `${TYPE}.transport_sockets.tls.v3.UpstreamTlsContext`,
          sni: service.host,
          common_tls_context: {
            validation_context: {
              trusted_ca: { filename: '/etc/ssl/certs/ca-certificates.crt' },
              match_typed_subject_alt_names: [{ san_type: sanType(service.host), matcher: { exact: service.host } }],
            },
          },
        },
      },
    }),
  }
}

const HTTP2 = {
  'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
    '@type': `${TYPE}.upstreams.http.v3.HttpProtocolOptions`,
    explicit_http_config: { http2_protocol_options: {} },
  },
}

const cluster = (name: string, address: object, isStatic: boolean): object => ({
  name,
  type: isStatic ? 'STATIC' : 'STRICT_DNS',
  connect_timeout: CONNECT_TIMEOUT,
  load_assignment: {
    cluster_name: name,
    endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }],
  },
})

const socket = ({ host, port }: HostAndPort): object => ({ socket_address: { address: host, port_value: port } })
