/** The process that keeps the webhook's certificate valid, before an API server that stores what it is told. */
import { X509Certificate } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { StartError } from '../../../../pdp/shared/process/exit.ts'
import { makeCertificate } from '../../../../sidecar/injector/certificate/certificate.ts'
import type { KubeApi } from '../../../../sidecar/injector/certificate/kube-api.ts'
import { type CertificateGoal, maintainCertificate } from '../../../../sidecar/injector/certificate/maintain.ts'
import { type JsonObject, listAt, objectAt, textAt } from '../../../../sidecar/injector/pod/json.ts'

const DAY_MS = 86_400_000
const NOW = Date.UTC(2026, 0, 15)
const NAMES = ['portcullis-injector.portcullis.svc', 'portcullis-injector.portcullis.svc.cluster.local']
const SECRET = '/api/v1/namespaces/portcullis/secrets/portcullis-injector-tls'
const CHECKS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/zz-portcullis-injector'
const WEBHOOK = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/zz-portcullis-injector'
const goalAt = (nowMs: number): CertificateGoal => ({
  namespace: 'portcullis',
  secret: 'portcullis-injector-tls',
  names: NAMES,
  webhook: 'zz-portcullis-injector',
  bundles: [],
  days: 90,
  nowMs,
})

type Server = KubeApi & { readonly objects: Map<string, JsonObject>; readonly calls: string[]; refused: string | null }

/** Three objects, as the chart makes them. `refused` names a method that fails. */
function startServer(data: JsonObject = {}): Server {
  const hook = { name: 'enabled.portcullis.dev', clientConfig: { service: { name: 'portcullis-injector' } } }
  const objects = new Map<string, JsonObject>([
    [
      SECRET,
      { kind: 'Secret', type: 'Opaque', metadata: { name: 'portcullis-injector-tls', resourceVersion: '1' }, data },
    ],
    [WEBHOOK, { metadata: { resourceVersion: '7' }, webhooks: [hook, { ...hook, name: 'required.portcullis.dev' }] }],
    [CHECKS, { metadata: { resourceVersion: '7' }, webhooks: [{ ...hook, name: 'routes.checks.portcullis.dev' }] }],
  ])
  const server: Server = {
    objects,
    calls: [],
    refused: null,
    async get(path) {
      const found = objects.get(path)
      if (found === undefined) throw new StartError(`GET ${path}: 404`)
      return found
    },
    find: async (path) => objects.get(path) ?? null,
    post: (path, object) => server.put(path, object),
    async put(path, object) {
      note('PUT')
      objects.set(path, object)
      return object
    },
    async patch(path, operations) {
      note('PATCH')
      const found = structuredClone(objects.get(path) ?? {})
      const webhooks = listAt(found.webhooks, 'webhooks')
      for (const { op, path: at, value } of operations) {
        const index = /^\/webhooks\/(\d)\/clientConfig\/caBundle$/.exec(String(at))?.[1]
        if (op === 'test') expect([at, value]).toEqual(['/metadata/resourceVersion', '7'])
        else Reflect.set(objectAt(objectAt(webhooks[Number(index)], '').clientConfig, ''), 'caBundle', value)
      }
      objects.set(path, found)
      return found
    },
  }
  function note(method: string): void {
    server.calls.push(method)
    if (server.refused === method) throw new StartError(`${method}: 403 forbidden`)
  }
  return server
}

const decode = (text: string | null): string => Buffer.from(text ?? '', 'base64').toString('utf8')
const stored = (server: Server, name: string): string =>
  decode(textAt(objectAt(server.objects.get(SECRET)?.data, 'data')[name], name))
const trusted = (server: Server): readonly string[] =>
  [WEBHOOK, CHECKS]
    .flatMap((path) => listAt(server.objects.get(path)?.webhooks, ''))
    .map((hook) => decode(textAt(objectAt(objectAt(hook, '').clientConfig, '').caBundle, 'caBundle')))
const authoritiesIn = (bundle: string): number => bundle.split('BEGIN CERTIFICATE').length - 1
/** As the API server would judge what an injector presents. */
function accepts(bundle: string, certificate: string): boolean {
  const leaf = new X509Certificate(certificate)
  return (bundle.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? []).some((pem) =>
    leaf.verify(new X509Certificate(pem).publicKey),
  )
}
const encoded = (files: { readonly [name: string]: string }): JsonObject =>
  Object.fromEntries(Object.entries(files).map(([name, text]) => [name, Buffer.from(text).toString('base64')]))

test('an empty Secret gets a certificate for the Service, and both webhooks trust it', async () => {
  const server = startServer()
  expect(await maintainCertificate(server, goalAt(NOW))).toEqual({
    renewed: 'there was none',
    published: true,
    notAfterMs: NOW + 90 * DAY_MS,
  })
  expect(server.calls).toEqual(['PATCH', 'PATCH', 'PUT'])
  const certificate = stored(server, 'tls.crt')
  for (const name of NAMES) expect(new X509Certificate(certificate).checkHost(name)).toBe(name)
  for (const bundle of trusted(server)) expect(accepts(bundle, certificate)).toBe(true)
  expect(stored(server, 'ca.crt')).toBe(trusted(server)[0])
})

test('a good certificate is kept, and nothing is written', async () => {
  const server = startServer()
  await maintainCertificate(server, goalAt(NOW))
  server.calls.length = 0
  for (const days of [0, 1, 30, 59]) {
    const done = await maintainCertificate(server, goalAt(NOW + days * DAY_MS))
    expect(done).toMatchObject({ renewed: null, published: false })
  }
  expect(server.calls).toEqual([])
})

test('a certificate is renewed when a third of its time is left, and the old one is trusted until it expires', async () => {
  const server = startServer()
  await maintainCertificate(server, goalAt(NOW))
  const first = stored(server, 'tls.crt')
  const renewed = await maintainCertificate(server, goalAt(NOW + 61 * DAY_MS))
  expect(renewed.renewed).toBe('it was about to expire')
  const second = stored(server, 'tls.crt')
  expect(second).not.toBe(first)
  for (const bundle of trusted(server))
    expect([first, second].map((presented) => accepts(bundle, presented))).toEqual([true, true])
  await maintainCertificate(server, goalAt(NOW + 122 * DAY_MS))
  const third = stored(server, 'tls.crt')
  const [bundle = ''] = trusted(server)
  expect([first, second, third].map((presented) => accepts(bundle, presented))).toEqual([false, true, true])
  expect(authoritiesIn(bundle)).toBe(2)
})

test('the webhook trusts a new authority before an injector can present its certificate', async () => {
  const server = startServer()
  await maintainCertificate(server, goalAt(NOW))
  const first = stored(server, 'tls.crt')
  server.refused = 'PATCH'
  await expect(maintainCertificate(server, goalAt(NOW + 61 * DAY_MS))).rejects.toThrow('403')
  expect(stored(server, 'tls.crt')).toBe(first)
  server.refused = 'PUT'
  await expect(maintainCertificate(server, goalAt(NOW + 61 * DAY_MS))).rejects.toThrow('403')
  for (const bundle of trusted(server)) expect(accepts(bundle, first)).toBe(true)
  server.refused = null
  await maintainCertificate(server, goalAt(NOW + 61 * DAY_MS))
  for (const bundle of trusted(server)) expect(accepts(bundle, stored(server, 'tls.crt'))).toBe(true)
})

test('authorities that somebody removed from the webhook are put back', async () => {
  const server = startServer()
  await maintainCertificate(server, goalAt(NOW))
  const webhook = structuredClone(server.objects.get(WEBHOOK) ?? {})
  Reflect.deleteProperty(objectAt(objectAt(listAt(webhook.webhooks, '')[1], '').clientConfig, ''), 'caBundle')
  server.objects.set(WEBHOOK, webhook)
  expect(await maintainCertificate(server, goalAt(NOW))).toMatchObject({ renewed: null, published: true })
  expect(new Set(trusted(server)).size).toBe(1)
})

const made = await makeCertificate({ names: NAMES, days: 90, nowMs: NOW })
const other = await makeCertificate({ names: NAMES, days: 90, nowMs: NOW })
const elsewhere = await makeCertificate({ names: ['portcullis-injector.other.svc'], days: 90, nowMs: NOW })
const files = (
  from: typeof made,
  more: { readonly [name: string]: string } = {},
): { readonly [name: string]: string } => ({
  'ca.crt': from.authority,
  'tls.crt': from.certificate,
  'tls.key': from.key,
  ...more,
})

test.each([
  ['text that is no certificate', files(made, { 'tls.crt': 'x' }), 'it could not be read'],
  ['no key', files(made, { 'tls.key': '' }), 'it could not be read'],
  ['the key of another certificate', files(made, { 'tls.key': other.key }), 'its key was another'],
  ['a certificate for another namespace', files(elsewhere), 'it was for other names'],
  ['the authority of another certificate', files(made, { 'ca.crt': other.authority }), 'its authority was missing'],
  ['no authority', files(made, { 'ca.crt': '' }), 'its authority was missing'],
  ['an authority that cannot be read', files(made, { 'ca.crt': made.authority.replace(/[A-Z]{4}/, '!!!!') }), null],
])('a Secret with %s gets a new certificate', async (_what, data, reason) => {
  const server = startServer(encoded(data))
  const done = await maintainCertificate(server, goalAt(NOW))
  if (reason !== null) expect(done.renewed).toBe(reason)
  expect(done.renewed).not.toBe(null)
  const [bundle = ''] = trusted(server)
  expect(accepts(bundle, stored(server, 'tls.crt'))).toBe(true)
})

test('a certificate from a clock that was ahead is replaced', async () => {
  const early = await makeCertificate({ names: NAMES, days: 90, nowMs: NOW + DAY_MS })
  const server = startServer(encoded(files(early)))
  expect((await maintainCertificate(server, goalAt(NOW))).renewed).toBe('it was not valid yet')
})

test.each([SECRET, WEBHOOK])('without %s nothing is written', async (path) => {
  const server = startServer()
  server.objects.delete(path)
  await expect(maintainCertificate(server, goalAt(NOW))).rejects.toThrow('404')
  expect(server.calls).toEqual([])
})

describe('the certificate of a PDP', () => {
  const BUNDLE = '/api/v1/namespaces/shop/configmaps/portcullis-ca'
  const at = (nowMs: number): CertificateGoal => ({
    ...goalAt(nowMs),
    webhook: null,
    bundles: [{ namespace: 'shop', name: 'portcullis-ca' }],
  })
  function start(data: JsonObject = {}): Server {
    const server = startServer()
    server.objects.set(BUNDLE, { metadata: { resourceVersion: '3' }, data })
    return server
  }
  const bundleOf = (server: Server): string =>
    textAt(objectAt(server.objects.get(BUNDLE)?.data, '')['ca.crt'], 'ca.crt') ?? ''
  const RENEWAL = NOW + 61 * DAY_MS
  const MINUTE_MS = 60_000

  test('is trusted by the sidecars before the PDP presents it, and no webhook is touched', async () => {
    const server = start()
    await maintainCertificate(server, at(NOW))
    expect(server.calls).toEqual(['PUT', 'PUT'])
    expect(accepts(bundleOf(server), stored(server, 'tls.crt'))).toBe(true)
  })

  test('is in use ten minutes after sidecars could learn of its authority, and both are trusted meanwhile', async () => {
    const server = start()
    await maintainCertificate(server, at(NOW))
    const first = stored(server, 'tls.crt')
    for (const minutes of [0, 1, 9]) {
      expect(await maintainCertificate(server, at(RENEWAL + minutes * MINUTE_MS))).toMatchObject({ renewed: null })
      expect(stored(server, 'tls.crt')).toBe(first)
      expect(accepts(bundleOf(server), stored(server, 'next.crt'))).toBe(true)
      expect(accepts(bundleOf(server), first)).toBe(true)
    }
    const next = stored(server, 'next.crt')
    const done = await maintainCertificate(server, at(RENEWAL + 10 * MINUTE_MS))
    expect(done).toMatchObject({ renewed: 'it was about to expire' })
    expect([stored(server, 'tls.crt'), stored(server, 'next.crt')]).toEqual([next, ''])
    for (const presented of [first, next]) expect(accepts(bundleOf(server), presented)).toBe(true)
  })

  test('is replaced at once where the one in use serves nobody any more', async () => {
    const server = start()
    await maintainCertificate(server, at(NOW))
    expect(await maintainCertificate(server, at(NOW + 91 * DAY_MS))).toMatchObject({ renewed: 'it had expired' })
  })

  test('leaves the authorities of others in the ConfigMap, but for those that have ended', async () => {
    const ended = await makeCertificate({ names: NAMES, days: 1, nowMs: NOW - 9 * DAY_MS })
    const server = start({ 'ca.crt': `${other.authority}${ended.authority}`, 'other.txt': 'kept' })
    await maintainCertificate(server, at(NOW))
    expect(accepts(bundleOf(server), other.certificate)).toBe(true)
    expect(accepts(bundleOf(server), ended.certificate)).toBe(false)
    expect(server.objects.get(BUNDLE)).toMatchObject({ data: { 'other.txt': 'kept' } })
    server.calls.length = 0
    await maintainCertificate(server, at(NOW))
    expect(server.calls).toEqual([])
  })

  test('is not made while a ConfigMap of sidecars is missing', async () => {
    const server = startServer()
    await expect(maintainCertificate(server, at(NOW))).rejects.toThrow('404')
    expect(server.calls).toEqual([])
  })
})
