/** The listener for operators: Prometheus metrics and the probes of an orchestrator. Never shared with users' traffic. */
import { createServer, type ServerResponse } from 'node:http'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { type ListenAddress, listenOn } from './listen.ts'

/** Null when well, else what is missing, in a few words. */
export type Probe = () => Promise<string | null> | string | null
export type Operations = { readonly address: ListenAddress; close(): Promise<void> }

/** Event loop, memory and CPU of this process; each process has exactly one registry. */
export function createRegistry(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return registry
}

/** `probes` by path, such as `/readyz`. Throws StartError when the address cannot be had. */
export async function startOperations(options: {
  readonly listen: ListenAddress
  readonly registry: Registry
  readonly probes: { readonly [path: string]: Probe }
}): Promise<Operations> {
  const { listen, registry, probes } = options
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, (req, res) => {
    const path = (req.url ?? '').split('?', 1)[0] ?? ''
    const probe = Object.hasOwn(probes, path) ? probes[path] : undefined
    if (req.method !== 'GET' && req.method !== 'HEAD') return answer(res, 405, 'only GET\n')
    if (path === '/metrics') return void registry.metrics().then((text) => answer(res, 200, text, registry.contentType))
    if (probe === undefined) return answer(res, 404, 'not found\n')
    return void ask(probe).then((missing) => answer(res, missing === null ? 200 : 503, `${missing ?? 'ok'}\n`))
  })
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

async function ask(probe: Probe): Promise<string | null> {
  try {
    return await probe()
  } catch {
    return 'the probe failed'
  }
}

function answer(res: ServerResponse, status: number, text: string, type = 'text/plain; charset=utf-8'): void {
  res.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text)
}
