/** One setting moves every port of the sidecars, and says at once what it cannot be. */
import { describe, expect, test } from 'vitest'
import { parseInjectorConfig } from '../../../../sidecar/injector/pod/config.ts'
import { inject } from '../../../../sidecar/injector/pod/inject.ts'
import { type Json, type JsonObject, listAt, objectAt } from '../../../../sidecar/injector/pod/json.ts'
import { applyPatch } from '../../../../sidecar/injector/pod/patch.ts'
import { parsePod } from '../../../../sidecar/injector/pod/pod.ts'
import { DEFAULT_PORT, isSidecarPort, MESH_PORTS } from '../../../../sidecar/injector/pod/ports.ts'
import { checkWorkload } from '../../../../sidecar/injector/webhook/checks.ts'
import { ASKING, CONFIG, podWith } from './pods.ts'

const read = (port?: Json): number => parseInjectorConfig(JSON.stringify({ ...CONFIG, port }), 'injector.yaml').port
const MOVED = { ...CONFIG, port: 16_080 }
const TWO = {
  annotations: { ...ASKING, 'portcullis.dev/ports': 'http,grpc' },
  container: {
    ports: [
      { name: 'http', containerPort: 8080 },
      { name: 'grpc', containerPort: 9090 },
    ],
  },
}
const judge = (pod: JsonObject) => inject(pod, { config: MOVED, mode: 'required' })
function injected(pod: JsonObject, config = MOVED): JsonObject {
  const injection = inject(pod, { config, mode: 'required' })
  if (injection.verdict !== 'inject') throw new Error(JSON.stringify(injection))
  return applyPatch(pod, injection.operations)
}

describe('the setting', () => {
  test.each([1024, 15_084, 16_080, 49_152, 65_518])('may be %i', (port) => {
    expect(read(port)).toBe(port)
  })

  test('is the usual one where it is left out', () => {
    expect(read()).toBe(DEFAULT_PORT)
  })

  test.each<[Json, string]>([
    [1023, 'must be a number from 1024 to 65518'],
    [80, 'must be a number from 1024 to 65518'],
    [0, 'must be a number from 1024 to 65518'],
    [-15_080, 'must be a number from 1024 to 65518'],
    [65_519, 'must be a number from 1024 to 65518'],
    [70_000, 'must be a number from 1024 to 65518'],
    [15_080.5, 'must be a number from 1024 to 65518'],
    ['15080', 'must be a number from 1024 to 65518'],
    ['http', 'must be a number from 1024 to 65518'],
    ['', 'must be a number from 1024 to 65518'],
    [true, 'must be a number from 1024 to 65518'],
    [[15_080], 'must be a number from 1024 to 65518'],
    [{ first: 15_080 }, 'must be a number from 1024 to 65518'],
    [15_090, 'the ports 15090 to 15093 and 15104 to 15107, and 15090 is a port of Istio; choose another'],
    [15_076, 'the ports 15076 to 15079 and 15090 to 15093, and 15090 is a port of Istio; choose another'],
    [15_004, 'the ports 15004 to 15007 and 15018 to 15021, and 15004 is a port of Istio; choose another'],
    [4_176, 'the ports 4176 to 4179 and 4190 to 4193, and 4190 is a port of Linkerd; choose another'],
    [20_197, 'the ports 20197 to 20200 and 20211 to 20214, and 20200 is a port of Consul; choose another'],
    [9_087, 'the ports 9087 to 9090 and 9101 to 9104, and 9090 is a port of Dapr; choose another'],
    [9_884, 'the ports 9884 to 9887 and 9898 to 9901, and 9901 is a port of Kuma; choose another'],
  ])('is not %j, and the injector says why', (port, said) => {
    expect(() => read(port)).toThrow(said)
  })

  test.each(Object.entries(MESH_PORTS))('by itself takes no port of %s', (_, ports) => {
    expect(ports.filter((port) => isSidecarPort(port, DEFAULT_PORT))).toEqual([])
  })
})

describe('moved to 16080', () => {
  test('each sidecar listens, is probed and is named at ports that follow, and the label says from which on', () => {
    const document = injected(podWith(TWO))
    const { containers, labels } = parsePod(document)
    expect(labels.get('portcullis.dev/injected')).toBe('2-from-16080')
    const [first, second] = containers.map(({ raw }) => raw)
    expect(first).toMatchObject({
      args: expect.arrayContaining(['--listen=:16080', '--admin-listen=:16094']),
      ports: [{ name: 'http', containerPort: 16_080 }, { containerPort: 16_094 }],
      startupProbe: { httpGet: { port: 16_094 } },
      readinessProbe: { httpGet: { port: 16_094 } },
      livenessProbe: { httpGet: { port: 16_094 } },
    })
    expect(second).toMatchObject({
      args: expect.arrayContaining(['--listen=:16081', '--admin-listen=:16095']),
      ports: [{ name: 'grpc', containerPort: 16_081 }, { containerPort: 16_095 }],
    })
    expect(JSON.stringify(document)).not.toMatch(/150(?:8|9)\d/)
    expect(judge(document)).toMatchObject({ verdict: 'inject', operations: [] })
  })

  test.each([16_080, 16_083, 16_094, 16_097])(
    'an app with port %i is refused, with the ports that are reserved',
    (n) => {
      const ports = [{ name: 'http', containerPort: 8080 }, { containerPort: n }]
      const annotations = { ...ASKING, 'portcullis.dev/unprotected-ports': String(n) }
      expect(judge(podWith({ annotations, container: { ports } }))).toMatchObject({
        code: 'port_taken',
        message: `port ${n} of app is reserved for sidecars (16080 to 16083 and 16094 to 16097); choose another`,
      })
      expect(judge(podWith({ annotations }))).toMatchObject({ code: 'port_covered' })
    },
  )

  test.each([15_080, 15_094, 16_079, 16_084, 16_093, 16_098])('port %i is an app’s own', (n) => {
    const ports = [{ name: 'http', containerPort: 8080 }, { containerPort: n }]
    const annotations = { ...ASKING, 'portcullis.dev/unprotected-ports': String(n) }
    expect(judge(podWith({ annotations, container: { ports } })).verdict).toBe('inject')
  })

  test('a Pod that comes with its former sidecar gets the ports of now', () => {
    const former = injected(podWith({}), CONFIG)
    expect(injected(former)).toMatchObject({
      metadata: { labels: { 'portcullis.dev/injected': '1-from-16080' } },
      spec: { initContainers: [{ ports: [{ containerPort: 16_080 }, { containerPort: 16_094 }] }] },
    })
    expect(listAt(objectAt(injected(former).spec, 'spec').initContainers, '')).toHaveLength(1)
  })

  test('clients of a StatefulSet hear of the port that they dial', () => {
    const template = podWith({})
    const workload = { apiVersion: 'apps/v1', kind: 'StatefulSet', spec: { serviceName: 'invoices', template } }
    const { warnings } = checkWorkload(workload, 'enabled', MOVED)
    expect(warnings).toContainEqual(expect.stringContaining('give them the port 16080'))
  })
})
