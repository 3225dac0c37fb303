/** What a sidecar bounds, with the values that hold when nobody says otherwise. */
export type SidecarLimits = { readonly [name in keyof typeof DEFAULT_LIMITS]: number }

export const DEFAULT_LIMITS = {
  /** Request line and header section together; the same for what the upstream answers. */
  headerBytesMax: 32 * 1024,
  /** From the first byte of a request to the end of its header section. */
  headersTimeoutMs: 10_000,
  /** Between two pieces of a body that is being forwarded, and for a client to take the next piece of an answer. */
  bodyIdleMs: 60_000,
  /** Which a client must send of a body, and take of an answer, on average, once it was slow for `bodyGraceMs`; 0: it need not. */
  bodyBytesPerSecondMin: 500,
  bodyGraceMs: 20_000,
  /** For the whole of a body that a check reads. */
  bodyReadMs: 10_000,
  /** Between two requests of a connection; longer than load balancers keep theirs. */
  keepAliveMs: 65_000,
  connectionsMax: 10_000,
  /** Of one client address: an IPv4 address, or the /64 of an IPv6 address. */
  clientConnectionsMax: 1_000,
  /** Requests under way, of all that reach the upstream and of each client address, subject and route. */
  requestsMax: 1_024,
  clientRequestsMax: 256,
  subjectRequestsMax: 256,
  routeRequestsMax: 512,
  /** WebSocket connections that are open, which count in none of the four above; the second of each client address and subject. */
  websocketsMax: 8_192,
  clientWebsocketsMax: 1_000,
  /** Requests that wait behind each of these bounds, and for how long. */
  waitingMax: 512,
  waitingMs: 1_000,
  /** Requests that a client sends on one HTTP/1.1 connection before the first of them is answered; they are taken one by one. */
  pipelinedMax: 100,
  /** Requests under way on one HTTP/2 connection; over all of them it is `connectionsMax` too. */
  http2StreamsMax: 100,
  /** Frames without a request or a body (PING, RST_STREAM, SETTINGS…) that may come at once; a tenth of it each second. */
  http2EmptyFramesMax: 1_000,
  upstreamConnectMs: 5_000,
  /** From the last piece of the request to the header section of the upstream's answer. */
  upstreamHeadersMs: 60_000,
  upstreamConnectionsMax: 1_024,
  /** For one decision, with its retry. */
  pdpTimeoutMs: 500,
  /** For which a long exchange goes on while nobody can say whether it is still permitted. */
  unconfirmedMaxMs: 5_000,
  /** For which a token may be used after its expiry, for clocks that differ. */
  expiryLeewayMs: 5_000,
  /** For requests under way when the sidecar is told to stop. */
  drainMs: 25_000,
  keyRefreshMs: 300_000,
  /** After which the last good key set is not used any more. */
  keyAgeMaxMs: 3_600_000,
  keyCooldownMs: 10_000,
  /** All proofs of one acceptance window: 7,000 a second. */
  proofsMax: 500_000,
}
