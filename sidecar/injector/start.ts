/** Starts an injector process: the webhook, the reload of its certificate, and the admin port. */
import { join } from 'node:path'
import { Counter, Gauge } from 'prom-client'
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import { createRegistry, startOperations } from '../../pdp/shared/process/admin-listener.ts'
import { StartError } from '../../pdp/shared/process/exit.ts'
import { type KeyPairFiles, readKeyPair, watchKeyPair } from '../../pdp/shared/process/key-pair-files.ts'
import { formatAddress, type ListenAddress } from '../../pdp/shared/process/listen.ts'
import type { Log } from '../../pdp/shared/process/log.ts'
import type { Shutdown } from '../../pdp/shared/process/shutdown.ts'
import type { InjectorConfig } from './pod/config.ts'
import type { RouteFileReport } from './webhook/checks.ts'
import { startWebhook } from './webhook/webhook.ts'

export type InjectorOptions = {
  readonly config: InjectorConfig
  /** The folder with tls.crt and tls.key. */
  readonly certificateFolder: string
  readonly certificateCheckMs: number
  readonly listen: ListenAddress
  readonly adminListen: ListenAddress
  readonly checkRoutes: (text: string) => Promise<RouteFileReport>
}

/** Returns when both ports listen. Throws StartError. */
export async function startInjector(
  { config, certificateFolder, certificateCheckMs, listen, adminListen, checkRoutes }: InjectorOptions,
  {
    log,
    shutdown,
    droppedLines,
  }: { readonly log: Log; readonly shutdown: Shutdown; readonly droppedLines?: () => number },
): Promise<{ readonly address: ListenAddress; readonly adminAddress: ListenAddress }> {
  const registry = createRegistry(droppedLines)
  const registers = [registry]
  const reviews = new Counter({
    name: 'portcullis_injector_reviews_total',
    help: 'Admission reviews by mode of the namespace (or workload, routes), verdict and reason',
    labelNames: ['mode', 'verdict', 'reason'] as const,
    registers,
  })
  const expiry = new Gauge({
    name: 'portcullis_injector_certificate_not_after_seconds',
    help: 'When the certificate in use ends, seconds since the epoch',
    registers,
  })
  // Kubernetes gives these names to the files of a Secret of type kubernetes.io/tls.
  const [certFile, keyFile] = [join(certificateFolder, 'tls.crt'), join(certificateFolder, 'tls.key')]
  const files: KeyPairFiles = { certFile, keyFile, clientCaFile: null }
  const pair = await readKeyPair(files).catch((err: unknown) => {
    const reason = messageOf(err)
    throw new StartError(`${certificateFolder} holds no usable tls.crt and tls.key: ${reason}`, { cause: err })
  })
  expiry.set(pair.notAfterMs / 1_000)
  const webhook = await startWebhook(listen, pair, {
    config,
    log,
    checkRoutes,
    ...noted(reviews, log),
  })
  shutdown.add('webhook', webhook.close)
  const watch = watchKeyPair(files, {
    current: pair,
    everyMs: certificateCheckMs,
    onRenewed(renewed) {
      webhook.renew(renewed)
      expiry.set(renewed.notAfterMs / 1_000)
      log.info({ event: 'certificate_renewed', not_after: new Date(renewed.notAfterMs).toISOString() })
    },
    onFailed: (err) => log.error({ event: 'certificate_failed', err }),
  })
  shutdown.add('certificate watch', watch.close)
  const healthy = (): null => null
  const probes = { '/livez': healthy, '/readyz': healthy }
  const operations = await startOperations({ listen: adminListen, registry, probes })
  shutdown.add('admin listener', operations.close)
  if (!shutdown.begun())
    log.info({ event: 'listening', webhook: formatAddress(webhook.address), admin: formatAddress(operations.address) })
  return { address: webhook.address, adminAddress: operations.address }
}

/** Counts and logs the webhook's answers. */
function noted(
  reviews: Counter<'mode' | 'verdict' | 'reason'>,
  log: Log,
): Pick<Parameters<typeof startWebhook>[2], 'onCheck' | 'onReview'> {
  return {
    onCheck(kind, checked) {
      const verdict = checked?.verdict ?? 'invalid'
      reviews.inc({ mode: kind, verdict, reason: '' })
      if (verdict !== 'allow') log.info({ event: 'checked', kind, verdict, object: checked?.object ?? null })
    },
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
  }
}
