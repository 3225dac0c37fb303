/** Calls this process's own HTTP server over a pair of streams, so that all checks of the API apply. */
import { request, type Server } from 'node:http'
import { duplexPair } from 'node:stream'
import { readAtMost } from '../../shared/base/http-json.ts'

const ANSWER_BYTES_MAX = 33_554_432
const LOOPBACK = '127.0.0.1'

export type OwnCall = {
  readonly method: string
  readonly path: string
  readonly headers: { readonly [name: string]: string }
  readonly body?: string
}
/** `tag`: the entity tag of the state that the answer shows. */
export type OwnAnswer = { readonly status: number; readonly text: string; readonly tag: string | null }
export type OwnServer = (call: OwnCall) => Promise<OwnAnswer>

export function createOwnServer(server: Server): OwnServer {
  return async ({ method, path, headers, body }) => {
    const [client, accepted] = duplexPair()
    // An HTTP server of Node.js accepts any stream as a connection (event 'connection').
    server.emit('connection', Object.assign(accepted, { remoteAddress: LOOPBACK }))
    try {
      const { promise: answered, resolve, reject } = Promise.withResolvers<OwnAnswer>()
      const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
      const sent = request({
        method,
        path,
        headers: { host: LOOPBACK, connection: 'close', ...headers, ...length },
        createConnection: () => client,
      })
      sent.once('error', reject)
      sent.once('response', (response) => {
        readAtMost(response, ANSWER_BYTES_MAX).then((bytes) => {
          if (bytes === null) reject(new Error(`the answer to ${method} ${path} is too large`))
          else {
            const { statusCode: status = 0, headers: answered } = response
            resolve({ status, text: bytes.toString('utf8'), tag: answered.etag ?? null })
          }
        }, reject)
      })
      sent.end(body)
      return await answered
    } finally {
      client.destroy()
    }
  }
}
