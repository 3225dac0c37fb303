/** Calls the API of another issuer's SSF transmitter (SSF 1.0 section 8, RFC 8936): metadata, its stream for us, polls. */

import { messageOf } from '../../shared/base/error-message.ts'
import { readAtMost } from '../../shared/base/http-json.ts'
import type { JsonMembers } from '../../shared/base/json-text.ts'
import { members } from '../../shared/token/jws.ts'
import { describeSlash } from '../../shared/token/remote-keys.ts'
import type { StoredSignals } from './registration.ts'

/** A fetch that refuses forbidden targets and follows no redirect. */
export type TransmitterFetch = (
  url: string,
  init: {
    method: string
    redirect: 'manual'
    signal: AbortSignal
    headers: { [name: string]: string }
    body?: string
  },
) => Promise<Pick<Response, 'status' | 'body'>>

export const PUSH = 'urn:ietf:rfc:8935'
export const POLL = 'urn:ietf:rfc:8936'

const CALL_MS = 10_000
const ANSWER_BYTES_MAX = 256 * 1024
/** The most bytes of the answer to one poll. */
const POLL_BYTES_MAX = 8 * 1024 * 1024
/** The deadline of a long poll, which transmitters usually answer within half a minute. */
const POLL_MS = 60_000
const TOKEN_MARGIN_MS = 10_000
const TOKEN_MS_MAX = 3_600_000

/** The transmitter gave an unexpected answer. */
export class TransmitterError extends Error {
  override readonly name = 'TransmitterError'
  /** The answer's status; null: the answer itself is malformed. */
  readonly status: number | null
  constructor(message: string, status: number | null = null, cause?: unknown) {
    super(message, { cause })
    this.status = status
  }
}

export type TransmitterSettings = {
  /** The `iss` of the transmitter's SETs. */
  readonly issuer: string
  readonly metadataUri: string | null
  readonly authorization: StoredSignals['authorization']
  /** The client's secret, or the static bearer token. */
  readonly secret: () => string
}
export type Metadata = {
  readonly configurationEndpoint: string
  readonly statusEndpoint: string | null
  readonly verificationEndpoint: string | null
  readonly jwksUri: string | null
  readonly deliveryMethods: readonly string[] | null
}
export type Answer = { readonly status: number; readonly body: unknown }
export type Transmitter = {
  metadata(): Promise<Metadata>
  /** `body` is sent as JSON. Returns only answers with one of `statuses`. Throws TransmitterError. */
  call(method: string, url: string, options: CallOptions): Promise<Answer>
}
type CallOptions = {
  readonly statuses: readonly number[]
  readonly body?: object
  readonly signal?: AbortSignal
  readonly isPoll?: boolean
}

export function createTransmitter(
  settings: TransmitterSettings,
  { fetch, clock }: { readonly fetch: TransmitterFetch; readonly clock: () => number },
): Transmitter {
  const { token_endpoint: tokenEndpoint } = settings.authorization
  let token: Token | null = null
  let fetching: Promise<Token> | null = null

  /** The present token. Simultaneous calls share one fetch. */
  async function bearer(): Promise<Token> {
    if (tokenEndpoint === undefined) return { value: settings.secret(), untilMs: Number.POSITIVE_INFINITY }
    if (token !== null && clock() < token.untilMs) return token
    fetching ??= fetchToken(fetch, tokenEndpoint, { settings, clock }).finally(() => {
      fetching = null
    })
    token = await fetching
    return token
  }

  async function call(method: string, url: string, options: CallOptions): Promise<Answer> {
    const { body, ...rest } = options
    const asked = async ({ value }: Token): Promise<Answer> =>
      send(fetch, url, {
        ...rest,
        method,
        headers: {
          authorization: `Bearer ${value}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
    const used = await bearer()
    try {
      return await asked(used)
    } catch (err) {
      // A token may be refused before its expiry, for example after a restart of the transmitter: then a new one is fetched, once.
      const isEnded = err instanceof TransmitterError && err.status === 401
      if (!isEnded || tokenEndpoint === undefined) throw err
      if (token === used) token = null
      return asked(await bearer())
    }
  }

  return {
    call,
    async metadata() {
      const url = settings.metadataUri ?? wellKnown(settings.issuer)
      const { body } = await send(fetch, url, { method: 'GET', headers: {}, statuses: [200] })
      return parseMetadata(members(body), { url, issuer: settings.issuer })
    },
  }
}

/** Fetches a token by client_credentials (RFC 6749 section 4.4). */
async function fetchToken(
  fetch: TransmitterFetch,
  endpoint: string,
  { settings, clock }: { readonly settings: TransmitterSettings; readonly clock: () => number },
): Promise<Token> {
  const { client_id: id = '', scope = 'ssf.manage', resource } = settings.authorization
  // RFC 6749 section 2.3.1: id and secret are form-encoded before they are joined.
  const [user = '', password = ''] = [id, settings.secret()].map((part) =>
    new URLSearchParams({ v: part }).toString().slice(2),
  )
  const { body } = await send(fetch, endpoint, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams({ grant_type: 'client_credentials', scope, ...(resource && { resource }) }).toString(),
    statuses: [200],
  })
  const { access_token: value, expires_in: seconds } = members(body) ?? {}
  if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value))
    throw new TransmitterError(`${endpoint} answered without an access token`)
  const livesMs = typeof seconds === 'number' && seconds > 0 ? Math.min(seconds * 1_000, TOKEN_MS_MAX) : 60_000
  return { value, untilMs: clock() + Math.max(livesMs - TOKEN_MARGIN_MS, livesMs / 2) }
}

async function send(
  fetch: TransmitterFetch,
  url: string,
  {
    statuses,
    isPoll = false,
    signal,
    ...init
  }: Omit<CallOptions, 'body'> & Pick<Parameters<TransmitterFetch>[1], 'method' | 'headers' | 'body'>,
): Promise<Answer> {
  const deadline = AbortSignal.timeout(isPoll ? POLL_MS : CALL_MS)
  const { status, body } = await fetch(url, {
    ...init,
    headers: { accept: 'application/json', ...init.headers },
    redirect: 'manual',
    signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
  }).catch((err: unknown) => {
    throw new TransmitterError(`${url}: ${messageOf(err)}`, null, err)
  })
  if (statuses.includes(status)) {
    const bytesMax = isPoll ? POLL_BYTES_MAX : ANSWER_BYTES_MAX
    return { status, body: await readBody(body, { url, bytesMax }) }
  }
  await body?.cancel()
  throw new TransmitterError(`${init.method} ${url} answered ${status}`, status)
}

type Token = { readonly value: string; readonly untilMs: number }

/** The URL of the metadata (SSF 1.0 section 7.2): the well-known part comes before the issuer's path. */
export function wellKnown(issuer: string): string {
  const { origin, pathname } = new URL(issuer)
  return `${origin}/.well-known/ssf-configuration${pathname.replace(/\/$/, '')}`
}

function parseMetadata(found: JsonMembers | null, { url, issuer }: { url: string; issuer: string }): Metadata {
  // Refused, because one tenant's metadata could else serve for another tenant of the same server.
  if (found?.issuer !== issuer)
    throw new TransmitterError(`${url} is the metadata of another issuer${describeSlash(issuer, found?.issuer)}`)
  const urlAt = (name: string): string | null => {
    const value = found[name]
    if (value === undefined) return null
    if (typeof value !== 'string' || !URL.canParse(value)) throw new TransmitterError(`${url}: ${name} is not a URL`)
    return value
  }
  const configurationEndpoint = urlAt('configuration_endpoint')
  if (configurationEndpoint === null) throw new TransmitterError(`${url} names no configuration_endpoint`)
  const methods = found.delivery_methods_supported
  return {
    configurationEndpoint,
    statusEndpoint: urlAt('status_endpoint'),
    verificationEndpoint: urlAt('verification_endpoint'),
    jwksUri: urlAt('jwks_uri'),
    deliveryMethods: Array.isArray(methods) ? methods.filter((method) => typeof method === 'string') : null,
  }
}

async function readBody(
  body: ReadableStream<Uint8Array> | null,
  { url, bytesMax }: { url: string; bytesMax: number },
): Promise<unknown> {
  const bytes = body === null ? Buffer.alloc(0) : await readAtMost(body, bytesMax)
  if (bytes === null) throw new TransmitterError(`${url} answered with more than ${bytesMax} bytes`)
  if (bytes.length === 0) return null
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new TransmitterError(`${url} answered with what is not JSON in UTF-8`)
  }
}
