/** Makes guarded calls available in the form of `fetch`. */

import type { GuardedPost } from '../../shared/base/guarded-post.ts'
import type { Fetch } from '../../shared/token/remote-keys.ts'
import type { TransmitterFetch } from './transmitter.ts'

/** Upper limits; callers have shorter deadlines and smaller bounds of their own. */
const DEADLINE_MS = 90_000
const BYTES_MAX = 9 * 1024 * 1024

export function guardedFetch(calls: Pick<GuardedPost, 'send'>): TransmitterFetch & Fetch {
  return async (url: string, init: Parameters<TransmitterFetch>[1] | Parameters<Fetch>[1]) => {
    const { method = 'GET', headers, signal } = init
    const call = { method, url, headers, signal, deadlineMs: DEADLINE_MS, bytesMax: BYTES_MAX }
    const { status, body } = await calls.send({ ...call, ...(init.body !== undefined && { body: init.body }) })
    if (body === null) throw new Error(`${url} answered with more than ${BYTES_MAX} bytes`)
    return { status, body: new Blob([new Uint8Array(body)]).stream() }
  }
}
