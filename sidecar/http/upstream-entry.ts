/** A service behind the sidecar, as the route file says how it is reached. */

/** Paths of PEM files; null: not given. */
export type PeerFiles = {
  /** Authorities that the peer's certificate is verified with; null: those of the system. */
  readonly caFile: string | null
  readonly certFile: string | null
  readonly keyFile: string | null
}
export type UpstreamEntry = PeerFiles & {
  /** Without a path. */
  readonly origin: string
  /** Path of a unix socket, in place of the host and port of `origin`; null: none. */
  readonly socketPath: string | null
  /** The name that its certificate must be for; null: the host of `origin`. */
  readonly serverName: string | null
  /** The Host field that it gets; null: the client's. */
  readonly host: string | null
  /** The beginning of paths that it does not get, such as `/auth`; null: it gets whole paths. */
  readonly stripPath: string | null
  /** The path of its own below which it gets them, such as `/api`; null: its root. */
  readonly addPath: string | null
  /** The `aud` of assertions for it; null: that of the file. */
  readonly assertionAudience: string | null
  /** Uses HTTP/2, which gRPC services need. */
  readonly http2: boolean
  /** No upstream connection carries requests of two clients. */
  readonly perClient: boolean
  /** The upstream reads every body to its end or closes the connection (RFC 9112 section 9.3). */
  readonly reuseAfterBody: boolean
}
/** The services that routes name, each once. */
export const upstreamsOf = (
  routes: readonly { readonly upstream: UpstreamEntry | null }[],
): ReadonlySet<UpstreamEntry> => new Set(routes.map(({ upstream }) => upstream).filter((upstream) => upstream !== null))

export type MovedPaths = Pick<UpstreamEntry, 'stripPath' | 'addPath'>

/** The names of a path that `add_path` gives. */
export const addedNames = (addPath: string | null): readonly string[] => addPath?.slice(1).split('/') ?? []

/** How many segments of the path the service does not get. */
export const strippedCount = (stripPath: string | null): number => (stripPath?.split('/').length ?? 1) - 1

/** The service, whatever the way to it. */
export const serviceOf = ({ origin, socketPath, host }: UpstreamEntry): string =>
  `${socketPath ?? origin} ${host ?? ''}`
