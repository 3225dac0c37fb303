/** Compares the request lines of an HTTP/1.1 connection with RFC 9112 section 3, since Node's parser accepts other forms silently. */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { readAlong } from './parser-bytes.ts'

/** `unknown`: the beginning of the request cannot be found among the bytes before it. */
export type LineForm = 'good' | 'bad' | 'unknown'

const [CR, LF, BLANK, ZERO, ONE, DELETE] = [0x0d, 0x0a, 0x20, 0x30, 0x31, 0x7f]
const VERSION = Buffer.from(' HTTP/1.')
/** The bytes after `VERSION`: the digit of the minor version, CR and LF. */
const LINE_END_BYTES = 3
const HEAD_END = Buffer.from('\r\n\r\n')
const ORIGIN = /\r\norigin:[ \t]?([\x21-\x7e]{1,256})(?=\r\n)/gi
const NONE: Buffer = Buffer.alloc(0)

/**
 * Lets the HTTP server begin with the connection (`serve`), and compares. `onTooLong`: called for a head longer than `headBytesMax`,
 * which the parser does not notice because it does not count spaces.
 */
export function watchRequestLines(
  connection: Socket,
  serve: () => void,
  options: { readonly headBytesMax: () => number; readonly onTooLong: (connection: Socket) => void },
) {
  const bytes = new RequestBytes()
  const parser = readAlong(connection, serve, {
    take: (piece) => bytes.add(piece),
    passes: (count) => bytes.skip(count),
    end() {
      bytes.endPiece()
      if (bytes.headBytes <= options.headBytesMax()) return
      parser.close()
      options.onTooLong(connection)
    },
  })
  return {
    /** Must be called while the parser reports the request; it may be called again. */
    formOf(req: IncomingMessage): LineForm {
      parser.takeCurrent()
      return bytes.formOf(req)
    },
    /** The Origin field of an incomplete or rejected head; null: the head has no such field, or several. */
    originOfHead: () => bytes.originOfHead(options.headBytesMax()),
    /** Must be called when the connection is no longer HTTP. */
    close: parser.close,
  }
}

/** The bytes of one connection that may hold the beginning of a request. It allocates no objects on the path of usual requests. */
class RequestBytes {
  /** The bytes from `#at` on are the beginning of a request's head. */
  #first = NONE
  #at = 0
  /** The next parts of that head, which came in later pieces. */
  readonly #later: Buffer[] = []
  #laterBytes = 0
  /** How many bytes of a body come before the next request. */
  #bodyLeft = 0
  /** The last request, while only the parser knows where its chunked body ends; else null. */
  #chunked: IncomingMessage | null = null
  /** The part of that body in the last piece. */
  #piece = NONE
  /** True: more bytes came with the end of that body, so the beginning of no later request is known. */
  #isLost = false
  #checked: IncomingMessage | null = null
  #form: LineForm = 'unknown'

  /** How many bytes of an incomplete head there are; valid between two pieces. */
  get headBytes(): number {
    return this.#first.length - this.#at + this.#laterBytes
  }

  formOf(req: IncomingMessage): LineForm {
    if (this.#checked !== req) this.#form = this.#take(req)
    this.#checked = req
    return this.#form
  }

  originOfHead(bytesMax: number): string | null {
    const head = Buffer.concat([this.#first.subarray(this.#at), ...this.#later]).toString('latin1', 0, 2 * bytesMax)
    const found = [...head.matchAll(ORIGIN)]
    return found.length === 1 ? (found[0]?.[1] ?? null) : null
  }

  add(piece: Buffer): void {
    if (this.#chunked !== null) {
      this.#piece = piece
      return
    }
    const skipped = Math.min(this.#bodyLeft, piece.length)
    this.#bodyLeft -= skipped
    if (this.#at === this.#first.length) this.#begin(piece, skipped)
    else {
      this.#later.push(piece)
      this.#laterBytes += piece.length
    }
  }

  /** Skips a piece of `count` bytes that is all body. False: it is not, so the piece must be added. */
  skip(count: number): boolean {
    if (this.#chunked !== null) return !this.#chunked.complete
    if (this.#bodyLeft < count) return false
    this.#bodyLeft -= count
    return true
  }

  /** Must be called when the parser has read the piece. */
  endPiece(): void {
    // Bytes after the body in its last piece are parsed already, and may be the beginning of a request.
    if (this.#chunked?.complete === true && !this.#isLost) {
      if (endsMessage(this.#piece)) this.#chunked = null
      else this.#isLost = true
    }
    this.#piece = NONE
  }

  #begin(bytes: Buffer, from: number): void {
    let at = from
    // RFC 9112 section 2.2: empty lines before a request are ignored.
    while (bytes[at] === CR || bytes[at] === LF) at += 1
    this.#first = at < bytes.length ? bytes : NONE
    this.#at = at < bytes.length ? at : 0
  }

  #take(req: IncomingMessage): LineForm {
    if (this.#chunked !== null) return 'unknown'
    if (this.#later.length > 0) {
      this.#begin(Buffer.concat([this.#first.subarray(this.#at), ...this.#later]), 0)
      this.#later.length = 0
      this.#laterBytes = 0
    }
    const bytes = this.#first
    const lineEnd = endOfLine(req, bytes, this.#at)
    const headEnd = lineEnd === null ? -1 : bytes.indexOf(HEAD_END, lineEnd - 2)
    this.#begin(NONE, 0)
    if (headEnd < 0) return 'bad'
    this.#skipBody(req, bytes, headEnd + HEAD_END.length)
    return 'good'
  }

  /** `from`: the index in `bytes` at which the head ends. */
  #skipBody(req: IncomingMessage, bytes: Buffer, from: number): void {
    const { 'transfer-encoding': coding, 'content-length': length } = req.headers
    if (coding !== undefined) {
      this.#bodyLeft = 0
      this.#chunked = req
      this.#piece = bytes.subarray(from)
      return
    }
    const end = from + Number(length ?? 0)
    this.#bodyLeft = Math.max(0, end - bytes.length)
    if (end < bytes.length) this.#begin(bytes, end)
  }
}

/**
 * The index at which the request line that begins at `from` ends, or null. The parser also accepts several spaces, other protocols
 * (RTSP, ICE) and a line without version. Comparing its method and target makes sure that these bytes belong to this request.
 */
function endOfLine({ method = '', url = '' }: IncomingMessage, bytes: Buffer, from: number): number | null {
  const urlAt = from + method.length + 1
  const versionAt = urlAt + url.length
  const end = versionAt + VERSION.length + LINE_END_BYTES
  if (end > bytes.length || bytes[urlAt - 1] !== BLANK) return null
  if (!hasText(bytes, from, method) || !hasText(bytes, urlAt, url)) return null
  for (let at = 0; at < VERSION.length; at += 1) if (bytes[versionAt + at] !== VERSION[at]) return null
  const minor = bytes[end - LINE_END_BYTES]
  return (minor === ZERO || minor === ONE) && bytes[end - 2] === CR && bytes[end - 1] === LF ? end : null
}

/** True if the text is at `from`, and has only characters of a method or a target. */
function hasText(bytes: Buffer, from: number, text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code <= BLANK || code === DELETE || bytes[from + at] !== code) return false
  }
  return text !== ''
}

/** True if only empty lines can follow the end of a chunked body in this piece, which contains that end. */
function endsMessage(piece: Buffer): boolean {
  const end = piece.subarray(-HEAD_END.length)
  return end.equals(HEAD_END.subarray(HEAD_END.length - end.length))
}
