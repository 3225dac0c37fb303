/** Certificates of the gRPC listener, read from files and reloaded when they change. A bad change keeps the last good ones. */
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import { type experimental, experimental as grpc, type ServerCredentials } from '@grpc/grpc-js'
import { StartError } from '../../process/exit.ts'
import type { Log } from '../../process/log.ts'

const RELOAD_INTERVAL_MS = 5_000

export type TlsFiles = {
  readonly certFile: string
  readonly keyFile: string
  /** The CA of client certificates; null: client certificates are not accepted. */
  readonly clientCaFile: string | null
}
export type ReloadedTls = {
  readonly credentials: ServerCredentials
  /** When the current certificate ends, in milliseconds since the epoch. */
  endMs(): number
  close(): void
}
type Loaded = { readonly cert: Buffer; readonly key: Buffer; readonly ca: Buffer | null }

/** Throws StartError if the files cannot be read, or the key does not match the certificate. */
export async function loadTls(
  files: TlsFiles,
  deps: { readonly log: Log; readonly reloadIntervalMs?: number },
): Promise<ReloadedTls> {
  const { log, reloadIntervalMs = RELOAD_INTERVAL_MS } = deps
  let current = await readFiles(files).catch((cause: unknown) => {
    throw new StartError(`TLS for gRPC: ${cause instanceof Error ? cause.message : cause}`, { cause })
  })
  const listeners = createListeners(() => current)
  // Compares contents, not times: Kubernetes swaps mounted secrets by links. A half-swapped pair fails to load and is retried.
  const reload = async (): Promise<void> => {
    const next = await readFiles(files)
    if (isSame(current, next)) return
    current = next
    listeners.publish()
    log.info({ event: 'certificates_reloaded' })
  }
  const timer = setInterval(() => {
    reload().catch((err: unknown) => log.warn({ event: 'certificates_not_reloaded', err }))
  }, reloadIntervalMs)
  timer.unref()
  const { provider } = listeners
  return {
    // A caller without a certificate may present a token instead.
    credentials: grpc.createCertificateProviderServerCredentials(
      provider,
      files.clientCaFile === null ? null : provider,
      false,
    ),
    endMs: () => Date.parse(new X509Certificate(current.cert).validTo),
    close: () => clearInterval(timer),
  }
}

async function readFiles({ certFile, keyFile, clientCaFile }: TlsFiles): Promise<Loaded> {
  const [cert, key, ca] = await Promise.all([
    readFile(certFile),
    readFile(keyFile),
    clientCaFile === null ? null : readFile(clientCaFile),
  ])
  try {
    createSecureContext({ cert, key, ...(ca === null ? {} : { ca }) })
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`${certFile} and ${keyFile} do not belong together: ${reason}`, { cause })
  }
  return { cert, key, ca }
}

function isSame(a: Loaded, b: Loaded): boolean {
  return a.cert.equals(b.cert) && a.key.equals(b.key) && (a.ca === null || (b.ca !== null && a.ca.equals(b.ca)))
}

/** A certificate provider for grpc-js. A new listener gets the current certificates after it was added. */
function createListeners(current: () => Loaded): {
  readonly provider: experimental.CertificateProvider
  publish(): void
} {
  type Notify = () => void
  const listeners = new Map<unknown, Notify>()
  const add = (listener: unknown, notify: Notify): void => {
    listeners.set(listener, notify)
    process.nextTick(() => listeners.get(listener)?.())
  }
  return {
    publish() {
      for (const notify of listeners.values()) notify()
    },
    provider: {
      addIdentityCertificateListener: (listener) =>
        add(listener, () => listener({ certificate: current().cert, privateKey: current().key })),
      removeIdentityCertificateListener: (listener) => void listeners.delete(listener),
      addCaCertificateListener: (listener) =>
        add(listener, () => {
          const { ca } = current()
          listener(ca === null ? null : { caCertificate: ca })
        }),
      removeCaCertificateListener: (listener) => void listeners.delete(listener),
    },
  }
}
