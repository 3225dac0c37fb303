/** Makes a server certificate, and the authority that signs only this one: the authority's private key is never stored. */
import { webcrypto, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { stringify } from 'yaml'

export type MadeCertificate = {
  /** The PEM text of the authority's certificate. */
  readonly authority: string
  readonly certificate: string
  readonly key: string
}

const DAY_MS = 86_400_000
// How long before its making the certificate is valid: nodes whose clocks are behind must not refuse it.
export const BACKDATE_MS = 300_000
const KEY = { name: 'ECDSA', namedCurve: 'P-256' } as const
const SIGNATURE = { name: 'ECDSA', hash: 'SHA-256' } as const

/** A certificate for DNS names and addresses of a Service or a host. ECDSA with P-256 and SHA-256; profile of RFC 5280. */
export async function makeCertificate(options: {
  readonly names: readonly string[]
  readonly days: number
  /** Milliseconds since the epoch. */
  readonly nowMs: number
}): Promise<MadeCertificate> {
  const { authority, issue } = await makeAuthority(options)
  return { authority, ...(await issue(options.names)) }
}

/** An authority in memory. `issue` signs a server's certificate, which the server may also use as a client. */
export async function makeAuthority({ days, nowMs }: { readonly days: number; readonly nowMs: number }): Promise<{
  readonly authority: string
  issue(names: readonly string[]): Promise<{ readonly certificate: string; readonly key: string }>
}> {
  const x509 = await loadX509()
  const keys = await makeKeys()
  // Each authority has a new name, by which a verifier finds the right one in a bundle of two.
  const issuer = `CN=portcullis ${randomHex(8)}`
  const common = {
    issuer,
    notBefore: wholeSecond(nowMs - BACKDATE_MS),
    notAfter: wholeSecond(nowMs + days * DAY_MS),
    signingAlgorithm: SIGNATURE,
    signingKey: keys.privateKey,
  }
  const root = await x509.X509CertificateGenerator.create({
    ...common,
    serialNumber: makeSerialNumber(),
    subject: issuer,
    publicKey: keys.publicKey,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return {
    authority: `${root.toString('pem')}\n`,
    async issue(names) {
      const leaf = await makeKeys()
      const made = await x509.X509CertificateGenerator.create({
        ...common,
        serialNumber: makeSerialNumber(),
        subject: 'CN=portcullis',
        publicKey: leaf.publicKey,
        extensions: [
          new x509.BasicConstraintsExtension(false, undefined, true),
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
          await x509.AuthorityKeyIdentifierExtension.create(keys.publicKey),
          new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
          new x509.SubjectAlternativeNameExtension(
            names.map((value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value })),
          ),
        ],
      })
      const key = await webcrypto.subtle.exportKey('pkcs8', leaf.privateKey)
      return { certificate: `${made.toString('pem')}\n`, key: `${x509.PemConverter.encode(key, 'PRIVATE KEY')}\n` }
    },
  }
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g

/**
 * The bundle of authorities with one more. Those that have not expired stay, so that verifiers trust both certificates until every server
 * presents the new one. Throws Error when the text contains something that is no certificate.
 */
export function withAuthority(bundle: string, authority: string, nowMs: number): string {
  if (bundle.replace(CERTIFICATE, '').trim() !== '') throw new Error('it holds something that is no PEM certificate')
  const kept = [...bundle.matchAll(CERTIFICATE)].map(([pem]) => pem.trim())
  const valid = kept.filter((pem) => Date.parse(new X509Certificate(pem).validTo) > nowMs)
  return [...valid, authority.trim()].map((pem) => `${pem}\n`).join('')
}

/** A Secret in the chart's form: the key pair and `ca.crt`. */
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

/** Loads the library on first use: it needs a polyfill that extends the global Reflect, which no server process should load. */
async function loadX509(): Promise<typeof import('@peculiar/x509')> {
  await import('reflect-metadata')
  return import('@peculiar/x509')
}

const makeKeys = (): Promise<webcrypto.CryptoKeyPair> => webcrypto.subtle.generateKey(KEY, true, ['sign', 'verify'])

const randomHex = (bytesCount: number): string =>
  Buffer.from(webcrypto.getRandomValues(new Uint8Array(bytesCount))).toString('hex')

/** A serial number is positive and has at most 20 bytes (RFC 5280 section 4.1.2.2). The first byte 01 keeps it positive. */
const makeSerialNumber = (): string => `01${randomHex(15)}`

/** The time without a fraction of a second (RFC 5280 section 4.1.2.5). */
const wholeSecond = (ms: number): Date => new Date(Math.floor(ms / 1_000) * 1_000)
