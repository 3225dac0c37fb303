/** Loads the configuration again while requests are served: the route file is parsed in a thread, for as long as that takes. */
import { Worker } from 'node:worker_threads'
import { ConfigError } from '../../pdp/shared/process/exit.ts'
import type { ParsedRouteFile } from '../route-file/route-file.ts'
import { readCertificates } from './certificates.ts'
import { type Beside, fileOf, hashOf, type LoadedConfig, readRouteText, withOpened } from './config.ts'
import type { Reading } from './reading-thread.ts'

/** A file of 2,000 routes takes a second where the processor is busy. */
const DEADLINE_MS = 60_000
/** The heap of long-lived objects, as an injected sidecar has it: what could be read at the start can be read again. */
const HEAP_MB_MAX = 128
/** Beside this file, as source or as what was built from it. */
const ENTRY = new URL(`./reading-thread${import.meta.url.slice(import.meta.url.lastIndexOf('.'))}`, import.meta.url)

/** As `loadConfig`: rejects with ConfigError. A text is parsed once, however often it is found again. */
export function createReloading(
  path: string,
  started: LoadedConfig,
  { opened = [], platform = null }: Beside = {},
): () => Promise<LoadedConfig> {
  // As it was read, without what the command line opens.
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

/** Parses a text in the thread. Rejects with ConfigError. */
export const readAside = (source: string, platform: string | null): Promise<ParsedRouteFile> =>
  parseAside({ source, platform }, 'of the ConfigMap')

/** Rejects with a ConfigError that has a cause, so that the file is tried again: it may be the fault of the machine. */
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
