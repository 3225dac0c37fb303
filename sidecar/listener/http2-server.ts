/** Serves open HTTP/2 connections: checks and limits frames, limits streams, and closes with GOAWAY. */
import {
  constants,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type Settings,
} from 'node:http2'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { clientOf } from '../../pdp/shared/base/addresses.ts'
import { plainAddress } from '../../pdp/shared/process/listen.ts'
import type { ClientAnswer, ClientRequest } from '../http/client-request.ts'
import { FIELD_OPTIONS } from '../http/http2-fields.ts'
import { mayTake } from '../http/share.ts'
import type { SidecarLimits } from '../route-file/default-limits.ts'
import { type Http2Peer, http2Answer, http2Request } from './http2-exchange.ts'
import { FrameGuard } from './http2-frame-guard.ts'

export type Http2Server = {
  /** Takes over a connection from its first byte. */
  accept(socket: Socket): void
  /** The limits apply to new connections. */
  setLimits(limits: SidecarLimits): void
  /** Asks clients to leave by GOAWAY: on open connections at once, on new ones with their first request, which is still served. */
  withdraw(): void
  /** Sends GOAWAY on all connections, also new ones. Open requests continue; clients retry later requests elsewhere. */
  drain(): void
}
export type Http2ServerOptions = {
  readonly limits: SidecarLimits
  readonly onRequest: (client: ClientRequest, res: ClientAnswer, expectsContinue: boolean) => void
  /** A connection was closed because of a flood of frames. */
  readonly onFlood: (socket: Socket) => void
  /** True for addresses of trusted proxies, which have no limit of streams because they serve many clients. */
  readonly isProxy: (address: string) => boolean
}

/** The library's bound of fields. It is above the pipeline's own, so that the pipeline can answer with a problem document. */
const FIELD_PAIRS_MAX = 256
/** Memory for the responses of 100 streams in megabytes; beyond it the library refuses streams. */
const SESSION_MB_MAX = 32
const END_STREAM = 0x1
/** Errors by which a client makes us reset a stream instead of doing it itself (CVE-2025-8671), as by a body of a wrong length. */
const CLIENT_ERRORS = new Set<number>([
  constants.NGHTTP2_PROTOCOL_ERROR,
  constants.NGHTTP2_FLOW_CONTROL_ERROR,
  constants.NGHTTP2_STREAM_CLOSED,
  constants.NGHTTP2_FRAME_SIZE_ERROR,
])

export function createHttp2Server({ limits: given, onRequest, onFlood, isProxy }: Http2ServerOptions): Http2Server {
  let limits = given
  const sessions = new Set<ServerHttp2Session>()
  const places = new StreamPlaces(() => limits, isProxy)
  let withdrawn = false
  let draining = false

  function accept(socket: Socket): void {
    const guard = new FrameGuard({ emptyFramesMax: limits.http2EmptyFramesMax, nowMs: () => performance.now() })
    const end = (): void => {
      onFlood(socket)
      session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM)
    }
    const session = performServerHandshake(guarded(socket, { guard, onFlood: end, idleMs: limits.bodyIdleMs }), {
      ...SESSION_OPTIONS,
      settings: settingsOf(limits),
    })
    const peer: Http2Peer = {
      connection: session,
      scheme: 'encrypted' in socket ? 'https' : 'http',
      address: plainAddress(socket.remoteAddress),
      localPort: socket.localPort ?? 0,
    }
    sessions.add(session)
    const idle = closeWhenIdle(session, limits.keepAliveMs)
    session.on('error', ignore)
    session.on('close', () => {
      sessions.delete(session)
      // Until its SETTINGS are acknowledged, the library keeps the session, and through its error our listeners, so they are removed.
      session.removeAllListeners().on('error', ignore)
    })
    session.on('stream', (stream, _headers, flags, raw: string[]) => {
      // A failed stream also emits `close`, which is handled below.
      stream.on('error', () => undefined)
      // Covers the rest of a response that the upstream has sent completely, too.
      stream.setTimeout(limits.bodyIdleMs, () => {
        if (stream.writableLength > 0) stream.destroy(new Error('the client does not read the response'))
      })
      const leave = places.enter(peer.address)
      if (leave === null) return stream.close(constants.NGHTTP2_REFUSED_STREAM)
      idle.enter()
      stream.once('close', () => {
        leave()
        idle.leave()
        if (CLIENT_ERRORS.has(stream.rstCode) && !session.destroyed && !guard.resetStream()) end()
      })
      const fieldCount = (): number | null => guard.takeFieldCount(stream.id ?? 0)
      handOn(stream, http2Request({ stream, raw, ends: (flags & END_STREAM) !== 0, fieldCount, peer }), onRequest)
      if (withdrawn) session.close()
    })
    if (draining) session.close()
  }

  function withdraw(): void {
    withdrawn = true
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

const ignore = (): void => undefined

/** Counts the open streams of all connections, by client. A client that reads no answers keeps its streams open. */
class StreamPlaces {
  readonly #limits: () => SidecarLimits
  readonly #isProxy: (address: string) => boolean
  readonly #counts = new Map<string, number>()
  #used = 0

  constructor(limits: () => SidecarLimits, isProxy: (address: string) => boolean) {
    this.#limits = limits
    this.#isProxy = isProxy
  }

  /** Counts a stream until the returned function is called. Null: too many are open. */
  enter(address: string): (() => void) | null {
    const { connectionsMax, clientConnectionsMax } = this.#limits()
    const client = clientOf(address)
    const own = this.#counts.get(client) ?? 0
    if (this.#used >= connectionsMax) return null
    const isWithin = own < clientConnectionsMax && mayTake(own, { used: this.#used, max: connectionsMax })
    if (!isWithin && !this.#isProxy(address)) return null
    this.#used += 1
    this.#counts.set(client, own + 1)
    return () => {
      this.#used -= 1
      const left = (this.#counts.get(client) ?? 1) - 1
      if (left > 0) this.#counts.set(client, left)
      else this.#counts.delete(client)
    }
  }
}

const SESSION_OPTIONS = {
  ...FIELD_OPTIONS,
  maxHeaderListPairs: FIELD_PAIRS_MAX,
  maxSessionMemory: SESSION_MB_MAX,
}

const settingsOf = ({ http2StreamsMax, headerBytesMax }: SidecarLimits): Settings => ({
  maxConcurrentStreams: http2StreamsMax,
  maxHeaderListSize: headerBytesMax,
  enablePush: false,
})

function handOn(stream: ServerHttp2Stream, client: ClientRequest, onRequest: Http2ServerOptions['onRequest']): void {
  const res = http2Answer(stream, { bodiless: client.method === 'HEAD' })
  const expects = client.raw.some((name, at) => at % 2 === 0 && name === 'expect')
  onRequest(client, res, expects)
}

/** Closes a connection without open streams after a while, even if the client sends PING frames. */
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
      if (open === 0 && !session.closed && !session.destroyed) wait()
    },
  }
}

/** The socket as a stream that shows every byte to the guard first. Calls `onFlood` at most once; after that no byte is read. */
function guarded(
  socket: Socket,
  { guard, onFlood, idleMs }: { readonly guard: FrameGuard; readonly onFlood: () => void; readonly idleMs: number },
): Duplex {
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
      // The client may still read the response. Its further bytes are discarded, and the idle time bounds the wait for its end.
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
