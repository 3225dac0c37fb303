/** Sends bytes over a socket and reads the answer, without any client that would tidy the request. */
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'

export type RawAnswer = {
  /** 0 when the connection ended without an answer. */
  readonly status: number
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly body: string
  readonly text: string
}

export function field(answer: RawAnswer, name: string): string | null {
  const values = answer.fields.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value)
  return values.length === 0 ? null : values.join(' | ')
}

/**
 * Resolves when the answer is complete, the connection ends, or `timeoutMs` has passed. `head`: no body follows.
 * `streamBytes`: so many bytes follow the given ones, in pieces, as fast as they are taken.
 */
export function sendRaw(
  port: number,
  bytes: Buffer | string,
  options: {
    readonly timeoutMs?: number
    readonly head?: boolean
    readonly streamBytes?: number
    readonly host?: string
  } = {},
): Promise<RawAnswer & { readonly firstByteMs: number }> {
  const { timeoutMs = 20_000, head = false, streamBytes = 0, host = '127.0.0.1' } = options
  return new Promise((resolve) => {
    let received = Buffer.alloc(0)
    let firstByteMs = 0
    const startedMs = performance.now()
    const socket: Socket = connect(port, host)
    const timer = setTimeout(finish, timeoutMs)
    function finish(): void {
      clearTimeout(timer)
      socket.destroy()
      resolve({ ...parseAnswer(received.toString('latin1')), firstByteMs })
    }
    socket.on('connect', () => {
      socket.write(bytes)
      if (streamBytes > 0) Readable.from(pieces(streamBytes)).pipe(socket, { end: false })
    })
    socket.on('data', (chunk) => {
      firstByteMs ||= performance.now() - startedMs
      received = Buffer.concat([received, chunk])
      if (isComplete(received.toString('latin1'), head)) finish()
    })
    socket.on('error', () => undefined)
    socket.on('close', finish)
  })
}

function* pieces(count: number): Generator<Buffer> {
  const piece = Buffer.alloc(64 * 1024, 'x')
  for (let left = count; left > 0; left -= piece.length) yield left < piece.length ? piece.subarray(0, left) : piece
}

export function parseAnswer(text: string): RawAnswer {
  const final = skipInformational(text)
  const end = final.indexOf('\r\n\r\n')
  const [start = '', ...lines] = final.slice(0, end < 0 ? undefined : end).split('\r\n')
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(start)?.[1] ?? 0)
  const fields = lines.map((line) => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon), line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, '')] as const
  })
  const rest = end < 0 ? '' : final.slice(end + 4)
  const chunked = fields.some(([name, value]) => name.toLowerCase() === 'transfer-encoding' && value === 'chunked')
  return { status, fields, body: chunked ? dechunk(rest) : rest, text }
}

function skipInformational(text: string): string {
  const match = /^HTTP\/1\.1 1(?!01)\d\d [\s\S]*?\r\n\r\n/.exec(text)
  return match === null ? text : skipInformational(text.slice(match[0].length))
}

function isComplete(text: string, head: boolean): boolean {
  const answer = parseAnswer(text)
  if (!skipInformational(text).includes('\r\n\r\n') || answer.status === 0) return false
  if (head || answer.status === 204 || answer.status === 304) return true
  const length = field(answer, 'content-length')
  if (length !== null) return answer.body.length >= Number(length)
  return field(answer, 'transfer-encoding') === 'chunked' && /(?:^|\r\n)0\r\n(?:[^\r\n]+\r\n)*\r\n$/.test(text)
}

function dechunk(text: string): string {
  let body = ''
  let rest = text
  for (;;) {
    const end = rest.indexOf('\r\n')
    const size = Number.parseInt(rest.slice(0, end), 16)
    if (end < 0 || !(size > 0)) return body
    body += rest.slice(end + 2, end + 2 + size)
    rest = rest.slice(end + 4 + size)
  }
}
