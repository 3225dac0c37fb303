/** The operator's guide, as somebody new would follow it: its own commands, in its order, against a real API server. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { isObject, type JsonObject, listAt, objectAt, textsAt } from '../../sidecar/injector/pod/json.ts'
import { parsePod } from '../../sidecar/injector/pod/pod.ts'
import { type Cluster, NAMESPACE, startCluster, until } from './cluster.ts'

const GUIDE = readFileSync('charts/portcullis/README.md', 'utf8')
const APP = '/apis/apps/v1/namespaces/shop/deployments'
let cluster: Cluster
let desk = ''

beforeAll(async () => {
  cluster = await startCluster(inject('binaries'))
  desk = join(cluster.folder, 'desk')
  mkdirSync(desk)
  symlinkSync(resolve('charts'), join(desk, 'charts'))
  const { kubectl, helm } = inject('binaries')
  tool('kubectl', `exec ${kubectl} "$@"`)
  // Nothing runs Pods here: what the test's Pod does is done below.
  tool('helm', `if [ "$1" = test ]; then exit 0; fi; exec ${helm} "$@"`)
  tool('portcullis-sidecar', `exec ${process.execPath} ${resolve('sidecar/main.ts')} "$@"`)
})
afterAll(() => cluster?.close())

function tool(name: string, script: string): void {
  mkdirSync(join(desk, 'bin'), { recursive: true })
  writeFileSync(join(desk, 'bin', name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(desk, 'bin', name), 0o755)
}

/** The commands of the section's code blocks that have no language, in order. */
function commandsOf(title: string): readonly string[] {
  const section = GUIDE.split(/^## /m).find((text) => text.startsWith(`${title}\n`))
  const blocks = [...(section ?? '').matchAll(/^```\n([^`]+)^```$/gm)].map(([, text = '']) => text)
  if (blocks.length === 0) throw new Error(`the guide has no commands under ${title}`)
  return blocks
}

function run(script: string): string {
  return execFileSync('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: desk,
    encoding: 'utf8',
    env: {
      PATH: `${join(desk, 'bin')}:${process.env.PATH}`,
      HOME: desk,
      KUBECONFIG: cluster.kubeconfig,
      DATABASE_URL: 'postgresql://portcullis:secret@db.internal/portcullis',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

/** Lays out the injector's certificate as its volume holds it. */
async function takeCertificate(): Promise<void> {
  const secret = await cluster.kube.must('GET', `/api/v1/namespaces/${NAMESPACE}/secrets/portcullis-injector-tls`)
  mkdirSync(join(cluster.folder, 'tls'), { recursive: true })
  for (const [file, content] of textsAt(secret.data, 'data'))
    writeFileSync(join(cluster.folder, 'tls', file), content, 'base64')
}

/** As the ReplicaSet controller would. */
async function podOfApp(): Promise<JsonObject> {
  const { spec } = await cluster.kube.must('GET', `${APP}/invoices`)
  const template = objectAt(objectAt(spec, 'spec').template, 'template')
  const metadata = { ...objectAt(template.metadata, 'metadata'), generateName: 'invoices-' }
  return cluster.kube.must('POST', '/api/v1/namespaces/shop/pods', { metadata, spec: template.spec ?? {} })
}
const sidecarsOf = (pod: JsonObject): readonly string[] =>
  parsePod(pod)
    .containers.map(({ name }) => name)
    .filter((name) => name.startsWith('portcullis-'))

test('installs', async () => {
  for (const commands of commandsOf('Install')) run(commands)
  await takeCertificate()
  await cluster.serve()
  const { items } = await cluster.kube.must('GET', `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`)
  expect(listAt(items, 'items')).toHaveLength(2)
})

test('is asked by the chart’s own test, as its Pod would', async () => {
  const release = 'helm get hooks portcullis -n portcullis'
  const hooks: readonly unknown[] = parseAllDocuments(run(release)).map((document) => document.toJS())
  const pods = hooks.filter(isObject).filter(({ kind }) => kind === 'Pod')
  const pod = pods.find(({ metadata }) => objectAt(metadata, '').name === 'portcullis-test')
  const [container] = listAt(objectAt(pod?.spec, 'spec').containers, 'containers')
  const args = listAt(objectAt(container, 'container').args, 'args').map(String)
  expect(args[2]).toBe('https://portcullis-injector.portcullis.svc:443')
  // The name is the Service's, and its port leads to the injector's.
  writeFileSync(join(desk, 'hosts'), '127.0.0.1 portcullis-injector.portcullis.svc\n')
  const words = args
    .join(' ')
    .replace(':443', `:${cluster.webhookPort}`)
    .replace('/etc/portcullis/tls', join(cluster.folder, 'tls'))
  const asking = `mount --bind hosts /etc/hosts && exec portcullis-sidecar ${words}`
  expect(run(`unshare --map-root-user --mount sh -c '${asking}'`)).toContain('adds a sidecar to the example Pod')
})

test('adds a sidecar to a Deployment that exists, with the route file of the guide', async () => {
  await cluster.namespace('shop')
  const container = { name: 'app', image: 'example/invoices:1', ports: [{ name: 'http', containerPort: 8080 }] }
  const labels = { app: 'invoices' }
  const spec = {
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [container] } },
  }
  await cluster.kube.must('POST', APP, { metadata: { name: 'invoices' }, spec })
  const [, routes = ''] = /^```yaml\n(portcullis: v1[^`]+)^```$/m.exec(GUIDE) ?? []
  writeFileSync(join(desk, 'http.yaml'), routes)
  // Its files are where they are in a Pod.
  expect(run('portcullis-sidecar check http.yaml')).toContain('http.yaml: valid')
  const [once = '', sidecar = '', review = ''] = commandsOf('Protect a Deployment in three commands')
  run(once)
  expect(sidecar.trim().split('\n')).toHaveLength(3)
  run(sidecar)
  expect(sidecarsOf(await podOfApp())).toEqual(['portcullis-sidecar'])
  expect(run(review)).toContain('name: portcullis-sidecar')
})

test('closes the way around, and says so', () => {
  const [commands = ''] = commandsOf('Close the way around')
  expect(run(commands)).toContain('\n0 findings\n')
})

test('replaces the certificate while Pods go on being made', async () => {
  const [commands = ''] = commandsOf('Upgrade')
  const [before = '', after = ''] = commands.split(/(?<=^kubectl apply.*\n)/m)
  expect(after).toContain('new-pdp-secret.yaml')
  run(before)
  await takeCertificate()
  await until(async () => {
    expect(sidecarsOf(await podOfApp())).toEqual(['portcullis-sidecar'])
    return cluster.injectorLog().includes('certificate_renewed')
  })
  run(after)
  expect(sidecarsOf(await podOfApp())).toEqual(['portcullis-sidecar'])
})

test('is removed, and the app has Pods without a sidecar and without policies', async () => {
  const [commands = ''] = commandsOf('Remove')
  run(commands)
  await until(async () => sidecarsOf(await podOfApp()).length === 0)
  const { items } = await cluster.kube.must('GET', '/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies')
  expect(items).toEqual([])
  for (const kind of ['mutatingwebhookconfigurations', 'validatingadmissionpolicies']) {
    const left = await cluster.kube.must('GET', `/apis/admissionregistration.k8s.io/v1/${kind}`)
    const names = listAt(left.items, 'items')
      .filter(isObject)
      .map(({ metadata }) => objectAt(metadata, '').name)
    expect(names.filter((name) => String(name).startsWith('portcullis'))).toEqual([])
  }
})
