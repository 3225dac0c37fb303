import { spawnSync } from 'node:child_process'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { makeCertificate, withAuthority } from '../../../sidecar/injector/certificate/certificate.ts'
import { isObject, objectAt, textsAt } from '../../../sidecar/injector/pod/json.ts'
import { type Ended, runCli } from '../../support/peers/sidecar-cli.ts'

const folder = mkdtempSync(join(tmpdir(), 'portcullis-commands-'))
afterAll(() => rmSync(folder, { recursive: true }))

const SETTINGS = `image: registry.example/portcullis-sidecar:1.0.0
nativeSidecars: true
runAsUser: 65532
resources: {}
`
const DEPLOYMENT = `apiVersion: apps/v1
kind: Deployment
metadata: {name: invoices}
spec:
  template:
    metadata:
      annotations: {portcullis.dev/ports: http, portcullis.dev/routes: invoices-routes}
    spec:
      containers: [{name: app, image: "app:1", ports: [{name: http, containerPort: 8080}]}]
`
function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
const sidecar = (words: readonly string[], input = ''): Promise<Ended> => runCli(words, { input })
/** As an operator runs it. */
const sidecarProcess = (words: readonly string[], input = '') =>
  spawnSync(process.execPath, ['sidecar/main.ts', ...words], { encoding: 'utf8', input })

describe('inject', () => {
  const config = ['--config', file('injector.yaml', SETTINGS)]

  test('prints a manifest with its sidecar, passes other kinds through, and takes its own output unchanged', async () => {
    const service = 'apiVersion: v1\nkind: Service\nmetadata:\n  name: invoices\n'
    const once = await sidecar(['inject', file('app.yaml', `${DEPLOYMENT}---\n${service}`), ...config])
    expect(once).toMatchObject({
      status: 0,
      stderr: expect.stringContaining('Deployment/invoices: sidecar injected by'),
    })
    const documents = parseAllDocuments(once.stdout)
    expect(Array.isArray(documents) && documents.map((document) => document.toJS()?.kind)).toEqual([
      'Deployment',
      'Service',
    ])
    expect(once.stdout).toContain('name: portcullis-sidecar')
    const twice = await sidecar(['inject', '-', ...config], once.stdout)
    expect(twice).toMatchObject({
      status: 0,
      stdout: once.stdout,
      stderr: expect.stringContaining('has its sidecar already'),
    })
  })

  test('takes the objects of a list one by one', async () => {
    const indented = DEPLOYMENT.trimEnd().replaceAll('\n', '\n    ')
    const list = `apiVersion: v1\nkind: List\nitems:\n  - ${indented}\n  - ${indented.replace('invoices}', 'orders}')}\n`
    const { status, stdout, stderr } = await sidecar(['inject', '-', ...config], list)
    expect(status).toBe(0)
    expect(stderr.match(/^Deployment\/(?:invoices|orders): sidecar injected/gm)).toHaveLength(2)
    expect(stdout.match(/^kind: Deployment$/gm)).toHaveLength(2)
  })

  test('ends with 1 when a manifest is refused, and says why', async () => {
    const text = DEPLOYMENT.replace('name: http,', 'name: web,')
    expect(await sidecar(['inject', '-', ...config], text)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('(port_missing)'),
    })
    const bare = DEPLOYMENT.replace(/annotations: .*/, 'annotations: {}')
    expect(await sidecar(['inject', '-', '--required', ...config], bare)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('(ports_missing)'),
    })
  })

  test.each([
    ['no YAML', ': : :'],
    ['a list', '[]'],
  ])('ends with 64 for %s', async (_what, text) => {
    expect((await sidecar(['inject', '-', ...config], text)).status).toBe(64)
  })

  test('says every mistake of the settings at once', async () => {
    const wrong = file(
      'wrong.yaml',
      'image: sidecar\nnativeSidecars: maybe\nrunAsUser: 0\nresources: 7\nauthorities: A_B\nredis: {name: A_B, key: x}\ndpopNonces: {name: a}\nimagePullSecrets: [A_B]\nlogLevel: loud\nimagePullPolicy: Once\nplatform: "[]"\nextra: 1\n',
    )
    const { status, stderr } = await sidecar(['inject', '-', '--config', wrong], DEPLOYMENT)
    expect(status).toBe(64)
    const names = [
      'image',
      'nativeSidecars',
      'runAsUser',
      'resources',
      'authorities',
      'redis',
      'dpopNonces',
      'imagePullSecrets',
      'logLevel',
      'imagePullPolicy',
      'platform',
      'extra',
    ]
    expect(names.filter((name) => !stderr.includes(`wrong.yaml: ${name} `))).toEqual([])
    expect((await sidecar(['inject', '-', '--config', join(folder, 'none')], DEPLOYMENT)).status).toBe(64)
  })
})

test.each([
  ['{"pdp": {"address": "pdp"}}', '1:21: "pdp" must be host:port'],
  ['{"pdp": {"address": "$(HOST):9090"}}', 'none of which is $'],
  ["{'pdp': {}}", 'none of which is $'],
  ['pdp: {}', 'must be JSON of an object'],
])('the injector does not start with %s as what the platform says', async (platform, message) => {
  const path = file('platform.yaml', `${SETTINGS}platform: ${JSON.stringify(platform)}\n`)
  const { status, stderr } = await sidecar(['injector', '--config', path])
  expect([status, stderr]).toEqual([64, expect.stringContaining(message)])
})

describe('inject, of kinds that make Pods in their own ways,', () => {
  const config = ['--config', file('injector.yaml', SETTINGS)]
  const ROLLOUT = DEPLOYMENT.replace('apps/v1', 'argoproj.io/v1alpha1').replace('Deployment', 'Rollout')

  test('injects the Rollout of Argo', async () => {
    const { status, stdout, stderr } = await sidecar(['inject', '-', ...config], ROLLOUT)
    expect([status, stderr]).toEqual([0, expect.stringContaining('Rollout/invoices: sidecar injected by')])
    expect(stdout).toContain('name: portcullis-sidecar')
  })

  test.each([
    ['a Service of Knative', 'serving.knative.dev/v1', 'Service'],
    ['a kind whose name another group has', 'example.com/v1', 'Deployment'],
    ['a job of another maker', 'kubeflow.org/v1', 'PyTorchJob'],
  ])('says that %s stays as it is', async (_, apiVersion, kind) => {
    const text = DEPLOYMENT.replace('apps/v1', apiVersion).replace('Deployment', kind)
    const { status, stdout, stderr } = await sidecar(['inject', '-', ...config], text)
    expect([status, parse(stdout)]).toEqual([0, parse(text)])
    expect(stderr).toContain(`${kind}/invoices: left unchanged: inject does not know how ${apiVersion} makes Pods`)
  })

  test.each([
    ['a Rollout that names a Deployment', 'argoproj.io/v1alpha1', 'Rollout', 'spec: {workloadRef: {name: invoices}}'],
    ['a Service', 'v1', 'Service', 'spec: {ports: [{port: 80}]}'],
    ['a definition', 'apiextensions.k8s.io/v1', 'CustomResourceDefinition', 'spec: {properties: {containers: {}}}'],
  ])('says nothing of %s', async (_, apiVersion, kind, spec) => {
    const text = `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: invoices}\n${spec}\n`
    expect(await sidecar(['inject', '-', ...config], text)).toMatchObject({ status: 0, stderr: '' })
  })
})

describe('injector certificate', () => {
  test('prints a Secret whose certificate its authority signed, for the names of the Service', async () => {
    const authority = join(folder, 'ca.pem')
    const { status, stdout } = await sidecar(['injector', 'certificate', '--namespace', 'guard', '--ca', authority])
    expect(status).toBe(0)
    const secret: unknown = parse(stdout)
    if (!isObject(secret)) throw new Error(stdout)
    expect(secret).toMatchObject({
      kind: 'Secret',
      type: 'kubernetes.io/tls',
      metadata: { name: 'portcullis-injector-tls', namespace: 'guard' },
    })
    const data = textsAt(objectAt(secret, '').stringData, 'stringData')
    expect(data.get('ca.crt')).toBe(readFileSync(authority, 'utf8'))
    const leaf = new X509Certificate(data.get('tls.crt') ?? '')
    expect(leaf.checkHost('portcullis-injector.guard.svc')).toBeDefined()
    expect(leaf.verify(new X509Certificate(data.get('ca.crt') ?? '').publicKey)).toBe(true)
  })

  test('adds its authority to those of the file that have not ended, and writes nothing when the file is another', async () => {
    const authority = join(folder, 'both.pem')
    const make = async () => {
      const { stdout } = await sidecar(['injector', 'certificate', '--ca', authority])
      return textsAt(objectAt(parse(stdout), '').stringData, 'stringData').get('ca.crt') ?? ''
    }
    const [first, second] = [await make(), await make()]
    expect(readFileSync(authority, 'utf8')).toBe(`${first}${second}`)
    const ended = await makeCertificate({ names: ['a'], days: 1, nowMs: Date.now() - 3 * 86_400_000 })
    expect(withAuthority(ended.authority + first, second, Date.now())).toBe(`${first}${second}`)
    writeFileSync(authority, 'a: b\n')
    expect(await sidecar(['injector', 'certificate', '--ca', authority])).toMatchObject({ status: 64, stdout: '' })
    expect(readFileSync(authority, 'utf8')).toBe('a: b\n')
  })

  test.each([
    ['no days', ['--days', '0']],
    ['a name that is none', ['--namespace', 'A B']],
    ['a folder as the file of authorities', ['--ca', '.']],
  ])('ends with 64 for %s', async (_what, words) => {
    expect(await sidecar(['injector', 'certificate', ...words])).toMatchObject({ status: 64, stdout: '' })
  })
})

describe('certificate', () => {
  test('makes a pair for each host, of one authority, and keeps what is there', async () => {
    const out = join(folder, 'tls')
    const make = ['certificate', 'pdp,localhost,127.0.0.1', 'sidecar', '--out', out, '--days', '30']
    expect((await sidecar(make)).stdout.match(/for 30 days/g)).toHaveLength(2)
    const read = (path: string): string => readFileSync(join(out, path), 'utf8')
    const leaf = new X509Certificate(read('pdp/tls.crt'))
    expect([leaf.checkHost('pdp'), leaf.checkHost('localhost'), leaf.checkIP('127.0.0.1')]).not.toContain(undefined)
    expect(leaf.checkHost('sidecar')).toBeUndefined()
    expect(leaf.checkPrivateKey(createPrivateKey(read('pdp/tls.key')))).toBe(true)
    expect(read('pdp/ca.pem')).toBe(read('sidecar/ca.pem'))
    expect(new X509Certificate(read('sidecar/tls.crt')).verify(new X509Certificate(read('pdp/ca.pem')).publicKey)).toBe(
      true,
    )
    expect(statSync(join(out, 'pdp/tls.key')).mode & 0o777).toBe(0o600)
    expect(await sidecar(make)).toMatchObject({ status: 0, stdout: expect.stringContaining('kept') })
    expect(read('pdp/tls.crt')).toBe(leaf.toString())
    rmSync(join(out, 'sidecar/tls.crt'))
    await sidecar(make)
    expect(read('sidecar/ca.pem').match(/BEGIN/g)).toHaveLength(2)
  })

  test.each([
    ['no folder', ['pdp']],
    ['no host', ['--out', '/tmp/none']],
    ['a path in the place of a host', ['../pdp', '--out', '/tmp/none']],
    ['an empty other name', ['pdp,', '--out', '/tmp/none']],
    ['a host that is named twice', ['pdp', 'pdp,b', '--out', '/tmp/none']],
    ['an owner that is no number', ['pdp', '--out', '/tmp/none', '--owner', 'root']],
    ['a folder that is a file', ['pdp', '--out', '/etc/hostname']],
  ])('ends with 64 for %s', async (_what, words) => {
    expect(await sidecar(['certificate', ...words])).toMatchObject({ status: 64, stdout: '' })
    expect(existsSync('/tmp/none')).toBe(false)
  })
})

test.each([
  ['maintain-certificate', 'http://api.example'],
  ['onboard-namespaces', 'http://api.example'],
  ['onboard-namespaces', 'http://localhost.example'],
  ['onboard-namespaces', 'api.example'],
])('injector %s sends the token of its account to no %s', async (command, server) => {
  const ended = await sidecar(['injector', command, '--api-server', server, '--token-file', file('token', 'secret')])
  expect(ended).toMatchObject({ status: 64, stderr: expect.stringContaining('--api-server must be an https origin') })
})

test('an unknown option ends with 64, in a process of its own', () => {
  expect(sidecarProcess(['injector', 'certificate', '--day', '1'])).toMatchObject({ status: 64, stdout: '' })
})

test('check-cluster says when kubectl cannot be asked, and when what it reads is no list', async () => {
  expect(await sidecar(['check-cluster', '--kubectl', join(folder, 'none')])).toMatchObject({
    status: 64,
    stderr: expect.stringContaining('could not be started: it is not installed here'),
  })
  expect((await sidecar(['check-cluster', '--from', file('list.json', '[]')])).status).toBe(64)
})

test('check-cluster asks only for the kinds of the Gateway API that the cluster knows', async () => {
  const asked = join(folder, 'asked')
  const kubectl = file(
    'kubectl',
    `#!/bin/sh
echo "$@" >> ${asked}
case $1 in
  api-resources) echo pods; echo httproutes.gateway.networking.k8s.io;;
  get) echo '{"items": []}';;
esac
`,
  )
  chmodSync(kubectl, 0o755)
  await sidecar(['check-cluster', '--kubectl', kubectl, '--context', 'here'])
  const [, get = ''] = readFileSync(asked, 'utf8').split('\n')
  expect(get).toContain('httproutes.gateway.networking.k8s.io')
  expect(get).not.toContain('securitypolicies')
  expect(get).toContain('--context=here')
})

test('injector ends with a line when its certificate is not there', () => {
  const settings = file('serve.yaml', SETTINGS)
  const { status, stderr } = sidecarProcess([
    'injector',
    '--config',
    settings,
    '--certificate',
    folder,
    '--listen',
    '127.0.0.1:0',
  ])
  expect(status).toBe(1)
  expect(stderr).toContain('no usable tls.crt and tls.key')
})
