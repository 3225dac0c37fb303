import { describe, expect, test } from 'vitest'
import { SCRAPE_PATH } from '../../../../sidecar/injector/pod/annotations.ts'
import { inject } from '../../../../sidecar/injector/pod/inject.ts'
import { DENIALS, type Injection, type Mode } from '../../../../sidecar/injector/pod/injection.ts'
import type { JsonObject } from '../../../../sidecar/injector/pod/json.ts'
import { applyPatch } from '../../../../sidecar/injector/pod/patch.ts'
import { parsePod } from '../../../../sidecar/injector/pod/pod.ts'
import { isSidecar } from '../../../../sidecar/injector/pod/recognize-sidecar.ts'
import { OPEN_PATH } from '../../../../sidecar/route-file/format.ts'
import { REFUSED, says } from '../webhook/refusals.ts'
import { ASKING, CONFIG, podWith } from './pods.ts'

const ORDINARY = { ...CONFIG, nativeSidecars: false }
const judge = (pod: JsonObject, mode: Mode = 'enabled', config = CONFIG): Injection => inject(pod, { config, mode })

function injected(pod: JsonObject, mode: Mode = 'enabled', config = CONFIG): JsonObject {
  const injection = judge(pod, mode, config)
  if (injection.verdict !== 'inject') throw new Error(JSON.stringify(injection))
  return applyPatch(pod, injection.operations)
}

const argsOf = (pod: JsonObject): unknown => parsePod(pod).containers.map(({ raw }) => raw.args)[0]
const resourcesOf = (pod: JsonObject): unknown => parsePod(pod).containers.map(({ raw }) => raw.resources)[0]

describe('paths to scrape', () => {
  const config = { ...CONFIG, scrapers: ['10.0.0.0/8', 'fd00::/8'] }
  test('are those that a route file may open', () => {
    expect(SCRAPE_PATH.source).toBe(OPEN_PATH.source)
  })

  test('are opened by the first sidecar alone, to the addresses of the operator', () => {
    const ports = [
      { name: 'http', containerPort: 8080 },
      { name: 'grpc', containerPort: 9090 },
    ]
    const annotations = {
      ...ASKING,
      'portcullis.dev/ports': 'http,grpc',
      'portcullis.dev/scrape': '/metrics, /healthz',
    }
    const pod = injected(podWith({ annotations, container: { ports } }), 'enabled', config)
    const [first, second] = parsePod(pod).containers.map(({ raw }) => raw.args)
    expect(first).toContain('--open=/metrics=10.0.0.0/8,fd00::/8')
    expect(first).toContain('--open=/healthz=10.0.0.0/8,fd00::/8')
    expect(String(second)).not.toContain('--open')
    expect(parsePod(pod).containers.filter((container) => isSidecar(container, parsePod(pod)))).toHaveLength(2)
  })

  test('are not opened for a Pod that asks for none', () => {
    expect(String(argsOf(injected(podWith({}), 'enabled', config)))).not.toContain('--open')
  })
})

test.each([
  [2, [expect.stringMatching(/^terminationGracePeriodSeconds is 2: requests are cut off/)]],
  [9, [expect.anything()]],
  [10, []],
  [null, []],
])('a grace of %j seconds has its warning: %j', (grace, warnings) => {
  const pod = podWith({ spec: grace === null ? {} : { terminationGracePeriodSeconds: grace } })
  expect(judge(pod)).toMatchObject({ verdict: 'inject', warnings })
})

test('a copy of a Pod without its annotations is told how to copy it', () => {
  const { metadata, ...copy } = injected(podWith({}))
  expect(judge({ ...copy, metadata: { name: 'copy' } })).toMatchObject({
    message: expect.stringMatching(/--keep-annotations$/),
  })
  expect(metadata).toBeDefined()
})

describe('resources of a sidecar', () => {
  test.each<[string, JsonObject, JsonObject, unknown]>([
    ['the operator’s', {}, {}, CONFIG.resources],
    [
      'a request and a limit',
      { 'portcullis.dev/cpu': '100m,500m' },
      {},
      { requests: { cpu: '100m', memory: '64Mi' }, limits: { cpu: '500m', memory: '256Mi' } },
    ],
    [
      'a request above the operator’s limit',
      { 'portcullis.dev/memory': '512Mi' },
      {},
      { requests: { cpu: '50m', memory: '512Mi' }, limits: { memory: '512Mi' } },
    ],
    ['nothing where the Pod has its own', {}, { resources: { requests: { cpu: '1' } } }, {}],
    [
      'what it asks for where the Pod has its own',
      { 'portcullis.dev/cpu': '20m' },
      { resources: { limits: { cpu: '1' } } },
      { requests: { cpu: '20m' } },
    ],
  ])('are %s', (_name, annotations, spec, wanted) => {
    expect(resourcesOf(injected(podWith({ annotations: { ...ASKING, ...annotations }, spec })))).toEqual(wanted)
  })
})

describe('an app with one named port', () => {
  test('keeps its port number under another name, and the sidecar takes the name', () => {
    const pod = parsePod(injected(podWith({})))
    const [sidecar, app] = pod.containers
    expect(app?.ports).toMatchObject([{ name: 'app-http', number: 8080 }])
    expect(sidecar).toMatchObject({ list: 'initContainers', name: 'portcullis-sidecar' })
    expect(sidecar?.ports[0]).toMatchObject({ name: 'http', number: 15_080 })
    expect(sidecar?.raw.restartPolicy).toBe('Always')
    expect(pod.labels.get('portcullis.dev/injected')).toBe('1')
    expect(pod.annotations.get('kubectl.kubernetes.io/default-container')).toBe('app')
  })

  test('keeps the variables of Services that its app may read: no setting of a sidecar has such a name', () => {
    expect(injected(podWith({}))).not.toHaveProperty('spec.enableServiceLinks')
  })

  test('keeps every probe and hook that named the port, by number', () => {
    const named = { httpGet: { path: '/ready', port: 'http', scheme: 'HTTPS' } }
    const pod = injected(
      podWith({
        container: {
          readinessProbe: named,
          livenessProbe: { tcpSocket: { port: 'http' } },
          startupProbe: { grpc: { port: 8080 } },
          lifecycle: { preStop: named },
        },
      }),
    )
    expect(pod).toMatchObject({
      spec: {
        containers: [
          {
            readinessProbe: { httpGet: { path: '/ready', port: 8080, scheme: 'HTTPS' } },
            livenessProbe: { tcpSocket: { port: 8080 } },
            startupProbe: { grpc: { port: 8080 } },
            lifecycle: { preStop: { httpGet: { port: 8080 } } },
          },
        ],
      },
    })
  })

  test('gets an ordinary container, last, where native sidecars have no named ports', () => {
    const { containers } = parsePod(injected(podWith({}), 'enabled', ORDINARY))
    expect(containers.map(({ list, name }) => `${list}/${name}`)).toEqual([
      'containers/app',
      'containers/portcullis-sidecar',
    ])
    expect(containers[1]?.raw.restartPolicy).toBeUndefined()
  })

  test('keeps annotations, labels, volumes and init containers that were there', () => {
    const spec = {
      initContainers: [{ name: 'mesh', restartPolicy: 'Always' }],
      volumes: [{ name: 'data', emptyDir: {} }],
    }
    const pod = parsePod(injected(podWith({ spec, labels: { app: 'invoices' } })))
    expect(pod.containers.map(({ name }) => name)).toEqual(['mesh', 'portcullis-sidecar', 'app'])
    expect(pod.volumes.map(({ name }) => name)).toEqual([
      'data',
      'portcullis-routes',
      'portcullis-token',
      'portcullis-control',
    ])
    expect(pod.labels.get('app')).toBe('invoices')
    expect(pod.annotations.get('portcullis.dev/routes')).toBe('invoices-routes')
  })

  test('adds no volume on the disk of the node, for which the cluster autoscaler would keep the node', () => {
    const folders = parsePod(injected(podWith({}))).volumes.filter(({ raw }) => raw.emptyDir !== undefined)
    expect(folders.map(({ raw }) => raw.emptyDir)).toEqual([{ medium: 'Memory', sizeLimit: '1Mi' }])
  })

  test('keeps the default container that its author chose', () => {
    const annotations = { ...ASKING, 'kubectl.kubernetes.io/default-container': 'worker' }
    expect(
      parsePod(injected(podWith({ annotations }))).annotations.get('kubectl.kubernetes.io/default-container'),
    ).toBe('worker')
  })
})

test('settings add the authorities and the secrets that all replicas share, and a Pod with them is recognised', () => {
  const config = {
    ...CONFIG,
    authorities: 'pdp-ca',
    redis: { name: 'redis', key: 'url' },
    dpopNonces: { name: 'sidecars', key: 'nonces' },
    logLevel: 'warn' as const,
  }
  const pod = injected(podWith({}), 'enabled', config)
  expect(pod).toMatchObject({
    spec: {
      initContainers: [
        {
          env: [
            { name: 'PORTCULLIS_LOG_LEVEL', value: 'warn' },
            { name: 'PORTCULLIS_SIDECAR_CONTROL', value: '/run/portcullis/portcullis-sidecar.sock' },
            { name: 'NODE_EXTRA_CA_CERTS', value: '/etc/portcullis/authorities/ca.crt' },
            { name: 'REDIS_URL', valueFrom: { secretKeyRef: { name: 'redis', key: 'url' } } },
            {
              name: 'PORTCULLIS_DPOP_NONCE_SECRET',
              valueFrom: { secretKeyRef: { name: 'sidecars', key: 'nonces' } },
            },
          ],
        },
      ],
    },
  })
  expect(parsePod(pod).volumes.map(({ name }) => name)).toContain('portcullis-authorities')
  expect(judge(pod, 'enabled', config)).toMatchObject({ verdict: 'inject', operations: [] })
  expect(judge(pod)).toMatchObject({ verdict: 'deny', code: 'name_taken' })
})

test('a Secret that the Pod names is mounted into every sidecar of it and nowhere else, such as the keys of sign-in', () => {
  const annotations = {
    ...ASKING,
    'portcullis.dev/ports': 'http,grpc',
    'portcullis.dev/secrets': 'invoices-sign-in',
  }
  const ports = [
    { name: 'grpc', containerPort: 9090 },
    { name: 'http', containerPort: 8080 },
  ]
  const document = injected(podWith({ annotations, container: { ports } }))
  const pod = parsePod(document)
  expect(pod.volumes.find(({ name }) => name === 'portcullis-secrets')?.raw).toEqual({
    name: 'portcullis-secrets',
    secret: { secretName: 'invoices-sign-in', defaultMode: 420 },
  })
  const mount = { name: 'portcullis-secrets', mountPath: '/etc/portcullis/secrets', readOnly: true }
  const holders = pod.containers.filter(({ raw }) =>
    JSON.stringify(raw.volumeMounts ?? []).includes('portcullis-secrets'),
  )
  expect(holders.map(({ name }) => name)).toEqual(['portcullis-sidecar', 'portcullis-sidecar-2'])
  for (const { raw } of holders) expect(raw.volumeMounts).toContainEqual(mount)
  expect(judge(document)).toMatchObject({ verdict: 'inject', operations: [] })
})

test('a Pod without the annotation has no such volume, and one that differs is refused', () => {
  expect(JSON.stringify(injected(podWith({})))).not.toContain('portcullis-secrets')
  const forged = { name: 'portcullis-secrets', emptyDir: {} }
  expect(judge(podWith({ ...says({ 'portcullis.dev/secrets': 'keys' }), spec: { volumes: [forged] } }))).toMatchObject({
    verdict: 'deny',
    code: 'name_taken',
  })
})

test('the Secrets for its image are added to those of the Pod, each once', () => {
  const config = { ...CONFIG, imagePullSecrets: ['registry', 'mirror'] }
  const pod = injected(
    podWith({ spec: { imagePullSecrets: [{ name: 'registry' }, { name: 'own' }] } }),
    'enabled',
    config,
  )
  expect(parsePod(pod).imagePullSecrets).toEqual(['registry', 'own', 'mirror'])
  expect(parsePod(injected(podWith({}), 'enabled', config)).imagePullSecrets).toEqual(['registry', 'mirror'])
  expect(judge(pod, 'enabled', config)).toMatchObject({ verdict: 'inject', operations: [] })
})

test('shared processes are warned of where a sidecar is not required', () => {
  expect(judge(podWith({ spec: { shareProcessNamespace: true } }))).toMatchObject({
    warnings: [expect.stringContaining('reach into the sidecar')],
  })
})

test('a hundred thousand ports that are not protected make a short message', () => {
  const ports = Array.from({ length: 100_000 }, () => ({ containerPort: 9000 }))
  const injection = judge(
    podWith({ container: { ports: [{ name: 'http', containerPort: 8080 }, ...ports] } }),
    'required',
  )
  expect(injection).toMatchObject({ code: 'port_unprotected', message: expect.stringContaining('and 99992 more;') })
  expect(injection.verdict === 'deny' && injection.message.length).toBeLessThan(400)
})

test('each of several ports gets its own sidecar, port pair and route file', () => {
  const annotations = { ...ASKING, 'portcullis.dev/ports': 'http, grpc' }
  const ports = [
    { name: 'grpc', containerPort: 9090 },
    { name: 'http', containerPort: 8080 },
  ]
  const { containers, labels } = parsePod(injected(podWith({ annotations, container: { ports } })))
  const [first, second] = containers
  expect(labels.get('portcullis.dev/injected')).toBe('2')
  expect(first?.ports.map((port) => [port.name, port.number])).toEqual([
    ['http', 15_080],
    ['sidecar-admin', 15_094],
  ])
  expect(second?.ports.map((port) => [port.name, port.number])).toEqual([
    ['grpc', 15_081],
    ['sidecar-admin-2', 15_095],
  ])
  expect(second?.raw.args).toContain('--file=/etc/portcullis/routes/grpc.yaml')
})

test('a Job is sidecar injected by a native sidecar, which ends with it', () => {
  const pod = podWith({ spec: { restartPolicy: 'Never' } })
  expect(judge(pod).verdict).toBe('inject')
  expect(judge(pod, 'enabled', ORDINARY)).toMatchObject({ verdict: 'deny', code: 'job_unsupported' })
})

describe('refuses', () => {
  for (const [what, code, over, mode] of REFUSED)
    test(`${what}: ${code}`, () => {
      expect(judge(podWith(over), mode)).toMatchObject({ verdict: 'deny', code })
    })

  test('each with a message that says what to do', () => {
    const advice = /\bmust\b|requires annotation|; (?:remove|rename|name|choose|known are)\b/
    const said = REFUSED.filter(([, code]) => code !== 'pod_invalid').map(([, , over, mode]) =>
      judge(podWith(over), mode),
    )
    expect(said).toEqual(said.map(() => expect.objectContaining({ message: expect.stringMatching(advice) })))
  })

  test('each for its own reason, and every reason has a case', () => {
    const seen = new Set<string>([...REFUSED.map(([, code]) => code), 'job_unsupported', 'sidecar_late'])
    expect(DENIALS.filter((code) => !seen.has(code))).toEqual([])
  })

  test('a sidecar with another image', () => {
    const image = { op: 'replace', path: '/spec/initContainers/0/image', value: 'evil' } as const
    expect(judge(applyPatch(injected(podWith({})), [image]))).toMatchObject({ verdict: 'deny', code: 'name_taken' })
  })

  test('a sidecar in the wrong list', () => {
    const pod = injected(podWith({}), 'enabled', { ...ORDINARY })
    expect(judge(pod)).toMatchObject({ verdict: 'deny', code: 'name_taken' })
  })

  test('a second port with the protected name that another injector added', () => {
    const added = { name: 'late', ports: [{ name: 'http', containerPort: 1234 }] }
    const pod = applyPatch(injected(podWith({})), [{ op: 'add', path: '/spec/containers/-', value: added }])
    expect(judge(pod)).toMatchObject({ verdict: 'deny', code: 'port_repeated' })
  })
})

describe('leaves alone', () => {
  test.each([
    ['a Pod that asks for nothing', podWith({ annotations: {}, container: { ports: [] } }), 'not_asked', 0],
    ['and warns of its ports', podWith({ annotations: {} }), 'not_asked', 1],
    ['a Pod that opts out where it may', podWith({ labels: { 'portcullis.dev/inject': 'disabled' } }), 'opted_out', 0],
    [
      'a Pod that serves nothing',
      podWith({ annotations: { 'portcullis.dev/ports': 'none' }, container: { ports: [] } }),
      'serves_nothing',
      0,
    ],
  ])('%s', (_what, pod, code, warningCount) => {
    const injection = judge(pod)
    expect(injection).toMatchObject({ verdict: 'skip', code })
    expect(injection.verdict === 'skip' && injection.warnings).toHaveLength(warningCount)
  })

  test('a worker without ports where a sidecar is required', () => {
    const pod = podWith({ annotations: { 'portcullis.dev/ports': 'none' }, container: { ports: [] } })
    expect(judge(pod, 'required')).toMatchObject({ verdict: 'skip', code: 'serves_nothing' })
  })
})

test('a forged status annotation changes nothing: the container decides', () => {
  const pod = podWith(says({ 'portcullis.dev/status': '{}' }))
  expect(parsePod(injected(pod)).containers.some(({ name }) => name === 'portcullis-sidecar')).toBe(true)
})

test('ports named as unprotected pass without a word', () => {
  const container = {
    ports: [{ name: 'http', containerPort: 8080 }, { name: 'metrics', containerPort: 9100 }, { containerPort: 9200 }],
  }
  const annotations = { ...ASKING, 'portcullis.dev/unprotected-ports': 'metrics, 9200' }
  expect(judge(podWith({ container, annotations }), 'required')).toMatchObject({ verdict: 'inject', warnings: [] })
})

test('what admission adjusts in a sidecar for its own reasons is accepted', () => {
  const pod = applyPatch(injected(podWith({})), [
    { op: 'replace', path: '/spec/initContainers/0/imagePullPolicy', value: 'Always' },
    { op: 'replace', path: '/spec/initContainers/0/resources', value: { limits: { cpu: '1' } } },
  ])
  expect(judge(pod)).toMatchObject({ verdict: 'inject', operations: [] })
})
