/** A cluster with controllers, and what tests ask of it and read from it. */
import { execFile } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type JsonObject, listAt, objectAt, textAt } from '../../../sidecar/injector/pod/json.ts'
import type { Binaries } from '../binaries.ts'
import { type Cluster, startCluster } from '../cluster.ts'
import type { KubeAnswer, KubeClient } from '../kube-client.ts'

export type SeenPod = {
  readonly name: string
  /** Kind of its controller. */
  readonly owner: string | null
  readonly node: string | null
  readonly phase: string | null
  readonly isReady: boolean
  /** Names of the init containers, in order. */
  readonly inits: readonly string[]
  readonly image: string | null
}
type Endpoints = { readonly addresses: readonly string[]; readonly ports: readonly number[] }
export type ActingCluster = Cluster & {
  /** What it prints; throws with what it says about a failure. */
  kubectl(...words: readonly string[]): Promise<string>
  /** Returns when all Pods of the workload are new and ready. */
  rollOut(namespace: string, workload: string): Promise<string>
  /** Those that a label selector selects; all without one. */
  pods(namespace: string, selector?: string): Promise<readonly SeenPod[]>
  /** Each Pod that is there at some time until `end` is settled, as it was last. Throws if `end` fails. */
  podsUntil(end: Promise<unknown>, namespace: string, selector: string): Promise<readonly SeenPod[]>
  /** Asks for a Pod with a sidecar, and makes none. */
  tryPod(namespace: string): Promise<KubeAnswer>
  evict(namespace: string, name: string): Promise<KubeAnswer>
  /** Where the Service leads, as its controller resolved it. */
  endpoints(namespace: string, service: string): Promise<Endpoints>
}

const ASKING = { 'portcullis.dev/ports': 'http', 'portcullis.dev/routes': 'invoices-routes' }

/** Of a Pod with an init container, and an app that asks for a sidecar; `spec` is laid over it. */
export function template(app: string, spec: JsonObject = {}): JsonObject {
  const container = { name: 'app', image: 'example/app:1', ports: [{ name: 'http', containerPort: 8080 }] }
  const migrate = { name: 'migrate', image: 'example/app:1' }
  return {
    metadata: { labels: { app }, annotations: ASKING },
    spec: { initContainers: [migrate], containers: [container], ...spec },
  }
}

export async function startActingCluster(binaries: Binaries): Promise<ActingCluster> {
  const cluster = await startCluster(binaries, binaries.controllers)
  const { kube, kubeconfig } = cluster
  const run = promisify(execFile)
  async function kubectl(...words: readonly string[]): Promise<string> {
    const { stdout } = await run(binaries.kubectl, words, { env: { ...process.env, KUBECONFIG: kubeconfig } })
    return stdout
  }
  async function pods(namespace: string, selector = ''): Promise<readonly SeenPod[]> {
    const query = `labelSelector=${encodeURIComponent(selector)}`
    const { items } = await kube.must('GET', `/api/v1/namespaces/${namespace}/pods?${query}`)
    return listAt(items, 'items').map((item) => readPod(objectAt(item, 'item')))
  }
  return {
    ...cluster,
    kubectl,
    rollOut: (namespace, workload) =>
      kubectl('rollout', 'status', workload, `--namespace=${namespace}`, '--timeout=50s'),
    pods,
    async podsUntil(end, namespace, selector) {
      const seen = new Map<string, SeenPod>()
      let isOver = false
      const over = end.finally(() => {
        isOver = true
      })
      over.catch(() => undefined) // awaited below
      do {
        for (const pod of await pods(namespace, selector)) seen.set(pod.name, pod)
        await delay(20)
      } while (!isOver)
      await over
      return [...seen.values()]
    },
    tryPod: (namespace) =>
      kube.send('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All`, {
        ...template('tried'),
        metadata: { name: 'tried', annotations: ASKING },
      }),
    evict: (namespace, name) =>
      kube.send('POST', `/api/v1/namespaces/${namespace}/pods/${name}/eviction`, {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { name, namespace },
      }),
    endpoints: (namespace, service) => readEndpoints(kube, { namespace, service }),
  }
}

function readPod({ metadata, spec, status }: JsonObject): SeenPod {
  const { name, ownerReferences } = objectAt(metadata, 'metadata')
  const { nodeName, initContainers, containers } = objectAt(spec, 'spec')
  const { phase, conditions } = objectAt(status, 'status')
  const [owner] = listAt(ownerReferences, 'ownerReferences')
  const [app] = listAt(containers, 'containers')
  return {
    name: textAt(name, 'name') ?? '',
    owner: textAt(objectAt(owner, 'owner').kind, 'kind'),
    node: textAt(nodeName, 'nodeName'),
    phase: textAt(phase, 'phase'),
    isReady: listAt(conditions, 'conditions')
      .map((item) => objectAt(item, 'condition'))
      .some(({ type, status: said }) => type === 'Ready' && said === 'True'),
    inits: listAt(initContainers, 'initContainers').map((item) => String(objectAt(item, 'init').name)),
    image: textAt(objectAt(app, 'app').image, 'image'),
  }
}

async function readEndpoints(
  kube: KubeClient,
  { namespace, service }: { namespace: string; service: string },
): Promise<Endpoints> {
  const query = `labelSelector=${encodeURIComponent(`kubernetes.io/service-name=${service}`)}`
  const { items } = await kube.must('GET', `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?${query}`)
  const slices = listAt(items, 'items').map((item) => objectAt(item, 'slice'))
  const ready = slices
    .flatMap(({ endpoints }) => listAt(endpoints, 'endpoints').map((item) => objectAt(item, 'endpoint')))
    .filter(({ conditions }) => objectAt(conditions, 'conditions').ready === true)
  const ports = slices.flatMap((slice) =>
    listAt(slice.ports, 'ports').map((item) => Number(objectAt(item, 'port').port)),
  )
  return {
    addresses: ready.flatMap(({ addresses }) => listAt(addresses, 'addresses').map(String)),
    ports: [...new Set(ports)],
  }
}
