/** Starts an injector process: the webhook, its certificate's watch, and the admin port. */
import { Counter, Gauge } from 'prom-client'
import { formatAddress, type ListenAddress } from '../../pdp/process/listen.ts'
import type { Log } from '../../pdp/process/log.ts'
import { createRegistry, startOperations } from '../../pdp/process/operations.ts'
import type { Shutdown } from '../../pdp/process/shutdown.ts'
import type { InjectorConfig } from './pod/config.ts'
import { readCertificate, watchCertificate } from './webhook/key-pair-files.ts'
import { startWebhook } from './webhook/webhook.ts'

export type InjectorOptions = {
  readonly config: InjectorConfig
  /** Folder with tls.crt and tls.key. */
  readonly certificateFolder: string
  readonly certificateCheckMs: number
  readonly listen: ListenAddress
  readonly adminListen: ListenAddress
}

/** Returns when both ports listen. Throws StartError. */
export async function startInjector(
  { config, certificateFolder, certificateCheckMs, listen, adminListen }: InjectorOptions,
  { log, shutdown }: { readonly log: Log; readonly shutdown: Shutdown },
): Promise<{ readonly address: ListenAddress; readonly adminAddress: ListenAddress }> {
  const registry = createRegistry()
  const registers = [registry]
  const reviews = new Counter({
    name: 'portcullis_injector_reviews_total',
    help: 'Admission reviews by mode of the namespace, verdict and reason',
    labelNames: ['mode', 'verdict', 'reason'] as const,
    registers,
  })
  const expiry = new Gauge({
    name: 'portcullis_injector_certificate_not_after_seconds',
    help: 'When the certificate in use ends, seconds since the epoch',
    registers,
  })
  const certificate = await readCertificate(certificateFolder)
  expiry.set(certificate.notAfterMs / 1_000)
  const webhook = await startWebhook(listen, certificate.pair, {
    config,
    log,
    onReview(mode, reviewed) {
      const verdict = reviewed?.injection.verdict ?? 'invalid'
      const reason = reviewed !== null && 'code' in reviewed.injection ? reviewed.injection.code : ''
      reviews.inc({ mode, verdict, reason })
      const warnings = reviewed !== null && 'warnings' in reviewed.injection ? reviewed.injection.warnings : []
      log.info({
        event: 'review',
        mode,
        verdict,
        reason,
        pod: reviewed?.pod ?? null,
        ...(warnings.length > 0 && { warnings }),
      })
    },
  })
  shutdown.add('webhook', webhook.close)
  const watch = watchCertificate(certificateFolder, {
    current: certificate,
    everyMs: certificateCheckMs,
    log,
    onRenewed({ pair, notAfterMs }) {
      webhook.renew(pair)
      expiry.set(notAfterMs / 1_000)
    },
  })
  shutdown.add('certificate watch', watch.stop)
  const healthy = (): null => null
  const probes = { '/livez': healthy, '/readyz': healthy }
  const operations = await startOperations({ listen: adminListen, registry, probes })
  shutdown.add('admin listener', operations.close)
  log.info({ event: 'listening', webhook: formatAddress(webhook.address), admin: formatAddress(operations.address) })
  return { address: webhook.address, adminAddress: operations.address }
}
