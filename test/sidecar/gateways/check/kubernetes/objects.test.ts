import { describe, expect, test } from 'vitest'
import { type Edit, edited, one, saying } from '../../edited.ts'

describe('check-gateway of Istio', () => {
  test.each<[string, Edit, string]>([
    ['an open failure', ['failOpen: false', 'failOpen: true'], 'fails_open: failOpen: true'],
    [
      'a second choice of the route',
      ['clearRouteCache: false', 'clearRouteCache: true'],
      'other_bytes: clearRouteCache: true',
    ],
    [
      'the default time of 600 seconds',
      [/ +timeout: 2s\n/, ''],
      'fails_open: service: portcullis-authorizer.portcullis.svc.cluster.local',
    ],
    ['ten minutes', ['timeout: 2s', 'timeout: 600s'], 'fails_open: timeout: 600s'],
    ['a good status on failure', ['statusOnError: "503"', 'statusOnError: "200"'], 'fails_open: statusOnError: "200"'],
    [
      'HTTP',
      ['envoyExtAuthzGrpc', 'envoyExtAuthzHttp'],
      'other_bytes: service: portcullis-authorizer.portcullis.svc.cluster.local',
    ],
    [
      'a partial body',
      ['failOpen: false', 'includeRequestBodyInCheck: {allowPartialMessage: true}'],
      'other_bytes: includeRequestBodyInCheck: {allowPartialMessage: true}',
    ],
    [
      'merged slashes',
      ['normalization: NONE', 'normalization: DECODE_AND_MERGE_SLASHES'],
      'other_bytes: normalization: DECODE_AND_MERGE_SLASHES',
    ],
    [
      'joined fields',
      ['encode_raw_headers: true', 'encode_raw_headers: false'],
      'other_bytes: apiVersion: security.istio.io/v1',
    ],
    [
      'a rule of paths',
      ['- {}', '- to: [{operation: {paths: [/api/*]}}]'],
      'skips_question: - to: [{operation: {paths: [/api/*]}}]',
    ],
    ['no rules', [/rules:\n.*\n/, 'rules: []\n'], 'skips_question: rules: []'],
    ['another action', ['action: CUSTOM', 'action: ALLOW'], 'skips_question: apiVersion: install.istio.io/v1alpha1'],
    [
      'a provider that is not there',
      ['provider:\n    name: portcullis', 'provider:\n    name: other'],
      'skips_question: name: other',
    ],
    [
      'a trial',
      [
        'kind: AuthorizationPolicy\nmetadata:\n',
        'kind: AuthorizationPolicy\nmetadata:\n  annotations: {istio.io/dry-run: "true"}\n',
      ],
      'skips_question: annotations: {istio.io/dry-run: "true"}',
    ],
    ['a filter that is removed', ['operation: MERGE', 'operation: REMOVE'], 'skips_question: operation: REMOVE'],
    [
      'Lua after it',
      [
        'configPatches:\n',
        'configPatches:\n    - {applyTo: HTTP_FILTER, patch: {operation: INSERT_BEFORE, value: {name: envoy.filters.http.lua}}}\n',
      ],
      'other_bytes: - {applyTo: HTTP_FILTER, patch: {operation: INSERT_BEFORE, value: {name: envoy.filters.http.lua}}}',
    ],
    [
      'an open failure in a patch',
      ['encode_raw_headers: true', 'encode_raw_headers: true\n            failure_mode_allow: true'],
      'fails_open: failure_mode_allow: true',
    ],
  ])('names %s', (_name, edit, finding) => {
    expect(saying(edited('istio', edit))).toContain(finding)
  })

  test('names what a VirtualService changes', () => {
    const [istio] = edited('istio')
    const service = `apiVersion: networking.istio.io/v1
kind: VirtualService
spec:
  http:
    - rewrite: {uri: /}
      headers: {request: {set: {x-auth-subject: root}}}
`
    expect(saying(one('all.yaml', `${istio?.text}---\n${service}`))).toEqual([
      'other_bytes: - rewrite: {uri: /}',
      'forgeable: headers: {request: {set: {x-auth-subject: root}}}',
    ])
  })

  test('reads the mesh configuration in its ConfigMap', () => {
    const map = `apiVersion: v1
kind: ConfigMap
data:
  mesh: |-
    extensionProviders:
      - name: p
        envoyExtAuthzGrpc: {failOpen: true, timeout: 1s}
`
    expect(saying(one('mesh.yaml', map))).toContain('fails_open: envoyExtAuthzGrpc: {failOpen: true, timeout: 1s}')
  })
})

describe('check-gateway of the Gateway API', () => {
  test.each<[string, Edit, string]>([
    ['a rule without the filter', [/filters:\n[\s\S]*?backendRefs/, 'backendRefs'], 'skips_question: - matches:'],
    ['HTTP', ['protocol: GRPC', 'protocol: HTTP'], 'other_bytes: protocol: HTTP'],
    ['some fields', ['grpc: {}', 'grpc: {allowedHeaders: [cookie]}'], 'other_bytes: grpc: {allowedHeaders: [cookie]}'],
    [
      'a rewrite',
      ['filters:\n', 'filters:\n        - {type: URLRewrite, urlRewrite: {hostname: a}}\n'],
      'other_bytes: - {type: URLRewrite, urlRewrite: {hostname: a}}',
    ],
    [
      'a forged identity',
      ['filters:\n', 'filters:\n        - {requestHeaderModifier: {set: [{name: X-Auth-Subject, value: a}]}}\n'],
      'forgeable: - {requestHeaderModifier: {set: [{name: X-Auth-Subject, value: a}]}}',
    ],
    ['an extension', ['filters:\n', 'filters:\n        - {type: ExtensionRef}\n'], 'unseen: - {type: ExtensionRef}'],
    [
      'a route of TCP',
      ['kind: ReferenceGrant', 'kind: TCPRoute'],
      'skips_question: apiVersion: gateway.networking.k8s.io/v1beta1',
    ],
  ])('names %s', (_name, edit, finding) => {
    expect(saying(edited('gateway-api', edit))).toContain(finding)
  })

  test.each<[string, Edit, string]>([
    ['an open failure', ['failOpen: false', 'failOpen: true'], 'fails_open: failOpen: true'],
    [
      'a second choice of the route',
      ['recomputeRoute: false', 'recomputeRoute: true'],
      'other_bytes: recomputeRoute: true',
    ],
    ['HTTP', ['    grpc:\n', '    http:\n'], 'other_bytes: backendRefs:'],
    ['some fields', ['failOpen: false', 'headersToExtAuth: [cookie]'], 'other_bytes: headersToExtAuth: [cookie]'],
    [
      'merged slashes',
      ['disableMergeSlashes: true', 'disableMergeSlashes: false'],
      'other_bytes: apiVersion: gateway.envoyproxy.io/v1alpha1',
    ],
    [
      'the default for %2F',
      [/ +escapedSlashesAction: .*\n/, ''],
      'other_bytes: apiVersion: gateway.envoyproxy.io/v1alpha1',
    ],
    [
      'underscores',
      ['withUnderscoresAction: RejectRequest', 'withUnderscoresAction: Allow'],
      'forgeable: withUnderscoresAction: Allow',
    ],
    ['a policy without extAuth', [/ {2}extAuth:\n[\s\S]*?---/, '---'], 'skips_question: - matches:'],
    [
      'a policy of another Gateway',
      ['kind: Gateway\n      name: gateway', 'kind: Gateway\n      name: other'],
      'skips_question: - matches:',
    ],
    [
      'a policy in another namespace',
      ['name: portcullis\n  namespace: default', 'name: portcullis\n  namespace: other'],
      'skips_question: - matches:',
    ],
  ])('names, for Envoy Gateway, %s', (_name, edit, finding) => {
    expect(saying(edited('envoy-gateway', edit))).toContain(finding)
  })

  test('names a policy of a route that takes the place of the one that asks', () => {
    const [gateway] = edited('envoy-gateway')
    const policy = (merge: string): string => `apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: cors, namespace: default}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: service}]
  cors: {allowOrigins: ["*"]}
${merge}`
    expect(saying(one('all.yaml', `${gateway?.text}---\n${policy('')}`))).toEqual([
      'skips_question: apiVersion: gateway.envoyproxy.io/v1alpha1',
    ])
    expect(saying(one('all.yaml', `${gateway?.text}---\n${policy('  mergeType: StrategicMerge\n')}`))).toEqual([])
  })

  test('names an input in which nothing asks', () => {
    const grant = 'apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\n'
    expect(saying(one('g.yaml', grant))).toEqual(['unseen: apiVersion: gateway.networking.k8s.io/v1'])
  })
})
