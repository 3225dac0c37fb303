/** Calls a URL that another party chose: no internal address, no redirect, a deadline, and a bounded answer. */
import { type LookupAddress, lookup as lookupHost } from 'node:dns'
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { createNetworks, parseAddress, parseNetwork } from './addresses.ts'
import { readAtMost } from './http-json.ts'

/** IANA's registries of special-purpose addresses (RFC 6890): no host of the public Internet has one of these. */
const INTERNAL_IPV4 = createNetworks(
  [
    ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
    ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
    ...['224.0.0.0/4', '240.0.0.0/4'],
  ].map(parseNetwork),
)
/** Public addresses: of IPv6 only 2000::/3 is given out, without IETF assignments with Teredo, documentation, and 6to4. */
const PUBLIC_IPV6 = createNetworks([parseNetwork('2000::/3')])
const INTERNAL_IPV6 = createNetworks(['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'].map(parseNetwork))

/** True for what is not an address at all. */
export function isInternalAddress(text: string): boolean {
  const address = parseAddress(text)
  if (address === null) return true
  if (!address.includes(':')) return INTERNAL_IPV4.has(address)
  return !PUBLIC_IPV6.has(address) || INTERNAL_IPV6.has(address)
}

/** Names for this machine or a private network, or for nothing: RFC 6761, 6762, 8375, 7686, and `internal` by ICANN. */
const INTERNAL_DOMAINS = ['localhost', 'local', 'internal', 'home.arpa', 'invalid', 'onion']

/** True for a name that public DNS cannot resolve. A name without a dot is one: the machine's own network completes it. */
function isInternalName(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  return !name.includes('.') || INTERNAL_DOMAINS.some((domain) => name === domain || name.endsWith(`.${domain}`))
}

/** The target must not be called, and nothing was sent. */
export class TargetRefused extends Error {
  override readonly name = 'TargetRefused'
}

export type PostAnswer = {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** The body; null when it has more bytes than allowed. */
  readonly body: Buffer | null
}
type GuardedCall = {
  readonly url: string
  readonly headers: { readonly [name: string]: string }
  readonly body?: string
  readonly deadlineMs: number
  readonly bytesMax: number
}
export type GuardedPost = {
  /**
   * Throws TargetRefused for a URL that may never be called: neither https, nor http to an allowed host; with a password or
   * a fragment; or with an internal address or name as its host. What a name resolves to is checked by `post`, each time.
   */
  check(url: string): void
  /** Throws TargetRefused, or any other Error when there was no answer in time. */
  post(call: GuardedCall & { readonly body: string }): Promise<PostAnswer>
  /** Does what `post` does, with another method. */
  send(call: GuardedCall & { readonly method: string; readonly signal?: AbortSignal }): Promise<PostAnswer>
  close(): void
}

/**
 * `internalHosts`: hosts (`host` or `host:port`) that may have internal addresses and may be called by http; no proxy is used for them.
 * `proxy`: calls by https go through it, and it resolves their names. A name that has an internal address here is refused before; one
 * that is not found here passes, since there may be no DNS but the proxy's: then it is the proxy that must refuse.
 */
export function createGuardedPost(options: {
  readonly internalHosts: readonly string[]
  readonly proxy?: { readonly https_proxy: string; readonly no_proxy: string | undefined } | null
  readonly lookup?: typeof lookupHost
}): GuardedPost {
  const allowed = new Set(options.internalHosts.map((host) => host.toLowerCase()))
  const isAllowed = (url: URL): boolean => allowed.has(url.host) || allowed.has(url.hostname)
  const agents = { 'http:': new HttpAgent({ keepAlive: true }), 'https:': new HttpsAgent({ keepAlive: true }) }
  const outside =
    options.proxy == null
      ? agents['https:']
      : new HttpsAgent({ keepAlive: true, proxyEnv: { ...options.proxy }, maxCachedSessions: 0 })
  const guardedLookup = guard(options.lookup ?? lookupHost)

  function parse(text: string): URL {
    const url = URL.parse(text)
    if (url === null) throw new TargetRefused('is not a URL')
    if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isAllowed(url)))
      throw new TargetRefused('must use https')
    if (url.username !== '' || url.password !== '' || url.hash !== '')
      throw new TargetRefused('must have neither a user, nor a password, nor a fragment')
    const host = url.hostname.replace(/^\[|\]$/g, '')
    if (isAllowed(url)) return url
    if (isIP(host) !== 0 && isInternalAddress(host)) throw new TargetRefused('has an internal address as its host')
    if (isIP(host) === 0 && isInternalName(host)) throw new TargetRefused('has a host that is no name of the Internet')
    return url
  }

  const send: GuardedPost['send'] = async ({ method, url: text, headers, body, deadlineMs, bytesMax, signal }) => {
    const url = parse(text)
    const isPlain = url.protocol === 'http:'
    const deadline = AbortSignal.timeout(deadlineMs)
    const ending = signal === undefined ? deadline : AbortSignal.any([signal, deadline])
    if (options.proxy != null && !isAllowed(url))
      await refuseInternal(guardedLookup, { host: url.hostname, waitMs: deadlineMs / 2 })
    ending.throwIfAborted()
    const response = await new Promise<IncomingMessage>((answered, failed) => {
      const request = (isPlain ? requestHttp : requestHttps)(url, {
        method,
        headers: { ...headers, ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }) },
        signal: ending,
        ...(isAllowed(url)
          ? { agent: isPlain ? agents['http:'] : agents['https:'] }
          : // The time ends a connection through a silent proxy.
            { agent: outside, lookup: guardedLookup, timeout: deadlineMs }),
      })
      // While a proxy is silent, the request itself ignores the signal.
      ending.addEventListener('abort', () => failed(ending.reason), { once: true })
      request.on('response', answered)
      request.on('error', failed)
      request.end(body)
    })
    const read = await readAtMost(response, bytesMax)
    if (read === null) response.destroy()
    return { status: response.statusCode ?? 0, headers: response.headers, body: read }
  }

  return {
    check: (url) => void parse(url),
    post: (call) => send({ ...call, method: 'POST' }),
    send,
    close() {
      for (const agent of [...Object.values(agents), outside]) agent.destroy()
    },
  }
}

/** Checks the address of the real connection, since a second resolution of the name could give another one. */
const guard =
  (resolve: typeof lookupHost): LookupFunction =>
  (host, { all, ...wanted }, done) => {
    resolve(host, { ...wanted, all: true }, (error, found) => {
      const addresses: readonly LookupAddress[] = found ?? []
      const [first] = addresses
      if (error !== null || first === undefined) return done(error ?? new Error(`${host} has no address`), '')
      if (addresses.some(({ address }) => isInternalAddress(address)))
        return done(new TargetRefused('its host resolves to an internal address'), '')
      return all === true ? done(null, [...addresses]) : done(null, first.address, first.family)
    })
  }

/** Throws TargetRefused for a name that has an internal address; passes one that is not found in time. */
async function refuseInternal(
  guardedLookup: LookupFunction,
  { host, waitMs }: { readonly host: string; readonly waitMs: number },
): Promise<void> {
  if (isIP(host.replace(/^\[|\]$/g, '')) !== 0) return
  await new Promise<void>((pass, refuse) => {
    const timer = setTimeout(pass, waitMs)
    guardedLookup(host, { all: true }, (error) => {
      clearTimeout(timer)
      if (error instanceof TargetRefused) refuse(error)
      else pass()
    })
  })
}
