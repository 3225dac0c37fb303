/** Makes a server's certificate with an authority of its own, whose key is forgotten at once. */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { stringify } from 'yaml'
import { bits, integer, objectId, octets, sequence, set, tagged, text, time, yes } from './der.ts'

export type MadeCertificate = {
  /** PEM. */
  readonly authority: string
  readonly certificate: string
  readonly key: string
}

const DAY_MS = 86_400_000
// A node whose clock is behind must not refuse a new certificate.
const BACKDATE_MS = 300_000
const ECDSA_SHA256 = sequence(objectId('1.2.840.10045.4.3.2'))
const COMMON_NAME = objectId('2.5.4.3')
const SIGN_CERTIFICATES = Buffer.of(0x04)
const SIGN_HANDSHAKES = Buffer.of(0x80)

/** For the DNS names of a Service. P-256, SHA-256. */
export function makeCertificate(options: {
  readonly names: readonly string[]
  readonly days: number
  /** Milliseconds since the epoch. */
  readonly nowMs: number
}): MadeCertificate {
  const { names, days, nowMs } = options
  const authority = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const leaf = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  // Its own name each time: in a bundle of two, a verifier finds the right one.
  const issuer = nameOf(`portcullis ${randomBytes(8).toString('hex')}`)
  const validity = sequence(time(nowMs - BACKDATE_MS), time(nowMs + days * DAY_MS))
  const common = { issuer, validity, signer: authority.privateKey }
  return {
    authority: issue({
      ...common,
      subject: issuer,
      key: authority.publicKey,
      extensions: [
        extension('2.5.29.19', sequence(yes()), true),
        extension('2.5.29.15', bits(SIGN_CERTIFICATES, 2), true),
        extension('2.5.29.14', octets(keyId(authority.publicKey)), false),
      ],
    }),
    certificate: issue({
      ...common,
      subject: nameOf('portcullis'),
      key: leaf.publicKey,
      extensions: [
        extension('2.5.29.19', sequence(), true),
        extension('2.5.29.15', bits(SIGN_HANDSHAKES, 7), true),
        extension('2.5.29.35', sequence(tagged(0, keyId(authority.publicKey), false)), false),
        extension('2.5.29.37', sequence(objectId('1.3.6.1.5.5.7.3.1')), false),
        extension('2.5.29.17', sequence(...names.map((name) => tagged(2, Buffer.from(name, 'ascii'), false))), false),
      ],
    }),
    key: leaf.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

/** A Secret as the chart expects it, with `ca.crt` beside the pair. */
export function secretManifest(
  { authority, certificate, key }: MadeCertificate,
  { name, namespace }: { readonly name: string; readonly namespace: string },
): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace },
    type: 'kubernetes.io/tls',
    stringData: { 'ca.crt': authority, 'tls.crt': certificate, 'tls.key': key },
  })
}

type Issue = {
  readonly issuer: Buffer
  readonly subject: Buffer
  readonly validity: Buffer
  readonly key: KeyObject
  readonly signer: KeyObject
  readonly extensions: readonly Buffer[]
}

/** RFC 5280 section 4.1. */
function issue({ issuer, subject, validity, key, signer, extensions }: Issue): string {
  const version3 = tagged(0, integer(Buffer.of(2)), true)
  const publicKey = key.export({ type: 'spki', format: 'der' })
  const body = sequence(
    version3,
    integer(randomBytes(16)),
    ECDSA_SHA256,
    issuer,
    validity,
    subject,
    publicKey,
    tagged(3, sequence(...extensions), true),
  )
  const certificate = sequence(body, ECDSA_SHA256, bits(sign('sha256', body, signer)))
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

/** RFC 7093 section 2, method 4: of the whole SubjectPublicKeyInfo. */
function keyId(key: KeyObject): Buffer {
  const spki = key.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(spki).digest().subarray(0, 20)
}

const nameOf = (commonName: string): Buffer => sequence(set(sequence(COMMON_NAME, text(commonName))))

function extension(id: string, content: Buffer, critical: boolean): Buffer {
  return sequence(objectId(id), ...(critical ? [yes()] : []), octets(content))
}
