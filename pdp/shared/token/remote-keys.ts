/** Loads an issuer's keys over HTTP, from a given URL or the `jwks_uri` of its metadata (RFC 8414, OpenID Connect Discovery). */
import { readAtMost } from '../base/http-json.ts'
import { isLoopback, urlHost } from '../process/listen.ts'
import { members } from './jws.ts'
import { createKeySource, type KeySource } from './keys.ts'

/** The used part of `fetch`, passed in by the caller so that tests control the network. */
export type Fetch = (
  url: string,
  init: {
    method?: 'POST'
    redirect: 'manual'
    signal: AbortSignal
    headers: { [name: string]: string }
    body?: string
  },
) => Promise<Fetched>
/** `dated`: the Date and Age fields of the response (RFC 9110 section 6.6.1, RFC 9111 section 5.1). */
export type Fetched = Pick<Response, 'status' | 'body'> & {
  readonly dated?: { readonly date: string; readonly ageSeconds: number } | undefined
  readonly contentType?: string | undefined
}

export type RemoteKeysOptions = {
  /** Exactly as in the tokens; the issuer's metadata must contain the same value. */
  readonly issuer: string
  /** URL of the key set; without it, the issuer's metadata is fetched. */
  readonly jwksUri?: string
  readonly fetch: Fetch
  readonly clock: () => number
  readonly refreshAfterMs?: number
  readonly ageMaxMs?: number
  readonly cooldownMs?: number
  readonly timeoutMs?: number
  readonly onError?: (error: unknown) => void
}

const DOCUMENT_BYTES_MAX = 256 * 1024

/** Follows no redirects, which would let another host supply the keys. Never fetches a URL from a token. */
export function remoteKeys(options: RemoteKeysOptions): KeySource {
  const { issuer, jwksUri, timeoutMs = 3_000 } = options

  async function load(): Promise<readonly unknown[]> {
    const signal = AbortSignal.timeout(timeoutMs)
    const uri = jwksUri ?? (await discover(signal))
    const keys = (await fetchMembers(uri, signal)).keys
    if (!Array.isArray(keys)) throw new Error(`${uri} is not a JWK Set`)
    return keys
  }

  async function discover(signal: AbortSignal): Promise<string> {
    const uri = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
    const metadata = await fetchMembers(uri, signal)
    // OpenID Connect Discovery section 4.3: otherwise one tenant's metadata could supply another tenant's keys.
    if (metadata.issuer !== issuer)
      throw new Error(`${uri} is the metadata of another issuer${describeSlash(issuer, metadata.issuer)}`)
    if (typeof metadata.jwks_uri !== 'string') throw new Error(`${uri} has no jwks_uri`)
    if (!isSafeKeyUrl(metadata.jwks_uri))
      throw new Error(
        `${uri} names a jwks_uri without TLS (${metadata.jwks_uri.slice(0, 200)}): set jwks_uri to its https address`,
      )
    return metadata.jwks_uri
  }

  async function fetchMembers(uri: string, signal: AbortSignal): Promise<{ readonly [name: string]: unknown }> {
    const response = await options.fetch(uri, { redirect: 'manual', signal, headers: { accept: 'application/json' } })
    const parsed = members(await readJson(response, uri))
    if (parsed === null) throw new Error(`${uri} is not a JSON object`)
    return parsed
  }

  return createKeySource({
    load,
    clock: options.clock,
    refreshAfterMs: options.refreshAfterMs ?? 300_000,
    ageMaxMs: options.ageMaxMs ?? 3_600_000,
    cooldownMs: options.cooldownMs ?? 10_000,
    ...(options.onError && { onError: options.onError }),
  })
}

/** Describes a difference in the trailing slash, because issuers are compared as strings (RFC 8414 section 3.3). */
export function describeSlash(configured: string, found: unknown): string {
  if (found === `${configured}/`) return `: it ends with a slash, but ${configured} does not`
  return configured === `${found}/` ? `: it does not end with a slash, but ${configured} does` : ''
}

/** True if nobody on the network can replace the keys: with TLS, or on loopback. */
export function isSafeKeyUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const url = new URL(text)
  if (url.username !== '' || url.password !== '') return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(urlHost(url)))
}

/** Throws Error, which names the address, for another status than 200, and for what is too long or not JSON. */
export async function readJson({ status, body }: Pick<Fetched, 'status' | 'body'>, uri: string): Promise<unknown> {
  if (status !== 200) {
    await body?.cancel()
    const isRedirect = status >= 300 && status < 400
    throw new Error(`${uri} answered ${status}${isRedirect ? ', and redirects are not followed' : ''}`)
  }
  const text = await readText(body, uri)
  try {
    return JSON.parse(text)
  } catch (err) {
    throw new Error(`${uri} is not JSON`, { cause: err })
  }
}

async function readText(body: ReadableStream<Uint8Array> | null, uri: string): Promise<string> {
  const bytes = body === null ? Buffer.alloc(0) : await readAtMost(body, DOCUMENT_BYTES_MAX)
  if (bytes === null) throw new Error(`${uri} is larger than ${DOCUMENT_BYTES_MAX} bytes`)
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
}
