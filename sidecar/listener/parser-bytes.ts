/**
 * Gives out copies of the bytes that Node's HTTP/1.1 parser reads. The parser keeps reading the connection natively: with a `data`
 * listener, a public request would cost a sixth more and an upload a third.
 */
import { Socket } from 'node:net'

/** Members of Node's parser that Node does not promise to keep, but uses itself for `rawPacket` of an error and for upgrades. */
type Parser = {
  readonly _consumed: true
  readonly getCurrentBuffer: () => Buffer
  readonly [onExecute: number]: (result: unknown) => void
}

/** `serve` lets the HTTP server begin to read the connection. `reader` gets reports about each piece, in the order of its bytes. */
export function readAlong(
  connection: Socket,
  serve: () => void,
  reader: {
    /** Gets the bytes of a piece at most once, before, while or after the parser reads the piece. */
    take(piece: Buffer): void
    /** Is called after the parser has read a piece. True: the piece holds nothing of interest, so `take` need not get it. */
    passes(bytes: number): boolean
    /** The parser has read the piece. */
    end(): void
  },
) {
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
  // Bytes that come as events: those read before the server took over, or all if the parser does not read natively.
  connection.prependListener('data', take)
  serve()
  const parser = parserOf(connection)
  // The server has overridden `on` of this connection: a `data` listener added by it would stop the native reading.
  const listen: (event: 'data', listener: () => void) => void = parser === null ? connection.on : Socket.prototype.on
  listen.call(connection, 'data', end)
  parser?.onExecuted((result) => {
    if (isClosed) return
    if (!isTaken && !(typeof result === 'number' && reader.passes(result))) take(parser.bytes())
    end()
  })
  return {
    /** True: the parser reads the connection natively. */
    isNative: parser !== null,
    /** Makes `take` get the piece in which the parser has just found a request, if it has not yet. */
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

/** Node's parser of the connection; null: it does not read natively, or Node has changed. */
function parserOf(connection: Socket) {
  const parser: unknown = 'parser' in connection ? connection.parser : null
  if (typeof parser !== 'object' || parser === null) return null
  const made: unknown = parser.constructor
  const index = typeof made === 'function' && 'kOnExecute' in made ? made.kOnExecute : null
  if (typeof index !== 'number') return null
  const { _consumed, getCurrentBuffer, [index]: next } = parser as Partial<Parser>
  if (_consumed !== true || getCurrentBuffer === undefined || next === undefined) return null
  return {
    /** A copy of the piece that the parser is at. */
    bytes: (): Buffer => getCurrentBuffer.call(parser),
    /** `call` runs after each piece that the parser has read, with the number of its bytes, or an error. */
    onExecuted(call: (result: unknown) => void) {
      // The server deletes this function when it returns the parser, which then serves other connections.
      Object.assign(parser, {
        [index]: (result: unknown) => {
          call(result)
          next(result)
        },
      })
    },
  }
}
