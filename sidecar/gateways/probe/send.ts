/** Sends one probe to the gateway, then asks the sidecar's admin port whether the sidecar refused it. Time and size are bounded. */
import { hash } from 'node:crypto'
import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP } from 'node:net'
import { messageOf } from '../../../pdp/shared/base/error-message.ts'
import { NO_REFUSAL, REFUSALS_PATH } from '../../../pdp/shared/process/admin-listener.ts'

export type Answer = {
  readonly status: number
  /** The request id in the answer; null: it has no id. */
  readonly requestId: string | null
  /** Equal for answers that differ only in their date. */
  readonly digest: string
}
export type Sent = {
  readonly method: string
  readonly target: string
  readonly fields: readonly (readonly [name: string, value: string])[]
}
const ANSWER_MS = 10_000
const BODY_BYTES_MAX = 64 * 1024

/** A text is the reason for which no answer was readable in time. `serverName`: the name for TLS. */
export function send(url: URL, sent: Sent, serverName: string): Promise<Answer | string> {
  const { method, target, fields } = sent
  return new Promise((resolve) => {
    const options = {
      host: url.hostname.replaceAll(/[[\]]/g, ''),
      port: url.port,
      method,
      path: target,
      setHost: false,
      agent: false,
      insecureHTTPParser: true,
      signal: AbortSignal.timeout(ANSWER_MS),
      headers: fields.flat(),
    }
    const nothing = (err: unknown): void => resolve(messageOf(err))
    let request: ClientRequest
    try {
      const secure = { ...options, ...(isIP(serverName) === 0 && { servername: serverName }) }
      request = url.protocol === 'https:' ? requestHttps(secure) : requestHttp(options)
    } catch (err) {
      return nothing(err)
    }
    request.on('error', nothing)
    request.once('upgrade', (res, socket) => {
      socket.destroy()
      resolve(answerOf(res, ''))
    })
    request.once('response', (res) => void readBody(res).then((body) => resolve(answerOf(res, body)), nothing))
    request.end()
  })
}

/** Reads only a body that may be the gateway's own answer: a stream of the service might never end. */
async function readBody(res: IncomingMessage): Promise<string> {
  let text = ''
  if (res.statusCode !== 400) res.destroy()
  if (res.destroyed) return text
  for await (const chunk of res.setEncoding('latin1')) {
    text += chunk
    if (text.length > BODY_BYTES_MAX) break
  }
  return text
}

function answerOf({ statusCode = 0, rawHeaders, headers }: IncomingMessage, body: string): Answer {
  const fields = rawHeaders.map((text, at) =>
    at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'date' ? '' : text,
  )
  const { 'x-request-id': id } = headers
  return {
    status: statusCode,
    requestId: typeof id === 'string' ? id : null,
    digest: hash('sha256', JSON.stringify([statusCode, fields, body])),
  }
}

/** Throws with a reason for the operator when an admin port does not answer as a sidecar's does. */
export async function findRefusal(
  admins: readonly URL[],
  requestId: string,
): Promise<{ readonly reason: string; readonly status: number } | null> {
  for (const admin of admins) {
    const found = await fetch(new URL(`${REFUSALS_PATH}${encodeURIComponent(requestId)}`, admin), {
      redirect: 'error',
      signal: AbortSignal.timeout(ANSWER_MS),
    })
    const text = (await found.text()).slice(0, BODY_BYTES_MAX)
    if (found.status === 404 && text === NO_REFUSAL) continue
    const { reason, status } = found.status === 200 ? JSON.parse(text) : {}
    if (typeof reason === 'string' && typeof status === 'number') return { reason, status }
    throw new Error('it does not answer as the admin port of a sidecar')
  }
  return null
}

/** True if something accepts connections at this address. */
export const answers = (admin: URL): Promise<boolean> =>
  fetch(new URL(REFUSALS_PATH, admin), { redirect: 'manual', signal: AbortSignal.timeout(ANSWER_MS) }).then(
    () => true,
    () => false,
  )
