/** A sidecar before two services, for paths that the second gets otherwise than clients send them. */
import { afterAll, beforeAll, expect } from 'vitest'
import type { RouteFile } from '../../../sidecar/route-file/route-file.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, loadFile, routeFile, startHarness } from './harness.ts'
import { startUpstream, type Upstream } from './upstream.ts'

export const load = (routes: string, { upstream = 'http://127.0.0.1:2', extra = '' } = {}): RouteFile =>
  loadFile(routeFile(routes, { extra }).replace('UPSTREAM', upstream).replace('PDP', '127.0.0.1:1'))

/** Registers the hooks of a test file. `options`: of the service, in its entry of the route file. */
export function useMovedPaths() {
  let h: Harness
  let service: Upstream
  beforeAll(async () => {
    service = await startUpstream()
    h = await startHarness({ routes: 'GET /x: public', script: tuples(['alice viewer doc:1']) })
  })
  afterAll(async () => {
    await h.close()
    await service.close()
  })
  const targets = (): readonly string[] => service.reached.map(({ target }) => target)

  /** The service is that of the file. */
  function applyToFile(options: string, routes: string, extra: string): void {
    const origin = h.upstream.origin
    h.upstream.origin = `{url: "${service.origin}", ${options}}`
    h.apply(routes, extra)
    h.upstream.origin = origin
    service.reached.length = 0
  }

  return {
    origin: (): string => service.origin,
    /** Returns the status, and what the service got. `SERVICE` in the routes leads to it. */
    async play(routes: string, line: string, options: string): Promise<string> {
      service.reached.length = 0
      h.upstream.reached.length = 0
      h.apply(routes.replaceAll('SERVICE', `upstream: {url: "${service.origin}", ${options}}`))
      const { status } = await h.send(line)
      expect(h.upstream.reached).toEqual([])
      return [status, ...targets()].join(' ')
    },
    /** A WebSocket, a preflight, an open path and a call of MCP below /app: what the service of the file got. */
    async playKinds(options: string): Promise<readonly string[]> {
      applyToFile(
        options,
        'GET /app/ws: {check: public, upgrade: [websocket]}\nPUT /app/x: {check: public, cors: {origins: ["https://a.test"], preflight: pass}}\nMCP /app/mcp: {}',
        'open_paths: {/app/metrics: [127.0.0.1]}',
      )
      service.onUpgrade = (_, socket) => void socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n')
      const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
      await h.send('GET /app/ws?a', {
        fields: ['Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13', key],
      })
      service.onUpgrade = null
      await h.send('OPTIONS /app/x', {
        token: null,
        fields: ['Origin: https://a.test', 'Access-Control-Request-Method: PUT'],
      })
      await h.send('GET /app/metrics', { token: null, host: '10.0.0.1' })
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
      const fields = ['Content-Type: application/json', 'Accept: application/json, text/event-stream']
      await h.send('POST /app/mcp', { fields, body })
      return service.reached.map(({ method, target }) => `${method} ${target}`)
    },
    /** In shadow mode of the file, without a token: what its service got. */
    async playInShadow(options: string, sent: readonly string[]): Promise<readonly string[]> {
      applyToFile(options, 'GET /app/x: signed_in', 'mode: shadow')
      for (const target of sent) await h.send(`GET ${target}`, { token: null })
      return targets()
    },
  }
}
