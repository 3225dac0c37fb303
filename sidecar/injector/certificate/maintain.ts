/**
 * Keeps the webhook's certificate valid: makes it, renews it after two thirds of its time, and gives its authorities to the API server. The
 * API server trusts a new authority before the injectors use its certificate, and the old one until it expires, so that no review fails
 * meanwhile.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isObject, type Json, type JsonObject, listAt, objectAt, textAt, textsAt } from '../pod/json.ts'
import { BACKDATE_MS, makeCertificate } from './certificate.ts'
import type { KubeApi } from './kube-api.ts'

export type CertificateGoal = {
  readonly namespace: string
  /** The name of an existing Secret, which the chart makes without data. */
  readonly secret: string
  /** DNS names of the Service. */
  readonly names: readonly string[]
  /** The name of the webhook configurations, mutating and validating, that must trust the certificate; null: there are none. */
  readonly webhook: string | null
  /** Existing ConfigMaps whose ca.crt the sidecars trust. */
  readonly bundles: readonly { readonly namespace: string; readonly name: string }[]
  readonly days: number
  /** Milliseconds since the epoch. */
  readonly nowMs: number
}
export type Maintained = {
  /** The reason for which the certificate was replaced; null: it was good. */
  readonly renewed: string | null
  /** True when the webhook had other authorities before. */
  readonly published: boolean
  readonly notAfterMs: number
}

/** The share of its lifetime at which a certificate is renewed. */
const RENEWED_AT = 1 / 3
const AUTHORITIES_MAX = 4
const PEM = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g

/** Throws StartError and ShapeError; a later call then tries again. */
export async function maintainCertificate(api: KubeApi, goal: CertificateGoal): Promise<Maintained> {
  const path = `/api/v1/namespaces/${goal.namespace}/secrets/${goal.secret}`
  const secret = await api.get(path)
  const held = readSecret(secret)
  const wrong = problemOf(held, goal)
  if (wrong === null) {
    const published = await publish(api, goal, held.authorities)
    return { renewed: null, published, notAfterMs: new X509Certificate(held.certificate).validToDate.getTime() }
  }
  const next = wrong === ENDING && goal.bundles.length > 0 ? readPair(secret, 'next') : null
  if (next !== null && problemOf({ ...next, authorities: held.authorities }, goal) === null)
    return promote({ api, path, secret, held, next }, goal)
  const made = await makeCertificate({ names: goal.names, days: goal.days, nowMs: goal.nowMs })
  const authorities = [made.authority.trim(), ...held.authorities.filter((pem) => isCurrent(pem, goal.nowMs))]
  const trusted = authorities.slice(0, AUTHORITIES_MAX)
  const published = await publish(api, goal, trusted)
  // Sidecars read a changed ConfigMap a minute or two later, so the certificate in use stays until then.
  if (wrong === ENDING && goal.bundles.length > 0) {
    await store(api, path, secret, { ...held, authorities: trusted, next: made })
    return { renewed: null, published, notAfterMs: new X509Certificate(held.certificate).validToDate.getTime() }
  }
  await store(api, path, secret, { ...made, authorities: trusted, next: null })
  return { renewed: wrong, published, notAfterMs: new X509Certificate(made.certificate).validToDate.getTime() }
}

type Pair = { readonly certificate: string; readonly key: string }
type StoredCertificate = Pair & { readonly authorities: readonly string[] }

/** The time in milliseconds that sidecars have to read a new authority before its certificate is used. */
const SETTLING_MS = 10 * 60_000
const ENDING = 'it was about to expire'

type Promotion = {
  readonly api: KubeApi
  readonly path: string
  readonly secret: JsonObject
  readonly held: StoredCertificate
  readonly next: Pair
}

/** Puts the next certificate into use after every sidecar has had time to trust it. */
async function promote({ api, path, secret, held, next }: Promotion, goal: CertificateGoal): Promise<Maintained> {
  const published = await publish(api, goal, held.authorities)
  const made = new X509Certificate(next.certificate)
  const notAfterMs = made.validToDate.getTime()
  if (goal.nowMs - made.validFromDate.getTime() - BACKDATE_MS < SETTLING_MS)
    return { renewed: null, published, notAfterMs: new X509Certificate(held.certificate).validToDate.getTime() }
  await store(api, path, secret, { ...next, authorities: held.authorities, next: null })
  return { renewed: ENDING, published, notAfterMs }
}

async function store(
  api: KubeApi,
  path: string,
  secret: JsonObject,
  { certificate, key, authorities, next }: StoredCertificate & { readonly next: Pair | null },
): Promise<void> {
  const data = {
    'ca.crt': joined(authorities),
    'tls.crt': certificate,
    'tls.key': key,
    ...(next !== null && { 'next.crt': next.certificate, 'next.key': next.key }),
  }
  const encoded = Object.entries(data).map(([name, text]) => [name, Buffer.from(text).toString('base64')])
  await api.put(path, { ...secret, data: Object.fromEntries(encoded) })
}

/** The key pair in the Secret; null: the Secret is empty. */
function readPair(secret: JsonObject, name: string): Pair | null {
  const data = textsAt(secret.data, 'data')
  const read = (key: string): string => Buffer.from(data.get(key) ?? '', 'base64').toString('utf8')
  const pair = { certificate: read(`${name}.crt`), key: read(`${name}.key`) }
  return pair.certificate === '' ? null : pair
}

function readSecret(secret: JsonObject): StoredCertificate {
  const data = textsAt(secret.data, 'data')
  const read = (name: string): string => Buffer.from(data.get(name) ?? '', 'base64').toString('utf8')
  return { authorities: read('ca.crt').match(PEM) ?? [], certificate: read('tls.crt'), key: read('tls.key') }
}

/** The reason for which the certificate must be replaced; null: it is good. */
function problemOf(
  { authorities, certificate, key }: StoredCertificate,
  { names, nowMs }: CertificateGoal,
): string | null {
  if (certificate === '') return 'there was none'
  try {
    const leaf = new X509Certificate(certificate)
    const [from, to] = [leaf.validFromDate.getTime(), leaf.validToDate.getTime()]
    if (!leaf.checkPrivateKey(createPrivateKey(key))) return 'its key was another'
    if (names.some((name) => leaf.checkHost(name) === undefined)) return 'it was for other names'
    if (nowMs < from) return 'it was not valid yet'
    if (!authorities.some((pem) => isIssuer(pem, leaf))) return 'its authority was missing'
    if (to <= nowMs) return 'it had expired'
    if (to - nowMs <= (to - from) * RENEWED_AT) return ENDING
    return null
  } catch {
    return 'it could not be read'
  }
}

function isIssuer(pem: string, leaf: X509Certificate): boolean {
  const authority = new X509Certificate(pem)
  return leaf.checkIssued(authority) && leaf.verify(authority.publicKey)
}

/** True for an authority that can be read and has not expired. */
function isCurrent(pem: string, nowMs: number): boolean {
  try {
    return new X509Certificate(pem).validToDate.getTime() > nowMs
  } catch {
    return false
  }
}

const joined = (authorities: readonly string[]): string => authorities.map((pem) => `${pem}\n`).join('')

const KINDS = ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations']

/** Returns true when a webhook or a ConfigMap had other authorities before. */
async function publish(
  api: KubeApi,
  { webhook, bundles, nowMs }: CertificateGoal,
  authorities: readonly string[],
): Promise<boolean> {
  let published = false
  for (const kind of webhook === null ? [] : KINDS)
    published =
      (await publishTo(api, `/apis/admissionregistration.k8s.io/v1/${kind}/${webhook}`, authorities)) || published
  for (const { namespace, name } of bundles) {
    const path = `/api/v1/namespaces/${namespace}/configmaps/${name}`
    published = (await addTo(api, path, { authorities, nowMs })) || published
  }
  return published
}

const BUNDLE_MAX = 16

/** Adds the authorities. Others that are there, such as an issuer's, stay until they expire. */
async function addTo(
  api: KubeApi,
  path: string,
  { authorities, nowMs }: { readonly authorities: readonly string[]; readonly nowMs: number },
): Promise<boolean> {
  const map = await api.get(path)
  const data = textsAt(map.data, 'data')
  const there = (data.get('ca.crt') ?? '').match(PEM) ?? []
  const kept = there.filter((pem) => !authorities.includes(pem) && isCurrent(pem, nowMs))
  const text = joined([...authorities, ...kept].slice(0, BUNDLE_MAX))
  if (text === data.get('ca.crt')) return false
  await api.put(path, { ...map, data: { ...Object.fromEntries(data), 'ca.crt': text } })
  return true
}

/** Patches the webhook's authorities. The API server refuses the patch if the webhook has changed meanwhile. */
async function publishTo(api: KubeApi, path: string, authorities: readonly string[]): Promise<boolean> {
  const found = await api.get(path)
  const bundle = Buffer.from(joined(authorities)).toString('base64')
  const changes = listAt(found.webhooks, 'webhooks').flatMap((hook: Json, at) => {
    const config = objectAt(isObject(hook) ? hook.clientConfig : null, `webhooks[${at}].clientConfig`)
    if (config.caBundle === bundle) return []
    return [{ op: 'add', path: `/webhooks/${at}/clientConfig/caBundle`, value: bundle }]
  })
  if (changes.length === 0) return false
  const version = textAt(objectAt(found.metadata, 'metadata').resourceVersion, 'metadata.resourceVersion') ?? ''
  await api.patch(path, [{ op: 'test', path: '/metadata/resourceVersion', value: version }, ...changes])
  return true
}
