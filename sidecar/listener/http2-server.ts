/** Serves HTTP/2 connections that are open already: strict about frames, bounded in all of them, and ended with GOAWAY. */
import { constants, performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { plainAddress } from '../../pdp/process/listen.ts'
import type { ClientAnswer, ClientRequest } from '../http/client.ts'
import { FIELD_OPTIONS } from '../http/http2-fields.ts'
import type { SidecarLimits } from '../route-file/default-limits.ts'
import { type Http2Peer, http2Answer, http2Request } from './http2-exchange.ts'
import { createFrameGuard, type FrameGuard } from './http2-frame-guard.ts'

export type Http2Server = {
  /** Takes a connection of which nothing was read. */
  accept(socket: Socket): void
  /** For connections from now on. */
  setLimits(limits: SidecarLimits): void
  /** Takes no further requests on the connections of now; later ones are served. */
  withdraw(): void
  /** Takes no further requests; those under way go on. Clients send again what came too late. */
  drain(): void
}
export type Http2ServerOptions = {
  readonly limits: SidecarLimits
  readonly onRequest: (client: ClientRequest, res: ClientAnswer, expectsContinue: boolean) => void
  /** A connection was ended for frames that no request needs. */
  readonly onFlood: (socket: Socket) => void
}

/** More than a request may have, so that the pipeline can say so; beyond it the stream is reset. */
const FIELD_PAIRS_MAX = 256
/** For the answers of 100 streams; beyond it the library refuses streams. */
const SESSION_MB_MAX = 32
const END_STREAM = 0x1

export function createHttp2Server({ limits: given, onRequest, onFlood }: Http2ServerOptions): Http2Server {
  let limits = given
  const sessions = new Set<ServerHttp2Session>()
  let streamCount = 0
  let draining = false

  function accept(socket: Socket): void {
    const guard = createFrameGuard({ emptyFramesMax: limits.http2EmptyFramesMax, nowMs: () => performance.now() })
    const end = (): void => {
      onFlood(socket)
      session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM)
    }
    const session = performServerHandshake(guarded(socket, { guard, onFlood: end, idleMs: limits.bodyIdleMs }), {
      ...FIELD_OPTIONS,
      maxHeaderListPairs: FIELD_PAIRS_MAX,
      maxSessionMemory: SESSION_MB_MAX,
      settings: {
        maxConcurrentStreams: limits.http2StreamsMax,
        maxHeaderListSize: limits.headerBytesMax,
        enablePush: false,
      },
    })
    const peer: Http2Peer = {
      connection: session,
      scheme: 'encrypted' in socket ? 'https' : 'http',
      address: plainAddress(socket.remoteAddress),
      localPort: socket.localPort ?? 0,
    }
    sessions.add(session)
    const idle = closeWhenIdle(session, limits.keepAliveMs)
    session.on('error', () => undefined)
    session.on('close', () => sessions.delete(session))
    session.on('stream', (stream, _headers, flags, raw: string[]) => {
      // One that failed is closed, too; whoever cares hears that.
      stream.on('error', () => undefined)
      // Also what is left of an answer whose upstream has done its part.
      stream.setTimeout(limits.bodyIdleMs, () => {
        if (stream.writableLength > 0) stream.destroy(new Error('the client takes nothing'))
      })
      if (streamCount >= limits.connectionsMax) return stream.close(constants.NGHTTP2_REFUSED_STREAM)
      streamCount += 1
      idle.enter()
      stream.once('close', () => {
        streamCount -= 1
        idle.leave()
      })
      const fieldCount = (): number | null => guard.takeFieldCount(stream.id ?? 0)
      begin(stream, http2Request({ stream, raw, ends: (flags & END_STREAM) !== 0, fieldCount, peer }))
    })
    if (draining) session.close()
  }

  function begin(stream: ServerHttp2Stream, client: ClientRequest): void {
    const res = http2Answer(stream, { bodiless: client.method === 'HEAD' })
    const expects = client.raw.some((name, at) => at % 2 === 0 && name === 'expect')
    onRequest(client, res, expects)
  }

  function withdraw(): void {
    for (const session of sessions) session.close()
  }

  return {
    accept,
    setLimits(next) {
      limits = next
    },
    withdraw,
    drain() {
      draining = true
      withdraw()
    },
  }
}

/** PING frames keep no connection open that nobody uses. */
function closeWhenIdle(session: ServerHttp2Session, idleMs: number): { enter(): void; leave(): void } {
  let open = 0
  let timer: NodeJS.Timeout | undefined
  const wait = (): void => {
    timer = setTimeout(() => session.close(), idleMs)
  }
  session.once('close', () => clearTimeout(timer))
  wait()
  return {
    enter() {
      open += 1
      clearTimeout(timer)
    },
    leave() {
      open -= 1
      if (open === 0 && !session.closed) wait()
    },
  }
}

type Guarding = { readonly guard: FrameGuard; readonly onFlood: () => void; readonly idleMs: number }

/** The connection, with the guard before the library. `onFlood` is called once at most; nothing is read after. */
function guarded(socket: Socket, { guard, onFlood, idleMs }: Guarding): Duplex {
  const duplex = new Duplex({
    read: () => void socket.resume(),
    write(chunk: Buffer, _encoding, done) {
      guard.sent(chunk.length)
      socket.write(chunk, done)
    },
    writev(chunks, done) {
      const bytes = Buffer.concat(chunks.map(({ chunk }) => chunk))
      guard.sent(bytes.length)
      socket.write(bytes, done)
    },
    final(done) {
      socket.end(done)
      // A client may still read what was sent, but need not end its side; nothing that it says counts any more.
      socket.off('data', onData).resume()
      socket.setTimeout(idleMs, () => socket.destroy())
    },
    destroy(err, done) {
      socket.destroy()
      done(err)
    },
  })
  const onData = (chunk: Buffer): void => {
    if (!guard.inspect(chunk)) {
      socket.off('data', onData).resume()
      onFlood()
    } else if (!duplex.push(chunk)) socket.pause()
  }
  socket.on('data', onData)
  socket.on('end', () => duplex.push(null))
  socket.on('error', () => duplex.destroy())
  socket.on('close', () => duplex.destroy())
  return duplex
}
