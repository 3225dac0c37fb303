/** The chart, installed by Helm into a real control plane, with the injector served as its Service says. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parse } from 'yaml'
import { isObject, type JsonObject, objectAt, textAt, textsAt } from '../../sidecar/injector/pod/json.ts'
import { freePort } from '../support/free-port.ts'
import type { Binaries, Controllers } from './binaries.ts'
import { type ControlPlane, startControlPlane } from './control-plane.ts'
import { startControllers } from './controllers/start.ts'

declare module 'vitest' {
  interface ProvidedContext {
    binaries: Binaries
  }
}

export const NAMESPACE = 'portcullis'
const CHART = 'charts/portcullis'

type Certificates = {
  /** Makes a certificate by the command: the authority's path, and the Secret as it prints it. */
  issue(name: string): { readonly authority: string; readonly secret: string }
  /** Stores a Secret in the cluster, and lays its files out as the kubelet does for the volume. */
  mount(secret: string): Promise<void>
  /** Both; the authority's path. */
  certify(name: string): Promise<string>
}
type Injector = {
  /** Serves the injector with the settings that the cluster's ConfigMap holds. */
  serve(): Promise<void>
  /** Where it listens. */
  readonly webhookPort: number
  silence(): Promise<void>
  /** Of all injectors so far. */
  injectorLog(): string
}
export type Cluster = ControlPlane &
  Certificates &
  Injector & {
    helm(...words: readonly string[]): string
    /** What `check-cluster` says. */
    check(...words: readonly string[]): { readonly status: number | null; readonly stdout: string }
    namespace(name: string, labels?: JsonObject): Promise<void>
  }

/**
 * Throws when the machine has only loopback addresses, which endpoints may not have. With `controllers` they act on every
 * object, and Pods of the chart's injector have the address of this machine.
 */
export async function startCluster(binaries: Binaries, controllers: Controllers | null = null): Promise<Cluster> {
  const address = ownAddress()
  const plane = await startControlPlane(binaries)
  const { kube, folder } = plane
  const webhookPort = await freePort()
  const told = controllers === null ? () => publish(plane, { address, port: webhookPort }) : null
  const injector = openInjector(plane, { webhookPort, told })
  const acting = controllers === null ? null : await startControllers(plane, { programs: controllers, address })
  return {
    ...plane,
    ...openCertificates(plane),
    ...injector,
    helm: (...words) =>
      execFileSync(binaries.helm, words, {
        encoding: 'utf8',
        env: { ...process.env, KUBECONFIG: plane.kubeconfig, HELM_DATA_HOME: folder, HELM_CACHE_HOME: folder },
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    check: (...words) =>
      spawnSync(process.execPath, ['sidecar/main.ts', 'check-cluster', '--kubectl', binaries.kubectl, ...words], {
        encoding: 'utf8',
        env: { ...process.env, KUBECONFIG: plane.kubeconfig },
      }),
    async namespace(name, labels = {}) {
      await kube.must('POST', '/api/v1/namespaces', { metadata: { name, labels } })
      // Admission wants it, and a controller may have made it already.
      const path = `/api/v1/namespaces/${name}/serviceaccounts`
      const { status, body } = await kube.send('POST', path, { metadata: { name: 'default' } })
      if (status !== 201 && status !== 409) throw new Error(JSON.stringify(body))
    },
    async close() {
      await injector.silence()
      await acting?.close()
      await plane.close()
    },
  }
}

const mountedIn = (folder: string): string => join(folder, 'tls')

function openCertificates({ kube, folder }: ControlPlane): Certificates {
  function issue(name: string): { authority: string; secret: string } {
    const authority = join(folder, `${name}.pem`)
    const words = ['injector', 'certificate', '--namespace', NAMESPACE, '--ca', authority]
    return { authority, secret: execFileSync(process.execPath, ['sidecar/main.ts', ...words], { encoding: 'utf8' }) }
  }

  async function mount(text: string): Promise<void> {
    const secret: unknown = parse(text)
    if (!isObject(secret)) throw new Error(text)
    const secrets = `/api/v1/namespaces/${NAMESPACE}/secrets`
    const path = `${secrets}/${textAt(objectAt(secret.metadata, 'metadata').name, 'name')}`
    const exists = (await kube.send('GET', path)).status === 200
    const { data } = await kube.must(exists ? 'PUT' : 'POST', exists ? path : secrets, secret)
    mkdirSync(mountedIn(folder), { recursive: true })
    for (const [file, content] of textsAt(data, 'data')) writeFileSync(join(mountedIn(folder), file), content, 'base64')
  }

  return {
    issue,
    mount,
    async certify(name) {
      const { authority, secret } = issue(name)
      await mount(secret)
      return authority
    },
  }
}

/** `told` tells the cluster where it listens. */
function openInjector(
  { kube, folder }: ControlPlane,
  { webhookPort, told }: { webhookPort: number; told: (() => Promise<void>) | null },
): Injector {
  let running: ChildProcess | null = null
  let log = ''
  return {
    webhookPort,
    async serve() {
      const map = await kube.must('GET', `/api/v1/namespaces/${NAMESPACE}/configmaps/portcullis-injector`)
      const settings = join(folder, 'injector.yaml')
      writeFileSync(settings, textsAt(map.data, 'data').get('injector.yaml') ?? '')
      const flags = [`--config=${settings}`, `--certificate=${mountedIn(folder)}`, `--listen=:${webhookPort}`]
      const words = ['sidecar/main.ts', 'injector', ...flags, '--admin-listen=127.0.0.1:0']
      running = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] })
      running.stdout?.setEncoding('utf8').on('data', (text: string) => {
        log += text
      })
      await once(running.stdout ?? running, 'data')
      await told?.()
      await delay(200)
    },
    async silence() {
      const ending = running
      running = null
      if (ending === null || ending.exitCode !== null) return
      const ended = once(ending, 'exit')
      ending.kill('SIGTERM')
      await ended
    },
    injectorLog: () => log,
  }
}

function ownAddress(): string {
  const address = Object.values(networkInterfaces())
    .flatMap((entries) => entries ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)?.address
  if (address === undefined) throw new Error('this machine has only loopback addresses, which endpoints may not have')
  return address
}

/** Tells the cluster where the Service's endpoints are, as the controllers would. */
async function publish({ kube }: ControlPlane, { address, port }: { address: string; port: number }): Promise<void> {
  const path = `/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices`
  const slice = {
    metadata: { name: 'portcullis-injector', labels: { 'kubernetes.io/service-name': 'portcullis-injector' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
    ports: [{ name: 'webhook', port, protocol: 'TCP' }],
  }
  const answer = await kube.send('POST', path, slice)
  if (answer.status !== 201 && answer.status !== 409) throw new Error(JSON.stringify(answer.body))
}

/** The API server takes up changes of its configuration after a moment. Throws after half a minute. */
export async function until(check: () => Promise<boolean>, seconds = 30): Promise<void> {
  for (let tries = 0; !(await check()); tries += 1) {
    if (tries > seconds * 10) throw new Error('it did not come true')
    await delay(100)
  }
}

/** What a user installs: the least values, with the certificate that `certify` made. */
export function installWords(
  verb: 'install' | 'upgrade',
  authority: string,
  more: readonly string[] = [],
): readonly string[] {
  const values = [
    '--values',
    `${CHART}/ci/minimal-values.yaml`,
    '--set-file',
    `injector.certificates.caBundle=${authority}`,
  ]
  return [verb, 'portcullis', CHART, '--namespace', NAMESPACE, ...values, ...more]
}
