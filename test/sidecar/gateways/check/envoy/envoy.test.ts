import { describe, expect, test } from 'vitest'
import { type Edit, edited, one, saying } from '../../edited.ts'

const ROUTER = '- name: envoy.filters.http.router'
const filter = (name: string): string => `- name: x
                    typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.${name}.v3.Any}
                  ${ROUTER}`

describe('check-gateway of Envoy', () => {
  test('finds nothing in what gateway-config prints', () => expect(saying(edited('envoy'))).toEqual([]))

  test.each<[string, Edit, string]>([
    [
      'an open failure',
      ['failure_mode_allow: false', 'failure_mode_allow: true'],
      'fails_open: failure_mode_allow: true',
    ],
    [
      'the same in camel case',
      ['failure_mode_allow: false', 'failureModeAllow: true'],
      'fails_open: failureModeAllow: true',
    ],
    [
      'the same as a text',
      ['failure_mode_allow: false', 'failure_mode_allow: "false"'],
      'fails_open: failure_mode_allow: "false"',
    ],
    [
      'joined fields',
      ['encode_raw_headers: true', 'encode_raw_headers: false'],
      'other_bytes: encode_raw_headers: false',
    ],
    [
      'a second choice of the route',
      ['clear_route_cache: false', 'clear_route_cache: true'],
      'other_bytes: clear_route_cache: true',
    ],
    ['merged slashes', ['merge_slashes: false', 'merge_slashes: true'], 'other_bytes: merge_slashes: true'],
    [
      'unescaped slashes',
      ['REJECT_REQUEST\n', 'UNESCAPE_AND_FORWARD\n'],
      'other_bytes: path_with_escaped_slashes_action: UNESCAPE_AND_FORWARD',
    ],
    [
      'redirected slashes',
      ['REJECT_REQUEST\n', 'UNESCAPE_AND_REDIRECT\n'],
      'other_bytes: path_with_escaped_slashes_action: UNESCAPE_AND_REDIRECT',
    ],
    [
      'underscores',
      ['headers_with_underscores_action: REJECT_REQUEST', 'headers_with_underscores_action: ALLOW'],
      'forgeable: "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    ],
    [
      'fields of clients',
      ['use_remote_address: true', 'use_remote_address: false'],
      'forgeable: "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    ],
    [
      'some fields',
      ['clear_route_cache: false', 'allowed_headers: {patterns: [{exact: x}]}'],
      'other_bytes: allowed_headers: {patterns: [{exact: x}]}',
    ],
    [
      'hidden fields',
      ['clear_route_cache: false', 'disallowed_headers: {patterns: [{exact: x}]}'],
      'other_bytes: disallowed_headers: {patterns: [{exact: x}]}',
    ],
    [
      'a share',
      ['clear_route_cache: false', 'filter_enabled: {default_value: {numerator: 99}}'],
      'skips_question: filter_enabled: {default_value: {numerator: 99}}',
    ],
    [
      'a share at run time',
      ['clear_route_cache: false', 'filter_enabled: {default_value: {numerator: 100}, runtime_key: a}'],
      'skips_question: filter_enabled: {default_value: {numerator: 100}, runtime_key: a}',
    ],
    [
      'a share of a million',
      ['clear_route_cache: false', 'filter_enabled: {default_value: {numerator: 100, denominator: MILLION}}'],
      'skips_question: filter_enabled: {default_value: {numerator: 100, denominator: MILLION}}',
    ],
    [
      'metadata',
      ['clear_route_cache: false', 'filter_enabled_metadata: {filter: a}'],
      'skips_question: filter_enabled_metadata: {filter: a}',
    ],
    [
      'a partial body',
      ['clear_route_cache: false', 'with_request_body: {allow_partial_message: true}'],
      'other_bytes: with_request_body: {allow_partial_message: true}',
    ],
    [
      'HTTP',
      ['clear_route_cache: false', 'http_service: {path_prefix: /a}'],
      'other_bytes: http_service: {path_prefix: /a}',
    ],
    ['a good status on failure', ['code: ServiceUnavailable', 'code: 200'], 'fails_open: code: 200'],
    [
      'a disabled filter',
      [
        '- name: envoy.filters.http.ext_authz',
        '- disabled: true\n                    name: envoy.filters.http.ext_authz',
      ],
      'skips_question: - disabled: true',
    ],
    [
      'an optional filter',
      [
        '- name: envoy.filters.http.ext_authz',
        '- is_optional: true\n                    name: envoy.filters.http.ext_authz',
      ],
      'skips_question: - is_optional: true',
    ],
    ['Lua after it', [ROUTER, filter('lua')], 'other_bytes: - name: x'],
    ['an unknown filter after it', [ROUTER, filter('never_heard_of')], 'other_bytes: - name: x'],
    ['a cache', [ROUTER, filter('cache')], 'skips_question: - name: x'],
    [
      'a filter from elsewhere',
      [ROUTER, `- {name: y, config_discovery: {}}\n                  ${ROUTER}`],
      'unseen: - {name: y, config_discovery: {}}',
    ],
    [
      'a route that is off',
      [
        'match:\n',
        'typed_per_filter_config: {envoy.filters.http.ext_authz: {disabled: true}}\n                          match:\n',
      ],
      'skips_question: - typed_per_filter_config: {envoy.filters.http.ext_authz: {disabled: true}}',
    ],
    [
      'another service for a route',
      [
        'match:\n',
        'typed_per_filter_config: {any: {"@type": a.v3.ExtAuthzPerRoute, check_settings: {grpc_service: {}}}}\n                          match:\n',
      ],
      'skips_question: - typed_per_filter_config: {any: {"@type": a.v3.ExtAuthzPerRoute, check_settings: {grpc_service: {}}}}',
    ],
    [
      'a rewritten prefix',
      ['cluster: service', 'cluster: service\n                            prefix_rewrite: /'],
      'other_bytes: prefix_rewrite: /',
    ],
    [
      'a rewritten path',
      ['cluster: service', 'cluster: service\n                            regexRewrite: {}'],
      'other_bytes: regexRewrite: {}',
    ],
    [
      'a host from a field',
      ['cluster: service', 'cluster: service\n                            host_rewrite_header: x-h'],
      'other_bytes: host_rewrite_header: x-h',
    ],
    [
      'a forged identity',
      [
        'match:\n',
        'request_headers_to_add: [{header: {key: X-Auth-Subject, value: a}}]\n                          match:\n',
      ],
      'forgeable: - request_headers_to_add: [{header: {key: X-Auth-Subject, value: a}}]',
    ],
    [
      'WebSocket',
      ['merge_slashes: false', 'upgrade_configs: [{upgrade_type: websocket}]'],
      'skips_question: upgrade_configs: [{upgrade_type: websocket}]',
    ],
    [
      'routes from elsewhere',
      ['merge_slashes: false', 'rds: {route_config_name: a}'],
      'unseen: rds: {route_config_name: a}',
    ],
    [
      'no client certificate',
      [/tls_certificates:[\s\S]*?validation_context/, 'validation_context'],
      'forgeable: cluster_name: portcullis_door',
    ],
    ['an unverified door', [/trusted_ca:\n.*\n/, 'other: {}\n'], 'forgeable: - name: portcullis_door'],
  ])('names %s', (_name, edit, finding) => {
    expect(saying(edited('envoy', edit))).toContain(finding)
  })

  test('names a filter stack without the filter, and one that has it under a condition', () => {
    const without = edited('envoy', [
      /- name: envoy.filters.http.ext_authz[\s\S]*?(?=- name: envoy.filters.http.router)/,
      '',
    ])
    expect(saying(without)).toContain('skips_question: - name: envoy.filters.http.router')
    const matched = edited(
      'envoy',
      ['.filters.http.ext_authz.v3.ExtAuthz', '.common.matching.v3.ExtensionWithMatcher'],
      [
        'transport_api_version: V3',
        'extension_config: {typed_config: {"@type": a.filters.http.ext_authz.v3.ExtAuthz}}',
      ],
      ['- name: envoy.filters.http.ext_authz', '- name: composite'],
    )
    expect(saying(matched)).toContain('skips_question: - name: composite')
  })

  test('lets a share pass that denies when it is off, and a hundred of a hundred', () => {
    for (const share of [
      'filter_enabled: {default_value: {numerator: 1}}, deny_at_disable: {default_value: true}',
      'filter_enabled: {default_value: {numerator: 100}}',
    ])
      expect(
        saying(edited('envoy', ['clear_route_cache: false', share.replace('}}, ', '}}\n                      ')])),
      ).toEqual([])
  })

  test('reads JSON, and the output of config_dump', () => {
    const dump = {
      configs: [
        {
          dynamic_listeners: [
            {
              active_state: {
                listener: {
                  filterChains: [
                    {
                      filters: [
                        {
                          typedConfig: { httpFilters: [{ name: 'envoy.filters.http.router' }], useRemoteAddress: true },
                        },
                      ],
                    },
                  ],
                },
              },
            },
          ],
        },
      ],
    }
    const found = saying(one('dump.json', JSON.stringify(dump, null, 1)))
    expect(found.map((line) => line.split(':')[0])).toEqual(['forgeable', 'skips_question'])
  })

  test.each([
    ['listeners from elsewhere', 'dynamic_resources: {lds_config: {ads: {}}}'],
    ['no listener', 'static_resources: {clusters: []}'],
  ])('never calls %s well', (_name, text) => {
    expect(saying(one('envoy.yaml', text))).toEqual([`unseen: ${text}`])
  })
})
