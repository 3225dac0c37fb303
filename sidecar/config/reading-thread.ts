/** The thread of reloaded-config.ts: parses one route file. */
import { parentPort } from 'node:worker_threads'
import { parseRouteFile } from '../route-file/route-file.ts'

parentPort?.once('message', (source: string) => parentPort?.postMessage(parseRouteFile(source)))
