import { describe, expect, test } from 'vitest'
import { edited, one, saying } from '../../edited.ts'

const [printedApi] = edited('gateway-api')
const [printedEnvoy] = edited('envoy-gateway')
const api = printedApi?.text ?? ''
const envoy = printedEnvoy?.text ?? ''
const object = (
  kind: string,
  spec: string,
  metadata = 'name: a, namespace: default',
  group = 'gateway.envoyproxy.io/v1alpha1',
): string => `apiVersion: ${group}\nkind: ${kind}\nmetadata: {${metadata}}\n${spec}\n`
const gateway = (kind: string, spec: string, metadata?: string): string =>
  object(kind, spec, metadata, 'gateway.networking.k8s.io/v1')
const codesOf = (text: string, ...more: readonly string[]): readonly string[] =>
  saying(one('all.yaml', [text, ...more].join('---\n'))).map((line) => line.split(':')[0] ?? '')
const OWN = 'kind: HTTPRoute, name: service'
const cors = (target: string, more = ''): string =>
  object('SecurityPolicy', `spec: {${target}, cors: {}${more}}`, 'name: cors, namespace: default')
const patch = (operation: string): string =>
  object('EnvoyPatchPolicy', `spec: {jsonPatches: [{operation: ${operation}}]}`)

describe('check-gateway of Envoy Gateway, beside the policy that asks', () => {
  test.each<[string, string, string]>([
    ['a policy of a rule', cors(`targetRefs: [{${OWN}, sectionName: open}]`), 'skips_question'],
    [
      'a policy of a listener',
      cors('targetRefs: [{kind: Gateway, name: gateway, sectionName: http}]'),
      'skips_question',
    ],
    ['a second policy of the Gateway', cors('targetRefs: [{kind: Gateway, name: gateway}]'), 'skips_question'],
    [
      'a policy by expressions',
      cors('targetSelectors: [{kind: HTTPRoute, matchExpressions: [{key: a, operator: Exists}]}]'),
      'skips_question',
    ],
    ['a policy by labels', cors('targetSelectors: [{kind: HTTPRoute, matchLabels: {}}]'), 'skips_question'],
    ['an extension', object('EnvoyExtensionPolicy', 'spec: {lua: []}'), 'other_bytes'],
    [
      'a filter that rewrites',
      object('HTTPRouteFilter', 'spec: {urlRewrite: {path: {type: ReplaceRegexMatch}}}'),
      'other_bytes',
    ],
    ['a patch that removes', patch('{op: remove, path: /filter_chains/0}'), 'unseen'],
    ['a patch of one value', patch('{op: replace, path: /failure_mode_allow, value: true}'), 'unseen'],
    [
      'another order of filters',
      object(
        'EnvoyProxy',
        'spec: {filterOrder: [{name: envoy.filters.http.ext_authz, after: envoy.filters.http.router}]}',
      ),
      'unseen',
    ],
    [
      'an identity from a credential',
      object('HTTPRouteFilter', 'spec: {credentialInjection: {header: X-Auth-Subject}}'),
      'forgeable',
    ],
    ['a service by the Host', object('Backend', 'spec: {type: DynamicResolver}'), 'other_bytes'],
    ['a bootstrap', object('EnvoyProxy', 'spec: {bootstrap: {value: a}}'), 'unseen'],
    ['a kind that is not known', object('NewPolicy', 'spec: {}'), 'unseen'],
    [
      'an identity from claims',
      cors('jwt: {providers: [{claimToHeaders: [{header: x-auth-subject, claim: sub}]}]}'),
      'forgeable',
    ],
    ['an identity from a password', cors('basicAuth: {forwardUsernameHeader: X_Auth_Subject}'), 'forgeable'],
    [
      'addresses that clients say',
      object('ClientTrafficPolicy', 'spec: {clientIPDetection: {customHeader: {name: x-ip}}}'),
      'forgeable',
    ],
    [
      'everybody as a proxy',
      object(
        'ClientTrafficPolicy',
        'spec: {clientIPDetection: {xForwardedFor: {trustedCIDRs: [0.0.0.0/1, 128.0.0.0/1]}}}',
      ),
      'forgeable',
    ],
    [
      'merged slashes at one listener',
      object(
        'ClientTrafficPolicy',
        'spec: {targetRefs: [{kind: Gateway, name: gateway, sectionName: http}], path: {}}',
      ),
      'other_bytes',
    ],
    [
      'a route at two Gateways',
      gateway('HTTPRoute', 'spec: {parentRefs: [{name: gateway}, {name: other}], rules: [{backendRefs: []}]}'),
      'skips_question',
    ],
    [
      'a route at a Service of that name',
      gateway('HTTPRoute', 'spec: {parentRefs: [{kind: Service, name: gateway}], rules: [{backendRefs: []}]}'),
      'skips_question',
    ],
    ['a route without a parent', gateway('HTTPRoute', 'spec: {rules: [{backendRefs: []}]}'), 'skips_question'],
    ['a route that says nothing', gateway('GRPCRoute', 'spec: {}'), 'skips_question'],
    [
      'a listener of TLS',
      gateway(
        'Gateway',
        'spec: {listeners: [{protocol: TLS, tls: {mode: Passthrough}}]}',
        'name: gateway, namespace: default',
      ),
      'skips_question',
    ],
    ['an Ingress', object('Ingress', 'spec: {}', 'name: a', 'networking.k8s.io/v1'), 'skips_question'],
  ])('names %s', (_name, more, code) => {
    expect(codesOf(envoy, more)).toContain(code)
  })

  test.each<[string, string | RegExp, string, string]>([
    ['slashes of another Gateway', /(kind: ClientTrafficPolicy[\s\S]*?)name: gateway/, '$1name: other', 'other_bytes'],
    [
      'slashes of another namespace',
      /(kind: ClientTrafficPolicy[\s\S]*?)namespace: default/,
      '$1namespace: other',
      'other_bytes',
    ],
    [
      'slashes of one listener',
      /(kind: ClientTrafficPolicy[\s\S]*?name: gateway)/,
      '$1\n      sectionName: http',
      'other_bytes',
    ],
    ['ten minutes', 'timeout: 2s', 'timeout: 10m', 'fails_open'],
    ['an unknown part of the question', 'failOpen: false', 'failOpen: false\n    shadow: true', 'unseen'],
    [
      'a question by expressions',
      /targetRefs:\n.*\n.*\n.*name: gateway\n {2}extAuth/,
      'targetSelectors: [{kind: Gateway, matchExpressions: [{key: a, operator: Exists}]}]\n  extAuth',
      'skips_question',
    ],
  ])('names %s', (_name, find, replace, code) => {
    expect(saying(edited('envoy-gateway', [find, replace])).map((line) => line.split(':')[0])).toContain(code)
  })

  test.each<[string, string]>([
    ['a policy that is merged', cors(`targetRefs: [{${OWN}}]`, ', mergeType: StrategicMerge')],
    ['a policy of another namespace', cors(`targetRefs: [{${OWN}}]`).replace('namespace: default', 'namespace: other')],
    ['a policy of other labels', cors('targetSelectors: [{kind: HTTPRoute, matchLabels: {app: other}}]')],
    ['usual objects', object('BackendTrafficPolicy', 'spec: {retry: {}}')],
    ['a service by its name', object('Backend', 'spec: {endpoints: [{fqdn: {hostname: a, port: 1}}]}')],
    [
      'a Gateway of HTTPS',
      gateway(
        'Gateway',
        'spec: {listeners: [{protocol: HTTPS, tls: {mode: Terminate}}]}',
        'name: gateway, namespace: default',
      ),
    ],
    [
      'a redirect',
      gateway('HTTPRoute', 'spec: {rules: [{filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}]}'),
    ],
  ])('finds nothing in %s', (_name, more) => {
    expect(codesOf(envoy, more)).toEqual([])
  })

  test('knows a policy that selects its Gateway by labels', () => {
    const selecting = envoy.replace(
      /targetRefs:\n.*\n.*\n.*name: gateway\n {2}extAuth/,
      'targetSelectors: [{kind: Gateway, matchLabels: {a: b}}]\n  extAuth',
    )
    const own = (labels: string): string =>
      gateway('Gateway', 'spec: {listeners: []}', `name: gateway, namespace: default, labels: {${labels}}`)
    expect(codesOf(selecting, own('a: b'))).toEqual([])
    expect(codesOf(selecting, own('a: c'))).toContain('skips_question')
    expect(codesOf(selecting)).toContain('skips_question')
  })
})

describe('check-gateway of routes of the Gateway API', () => {
  const filtered = (filter: string): readonly string[] =>
    saying(edited('gateway-api', ['filters:\n', `filters:\n        - ${filter}\n`])).map(
      (line) => line.split(':')[0] ?? '',
    )

  test.each<[string, string, string]>([
    ['a filter that is not known', '{type: Mangle}', 'unseen'],
    [
      'another target by a field',
      '{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-original-url, value: /}]}}',
      'other_bytes',
    ],
    [
      'an identity that is removed',
      '{type: RequestHeaderModifier, requestHeaderModifier: {remove: [X-Auth-Subject]}}',
      'other_bytes',
    ],
    ['an unknown part of the question', '{type: ExternalAuth, externalAuth: {protocol: GRPC, shadow: true}}', 'unseen'],
  ])('names %s', (_name, filter, code) => {
    expect(filtered(filter)).toContain(code)
  })

  test('names a second rule without the filter', () => {
    const second = api.replace(
      '  rules:\n',
      '  rules:\n    - {matches: [{path: {type: PathPrefix, value: /open}}], backendRefs: [{name: a, port: 1}]}\n',
    )
    expect(codesOf(second)).toEqual(['skips_question'])
  })

  test('finds nothing where the filter is beside usual ones', () => {
    expect(filtered('{type: CORS, cors: {}}')).toEqual([])
    expect(filtered('{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-env, value: a}]}}')).toEqual(
      [],
    )
  })

  test('knows a Gateway of Istio that asks by a policy', () => {
    const [istio] = edited(
      'istio',
      [
        /selector:\n {4}matchLabels:\n {6}istio: ingressgateway/,
        'targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: g}]',
      ],
      [
        /workloadSelector:\n {4}labels:\n {6}istio: ingressgateway/,
        'targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: g}]',
      ],
    )
    const route = (parent: string): string =>
      gateway(
        'HTTPRoute',
        `spec: {parentRefs: [{name: ${parent}, namespace: istio-system}], rules: [{backendRefs: []}]}`,
      )
    const own = (name: string, gatewayClass: string): string =>
      gateway('Gateway', `spec: {gatewayClassName: ${gatewayClass}}`, `name: ${name}, namespace: istio-system`)
    const found = (...more: readonly string[]): readonly string[] => codesOf(istio?.text ?? '', ...more)
    for (const name of ['istio', 'istio-remote']) expect(found(route('g'), own('g', name))).toEqual([])
    expect(found(route('other'), own('other', 'istio'))).toEqual(['skips_question'])
    for (const name of ['nginx', 'notistio', 'istiox', '""'])
      expect(found(route('g'), own('g', name))).toEqual(['skips_question'])
    expect(found(route('g'))).toEqual(['unseen'])
    expect(found(route('other'))).toEqual(['skips_question'])
  })
})

describe('check-gateway of an Ingress', () => {
  const ingress = (annotations: string, spec = ''): string =>
    object('Ingress', `spec: {${spec}}`, `name: a, annotations: {${annotations}}`, 'networking.k8s.io/v1')
  const middleware = `apiVersion: traefik.io/v1alpha1
kind: Middleware
metadata: {name: ask, namespace: default}
spec:
  forwardAuth: {address: "https://door:15081/authorize"}
`
  const asks = 'traefik.ingress.kubernetes.io/router.middlewares: default-ask@kubernetescrd'

  test.each<[string, string, string]>([
    ['nobody who is asked', ingress('a: b'), 'skips_question'],
    ['an auth-url of nginx', ingress('nginx.ingress.kubernetes.io/auth-url: "http://a/authorize"'), 'unseen'],
    ['nobody who is asked by Traefik', ingress('', 'ingressClassName: traefik'), 'skips_question'],
    ['a middleware that is elsewhere', ingress(asks), 'unseen'],
    ['a middleware of another namespace', `${ingress(asks.replace('default-', 'other-'))}---\n${middleware}`, 'unseen'],
    [
      'an annotation that is not known',
      `${ingress(`${asks}, traefik.ingress.kubernetes.io/router.rule: x`)}---\n${middleware}`,
      'unseen',
    ],
  ])('names %s', (_name, text, code) => {
    expect(saying(one('ingress.yaml', text)).map((line) => line.split(':')[0])).toContain(code)
  })

  test.each<[string, string]>([
    ['by its spec', ingress(asks, 'ingressClassName: nginx')],
    ['by its annotation', ingress(`${asks}, kubernetes.io/ingress.class: nginx`)],
    ['by one of two', ingress(`${asks}, kubernetes.io/ingress.class: nginx`, 'ingressClassName: traefik')],
  ])('takes an Ingress of another class for no Ingress of Traefik: %s', (_name, text) => {
    const lines = saying(one('ingress.yaml', `${text}---\n${middleware}`))
    expect(lines).toContain('skips_question: apiVersion: networking.k8s.io/v1')
  })

  test('knows the middlewares that Traefik runs for it', () => {
    for (const spec of ['', 'ingressClassName: traefik']) {
      const lines = saying(one('ingress.yaml', `${ingress(asks, spec)}---\n${middleware}`))
      expect(lines.filter((line) => /^(skips_question: apiVersion: networking|unseen)/.test(line))).toEqual([])
    }
  })
})
