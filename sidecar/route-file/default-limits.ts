/** The sidecar's limits and their defaults. */
export type SidecarLimits = { readonly [name in keyof typeof DEFAULT_LIMITS]: number }

export const DEFAULT_LIMITS = {
  /** Bytes of the request line and header section together, and of the upstream's header section. */
  headerBytesMax: 32 * 1024,
  /** Time from the first byte of a request to the end of its header section. */
  headersTimeoutMs: 10_000,
  /** Longest wait for the next part of a request body, and for a client to read the next part of a response. */
  bodyIdleMs: 60_000,
  /** Minimum average rate of a client's body and reading, enforced after `bodyGraceMs` of waiting; 0: no minimum. */
  bodyBytesPerSecondMin: 500,
  bodyGraceMs: 20_000,
  /** The time for a whole request body that a check reads. */
  bodyReadMs: 10_000,
  /** Idle time between two requests of a connection, longer than in load balancers; also for the rest of a body after its answer. */
  keepAliveMs: 65_000,
  connectionsMax: 10_000,
  /** Connections per client address: an IPv4 address, or the /64 of an IPv6 address. */
  clientConnectionsMax: 1_000,
  /** Open requests: in total, and per client address, subject and route. */
  requestsMax: 1_024,
  clientRequestsMax: 256,
  subjectRequestsMax: 256,
  routeRequestsMax: 512,
  /**
   * Questions open at the PDP at once; others wait, and clients take turns. The number is small so that the next client's turn comes soon:
   * beside a client with 640 connections, others waited 0.6 as long as with 256, and 0.9 as many requests were served.
   */
  decisionsMax: 64,
  /** Open WebSocket connections: in total, and per client address and subject. The four limits above do not count them. */
  websocketsMax: 8_192,
  clientWebsocketsMax: 1_000,
  /** How many requests may wait at each of the limits above, and for how long. */
  waitingMax: 512,
  waitingMs: 1_000,
  /** Pipelined requests that may wait on one HTTP/1.1 connection; they are served one at a time. */
  pipelinedMax: 100,
  /** Open streams per HTTP/2 connection; `connectionsMax` limits the streams of all connections. */
  http2StreamsMax: 100,
  /** HTTP/2 frames without request or body (PING, RST_STREAM, SETTINGS…) at once; later, a tenth of that number per second. */
  http2EmptyFramesMax: 1_000,
  upstreamConnectMs: 5_000,
  /** Time from the end of the request to the header section of the upstream's response. */
  upstreamHeadersMs: 60_000,
  upstreamConnectionsMax: 1_024,
  /** The bytes of one filtered answer, and the total of all answers held in memory to be filtered. */
  answerBytesMax: 8 * 1024 * 1024,
  answersHeldBytes: 64 * 1024 * 1024,
  /** Time for one decision, including its retry. */
  pdpTimeoutMs: 500,
  /** How long an open exchange continues while the PDP cannot confirm its permission. */
  unconfirmedMaxMs: 5_000,
  /** How long a token is accepted after its expiry, to tolerate clock skew. */
  expiryLeewayMs: 5_000,
  /** Time for open requests to finish at shutdown. */
  drainMs: 25_000,
  keyRefreshMs: 300_000,
  /** Maximum age of a key set; an older one is not used. */
  keyAgeMaxMs: 3_600_000,
  keyCooldownMs: 10_000,
  /** DPoP proofs that are remembered in one acceptance window: enough for about 7,000 per second. */
  proofsMax: 500_000,
}

/** RFC 9110 section 4.1 asks for at least 8,000 octets. A larger `headerBytesMax` allows longer targets, too. */
export const targetCharsMax = ({ headerBytesMax }: Pick<SidecarLimits, 'headerBytesMax'>): number =>
  Math.max(8_192, Math.floor(headerBytesMax / 4))
