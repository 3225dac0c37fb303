/** Logs when file descriptors run out, because the system then silently drops new connections. */
import { open, readFile } from 'node:fs/promises'
import { startRepeated } from './repeated-runs.ts'

const EVERY_MS = 1_000
const PROBED = '/dev/null'

export function watchDescriptors({
  log,
  everyMs = EVERY_MS,
}: {
  readonly log: { readonly info: (entry: object) => void; readonly error: (entry: object) => void }
  readonly everyMs?: number
}): { close(): Promise<void> } {
  let isShort = false
  let limit: number | null = null
  void readLimit().then((found) => {
    limit = found
  })

  async function probe(): Promise<void> {
    try {
      await (await open(PROBED)).close()
      if (isShort) log.info({ event: 'descriptors_available', limit })
      isShort = false
    } catch (err) {
      const code = err instanceof Error && 'code' in err ? err.code : ''
      // EMFILE: limit of this process; ENFILE: limit of the system.
      if (code !== 'EMFILE' && code !== 'ENFILE') return
      isShort = true
      log.error({ event: 'descriptors_exhausted', code, limit, reason: 'new connections are dropped' })
    }
  }

  return { close: startRepeated(probe, { intervalMs: everyMs, failed: () => undefined }) }
}

/** The limit of this process; null on systems without /proc. */
async function readLimit(): Promise<number | null> {
  try {
    const found = /^Max open files\s+(\d+)/m.exec(await readFile('/proc/self/limits', 'utf8'))
    return found === null ? null : Number(found[1])
  } catch {
    return null
  }
}
