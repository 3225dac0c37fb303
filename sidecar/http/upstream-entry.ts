/** How a service behind the sidecar is reached, as the route file says. */

/** Paths of PEM files; null: not given. */
export type PeerFiles = {
  /** Certificate authorities that the peer's certificate is verified with; null: those of the system. */
  readonly caFile: string | null
  readonly certFile: string | null
  readonly keyFile: string | null
}
export type UpstreamEntry = PeerFiles & {
  /** The URL of the service without a path. */
  readonly origin: string
  /** Path of a unix socket to connect to, in place of the host and port of `origin`; null: none. */
  readonly socketPath: string | null
  /** The name that the service's certificate must be for; null: the host of `origin`. */
  readonly serverName: string | null
  /** The Host field that the service gets; null: the client's. */
  readonly host: string | null
  /** The beginning of paths that the service does not get, such as `/auth`; null: it gets whole paths. */
  readonly stripPath: string | null
  /** The path that is put before forwarded paths, such as `/api`; null: none. */
  readonly addPath: string | null
  /** The `aud` of assertions for the service; null: that of the file. */
  readonly assertionAudience: string | null
  /** True: requests use HTTP/2, which gRPC services need. */
  readonly http2: boolean
  /** True: no upstream connection carries requests of two clients. */
  readonly perClient: boolean
  /** True: the upstream reads every body to its end or closes the connection (RFC 9112 section 9.3). */
  readonly reuseAfterBody: boolean
}
/** The services that the routes name, each once. */
export const upstreamsOf = (
  routes: readonly { readonly upstream: UpstreamEntry | null }[],
): ReadonlySet<UpstreamEntry> => new Set(routes.map(({ upstream }) => upstream).filter((upstream) => upstream !== null))

export type MovedPaths = Pick<UpstreamEntry, 'stripPath' | 'addPath'>

/** The names of the path that `add_path` puts before forwarded paths. */
export const addedNames = (addPath: string | null): readonly string[] => addPath?.slice(1).split('/') ?? []

/** How many segments of the path `strip_path` removes. */
export const strippedCount = (stripPath: string | null): number => (stripPath?.split('/').length ?? 1) - 1

/** A text that identifies the service, whichever paths are stripped or added. */
export const serviceOf = ({ origin, socketPath, host }: UpstreamEntry): string =>
  `${socketPath ?? origin} ${host ?? ''}`
