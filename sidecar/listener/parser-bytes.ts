/**
 * Reads along with Node's HTTP/1.1 parser. A connection that somebody listens to is read by JavaScript, and a public request then costs a sixth
 * more, an upload a third: here the parser goes on reading it natively, and hands over a copy of the bytes that it is at, when asked.
 */
import { Socket } from 'node:net'

/** The reports about each piece of a connection, in the order of its bytes. */
export type PieceReader = {
  /** Its bytes: before the parser sees them, or while or after it does. At most once for each piece. */
  take(piece: Buffer): void
  /** The parser is through with a piece. True: nothing in it was of interest, so that `take` is not called. */
  passes(bytes: number): boolean
  /** The parser is through with the piece. */
  end(): void
}
export type ParserBytes = {
  /** Makes sure that `take` has been called for the piece in which the parser is reporting a request. */
  takeCurrent(): void
  /** True: the parser reads the connection itself. */
  readonly isNative: boolean
  close(): void
}

/** Members of Node's parser that it does not promise to keep; it uses them itself, for `rawPacket` of an error and for upgrades. */
type Parser = {
  readonly _consumed: true
  readonly getCurrentBuffer: () => Buffer
  readonly [onExecute: number]: (result: unknown) => void
}

/** `serve` lets the HTTP server begin to read the connection. */
export function readAlong(connection: Socket, serve: () => void, reader: PieceReader): ParserBytes {
  let isTaken = false
  let isClosed = false
  const take = (piece: Buffer): void => {
    isTaken = true
    reader.take(piece)
  }
  const end = (): void => {
    isTaken = false
    reader.end()
  }
  // Bytes that come as events: those that were read before the server took over, or all of them.
  connection.prependListener('data', take)
  serve()
  const parser = parserOf(connection)
  // The server put a method of the same name before this one, which makes the parser stop reading when it is called for `data`.
  const listen: (event: 'data', listener: () => void) => void = parser === null ? connection.on : Socket.prototype.on
  listen.call(connection, 'data', end)
  parser?.onExecuted((result) => {
    if (isClosed) return
    if (!isTaken && !(typeof result === 'number' && reader.passes(result))) take(parser.bytes())
    end()
  })
  return {
    isNative: parser !== null,
    takeCurrent() {
      if (!isTaken && !isClosed) take(parser?.bytes() ?? NONE)
    },
    close() {
      isClosed = true
      connection.off('data', take).off('data', end)
    },
  }
}

const NONE: Buffer = Buffer.alloc(0)

type NativeParser = {
  /** A copy of the piece that it is at. */
  bytes(): Buffer
  /** `call` comes after each piece that it read itself, with the number of its bytes, or an error. */
  onExecuted(call: (result: unknown) => void): void
}

/** Null: it does not read the connection itself, or Node has changed. */
function parserOf(connection: Socket): NativeParser | null {
  const parser: unknown = 'parser' in connection ? connection.parser : null
  if (typeof parser !== 'object' || parser === null) return null
  const made: unknown = parser.constructor
  const index = typeof made === 'function' && 'kOnExecute' in made ? made.kOnExecute : null
  if (typeof index !== 'number') return null
  const { _consumed, getCurrentBuffer, [index]: next } = parser as Partial<Parser>
  if (_consumed !== true || getCurrentBuffer === undefined || next === undefined) return null
  return {
    bytes: () => getCurrentBuffer.call(parser),
    onExecuted(call) {
      // The server takes this function away when it is done with the parser, which it uses again for other connections.
      Object.assign(parser, {
        [index]: (result: unknown) => {
          call(result)
          next(result)
        },
      })
    },
  }
}
