/**
 * Keeps the webhook's certificate valid without anybody's help: makes it, renews it while two thirds of its time are over, and
 * tells the API server the authorities. The API server trusts a new authority before the injectors present its certificate,
 * and trusts the old one until it expires, so no review fails meanwhile.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isObject, type Json, type JsonObject, listAt, objectAt, textAt, textsAt } from '../pod/json.ts'
import { makeCertificate } from './certificate.ts'
import type { KubeApi } from './kube-api.ts'

export type CertificateGoal = {
  readonly namespace: string
  /** The name of a Secret that exists; the chart makes it without data. */
  readonly secret: string
  /** DNS names of the Service. */
  readonly names: readonly string[]
  /** The MutatingWebhookConfiguration, and the ValidatingWebhookConfiguration of this name, that must trust the certificate. */
  readonly webhook: string
  readonly days: number
  /** Milliseconds since the epoch. */
  readonly nowMs: number
}
export type Maintained = {
  /** Why the certificate was replaced; null: it was good. */
  readonly renewed: string | null
  /** True when the webhook had other authorities. */
  readonly published: boolean
  readonly notAfterMs: number
}

/** The share of its time that a certificate may have left before it is renewed. */
const RENEWED_AT = 1 / 3
const AUTHORITIES_MAX = 4
const PEM = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g

/** Throws StartError and ShapeError; then it can be called again. */
export async function maintainCertificate(api: KubeApi, goal: CertificateGoal): Promise<Maintained> {
  const path = `/api/v1/namespaces/${goal.namespace}/secrets/${goal.secret}`
  const secret = await api.get(path)
  const held = readSecret(secret)
  const wrong = problemOf(held, goal)
  if (wrong === null) {
    const published = await publish(api, goal.webhook, held.authorities)
    return { renewed: null, published, notAfterMs: new X509Certificate(held.certificate).validToDate.getTime() }
  }
  const made = await makeCertificate({ names: goal.names, days: goal.days, nowMs: goal.nowMs })
  const authorities = [made.authority.trim(), ...held.authorities.filter((pem) => isCurrent(pem, goal.nowMs))]
  const trusted = authorities.slice(0, AUTHORITIES_MAX)
  const published = await publish(api, goal.webhook, trusted)
  const data = { 'ca.crt': joined(trusted), 'tls.crt': made.certificate, 'tls.key': made.key }
  const encoded = Object.entries(data).map(([name, text]) => [name, Buffer.from(text).toString('base64')])
  await api.put(path, { ...secret, data: Object.fromEntries(encoded) })
  return { renewed: wrong, published, notAfterMs: new X509Certificate(made.certificate).validToDate.getTime() }
}

type StoredCertificate = { readonly authorities: readonly string[]; readonly certificate: string; readonly key: string }

function readSecret(secret: JsonObject): StoredCertificate {
  const data = textsAt(secret.data, 'data')
  const read = (name: string): string => Buffer.from(data.get(name) ?? '', 'base64').toString('utf8')
  return { authorities: read('ca.crt').match(PEM) ?? [], certificate: read('tls.crt'), key: read('tls.key') }
}

/** Why the certificate must be replaced; null when it is good. */
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
    if (to - nowMs <= (to - from) * RENEWED_AT) return 'it was about to expire'
    if (!authorities.some((pem) => isIssuer(pem, leaf))) return 'its authority was missing'
    return null
  } catch {
    return 'it could not be read'
  }
}

function isIssuer(pem: string, leaf: X509Certificate): boolean {
  const authority = new X509Certificate(pem)
  return leaf.checkIssued(authority) && leaf.verify(authority.publicKey)
}

/** An authority that cannot be read is not kept. */
function isCurrent(pem: string, nowMs: number): boolean {
  try {
    return new X509Certificate(pem).validToDate.getTime() > nowMs
  } catch {
    return false
  }
}

const joined = (authorities: readonly string[]): string => authorities.map((pem) => `${pem}\n`).join('')

const KINDS = ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations']

/** True when a webhook had other authorities. */
async function publish(api: KubeApi, name: string, authorities: readonly string[]): Promise<boolean> {
  let published = false
  for (const kind of KINDS)
    published =
      (await publishTo(api, `/apis/admissionregistration.k8s.io/v1/${kind}/${name}`, authorities)) || published
  return published
}

/** The patch is refused when the webhook changed meanwhile. */
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
