/** A real control plane for tests: etcd and kube-apiserver in a folder of their own, on free loopback ports. */
import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { makeCertificate } from '../../sidecar/injector/certificate/certificate.ts'
import { freePort } from '../support/free-port.ts'
import { makeDataFolder } from '../support/programs/data-folder.ts'
import type { Binaries } from './binaries.ts'
import { type KubeClient, kubeClient } from './kube-client.ts'

export type ControlPlane = {
  /** As an administrator. */
  readonly kube: KubeClient
  kubeAs(token: string): KubeClient
  /** For helm and kubectl. */
  readonly kubeconfig: string
  readonly folder: string
  close(): Promise<void>
}

const START_TIMEOUT_MS = 90_000
const LOOPBACK = '127.0.0.1'

/** Throws with the end of the API server's log when it does not become ready. */
export async function startControlPlane(binaries: Binaries): Promise<ControlPlane> {
  const folder = makeDataFolder('portcullis-cluster-')
  const children: ChildProcess[] = []
  const close = async (): Promise<void> => {
    for (const child of children.toReversed()) await stop(child)
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const [etcdPort, peerPort, port] = await Promise.all([freePort(), freePort(), freePort()])
    const { kube, kubeAs, kubeconfig } = await writeCredentials(folder, port)
    const etcdUrl = `http://${LOOPBACK}:${etcdPort}`
    children.push(start(binaries.etcd, etcdFlags(folder, etcdUrl, peerPort), join(folder, 'etcd.log')))
    const log = join(folder, 'kube-apiserver.log')
    children.push(start(binaries['kube-apiserver'], apiFlags(folder, etcdUrl, port), log))
    const deadline = Date.now() + START_TIMEOUT_MS
    while ((await kube.send('GET', '/readyz').catch(() => null))?.status !== 200) {
      if (Date.now() > deadline || children.some(({ exitCode }) => exitCode !== null))
        throw new Error(`kube-apiserver is not ready: ${readFileSync(log, 'utf8').slice(-2_000)}`)
      await delay(100)
    }
    return { kube, kubeAs, kubeconfig, folder, close }
  } catch (err) {
    await close()
    throw err
  }
}

async function writeCredentials(
  folder: string,
  port: number,
): Promise<Pick<ControlPlane, 'kube' | 'kubeAs' | 'kubeconfig'>> {
  const { authority, certificate, key } = await makeCertificate({ names: ['localhost'], days: 1, nowMs: Date.now() })
  const token = randomBytes(16).toString('hex')
  const accounts = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const kubeconfig = join(folder, 'kubeconfig')
  const cluster = {
    server: `https://localhost:${port}`,
    'certificate-authority-data': Buffer.from(authority).toString('base64'),
  }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster }],
    users: [{ name: 'test', user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    'current-context': 'test',
  }
  for (const [name, content] of [
    ['tls.crt', certificate],
    ['tls.key', key],
    ['tokens.csv', `${token},admin,admin,"system:masters"\n`],
    ['ca.crt', authority],
    ['accounts.key', accounts.export({ type: 'pkcs8', format: 'pem' }).toString()],
    ['kubeconfig', JSON.stringify(config)],
  ] as const)
    writeFileSync(join(folder, name), content, { mode: 0o600 })
  const kubeAs = (bearer: string): KubeClient => kubeClient({ port, token: bearer, ca: authority })
  return { kube: kubeAs(token), kubeAs, kubeconfig }
}

function etcdFlags(folder: string, url: string, peerPort: number): readonly string[] {
  const peer = `http://${LOOPBACK}:${peerPort}`
  return [
    `--data-dir=${join(folder, 'etcd')}`,
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
  ]
}

function apiFlags(folder: string, etcdUrl: string, port: number): readonly string[] {
  const file = (name: string): string => join(folder, name)
  return [
    `--etcd-servers=${etcdUrl}`,
    `--secure-port=${port}`,
    `--bind-address=${LOOPBACK}`,
    `--cert-dir=${folder}`,
    `--tls-cert-file=${file('tls.crt')}`,
    `--tls-private-key-file=${file('tls.key')}`,
    `--token-auth-file=${file('tokens.csv')}`,
    '--authorization-mode=RBAC',
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${file('accounts.key')}`,
    `--service-account-signing-key-file=${file('accounts.key')}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    // A Service is dialled at its endpoints: there is no kube-proxy here.
    '--enable-aggregator-routing=true',
    // Debian's etcd cannot serve it, and kwok would ask for it again and again.
    '--feature-gates=WatchList=false',
  ]
}

export function start(program: string, flags: readonly string[], log: string): ChildProcess {
  const output = openSync(log, 'w')
  return spawn(program, flags, { stdio: ['ignore', output, output] })
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await ended
  clearTimeout(timer)
}
