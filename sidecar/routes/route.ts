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
  /** As written in the file, such as `GET /invoices/{id}`: names the route in logs and metrics. */
  readonly id: string
  /** In lower case, perhaps with `*` in place of the first label; null: every served host that has no routes of its own. */
  readonly host: string | null
  /** The name under which checks read the first label of the host, as the last parameter; null: they do not. */
  readonly hostParameter: string | null
  /** `*`: every method. */
  readonly method: string
  readonly pattern: Pattern
  /** Null: the route is public. */
  readonly check: Check | null
  /** The route is public, and the service still learns who sends a valid token or has a session. */
  readonly withIdentity: boolean
  /** The rules of a route for MCP, which becomes one route for each method of HTTP; null: another kind of route. */
  readonly mcp: McpRules | null
}

/** A path that is open to some peers under every host. `route` is public, and its pattern is that path. */
export type OpenPath = { readonly path: string; readonly peers: readonly Network[]; readonly route: Route }

/** `parameters`: by position in the pattern, then the label of the host where the route names it. */
export type MatchedRoute = { readonly route: Route; readonly parameters: readonly string[] }
export type Match =
  /** `alike`: further routes that match and are as specific. They protect the request in the same way. */
  | (MatchedRoute & { readonly kind: 'route'; readonly alike: readonly MatchedRoute[] })
  | { readonly kind: 'method'; readonly allow: readonly string[] }
  /** Some servers would match the path to the route `other`, which has other rules than `route`. */
  | { readonly kind: 'ambiguous'; readonly route: Route; readonly other: Route }
  /** Several routes match, none is the most specific, and they protect the request in different ways, or some lack the method. */
  | { readonly kind: 'overlap'; readonly routes: readonly Route[] }
  | { readonly kind: 'none' }

/** The path of a request. `segments` are decoded; a segment that `written` keeps encoded matches no literal. */
export type PathSegments = Pick<RequestTarget, 'segments' | 'written'>
export type RouteTable = {
  match(request: { readonly host: string; readonly method: string; readonly path: PathSegments }): Match
  /** A route that is not public, has other rules than `route`, and whose paths may begin with these folded names; null: none. */
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
  /** How many bytes a body that is read may have; null: as the file says. */
  readonly bodyBytesMax: number | null
  readonly forwardToken: boolean
  /** Shadow mode: denials with 401, 403 or 503 are only logged and counted. */
  readonly shadow: boolean
  /** True: WebSocket connections may be opened. */
  readonly websocket: boolean
  /** Origins whose pages may open a WebSocket. A client without an Origin field is not a browser. */
  readonly origins: ReadonlySet<string>
  /** Where the token is for pages that cannot set Authorization; null: only there. */
  readonly tokenFrom: TokenFrom | null
  /** Null: no page of another origin reads answers. */
  readonly cors: Cors | null
  readonly stepUp: StepUp | null
  /** The issuers of the file whose tokens count here; null: all. */
  readonly issuers: readonly string[] | null
  /** A token must also name one of these audiences; null: the audience of the file is enough. */
  readonly audience: readonly string[] | null
  /** The service behind the route; null: that of the file. */
  readonly upstream: UpstreamEntry | null
  /** The beginning of the route's paths that the service does not get; null: it gets whole paths. */
  readonly stripPath: string | null
  /** The path that is put before the forwarded path; null: none. */
  readonly addPath: string | null
  /** The longest silence of the service before its answer, in milliseconds; null: as the file says. */
  readonly upstreamHeadersMs: number | null
  /** Browsers are sent to sign in, where the file says how. */
  readonly signIn: boolean
  /**
   * Requests without a token are decided as those of guests, about whom the PDP is asked in this organization (null: no check needs one);
   * null: they are refused.
   */
  readonly guests: { readonly organization: string | null } | null
  /** Which items of its answers a reader sees; null: answers pass as they are. */
  readonly answer: AnswerRule | null
  /** The context of its check's questions. */
  readonly context: RouteContext
}
