/** The upstream over HTTP/1.1: undici, except for requests with trailers, which undici cannot send. */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { Socket } from 'node:net'
import type { buildConnector as Connectors, Pool as PoolType } from 'undici'
import buildConnector from 'undici/lib/core/connect.js'
import Pool from 'undici/lib/dispatcher/pool.js'
import type { ClientConnection } from '../http/client-request.ts'
import { acceptValid } from './http1-parser.ts'
import { createTrailerSender } from './http1-trailers.ts'
import { type Sender, serverNameOf, type Upstream, type UpstreamOptions, type UpstreamRequest } from './upstream.ts'

export function createHttp1Upstream(options: UpstreamOptions): Upstream {
  const { origin, tls, connectionsMax, connectMs, headersTimeoutMs, headerBytesMax, reuseAfterBody } = options
  const poolOf = (connections: number): PoolType =>
    new Pool(origin, {
      connections,
      pipelining: 1,
      connect: connectorTo(options, { ...tls, timeout: connectMs, socketPath: options.socketPath }),
      headersTimeout: headersTimeoutMs,
      // Responses may be idle for long; the client or the upstream ends them.
      bodyTimeout: 0,
      maxHeaderSize: headerBytesMax,
      // The code of `http1-parser.ts` fits only this parser of undici, so no environment variable may choose another one.
      useMilo: false,
    })
  const pools = options.perClient ? poolsByClient(() => poolOf(connectionsMax)) : onePool(poolOf(connectionsMax))
  // A separate pool: slow WebSocket handshakes delay no other requests. A connection leaves it after its handshake.
  const handshakes = poolOf(options.handshakesMax)
  // Each request with trailers has its own connection: late surplus bytes of its answer would else be read as the next answer.
  const agentOptions = { keepAlive: false, maxSockets: connectionsMax }
  const agent = origin.startsWith('https:') ? new HttpsAgent({ ...agentOptions, ...tls }) : new HttpAgent(agentOptions)
  const trailerSender = createTrailerSender({ ...options, agent })
  // One server name for all requests: undici derives it from the Host field by default, and opens a new connection when it changes. Its
  // types lack this option.
  const servername = options.serverName ?? new URL(origin).hostname
  const named = ({ method, path, headers, body, headersTimeoutMs: ofRoute }: UpstreamRequest) => ({
    method,
    path,
    headers,
    body,
    servername,
    ...(ofRoute !== null && { headersTimeout: ofRoute }),
    // The connection is closed after a request with a body, even when the response has come: an upstream that has not read the body would
    // parse its bytes as the next request. `Connection: close` announces the end.
    ...(body !== null && !reuseAfterBody && { reset: true }),
  })

  return {
    version: '1.1',
    headersTimeoutMs,
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

/** Pools for each client. They end with the client's connection. */
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
      if (connection.destroyed) throw new Error('the client closed the connection')
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

function connectorTo(upstream: UpstreamOptions, options: Connectors.BuildOptions): Connectors.connector {
  const connect = buildConnector(options)
  const servername = serverNameOf(upstream)
  return (target, done) =>
    connect({ ...target, servername }, (...made) => {
      const [, connection] = made
      connection?.on('error', markBroken)
      done(...made)
      // After an error undici passes no connection here, although its types promise one.
      if (connection instanceof Socket) acceptValid(connection)
    })
}

/**
 * undici takes ECONNRESET for the proper end of a response that lasts until the connection closes, so that half of it would look whole
 * (RFC 9112 section 8). With undici's own code it is an error, also for a request that waits for this connection.
 */
function markBroken(err: Error): void {
  if ('code' in err && err.code === 'ECONNRESET') Object.assign(err, { code: 'UND_ERR_SOCKET' })
}
