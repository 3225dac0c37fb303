/** Pods for the injector's tests: one that works, and random ones. */
import fc from 'fast-check'
import type { InjectorConfig } from '../../../../sidecar/injector/pod/config.ts'
import type { JsonObject } from '../../../../sidecar/injector/pod/json.ts'

export const CONFIG: InjectorConfig = {
  image: 'registry.example/portcullis-sidecar:1.0.0',
  imagePullPolicy: 'IfNotPresent',
  port: 15_080,
  nativeSidecars: true,
  runAsUser: 65_532,
  resources: { requests: { cpu: '50m', memory: '64Mi' }, limits: { memory: '256Mi' } },
  resourceBounds: { cpu: { min: '10m', max: '2' }, memory: { min: '64Mi', max: '1Gi' } },
  scrapers: [],
  authorities: null,
  redis: null,
  dpopNonces: null,
  tracesEndpoint: null,
  egressProxy: null,
  platform: null,
  imagePullSecrets: [],
  logLevel: 'info',
}
export const ASKING = { 'portcullis.dev/ports': 'http', 'portcullis.dev/routes': 'invoices-routes' }

/** A Pod that asks for a sidecar in front of its port `http`; `spec`, `container` and `metadata` are laid over it. */
export function podWith(over: {
  readonly annotations?: JsonObject
  readonly labels?: JsonObject
  readonly container?: JsonObject
  readonly spec?: JsonObject
}): JsonObject {
  const container = { name: 'app', image: 'app:1', ports: [{ name: 'http', containerPort: 8080 }], ...over.container }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'invoices',
      annotations: over.annotations ?? ASKING,
      ...(over.labels !== undefined && { labels: over.labels }),
    },
    spec: { containers: [container], ...over.spec },
  }
}

/** Mostly the first, so that most Pods get past any one rule. */
const mostly = <T>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 12, arbitrary: usual }, { weight: 1, arbitrary: odd })
const name = mostly(
  fc.constantFrom('http', 'grpc', 'metrics', 'web'),
  fc.constantFrom('app-http', 'app-1', 'averyverylong1'),
)
const port = fc.record(
  {
    name: fc.option(name, { nil: undefined }),
    containerPort: mostly(fc.integer({ min: 1, max: 15_079 }), fc.constantFrom(8080, 15_083, 15_090, 15_094, 15_098)),
    protocol: mostly(fc.constant('TCP'), fc.constant('UDP')),
    hostPort: mostly(fc.constant(0), fc.constant(8080)),
  },
  { requiredKeys: ['containerPort'] },
)
const action = fc.oneof(
  fc.record({ httpGet: fc.record({ path: fc.constant('/'), port: fc.oneof(name, fc.constant(8080)) }) }),
  fc.record({ tcpSocket: fc.record({ port: fc.oneof(name, fc.constant(8080)) }) }),
  fc.record({ grpc: fc.constant({ port: 9090 }) }),
  fc.record({ exec: fc.constant({ command: ['true'] }) }),
)
const container = fc.record(
  {
    name: mostly(
      fc.constantFrom('app', 'worker', 'mesh'),
      fc.constantFrom('portcullis-sidecar', 'portcullis-sidecar-2', 'portcullis-'),
    ),
    image: fc.constantFrom('app:1', CONFIG.image),
    ports: fc.array(port, { maxLength: 3 }),
    readinessProbe: action,
    livenessProbe: action,
    startupProbe: action,
    lifecycle: fc.record({ preStop: action, postStart: action }, { requiredKeys: [] }),
    volumeMounts: fc.array(fc.record({ name: mostly(fc.constant('data'), fc.constant('portcullis-token')) }), {
      maxLength: 1,
    }),
  },
  { requiredKeys: ['name'] },
)
const annotations = fc.record(
  {
    'portcullis.dev/ports': fc.constantFrom(
      'http',
      'http,grpc',
      'grpc, http',
      'none',
      '',
      '8080',
      'http,http',
      'averyverylong1',
    ),
    'portcullis.dev/routes': fc.constantFrom('invoices-routes', '../other/cm', ''),
    'portcullis.dev/secrets': fc.constantFrom('invoices-sign-in', '../other/s', ''),
    'portcullis.dev/unprotected-ports': fc.constantFrom('metrics', '9090,metrics', '!'),
    'portcullis.dev/status': fc.constant('{}'),
    'portcullis.dev/image': fc.constant('evil'),
    'example.com/note': fc.string(),
  },
  { requiredKeys: [] },
)
/** Pods of every quality, most of them shaped as Kubernetes would accept them. */
export const anyPod: fc.Arbitrary<JsonObject> = fc.record({
  apiVersion: fc.constant('v1'),
  kind: fc.constant('Pod'),
  metadata: fc.record(
    {
      annotations: fc.oneof({ weight: 3, arbitrary: fc.constant(ASKING) }, { weight: 4, arbitrary: annotations }),
      labels: mostly(
        fc.constant({}),
        fc.dictionary(
          fc.constantFrom('app', 'portcullis.dev/inject', 'portcullis.dev/injected'),
          fc.constantFrom('disabled', 'enabled', 'true'),
        ),
      ),
    },
    { requiredKeys: [] },
  ),
  spec: fc.record(
    {
      containers: fc.array(container, { minLength: 1, maxLength: 3 }),
      initContainers: fc.array(container, { maxLength: 2 }),
      volumes: fc.array(
        fc.record({ name: mostly(fc.constant('data'), fc.constant('portcullis-routes')), emptyDir: fc.constant({}) }),
        {
          maxLength: 2,
        },
      ),
      hostNetwork: mostly(fc.constant(false), fc.constant(true)),
      shareProcessNamespace: mostly(fc.constant(false), fc.constant(true)),
      imagePullSecrets: fc.array(fc.record({ name: fc.constantFrom('own', 'registry') }), { maxLength: 2 }),
      restartPolicy: fc.constantFrom('Always', 'Never'),
      enableServiceLinks: fc.boolean(),
    },
    { requiredKeys: ['containers'] },
  ),
}) as fc.Arbitrary<JsonObject>
