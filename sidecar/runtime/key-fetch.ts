/** Asks issuers through `node:http`, which does not follow redirects and takes less memory than `fetch`. */
import { type IncomingMessage, request as requestPlain } from 'node:http'
import { Agent, request as requestSecure } from 'node:https'
import { Readable } from 'node:stream'
import { proxyOf } from '../../pdp/shared/process/egress.ts'
import type { Fetch } from '../../pdp/shared/token/remote-keys.ts'

/** The time in milliseconds after which a connection through a silent proxy is ended. */
const CONNECT_MS = 5_000

/**
 * An https request goes through the proxy of `HTTPS_PROXY`, except to hosts of `NO_PROXY`; TLS still ends at the issuer. An http request,
 * which is for loopback, never does. Rejects without a response. The caller limits the time by the signal, and the size as it reads.
 */
export function createKeyFetch(environment: Parameters<typeof proxyOf>[0]): Fetch {
  const proxy = proxyOf(environment)
  const proxied = proxy === null ? false : new Agent({ proxyEnv: { ...proxy }, maxCachedSessions: 0 })
  return async (url, { method = 'GET', headers, signal, body = '' }) => {
    const isSecure = url.startsWith('https:')
    const request = isSecure ? requestSecure : requestPlain
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const options = {
        method,
        headers: { ...headers },
        signal,
        agent: isSecure && proxied,
        timeout: CONNECT_MS,
      } as const
      // While a proxy is silent, `request` itself ignores the signal.
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      request(url, options, resolve).on('error', reject).end(body)
    })
    const { date, age, 'content-type': contentType } = response.headers
    return {
      status: response.statusCode ?? 0,
      body: Readable.toWeb(response) as ReadableStream<Uint8Array>,
      contentType,
      ...(date !== undefined && { dated: { date, ageSeconds: Number(age ?? 0) } }),
    }
  }
}
