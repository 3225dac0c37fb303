/** Loads the configuration again while requests are served: a thread parses the route file, however long it takes. */
import { Worker } from 'node:worker_threads'
import { ConfigError } from '../../pdp/shared/process/exit.ts'
import type { ParsedRouteFile } from '../route-file/route-file.ts'
import { readCertificates } from './certificates.ts'
import { type Beside, fileOf, hashOf, type LoadedConfig, readRouteText, withOpened } from './config.ts'
import type { Reading } from './reading-thread.ts'

/** The longest time for reading. A file of 2,000 routes takes a second on a busy processor. */
const DEADLINE_MS = 60_000
/** The thread's heap of long-lived objects. It is that of an injected sidecar, so a file that was readable at the start stays so. */
const HEAP_MB_MAX = 128
/** The program of the reading thread, next to this file: both are sources, or both are built. */
const ENTRY = new URL(`./reading-thread${import.meta.url.slice(import.meta.url.lastIndexOf('.'))}`, import.meta.url)

/** Does what `loadConfig` does, but in a thread, and rejects with ConfigError. An unchanged text is not parsed again. */
export function createReloading(
  path: string,
  started: LoadedConfig,
  { opened = [], platform = null }: Beside = {},
): () => Promise<LoadedConfig> {
  // The route file as it was read, without the paths that the command line opens.
  const first = { ...started.file, openPaths: started.file.openPaths.filter((one) => !opened.includes(one)) }
  let last: { readonly hash: string; readonly parsed: ParsedRouteFile } = {
    hash: started.hash,
    parsed: { file: opened.length === 0 ? started.file : first, issues: [] },
  }
  return async () => {
    const source = readRouteText(path)
    const hash = hashOf(source)
    if (hash !== last.hash)
      last = { hash, parsed: await parseAside({ source: source.toString('utf8'), platform }, path) }
    const file = withOpened(fileOf(last.parsed, path), opened)
    return { file, certificates: readCertificates(file), hash }
  }
}

/** Parses a route file in the thread. Rejects with ConfigError. */
export const readAside = (source: string, platform: string | null): Promise<ParsedRouteFile> =>
  parseAside({ source, platform }, 'of the ConfigMap')

/** Rejects with a ConfigError. If it has a cause, the file is tried again, since the machine may be at fault. */
async function parseAside(reading: Reading, path: string): Promise<ParsedRouteFile> {
  const worker = new Worker(ENTRY, { execArgv: [], resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX } })
  worker.unref()
  const { promise, resolve, reject } = Promise.withResolvers<ParsedRouteFile>()
  const timer = setTimeout(() => reject(new Error('it took longer than a minute')), DEADLINE_MS).unref()
  worker.on('error', reject)
  worker.once('exit', () => reject(new Error('the thread ended')))
  worker.once('message', resolve)
  worker.postMessage(reading)
  try {
    return await promise
  } catch (err) {
    const why = err instanceof Error ? err.message : 'unknown error'
    throw new ConfigError([`The route file ${path} could not be parsed: ${why}`], { cause: err })
  } finally {
    clearTimeout(timer)
    void worker.terminate()
  }
}
