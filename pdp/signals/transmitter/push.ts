/** Pushes one SET (RFC 8935 section 2), and says what its answer means. */

import { type GuardedPost, TargetRefused } from '../../shared/base/guarded-post.ts'
import { members } from '../../shared/token/jws.ts'
import { SET_MEDIA_TYPE } from '../set/set.ts'

const DEADLINE_MS = 10_000
const ANSWER_BYTES_MAX = 65_536
const RETRY_AFTER_SECONDS_MAX = 3_600
const DESCRIPTION_CHARS_MAX = 200

/** `refused`: the receiver cannot read this SET, and would not a second time. `failed`: it is tried again. */
export type PushOutcome =
  | { readonly kind: 'delivered'; readonly warning: string | null }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly retryAfterMs: number | null }

/** Never throws. */
export async function pushSet(
  post: Pick<GuardedPost, 'post'>,
  call: { readonly url: string; readonly authorization: string | null; readonly token: string },
): Promise<PushOutcome> {
  const headers = {
    'content-type': SET_MEDIA_TYPE,
    accept: 'application/json',
    ...(call.authorization === null ? {} : { authorization: call.authorization }),
  }
  try {
    const answer = await post.post({
      url: call.url,
      headers,
      body: call.token,
      deadlineMs: DEADLINE_MS,
      bytesMax: ANSWER_BYTES_MAX,
    })
    return outcomeOf(answer)
  } catch (err) {
    return { kind: 'failed', reason: reasonOf(err), retryAfterMs: null }
  }
}

function outcomeOf({ status, headers, body }: Awaited<ReturnType<GuardedPost['post']>>): PushOutcome {
  if (status === 202) return { kind: 'delivered', warning: null }
  if (status === 200 || status === 204)
    return { kind: 'delivered', warning: `answered ${status} instead of 202 (RFC 8935 section 2.2)` }
  if (status === 400) return { kind: 'refused', reason: `400 ${describe(body)}`.trim() }
  return { kind: 'failed', reason: `answered ${status}`, retryAfterMs: retryAfterOf(headers['retry-after']) }
}

/** RFC 8935 section 2.3. What the receiver wrote is shortened, and has no control characters. */
function describe(body: Buffer | null): string {
  try {
    const { err, description } = members(JSON.parse(body?.toString() ?? '')) ?? {}
    const words = [err, description].filter((text) => typeof text === 'string')
    return words
      .join(': ')
      .replace(/[^\x20-\x7e]/g, '?')
      .slice(0, DESCRIPTION_CHARS_MAX)
  } catch {
    return ''
  }
}

/** RFC 9110 section 10.2.3, in seconds. */
function retryAfterOf(value: string | undefined): number | null {
  if (value === undefined || !/^\d{1,9}$/.test(value)) return null
  return Math.min(Number(value), RETRY_AFTER_SECONDS_MAX) * 1_000
}

/** A code of the system, such as ECONNREFUSED; never a text that could hold the URL's query. */
function reasonOf(error: unknown): string {
  if (error instanceof TargetRefused) return `the endpoint ${error.message}`
  if (!(error instanceof Error)) return 'failed'
  if (error.name === 'AbortError' || error.name === 'TimeoutError') return `no answer within ${DEADLINE_MS / 1_000} s`
  return 'code' in error && typeof error.code === 'string' ? error.code : 'failed'
}
