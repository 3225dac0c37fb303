/** Outgoing HTTP to systems that may be slow, large or wrong: a limited read, and one POST of JSON with a deadline. */

/**
 * The part of the platform's `fetch` that is used.
 *
 * @example
 * ```ts
 * const traced: SourceFetch = (url, init) => fetch(url, init)
 * ```
 */
export type PostFetch = (
  url: string,
  init: { method: 'POST'; redirect: 'manual'; signal: AbortSignal; headers: { [name: string]: string }; body: string },
) => Promise<Pick<Response, 'status' | 'body'>>

/** The other system gave an invalid answer. Any other error means that it gave no answer. */
export class BadAnswer extends Error {
  override readonly name = 'BadAnswer'
}

/** All bytes; null: there are more than `bytesMax`, and the rest is not read. */
export async function readAtMost(chunks: AsyncIterable<Uint8Array>, bytesMax: number): Promise<Buffer | null> {
  const read: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    if (bytes > bytesMax) return null
    read.push(chunk)
  }
  return Buffer.concat(read)
}

/** The JSON of an answer 200. Follows no redirects. Throws BadAnswer, or another error without an answer within `deadlineMs`. */
export async function postJson(call: {
  readonly fetch: PostFetch
  readonly url: string
  readonly headers: { readonly [name: string]: string }
  readonly body: string
  readonly deadlineMs: number
  readonly bytesMax: number
}): Promise<unknown> {
  const { fetch, url, headers, body, bytesMax } = call
  const signal = AbortSignal.timeout(call.deadlineMs)
  const work = fetch(url, {
    method: 'POST',
    redirect: 'manual',
    signal,
    headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
    body,
  }).then((response) => parseAnswer(response, bytesMax))
  // The signal ends the request; the race ends the wait even for a fetch that does not heed it.
  return Promise.race([work, expired(signal)])
}

function expired(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error('no answer in time')), { once: true })
  })
}

async function parseAnswer({ status, body }: Pick<Response, 'status' | 'body'>, bytesMax: number): Promise<unknown> {
  if (status !== 200) {
    await body?.cancel()
    throw status >= 500 || status === 429 ? new Error(`status ${status}`) : new BadAnswer(`status ${status}`)
  }
  const bytes = body === null ? Buffer.alloc(0) : await readAtMost(body, bytesMax)
  if (bytes === null) throw new BadAnswer(`more than ${bytesMax} bytes`)
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (err) {
    throw new BadAnswer('not JSON in UTF-8', { cause: err })
  }
}
