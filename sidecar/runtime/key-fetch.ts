/** Asks issuers with `node:http`, which follows no redirects, uses no proxy, and needs less memory than `fetch`. */
import { type IncomingMessage, request as requestPlain } from 'node:http'
import { request as requestSecure } from 'node:https'
import { Readable } from 'node:stream'
import type { Fetch } from '../../pdp/shared/token/remote-keys.ts'

/** Rejects when there is no response. The caller limits the time by the signal, and the size by what it reads. */
export const fetchKeys: Fetch = async (url, { method = 'GET', headers, signal, body = '' }) => {
  const request = url.startsWith('https:') ? requestSecure : requestPlain
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const options = { method, headers: { ...headers }, signal, agent: false } as const
    request(url, options, resolve).on('error', reject).end(body)
  })
  const { date, age } = response.headers
  return {
    status: response.statusCode ?? 0,
    body: Readable.toWeb(response) as ReadableStream<Uint8Array>,
    ...(date !== undefined && { dated: { date, ageSeconds: Number(age ?? 0) } }),
  }
}
