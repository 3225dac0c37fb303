/** Compares the request lines of one HTTP/1.1 connection with RFC 9112 section 3: Node's parser takes others, and does not tell. */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** `unknown`: the bytes before it hide where it begins. */
export type LineForm = 'good' | 'bad' | 'unknown'

/** The parser also takes several spaces, other protocols of its family (RTSP, ICE), and a line without a version. */
const REQUEST_LINE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ [\x21-\x7e\x80-\xff]+ HTTP\/1\.[01]\r\n$/
const [CR, LF] = [0x0d, 0x0a]
const HEAD_END = Buffer.from('\r\n\r\n')
const HEAD_END_WORD = HEAD_END.readUInt32BE()
const NONE = Buffer.alloc(0)

export type RequestLines = {
  /** Call it while the parser reports the request, once or more often. */
  formOf(req: IncomingMessage): LineForm
  /** The connection is not HTTP any more. */
  close(): void
}

/** Sees each byte of the connection before the parser does. `onTooLong`: a head is longer than `headBytesMax`. */
export function watchRequestLines(
  connection: Socket,
  options: { readonly headBytesMax: () => number; readonly onTooLong: (connection: Socket) => void },
): RequestLines {
  const bytes = new RequestBytes()
  const close = (): void => void connection.off('data', onData)
  function onData(chunk: Buffer): void {
    // The parser does not count spaces.
    if (bytes.headBytes <= options.headBytesMax()) {
      bytes.add(chunk)
      return
    }
    close()
    options.onTooLong(connection)
  }
  connection.prependListener('data', onData)
  return { formOf: (req) => bytes.formOf(req), close }
}

/** The bytes of one connection, as far as they may hold the beginning of a request. */
class RequestBytes {
  /** Of a head that is not complete, from its first byte. */
  #parts: Buffer[] = []
  #partsBytes = 0
  /** Bytes of a body, before the next request. */
  #bodyLeft = 0
  /** The last request, while only the parser knows where its chunked body ends. */
  #chunked: IncomingMessage | null = null
  /** The last four bytes of that body so far. */
  #tail = 0
  #checked: { readonly req: IncomingMessage; readonly form: LineForm } | null = null

  /** Between two chunks: those of a head that is not complete. */
  get headBytes(): number {
    return this.#partsBytes
  }

  formOf(req: IncomingMessage): LineForm {
    if (this.#checked?.req !== req) this.#checked = { req, form: this.#take(req) }
    return this.#checked.form
  }

  add(chunk: Buffer): void {
    if (this.#chunked !== null) {
      // Else the bytes after the body, which were parsed already, may be the beginning of a request.
      const endsHere = this.#chunked.complete && this.#tail === HEAD_END_WORD
      if (!endsHere) {
        this.#remember(chunk)
        return
      }
      this.#chunked = null
    }
    const skipped = Math.min(this.#bodyLeft, chunk.length)
    this.#bodyLeft -= skipped
    if (skipped < chunk.length) this.#keep(skipped === 0 ? chunk : chunk.subarray(skipped))
  }

  #keep(bytes: Buffer): void {
    let from = 0
    // RFC 9112 section 2.2: empty lines before a request are ignored.
    if (this.#parts.length === 0) while (bytes[from] === CR || bytes[from] === LF) from += 1
    if (from === bytes.length) return
    this.#parts.push(from === 0 ? bytes : bytes.subarray(from))
    this.#partsBytes += bytes.length - from
  }

  #remember(bytes: Buffer): void {
    for (let at = Math.max(0, bytes.length - 4); at < bytes.length; at += 1)
      this.#tail = ((this.#tail << 8) | (bytes[at] ?? 0)) >>> 0
  }

  #take(req: IncomingMessage): LineForm {
    if (this.#chunked !== null) return 'unknown'
    const [first = NONE] = this.#parts
    const bytes = this.#parts.length === 1 ? first : Buffer.concat(this.#parts)
    this.#parts = []
    this.#partsBytes = 0
    const lineEnd = bytes.indexOf(LF) + 1
    if (!REQUEST_LINE.test(bytes.toString('latin1', 0, lineEnd))) return 'bad'
    const headEnd = bytes.indexOf(HEAD_END, lineEnd - 2) + HEAD_END.length
    if (headEnd < HEAD_END.length) return 'bad'
    this.#skipBody(req, bytes.subarray(headEnd))
    return 'good'
  }

  /** `bytes`: those after the head that have arrived with it. */
  #skipBody(req: IncomingMessage, bytes: Buffer): void {
    const { 'transfer-encoding': coding, 'content-length': length = '0' } = req.headers
    this.#bodyLeft = 0
    if (coding !== undefined) {
      this.#chunked = req
      this.#tail = 0
      this.#remember(bytes)
      return
    }
    const bodyBytes = Number(length)
    this.#bodyLeft = Math.max(0, bodyBytes - bytes.length)
    if (bytes.length > bodyBytes) this.#keep(bytes.subarray(bodyBytes))
  }
}
