/** A certificate and its key from files, read again while a listener runs. */
import { createHash, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import { messageOf } from '../base/error-message.ts'

export type KeyPairFiles = {
  readonly certFile: string
  readonly keyFile: string
  /** The authorities of client certificates; null: client certificates are not accepted. */
  readonly clientCaFile: string | null
}
export type KeyPair = {
  readonly cert: Buffer
  readonly key: Buffer
  readonly clientCa: Buffer | null
  /** The SHA-256 of both files' contents. */
  readonly digest: string
  /** The certificate's end in milliseconds since the epoch. */
  readonly notAfterMs: number
}

/** Throws Error if a file cannot be read, or the key does not match the certificate. */
export async function readKeyPair({ certFile, keyFile, clientCaFile }: KeyPairFiles): Promise<KeyPair> {
  const [cert, key, clientCa] = await Promise.all([
    readFile(certFile),
    readFile(keyFile),
    clientCaFile === null ? null : readFile(clientCaFile),
  ])
  try {
    createSecureContext({ cert, key, ...(clientCa !== null && { ca: clientCa }) })
  } catch (err) {
    const reason = messageOf(err)
    throw new Error(`${certFile} and ${keyFile} do not belong together: ${reason}`, { cause: err })
  }
  const digest = createHash('sha256')
  for (const part of [cert, key, clientCa]) digest.update(`|${part?.length ?? '-'}|`).update(part ?? '')
  return {
    cert,
    key,
    clientCa,
    digest: digest.digest('hex'),
    notAfterMs: Date.parse(new X509Certificate(cert).validTo),
  }
}

/**
 * Reads the files every `everyMs` and compares contents, not times: Kubernetes swaps mounted Secrets by links, which file
 * events report unreliably. A pair that is half swapped fails to load; the last good one stays in use, and the next read
 * tries again.
 */
export function watchKeyPair(
  files: KeyPairFiles,
  options: {
    readonly current: KeyPair
    readonly everyMs: number
    readonly onRenewed: (pair: KeyPair) => void
    readonly onFailed: (err: unknown) => void
  },
): { close(): void } {
  const { everyMs, onRenewed, onFailed } = options
  let { digest } = options.current
  const readAgain = async (): Promise<void> => {
    try {
      const pair = await readKeyPair(files)
      if (pair.digest === digest) return
      onRenewed(pair)
      digest = pair.digest
    } catch (err) {
      onFailed(err)
    }
  }
  const timer = setInterval(() => void readAgain(), everyMs).unref()
  return { close: () => clearInterval(timer) }
}
