/** Makes a server certificate and a certificate authority that signs nothing else: the authority's private key is never written. */
import { webcrypto } from 'node:crypto'
import { stringify } from 'yaml'

export type MadeCertificate = {
  /** PEM. */
  readonly authority: string
  readonly certificate: string
  readonly key: string
}

const DAY_MS = 86_400_000
// A node whose clock is behind must not refuse a new certificate.
const BACKDATE_MS = 300_000
const KEY = { name: 'ECDSA', namedCurve: 'P-256' } as const
const SIGNATURE = { name: 'ECDSA', hash: 'SHA-256' } as const

/** For the DNS names of a Service. ECDSA with P-256 and SHA-256; profile of RFC 5280. */
export async function makeCertificate(options: {
  readonly names: readonly string[]
  readonly days: number
  /** Milliseconds since the epoch. */
  readonly nowMs: number
}): Promise<MadeCertificate> {
  const { names, days, nowMs } = options
  const x509 = await loadX509()
  const [authority, leaf] = await Promise.all([makeKeys(), makeKeys()])
  // A new name each time: in a bundle of two authorities, a verifier finds the right one.
  const issuer = `CN=portcullis ${randomHex(8)}`
  const common = {
    issuer,
    notBefore: wholeSecond(nowMs - BACKDATE_MS),
    notAfter: wholeSecond(nowMs + days * DAY_MS),
    signingAlgorithm: SIGNATURE,
    signingKey: authority.privateKey,
  }
  const root = await x509.X509CertificateGenerator.create({
    ...common,
    serialNumber: makeSerialNumber(),
    subject: issuer,
    publicKey: authority.publicKey,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
      await x509.SubjectKeyIdentifierExtension.create(authority.publicKey),
    ],
  })
  const server = await x509.X509CertificateGenerator.create({
    ...common,
    serialNumber: makeSerialNumber(),
    subject: 'CN=portcullis',
    publicKey: leaf.publicKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      await x509.AuthorityKeyIdentifierExtension.create(authority.publicKey),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: 'dns', value }))),
    ],
  })
  return {
    authority: `${root.toString('pem')}\n`,
    certificate: `${server.toString('pem')}\n`,
    key: `${x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', leaf.privateKey), 'PRIVATE KEY')}\n`,
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

/** Loaded only here, because the library needs a polyfill that extends the global Reflect: no server process loads it. */
async function loadX509(): Promise<typeof import('@peculiar/x509')> {
  await import('reflect-metadata')
  return import('@peculiar/x509')
}

const makeKeys = (): Promise<webcrypto.CryptoKeyPair> => webcrypto.subtle.generateKey(KEY, true, ['sign', 'verify'])

const randomHex = (bytesCount: number): string =>
  Buffer.from(webcrypto.getRandomValues(new Uint8Array(bytesCount))).toString('hex')

/** RFC 5280 section 4.1.2.2: positive and at most 20 bytes. The first byte 01 keeps it positive. */
const makeSerialNumber = (): string => `01${randomHex(15)}`

/** RFC 5280 section 4.1.2.5: times have no fraction of a second. */
const wholeSecond = (ms: number): Date => new Date(Math.floor(ms / 1_000) * 1_000)
