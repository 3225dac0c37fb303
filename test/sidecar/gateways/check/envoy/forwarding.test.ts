import { describe, expect, test } from 'vitest'
import { type Edit, edited, one, saying } from '../../edited.ts'
import { printed } from '../../printed.ts'

const ROUTER = '- name: envoy.filters.http.router'
const filter = (name: string): string => `- name: x
                    typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.${name}.v3.Any}
                  ${ROUTER}`

const upstreamLine = (name: string): string => `http_filters: [{name: envoy.filters.http.${name}}]`
/** In the cluster of the service. */
const upstream = (name: string): Edit => [
  '- name: service\n      type',
  `- name: service
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          ${upstreamLine(name)}
      type`,
]

describe('check-gateway of what Envoy forwards', () => {
  test.each<[string, Edit, string]>([
    ...['disallow_all: true', 'disallow_expression: {regex: x-auth-.*}', 'allow_all_routing_headers: true'].map(
      (rule): [string, Edit, string] => [
        `answers of the door that are left out by ${rule}`,
        ['clear_route_cache: false', `decoder_header_mutation_rules: {${rule}}`],
        `forgeable: decoder_header_mutation_rules: {${rule}}`,
      ],
    ),
    [
      'a setting of ext_authz that is not understood',
      ['clear_route_cache: false', 'never_heard_of: true'],
      'unseen: never_heard_of: true',
    ],
    ...[
      'cluster_header: x-backend',
      'weighted_clusters: {clusters: [{cluster_header: x-backend, weight: 1}]}',
      'request_mirror_policies: [{cluster_header: x-backend}]',
    ].map((to): [string, Edit, string] => [
      `a service that a client chooses by ${to}`,
      ['cluster: service', to],
      `other_bytes: ${to}`,
    ]),
    ...[
      'inline_cluster_specifier_plugin: {extension: {name: a}}',
      'cluster_specifier_plugin: a',
      'never_heard_of: {a: b}',
    ].map((to): [string, Edit, string] => [`a route by ${to}`, ['cluster: service', to], `unseen: ${to}`]),
    [
      'an action of a filter',
      ['match:\n', 'filter_action: {}\n                          match:\n'],
      'unseen: - filter_action: {}',
    ],
    [
      'Lua before it',
      ['- name: envoy.filters.http.ext_authz', `${filter('lua').split(ROUTER)[0]}- name: envoy.filters.http.ext_authz`],
      'unseen: - name: x',
    ],
    [
      'an unknown filter before it',
      [
        '- name: envoy.filters.http.ext_authz',
        `${filter('never_heard_of').split(ROUTER)[0]}- name: envoy.filters.http.ext_authz`,
      ],
      'unseen: - name: x',
    ],
    ...[
      ['skips_question', 'envoy.filters.network.tcp_proxy'],
      ['skips_question', 'envoy.filters.network.redis_proxy'],
      ['unseen', 'envoy.filters.network.never_heard_of'],
      ['unseen', 'mine'],
    ].map(([code, name]): [string, Edit, string] => [
      `a listener of ${name}`,
      ['  clusters:\n', `    - {name: raw, filter_chains: [{filters: [{name: ${name}}]}]}\n  clusters:\n`],
      `${code}: - {name: raw, filter_chains: [{filters: [{name: ${name}}]}]}`,
    ]),
    [
      'the chain of filters for other connections',
      [
        '  clusters:\n',
        '    - {name: raw, default_filter_chain: {filters: [{name: a, typed_config: {"@type": a.filters.network.tcp_proxy.v3.TcpProxy}}]}}\n  clusters:\n',
      ],
      'skips_question: - {name: raw, default_filter_chain: {filters: [{name: a, typed_config: {"@type": a.filters.network.tcp_proxy.v3.TcpProxy}}]}}',
    ],
    [
      'an identity that is set under another spelling',
      ['- match:\n', '- request_headers_to_add: [{header: {key: X_Auth_Subject}}]\n                          match:\n'],
      'forgeable: - request_headers_to_add: [{header: {key: X_Auth_Subject}}]',
    ],
    [
      'a listener of HTTP without filters',
      [
        '  clusters:\n',
        '    - {filter_chains: [{filters: [{name: a, typed_config: {"@type": a.filters.network.http_connection_manager.v3.HttpConnectionManager}}]}]}\n  clusters:\n',
      ],
      'skips_question: - {filter_chains: [{filters: [{name: a, typed_config: {"@type": a.filters.network.http_connection_manager.v3.HttpConnectionManager}}]}]}',
    ],
    [
      'datagrams that are passed on',
      [
        '  clusters:\n',
        '    - {name: raw, listener_filters: [{name: envoy.filters.udp_listener.udp_proxy}]}\n  clusters:\n',
      ],
      'skips_question: - {name: raw, listener_filters: [{name: envoy.filters.udp_listener.udp_proxy}]}',
    ],
    [
      'a door that is asked in the clear by the library of gRPC',
      [/envoy_grpc:\n\s+cluster_name: portcullis_door/, 'google_grpc: {target_uri: "a:1", stat_prefix: a}'],
      'forgeable: google_grpc: {target_uri: "a:1", stat_prefix: a}',
    ],
    [
      'a changing filter of the router',
      ['v3.Router\n', 'v3.Router\n                      upstream_http_filters: [{name: envoy.filters.http.lua}]\n'],
      'other_bytes: upstream_http_filters: [{name: envoy.filters.http.lua}]',
    ],
    ['a changing filter of a cluster', upstream('lua'), `other_bytes: ${upstreamLine('lua')}`],
  ])('names %s', (_name, edit, finding) => {
    expect(saying(edited('envoy', edit))).toContain(finding)
  })

  test.each(['FilterConfig', 'ExtAuthzPerRoute'])(
    'names a route that switches a filter of any name off by %s',
    (type) => {
      const route = `- typed_per_filter_config: {mine: {"@type": a.v3.${type}, disabled: true}}`
      const off: Edit = ['- match:\n', `${route}\n                          match:\n`]
      const files = edited('envoy', ['- name: envoy.filters.http.ext_authz', '- name: mine'], off)
      expect(saying(files)).toEqual([`skips_question: ${route}`])
    },
  )

  test.each(['disabled: true', 'check_settings: {grpc_service: {envoy_grpc: {cluster_name: other}}}'])(
    'names %s of a route in a TypedStruct, also within a FilterConfig',
    (settings) => {
      const url = 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute'
      for (const version of ['xds.type.v3', 'udpa.type.v1']) {
        const struct = `{"@type": type.googleapis.com/${version}.TypedStruct, type_url: ${url}, value: {${settings}}}`
        for (const config of [struct, `{"@type": a.v3.FilterConfig, config: ${struct}}`]) {
          const route = `- typed_per_filter_config: {mine: ${config}}`
          const files = edited('envoy', ['- match:\n', `${route}\n                          match:\n`])
          expect(saying(files)).toEqual([`skips_question: ${route}`])
        }
      }
    },
  )

  test.each<[string, Edit, string]>([
    [
      'an address that a client names',
      [
        '- name: service\n      type',
        '- name: service\n      original_dst_lb_config: {use_http_header: true}\n      type',
      ],
      'other_bytes: original_dst_lb_config: {use_http_header: true}',
    ],
    [
      'an endpoint that a client names',
      [
        '- name: service\n      type',
        '- name: service\n      load_balancing_policy: {policies: [{typed_config: {override_host_sources: [{header: a}]}}]}\n      type',
      ],
      'other_bytes: load_balancing_policy: {policies: [{typed_config: {override_host_sources: [{header: a}]}}]}',
    ],
    [
      'an administration that others reach',
      ['static_resources:', 'admin: {address: {socket_address: {address: 0.0.0.0, port_value: 1}}}\nstatic_resources:'],
      'forgeable: admin: {address: {socket_address: {address: 0.0.0.0, port_value: 1}}}',
    ],
    [
      'listeners that are found by a name',
      ['static_resources:', 'dynamic_resources: {lds_resources_locator: "xdstp://a/b"}\nstatic_resources:'],
      'unseen: dynamic_resources: {lds_resources_locator: "xdstp://a/b"}',
    ],
    [
      'refusals that look like a success',
      ['http_filters:', 'local_reply_config: {mappers: [{status_code: 200}]}\n                http_filters:'],
      'fails_open: local_reply_config: {mappers: [{status_code: 200}]}',
    ],
    ...['0s', '600s'].map((time): [string, Edit, string] => [
      `a door that is waited for without end: ${time}`,
      ['timeout: 2s', `timeout: ${time}`],
      `fails_open: timeout: ${time}`,
    ]),
  ])('names %s', (_name, edit, finding) => expect(saying(edited('envoy', edit))).toEqual([finding]))

  test.each<[string, Edit]>([
    [
      'an administration of this machine',
      [
        'static_resources:',
        'admin: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}\nstatic_resources:',
      ],
    ],
    ['a socket of it', ['static_resources:', 'admin: {address: {pipe: {path: /a}}}\nstatic_resources:']],
    ['the usual time of Envoy', [/ +timeout: 2s\n/, '']],
    [
      'another error',
      ['http_filters:', 'local_reply_config: {mappers: [{status_code: 404}]}\n                http_filters:'],
    ],
  ])('lets %s be', (_name, edit) => expect(saying(edited('envoy', edit))).toEqual([]))

  test('names trailers that a service of HTTP/2 would get, and clears them in what is printed for one', () => {
    const [file] = printed('envoy', { upstream: '{url: "http://127.0.0.1:3000", http2: true}' })
    const { name = '', text = '' } = file ?? {}
    expect(saying(one(name, text))).toEqual([])
    const without = text.replaceAll('header_mutation', 'cors')
    expect(saying(one(name, without))).toEqual(['forgeable: http2_protocol_options: {}'])
    const some = text.replace('regex: .*', 'regex: x-.*')
    expect(saying(one(name, some))).toEqual(['forgeable: http2_protocol_options: {}'])
    const older: Edit = ['- name: service\n      type', '- name: service\n      http2_protocol_options: {}\n      type']
    expect(saying(edited('envoy', older))).toEqual(['forgeable: http2_protocol_options: {}'])
    expect(saying(one(name, without.replaceAll('http2_protocol_options', 'http3_protocol_options')))).toEqual([
      'forgeable: http3_protocol_options: {}',
    ])
    const kept: Edit = [
      'http_filters:',
      'http_protocol_options: {enable_trailers: true}\n                http_filters:',
    ]
    expect(saying(edited('envoy', kept))).toEqual(['forgeable: http_protocol_options: {enable_trailers: true}'])
  })

  test('names a switch in a file of routes whose filters are elsewhere', () => {
    const routes = (name: string): string =>
      `virtual_hosts: [{routes: [{typed_per_filter_config: {${name}: {disabled: true}}, route: {cluster: a}}]}]`
    expect(saying(one('routes.yaml', routes('mine')))).toEqual([`unseen: ${routes('mine')}`])
    expect(saying(one('routes.yaml', routes('envoy.filters.http.cors')))).toEqual([])
  })

  test.each<[string, Edit]>([
    ['the codec of a cluster', upstream('upstream_codec')],
    [
      'JWTs that are read before',
      [
        '- name: envoy.filters.http.ext_authz',
        `${filter('jwt_authn').split(ROUTER)[0]}- name: envoy.filters.http.ext_authz`,
      ],
    ],
    [
      'times and retries of a route',
      [
        'cluster: service',
        'cluster: service\n                            timeout: 3s\n                            retryPolicy: {}',
      ],
    ],
    [
      'a limit of connections',
      [
        '- name: envoy.filters.network.http',
        '- name: envoy.filters.network.connection_limit\n            - name: envoy.filters.network.http',
      ],
    ],
    [
      'the library of gRPC with a certificate',
      [
        /envoy_grpc:\n\s+cluster_name: portcullis_door/,
        'google_grpc: {target_uri: "a:1", channel_credentials: {ssl_credentials: {private_key: {filename: a}, cert_chain: {filename: b}}}}',
      ],
    ],
  ])('lets %s be', (_name, edit) => expect(saying(edited('envoy', edit))).toEqual([]))
})
