/** The certificate and key of the webhook, from a mounted Secret; read again when the mount changes. */
import { createHash, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { StartError } from '../../../pdp/process/exit.ts'
import type { Log } from '../../../pdp/process/log.ts'
import type { KeyPair } from './webhook.ts'

export type Certificate = { readonly pair: KeyPair; readonly digest: string; readonly notAfterMs: number }
export type CertificateWatch = { stop(): void }

/** `tls.crt` and `tls.key` of the folder, as Kubernetes names them. Throws StartError when they are not a pair. */
export async function readCertificate(folder: string): Promise<Certificate> {
  try {
    const [cert, key] = await Promise.all(['tls.crt', 'tls.key'].map((name) => readFile(join(folder, name))))
    if (cert === undefined || key === undefined) throw new Error('missing')
    const pair = { cert, key }
    // Throws when the key is not the certificate's: a mount is swapped whole, but two files are read.
    createSecureContext(pair)
    const digest = createHash('sha256').update(cert).update(key).digest('hex')
    return { pair, digest, notAfterMs: Date.parse(new X509Certificate(cert).validTo) }
  } catch (err) {
    throw new StartError(`${folder} holds no usable tls.crt and tls.key: ${err instanceof Error ? err.message : ''}`)
  }
}

/** Looks every `everyMs`: a mounted Secret changes by a swap of links, which file events report unreliably. The last good pair is kept. */
export function watchCertificate(
  folder: string,
  options: {
    readonly current: Certificate
    readonly everyMs: number
    readonly log: Log
    readonly onRenewed: (certificate: Certificate) => void
  },
): CertificateWatch {
  const { everyMs, log, onRenewed } = options
  let { digest } = options.current
  const readAgain = async (): Promise<void> => {
    try {
      const certificate = await readCertificate(folder)
      if (certificate.digest === digest) return
      onRenewed(certificate)
      digest = certificate.digest
      log.info({ event: 'certificate_renewed', not_after: new Date(certificate.notAfterMs).toISOString() })
    } catch (err) {
      log.error({ event: 'certificate_failed', err })
    }
  }
  const timer = setInterval(() => void readAgain(), everyMs).unref()
  return { stop: () => clearInterval(timer) }
}
