import { describe, expect, test } from 'vitest'
import { type JsonObject, objectAt } from '../../../../sidecar/injector/pod/json.ts'
import { applyPatch } from '../../../../sidecar/injector/pod/patch.ts'
import { ASKING, podWith } from '../pod/pods.ts'
import {
  CLOSED,
  checkCluster,
  codes,
  named,
  namespace,
  policy,
  protectedPod,
  SCRAPE,
  SIDECARS_ONLY,
  service,
  settings,
} from './cluster-objects.ts'
import { GUARD } from './guard-objects.ts'

test('a closed cluster has no findings', () => {
  expect(checkCluster([...CLOSED, service('by-name', { port: 80, targetPort: 'http' })])).toEqual([])
})

test.each([
  ['Succeeded', []],
  ['Failed', []],
  ['Running', ['policy_missing', 'service_bypass', 'sidecar_outdated']],
])('of Pods past which something leads, those of phase %s have %j', (phase, found) => {
  const old = applyPatch(protectedPod(), [{ op: 'replace', path: '/spec/initContainers/0/image', value: 'old:1' }])
  const pod = { ...old, status: { phase, podIPs: [{ ip: '10.0.0.7' }] } }
  const endpoints = { endpoints: [{ addresses: ['10.0.0.7'] }], ports: [{ port: 8080 }] }
  const said = codes(...GUARD, namespace('enabled'), pod, named('EndpointSlice', 'e', endpoints))
  expect(said.toSorted()).toEqual(found)
})

describe('a Service', () => {
  test.each([
    ['with a number for a target', { port: 80, targetPort: 8080 }],
    ['without a target, so its own number', { port: 8080 }],
    ["with the name of the app's own port", { port: 80, targetPort: 'app-http' }],
    ['with the number of a sidecar that the Pod does not have', { port: 80, targetPort: 15_081 }],
    ['with the number of the probes of such a sidecar', { port: 80, targetPort: 15_095 }],
  ])('%s leads past the sidecar', (_what, port) => {
    expect(codes(...CLOSED, service('s', port))).toEqual(['service_bypass'])
  })

  test.each([
    ["with the sidecar's number", service('s', { port: 80, targetPort: 15_080 })],
    ["with the number of the sidecar's probes", service('s', { port: 80, targetPort: 15_094 })],
    ['that selects other Pods', service('s', { port: 80, targetPort: 8080 }, { app: 'other' })],
    ['without a selector', service('s', { port: 80, targetPort: 8080 }, {})],
    [
      'of a namespace that is not protected',
      { ...service('s', { port: 80, targetPort: 8080 }), metadata: { name: 's', namespace: 'x' } },
    ],
  ])('%s does not', (_what, object) => {
    expect(codes(...CLOSED, object)).toEqual([])
  })
})

test.each([
  [{ port: 80, targetPort: 'http' }, ['service_headless']],
  [{ port: 8080, targetPort: 'http' }, ['service_headless']],
  [{ port: 15_080, targetPort: 'http' }, []],
])('a headless Service with %j is found: %j', (port, found) => {
  const object = named('Service', 's', { spec: { clusterIP: 'None', selector: { app: 'invoices' }, ports: [port] } })
  expect(codes(...CLOSED, object)).toEqual(found)
})

describe('a Service beside Pods without a sidecar', () => {
  const bare = applyPatch(protectedPod({ annotations: {} }), [{ op: 'replace', path: '/metadata/name', value: 'bare' }])
  const byName = service('s', { port: 80, targetPort: 'http' })
  test('is listed when it sends to protectd ones as well', () => {
    expect(checkCluster([...CLOSED, bare, byName])).toMatchObject([
      {
        code: 'service_bypass',
        object: 'Service/s',
        message: expect.stringContaining('Pod bare, which has no sidecar'),
      },
    ])
  })

  test('is nothing of ours where none is protected, and listed where a sidecar is required', () => {
    const worker = protectedPod({ annotations: {}, container: { ports: [] } })
    const byNumber = service('s', { port: 80, targetPort: 8080 })
    expect(codes(...GUARD, namespace('enabled'), worker, byNumber)).toEqual([])
    const closed = policy('closed', { podSelector: {}, ingress: [] })
    expect(codes(...GUARD, namespace('required'), worker, byNumber, closed)).toEqual(['service_bypass'])
  })
})

describe('endpoints that somebody wrote', () => {
  const pod = { ...protectedPod(), status: { podIPs: [{ ip: '10.0.0.7' }] } }
  const slice = (ports: readonly JsonObject[], labels: JsonObject = {}, address = '10.0.0.7'): JsonObject =>
    named('EndpointSlice', 'e', { endpoints: [{ addresses: [address] }], ports }, { labels })
  const closed = [...GUARD, namespace('enabled'), pod, SIDECARS_ONLY]
  test.each([
    ["with the app's number", slice([{ port: 15_080 }, { port: 8080 }])],
    ['with every port', slice([])],
    ['with the number of a sidecar that the Pod does not have', slice([{ port: 15_081 }])],
    [
      'with a label of the controller',
      slice([{ port: 8080 }], { 'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io' }),
    ],
    ['with the label of a Service that is well', slice([{ port: 8080 }], { 'kubernetes.io/service-name': 'by-name' })],
    ['from another namespace', { ...slice([{ port: 8080 }]), metadata: { name: 'e', namespace: 'x' } }],
  ])('%s lead past the sidecar', (_what, object) => {
    expect(codes(...closed, object)).toEqual(['service_bypass'])
  })
  test.each([
    ["with the sidecar's number", slice([{ port: 15_080 }])],
    ['to other Pods', slice([{ port: 8080 }], {}, '10.0.0.8')],
  ])('%s do not', (_what, object) => {
    expect(codes(...closed, object)).toEqual([])
  })
})

test('endpoints in another spelling of an IPv6 address lead past the sidecar', () => {
  const pod = { ...protectedPod(), status: { podIPs: [{ ip: 'fd00::7' }] } }
  const slice = named('EndpointSlice', 'e', { endpoints: [{ addresses: ['FD00:0::0007'] }], ports: [{ port: 8080 }] })
  expect(codes(...GUARD, namespace('enabled'), pod, SIDECARS_ONLY, slice)).toEqual(['service_bypass'])
})

test('what a Service is listed for is not said again of its endpoints', () => {
  const pod = { ...protectedPod(), status: { podIPs: [{ ip: '10.0.0.7' }] } }
  const slice = (port: number): JsonObject =>
    named(
      'EndpointSlice',
      'e',
      { endpoints: [{ addresses: ['10.0.0.7'] }], ports: [{ port }] },
      { labels: { 'kubernetes.io/service-name': 's' } },
    )
  const closed = [...GUARD, namespace('enabled'), pod, SIDECARS_ONLY, service('s', { port: 80, targetPort: 8080 })]
  expect(checkCluster([...closed, slice(8080)]).map(({ object }) => object)).toEqual(['Service/s'])
  expect(checkCluster([...closed, slice(9100)]).map(({ object }) => object)).toEqual(['Service/s', 'EndpointSlice/e'])
})

describe('a port that a Pod itself calls unprotected', () => {
  const ports = [
    { name: 'http', containerPort: 8080 },
    { name: 'metrics', containerPort: 9100 },
  ]
  const annotations = { ...ASKING, 'portcullis.dev/unprotected-ports': 'metrics' }
  const saying = protectedPod({ container: { ports }, annotations })
  const silent = protectedPod({ container: { ports } })
  const opening = (port: number): JsonObject =>
    policy(
      'p',
      { podSelector: { matchLabels: { app: 'invoices' } }, ingress: [{ ports: [{ port }] }] },
      { labels: { 'portcullis.dev/part': 'unprotected' } },
    )
  test('may be opened by a policy and a Service', () => {
    const by = [opening(9100), service('s', { port: 9100 }), service('n', { port: 80, targetPort: 'metrics' })]
    expect(codes(...GUARD, namespace('enabled'), saying, SIDECARS_ONLY, ...by)).toEqual([])
  })
  test.each([
    ['for a Pod that does not say so, whatever the label of the policy says', silent, opening(9100)],
    ['with another number', saying, opening(8080)],
  ])('is past the sidecar %s', (_what, pod, object) => {
    expect(codes(...GUARD, namespace('enabled'), pod, SIDECARS_ONLY, object)).toEqual(['policy_bypass'])
  })
  test('is past the sidecar when it is the port behind it', () => {
    const forged = applyPatch(protectedPod(), [
      { op: 'add', path: '/metadata/annotations/portcullis.dev~1unprotected-ports', value: '8080' },
    ])
    expect(codes(...GUARD, namespace('enabled'), forged, SIDECARS_ONLY, opening(8080))).toEqual(['policy_bypass'])
  })
})

describe('a network policy', () => {
  const selects = { podSelector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['invoices'] }] } }
  test.each([
    ['that admits everything', { ...selects, ingress: [{}] }],
    ["that admits the app's number", { ...selects, ingress: [{ ports: [{ port: 8080 }] }] }],
    ['that admits a range with the app in it', { ...selects, ingress: [{ ports: [{ port: 8000, endPort: 9000 }] }] }],
    ["that admits the app's port by name", { ...selects, ingress: [{ ports: [{ port: 'app-http' }] }] }],
    ['that admits every port of a protocol', { ...selects, ingress: [{ ports: [{ protocol: 'TCP' }] }] }],
    ['that admits probes that no sidecar of it ever had', { ...selects, ingress: [{ ports: [{ port: 15_091 }] }] }],
    ['that admits probes of the version before', { ...selects, ingress: [SCRAPE] }],
    ['that takes every Pod', { podSelector: {}, ingress: [{}] }],
    ['that admits a sidecar that the Pod does not have', { ...selects, ingress: [{ ports: [{ port: 15_081 }] }] }],
    [
      'that admits sidecars past those of the Pod',
      { ...selects, ingress: [{ ports: [{ port: 15_080, endPort: 15_083 }] }] },
    ],
  ])('%s opens the app', (_what, spec) => {
    expect(codes(...CLOSED, policy('p', spec))).toEqual(['policy_bypass'])
  })

  test.each([
    [
      'of the chart for scrapers of sidecars of the version before',
      policy('portcullis-sidecars', {
        ...selects,
        ingress: [SCRAPE],
      }),
    ],
    ['that admits nothing', policy('p', { podSelector: {}, ingress: [] })],
    ['for egress', policy('p', { ...selects, policyTypes: ['Egress'], ingress: [{}] })],
    ['for other Pods', policy('p', { podSelector: { matchLabels: { app: 'other' } }, ingress: [{}] })],
  ])('%s does not', (_what, object) => {
    expect(codes(...CLOSED, object)).toEqual([])
  })

  test.each([
    ['of another sidecar', 'portcullis-sidecars-2', SCRAPE],
    ['for everybody', 'portcullis-sidecars', { ports: SCRAPE.ports }],
    ['with a name that only begins so', 'portcullis-sidecars-own', SCRAPE],
  ])('%s opens former probes, whatever it is called', (_what, name, rule) => {
    expect(codes(...CLOSED, policy(name, { ...selects, ingress: [rule] }))).toEqual(['policy_bypass'])
  })

  test('that nobody wrote leaves the app open', () => {
    expect(codes(...GUARD, namespace('enabled'), protectedPod())).toEqual(['policy_missing'])
  })
})

describe('a Pod', () => {
  test('that serves without a sidecar where one is required is listed, and a worker is not', () => {
    const bare = protectedPod({ annotations: {} })
    const worker = protectedPod({ annotations: {}, container: { ports: [] } })
    const closed = policy('closed', { podSelector: {}, ingress: [] })
    expect(codes(...GUARD, namespace('required'), bare, closed)).toEqual(['pod_unprotected'])
    expect(codes(...GUARD, namespace('required'), worker, closed)).toEqual([])
    expect(codes(...GUARD, namespace('enabled'), bare)).toEqual([])
  })

  test('without a sidecar is closed to the network where a sidecar is required, whatever ports it declares', () => {
    const worker = protectedPod({ annotations: {}, container: { ports: [] } })
    expect(codes(...GUARD, namespace('required'), worker)).toEqual(['policy_missing'])
    const open = policy('open', { podSelector: {}, ingress: [{ ports: [{ port: 15_080 }] }] })
    expect(codes(...GUARD, namespace('required'), worker, open)).toEqual(['policy_bypass'])
  })

  test('with a port on its node is listed', () => {
    const pod = applyPatch(protectedPod(), [{ op: 'add', path: '/spec/containers/0/ports/0/hostPort', value: 80 }])
    expect(codes(...GUARD, namespace('enabled'), pod, SIDECARS_ONLY)).toEqual(['pod_reachable'])
  })

  test.each([
    ['portcullis-pdp', ['token_shared']],
    ['vault', []],
  ])('with a token of its own for %s is listed as %j', (audience, found) => {
    const value = { name: 'own', projected: { sources: [{ serviceAccountToken: { path: 't', audience } }] } }
    const pod = applyPatch(protectedPod(), [{ op: 'add', path: '/spec/volumes/-', value }])
    expect(codes(...GUARD, namespace('enabled'), pod, SIDECARS_ONLY)).toEqual(found)
  })

  test('whose sidecar is of another version is listed', () => {
    const pod = applyPatch(protectedPod(), [{ op: 'replace', path: '/spec/initContainers/0/image', value: 'old:1' }])
    expect(codes(...GUARD, namespace('enabled'), pod, SIDECARS_ONLY)).toEqual(['sidecar_outdated'])
  })
})

test('a container with a sidecar’s name that is no sidecar is listed, and is none', () => {
  const forged = applyPatch(protectedPod(), [
    { op: 'add', path: '/spec/initContainers/0/command', value: ['node', '/app/sidecar/bin.js'] },
  ])
  const byName = service('s', { port: 80, targetPort: 'http' })
  expect(codes(...GUARD, namespace('enabled'), forged, SIDECARS_ONLY)).toEqual(['sidecar_forged'])
  const closed = policy('closed', { podSelector: {}, ingress: [] })
  expect(codes(...GUARD, namespace('required'), forged, closed, byName)).toEqual([
    'pod_unprotected',
    'sidecar_forged',
    'service_bypass',
  ])
})

test('a namespace whose mode is misspelt is listed', () => {
  expect(codes(...GUARD, namespace('require'))).toEqual(['namespace_unknown'])
  expect(codes(...GUARD, namespace('disabled'))).toEqual([])
})

test('a policy that opens fifty Pods is listed once', () => {
  const pods = Array.from({ length: 50 }, () => protectedPod())
  const open = policy('open', { podSelector: {}, ingress: [{}] })
  expect(codes(...GUARD, namespace('enabled'), ...pods, SIDECARS_ONLY, open)).toEqual(['policy_bypass'])
})

describe('who asks in vain', () => {
  const routes = (data: JsonObject): JsonObject => named('ConfigMap', 'invoices-routes', { data })
  const GOOD = `portcullis: v1
resource: https://invoices.example.com
issuers: [{issuer: https://id.example.com}]
upstream: http://127.0.0.1:8080
pdp: {address: "127.0.0.1:9090", insecure: true}
routes: {GET /a: public}
`
  test('is a Pod with the annotations in a namespace without the label', () => {
    const bare = { ...podWith({}), metadata: { name: 'bare', namespace: 'other', annotations: ASKING } }
    const other = named('Namespace', 'other', {}, { namespace: null })
    expect(codes(...CLOSED, other, bare)).toEqual(['pod_bare'])
    const silent = { ...podWith({}), metadata: { name: 'silent', namespace: 'other' } }
    const opted = {
      ...bare,
      metadata: { ...objectAt(bare.metadata, ''), labels: { 'portcullis.dev/inject': 'disabled' } },
    }
    expect(codes(...CLOSED, other, silent, opted)).toEqual([])
  })

  test('is a workload whose Pods the injector would refuse', () => {
    const template = (annotations: JsonObject): JsonObject => ({
      ...podWith({ annotations }),
      metadata: { annotations },
    })
    const workload = (annotations: JsonObject): JsonObject =>
      named('Deployment', 'w', { apiVersion: 'apps/v1', spec: { template: template(annotations) } })
    const read = routes({ 'http.yaml': GOOD })
    expect(codes(...CLOSED, settings(), read, workload(ASKING))).toEqual([])
    const [found] = checkCluster([...CLOSED, settings(), read, workload({ ...ASKING, 'portcullis.dev/ports': '8080' })])
    expect(found).toMatchObject({ code: 'workload_refused', object: 'Deployment/w' })
    expect(found?.message).toMatch(/^its Pods will be refused: annotation portcullis.dev\/ports must list names/)
  })

  test('is no file with routes only where the platform says the rest, and then a sidecar of before that is', () => {
    const platform = JSON.stringify({ pdp: { address: 'pdp:9090' }, issuers: [{ issuer: 'https://id.example.com' }] })
    const file = routes({ 'http.yaml': GOOD.replaceAll(/^(?:issuers|pdp):.*\n/gm, '') })
    expect(codes(...CLOSED, file)).toEqual(['routes_invalid'])
    expect(codes(...CLOSED, file, settings({ platform }))).toEqual(['sidecar_outdated'])
    expect(codes(...CLOSED, routes({ 'http.yaml': GOOD }), settings({ platform })).toSorted()).toEqual([
      'routes_invalid',
      'sidecar_outdated',
    ])
  })

  test.each<[string, JsonObject, string, RegExp]>([
    ['another key', { 'web.yaml': GOOD }, 'routes_missing', /has no key http.yaml, .*its keys are web.yaml/],
    ['no key', {}, 'routes_missing', /its keys are none/],
    [
      'a file with a mistake',
      { 'http.yaml': GOOD.replace('public', 'pubic x:') },
      'routes_invalid',
      /^http.yaml:\d+:\d+: /,
    ],
  ])('are sidecars whose ConfigMap has %s', (_name, data, code, message) => {
    expect(checkCluster([...CLOSED, routes(data)])).toMatchObject([{ code, message: expect.stringMatching(message) }])
  })

  test('are sidecars whose ConfigMap is not there, and only where ConfigMaps were read', () => {
    expect(codes(...CLOSED, named('ConfigMap', 'other', {}))).toEqual(['routes_missing'])
    expect(codes(...CLOSED, routes({ 'http.yaml': GOOD }))).toEqual([])
  })
})
