/** The types of routes and of their matches. */
import type { Network } from '../../pdp/shared/base/addresses.ts'
import type { Cors } from '../http/cors.ts'
import type { UpstreamEntry } from '../http/upstream-entry.ts'
import type { TokenFrom } from '../request/browser-token.ts'
import type { RequestTarget } from '../request/target.ts'
import type { AnswerRule } from './answer-rule.ts'
import type { Check } from './checks.ts'
import type { RouteContext } from './context.ts'
import type { McpRules } from './mcp-rules.ts'
import { isWithin, type Pattern } from './patterns.ts'
import type { StepUp } from './step-up.ts'

export type Route = RouteOptions & {
  /** The route's name in logs and metrics, as the file writes it: `GET /invoices/{id}`. */
  readonly id: string
  /** The host in lower case, perhaps with `*` as first label; null: every served host that has no routes of its own. */
  readonly host: string | null
  /** The name under which checks read the first label of the host, as the last parameter; null: they do not. */
  readonly hostParameter: string | null
  /** The method; `*`: every method but CONNECT and TRACE. */
  readonly method: string
  readonly pattern: Pattern
  /** The check for requests; null: the route is public. */
  readonly check: Check | null
  /** The route is public, and the service still learns who sends a valid token or has a session. */
  readonly withIdentity: boolean
  /** The rules of a route for MCP, which becomes one route for each method of HTTP; null: another kind of route. */
  readonly mcp: McpRules | null
}

/** A path that is open to some peers under every host. `route` is public and matches only this path. */
export type OpenPath = { readonly path: string; readonly peers: readonly Network[]; readonly route: Route }

/** `parameters`: by position in the pattern, then the label of the host where the route names it. */
export type MatchedRoute = { readonly route: Route; readonly parameters: readonly string[] }
export type Match =
  /** `alike`: further routes that match and are as specific. They protect the request in the same way. */
  | (MatchedRoute & { readonly kind: 'route'; readonly alike: readonly MatchedRoute[] })
  | { readonly kind: 'method'; readonly allow: readonly string[] }
  /** Some servers would match the path to the route `other`, which has other rules than `route`. */
  | { readonly kind: 'ambiguous'; readonly route: Route; readonly other: Route }
  /** Several routes match, and none is the most specific; they protect the request differently, or some lack the method. */
  | { readonly kind: 'overlap'; readonly routes: readonly Route[] }
  | { readonly kind: 'none' }

/** The path of a request. `segments` are decoded; a segment that `written` keeps encoded matches no literal. */
export type PathSegments = Pick<RequestTarget, 'segments' | 'written'>
export type RouteTable = {
  match(request: { readonly host: string; readonly method: string; readonly path: PathSegments }): Match
  /** A guarded route with other rules than `route` whose paths may begin with these folded names; null: there is no such route. */
  guarded(request: { readonly host: string; readonly route: Route; readonly names: readonly string[] }): Route | null
  /** Hosts that have routes of their own. */
  readonly hosts: ReadonlySet<string>
}

/** True if both routes match the same requests. */
export const isSameRoute = (
  a: Pick<Route, 'host' | 'method' | 'pattern'>,
  b: Pick<Route, 'host' | 'method' | 'pattern'>,
): boolean =>
  a.host === b.host && a.method === b.method && isWithin(a.pattern, b.pattern) && isWithin(b.pattern, a.pattern)

export type RouteOptions = {
  /** True: the path may contain `%2f`. */
  readonly encodedSlash: boolean
  /** True: the path may contain `;`. */
  readonly semicolon: boolean
  /** True: the query may repeat a checked parameter of the path with another value, and may name a function of a page framework. */
  readonly query: boolean
  /**
   * `keep`: the body may contain keys that a service could take for a checked value or for the method. `judge`: the body is read even
   * where it could repeat only a parameter of the path.
   */
  readonly body: 'keep' | 'judge' | null
  /** The longest body, in bytes, that a check reads; null: the file's limit. */
  readonly bodyBytesMax: number | null
  readonly forwardToken: boolean
  /** Shadow mode: denials with 401, 403 or 503 are only logged and counted. */
  readonly shadow: boolean
  /** True: WebSocket connections may be opened. */
  readonly websocket: boolean
  /** Origins of pages that may open a WebSocket. A client without an Origin field is no browser. */
  readonly origins: ReadonlySet<string>
  /** The place of the token for pages that cannot set Authorization; null: only Authorization. */
  readonly tokenFrom: TokenFrom | null
  /** The origins whose pages may read answers; null: no other origin may. */
  readonly cors: Cors | null
  readonly stepUp: StepUp | null
  /** The issuers whose tokens the route accepts; null: all issuers of the file. */
  readonly issuers: readonly string[] | null
  /** Audiences of which a token must name one in addition; null: the file's audience is enough. */
  readonly audience: readonly string[] | null
  /** The service behind the route; null: that of the file. */
  readonly upstream: UpstreamEntry | null
  /** The beginning of the route's paths that the service does not get; null: it gets whole paths. */
  readonly stripPath: string | null
  /** The prefix of each forwarded path; null: no prefix. */
  readonly addPath: string | null
  /** The longest wait for the service's answer to begin, in milliseconds; null: the file's limit. */
  readonly upstreamHeadersMs: number | null
  /** True: browsers without a session are sent to sign in, if the file has a sign-in. */
  readonly signIn: boolean
  /**
   * Requests without a token count as those of guests, about whom the PDP is asked in `organization` (null: no check needs one). Null: such
   * requests are refused.
   */
  readonly guests: { readonly organization: string | null } | null
  /** Which items of its answers a reader sees; null: answers pass as they are. */
  readonly answer: AnswerRule | null
  /** The context of its check's questions. */
  readonly context: RouteContext
}
