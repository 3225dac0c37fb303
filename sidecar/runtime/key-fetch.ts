/** Fetches key sets with Node's own client: no redirects, no cookies, no proxy, and none of the memory of a whole Fetch. */
import { get as getPlain, type IncomingMessage } from 'node:http'
import { get as getSecure } from 'node:https'
import { Readable } from 'node:stream'
import type { Fetch } from '../../pdp/token/remote-keys.ts'

/** Rejects when there is no answer. The caller bounds time with the signal, and the size of what it reads. */
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
