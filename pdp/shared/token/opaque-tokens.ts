/** Asks an issuer about tokens that no one else can read (RFC 7662). */
import { lowerAscii } from '../base/blanks.ts'
import type { JsonMembers } from '../base/json-text.ts'
import { TokenError } from './errors.ts'
import { members } from './jws.ts'
import { type Fetch, readJson } from './remote-keys.ts'

/** Gets the claims of an active token from its issuer. Throws TokenError `token_invalid` or `issuer_unavailable`. */
export type Introspect = (token: string, digest: string) => Promise<JsonMembers>
export type IntrospectOptions = {
  readonly issuer: string
  readonly endpoint: string
  readonly clientId: string
  /** The secret, read for each question, so that a new one needs no restart. */
  readonly clientSecret: () => string
  readonly fetch: Fetch
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly timeoutMs?: number
  readonly onError?: (error: unknown) => void
}

/** How long an answer counts: a token that its issuer has revoked is refused after this time at the latest. */
export const INTROSPECTED_MS = 10_000
/** How many questions may be open: a client with made-up tokens must not make us overload the issuer. */
const ASKED_MAX = 64
const INACTIVE_MAX = 1_000

export function createIntrospect(options: IntrospectOptions): Introspect {
  const { clock } = options
  const asked = new Map<string, Promise<JsonMembers>>()
  /** Inactive tokens by digest, with the time until which this answer counts. */
  const inactive = new Map<string, number>()

  async function ask(token: string, digest: string): Promise<JsonMembers> {
    const answer = await post(token, options).catch((err: unknown) => {
      options.onError?.(err)
      throw new TokenError('issuer_unavailable', `the issuer ${options.issuer} did not introspect the token`, err)
    })
    if (answer.active === true) return answer
    if (inactive.size >= INACTIVE_MAX) inactive.clear()
    inactive.set(digest, clock() + INTROSPECTED_MS)
    throw refused(options.issuer)
  }

  return (token, digest) => {
    if ((inactive.get(digest) ?? 0) > clock()) return Promise.reject(refused(options.issuer))
    const pending = asked.get(digest)
    if (pending !== undefined) return pending
    if (asked.size >= ASKED_MAX)
      return Promise.reject(new TokenError('issuer_unavailable', `too many questions to ${options.issuer} are open`))
    const asking = ask(token, digest).finally(() => asked.delete(digest))
    asked.set(digest, asking)
    return asking
  }
}

const refused = (issuer: string): TokenError =>
  new TokenError('token_invalid', `the issuer ${issuer} says that the token is not active`)

async function post(token: string, options: IntrospectOptions): Promise<JsonMembers> {
  const { endpoint, clientId, clientSecret, timeoutMs = 3_000 } = options
  // RFC 6749 section 2.3.1: both are form-encoded before they are joined.
  const [id = '', secret = ''] = [clientId, clientSecret()].map((part) =>
    new URLSearchParams({ v: part }).toString().slice(2),
  )
  const response = await options.fetch(endpoint, {
    method: 'POST',
    redirect: 'manual',
    signal: AbortSignal.timeout(timeoutMs),
    headers: {
      accept: 'application/json',
      authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams({ token, token_type_hint: 'access_token' }).toString(),
  })
  const answer = members(await readJson(response, endpoint))
  if (typeof answer?.active !== 'boolean') throw new Error(`${endpoint} did not answer with an introspection response`)
  return answer
}

/** Checks the answer. Throws TokenError `token_invalid` for a token of another issuer or kind, such as a refresh token. */
export function requireIntrospected(answer: JsonMembers, issuer: string): void {
  const { iss, token_type: type, token_use: use, typ } = answer
  if (iss !== undefined && iss !== issuer) throw invalid('the issuer names another issuer of the token')
  // RFC 7662 section 2.2 leaves it to the issuer whether it also answers for refresh tokens.
  for (const kind of [type, typ])
    if (kind !== undefined && !isOneOf(kind, ['bearer', 'dpop'])) throw invalid('the token is not an access token')
  if (use !== undefined && !isOneOf(use, ['access', 'access_token'])) throw invalid('the token is not an access token')
}

const isOneOf = (value: unknown, names: readonly string[]): boolean =>
  typeof value === 'string' && names.includes(lowerAscii(value))

const invalid = (message: string): TokenError => new TokenError('token_invalid', message)
