/** Opens a stream through a sidecar as a client of its kind does, and sees its bytes and its end. */
import { request } from 'node:http'
import { Client, credentials, Metadata } from '@grpc/grpc-js'
import { WebSocket } from 'ws'

export const KINDS = ['WebSocket', 'event stream', 'gRPC stream'] as const
export type Kind = (typeof KINDS)[number]
export type Open = { lastByteAtMs: number; endedAtMs: number | null; readonly ended: Promise<void>; close(): void }
type Handlers = { readonly onByte: () => void; readonly onEnd: () => void }
type Place = {
  readonly port: number
  readonly token: string
  readonly id: string
  /** Filled as they are needed. */
  readonly clients: Client[]
}

const STREAMS_PER_CLIENT = 90

/** Resolves with its first byte. */
function opened(start: (handlers: Handlers) => () => void): Promise<Open> {
  return new Promise((resolve, reject) => {
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    const stream: Open = { lastByteAtMs: 0, endedAtMs: null, ended, close: () => close() }
    const close = start({
      onByte() {
        stream.lastByteAtMs = performance.now()
        resolve(stream)
      },
      onEnd() {
        stream.endedAtMs ??= performance.now()
        end()
        reject(new Error('a stream ended before it began'))
      },
    })
  })
}

export const OPENERS: { readonly [kind in Kind]: (place: Place) => Promise<Open> } = {
  WebSocket: ({ port, token, id }) =>
    opened(({ onByte, onEnd }) => {
      const headers = { host: 'app.test', authorization: `Bearer ${token}` }
      const socket = new WebSocket(`ws://127.0.0.1:${port}/sockets/${id}`, { headers })
      socket.on('message', onByte).on('close', onEnd).on('error', onEnd)
      return () => socket.terminate()
    }),
  'event stream': ({ port, token, id }) =>
    opened(({ onByte, onEnd }) => {
      const headers = { host: 'app.test', authorization: `Bearer ${token}` }
      const sent = request({ host: '127.0.0.1', port, path: `/streams/${id}`, headers, agent: false }, (response) =>
        response.on('data', onByte).on('close', onEnd).on('error', onEnd),
      )
      sent.on('error', onEnd).end()
      return () => sent.destroy()
    }),
  'gRPC stream': ({ port, token, id, clients }) =>
    opened(({ onByte, onEnd }) => {
      const at = Math.floor(Number(id.slice(1)) / STREAMS_PER_CLIENT)
      // grpc-js shares a connection between clients otherwise.
      const options = { 'grpc.use_local_subchannel_pool': 1, 'grpc.default_authority': 'app.test' }
      clients[at] ??= new Client(`127.0.0.1:${port}`, credentials.createInsecure(), options)
      const metadata = new Metadata()
      metadata.set('authorization', `Bearer ${token}`)
      const plain = (bytes: Buffer): Buffer => bytes
      const path = `/bench.Streams/${id}`
      const call = clients[at].makeServerStreamRequest<Buffer, Buffer>(path, plain, plain, Buffer.alloc(0), metadata)
      call.on('data', onByte).on('end', onEnd).on('error', onEnd)
      return () => call.cancel()
    }),
}
