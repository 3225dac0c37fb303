/** The service behind over HTTP/1.1: undici, except for bodies that end in trailers, which it cannot send. */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { isIP } from 'node:net'
import type { buildConnector as Connectors } from 'undici'
import buildConnector from 'undici/lib/core/connect.js'
import Pool from 'undici/lib/dispatcher/pool.js'
import type { Upstream, UpstreamOptions, UpstreamRequest } from './upstream.ts'
import { createTrailerSender } from './upstream-trailers.ts'

export function createHttp1Upstream(options: UpstreamOptions): Upstream {
  const { origin, tls, connectionsMax, connectMs, headersTimeoutMs, headerBytesMax } = options
  const pool = new Pool(origin, {
    connections: connectionsMax,
    pipelining: 1,
    connect: connectorTo(origin, { ...tls, timeout: connectMs }),
    headersTimeout: headersTimeoutMs,
    // Streams may be silent for long; the client or the upstream ends them.
    bodyTimeout: 0,
    maxHeaderSize: headerBytesMax,
  })
  const agentOptions = { keepAlive: true, maxSockets: connectionsMax }
  const agent = origin.startsWith('https:') ? new HttpsAgent({ ...agentOptions, ...tls }) : new HttpAgent(agentOptions)
  const trailerSender = createTrailerSender({ origin, agent, headersTimeoutMs, headerBytesMax })
  // One for all requests: undici makes new connections whenever it changes, and would take the Host field for it.
  // Its types do not know this option.
  const { hostname: servername } = new URL(origin)
  const named = ({ method, path, headers, body }: UpstreamRequest) => ({ method, path, headers, body, servername })

  return {
    version: '1.1',
    send(request, handler) {
      const { body, announced } = request
      if (announced.length === 0 || body === null || Buffer.isBuffer(body)) pool.dispatch(named(request), handler)
      else trailerSender.send({ ...request, body }, handler)
    },
    upgrade: (request, handler) => void pool.dispatch({ ...named(request), upgrade: 'websocket' }, handler),
    close() {
      trailerSender.close()
      void pool.destroy()
    },
  }
}

/** The certificate must be that of the origin: undici would take the name from the Host field, which is the client's. */
function connectorTo(origin: string, options: Connectors.BuildOptions): Connectors.connector {
  const connect = buildConnector(options)
  const { hostname } = new URL(origin)
  const servername = isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? hostname : ''
  return (target, done) => connect({ ...target, servername }, done)
}
