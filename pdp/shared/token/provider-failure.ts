/** Describes an OpenID provider's failures from errors of `openid-client`, whose messages lack the provider's own text. */

import { members } from './jws.ts'

type ErrorClass<Members> = abstract new (...args: never) => Error & Members
/** The error classes of `openid-client`, which the first sign-in alone loads, so they are passed in. */
type Errors = {
  readonly ClientError: ErrorClass<{ readonly code?: string | undefined }>
  readonly ResponseBodyError: ErrorClass<{ readonly error: string; readonly status: number }>
  readonly AuthorizationResponseError: ErrorClass<{ readonly error: string }>
  readonly WWWAuthenticateChallengeError: ErrorClass<object>
}

const SERVER_ERRORS = 500
const TOO_MANY = 429
const WORDS_MAX = 300
const CAUSES_MAX = 5

/**
 * Reads a failure. `isRefusal`: the provider refused, or its answer is invalid; false: it did not answer, or is unavailable for now.
 * `code`: of RFC 6749 sections 4.1.2.1 and 5.2, or null. `text`: one line for the log, without any part of a token.
 */
export function readFailure(
  client: Errors,
  err: unknown,
): { readonly isRefusal: boolean; readonly code: string | null; readonly text: string } {
  const isNamed = err instanceof client.ResponseBodyError || err instanceof client.AuthorizationResponseError
  const isCode = isNamed && /^[a-z_]{1,64}$/.test(err.error)
  return { isRefusal: isRefusal(client, err), code: isCode ? err.error : null, text: textsOf(err).join(': ') }
}

function isRefusal(client: Errors, err: unknown): boolean {
  if (err instanceof client.AuthorizationResponseError || err instanceof client.WWWAuthenticateChallengeError)
    return true
  if (err instanceof client.ResponseBodyError) return !isAway(err.status)
  if (!(err instanceof client.ClientError)) return false
  const { code, cause } = err
  // The code of an answer that was not valid, or else of a request that failed.
  if (code === undefined) return cause instanceof Error && cause.name === 'OperationProcessingError'
  if (code === 'OAUTH_TIMEOUT' || code === 'OAUTH_ABORT') return false
  return !(cause instanceof Response && isAway(cause.status))
}

const isAway = (status: number): boolean => status >= SERVER_ERRORS || status === TOO_MANY

/** The texts of the error and of its causes, the provider's own words (`error_description`) included. */
function textsOf(err: unknown): readonly string[] {
  const texts: string[] = []
  let at = err
  for (let depth = 0; depth < CAUSES_MAX && at instanceof Error; depth += 1) {
    const { error, error_description: described } = at as { error?: unknown; error_description?: unknown }
    texts.push(at.message, ...[error, described].filter((words) => typeof words === 'string').map(inOneLine))
    at = at.cause
  }
  if (at instanceof Response)
    texts.push(`${at.url === '' ? 'the provider' : withoutQuery(at.url)} answered ${at.status}`)
  // The metadata is of another issuer than we asked for.
  const { issuer } = members(members(at)?.body) ?? {}
  if (typeof issuer === 'string') texts.push(`it names ${inOneLine(issuer)}`)
  return [...new Set(texts)]
}

const withoutQuery = (url: string): string => url.split('?', 1)[0] ?? ''

/** `error_description` of a provider. RFC 6749 section 5.2 allows printable ASCII only; some send lines. */
export const inOneLine = (words: string): string =>
  words
    .replaceAll(/\p{C}+/gu, ' ')
    .trim()
    .slice(0, WORDS_MAX)

/**
 * A whole answer in the form that the functions above read. It has its address, but not the challenge for a wrong secret (RFC 6749 section
 * 5.2): with a challenge, `openid-client` would not read the body. `body`: null if there is none.
 */
export function readableAnswer(answer: {
  readonly url: string
  readonly status: number
  readonly contentType: string | null | undefined
  readonly body: Uint8Array | null
}): Response {
  const { url, status, contentType, body } = answer
  const headers = contentType == null ? {} : { 'content-type': contentType }
  const response = new Response(body === null ? null : new Uint8Array(body), { status, headers })
  return Object.defineProperty(response, 'url', { value: url })
}
