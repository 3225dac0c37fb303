/** Reads all certificates and keys that a route file names. */

import { readFileSync, statSync } from 'node:fs'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import { fileProblem } from '../../pdp/shared/process/command/file-problem.ts'
import { ConfigError } from '../../pdp/shared/process/exit.ts'
import { type PeerFiles, type UpstreamEntry, upstreamsOf } from '../http/upstream-entry.ts'
import type { RouteFile } from '../route-file/route-file.ts'

export type Pem = { readonly ca: Buffer | null; readonly cert: Buffer | null; readonly key: Buffer | null }
export type Certificates = {
  readonly upstream: Pem
  /** Certificates for the services that routes name. */
  readonly upstreams: ReadonlyMap<UpstreamEntry, Pem>
  readonly pdp: Pem
  /** TLS of the data port; its `ca` has the authorities of client certificates. Null: plain text. */
  readonly tls: Pem | null
  /** The keys of each door, in the order of the route file. */
  readonly doors: readonly DoorKeys[]
  /** Keys that seal the sessions of browsers: the first seals, all open. Null: the file has no sign-in. */
  readonly signIn: readonly [Buffer, ...Buffer[]] | null
  /** Secrets of the keys of assertions: the first signs, all are published. Null: no assertions are signed. */
  readonly assertion: readonly [Buffer, ...Buffer[]] | null
  /** Keys that bind sessions of MCP: the first binds, all are accepted. Null: each process has a key of its own. */
  readonly mcp: readonly [Buffer, ...Buffer[]] | null
}
export type DoorKeys = {
  /** The door's TLS; its `ca` has the authorities of gateways' certificates. Null: plain text. */
  readonly tls: Pem | null
  /** The secret that the gateway must send; null: no secret. */
  readonly secret: string | null
}
export const NO_PEM: Pem = { ca: null, cert: null, key: null }
/** The certificates of a route file that names no certificates. */
export const NO_CERTIFICATES: Certificates = {
  upstream: NO_PEM,
  upstreams: new Map(),
  pdp: NO_PEM,
  tls: null,
  doors: [],
  signIn: null,
  assertion: null,
  mcp: null,
}

const SECRET = /^[\x21-\x7e]{32,1024}$/

/** Throws ConfigError with one line for each file that cannot be read or used. */
export function readCertificates(file: RouteFile): Certificates {
  const { upstream, routes, pdp, tls, doors, signIn, assertion, mcpKeysFile } = file
  const problems: string[] = []
  let unread: unknown
  const read = (path: string | null): Buffer | null => {
    try {
      return path === null ? null : readFileSync(path)
    } catch (err) {
      unread = err
      problems.push(fileProblem(String(path), err))
      return null
    }
  }
  const pem = ([ca, cert, key]: (string | null)[]): Pem => {
    const before = problems.length
    const found = { ca: read(ca ?? null), cert: read(cert ?? null), key: read(key ?? null) }
    // An empty context is not made: Node would load all its authorities for it, which takes megabytes.
    const isEmpty = found.ca === null && found.cert === null && found.key === null
    try {
      if (problems.length === before && !isEmpty) createSecureContext(secureOptions(found))
    } catch (err) {
      problems.push(`${cert ?? ca} is not a usable certificate or key: ${messageOf(err)}`)
    }
    return found
  }
  const secret = (path: string): string | null => {
    const text = read(path)?.toString('latin1').trim() ?? null
    if (text === null || SECRET.test(text)) return text
    problems.push(`${path} must hold one secret of 32 to 1024 visible ASCII characters`)
    return null
  }
  const sealing = (path: string): readonly [Buffer, ...Buffer[]] | null => {
    const text = read(path)?.toString('latin1')
    if (text === undefined) return null
    const lines = text.split('\n').map((line) => line.trim())
    const [first, ...others] = lines.filter((line) => line !== '')
    const isGood = first !== undefined && [first, ...others].every((line) => SECRET.test(line))
    if (isGood) return [Buffer.from(first), ...others.map((line) => Buffer.from(line))]
    problems.push(`${path} must hold one key a line, each of 32 to 1024 visible ASCII characters`)
    return null
  }
  const certificates: Certificates = {
    signIn: signIn === null ? null : sealing(signIn.keysFile),
    assertion: assertion === null ? null : sealing(assertion.keysFile),
    mcp: mcpKeysFile === null ? null : sealing(mcpKeysFile),
    upstream: pem(pathsOf(upstream)),
    upstreams: new Map([...upstreamsOf(routes)].map((entry) => [entry, pem(pathsOf(entry))])),
    pdp: pem(pathsOf(pdp)),
    tls: tls === null ? null : pem([tls.clientCaFile, tls.certFile, tls.keyFile]),
    doors: doors.map(({ tls: own, secretFile }) => ({
      tls: own === null ? null : pem([own.clientCaFile, own.certFile, own.keyFile]),
      secret: secretFile === null ? null : secret(secretFile),
    })),
  }
  if (problems.length > 0) throw new ConfigError(problems, { cause: unread })
  return certificates
}

const pathsOf = ({ caFile, certFile, keyFile }: PeerFiles): (string | null)[] => [caFile, certFile, keyFile]

/** Options for Node's TLS. On the data port, `ca` makes a client certificate mandatory. */
export function secureOptions({
  ca,
  cert,
  key,
}: Pem): SecureContextOptions & { readonly requestCert?: boolean; readonly rejectUnauthorized?: boolean } {
  return {
    minVersion: 'TLSv1.2',
    ...(ca !== null && { ca, requestCert: true, rejectUnauthorized: true }),
    ...(cert !== null && { cert }),
    ...(key !== null && { key }),
  }
}
/** True when some certificates that were accepted before are no longer accepted. */
export const dropsAuthority = (before: Pem | null, now: Pem): boolean => before !== null && addsAuthority(now, before)

/** True when some certificates that were not accepted before are accepted now. */
export function addsAuthority(before: Pem, now: Pem): boolean {
  const known = authoritiesOf(before)
  return [...authoritiesOf(now)].some((authority) => !known.has(authority))
}

const authoritiesOf = ({ ca }: Pem): ReadonlySet<string> =>
  new Set((ca?.toString('latin1') ?? '').split(/-----[A-Z ]+-----/).map((block) => block.replaceAll(/\s/g, '')))

/** A text that changes with each of the files, also when Kubernetes swaps the symbolic link of a mounted volume. */
export function fileSignature(path: string, file: RouteFile): string {
  const { upstream, routes, pdp, tls, signIn, assertion, mcpKeysFile, doors } = file
  const ofDoors = doors.flatMap(({ tls: own, secretFile }) => [
    own?.certFile,
    own?.keyFile,
    own?.clientCaFile,
    secretFile,
  ])
  const all = [
    ...[path, ...[upstream, ...upstreamsOf(routes), pdp].flatMap(pathsOf)],
    ...[tls?.certFile, tls?.keyFile, tls?.clientCaFile, signIn?.keysFile, assertion?.keysFile, mcpKeysFile, ...ofDoors],
  ]
  return all.map((one) => (one == null ? '' : stamp(one))).join(' ')
}

function stamp(path: string): string {
  try {
    // `ctime` changes with permissions, too, and when a tool sets an old `mtime` again.
    const { ino, mtimeMs, ctimeMs, size } = statSync(path)
    return `${ino}:${mtimeMs}:${ctimeMs}:${size}`
  } catch {
    return 'missing'
  }
}
