/** Loads a changed route file or certificate without a restart, and keeps the active one when the new one has errors. */
import { createHash } from 'node:crypto'
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import { ConfigError } from '../../pdp/shared/process/exit.ts'
import { fileSignature } from '../config/certificates.ts'
import type { LoadedConfig } from '../config/config.ts'
import { createRoutingInTurns, type RoutingDeps } from '../routes/route-request.ts'
import type { SidecarLog } from './log.ts'
import type { Metrics } from './metrics.ts'
import { openedRoutes } from './opened-routes.ts'
import { openedSettings } from './opened-settings.ts'

type ReloadOptions = {
  readonly path: string
  readonly started: LoadedConfig
  readonly load: () => Promise<LoadedConfig>
  /** Throws ConfigError when it cannot apply the configuration. */
  readonly apply: (config: LoadedConfig, routing: RoutingDeps) => void
  readonly everyMs: number
  readonly log: SidecarLog
  readonly metrics: Metrics
  readonly clock: () => number
}

/** Polls the files every `everyMs`, because changes of a mounted volume may cause no file event. */
export function watchConfig(options: ReloadOptions) {
  const { path, load, apply, log, metrics, clock } = options
  let current = options.started
  /** The digest of the configuration in force, or the reason for which later files were refused. */
  let settled = fingerprintOf(current)
  /** The signature of the files, taken before they were read as `settled`; null: they may have changed since, and must be read. */
  let seen: string | null = null
  /** Changed files that the last check read and the next one must confirm. */
  let pending: FilesRead | null = null
  let unstableReads = 0
  let isClosed = false
  const check = oneAtATime(compareFiles)
  const timer = setInterval(() => void check(), options.everyMs).unref()

  /** A half-written file may be valid, so a change is applied only when two successive checks read the same content. */
  async function compareFiles(): Promise<void> {
    const signature = fileSignature(path, current.file)
    if (pending === null && signature === seen) return
    const found = await readFiles(load)
    // A file that could not be read is tried again even if it has not changed.
    const seenNow = found.isUnread ? null : signature
    if (found.fingerprint === settled) return settle(found, seenNow)
    if (pending?.fingerprint !== found.fingerprint) {
      pending = found
      unstableReads += 1
      if (unstableReads % UNSTABLE_READS_LOGGED === 0) log.warn({ event: 'config_unsettled', route_file: path })
      return
    }
    settle(found, seenNow)
    if (found.config === null) refuse(found.issues)
    else await take(found.config)
  }

  function settle({ fingerprint }: FilesRead, seenNow: string | null): void {
    pending = null
    unstableReads = 0
    settled = fingerprint
    seen = seenNow
  }

  async function take(next: LoadedConfig): Promise<void> {
    const former = current.file.routes
    const settings = openedSettings(current, next)
    const routing = await createRoutingInTurns(next.file)
    if (isClosed) return
    try {
      apply(next, routing)
    } catch (err) {
      refuse(issuesOf(err))
      return
    }
    current = next
    noteLoaded(next, { former, settings, path, log })
  }

  function refuse(issues: readonly string[]): void {
    metrics.loaded({ ok: false, hash: current.hash, atSeconds: clock() / 1_000 })
    log.error({ event: 'config_refused', route_file: path, issues, hash_in_force: current.hash })
  }

  return {
    /** Checks the files now. Resolves when a change is in force or refused, and at once while another check runs. */
    check,
    close() {
      isClosed = true
      clearInterval(timer)
    },
  }
}

const issuesOf = (err: unknown): readonly string[] => (err instanceof ConfigError ? err.problems : [messageOf(err)])

type FilesRead = {
  readonly fingerprint: string
  readonly config: LoadedConfig | null
  readonly issues: readonly string[]
  /** True: a file could not be read. */
  readonly isUnread: boolean
}
/** A warning is logged after so many checks with different contents. */
const UNSTABLE_READS_LOGGED = 10

function noteLoaded(
  { hash, file }: LoadedConfig,
  about: {
    readonly former: LoadedConfig['file']['routes']
    readonly settings: ReturnType<typeof openedSettings>
    readonly path: string
    readonly log: SidecarLog
  },
): void {
  const { former, settings, path, log } = about
  log.info({ event: 'config_loaded', route_file: path, hash, routes: file.routes.length })
  void openedRoutes(former, file.routes).then((opened) => {
    if (opened.length > 0) log.warn({ event: 'routes_opened', route_file: path, hash, routes: opened })
  })
  if (settings.length > 0) log.warn({ event: 'settings_opened', route_file: path, hash, settings })
}

/** Wraps `work` so that a call during an earlier one does nothing. */
function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let isWorking = false
  return async () => {
    if (isWorking) return
    isWorking = true
    try {
      await work()
    } finally {
      isWorking = false
    }
  }
}

async function readFiles(load: () => Promise<LoadedConfig>): Promise<FilesRead> {
  try {
    const config = await load()
    return { fingerprint: fingerprintOf(config), config, issues: [], isUnread: false }
  } catch (err) {
    const issues = issuesOf(err)
    const isUnread = err instanceof ConfigError && err.cause !== undefined
    return { fingerprint: issues.join('\n'), config: null, issues, isUnread }
  }
}

/** The digest of the route file, certificates, keys and secrets. */
function fingerprintOf({ hash, certificates }: LoadedConfig): string {
  const { upstream, pdp, tls, doors, signIn } = certificates
  const digest = createHash('sha256').update(hash)
  const add = (part: Buffer | string | null | undefined): void => {
    digest.update(`|${part?.length ?? '-'}|`).update(part ?? '')
  }
  for (const pem of [upstream, pdp, tls, ...doors.map((door) => door.tls)])
    for (const part of [pem?.ca, pem?.cert, pem?.key]) add(part)
  for (const { secret } of doors) add(secret)
  for (const key of signIn ?? []) add(key)
  return digest.digest('hex')
}
