import { describe, expect, test } from 'vitest'
import { edited, one, saying } from '../../edited.ts'

const [printedIstio] = edited('istio')
const base = printedIstio?.text ?? ''
const object = (kind: string, group: string, spec: string, metadata = 'name: a, namespace: istio-system'): string =>
  `apiVersion: ${group}/v1\nkind: ${kind}\nmetadata: {${metadata}}\n${spec}\n`
const network = (kind: string, spec: string, metadata?: string): string =>
  object(kind, 'networking.istio.io', spec, metadata)
const service = (route: string): string => network('VirtualService', `spec:\n  http:\n    - ${route}`)
const patch = (applyTo: string, operation: string, value: string, filter = ''): string =>
  network(
    'EnvoyFilter',
    `spec:\n  configPatches:\n    - {applyTo: ${applyTo}, match: {listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager${filter}}}}}, patch: {operation: ${operation}, value: ${value}}}`,
  )
const sub = (name: string): string => `, subFilter: {name: envoy.filters.http.${name}}`
const TYPE = 'type.googleapis.com/envoy.extensions.filters'
const gateway = (server: string, selector = '{istio: ingressgateway}', metadata?: string): string =>
  network('Gateway', `spec: {selector: ${selector}, servers: [${server}]}`, metadata)
const HTTPS = '{port: {number: 443, name: https, protocol: HTTPS}, tls: {mode: SIMPLE}, hosts: [a.example]}'
const codes = (...objects: readonly string[]): readonly string[] =>
  saying(one('all.yaml', [base, ...objects].join('---\n'))).map((line) => line.split(':')[0] ?? '')
const changed = (find: string | RegExp, replace: string): readonly string[] =>
  saying(edited('istio', [find, replace])).map((line) => line.split(':')[0] ?? '')

describe('check-gateway of what Istio has beside the policy', () => {
  test.each<[string, string, string]>([
    ['a Gateway of other workloads', gateway(HTTPS, '{istio: other}'), 'skips_question'],
    ['TLS that passes through', gateway('{port: {protocol: HTTPS}, tls: {mode: PASSTHROUGH}}'), 'skips_question'],
    ['TCP', gateway('{port: {protocol: TCP}}'), 'skips_question'],
    ['a VirtualService of TLS', network('VirtualService', 'spec:\n  tls: [{route: []}]'), 'skips_question'],
    ['a VirtualService of TCP', network('VirtualService', 'spec:\n  tcp: [{route: []}]'), 'skips_question'],
    ['a Gateway that is elsewhere', network('VirtualService', 'spec: {gateways: [mesh, g]}'), 'unseen'],
    [
      'a Gateway of another namespace',
      `${gateway(HTTPS)}---\n${network('VirtualService', 'spec: {gateways: [other/a]}')}`,
      'unseen',
    ],
    ['a delegate that is elsewhere', service('delegate: {name: other}'), 'unseen'],
    ['an unknown part of a route', service('mangle: {}'), 'unseen'],
    ['an identity with underscores', service('headers: {request: {add: {X_Auth_Subject: root}}}'), 'forgeable'],
    [
      'an identity for one destination',
      service('route: [{headers: {request: {set: {X-Auth-Scope: all}}}}]'),
      'forgeable',
    ],
    ['an identity that is removed', service('headers: {request: {remove: [x-auth-organization]}}'), 'other_bytes'],
    ['another method by a field', service('headers: {request: {set: {X-HTTP-Method-Override: PUT}}}'), 'other_bytes'],
    ['a WasmPlugin', object('WasmPlugin', 'extensions.istio.io', 'spec: {phase: STATS}'), 'unseen'],
    ['a kind that is not known', network('TrafficExtension', 'spec: {}'), 'unseen'],
    ['rbac that is removed', patch('HTTP_FILTER', 'REMOVE', '{}', sub('rbac')), 'skips_question'],
    ['every filter removed', patch('HTTP_FILTER', 'REMOVE', '{}'), 'skips_question'],
    [
      'rbac that is changed',
      patch('HTTP_FILTER', 'MERGE', '{typed_config: {rules: {}}}', sub('rbac')),
      'skips_question',
    ],
    [
      'ext_authz that is switched off',
      patch('HTTP_FILTER', 'MERGE', '{disabled: true}', sub('ext_authz')),
      'skips_question',
    ],
    ['Lua before it', patch('HTTP_FILTER', 'INSERT_FIRST', '{name: envoy.filters.http.lua}'), 'unseen'],
    [
      'a proxy of connections',
      patch('NETWORK_FILTER', 'INSERT_FIRST', '{name: envoy.filters.network.tcp_proxy}'),
      'skips_question',
    ],
    [
      'another HttpConnectionManager',
      patch(
        'NETWORK_FILTER',
        'REPLACE',
        `{typed_config: {"@type": ${TYPE}.network.http_connection_manager.v3.HttpConnectionManager, http_filters: []}}`,
      ),
      'skips_question',
    ],
    ['no HttpConnectionManager', patch('NETWORK_FILTER', 'REMOVE', '{}'), 'unseen'],
    [
      'a listener that asks nobody',
      patch(
        'LISTENER',
        'ADD',
        `{filter_chains: [{filters: [{typed_config: {"@type": ${TYPE}.network.http_connection_manager.v3.HttpConnectionManager, http_filters: []}}]}]}`,
      ),
      'skips_question',
    ],
    [
      'a chain of TCP',
      patch('FILTER_CHAIN', 'ADD', '{filters: [{name: envoy.filters.network.tcp_proxy}]}'),
      'skips_question',
    ],
    [
      'a route that asks nobody',
      patch('HTTP_ROUTE', 'MERGE', '{typed_per_filter_config: {envoy.filters.http.ext_authz: {disabled: true}}}'),
      'skips_question',
    ],
    [
      'a route without rbac',
      patch('VIRTUAL_HOST', 'MERGE', '{typed_per_filter_config: {envoy.filters.http.rbac: {disabled: true}}}'),
      'skips_question',
    ],
    ['a route that is rewritten', patch('HTTP_ROUTE', 'MERGE', '{route: {prefix_rewrite: /}}'), 'other_bytes'],
    ['a bootstrap', patch('BOOTSTRAP', 'MERGE', '{}'), 'unseen'],
    ['an extension', patch('EXTENSION_CONFIG', 'ADD', '{}'), 'unseen'],
    [
      'addresses of clients',
      patch('NETWORK_FILTER', 'MERGE', '{typed_config: {use_remote_address: false}}'),
      'forgeable',
    ],
    [
      'underscores again',
      patch(
        'NETWORK_FILTER',
        'MERGE',
        '{typed_config: {common_http_protocol_options: {headers_with_underscores_action: ALLOW}}}',
      ),
      'forgeable',
    ],
    [
      'a second provider',
      object(
        'AuthorizationPolicy',
        'security.istio.io',
        'spec: {action: CUSTOM, provider: {name: other}, rules: [{}]}',
      ),
      'unseen',
    ],
    ['an Ingress beside it', object('Ingress', 'networking.k8s.io', 'spec: {}'), 'skips_question'],
    ['a router of another gateway', object('HTTPProxy', 'projectcontour.io', 'spec: {}'), 'unseen'],
  ])('names %s', (_name, more, code) => {
    expect(codes(more)).toContain(code)
  })

  test.each<[string, string | RegExp, string, string]>([
    ['a policy without the mesh configuration', /apiVersion: install[\s\S]*?---\n/, '', 'unseen'],
    ['a provider that asks nobody', 'envoyExtAuthzGrpc:', 'zipkin:', 'skips_question'],
    ['a rule that is null', '- {}', '- null', 'skips_question'],
    ['a rule beside an empty list', '- {}', '- from: []', 'skips_question'],
    [
      'raw fields for other workloads',
      'labels:\n      istio: ingressgateway',
      'labels:\n      app: other',
      'other_bytes',
    ],
    [
      'raw fields in another namespace',
      'kind: EnvoyFilter\nmetadata:\n  name: portcullis\n  namespace: istio-system',
      'kind: EnvoyFilter\nmetadata:\n  name: portcullis\n  namespace: other',
      'other_bytes',
    ],
    [
      'raw fields at one port',
      'context: GATEWAY\n        listener:',
      'context: GATEWAY\n        listener:\n          portNumber: 80',
      'other_bytes',
    ],
    ['raw fields of sidecars', 'context: GATEWAY', 'context: SIDECAR_INBOUND', 'other_bytes'],
    ['underscores', 'REJECT_REQUEST', 'UNDEFINED', 'forgeable'],
    ['a door that is asked in the clear', 'mode: MUTUAL', 'mode: DISABLE', 'forgeable'],
    ['a door that is not verified', 'mode: MUTUAL', 'mode: MUTUAL\n      insecureSkipVerify: true', 'forgeable'],
    [
      'a port with other settings',
      'trafficPolicy:',
      'trafficPolicy:\n    portLevelSettings: [{port: {number: 15081}, tls: {mode: SIMPLE}}]',
      'forgeable',
    ],
    [
      'a certificate for another service',
      /host: portcullis-authorizer\S+\n {2}traffic|host: \S+\n/,
      'host: other\n',
      'forgeable',
    ],
    ['an unknown part of the provider', 'failOpen: false', 'failOpen: false\n          shadow: true', 'unseen'],
    ['a normalisation that is not known', 'normalization: NONE', 'normalization: none', 'other_bytes'],
    ['YAML 1.1 for true', 'failOpen: false', 'failOpen: yes', 'fails_open'],
  ])('names %s', (_name, find, replace, code) => {
    expect(changed(find, replace)).toContain(code)
  })

  test.each<[string, readonly string[]]>([
    [
      'a Gateway and its routes',
      [gateway(HTTPS), service('match: [{uri: {prefix: /}}]\n      route: [{destination: {host: a}}]')],
    ],
    [
      'a VirtualService that names its Gateways',
      [
        gateway(HTTPS),
        network('VirtualService', 'spec: {gateways: [mesh, a]}'),
        network('VirtualService', 'spec: {gateways: [istio-system/a]}', 'name: b, namespace: other'),
      ],
    ],
    [
      'usual objects',
      [
        network('ServiceEntry', 'spec: {}'),
        object('RequestAuthentication', 'security.istio.io', 'spec: {}'),
        object('Telemetry', 'telemetry.istio.io', 'spec: {}'),
        object('Deployment', 'apps', 'spec: {}'),
      ],
    ],
    [
      'a delegate',
      [
        service('delegate: {name: b}'),
        network('VirtualService', 'spec: {http: []}', 'name: b, namespace: istio-system'),
      ],
    ],
    [
      'other policies',
      [
        object(
          'AuthorizationPolicy',
          'security.istio.io',
          'spec: {action: DENY, rules: [{to: [{operation: {paths: [/x]}}]}]}',
        ),
      ],
    ],
    ['a filter of other workloads', [patch('HTTP_FILTER', 'INSERT_FIRST', '{name: envoy.filters.http.cors}')]],
  ])('finds nothing in %s', (_name, more) => {
    expect(codes(...more)).toEqual([])
  })

  const ext = (context: string, spec = '', namespace = 'istio-system'): string =>
    network(
      'EnvoyFilter',
      `spec:\n  ${spec}\n  configPatches:\n    - {applyTo: HTTP_FILTER, match: {context: ${context}}, patch: {operation: INSERT_FIRST, value: {name: envoy.filters.http.ext_authz}}}`,
      `name: e, namespace: ${namespace}`,
    )
  test.each<[string, string, boolean]>([
    ['of every gateway', ext('GATEWAY'), true],
    ['of its workloads', ext('GATEWAY', 'workloadSelector: {labels: {istio: ingressgateway}}'), true],
    ['of other workloads', ext('GATEWAY', 'workloadSelector: {labels: {app: other}}'), false],
    ['of another namespace', ext('GATEWAY', '', 'other'), false],
    ['of sidecars', ext('SIDECAR_INBOUND'), false],
    ['of one port', ext('GATEWAY, listener: {portNumber: 80}'), false],
    ['of another target', ext('GATEWAY', 'targetRefs: [{kind: Gateway, name: a}]'), false],
  ])(
    'takes an EnvoyFilter %s with ext_authz for a question only where it reaches the Gateway',
    (_name, filter, asks) => {
      const text = [gateway(HTTPS, undefined, 'name: g, namespace: istio-ingress'), filter].join('---\n')
      const skips = saying(one('all.yaml', text)).filter((line) => line.startsWith('skips_question'))
      expect(skips).toEqual(asks ? [] : ['skips_question: apiVersion: networking.istio.io/v1'])
    },
  )

  test('wants to know where the workloads of a Gateway run', () => {
    const policy = base.replaceAll('namespace: istio-system', 'namespace: istio-ingress')
    const own = gateway(HTTPS, undefined, 'name: g, namespace: default')
    const labels = 'spec: {template: {metadata: {labels: {istio: ingressgateway, app: x}}}}'
    const deployment = (namespace: string): string =>
      object('Deployment', 'apps', labels, `name: d, namespace: ${namespace}`)
    const findings = (...more: readonly string[]): readonly string[] =>
      saying(one('all.yaml', [policy, own, ...more].join('---\n'))).map((line) => line.split(':')[0] ?? '')
    expect(findings()).toEqual(['unseen'])
    expect(findings(deployment('istio-ingress'))).toEqual([])
    expect(findings(deployment('istio-ingress'), deployment('other'))).toEqual(['unseen'])
  })

  test('reads the mesh configuration of the Sail operator, and of its ConfigMap', () => {
    const sail = base.replace('install.istio.io/v1alpha1', 'sailoperator.io/v1').replace('IstioOperator', 'Istio')
    const deep = sail.replace(
      /spec:\n([\s\S]*?)---/,
      (_, mesh: string) => `spec:\n  values:\n${mesh.replaceAll(/^/gm, '  ').trimEnd()}\n---`,
    )
    expect(saying(one('all.yaml', deep))).toEqual([])
    expect(saying(one('all.yaml', deep.replace('failOpen: false', 'failOpen: true')))).toEqual([
      'fails_open: failOpen: true',
    ])
  })
})
