/** Pushes a SET (RFC 8935 section 2) or a logout token to its receiver, and interprets the answer. */

import { type GuardedPost, TargetRefused } from '../../shared/base/guarded-post.ts'
import { members } from '../../shared/token/jws.ts'
import { SET_MEDIA_TYPE } from '../set/set.ts'

const DEADLINE_MS = 10_000
const ANSWER_BYTES_MAX = 65_536
const RETRY_AFTER_SECONDS_MAX = 3_600
const DESCRIPTION_CHARS_MAX = 200

/** `refused`: the receiver does not accept this SET, so a retry is useless. `failed`: it is tried again. */
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
  const outcome = await push(post, { url: call.url, headers, body: call.token, taken: [200, 202, 204] })
  if (outcome.kind !== 'delivered' || outcome.status === 202) return outcome
  return { ...outcome, warning: `answered ${outcome.status} instead of 202 (RFC 8935 section 2.2)` }
}

/** Pushes a logout token (OpenID Connect Back-Channel Logout 1.0 sections 2.5 and 2.8). Never throws. */
export async function pushLogout(
  post: Pick<GuardedPost, 'post'>,
  call: { readonly url: string; readonly token: string },
): Promise<PushOutcome> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
  const body = new URLSearchParams({ logout_token: call.token }).toString()
  return push(post, { url: call.url, headers, body, taken: [200, 204] })
}

async function push(
  post: Pick<GuardedPost, 'post'>,
  {
    taken,
    ...call
  }: Pick<Parameters<GuardedPost['post']>[0], 'url' | 'headers' | 'body'> & { readonly taken: readonly number[] },
): Promise<(PushOutcome & { kind: 'delivered'; status: number }) | Exclude<PushOutcome, { kind: 'delivered' }>> {
  try {
    const { status, headers, body } = await post.post({ ...call, deadlineMs: DEADLINE_MS, bytesMax: ANSWER_BYTES_MAX })
    if (taken.includes(status)) return { kind: 'delivered', warning: null, status }
    if (status === 400) return { kind: 'refused', reason: `400 ${describe(body)}`.trim() }
    return { kind: 'failed', reason: `answered ${status}`, retryAfterMs: retryAfterOf(headers['retry-after']) }
  } catch (err) {
    return { kind: 'failed', reason: reasonOf(err), retryAfterMs: null }
  }
}

/** Texts of a receiver, shortened and without control characters. */
export const receiversWords = (...words: readonly unknown[]): string =>
  words
    .filter((word) => typeof word === 'string')
    .join(': ')
    .replace(/[^\x20-\x7e]/g, '?')
    .slice(0, DESCRIPTION_CHARS_MAX)

/** The receiver's error message (RFC 8935 section 2.3, RFC 6749 section 5.2). */
function describe(body: Buffer | null): string {
  try {
    const { err, description, error, error_description } = members(JSON.parse(body?.toString() ?? '')) ?? {}
    return receiversWords(err ?? error, description ?? error_description)
  } catch {
    return ''
  }
}

/** The wait of a Retry-After field in milliseconds (RFC 9110 section 10.2.3). */
function retryAfterOf(value: string | undefined): number | null {
  if (value === undefined || !/^\d{1,9}$/.test(value)) return null
  return Math.min(Number(value), RETRY_AFTER_SECONDS_MAX) * 1_000
}

/** The system's error code, such as ECONNREFUSED. Its message could contain the URL's query. */
function reasonOf(error: unknown): string {
  if (error instanceof TargetRefused) return `the endpoint ${error.message}`
  if (!(error instanceof Error)) return 'failed'
  if (error.name === 'AbortError' || error.name === 'TimeoutError') return `no answer within ${DEADLINE_MS / 1_000} s`
  return 'code' in error && typeof error.code === 'string' ? error.code : 'failed'
}
