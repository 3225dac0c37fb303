/** The service behind over HTTP/1.1: undici, except for bodies that end in trailers, which it cannot send. */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { isIP } from 'node:net'
import type { buildConnector as Connectors, Pool as PoolType } from 'undici'
import buildConnector from 'undici/lib/core/connect.js'
import Pool from 'undici/lib/dispatcher/pool.js'
import { urlHost } from '../../pdp/process/listen.ts'
import type { ClientConnection } from '../http/client.ts'
import { createTrailerSender } from './http1-trailers.ts'
import type { Sender, Upstream, UpstreamOptions, UpstreamRequest } from './upstream.ts'

export function createHttp1Upstream(options: UpstreamOptions): Upstream {
  const { origin, tls, connectionsMax, connectMs, headersTimeoutMs, headerBytesMax, reuseAfterBody } = options
  const poolOf = (connections: number): PoolType =>
    new Pool(origin, {
      connections,
      pipelining: 1,
      connect: connectorTo(origin, { ...tls, timeout: connectMs }),
      headersTimeout: headersTimeoutMs,
      // Streams may be silent for long; the client or the upstream ends them.
      bodyTimeout: 0,
      maxHeaderSize: headerBytesMax,
    })
  const pools = options.perClient ? poolsByClient(() => poolOf(connectionsMax)) : onePool(poolOf(connectionsMax))
  // A connection leaves it as soon as it is a WebSocket. Those that are slow to open keep nobody else waiting.
  const handshakes = poolOf(options.handshakesMax)
  const agentOptions = { keepAlive: reuseAfterBody && !options.perClient, maxSockets: connectionsMax }
  const agent = origin.startsWith('https:') ? new HttpsAgent({ ...agentOptions, ...tls }) : new HttpAgent(agentOptions)
  const trailerSender = createTrailerSender({ origin, agent, headersTimeoutMs, headerBytesMax })
  // One for all requests: undici makes new connections whenever it changes, and would take the Host field for it.
  // Its types do not know this option.
  const { hostname: servername } = new URL(origin)
  const named = ({ method, path, headers, body }: UpstreamRequest) => ({
    method,
    path,
    headers,
    body,
    servername,
    // A service that leaves a body unread would take it for the next request of this connection. That the answer is
    // there does not say that it was read, so such a connection ends, and the service is told so.
    ...(body !== null && !reuseAfterBody && { reset: true }),
  })

  return {
    version: '1.1',
    send(request, handler) {
      const { body, announced, sender } = request
      if (announced.length === 0 || body === null || Buffer.isBuffer(body))
        pools.of(sender).dispatch(named(request), handler)
      else trailerSender.send({ ...request, body }, handler)
    },
    upgrade: (request, handler) => void handshakes.dispatch({ ...named(request), upgrade: 'websocket' }, handler),
    close() {
      trailerSender.close()
      pools.close()
      void handshakes.destroy()
    },
  }
}

type Pools = { of(sender: Sender): PoolType; close(): void }

const onePool = (pool: PoolType): Pools => ({ of: () => pool, close: () => void pool.destroy() })

/** Each ends with the connection of its client. */
function poolsByClient(open: () => PoolType): Pools {
  const byConnection = new Map<ClientConnection, Map<string, PoolType>>()

  function begin(connection: ClientConnection): Map<string, PoolType> {
    const pools = new Map<string, PoolType>()
    byConnection.set(connection, pools)
    connection.once('close', () => end(connection))
    return pools
  }

  function end(connection: ClientConnection): void {
    for (const pool of byConnection.get(connection)?.values() ?? []) void pool.destroy()
    byConnection.delete(connection)
  }

  return {
    of({ connection, name }) {
      if (connection.destroyed) throw new Error('the client is gone')
      const pools = byConnection.get(connection) ?? begin(connection)
      const pool = pools.get(name) ?? open()
      pools.set(name, pool)
      return pool
    },
    close() {
      for (const connection of [...byConnection.keys()]) end(connection)
    },
  }
}

/** The certificate must be that of the origin: undici would take the name from the Host field, which is the client's. */
function connectorTo(origin: string, options: Connectors.BuildOptions): Connectors.connector {
  const connect = buildConnector(options)
  const host = urlHost(new URL(origin))
  const servername = isIP(host) === 0 ? host : ''
  return (target, done) => connect({ ...target, servername }, done)
}
