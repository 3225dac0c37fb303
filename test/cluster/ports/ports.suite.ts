/** An update to other ports of sidecars: the former and the new are admitted and open, each for its own Pods, and nothing else is. */
import { afterAll, beforeAll, describe, expect, inject as given, test } from 'vitest'
import { type InjectorConfig, parseInjectorConfig } from '../../../sidecar/injector/pod/config.ts'
import { inject } from '../../../sidecar/injector/pod/inject.ts'
import { type Json, type JsonObject, listAt, objectAt, textsAt } from '../../../sidecar/injector/pod/json.ts'
import { applyPatch, type PatchOperation } from '../../../sidecar/injector/pod/patch.ts'
import { podWith } from '../../sidecar/injector/pod/pods.ts'
import { type Cluster, installWords, NAMESPACE, startCluster, until } from '../cluster.ts'
import type { KubeAnswer } from '../kube-client.ts'
import { storeRoutes } from '../objects.ts'

const TWO = {
  annotations: { 'portcullis.dev/ports': 'http,grpc', 'portcullis.dev/routes': 'invoices-routes' },
  container: {
    ports: [
      { name: 'http', containerPort: 8080 },
      { name: 'grpc', containerPort: 9090 },
    ],
  },
}
// Where no injector runs, a Pod arrives as its author wrote it.
const VALUES = ['protectedNamespaces[0].name=invoices', 'injector.webhook.failurePolicy=Ignore']
const SIDECAR = '/spec/initContainers/0'
const put = (path: string, value: Json): PatchOperation => ({ op: 'replace', path, value })
const SECOND = '/spec/initContainers/1'
const MARK = '/metadata/labels/portcullis.dev~1injected'
type Over = Parameters<typeof podWith>[0]
const portsOf = (more: number): JsonObject => ({
  ports: [{ name: 'http', containerPort: 8080 }, { containerPort: more }],
})
/** A port of the app. */
const appAt = (containerPort: number): PatchOperation => ({
  op: 'add',
  path: '/spec/containers/0/ports/-',
  value: { containerPort },
})
let cluster: Cluster
let authority = ''
let usual: InjectorConfig

beforeAll(async () => {
  cluster = await startCluster(given('binaries'))
  await cluster.namespace(NAMESPACE)
  await cluster.namespace('invoices', { 'portcullis.dev/inject': 'enabled' })
  authority = await cluster.certify('first')
  cluster.helm(...installWords('install', authority, set(VALUES)))
  const map = await cluster.kube.must('GET', `/api/v1/namespaces/${NAMESPACE}/configmaps/portcullis-injector`)
  usual = parseInjectorConfig(textsAt(map.data, 'data').get('injector.yaml') ?? '', 'injector.yaml')
  await cluster.serve()
  await storeRoutes(cluster.kube, 'invoices')
})
afterAll(() => cluster?.close())

const set = (values: readonly string[]): readonly string[] => values.flatMap((value) => ['--set', value])
/** The values of the release, as an operator changes them. */
const upgrade = (...values: readonly string[]): string =>
  cluster.helm(...installWords('upgrade', authority, set([...VALUES, ...values])))

let count = 0
function make(pod: JsonObject = podWith({}), at = ''): Promise<KubeAnswer> {
  count += 1
  const metadata = { ...objectAt(pod.metadata, 'metadata'), name: `pod-${count}` }
  return cluster.kube.send('POST', `/api/v1/namespaces/invoices/pods${at}`, { ...pod, metadata })
}
const firstPort = ({ body }: KubeAnswer): unknown => {
  const [sidecar] = listAt(objectAt(body.spec, 'spec').initContainers, '').map((one) => objectAt(one, ''))
  return objectAt(listAt(sidecar?.ports, '')[0] ?? null, '').containerPort
}

/** As an injector with this port makes it, and its author changes it. */
function made(port: number, over: Over = {}, changes: readonly PatchOperation[] = []): JsonObject {
  const pod = podWith(over)
  const injection = inject(pod, { config: { ...usual, port }, mode: 'enabled' })
  if (injection.verdict !== 'inject') throw new Error(JSON.stringify(injection))
  return applyPatch(applyPatch(pod, injection.operations), changes)
}
const passes = async (pod: JsonObject): Promise<boolean> => (await make(pod, '?dryRun=All')).status === 201

/** The ports that policies open on Pods with this label; null: no policy selects them, so that everything is open. */
async function openOn(label: string): Promise<readonly unknown[] | null> {
  const { items } = await cluster.kube.must('GET', '/apis/networking.k8s.io/v1/namespaces/invoices/networkpolicies')
  const selecting = listAt(items, 'items')
    .map((item) => objectAt(objectAt(item, 'item').spec, 'spec'))
    .filter(({ podSelector }) =>
      listAt(objectAt(podSelector, 'podSelector').matchExpressions, 'matchExpressions').some((one) => {
        const { operator, values } = objectAt(one, 'matchExpressions')
        return operator === 'Exists' || listAt(values, 'values').includes(label)
      }),
    )
  const rules = selecting.flatMap(({ ingress }) => listAt(ingress, 'ingress').map((rule) => objectAt(rule, 'ingress')))
  const ports = rules.flatMap((rule) => listAt(rule.ports, 'ports').map((port) => objectAt(port, 'ports').port))
  return selecting.length === 0 ? null : ports
}

test('before, the port of now is the only one', async () => {
  const answer = await make()
  expect([answer.status, firstPort(answer)]).toEqual([201, 15_080])
  expect(await openOn('1')).toEqual([15_080])
  await cluster.silence()
  expect([await passes(made(15_080)), await passes(made(16_080))]).toEqual([true, false])
})

describe('during an update', () => {
  beforeAll(async () => {
    upgrade('injector.sidecar.port=16080')
    await until(() => passes(made(16_080)))
  })

  test.each<[string, number, Over]>([
    ['one sidecar', 15_080, {}],
    ['two sidecars', 15_080, TWO],
    ['one sidecar', 16_080, {}],
    ['two sidecars', 16_080, TWO],
    ['an app with a port that only the other sidecars have', 15_080, { container: portsOf(16_081) }],
    ['an app with a port that only the other sidecars have', 16_080, { container: portsOf(15_081) }],
  ])('%s at %i passes', async (_what, port, over) => {
    const answer = await make(made(port, over), '?dryRun=All')
    expect([answer.status, answer.body.message]).toEqual([201, undefined])
  })

  test.each<[what: string, said: string, port: number, changes: readonly PatchOperation[], over?: Over]>([
    ['a third port', 'as the injector makes it', 17_080, []],
    ['one beside the new', 'as the injector makes it', 16_081, []],
    ['former probes', 'readinessProbe', 16_080, [put(`${SIDECAR}/readinessProbe/httpGet/port`, 15_094)]],
    ['new probes at the former port', 'livenessProbe', 15_080, [put(`${SIDECAR}/livenessProbe/httpGet/port`, 16_094)]],
    ['a former port by its argument', 'args', 16_080, [put(`${SIDECAR}/args/2`, '--listen=:15080')]],
    ['a second sidecar of the other', 'ports', 16_080, [put(`${SECOND}/ports/0/containerPort`, 15_081)], TWO],
    ['a first sidecar of the other', 'ports', 16_080, [put(`${SIDECAR}/ports/0/containerPort`, 15_080)], TWO],
    ['the label of the former', 'how many sidecars', 16_080, [put(MARK, '1')]],
    ['the label of the new', 'how many sidecars', 15_080, [put(MARK, '1-from-16080')]],
    ['a label of a third', 'how many sidecars', 16_080, [put(MARK, '1-from-17080')]],
    ['the probes of the version before', 'ports', 16_080, [put(`${SIDECAR}/ports/1/containerPort`, 15_090)]],
    ['an app at the new', '16080 to 16083 and 16094 to 16097 are reserved', 16_080, [appAt(16_083)]],
    ['an app at the former', '15080 to 15083 and 15094 to 15097 are reserved', 15_080, [appAt(15_097)]],
  ])('%s is refused', async (_what, said, port, changes, over) => {
    const answer = await make(made(port, over, changes), '?dryRun=All')
    expect([answer.status, answer.body.message]).toEqual([422, expect.stringContaining(said)])
  })

  test('each Pod is reachable at its own ports alone', async () => {
    expect(await openOn('1')).toEqual([15_080])
    expect(await openOn('1-from-16080')).toEqual([16_080])
    expect(await openOn('2-from-16080')).toEqual([16_080, 16_081])
    expect(await openOn('1-from-17080')).toEqual([])
  })

  test('the injector makes the new, and check-cluster lists the Pods that are left', async () => {
    await cluster.serve()
    const answer = await make()
    expect([answer.status, firstPort(answer)]).toEqual([201, 16_080])
    const { stdout } = cluster.check('--namespace', 'invoices')
    expect(stdout).toMatch(/sidecar_outdated {2}invoices\/Pod\/pod-1 .*injector\.sidecar\.port/)
    expect(stdout).not.toMatch(/policy_|backstop_|service_|forged/)
    expect(stdout.match(/sidecar_outdated/g)).toHaveLength(1)
    await cluster.silence()
  })
})

describe('after it', () => {
  beforeAll(async () => {
    upgrade('injector.sidecar.port=16080,injector.sidecar.formerPort=16080')
    await until(async () => !(await passes(made(15_080))))
  })

  test('the new port is the only one, and a Pod that was left is closed', async () => {
    expect(await passes(made(16_080, TWO))).toBe(true)
    const answer = await make(made(15_080), '?dryRun=All')
    expect(answer.body.message).toContain('as the injector makes it')
    expect([await openOn('1'), await openOn('1-from-16080')]).toEqual([[], [16_080]])
  })
})
