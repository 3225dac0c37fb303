/** A connection to a PDP address. To close it also aborts attempts to connect. */
import type { Socket } from 'node:net'
import { ChannelCredentials, Client } from '@grpc/grpc-js'
import { messageOf } from '../base/error-message.ts'

export type PdpConnection = {
  readonly client: Client
  /** The failure of the last handshake, which grpc-js does not report; null: no failure. */
  problem(): string | null
  /** Ends every call, every socket and every handshake. */
  close(): void
}

const CHANNEL_OPTIONS = {
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.min_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 2_000,
  // Keepalive detects a vanished peer, even while nothing is written.
  'grpc.keepalive_time_ms': 3_000,
  'grpc.keepalive_timeout_ms': 1_500,
  'grpc.keepalive_permit_without_calls': 1,
  'grpc.enable_retries': 0,
  // A PDP is on the internal network: an egress proxy could read its answers, or could not reach it.
  'grpc.enable_http_proxy': 0,
}

export function openPdpConnection(address: string, credentials: ChannelCredentials): PdpConnection {
  const closable = new ClosableCredentials(credentials)
  const client = new Client(address, closable, CHANNEL_OPTIONS)
  return {
    client,
    problem: () => closable.problem,
    close() {
      client.close()
      closable.destroySockets()
    },
  }
}

/**
 * grpc-js limits neither the TLS handshake nor the wait for the first HTTP/2 frame, and closing a channel aborts neither.
 * A peer that accepts and stays silent would keep a socket open for each attempt. Every socket passes through the
 * credentials, so they can close it. Channels with equal credentials share connections; these credentials equal no others.
 */
class ClosableCredentials extends ChannelCredentials {
  readonly #inner: ChannelCredentials
  readonly #sockets = new Set<Socket>()
  #closed = false
  problem: string | null = null

  constructor(inner: ChannelCredentials) {
    super()
    this.#inner = inner
  }

  destroySockets(): void {
    this.#closed = true
    for (const socket of this.#sockets) socket.destroy()
  }

  #fail(err: unknown): void {
    this.problem = `TLS: ${messageOf(err)}`
  }

  override _isSecure(): boolean {
    return this.#inner._isSecure()
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other
  }

  override _createSecureConnector(
    ...args: Parameters<ChannelCredentials['_createSecureConnector']>
  ): ReturnType<ChannelCredentials['_createSecureConnector']> {
    const connector = this.#inner._createSecureConnector(...args)
    return {
      connect: (socket) => {
        if (this.#closed) return Promise.reject(new Error('the connection was closed'))
        this.#sockets.add(socket)
        socket.once('close', () => this.#sockets.delete(socket))
        return connector.connect(socket).then(
          (connected) => {
            // A server with TLS 1.3 may refuse the client's certificate only after the handshake.
            if (this._isSecure()) connected.socket.once('error', (err) => this.#fail(err))
            return connected
          },
          (err: unknown) => {
            this.#fail(err)
            throw err
          },
        )
      },
      waitForReady: () => connector.waitForReady(),
      getCallCredentials: () => connector.getCallCredentials(),
      destroy: () => connector.destroy(),
    }
  }
}
