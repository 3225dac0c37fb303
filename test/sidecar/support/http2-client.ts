/** An ordinary HTTP/2 client: one request on a session, and all that came back. */
import {
  type ClientHttp2Session,
  type ClientSessionOptions,
  connect,
  type SecureClientSessionOptions,
} from 'node:http2'

export type Http2Answer = {
  /** 0: there was none. */
  readonly status: number
  readonly headers: { readonly [name: string]: unknown }
  readonly trailers: { readonly [name: string]: unknown } | null
  readonly body: string
  /** Error code of RST_STREAM; 0: it ended in order. */
  readonly reset: number
}
export type Http2Ask = {
  readonly headers?: { readonly [name: string]: string | readonly string[] }
  readonly body?: string | Buffer
  readonly trailers?: { readonly [name: string]: string }
}

export function openSession(
  port: number,
  options: ClientSessionOptions | SecureClientSessionOptions = {},
): ClientHttp2Session {
  const scheme = 'ca' in options ? 'https' : 'http'
  const session = connect(`${scheme}://127.0.0.1:${port}`, { maxSessionMemory: 64, ...options })
  session.on('error', () => undefined)
  return session
}

/** `line`: method and path. */
export function ask(session: ClientHttp2Session, line: string, options: Http2Ask = {}): Promise<Http2Answer> {
  const [method = '', path = ''] = line.split(' ')
  const { headers = {}, body, trailers } = options
  const fields = { ':method': method, ':path': path, ':authority': 'app.test', ...headers }
  const stream = session.request(fields, { endStream: body === undefined, waitForTrailers: trailers !== undefined })
  const answer = { status: 0, headers: {}, trailers: null as Http2Answer['trailers'], body: '' }
  stream.on('response', (got) => {
    answer.status = got[':status'] ?? 0
    answer.headers = got
  })
  stream.on('trailers', (got) => {
    answer.trailers = got
  })
  stream.on('wantTrailers', () => stream.sendTrailers(trailers ?? {}))
  stream.on('data', (chunk) => {
    answer.body += chunk.toString('latin1')
  })
  stream.on('error', () => undefined)
  if (body !== undefined) stream.end(body)
  return new Promise((resolve) => stream.on('close', () => resolve({ ...answer, reset: stream.rstCode ?? 0 })))
}
