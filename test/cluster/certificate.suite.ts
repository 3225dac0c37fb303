/** The chart that makes and renews the webhook's certificate itself, against a real API server: its own rights suffice, and Pods get their sidecar all along. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject as given, test } from 'vitest'
import { parse } from 'yaml'
import { makeCertificate } from '../../sidecar/injector/certificate/certificate.ts'
import { isObject, objectAt, textAt, textsAt } from '../../sidecar/injector/pod/json.ts'
import { podWith } from '../sidecar/injector/pod/pods.ts'
import { type Cluster, NAMESPACE, startCluster, until } from './cluster.ts'

const SECRET = `/api/v1/namespaces/${NAMESPACE}/secrets/portcullis-injector-tls`
const DAY_MS = 86_400_000
const VALUES = ['--values', 'charts/portcullis/values-first-try.yaml', '--set', 'pdp.issuer=https://id.example.com']
let cluster: Cluster
let server = ''
let maintainer: ChildProcess | null = null
let log = ''

beforeAll(async () => {
  cluster = await startCluster(given('binaries'))
  await cluster.namespace(NAMESPACE)
  cluster.helm('install', 'portcullis', 'charts/portcullis', '--namespace', NAMESPACE, ...VALUES)
  await cluster.namespace('shop', { 'portcullis.dev/inject': 'required' })
  const config: unknown = parse(readFileSync(cluster.kubeconfig, 'utf8'))
  const [entry] = isObject(config) && Array.isArray(config.clusters) ? config.clusters : []
  const { server: origin, 'certificate-authority-data': authority } = objectAt(objectAt(entry, '').cluster, '')
  server = String(origin)
  writeFileSync(file('cluster-ca.pem'), Buffer.from(String(authority), 'base64'))
})
afterAll(async () => {
  await stopMaintainer()
  await cluster?.close()
})

const file = (name: string): string => join(cluster.folder, name)

/** With the rights that the chart gives its ServiceAccount, as the Deployment starts it. */
async function startMaintainer(
  account = 'portcullis-injector-certificate',
  more: readonly string[] = [],
): Promise<void> {
  const path = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${account}/token`
  const made = await cluster.kube.must('POST', path, { spec: { expirationSeconds: 3600 } })
  writeFileSync(file('maintainer.token'), textAt(objectAt(made.status, 'status').token, 'token') ?? '')
  const flags = [`--api-server=${server}`, `--token-file=${file('maintainer.token')}`]
  const words = ['sidecar/main.ts', 'injector', 'maintain-certificate', ...flags, ...more]
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: file('cluster-ca.pem') }
  maintainer = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  maintainer.stdout?.setEncoding('utf8').on('data', (text: string) => {
    log += text
  })
}

async function stopMaintainer(): Promise<void> {
  if (maintainer === null || maintainer.exitCode !== null) return
  const ended = once(maintainer, 'exit')
  maintainer.kill('SIGTERM')
  await ended
}

async function heldFiles(): Promise<ReadonlyMap<string, string>> {
  const { data } = await cluster.kube.must('GET', SECRET)
  return new Map([...textsAt(data, 'data')].map(([name, text]) => [name, Buffer.from(text, 'base64').toString()]))
}

/** As the kubelet lays the Secret out. */
async function mount(): Promise<void> {
  mkdirSync(file('tls'), { recursive: true })
  for (const [name, text] of await heldFiles()) writeFileSync(join(file('tls'), name), text)
}

async function isInjected(): Promise<boolean> {
  const answer = await cluster.kube.send('POST', '/api/v1/namespaces/shop/pods?dryRun=All', podWith({}))
  return answer.status === 201 && JSON.stringify(answer.body.spec).includes('"portcullis-sidecar"')
}

test('a fresh installation gets its certificate, and a Pod its sidecar', async () => {
  expect(await heldFiles()).toEqual(new Map())
  await startMaintainer()
  await until(async () => (await heldFiles()).size === 3)
  await mount()
  await cluster.serve()
  await until(isInjected)
  expect(log).toContain('"event":"certificate_made"')
  expect(log).not.toContain('certificate_not_maintained')
})

test('an upgrade of the chart keeps the certificate and the authorities', async () => {
  const before = await heldFiles()
  cluster.helm('upgrade', 'portcullis', 'charts/portcullis', '--namespace', NAMESPACE, ...VALUES, '--set', 'labels.a=b')
  expect(await heldFiles()).toEqual(before)
  expect(await isInjected()).toBe(true)
})

test('a certificate near its end is renewed, and Pods are injected before and after the injector presents the new one', async () => {
  await stopMaintainer()
  const service = `portcullis-injector.${NAMESPACE}.svc`
  const old = await makeCertificate({
    names: [service, `${service}.cluster.local`],
    days: 90,
    nowMs: Date.now() - 70 * DAY_MS,
  })
  const secret = await cluster.kube.must('GET', SECRET)
  const files = { 'ca.crt': old.authority, 'tls.crt': old.certificate, 'tls.key': old.key }
  const data = Object.entries(files).map(([name, text]) => [name, Buffer.from(text).toString('base64')])
  await cluster.kube.must('PUT', SECRET, { ...secret, data: Object.fromEntries(data) })
  await cluster.silence()
  await mount()
  await cluster.serve()
  await startMaintainer()
  await until(async () => (await heldFiles()).get('tls.crt') !== old.certificate)
  // The injector presents the old one until the kubelet brings the new one.
  await until(isInjected)
  await cluster.silence()
  await mount()
  await cluster.serve()
  await until(isInjected)
  expect(log).toContain('it was about to expire')
})

test('its rights end at its own Secret and webhook', async () => {
  const token = readFileSync(file('maintainer.token'), 'utf8')
  const mine = cluster.kubeAs(token)
  const webhooks = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations'
  const policies = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies'
  for (const path of [
    `/api/v1/namespaces/${NAMESPACE}/secrets`,
    `/api/v1/namespaces/${NAMESPACE}/secrets/portcullis-pdp`,
    webhooks,
    `${webhooks}/other`,
    policies,
    '/api/v1/namespaces/shop/pods',
  ])
    expect([path, (await mine.send('GET', path)).status]).toEqual([path, 403])
  expect((await mine.send('DELETE', `${webhooks}/zz-portcullis-injector`)).status).toBe(403)
  expect((await mine.send('DELETE', SECRET)).status).toBe(403)
})

test('the certificate of the PDP is made too, its authority is in each protected namespace, and an upgrade keeps both', async () => {
  await stopMaintainer()
  const own = [
    'pdp.grpc.certificates.mode=self',
    'injector.sidecar.authorities=portcullis-ca',
    'protectedNamespaces[0].name=shop',
  ]
  const words = [...VALUES, ...own.flatMap((value) => ['--set', value])]
  const upgrade = (): string =>
    cluster.helm('upgrade', 'portcullis', 'charts/portcullis', '--namespace', NAMESPACE, ...words)
  upgrade()
  const bundles = ['shop/portcullis-ca', `${NAMESPACE}/portcullis-ca`]
  const flags = ['--service=portcullis-pdp', '--secret=portcullis-pdp-tls', '--webhook=none', `--bundles=${bundles}`]
  await startMaintainer('portcullis-pdp-certificate', flags)
  const bundle = async (namespace: string): Promise<string> => {
    const { data } = await cluster.kube.must('GET', `/api/v1/namespaces/${namespace}/configmaps/portcullis-ca`)
    return textsAt(data, 'data').get('ca.crt') ?? ''
  }
  await until(async () => (await bundle('shop')) !== '' && (await bundle(NAMESPACE)) !== '')
  const made = await bundle('shop')
  const { data } = await cluster.kube.must('GET', SECRET.replace('injector', 'pdp'))
  expect(Buffer.from(textsAt(data, 'data').get('ca.crt') ?? '', 'base64').toString()).toBe(made)
  upgrade()
  expect(await bundle('shop')).toBe(made)
  const mine = cluster.kubeAs(readFileSync(file('maintainer.token'), 'utf8'))
  for (const path of [SECRET, '/api/v1/namespaces/shop/configmaps', '/api/v1/namespaces/shop/configmaps/other'])
    expect([path, (await mine.send('GET', path)).status]).toEqual([path, 403])
})
