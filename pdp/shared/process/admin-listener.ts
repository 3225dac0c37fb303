/** The admin listener: Prometheus metrics and health probes. It never serves user traffic. */
import { createServer, type ServerResponse } from 'node:http'
import { Counter, collectDefaultMetrics, Registry } from 'prom-client'
import { serveInTurns } from './http/request-queue.ts'
import { type ListenAddress, listenOn } from './listen.ts'

/** The health of a part: null, or a short reason why it is unhealthy. `note`: healthy, with information for an operator. */
export type ProbeResult = string | null | { readonly note: string }
export type Probe = () => Promise<ProbeResult> | ProbeResult
export type Operations = { readonly address: ListenAddress; close(): Promise<void> }

/** Metrics of the event loop, memory, CPU and the log. Each process has exactly one registry. */
export function createRegistry(droppedLines: () => number = () => 0): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  new Counter({
    name: 'portcullis_log_lines_dropped_total',
    help: 'Lines of the log that were dropped, because their reader did not read or the disk was full',
    registers: [registry],
    collect() {
      this.reset()
      this.inc(droppedLines())
    },
  })
  return registry
}

/** The path of refusals, to which a request id is appended. */
export const REFUSALS_PATH = '/refusals/'
/** The answer when no refusal has the id. A program can recognize by it an admin listener that has refusals. */
export const NO_REFUSAL = 'none of the last refusals has this request id\n'

/** `probes` by path, such as `/readyz`; `refusal` by request id; `documents` by path, as JSON or null. Throws StartError on a bad port. */
export async function startOperations(options: {
  readonly listen: ListenAddress
  readonly registry: Registry
  readonly probes: { readonly [path: string]: Probe }
  readonly refusal?: (requestId: string) => object | null
  readonly documents?: { readonly [path: string]: () => string | null }
}): Promise<Operations> {
  const { listen, registry, probes, refusal, documents = {} } = options
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, (req, res) => {
    const path = (req.url ?? '').split('?', 1)[0] ?? ''
    const probe = Object.hasOwn(probes, path) ? probes[path] : undefined
    if (req.method !== 'GET' && req.method !== 'HEAD') return answer(res, 405, 'only GET and HEAD are allowed\n')
    if (path === '/metrics') return void sendMetrics(res, registry)
    if (refusal !== undefined && path.startsWith(REFUSALS_PATH))
      return sendRefusal(res, refusal(path.slice(REFUSALS_PATH.length)))
    const document = Object.hasOwn(documents, path) ? (documents[path]?.() ?? null) : null
    if (document !== null) return answer(res, 200, document, 'application/json')
    if (probe === undefined) return answer(res, 404, 'not found\n')
    return void ask(probe).then((result) => answer(res, typeof result === 'string' ? 503 : 200, describe(result)))
  })
  serveInTurns(server)
  const address = await listenOn(server, 'The metrics listener', listen)
  return {
    address,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function sendRefusal(res: ServerResponse, refusal: object | null): void {
  if (refusal === null) answer(res, 404, NO_REFUSAL)
  else answer(res, 200, `${JSON.stringify(refusal)}\n`, 'application/json')
}

/** Never rejects: an error of one metric must not end the process. */
async function sendMetrics(res: ServerResponse, registry: Registry): Promise<void> {
  try {
    answer(res, 200, await registry.metrics(), registry.contentType)
  } catch {
    answer(res, 500, 'the metrics could not be collected\n')
  }
}

function describe(result: ProbeResult): string {
  if (result === null) return 'ok\n'
  return typeof result === 'string' ? `${result}\n` : `ok; ${result.note}\n`
}

async function ask(probe: Probe): Promise<ProbeResult> {
  try {
    return await probe()
  } catch {
    return 'the probe failed'
  }
}

function answer(res: ServerResponse, status: number, text: string, type = 'text/plain; charset=utf-8'): void {
  res
    .writeHead(status, { 'content-type': type, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
    .end(text)
}
