/** The sidecar's part of the fuzz as a whole sidecar that is asked over HTTP/2, so that frames and library count, too. */

import { tuples } from '../../support/peers/scripted-pdp.ts'
import { startHarness } from '../support/harness.ts'
import { ask, openSession } from '../support/http2-client.ts'
import { fieldOf } from '../support/upstream.ts'
import { type Gate, routesOf } from './differential.ts'

export async function openHttp2Gate(paths: readonly string[]): Promise<{ gate: Gate; close(): Promise<void> }> {
  const h = await startHarness({ routes: routesOf(paths), script: tuples([]) })
  const exp = Math.floor(Date.now() / 1_000) + 3_600
  const token = await h.issuer.token({ exp, scope: paths.map((_, at) => `own${at}`).join(' ') })
  const session = openSession(h.port)
  const routes = new Map<string, string>()
  let asked = 0
  let read = 0

  /** The route that the decision log names for the request. */
  function routeOf(id: string): string | undefined {
    for (; read < h.log.length; read += 1) {
      const line = h.log[read]
      if (line !== undefined && 'request_id' in line && 'route' in line)
        routes.set(String(line.request_id), String(line.route))
    }
    return routes.get(id)
  }

  return {
    async gate(target) {
      // It ends a field in the library's own list of them.
      if (target.includes('\0')) return null
      asked += 1
      const id = `fuzz-${asked}`
      await ask(session, 'GET /', {
        headers: { ':path': target, 'x-request-id': id, authorization: `Bearer ${token}` },
      })
      const reached = h.upstream.reached.find((one) => fieldOf(one, 'x-request-id') === id)
      if (reached === undefined) return null
      h.upstream.reached.splice(h.upstream.reached.indexOf(reached), 1)
      return { path: (routeOf(id) ?? '').replace(/^GET /, ''), forwarded: reached.target }
    },
    async close() {
      session.destroy()
      await h.close()
    },
  }
}
