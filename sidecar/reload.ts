/** Takes a changed route file or certificate without a restart, and keeps the last good one when the new one has mistakes. */
import { ConfigError } from '../pdp/process/exit.ts'
import type { LoadedConfig } from './engine.ts'
import type { SidecarLog } from './log.ts'
import { fileSignature } from './material.ts'
import type { Metrics } from './metrics.ts'

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
  const timer = setInterval(check, options.everyMs).unref()

  function check(): void {
    const signature = fileSignature(path, current.file)
    if (signature === seen) return
    seen = signature
    try {
      const next = load()
      apply(next)
      current = next
      // The new file may name other certificates.
      seen = fileSignature(path, next.file)
      log.info({ event: 'config_loaded', route_file: path, hash: next.hash, routes: next.file.routes.length })
    } catch (err) {
      const mistakes = err instanceof ConfigError ? err.problems : [err instanceof Error ? err.message : 'unknown']
      metrics.loaded({ ok: false, hash: current.hash, atSeconds: clock() / 1_000 })
      log.error({ event: 'config_refused', route_file: path, mistakes, hash_in_force: current.hash })
    }
  }

  return { check, close: () => clearInterval(timer) }
}
