import { spawnSync } from 'node:child_process'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { makeCertificate } from '../../../../sidecar/injector/certificate/certificate.ts'

const NOW = Date.UTC(2026, 0, 15, 12, 0, 0, 789)
const folder = mkdtempSync(join(tmpdir(), 'portcullis-certificate-'))
afterAll(() => rmSync(folder, { recursive: true }))

const names = ['portcullis-pdp.portcullis.svc', 'portcullis-pdp.portcullis.svc.cluster.local']
const made = await makeCertificate({ names, days: 365, nowMs: NOW })
const other = await makeCertificate({ names, days: 1, nowMs: NOW })
const leaf = new X509Certificate(made.certificate)
const authority = new X509Certificate(made.authority)

function openssl(...words: readonly string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync('openssl', words, { encoding: 'utf8' })
  return { status, output: stdout + stderr }
}
function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
const verify = (host: string, trusted: string, atMs = NOW): { status: number | null; output: string } =>
  openssl(
    ...['verify', '-x509_strict', '-purpose', 'sslserver', '-verify_hostname', host],
    ...['-attime', String(Math.floor(atMs / 1_000)), '-CAfile', file('ca.pem', trusted)],
    file('leaf.pem', made.certificate),
  )

test('the certificate is for the names of the Service, belongs to its key, and is signed by its authority', () => {
  expect(leaf.subjectAltName).toBe(names.map((name) => `DNS:${name}`).join(', '))
  expect(leaf.checkPrivateKey(createPrivateKey(made.key))).toBe(true)
  expect(leaf.checkIssued(authority) && leaf.verify(authority.publicKey)).toBe(true)
  expect(authority.ca).toBe(true)
  expect(leaf.ca).toBe(false)
})

test('the certificate is valid from five minutes ago, in whole seconds, for the days asked for', () => {
  expect(leaf.validFromDate).toEqual(new Date(Date.UTC(2026, 0, 15, 11, 55)))
  expect(leaf.validToDate).toEqual(new Date(Date.UTC(2027, 0, 15, 12)))
})

test('a certificate that ends after 2049 says so in the form that RFC 5280 section 4.1.2.5 demands', async () => {
  const late = await makeCertificate({ names, days: 365, nowMs: Date.UTC(2049, 5, 1) })
  expect(new X509Certificate(late.certificate).validToDate).toEqual(new Date(Date.UTC(2050, 5, 1)))
  const { output } = openssl('asn1parse', '-in', file('late.pem', late.certificate))
  expect(output).toMatch(/UTCTIME\s+:490531235500Z/)
  expect(output).toMatch(/GENERALIZEDTIME\s+:20500601000000Z/)
})

test('OpenSSL takes the certificate as a server of its names only, under its own authority only, and in its time only', () => {
  for (const name of names) expect(verify(name, made.authority)).toMatchObject({ status: 0 })
  expect(verify('portcullis-pdp.other.svc', made.authority).output).toContain('hostname mismatch')
  expect(verify('portcullis-pdp.portcullis.svc', other.authority).status).not.toBe(0)
  expect(verify(names[0] ?? '', made.authority, NOW - 301_000).output).toContain('not yet valid')
  expect(verify(names[0] ?? '', made.authority, NOW + 366 * 86_400_000).output).toContain('expired')
})

test('in a bundle of two authorities, the one that signed is found', () => {
  expect(verify(names[0] ?? '', other.authority + made.authority)).toMatchObject({ status: 0 })
  expect(other.authority).not.toContain(made.authority)
})

test('the authority may sign certificates only, the certificate is for TLS alone', () => {
  const text = (pem: string): string => openssl('x509', '-noout', '-text', '-in', file('one.pem', pem)).output
  expect(text(made.authority)).toMatch(/Key Usage: critical\s+Certificate Sign\n/)
  expect(text(made.certificate)).toMatch(/Key Usage: critical\s+Digital Signature\n/)
  expect(text(made.certificate)).toMatch(
    /Extended Key Usage:\s+TLS Web Server Authentication, TLS Web Client Authentication\n/,
  )
})

test('no two certificates share a serial number, and each is positive', () => {
  const serials = [leaf, authority, ...[other.certificate, other.authority].map((pem) => new X509Certificate(pem))].map(
    ({ serialNumber }) => serialNumber,
  )
  expect(new Set(serials).size).toBe(4)
  expect(serials.filter((serial) => !/^0?1[0-9A-F]{30}$/.test(serial))).toEqual([])
})
