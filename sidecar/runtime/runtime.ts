/** All parts that are made from one configuration. A reload makes a new runtime; the old one ends with its last exchange. */

import { randomBytes } from 'node:crypto'
import { type ChannelCredentials, credentials } from '@grpc/grpc-js'
import { createNetworks, type Networks } from '../../pdp/shared/base/addresses.ts'
import { urlPort } from '../../pdp/shared/process/listen.ts'
import { createProofVerifier } from '../../pdp/shared/token/dpop.ts'
import { type KeySource, NO_KEYS } from '../../pdp/shared/token/keys.ts'
import type { Nonces } from '../../pdp/shared/token/nonces.ts'
import { createIntrospect, type Introspect } from '../../pdp/shared/token/opaque-tokens.ts'
import { type Fetch, remoteKeys } from '../../pdp/shared/token/remote-keys.ts'
import type { ReplayMemory } from '../../pdp/shared/token/replay.ts'
import { createTokenVerifier, type TokenVerifier, type TrustedIssuer } from '../../pdp/shared/token/verify.ts'
import { NO_PEM, type Pem, secureOptions } from '../config/certificates.ts'
import type { LoadedConfig } from '../config/config.ts'
import type { EnforceDeps } from '../enforce/enforce.ts'
import { describeResource, type ResourceMetadata } from '../enforce/resource-metadata.ts'
import { createAssertion } from '../http/assertion.ts'
import { createHeaderRules } from '../http/fields.ts'
import { type UpstreamEntry, upstreamsOf } from '../http/upstream-entry.ts'
import { createSessionSeal } from '../mcp/sessions.ts'
import { createPdpClient, type PdpClient } from '../pdp-client/client.ts'
import type { RouteReports } from '../pdp-client/route-reports.ts'
import { DEFAULT_LIMITS, type SidecarLimits, targetCharsMax } from '../route-file/default-limits.ts'
import type { IntrospectionEntry, IssuerEntry } from '../route-file/peers.ts'
import type { Route } from '../routes/route.ts'
import type { RoutingDeps } from '../routes/route-request.ts'
import type { SharedSessions } from '../sign-in/refresh.ts'
import { createSignIn, type SignIn } from '../sign-in/sign-in.ts'
import { HeldAnswers } from '../upstream/answer-filter.ts'
import { BodyMemory } from '../upstream/body-memory.ts'
import type { ForwardDeps } from '../upstream/forward.ts'
import { createHttp1Upstream } from '../upstream/http1.ts'
import { createHttp2Upstream } from '../upstream/http2.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { createClockSkew } from './clock-skew.ts'
import type { SidecarLog } from './log.ts'
import type { Metrics } from './metrics.ts'
import { createSharedResources, type Shared } from './shared-resources.ts'

/** The parts that all runtimes of a process share. */
export type RuntimeDeps = {
  readonly log: SidecarLog
  readonly metrics: Metrics
  readonly fetch: Fetch
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly random: () => number
  /** Limits that override the route file's. */
  readonly limits: Partial<SidecarLimits>
  readonly replay: ReplayMemory
  readonly nonces: Nonces
  readonly readToken: (path: string) => string
  /** Data about browsers' sessions that is not in their cookies. */
  readonly sessions: SharedSessions
  readonly resources: ReturnType<typeof createRuntimeResources>
  readonly skew: ReturnType<typeof createClockSkew>
  /** Reports of the routes; null: no PDP gets any. */
  readonly reports: Pick<RouteReports, 'open'> | null
}
export type Runtime = {
  readonly config: LoadedConfig
  readonly limits: SidecarLimits
  /** The networks of trusted proxies; null: no proxy is trusted. */
  readonly trustedProxies: Networks | null
  /** True for addresses of proxies that begin each connection with a header of the PROXY protocol. */
  namesClient(address: string): boolean
  /** How many requests to the upstream may be open. Further ones would wait for a connection without being counted. */
  readonly requestsMax: number
  /** How many requests to one service may be open, so that a silent one leaves places for others; null: there is one service. */
  readonly serviceRequestsMax: number | null
  readonly enforcing: EnforceDeps
  readonly forwarding: ForwardDeps
  /** How requests of a route are forwarded, to the service that the route names. */
  readonly forwardingTo: (route: Pick<Route, 'upstream'>) => ForwardDeps
  readonly metadata: ResourceMetadata | null
  /** The key set of assertions as JSON; null: no assertions are signed. */
  readonly assertionKeys: string | null
  /** The sign-in of browsers; null: the file has none. */
  readonly signIn: SignIn | null
  readonly proofNonce: () => string | null
  /** The issuers whose keys could not yet be loaded. */
  issuersWithoutKeys(): readonly string[]
  readonly pdp: Pick<PdpClient, 'silentSinceMs' | 'isConnecting' | 'hasConnected'>
  /** Loads issuers' keys that are missing or due for a reload. */
  refreshKeys(): void
  /** Must be called when an exchange begins. */
  enter(): void
  /** Must be called when an entered exchange has ended. */
  readonly leave: () => void
  /** Accepts no more exchanges. Its resources are released after the last one. */
  retire(): void
}

const SESSION_KEY_BYTES = 32

export const createRuntimeResources = () => ({
  keys: createSharedResources<KeySource>(),
  pdp: createSharedResources<PdpClient>(),
  upstream: createSharedResources<Upstream>(),
  held: new HeldAnswers(),
  /** A key for this process only: MCP servers keep sessions in memory, and clients begin new ones after a restart. */
  mcpSessions: createSessionSeal([randomBytes(SESSION_KEY_BYTES)]),
})

export function createRuntime(config: LoadedConfig, deps: RuntimeDeps, routing: RoutingDeps): Runtime {
  const { file } = config
  const { clock, replay, nonces } = deps
  const limits: SidecarLimits = { ...DEFAULT_LIMITS, ...file.limits, ...deps.limits }
  const { issuers, pdp, upstream, upstreams, release } = openAll(config, deps, limits)
  const metadata = describeResource(file)
  const assertion = assertionOf(config, clock)
  const { mcp: mcpKeys } = config.certificates
  const tokens = createTokenVerifier({
    issuers,
    audience: file.resources,
    clock,
    expiryLeewayMs: limits.expiryLeewayMs,
  })
  const trustedProxies = file.trustedProxies.length === 0 ? null : createNetworks(file.trustedProxies)
  const proofNonces = file.proofNonces ? nonces : null
  deps.resources.held.bytesMax = limits.answersHeldBytes
  const forwarding: ForwardDeps = {
    upstream,
    hostField: file.upstream.host,
    rules: createHeaderRules(file.headers, assertion),
    headers: file.headers,
    pace: {
      idleMs: limits.bodyIdleMs,
      graceMs: limits.bodyGraceMs,
      bytesPerSecondMin: limits.bodyBytesPerSecondMin,
    },
    bodies: new BodyMemory(),
    publicPort: urlPort(new URL(file.publicUrl)),
    keepsCookies: file.signIn !== null,
    held: deps.resources.held,
  }
  const others = new Map(
    [...upstreams].map(([named, opened]) => [named, { ...forwarding, upstream: opened, hostField: named.host }]),
  )
  const isHttp2 = [file.upstream, ...upstreams.keys()].every(({ http2 }) => http2)
  const requestsMax = isHttp2 ? limits.requestsMax : Math.min(limits.requestsMax, limits.upstreamConnectionsMax)
  let openCount = 0
  let retired = false

  function releaseWhenEnded(): void {
    if (retired && openCount === 0) release()
  }

  return {
    config,
    limits,
    trustedProxies,
    namesClient: (address) => file.proxyProtocol && trustedProxies?.has(address) === true,
    requestsMax,
    serviceRequestsMax: upstreams.size === 0 ? null : Math.ceil(requestsMax / 2),
    metadata,
    assertionKeys: assertion?.keySet ?? null,
    signIn: signInOf(config, { issuers, tokens }, deps),
    enforcing: {
      ...routing,
      tokens,
      verifyProof: createProofVerifier({ clock, replay, nonces: proofNonces }),
      publicUrl: file.publicUrl,
      cors: file.cors,
      probePaths: new Set(file.probePaths),
      servesKeys: assertion !== null,
      metadataPath: metadata?.path ?? null,
      externalIssuers: new Set(file.issuers.flatMap(({ external, issuer }) => (external === null ? [] : [issuer]))),
      pdp,
      clock,
      clockHint: deps.skew.hint,
      targetCharsMax: targetCharsMax(limits),
      shadowRoute: file.shadowRoute,
      mcpSessions: mcpKeys === null ? deps.resources.mcpSessions : createSessionSeal(mcpKeys),
      answerBytesMax: limits.answerBytesMax,
    },
    forwarding,
    forwardingTo: ({ upstream: named }) => (named === null ? forwarding : (others.get(named) ?? forwarding)),
    proofNonce: () => proofNonces?.current() ?? null,
    issuersWithoutKeys: () => issuers.filter(({ keys }) => !keys.loaded()).map(({ issuer }) => issuer),
    pdp,
    refreshKeys() {
      for (const { keys } of issuers) void keys.refreshIfDue()
    },
    enter() {
      openCount += 1
    },
    leave() {
      openCount -= 1
      releaseWhenEnded()
    },
    retire() {
      retired = true
      releaseWhenEnded()
    },
  }
}

function signInOf(
  { file, certificates }: LoadedConfig,
  { issuers, tokens }: { readonly issuers: readonly TrustedIssuer[]; readonly tokens: TokenVerifier },
  { sessions, readToken, fetch, clock, log, metrics }: RuntimeDeps,
): SignIn | null {
  const { signIn, publicUrl, resource } = file
  if (signIn === null) return null
  const { signIn: keys } = certificates
  if (keys === null) throw new TypeError('sign_in without its keys')
  return createSignIn(
    { publicUrl, resource, signIn },
    { keys, issuers, tokens, ...sessions, readSecret: readToken, fetch, clock, log, count: metrics.signIn },
  )
}

function assertionOf({ file, certificates }: LoadedConfig, clock: () => number) {
  const { assertion: entry, publicUrl: issuer } = file
  if (entry === null) return null
  const { assertion: keys } = certificates
  if (keys === null) throw new TypeError('assertion without its keys')
  return { header: entry.header, ...createAssertion(entry, { keys, issuer, clock }) }
}

/** Opens all shared resources. If one fails, it releases the others and throws. */
function openAll(config: LoadedConfig, deps: RuntimeDeps, limits: SidecarLimits) {
  const opened: Shared<unknown>[] = []
  const kept = <T>(shared: Shared<T>): T => {
    opened.push(shared)
    return shared.value
  }
  const release = (): void => {
    for (const shared of opened) shared.release()
  }
  try {
    const { issuers } = config.file
    return {
      issuers: issuers.map(({ introspection, ...entry }): TrustedIssuer => {
        if (introspection === null) return { ...entry, keys: kept(openKeys(entry, deps, limits)) }
        const forLogoutTokens = { ...NO_KEYS, find: kept(openKeys(entry, deps, limits)).find }
        return { ...entry, keys: forLogoutTokens, introspect: introspectFor(entry.issuer, introspection, deps) }
      }),
      pdp: kept(openPdp(config, deps, limits)),
      upstream: kept(openUpstream(config.file.upstream, config.certificates.upstream, { deps, limits })),
      upstreams: new Map(
        [...upstreamsOf(config.file.routes)].map((entry) => {
          const pem = config.certificates.upstreams.get(entry) ?? NO_PEM
          return [entry, kept(openUpstream(entry, pem, { deps, limits }))]
        }),
      ),
      release,
    }
  } catch (err) {
    release()
    throw err
  }
}

function introspectFor(
  issuer: string,
  { endpoint, clientId, clientSecretFile }: IntrospectionEntry,
  { fetch, clock, log, readToken }: RuntimeDeps,
): Introspect {
  const onError = (err: unknown): void => log.warn({ event: 'introspection_failed', issuer, err })
  const clientSecret = (): string => readToken(clientSecretFile)
  return createIntrospect({ issuer, endpoint, clientId, clientSecret, fetch, clock, onError })
}

function openKeys(
  entry: Pick<IssuerEntry, 'issuer' | 'jwksUri'>,
  { resources, fetch, clock, log, skew }: RuntimeDeps,
  limits: SidecarLimits,
): Shared<KeySource> {
  const { issuer, jwksUri } = entry
  return resources.keys.use(JSON.stringify([issuer, jwksUri]), () => {
    const value = remoteKeys({
      issuer,
      ...(jwksUri !== null && { jwksUri }),
      async fetch(url, init) {
        const askedMs = clock()
        const answer = await fetch(url, init)
        if (answer.dated !== undefined) skew.observe(issuer, { ...answer.dated, askedMs })
        return answer
      },
      clock,
      refreshAfterMs: limits.keyRefreshMs,
      ageMaxMs: limits.keyAgeMaxMs,
      cooldownMs: limits.keyCooldownMs,
      onError: (err) => log.warn({ event: 'keys_failed', issuer, err }),
    })
    return { value, close: () => undefined }
  })
}

const pemKey = ({ ca, cert, key }: Pem): string => [ca, cert, key].map((part) => part?.toString('base64')).join(' ')

function openPdp({ file, certificates }: LoadedConfig, deps: RuntimeDeps, limits: SidecarLimits): Shared<PdpClient> {
  const { resources, metrics, log, random, clock, readToken, skew, reports } = deps
  const { addresses, insecure, tokenFile } = file.pdp
  return resources.pdp.use(JSON.stringify([file.pdp, pemKey(certificates.pdp), limits.pdpTimeoutMs]), () => {
    const value = createPdpClient({
      addresses,
      credentials: insecure ? credentials.createInsecure() : pdpCredentials(certificates.pdp),
      authorize: tokenFile === null ? null : () => readToken(tokenFile),
      random,
      clock,
      timeoutMs: limits.pdpTimeoutMs,
      share: reports?.open ?? null,
      onDate: (address, date, askedMs) => skew.observe(address, { date, askedMs }),
      onConnectionChange({ address, open, reason, wasOpen }) {
        metrics.pdpConnected(address, open)
        if (open) log.info({ event: 'pdp_connected', address, reason })
        else log.warn({ event: wasOpen ? 'pdp_disconnected' : 'pdp_unreachable', address, reason })
      },
    })
    return { value, close: () => value.close() }
  })
}

const pdpCredentials = ({ ca, cert, key }: Pem): ChannelCredentials => credentials.createSsl(ca, key, cert)

function openUpstream(
  entry: UpstreamEntry,
  pem: Pem,
  { deps, limits }: { readonly deps: RuntimeDeps; readonly limits: SidecarLimits },
): Shared<Upstream> {
  const { origin, socketPath, serverName, http2, perClient, reuseAfterBody } = entry
  const bounds = {
    connectionsMax: limits.upstreamConnectionsMax,
    handshakesMax: limits.websocketsMax,
    connectMs: limits.upstreamConnectMs,
    headersTimeoutMs: limits.upstreamHeadersMs,
    headerBytesMax: limits.headerBytesMax,
  }
  return deps.resources.upstream.use(JSON.stringify([entry, pemKey(pem), bounds]), () => {
    const tls = secureOptions(pem)
    const value = (http2 ? createHttp2Upstream : createHttp1Upstream)({
      origin,
      socketPath,
      serverName,
      tls,
      perClient,
      reuseAfterBody,
      ...bounds,
    })
    return { value, close: () => value.close() }
  })
}
