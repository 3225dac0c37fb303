/** The thread of reloaded-config.ts: parses one route file. */
import { parentPort } from 'node:worker_threads'
import { parseRouteFile } from '../route-file/route-file.ts'

export type Reading = { readonly source: string; readonly platform: string | null }

parentPort?.once('message', ({ source, platform }: Reading) =>
  parentPort?.postMessage(parseRouteFile(source, platform)),
)
