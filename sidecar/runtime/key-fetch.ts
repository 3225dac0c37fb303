/** Fetches key sets with `node:http`, which follows no redirects, uses no proxy, and needs less memory than `fetch`. */
import { get as getPlain, type IncomingMessage } from 'node:http'
import { get as getSecure } from 'node:https'
import { Readable } from 'node:stream'
import type { Fetch } from '../../pdp/token/remote-keys.ts'

/** Rejects when there is no response. The caller limits the time by the signal, and the size by what it reads. */
export const fetchKeys: Fetch = async (url, { headers, signal }) => {
  const get = url.startsWith('https:') ? getSecure : getPlain
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { headers: { ...headers }, signal, agent: false }, resolve).on('error', reject)
  })
  const { date, age } = response.headers
  return {
    status: response.statusCode ?? 0,
    body: Readable.toWeb(response) as ReadableStream<Uint8Array>,
    ...(date !== undefined && { dated: { date, ageSeconds: Number(age ?? 0) } }),
  }
}
