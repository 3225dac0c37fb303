/** Loads a changed route file or certificate without a restart, and keeps the active one when the new one has errors. */
import { createHash } from 'node:crypto'
import { ConfigError } from '../../pdp/process/exit.ts'
import { fileSignature } from '../config/certificates.ts'
import type { LoadedConfig } from '../config/config.ts'
import type { SidecarLog } from './log.ts'
import type { Metrics } from './metrics.ts'
import { openedRoutes } from './opened-routes.ts'
import { openedSettings } from './opened-settings.ts'

export type Reload = {
  /** Checks the files now. */
  check(): void
  close(): void
}

/** Polls the files every `everyMs`, because changes of a mounted volume may cause no file event. */
export function watchConfig(options: {
  readonly path: string
  readonly started: LoadedConfig
  readonly load: () => LoadedConfig
  /** Throws ConfigError when it cannot apply the configuration. */
  readonly apply: (config: LoadedConfig) => void
  readonly everyMs: number
  readonly log: SidecarLog
  readonly metrics: Metrics
  readonly clock: () => number
}): Reload {
  const { path, load, apply, log, metrics, clock } = options
  let current = options.started
  let seen = fileSignature(path, current.file)
  /** A changed content that the last check read. */
  let pending: FilesRead | null = null
  let unstableReads = 0
  const timer = setInterval(check, options.everyMs).unref()

  function readFiles(): FilesRead {
    try {
      const config = load()
      return { fingerprint: fingerprintOf(config), config, issues: [] }
    } catch (err) {
      const issues = issuesOf(err)
      return { fingerprint: issues.join('\n'), config: null, issues }
    }
  }

  /** A half-written file may be valid, so a change is applied only when two successive checks read the same content. */
  function check(): void {
    const signature = fileSignature(path, current.file)
    if (pending === null && signature === seen) return
    const found = readFiles()
    if (pending?.fingerprint !== found.fingerprint) {
      pending = found
      unstableReads += 1
      if (unstableReads % UNSTABLE_READS_LOGGED === 0) log.warn({ event: 'config_unsettled', route_file: path })
      return
    }
    pending = null
    unstableReads = 0
    seen = signature
    if (found.config === null) refuse(found.issues)
    else take(found.config)
  }

  function take(next: LoadedConfig): void {
    const opened = openedRoutes(current.file.routes, next.file.routes)
    const settings = openedSettings(current.file, next.file)
    try {
      apply(next)
    } catch (err) {
      refuse(issuesOf(err))
      return
    }
    current = next
    // The new route file may name other certificates.
    seen = fileSignature(path, next.file)
    log.info({ event: 'config_loaded', route_file: path, hash: next.hash, routes: next.file.routes.length })
    if (opened.length > 0) log.warn({ event: 'routes_opened', route_file: path, hash: next.hash, routes: opened })
    if (settings.length > 0) log.warn({ event: 'settings_opened', route_file: path, hash: next.hash, settings })
  }

  function refuse(issues: readonly string[]): void {
    metrics.loaded({ ok: false, hash: current.hash, atSeconds: clock() / 1_000 })
    log.error({ event: 'config_refused', route_file: path, issues, hash_in_force: current.hash })
  }

  return { check, close: () => clearInterval(timer) }
}

const issuesOf = (err: unknown): readonly string[] =>
  err instanceof ConfigError ? err.problems : [err instanceof Error ? err.message : 'unknown error']

type FilesRead = {
  readonly fingerprint: string
  readonly config: LoadedConfig | null
  readonly issues: readonly string[]
}
/** After this many checks with different contents, a warning is logged. */
const UNSTABLE_READS_LOGGED = 10

/** Digest of the route file, certificates and keys. */
function fingerprintOf({ hash, certificates }: LoadedConfig): string {
  const digest = createHash('sha256').update(hash)
  for (const pem of [certificates.upstream, certificates.pdp, certificates.tls])
    for (const part of [pem?.ca, pem?.cert, pem?.key]) digest.update(`|${part?.length ?? '-'}|`).update(part ?? '')
  for (const key of certificates.signIn ?? []) digest.update(`|${key.length}|`).update(key)
  return digest.digest('hex')
}
