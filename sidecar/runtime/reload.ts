/** Takes a changed route file or certificate without a restart, and keeps the last good one when the new one has mistakes. */
import { createHash } from 'node:crypto'
import { ConfigError } from '../../pdp/process/exit.ts'
import { fileSignature } from '../config/certificates.ts'
import type { LoadedConfig } from '../config/config.ts'
import type { SidecarLog } from './log.ts'
import type { Metrics } from './metrics.ts'
import { openedRoutes } from './opened-routes.ts'

export type Reload = {
  /** Looks now. */
  check(): void
  close(): void
}

/** `everyMs`: files are looked at, since a mounted volume may change without any event. */
export function watchConfig(options: {
  readonly path: string
  readonly started: LoadedConfig
  readonly load: () => LoadedConfig
  /** Throws ConfigError for what it cannot take. */
  readonly apply: (config: LoadedConfig) => void
  readonly everyMs: number
  readonly log: SidecarLog
  readonly metrics: Metrics
  readonly clock: () => number
}): Reload {
  const { path, load, apply, log, metrics, clock } = options
  let current = options.started
  let seen = fileSignature(path, current.file)
  /** What the last look found, when that was new. */
  let pending: Look | null = null
  let unsettledLooks = 0
  const timer = setInterval(check, options.everyMs).unref()

  function look(): Look {
    try {
      const config = load()
      return { fingerprint: fingerprintOf(config), config, mistakes: [] }
    } catch (err) {
      const mistakes = mistakesOf(err)
      return { fingerprint: mistakes.join('\n'), config: null, mistakes }
    }
  }

  /** What is half written may be a good file, and another one: it counts when the next look finds the same. */
  function check(): void {
    const signature = fileSignature(path, current.file)
    if (pending === null && signature === seen) return
    const found = look()
    if (pending?.fingerprint !== found.fingerprint) {
      pending = found
      unsettledLooks += 1
      if (unsettledLooks % UNSETTLED_LOOKS === 0) log.warn({ event: 'config_unsettled', route_file: path })
      return
    }
    pending = null
    unsettledLooks = 0
    seen = signature
    if (found.config === null) refuse(found.mistakes)
    else take(found.config)
  }

  function take(next: LoadedConfig): void {
    const opened = openedRoutes(current.file.routes, next.file.routes)
    try {
      apply(next)
    } catch (err) {
      refuse(mistakesOf(err))
      return
    }
    current = next
    // The new file may name other certificates.
    seen = fileSignature(path, next.file)
    log.info({ event: 'config_loaded', route_file: path, hash: next.hash, routes: next.file.routes.length })
    if (opened.length > 0) log.warn({ event: 'routes_opened', route_file: path, hash: next.hash, routes: opened })
  }

  function refuse(mistakes: readonly string[]): void {
    metrics.loaded({ ok: false, hash: current.hash, atSeconds: clock() / 1_000 })
    log.error({ event: 'config_refused', route_file: path, mistakes, hash_in_force: current.hash })
  }

  return { check, close: () => clearInterval(timer) }
}

const mistakesOf = (err: unknown): readonly string[] =>
  err instanceof ConfigError ? err.problems : [err instanceof Error ? err.message : 'unknown']

type Look = {
  readonly fingerprint: string
  readonly config: LoadedConfig | null
  readonly mistakes: readonly string[]
}
/** After so many that each found something else, the log says so. */
const UNSETTLED_LOOKS = 10

/** Of all that was read: the route file, certificates and keys. */
function fingerprintOf({ hash, material }: LoadedConfig): string {
  const digest = createHash('sha256').update(hash)
  for (const pem of [material.upstream, material.pdp, material.tls])
    for (const part of [pem?.ca, pem?.cert, pem?.key]) digest.update(`|${part?.length ?? '-'}|`).update(part ?? '')
  return digest.digest('hex')
}
