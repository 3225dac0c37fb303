/** Who asks for a sidecar in vain hears it from a real API server, with the chart installed: workloads, bare Pods, route files. */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type JsonObject, listAt, objectAt } from '../../sidecar/injector/pod/json.ts'
import { type Cluster, installWords, NAMESPACE, startCluster, until } from './cluster.ts'

const ASKING = { 'portcullis.dev/ports': 'http', 'portcullis.dev/routes': 'invoices-routes' }
const GOOD = `portcullis: v1
resource: https://invoices.example.com
issuers: [{issuer: https://id.example.com}]
upstream: http://127.0.0.1:8080
pdp: {address: "127.0.0.1:9090", insecure: true}
routes: {GET /a: public}
`
let cluster: Cluster
let authority = ''
beforeAll(async () => {
  cluster = await startCluster(inject('binaries'))
  await cluster.namespace(NAMESPACE)
  authority = await cluster.certify('first')
  const scrapers = ['--set', 'injector.sidecar.scrapers={10.0.0.0/8,192.0.2.7}']
  const proxy = ['--set', 'injector.sidecar.egressProxy.url=http://proxy.example:3128']
  cluster.helm(...installWords('install', authority, [...scrapers, ...proxy]))
  await cluster.serve()
  await cluster.namespace('invoices', { 'portcullis.dev/inject': 'enabled' })
  await cluster.namespace('others')
  await until(async () => (await apply('invoices', { 'portcullis.dev/ports': '8080' })).warnings.length > 0)
})
afterAll(() => cluster?.close())

let count = 0
const template = (annotations: JsonObject, spec: JsonObject = {}): JsonObject => ({
  metadata: { labels: { app: 'x' }, annotations },
  spec: { containers: [{ name: 'app', image: 'a:1', ports: [{ name: 'http', containerPort: 8080 }] }], ...spec },
})
const create = (path: string, object: JsonObject) => {
  count += 1
  const metadata = { ...objectAt(object.metadata, ''), name: `x-${count}` }
  return cluster.kube.send('POST', `${path}?fieldValidation=Strict`, { ...object, metadata })
}
const apply = (namespace: string, annotations: JsonObject) =>
  create(`/apis/apps/v1/namespaces/${namespace}/deployments`, {
    spec: { selector: { matchLabels: { app: 'x' } }, template: template(annotations) },
  })
const makePod = (namespace: string, annotations: JsonObject, spec: JsonObject = {}) =>
  create(`/api/v1/namespaces/${namespace}/pods`, template(annotations, spec))
const routes = (data: JsonObject, labels: JsonObject = { 'portcullis.dev/route-file': 'true' }) =>
  create('/api/v1/namespaces/invoices/configmaps', { metadata: { labels }, data })

describe('who applies a workload', () => {
  test('hears what its Pods will hear, and is not refused', async () => {
    const { status, warnings } = await apply('invoices', { 'portcullis.dev/ports': '8080' })
    expect(status).toBe(201)
    expect(warnings).toContainEqual(expect.stringMatching(/its Pods will be refused: annotation portcullis.dev\/ports/))
    expect(await apply('invoices', ASKING)).toMatchObject({ status: 201, warnings: [] })
  })

  test('hears it of a CronJob, too', async () => {
    const job = {
      schedule: '0 0 * * *',
      jobTemplate: { spec: { template: template({ 'portcullis.dev/ports': '1' }, { restartPolicy: 'Never' }) } },
    }
    const { status, warnings } = await create('/apis/batch/v1/namespaces/invoices/cronjobs', { spec: job })
    expect([status, warnings]).toEqual([201, [expect.stringContaining('its Pods will be refused')]])
  })

  test('is not held up while the injector is down', async () => {
    await cluster.silence()
    expect(await apply('invoices', ASKING)).toMatchObject({ status: 201 })
    expect(await routes({ 'http.yaml': 'wrong' })).toMatchObject({ status: 201 })
    await cluster.serve()
  })
})

describe('in a namespace without the label', () => {
  test('a Pod and a Deployment that ask are warned, and others are not', async () => {
    const warning = expect.stringContaining('its namespace has no label portcullis.dev/inject')
    await until(async () => (await makePod('others', ASKING)).warnings.length > 0)
    expect(await makePod('others', ASKING)).toMatchObject({ status: 201, warnings: [warning] })
    expect(await apply('others', ASKING)).toMatchObject({ status: 201, warnings: [warning] })
    for (const annotations of [{}, { 'portcullis.dev/ports': 'none' }])
      expect(await makePod('others', annotations)).toMatchObject({ status: 201, warnings: [] })
  })

  test('such a Pod is refused where the operator says so', async () => {
    cluster.helm(...installWords('upgrade', authority, ['--reuse-values', '--set', 'backstop.unlabelled=Deny']))
    await until(async () => (await makePod('others', ASKING)).status === 422)
    expect(await makePod('others', {})).toMatchObject({ status: 201 })
  })
})

describe('a ConfigMap with route files', () => {
  test('is refused with the words of `check`, and accepted without a mistake', async () => {
    const { status, body } = await routes({ 'http.yaml': GOOD.replace('public', 'viewer') })
    expect(status).toBe(403)
    expect(body.message).toMatch(/portcullis: http.yaml:6:\d+: "viewer" is not/)
    expect(await routes({ 'http.yaml': GOOD })).toMatchObject({ status: 201 })
    expect(await routes({ 'readme.txt': 'x' })).toMatchObject({ status: 403 })
    expect(await routes({ 'http.yaml': 'wrong' }, {})).toMatchObject({ status: 201 })
  })
})

describe('a Pod', () => {
  test('opens its metrics to the operator’s addresses, and sizes its sidecar, as the backstop expects it', async () => {
    const wishes = { 'portcullis.dev/scrape': '/metrics,/healthz', 'portcullis.dev/cpu': '20m,100m' }
    const { status, body } = await makePod('invoices', { ...ASKING, ...wishes })
    expect([status, body.message]).toEqual([201, undefined])
    const [sidecar] = listAt(objectAt(body.spec, 'spec').initContainers, '').map((one) => objectAt(one, ''))
    expect(sidecar?.args).toEqual(expect.arrayContaining(['--open=/metrics=10.0.0.0/8,192.0.2.7']))
    expect(sidecar?.resources).toMatchObject({ requests: { cpu: '20m' }, limits: { cpu: '100m' } })
    expect(sidecar?.env).toContainEqual({ name: 'HTTPS_PROXY', value: 'http://proxy.example:3128' })
    expect(objectAt(body.spec, 'spec').enableServiceLinks).toBe(true)
  })

  test('fits a quota and a LimitRange by its annotations, and resources of its own', async () => {
    await cluster.namespace('small', { 'portcullis.dev/inject': 'enabled' })
    const path = '/api/v1/namespaces/small'
    const limits = [
      { type: 'Container', min: { cpu: '100m' }, max: { cpu: '200m', memory: '200Mi' }, default: { cpu: '100m' } },
    ]
    await cluster.kube.must('POST', `${path}/limitranges`, { metadata: { name: 'l' }, spec: { limits } })
    await until(async () => (await makePod('small', ASKING)).status === 403)
    const sized = { ...ASKING, 'portcullis.dev/cpu': '100m,200m', 'portcullis.dev/memory': '64Mi,128Mi' }
    expect(await makePod('small', sized)).toMatchObject({ status: 201 })
    const shared = {
      resources: { requests: { cpu: '200m', memory: '128Mi' }, limits: { cpu: '500m', memory: '256Mi' } },
    }
    const { status, body } = await makePod('invoices', ASKING, shared)
    expect([status, body.message]).toEqual([201, undefined])
  })

  test.each<[string, JsonObject]>([
    ['another address', { 'portcullis.dev/scrape': '/metrics=0.0.0.0/0' }],
    ['more than the operator allows', { 'portcullis.dev/memory': '64Gi' }],
  ])('with %s is refused', async (_name, over) => {
    expect((await makePod('invoices', { ...ASKING, ...over })).status).toBe(403)
  })
})

describe('where the platform says the PDP and the issuers', () => {
  const own = /^(?:issuers|pdp):.*\n/gm
  const platform = {
    pdp: { address: 'portcullis-pdp.portcullis.svc:9090' },
    issuers: [{ issuer: 'https://id.example.com/a?b&c' }],
  }

  test('a sidecar has it as the backstop expects it, and a ConfigMap holds routes only', async () => {
    const values = [
      'pdp.enabled=true',
      'injector.sidecar.authorities=portcullis-ca',
      'injector.sidecar.platform.enabled=true',
    ]
    cluster.helm(
      ...installWords('upgrade', authority, ['--reuse-values', ...values.flatMap((value) => ['--set', value])]),
      '--set-json',
      `injector.sidecar.platform.issuers=${JSON.stringify(platform.issuers)}`,
    )
    await cluster.silence()
    await cluster.serve()
    const made = async () => objectAt((await makePod('invoices', ASKING)).body.spec, 'spec')
    const args = (spec: JsonObject) => listAt(objectAt(listAt(spec.initContainers, '')[0], '').args, '').map(String)
    await until(async () => args(await made()).some((arg) => arg.startsWith('--platform=')))
    const [given = ''] = args(await made()).filter((arg) => arg.startsWith('--platform='))
    expect(JSON.parse(given.slice('--platform='.length))).toEqual({
      pdp: {
        ...platform.pdp,
        ca_file: '/etc/portcullis/authorities/ca.crt',
        token_file: '/var/run/secrets/portcullis/token',
      },
      issuers: platform.issuers,
    })
    expect(await routes({ 'http.yaml': GOOD.replaceAll(own, '') })).toMatchObject({ status: 201 })
  })

  test('a route file that names an issuer of its own is refused', async () => {
    const { status, body } = await routes({ 'http.yaml': GOOD })
    expect(status).toBe(403)
    expect(body.message).toMatch(/issuers is for the platform to say/)
  })
})

test('check-cluster finds all three', async () => {
  const found = (): string => cluster.check().stdout
  for (const code of ['pod_bare', 'workload_refused', 'routes_missing', 'routes_invalid'])
    expect(found()).toContain(code)
})
