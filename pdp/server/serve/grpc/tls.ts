/** Certificates of the gRPC listener, for grpc-js: renewed when their files change, without a restart. */
import { type experimental, experimental as grpc, type ServerCredentials } from '@grpc/grpc-js'
import { messageOf } from '../../../shared/base/error-message.ts'
import { StartError } from '../../../shared/process/exit.ts'
import { type KeyPair, type KeyPairFiles, readKeyPair, watchKeyPair } from '../../../shared/process/key-pair-files.ts'
import type { Log } from '../../../shared/process/log.ts'

const RELOAD_INTERVAL_MS = 5_000

export type ReloadedTls = {
  readonly credentials: ServerCredentials
  /** The end of the present certificate in milliseconds since the epoch. */
  endMs(): number
  close(): void
}

/** Throws StartError if the files cannot be read, or the key does not match the certificate. */
export async function loadTls(
  files: KeyPairFiles,
  deps: { readonly log: Log; readonly reloadIntervalMs?: number },
): Promise<ReloadedTls> {
  const { log, reloadIntervalMs = RELOAD_INTERVAL_MS } = deps
  let current = await readKeyPair(files).catch((err: unknown) => {
    throw new StartError(`TLS for gRPC: ${messageOf(err)}`, { cause: err })
  })
  const listeners = createListeners(() => current)
  const { close } = watchKeyPair(files, {
    current,
    everyMs: reloadIntervalMs,
    onRenewed(pair) {
      current = pair
      listeners.publish()
      log.info({ event: 'certificates_reloaded' })
    },
    onFailed: (err) => log.warn({ event: 'certificates_not_reloaded', err }),
  })
  const { provider } = listeners
  return {
    // A caller without a certificate may present a token instead.
    credentials: grpc.createCertificateProviderServerCredentials(
      provider,
      files.clientCaFile === null ? null : provider,
      false,
    ),
    endMs: () => current.notAfterMs,
    close,
  }
}

/** A certificate provider for grpc-js. A listener that is added later gets the current certificates, too. */
function createListeners(current: () => KeyPair): {
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
          const { clientCa } = current()
          listener(clientCa === null ? null : { caCertificate: clientCa })
        }),
      removeCaCertificateListener: (listener) => void listeners.delete(listener),
    },
  }
}
